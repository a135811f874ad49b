"""What the servers of a store must have alike in their configurations, as digests by which they are compared.

All that is here decides what happens to a table, or to a person, whichever server is at it. What may differ between
machines is :data:`OWN`. No secret goes into a digest, nor the place where one is kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Final

from icewright import __version__
from icewright.config.model import Config
from icewright.config.secrets import MASK, is_reference, redact
from icewright.core.servers import SaidConfiguration
from icewright.model.access.redacted_text import names_a_secret
from icewright.model.iceberg.catalog_entries import CatalogEntry

SECTIONS_ALIKE: Final = (
    "server",
    "cluster",
    "autotune",
    "platform",
    "events",
    "notifications",
    "receivers",
    "oidc",
    "history",
    "queries",
    "groups",
)
"""The sections that are compared, beside ``catalogs`` and ``policies``. ``optimizer`` is that of other processes."""
OWN: Final[Mapping[str, frozenset[str]]] = {
    "server": frozenset(
        (
            "host",
            "port",
            "state_dir",
            "store_url",
            "store_password",
            "metrics_tables",
            "token",
            "allowed_hosts",
            "public_url",
            "tls_certificate",
            "tls_key",
            "trusted_proxies",
            "peer_url",
            "connections_max",
            "processes",
            "parallel_looks",
        )
    ),
    "cluster": frozenset(("zookeeper_ca", "zookeeper_certificate", "zookeeper_key")),
    "notifications": frozenset(("proxy", "ca_file", "networks")),
    "queries": frozenset(("event_logs", "spool_bytes")),
}
"""What of these sections is a server's own: addresses, files and limits of its machine. The networks are read from
what is compared."""


def said_configuration(config: Config) -> SaidConfiguration:
    """What a server tells the others of its configuration."""
    parts = {"catalogs": _in_order(config.catalogs), "policies": _in_order(config.rules)}
    for section in SECTIONS_ALIKE:
        part = getattr(config, section)
        parts[section] = _in_order(part) if isinstance(part, tuple) else _plain(section, part, OWN.get(section))
    return SaidConfiguration(
        __version__,
        {section: _digest(part) for section, part in parts.items()},
        {entry.name: place_digest(entry) for entry in config.catalogs},
    )


def place_digest(entry: CatalogEntry) -> str:
    """Which catalog an entry leads to, without who asks it."""
    return _digest([entry.kind.value, _plain("uri", entry.uri), _plain("warehouse", entry.warehouse)])


def _in_order(found: tuple[Any, ...]) -> list[Any]:
    return sorted((_plain("", one) for one in found), key=json.dumps)


def _plain(key: str, value: Any, own: frozenset[str] | None = None) -> Any:
    """``value`` as JSON without secrets, and without what is a server's ``own``."""
    if is_dataclass(value):
        kept = [one.name for one in fields(value) if one.name not in (own or ())]
        return {name: _plain(name, getattr(value, name)) for name in kept}
    if isinstance(value, Mapping):
        return {str(name): _plain(str(name), one) for name, one in sorted(value.items())}
    if isinstance(value, tuple | list):
        return [_plain(key, one) for one in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str):
        return MASK if is_reference(value) or names_a_secret(key) else redact(key, value)
    if value is None or isinstance(value, int | float):
        return value
    raise TypeError(f"{key}: a {type(value).__name__} cannot be compared")


def _digest(part: Any) -> str:
    return hashlib.sha256(json.dumps(part, sort_keys=True).encode()).hexdigest()[:32]
