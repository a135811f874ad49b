"""Whose place is whose: tables that share a location, or one table under two names.

Whatever cleans up below the location of one table takes the files of every other one there for garbage. That has
destroyed tables by the hundred, and every tool that removes orphan files can do it, whoever runs it. So it is said
before anything is deleted by anyone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from icewright.domain.errors import InvalidLocation
from icewright.domain.locations import Aliases
from icewright.domain.names import TableName
from icewright.domain.plans import Reason
from icewright.domain.tables import TableMetadata
from icewright.planning import wording

_PATH_KEYS: Final = (
    "write.data.path",
    "write.metadata.path",
    "write.object-storage.path",
    "write.folder-storage.path",
)
_NAMED_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class Claim:
    """The places of one table: canonical, each with one slash at its end. ``uuid`` is None where it has none."""

    name: TableName
    uuid: str | None
    roots: tuple[str, ...]


def claim(metadata: TableMetadata, aliases: Aliases) -> Claim:
    """What a table lays claim to: its location, and where its properties send new files.

    A place that no location names is claimed by nobody.
    """
    places = (metadata.location, *(metadata.properties[key] for key in _PATH_KEYS if key in metadata.properties))
    roots = {root for place in places if (root := _root(place, aliases)) is not None}
    return Claim(metadata.name, metadata.table_id.uuid if metadata.has_uuid else None, tuple(sorted(roots)))


def contested(claims: Sequence[Claim]) -> Mapping[TableName, tuple[Reason, ...]]:
    """What is wrong with the places of tables, for those of which something is."""
    found: dict[TableName, list[Reason]] = {}
    for name, others in _overlaps(claims).items():
        text = f"its location overlaps that of {_words(others)}: who removes orphan files of one deletes the other's"
        found.setdefault(name, []).append(Reason("shared-location", text))
    for name, others in _same_uuids(claims).items():
        text = f"it is also known as {_words(others)}: who expires snapshots under one name breaks the other"
        found.setdefault(name, []).append(Reason("shared-uuid", text))
    return {name: tuple(reasons) for name, reasons in found.items()}


def _root(place: str, aliases: Aliases) -> str | None:
    try:
        return aliases.canonical(place).rstrip("/") + "/"
    except InvalidLocation:
        return None


def _overlaps(claims: Iterable[Claim]) -> Mapping[TableName, frozenset[TableName]]:
    """Other tables with a place at, above or below one of a table's own.

    In order, all places below a place follow it at once: a slash at the end keeps ``t_2/`` from being below ``t/``.
    """
    owners: dict[str, set[TableName]] = {}
    for one in claims:
        for root in one.roots:
            owners.setdefault(root, set()).add(one.name)
    found: dict[TableName, set[TableName]] = {}
    above: list[str] = []
    for root in sorted(owners):
        while above and not root.startswith(above[-1]):
            above.pop()
        _join(found, owners[root], owners[root])
        for place in above[-_NAMED_MAX - 1 :]:  # each place is told of those next to it, however many lie in a row
            _join(found, owners[place], owners[root])
            _join(found, owners[root], owners[place])
        above.append(root)
    return {name: frozenset(others) for name, others in found.items()}


def _same_uuids(claims: Iterable[Claim]) -> Mapping[TableName, frozenset[TableName]]:
    by_uuid: dict[str, set[TableName]] = {}
    for one in claims:
        if one.uuid is not None:
            by_uuid.setdefault(one.uuid, set()).add(one.name)
    found: dict[TableName, set[TableName]] = {}
    for names in by_uuid.values():
        _join(found, names, names)
    return {name: frozenset(others) for name, others in found.items()}


def _join(found: dict[TableName, set[TableName]], names: set[TableName], others: set[TableName]) -> None:
    """Note some of the others for each name: as many as are worth telling, however many share a place."""
    some = sorted(others)[: _NAMED_MAX + 2]
    for name in names:
        if further := set(some) - {name}:
            known = found.setdefault(name, set())
            if len(known) <= _NAMED_MAX:
                known.update(further)


def _words(names: frozenset[TableName]) -> str:
    """``lake.db.t, lake.db.u and others``."""
    told = ", ".join(wording.cut(str(name)) for name in sorted(names)[:_NAMED_MAX])
    return told if len(names) <= _NAMED_MAX else f"{told} and others"
