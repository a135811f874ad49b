"""Arrow's file systems from the settings of Iceberg's ``FileIO``, as far as Arrow honours them.

Spark reads and writes through Iceberg's Java, a Python worker through Arrow. What Java is told (endpoint,
credentials, encryption, tags) Arrow must be told too, or the two would see other objects, or write other ones. So
every setting is either rendered here, or known to change nothing about which bytes are read and written, or a reason
to refuse: there is no fourth kind, and a name that is not known refuses.

Names are those of ``S3FileIOProperties``, ``AwsClientProperties``, ``HttpClientProperties``, ``GCPProperties`` and
``AzureProperties`` of Iceberg 1.12.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from pyarrow import fs

from icewright_spark.parquet.errors import UnsupportedLocation

CONNECT_TIMEOUT_S: Final = 10.0
REQUEST_TIMEOUT_S: Final = 60.0
"""How long S3 may send nothing before a request is tried again, which happens twice."""

_FILE_SYSTEMS_KEPT: Final = 8


@dataclass(frozen=True, slots=True)
class Address:
    """A location in parts: ``s3://bucket/key``; ``authority`` is the bucket, the container or the name node."""

    scheme: str
    authority: str
    path: str


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of storage: which settings are its own, and what becomes of each."""

    schemes: frozenset[str]
    open: Callable[[Address, Mapping[str, Any]], Any]
    arguments: Callable[[Address, Mapping[str, str]], dict[str, Any]] = lambda _where, _found: {}
    prefixes: tuple[str, ...] = ()
    honoured: frozenset[str] = frozenset()
    honoured_prefixes: tuple[str, ...] = ()
    without_effect: tuple[str, ...] = ()
    """Names, and prefixes that end in a dot or a dash, of settings that Arrow need not know: how Java's requests
    travel, when they are repeated, what deletions do."""
    only: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Settings that Arrow cannot honour, with the values (in lower case) that ask for nothing special."""

    def knows(self, key: str) -> bool:
        """Whether a setting is rendered."""
        return key in self.honoured or key.startswith(self.honoured_prefixes)

    def is_without_effect(self, key: str) -> bool:
        """Whether a setting changes nothing about what is read and written."""
        return any(key == known or (known[-1] in ".-" and key.startswith(known)) for known in self.without_effect)


def address(location: str) -> Address:
    """The parts of a location that is not local. Raises :class:`UnsupportedLocation`.

    Characters are taken as they are, as Iceberg does; it cuts S3 locations at ``?`` and ``#``, where Arrow would not.
    """
    scheme, separator, rest = location.partition("://")
    authority, _, path = rest.partition("/")
    if not separator or not authority or not path:
        raise UnsupportedLocation(f"{location!r} is not an absolute location")
    if "?" in rest or "#" in rest:
        raise UnsupportedLocation(f"{location!r}: Java and Arrow do not read ? and # in a location alike")
    return Address(scheme.lower(), authority, path)


def honoured(properties: Mapping[str, str], location: str) -> dict[str, str]:
    """Those of a ``FileIO``'s properties that a worker needs for this location, by Java's names.

    Raises :class:`UnsupportedLocation` for a scheme that Arrow does not have and for a setting that it cannot honour.
    """
    kind = _kind(address(location))
    needed: dict[str, str] = {}
    for key, value in properties.items():
        if kind.knows(key):
            needed[key] = value
        elif key in kind.only:
            if value.strip().lower() not in kind.only[key]:
                raise UnsupportedLocation(f"{key} asks for what Arrow cannot do", hint=_HINT)
        elif key.startswith(kind.prefixes) and not kind.is_without_effect(key):
            raise UnsupportedLocation(f"{key} is set, which Arrow cannot honour", hint=_HINT)
    if properties.get("s3.sse.type", "none").strip().lower() == "s3" and "s3.endpoint" in needed:
        raise UnsupportedLocation("s3.sse.type asks for encryption, which only AWS itself does unasked", hint=_HINT)
    return needed


def file_system(properties: Mapping[str, str], location: str) -> tuple[Any, str]:
    """Arrow's file system for a location, and the path in it.

    ``properties`` are those that :func:`honoured` gave. Raises :class:`UnsupportedLocation`, and what Arrow raises
    when it cannot open it (no libhdfs, say).
    """
    where = address(location)
    path = where.path if where.scheme in _HDFS.schemes else f"{_container(where)}/{where.path}"
    return _opened(where.scheme, where.authority, tuple(sorted(properties.items()))), path


@lru_cache(maxsize=_FILE_SYSTEMS_KEPT)
def _opened(scheme: str, authority: str, properties: tuple[tuple[str, str], ...]) -> Any:
    where = Address(scheme, authority, "")
    kind = _kind(where)
    return kind.open(where, kind.arguments(where, dict(properties)))


def _kind(where: Address) -> _Kind:
    for kind in (_S3, _GCS, _ADLS, _HDFS):
        if where.scheme in kind.schemes:
            return kind
    raise UnsupportedLocation(f"Arrow has no file system for {where.scheme}: locations", hint=_HINT)


def _container(where: Address) -> str:
    """Bucket or container; Azure's authority is ``container@account.dfs...``."""
    return where.authority.partition("@")[0]


def arguments(properties: Mapping[str, str], location: str) -> dict[str, Any]:
    """What Arrow's file system is made with."""
    where = address(location)
    return _kind(where).arguments(where, properties)


