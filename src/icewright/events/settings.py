"""``[events]``: how commit events come in beside HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from icewright.config import values
from icewright.config.layers import Given, Key, dotted
from icewright.config.model import EventsConfig, KafkaConfig
from icewright.config.secrets import resolve
from icewright.config.settings import EVENTS
from icewright.core.errors import InvalidConfiguration
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind

_SECTION: Final = "events"
_PROPERTIES: Final = "properties."
_KAFKA_KEYS: Final = ("brokers", "topic", "group")
_PROPERTIES_ALLOWED: Final = ("security.protocol", "sasl.", "ssl.", "socket.", "client.", "session.timeout.ms")
_PROPERTIES_REFUSED: Final = ("ssl.engine.", "ssl.providers", "sasl.kerberos.kinit.cmd")
"""What would have librdkafka load a library, or run a command."""
_SECRETS: Final = ("password", "secret", "sasl.oauthbearer.config", "ssl.key.pem", "sasl.oauthbearer.assertion.private")


def events_config(given: Mapping[Key, Given], catalogs: Sequence[CatalogEntry]) -> EventsConfig:
    """The section, checked against the catalogs that there are. Raises ``InvalidConfiguration``."""
    found = {setting.key: values.value(given, (_SECTION,), setting) for setting in EVENTS}
    kinds = {entry.name: entry.kind for entry in catalogs}
    for prefix, catalog in found["prefixes"].items():
        if catalog not in kinds:
            known = ", ".join(sorted(kinds)) or "none"
            raise _wrong(given, ("prefixes", prefix), f"there is no catalog {catalog!r}", f"known: {known}")
    for catalog in found["hive"]:
        if kinds.get(catalog) is not CatalogKind.HIVE:
            known = ", ".join(name for name, kind in kinds.items() if kind is CatalogKind.HIVE) or "none"
            raise _wrong(given, ("hive",), f"{catalog!r} is no catalog of type hive", f"those are: {known}")
    check_kafka(given, _SECTION, found["kafka"])
    return EventsConfig(**found)


def kafka_config(
    kafka: Mapping[str, str], environ: Mapping[str, str], section: str = _SECTION, group: str = "icewright"
) -> KafkaConfig | None:
    """The topic to read, with secrets in place for the one moment in which a client is made; None where there is none.

    Raises ``InvalidConfiguration`` for a reference that leads nowhere.
    """
    if not kafka:
        return None
    properties = {
        key.removeprefix(_PROPERTIES): resolve(value, key=f"{section}.kafka.{key}", environ=environ)
        for key, value in kafka.items()
        if key.startswith(_PROPERTIES)
    }
    return KafkaConfig(kafka["brokers"], kafka["topic"], kafka.get("group", group), properties)


def check_kafka(given: Mapping[Key, Given], section: str, kafka: Mapping[str, str]) -> None:
    """Check the topic of a section. Raises ``InvalidConfiguration``."""
    for key, value in kafka.items():
        _check_kafka(given, section, key, value)
    if kafka and not {"brokers", "topic"} <= kafka.keys():
        raise _wrong(given, ("kafka", next(iter(kafka))), "brokers and topic are both needed", "name both", section)


def _check_kafka(given: Mapping[Key, Given], section: str, key: str, value: str) -> None:
    name = key.removeprefix(_PROPERTIES)
    if key == name:
        if key not in _KAFKA_KEYS or not value:
            known = ", ".join((*_KAFKA_KEYS, "properties.<librdkafka's>"))
            raise _wrong(given, ("kafka", key), "unknown, or empty", f"known here: {known}", section)
        return
    if not name.startswith(_PROPERTIES_ALLOWED) or name.startswith(_PROPERTIES_REFUSED):
        allowed = ", ".join(_PROPERTIES_ALLOWED)
        what = "not a property that may be set here"
        raise _wrong(given, ("kafka", key), what, f"those begin with {allowed}", section)
    if any(word in name for word in _SECRETS):
        values.require_reference(given, (section, "kafka", key), value)


def _wrong(given: Mapping[Key, Given], key: Key, what: str, hint: str, section: str = _SECTION) -> InvalidConfiguration:
    whole = (section, *key)
    return InvalidConfiguration(f"{given[whole].origin}: {dotted(whole)}: {what}", hint=hint)
