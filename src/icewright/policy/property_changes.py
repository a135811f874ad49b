"""What an owner wants to change of a table's own properties, checked before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches

from icewright.core import wording
from icewright.core.errors import InvalidConfiguration
from icewright.model.iceberg.predicates.cuts import parse_cuts
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import PREFIX
from icewright.plans.layouts import resolve_expression
from icewright.policy.effective import with_cuts
from icewright.policy.layout_text import parse_layout
from icewright.policy.settings import BY_KEY, LAYOUT_CUTS_KEY, LAYOUT_KEY, value_problem

_KEY_LENGTH_MAX = 100
_KNOWN = "`icewright policy show` lists all settings"


def setting_key(text: str) -> str:
    """The property that a person means, with or without ``icewright.``. Raises ``InvalidConfiguration``."""
    for key in (text, PREFIX + text):
        if key in BY_KEY:
            return key
    names = {name: key for key in BY_KEY for name in (key, key.removeprefix(PREFIX))}
    close = get_close_matches(text, names, n=1) if len(text) <= _KEY_LENGTH_MAX else []
    hint = f"perhaps {names[close[0]]} is meant" if close else _KNOWN
    raise InvalidConfiguration(f"there is no setting {wording.quoted(text)}", hint=hint)


def settings_to_set(pairs: Iterable[str]) -> dict[str, str | None]:
    """``layout=sort(ts)`` and the like as changes by property. Raises ``InvalidConfiguration``."""
    changes: dict[str, str | None] = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign:
            raise InvalidConfiguration(f"{wording.quoted(pair)} sets nothing", hint="write key=value: mode=auto")
        key = setting_key(name.strip())
        if key in changes:
            raise InvalidConfiguration(f"{key} is set twice")
        changes[key] = value
    return changes


def settings_to_unset(table: TableMetadata, names: Sequence[str]) -> dict[str, str | None]:
    """Settings to be removed; also what is no setting, but says so on the table: typing errors have to go as well."""
    changes: dict[str, str | None] = {}
    for name in names:
        own = next((key for key in (name, PREFIX + name) if key.startswith(PREFIX) and key in table.properties), None)
        changes[own or setting_key(name)] = None
    return changes


def differing(table: TableMetadata, changes: Mapping[str, str | None]) -> dict[str, str | None]:
    """The changes without those that are so already."""
    return {key: value for key, value in changes.items() if table.properties.get(key) != value}


def with_changes(table: TableMetadata, changes: Mapping[str, str | None]) -> TableMetadata:
    """The table as it would be. Raises ``InvalidConfiguration`` for a value that it could not use."""
    for key, value in changes.items():
        if value is not None:
            _check(key, value)
    properties = {key: value for key, value in {**table.properties, **changes}.items() if value is not None}
    changed = replace(table, properties=properties)
    layout = changes.get(LAYOUT_KEY)
    if layout is not None:
        _check_layout(changed, layout)
    return changed


def _check(key: str, value: str) -> None:
    problem = value_problem(BY_KEY[key], value)
    if problem is not None:
        raise InvalidConfiguration(f"{key}: {problem}")


def _check_layout(table: TableMetadata, value: str) -> None:
    """Whether the table as it would be can have the layout: with the tree that its cuts would be by."""
    cuts = table.properties.get(LAYOUT_CUTS_KEY)
    tree = None if cuts is None or value_problem(BY_KEY[LAYOUT_CUTS_KEY], cuts) is not None else parse_cuts(cuts)
    wanted = with_cuts(parse_layout(value), tree)
    found = None if wanted is None or wanted.is_none else resolve_expression(table, wanted)
    if isinstance(found, Reason):
        raise InvalidConfiguration(f"{LAYOUT_KEY}: {found.text}", hint="`icewright table show` lists the columns")
