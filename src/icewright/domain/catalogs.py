"""One entry per catalog, rendered for both clients: PyIceberg's and Spark's.

PyIceberg and Iceberg's Java name the same things differently (SQLAlchemy URLs here, JDBC there), and the two must
reach the very same tables; so a user writes one entry, and the two renderings stand side by side here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from urllib.parse import unquote, urlsplit

from icewright.domain.errors import InvalidConfiguration

SQLITE_JDBC_PACKAGE = "org.xerial:sqlite-jdbc:3.50.3.0"
BUSY_TIMEOUT_MS = 30_000


class CatalogKind(StrEnum):
    """Kinds of catalogs that icewright can drive."""

    SQL = "sql"


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A catalog as the configuration names it.

    ``uri`` is SQLAlchemy's (``sqlite:////absolute/path.db``). ``warehouse`` is a URI or an absolute path.
    ``properties`` go to PyIceberg as they are (``FileIO`` settings and the like).
    """

    name: str
    kind: CatalogKind
    uri: str
    warehouse: str
    properties: Mapping[str, str] = field(default_factory=dict)

    def pyiceberg_properties(self) -> dict[str, str]:
        """What ``pyiceberg.catalog.load_catalog(name, **properties)`` takes."""
        return {**self.properties, "type": "sql", "uri": self.uri, "warehouse": self.warehouse_uri}

    def spark_properties(self) -> dict[str, str]:
        """The ``spark.sql.catalog.<name>...`` configuration of the same catalog.

        ``cache-enabled=false``: a maintenance session must never act on a cached table.
        """
        prefix = f"spark.sql.catalog.{self.name}"
        return {
            prefix: "org.apache.iceberg.spark.SparkCatalog",
            f"{prefix}.type": "jdbc",
            f"{prefix}.uri": f"jdbc:sqlite:{self.sqlite_path}?busy_timeout={BUSY_TIMEOUT_MS}",
            f"{prefix}.jdbc.schema-version": "V1",
            f"{prefix}.warehouse": self.warehouse_uri,
            f"{prefix}.cache-enabled": "false",
        }

    def spark_packages(self) -> tuple[str, ...]:
        """Maven coordinates that Spark needs for this catalog, beside Iceberg's own runtime."""
        return (SQLITE_JDBC_PACKAGE,)

    @property
    def sqlite_path(self) -> str:
        """The absolute path of the catalog's SQLite file. Raises :class:`InvalidConfiguration`."""
        parts = urlsplit(self.uri)
        path = unquote(parts.path)[1:] if parts.path.startswith("//") else ""
        if parts.scheme.split("+")[0] != "sqlite" or not path:
            raise InvalidConfiguration(
                f"catalog {self.name}: the uri {self.uri!r} is not a SQLite file",
                hint='write uri = "sqlite:////absolute/path/catalog.db"; other catalogs come later',
            )
        return path

    @property
    def warehouse_uri(self) -> str:
        """The warehouse as a URI; a plain absolute path becomes ``file:///...``."""
        if "://" in self.warehouse or self.warehouse.startswith("file:"):
            return self.warehouse
        path = Path(self.warehouse)
        if not path.is_absolute():
            raise InvalidConfiguration(
                f"catalog {self.name}: the warehouse {self.warehouse!r} is neither a URI nor an absolute path"
            )
        return path.as_uri()
