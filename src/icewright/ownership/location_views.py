"""What is shown of a table's place: what it alone owns, or why nothing may be deleted there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from icewright.core.completeness import Gap, Known, Partial
from icewright.core.reasons import Reason
from icewright.ownership.model import Missing, Place

UNKNOWN_SHOWN: Final = 10
_OTHERS: Final = "all other tables"


@dataclass(frozen=True, slots=True)
class PlaceView:
    """The roots that a table alone owns. ``findings`` are why it owns none.

    ``unknown`` are the first of ``unknown_count`` whose places are not known, for which reason nothing may be deleted
    either. ``not_ours`` are places with files of the table where nothing is deleted in any case.
    """

    roots: tuple[str, ...]
    findings: tuple[Reason, ...]
    not_ours: tuple[str, ...]
    unknown: tuple[Gap, ...]
    unknown_count: int


def place_view(known: Known[Place]) -> PlaceView:
    """The place as it is known."""
    match known:
        case Partial(found, gaps, count):
            return PlaceView(found.roots, found.findings, found.not_ours, gaps[:UNKNOWN_SHOWN], count)
        case _:
            found = known.value
            return PlaceView(found.roots, found.findings, found.not_ours, (), 0)


def others_not_looked_at() -> Missing:
    """What there is to say of all tables but one, where that one alone was looked at."""
    return Missing("", _OTHERS, Reason("not-looked-at", "`icewright scan` looks at all tables"))
