"""One entry per catalog, rendered for both clients: PyIceberg's and Spark's.

PyIceberg and Iceberg's Java name the same things differently (SQLAlchemy URLs here, JDBC there), and the two must
reach the very same tables; so a user writes one entry, and the two renderings stand side by side here. Messages repeat
no value of an entry that may be a secret. Nothing here touches the locks of a metastore: whoever switches them off for
one client of several loses commits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, urlsplit

from icewright.core.errors import InvalidConfiguration, InvalidLocation
from icewright.model.iceberg import object_stores
from icewright.model.iceberg.locations import Aliases, declared, is_ambiguous, storage_and_key
from icewright.model.iceberg.objects import prefix_of
from icewright.model.iceberg.sql_urls import SqlDatabase, SqliteFile, parse_sql_url

CONNECT_TIMEOUT_MS: Final = 10_000
ANSWER_TIMEOUT_MS: Final = 60_000
"""How long a catalog may take to answer one question, whichever client asks."""

_SAID_BY_THE_ENTRY: Final = frozenset({"type", "uri", "warehouse", "catalog-impl", "py-catalog-impl", "cache-enabled"})
_CANNOT_BE_DRIVEN: Final = {
    "rest.sigv4-enabled": "requests signed for AWS (SigV4)",
    "hive.kerberos-authentication": "Kerberos",
}
_QUARANTINE_SCHEMES: Final = frozenset({"file", "hdfs", "s3"})
_DELEGATION: Final = "header.X-Iceberg-Access-Delegation"


class CatalogKind(StrEnum):
    """Kinds of catalogs that icewright can drive."""

    SQL = "sql"
    REST = "rest"
    HIVE = "hive"


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A catalog as the configuration names it.

    ``uri`` is SQLAlchemy's URL of a SQL catalog (``sqlite:////absolute/path.db``, ``postgresql://user@host/database``),
    the base of a REST catalog (``https://...``), or ``thrift://host:port`` of a Hive Metastore, several with commas
    between them. ``warehouse`` is a URI or an absolute path, or a REST catalog's own name for one, or empty where the
    catalog knows. ``properties`` go to both clients, each by the names that it has for them. ``aliases`` are other
    names of storages (:func:`.locations.declared`), and ``roots`` the only places where its tables may
    lie, if any are said; ``quarantine`` has the places, outside of all tables, where removed files wait, one for each
    bucket or file system. Neither client is told of them.
    """

    name: str
    kind: CatalogKind
    uri: str
    warehouse: str
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    aliases: Mapping[str, str] = field(default_factory=dict)
    roots: tuple[str, ...] = ()
    quarantine: tuple[str, ...] = ()

    def check(self) -> None:
        """Whether both clients can be pointed at it. Raises :class:`InvalidConfiguration` with the catalog's name."""
        try:
            self._check()
        except InvalidConfiguration as error:
            raise InvalidConfiguration(f"catalog {self.name}: {error.message}", hint=error.hint) from error

    def check_places(self) -> None:
        """The part of :meth:`check` that needs no secret: names of storages, and roots."""
        try:
            declared(self.aliases)
            for root in (*self.roots, *self.quarantine):
                _check_root(root)
            _check_quarantine(declared(self.aliases), self.quarantine)
        except (InvalidConfiguration, InvalidLocation) as error:
            raise InvalidConfiguration(f"catalog {self.name}: {error.message}", hint=error.hint) from error

    def pyiceberg_properties(self) -> dict[str, str]:
        """What ``pyiceberg.catalog.load_catalog(name, **properties)`` takes."""
        given = {key: text for key, text in self.properties.items() if not key.startswith("jdbc.") and key != "io-impl"}
        return {
            **given,
            **object_stores.for_pyiceberg(self.properties),
            "type": str(self.kind),
            **self._for_pyiceberg(),
        }

    def spark_properties(self) -> dict[str, str]:
        """The ``spark.sql.catalog.<name>...`` configuration of the same catalog.

        ``cache-enabled=false``: a maintenance session must never act on a cached table.
        """
        given = {
            key: text
            for key, text in self.properties.items()
            if not key.startswith("py-") and key not in object_stores.NOT_FOR_JAVA
        }
        found = {**given, **object_stores.for_java(self.properties), **self._file_io(), **self._for_spark()}
        prefix = f"spark.sql.catalog.{self.name}"
        return {
            prefix: "org.apache.iceberg.spark.SparkCatalog",
            f"{prefix}.cache-enabled": "false",
            **{f"{prefix}.{key}": text for key, text in found.items()},
        }

    def spark_packages(self) -> tuple[str, ...]:
        """Maven coordinates that Spark needs for this catalog, beside Iceberg's own runtime."""
        drivers = (self.sql_database.package,) if self.kind is CatalogKind.SQL else ()
        uses_s3 = object_stores.uses_s3(self.properties, self.warehouse)
        return (*drivers, object_stores.AWS_PACKAGE) if uses_s3 else drivers

    @property
    def sql_database(self) -> SqlDatabase:
        """The database of a SQL catalog. Raises :class:`InvalidConfiguration`."""
        return parse_sql_url(self.uri, self.properties)

    @property
    def warehouse_uri(self) -> str:
        """The warehouse as a URI; a plain absolute path becomes ``file:///...``, what a REST catalog names stays."""
        if self.kind is CatalogKind.REST or not self.warehouse:
            return self.warehouse
        if "://" in self.warehouse or self.warehouse.startswith("file:"):
            return self.warehouse
        path = Path(self.warehouse)
        if not path.is_absolute():
            raise InvalidConfiguration(f"the warehouse {self.warehouse!r} is neither a URI nor an absolute path")
        return path.as_uri()

    def _check(self) -> None:
        for key in sorted(_SAID_BY_THE_ENTRY & self.properties.keys()):
            raise InvalidConfiguration(f"{key} is no property: the entry itself says it, or icewright does")
        for key, what in _CANNOT_BE_DRIVEN.items():
            if self.properties.get(key, "false").strip().lower() != "false":
                raise InvalidConfiguration(f"{what} ({key}) cannot be used yet")
        match self.kind:
            case CatalogKind.SQL:
                if not self.warehouse:
                    raise InvalidConfiguration("it has no warehouse, which a SQL catalog needs")
            case CatalogKind.REST:
                _check_address(_split(self.uri), ("http", "https"), "https://host/path")
            case CatalogKind.HIVE:
                for uri in self.uri.split(","):
                    _check_address(_split(uri.strip()), ("thrift",), "thrift://host:9083")
        self.pyiceberg_properties()
        self.spark_properties()

    def _for_pyiceberg(self) -> dict[str, str]:
        where = {"warehouse": self.warehouse_uri} if self.warehouse else {}
        match self.kind:
            case CatalogKind.SQL:
                database = self.sql_database
                # As it is written: SQLAlchemy does not decode the path of a file.
                return {**where, "uri": self.uri if isinstance(database, SqliteFile) else database.sqlalchemy_url}
            case CatalogKind.REST:
                return {**where, "uri": self.uri, "snapshot-loading-mode": "all"}
            case CatalogKind.HIVE:
                return {**where, "uri": self.uri}

    def _for_spark(self) -> dict[str, str]:
        where = {"warehouse": self.warehouse_uri} if self.warehouse else {}
        match self.kind:
            case CatalogKind.SQL:
                database = self.sql_database
                login = {f"jdbc.{key}": text for key, text in database.login.items()}
                return {**where, "type": "jdbc", "uri": database.jdbc_url, "jdbc.schema-version": "V1", **login}
            case CatalogKind.REST:
                return {
                    **where,
                    "type": "rest",
                    "uri": self.uri,
                    "snapshot-loading-mode": "all",
                    "rest.client.connection-timeout-ms": str(CONNECT_TIMEOUT_MS),
                    "rest.client.socket-timeout-ms": str(ANSWER_TIMEOUT_MS),
                    # As PyIceberg asks by itself: credentials for the table's files, where the catalog gives them out.
                    _DELEGATION: self.properties.get(_DELEGATION, "vended-credentials"),
                }
            case CatalogKind.HIVE:
                timeout = {"hadoop.hive.metastore.client.socket.timeout": f"{ANSWER_TIMEOUT_MS // 1000}s"}
                return {**where, "type": "hive", "uri": self.uri, **timeout}

    def _file_io(self) -> dict[str, str]:
        """Iceberg's ``FileIO`` in Java; a REST catalog says itself which, and resolves by location otherwise."""
        if self.kind is CatalogKind.REST or "io-impl" in self.properties:
            return {}
        if object_stores.is_on_s3(self.warehouse):
            return {"io-impl": object_stores.S3_FILE_IO}
        uses_s3 = object_stores.uses_s3(self.properties, self.warehouse)
        return {"io-impl": object_stores.RESOLVING_FILE_IO} if uses_s3 else {}


