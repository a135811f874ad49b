"""What somebody is shown of a table's place who may not read all tables: every finding, no names of what is not theirs.

Findings and gaps are about other tables too, of other namespaces and catalogs. That something is wrong concerns the
owner of the table; how the others are called does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from icewright.core.completeness import Gap, Known, Partial
from icewright.core.errors import InvalidName
from icewright.core.reasons import Reason
from icewright.model.access.permissions import Scope
from icewright.model.access.redacted_text import OTHER_TABLE
from icewright.model.iceberg.names import TableName
from icewright.ownership.model import Place
from icewright.ownership.ownership import Ownership

OTHER_CATALOG: Final = "another catalog"
_WITHHELD: Final = "why is shown to those who may read all of it"


def place_shown(owned: Ownership, name: TableName, may_read: Callable[[Scope], bool]) -> Known[Place]:
    """What :meth:`Ownership.place` says, in words for somebody who may read these scopes."""
    known = owned.place(name)
    if may_read(Scope()):
        return known

    def is_seen(other: TableName) -> bool:
        return may_read(Scope.of(other))

    beside = tuple(one.reason(is_seen) for one in owned.beside.get(name, ()))
    if not isinstance(known, Partial):
        return replace(known, value=_reworded(known.value, beside))
    gaps = tuple(_gap(one, owned, name, may_read) for one in known.gaps)
    return Partial(_reworded(known.found, beside), gaps, known.gaps_count)


def _reworded(place: Place, beside: tuple[Reason, ...]) -> Place:
    """The place with its findings about others, which come last, in these words."""
    by_itself = place.findings[: len(place.findings) - len(beside)]
    return replace(place, findings=(*by_itself, *beside))


def _gap(gap: Gap, owned: Ownership, name: TableName, may_read: Callable[[Scope], bool]) -> Gap:
    reason = Reason(gap.reason.code, _WITHHELD)
    if gap.what in owned.missing:  # a whole catalog
        if may_read(Scope(gap.what)):
            return gap
        return Gap(gap.what if gap.what == name.catalog else OTHER_CATALOG, reason)
    try:
        return gap if may_read(Scope.of(TableName.parse(gap.what))) else Gap(OTHER_TABLE, reason)
    except InvalidName:
        return Gap(OTHER_TABLE, reason)
