"""Which names have places at, above or below each other's: a prefix tree, as a sorted list and a stack.

In order, all places below a place follow it at once, since each ends with a slash. One pass over 100,000 tables then
tells all, however many share a place or lie in a row; of others to be named, only as many are kept as are told.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

from icewright.model.iceberg.names import TableName

K = TypeVar("K")

NEIGHBOURS_MAX: Final = 4
"""Others that are told of at most: one more than are named, so that it can be said that there are more."""
NEAREST: Final = 12
"""Places above a place that are looked at: more than one table alone can have in a row, five and what they may mean."""

_Owners = Mapping[str, set[TableName]]
_Found = dict[TableName, set[TableName]]


def overlaps(owners: _Owners) -> Mapping[TableName, frozenset[TableName]]:
    """Other tables with a place at, above or below one of a table's own: some of them, for each that has any."""
    found: _Found = {}
    above: list[str] = []
    for place in sorted(owners):
        while above and not place.startswith(above[-1]):
            above.pop()
        _join(found, owners[place], owners[place])
        for outer in above[-NEAREST:]:  # each place is told of those next to it, however many lie in a row
            _join(found, owners[outer], owners[place])
            _join(found, owners[place], owners[outer])
        above.append(place)
    return _frozen(found)


def borrowers(owners: _Owners, reached: _Owners) -> Mapping[TableName, frozenset[TableName]]:
    """Other tables with files at, above or below a place of a table's own, by where these are known to reach.

    Of tables whose own places overlap, some may be left out.
    """
    found: _Found = {}
    above: list[str] = []
    lenders: list[set[TableName]] = []
    """Who owns the nearest place at or above each of ``above``."""
    guests: list[frozenset[TableName]] = []
    """Two of those, where there are as many, who reach a place at or above each of ``above``."""
    for place in sorted({*owners, *reached}):
        while above and not place.startswith(above[-1]):
            above.pop(), lenders.pop(), guests.pop()
        owning = owners.get(place) or (lenders[-1] if lenders else set())
        reaching = reached.get(place, set())
        _join(found, owning, reaching)
        if place in owners and guests:
            _join(found, owners[place], guests[-1])
        above.append(place)
        lenders.append(owning)
        guests.append(frozenset(some({*reaching, *(guests[-1] if guests else ())}, 2)))
    return _frozen(found)


def same(named: Iterable[tuple[K, TableName]]) -> Mapping[TableName, frozenset[TableName]]:
    """Others with the same key: some of them, for each name that has any."""
    by_key: dict[K, set[TableName]] = {}
    for key, name in named:
        by_key.setdefault(key, set()).add(name)
    found: _Found = {}
    for names in by_key.values():
        _join(found, names, names)
    return _frozen(found)


def some(names: Iterable[TableName], most: int) -> list[TableName]:
    """The first few of them, in order."""
    return heapq.nsmallest(most, names)


def _join(found: _Found, names: Iterable[TableName], others: set[TableName] | frozenset[TableName]) -> None:
    """Note some of the others for each name: as many as are worth telling, however many share a place."""
    few = some(others, NEIGHBOURS_MAX + 1)
    for name in names:
        if further := [other for other in few if other != name]:
            known = found.setdefault(name, set())
            if len(known) < NEIGHBOURS_MAX:
                known.update(further)


def _frozen(found: _Found) -> Mapping[TableName, frozenset[TableName]]:
    return {name: frozenset(others) for name, others in found.items()}