def _split(uri: str) -> SplitResult:
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError as error:  # its message may hold a part of a password
        raise InvalidConfiguration("its uri is no URL") from error
    return parts


def _check_root(root: str) -> None:
    """Whether a place is one folder, and nothing but that: it is shown and logged, so that no secret may be in it."""
    try:
        if ":" in storage_and_key(root)[0].partition("://")[2].rpartition("@")[0]:
            raise InvalidConfiguration(
                "a place under roots or quarantine holds a user or a password",
                hint="credentials belong into the properties of the catalog, as env:NAME or file:/path",
            )
        if is_ambiguous(root):
            raise InvalidConfiguration(f"the root {root!r} may be another folder to a file system as well")
    except InvalidLocation as error:
        raise InvalidConfiguration(f"the root {root!r} is neither a URI nor an absolute path") from error


def _check_quarantine(aliases: Aliases, places: tuple[str, ...]) -> None:
    """Each place is a folder of its own, on a storage where files can be moved, and no storage's root."""
    canonical = [aliases.canonical(place) for place in places]
    for place, found in zip(places, canonical, strict=True):
        scheme, key = found.partition(":")[0], storage_and_key(found)[1].strip("/")
        if scheme not in _QUARANTINE_SCHEMES:
            known = ", ".join(sorted(_QUARANTINE_SCHEMES))
            raise InvalidConfiguration(f"the quarantine {place!r} is on {scheme}; files are removed on {known} alone")
        if not key:
            raise InvalidConfiguration(f"the quarantine {place!r} is a whole storage; name a folder of its own")
    folders = sorted(prefix_of(found) for found in canonical)
    for one, other in pairwise(folders):
        if other.startswith(one):
            raise InvalidConfiguration(f"the quarantines {one!r} and {other!r} overlap")


def _check_address(parts: SplitResult, schemes: tuple[str, ...], example: str) -> None:
    if parts.scheme not in schemes or not parts.hostname:
        raise InvalidConfiguration(f"its uri does not begin with {schemes[0]}://host", hint=f"write {example}")
    if "@" in parts.netloc:
        raise InvalidConfiguration(
            "its uri holds a user or a password, which Spark does not read there",
            hint="use the properties token or credential, as env:NAME or file:/path",
        )