def _s3_arguments(_where: Address, found: Mapping[str, str]) -> dict[str, Any]:
    made: dict[str, Any] = {"connect_timeout": CONNECT_TIMEOUT_S, "request_timeout": REQUEST_TIMEOUT_S}
    if "s3.access-key-id" in found and "s3.secret-access-key" in found:  # Java wants both, too
        made |= {"access_key": found["s3.access-key-id"], "secret_key": found["s3.secret-access-key"]}
        if "s3.session-token" in found:
            made["session_token"] = found["s3.session-token"]
    region = found.get("client.region") or found.get("s3.region")
    if region:
        made["region"] = region
    if "s3.endpoint" in found:
        made["endpoint_override"] = found["s3.endpoint"]
        # Arrow's default for an endpoint of one's own is path style, Java's is not.
        made["force_virtual_addressing"] = found.get("s3.path-style-access", "").lower() != "true"
    if "http-client.proxy-endpoint" in found:
        made["proxy_options"] = found["http-client.proxy-endpoint"]
    return made


def _gcs_arguments(_where: Address, found: Mapping[str, str]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if "gcs.oauth2.token" in found:
        expires_at_ms = int(found.get("gcs.oauth2.token-expires-at", "0"))
        expiration = dt.datetime.fromtimestamp(expires_at_ms / 1000, dt.UTC)
        made |= {"access_token": found["gcs.oauth2.token"], "credential_token_expiration": expiration}
    elif found.get("gcs.no-auth", "").lower() == "true":
        made["anonymous"] = True
    if "gcs.project-id" in found:
        made["project_id"] = found["gcs.project-id"]
    if "gcs.service.host" in found:
        scheme, _, host = found["gcs.service.host"].rpartition("://")
        made |= {"endpoint_override": host, "scheme": scheme or "https"}
    return made


def _adls_arguments(where: Address, found: Mapping[str, str]) -> dict[str, Any]:
    host = where.authority.rpartition("@")[2]
    account = host.partition(".")[0]
    made: dict[str, Any] = {"account_name": account}
    if found.get("adls.auth.shared-key.account.name") == account:
        made["account_key"] = found.get("adls.auth.shared-key.account.key")
    token = found.get(f"adls.sas-token.{host}") or found.get(f"adls.sas-token.{account}")
    if token is not None:
        made["sas_token"] = token
    return made


_HINT: Final = "such tables are rewritten by Spark's own reader and writer"

_S3: Final = _Kind(
    schemes=frozenset({"s3", "s3a", "s3n"}),
    prefixes=("s3.", "client.", "http-client."),
    honoured=frozenset(
        {
            "s3.endpoint",
            "s3.path-style-access",
            "s3.access-key-id",
            "s3.secret-access-key",
            "s3.session-token",
            "s3.region",
            "client.region",
            "http-client.proxy-endpoint",
        }
    ),
    without_effect=(
        *("s3.acceleration-enabled", "s3.dualstack-enabled", "s3.cross-region-access-enabled"),
        *("s3.use-arn-region-enabled", "s3.checksum-enabled", "s3.chunked-encoding-enabled", "s3.staging-dir"),
        *("s3.preload-client-enabled", "s3.session-token-expires-at-ms", "s3.access-grants.fallback-to-iam"),
        *("s3.analytics-accelerator.", "s3.crt.", "s3.delete-", "s3.delete.", "s3.directory-bucket."),
        *("s3.sse.key", "s3.sse.md5"),  # of no account without a type that asks for them
        *("s3.multipart.", "s3.retry.", "s3.signer.", "client.refresh-credentials-", "client.legacy-"),
        *("http-client.apache.", "http-client.urlconnection.", "http-client.type", "http-client.proxy-use-"),
        # PyIceberg's own, which Java passes over as well.
        *("client.access-key-id", "client.secret-access-key", "client.session-token"),
        *("s3.connect-timeout", "s3.request-timeout", "s3.resolve-region", "s3.force-virtual-addressing"),
    ),
    only={
        "s3.sse.type": frozenset({"none", "s3"}),
        "s3.remote-signing-enabled": frozenset({"false"}),
        "s3.access-grants.enabled": frozenset({"false"}),
        "s3.write.table-tag-enabled": frozenset({"false"}),
        "s3.write.namespace-tag-enabled": frozenset({"false"}),
        "s3.write.storage-class": frozenset({"standard"}),
    },
    arguments=_s3_arguments,
    open=lambda _where, made: fs.S3FileSystem(**made),
)
_GCS: Final = _Kind(
    schemes=frozenset({"gs"}),
    prefixes=("gcs.",),
    honoured=frozenset(
        {"gcs.oauth2.token", "gcs.oauth2.token-expires-at", "gcs.project-id", "gcs.service.host", "gcs.no-auth"}
    ),
    without_effect=(
        *("gcs.channel.", "gcs.delete.", "gcs.analytics-core.", "gcs.client-lib-token"),
        "gcs.oauth2.refresh-credentials-",
    ),
    arguments=_gcs_arguments,
    open=lambda _where, made: fs.GcsFileSystem(**made),
)
_ADLS: Final = _Kind(
    schemes=frozenset({"abfs", "abfss", "wasb", "wasbs"}),
    prefixes=("adls.",),
    honoured=frozenset({"adls.auth.shared-key.account.name", "adls.auth.shared-key.account.key"}),
    honoured_prefixes=("adls.sas-token.",),
    without_effect=("adls.read.", "adls.write.", "adls.sas-token-expires-at-ms.", "adls.refresh-credentials-"),
    arguments=_adls_arguments,
    open=lambda _where, made: fs.AzureFileSystem(**made),
)
_HDFS: Final = _Kind(
    schemes=frozenset({"hdfs", "viewfs"}),
    open=lambda where, _made: fs.HadoopFileSystem.from_uri(f"{where.scheme}://{where.authority}"),
)
