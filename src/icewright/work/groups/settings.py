"""``[groups.NAME]``: the resource groups of the configuration file. Policies that are applied stand over them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from icewright.core.errors import InvalidConfiguration, InvalidResourceGroup
from icewright.model.policy.resource_groups import ResourceGroup
from icewright.policy.groups.text import Written, group_of


def groups_config(data: Mapping[str, Any], origin: str) -> tuple[ResourceGroup, ...]:
    """The groups of the file, by name. Raises :class:`~icewright.core.errors.InvalidConfiguration`."""
    tables = data.get("groups", {})
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise InvalidConfiguration(f"{origin}: groups: expected a table for each", hint="write [groups.NAME]")
    try:
        found = [group_of(name, _table(table)) for name, table in tables.items()]
    except InvalidResourceGroup as error:
        raise InvalidResourceGroup(f"{origin}: {error.message}", hint=error.hint) from error
    return tuple(sorted(found, key=lambda group: group.name))


def _table(table: Mapping[str, Any]) -> Mapping[str, Written]:
    return {key: _written(below) for key, below in table.items()}


def _written(value: Any) -> Written:
    if isinstance(value, dict):
        return _table(value)
    if isinstance(value, list):
        return [_written(below) for below in value]
    return str(value).lower() if isinstance(value, bool) else str(value)
