"""Checks given values against their settings, and says what is wrong with one in one sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from icewright.config.layers import Given, Key, dotted
from icewright.config.secrets import is_reference, redact
from icewright.config.setting import Kind, Setting
from icewright.core.errors import InvalidConfiguration, Rejected
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName


def value(given: Mapping[Key, Given], head: Key, setting: Setting) -> Any:
    """The setting's value under ``head``, or its default. Raises ``InvalidConfiguration``."""
    key = (*head, setting.key)
    if setting.kind is Kind.MAPPING:
        return {name[-1]: item.value for name, item in given.items() if name[:-1] == key}
    if key not in given:
        if setting.required:
            raise InvalidConfiguration(f"{_origin_of(given, head)}: {dotted(key)} is missing", hint=_hint(setting))
        return setting.default
    found = given[key]
    if not _is_kind(found.value, setting.kind):
        raise InvalidConfiguration(
            f"{found.origin}: {dotted(key)}: expected {setting.kind}, found {found.value!r}", hint=_hint(setting)
        )
    if not setting.accepts(found.value):
        shown = redact(setting.key, str(found.value))
        raise InvalidConfiguration(
            f"{found.origin}: {dotted(key)}: {shown!r} is not allowed", hint=f"allowed: {setting.allowed}"
        )
    return tuple(found.value) if setting.kind is Kind.TEXTS else found.value


def check_own_table(
    given: Mapping[Key, Given],
    section: str,
    catalog: str | None,
    name: Callable[[], TableName | None],
    entries: Sequence[CatalogEntry],
    example: str,
) -> None:
    """Raise ``InvalidConfiguration`` for a ``catalog`` that is not configured, and for what is no ``name`` of a table.

    The section has both as its settings ``catalog`` and ``table``.
    """
    if catalog is None:
        return
    if catalog not in {entry.name for entry in entries}:
        raise InvalidConfiguration(
            f"{given[section, 'catalog'].origin}: {section}.catalog: there is no catalog {catalog!r}",
            hint=f"known: {', '.join(entry.name for entry in entries) or 'none'}",
        )
    try:
        name()
    except Rejected as error:
        raise InvalidConfiguration(
            f"{given[section, 'table'].origin}: {section}.table: {error.message}", hint=f'such as "{example}"'
        ) from error


def require_reference(given: Mapping[Key, Given], key: Key, value: str | None, what: str = "secret") -> None:
    """Raise :class:`InvalidConfiguration` where a secret is given as it is, not as a reference; ``what`` names it."""
    if value is not None and not is_reference(value):
        raise InvalidConfiguration(
            f"{given[key].origin}: {dotted(key)}: the {what} itself does not belong here",
            hint="write env:NAME or file:/path",
        )


def _is_kind(found: Any, kind: Kind) -> bool:
    if kind is Kind.TEXT:
        return isinstance(found, str) and found != ""
    if kind is Kind.INTEGER:
        return isinstance(found, int) and not isinstance(found, bool)
    return isinstance(found, list) and all(isinstance(item, str) for item in found)


def _hint(setting: Setting) -> str:
    return f"allowed: {setting.allowed}" if setting.allowed else setting.about


def _origin_of(given: Mapping[Key, Given], head: Key) -> str:
    return next((item.origin for key, item in given.items() if key[: len(head)] == head), "configuration")
