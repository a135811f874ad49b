"""When icewright first saw snapshots, told by a handful of marks however many there are.

Clocks of writers are not to be trusted where age decides: a snapshot may say that it is of 1970. Sequence numbers only
grow (spec, "Sequence Numbers"). So a note now and then of the highest one tells of every snapshot by when it was there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from icewright.core.times import Instant
from icewright.model.iceberg.tables import TableMetadata

MARK_GAP_MS: Final = 3_600_000
"""Marks of the latest day are so far apart."""
GAPS_AN_AGE: Final = 24
"""Older marks are a 24th of their age apart: some 170 of them reach back a year."""


@dataclass(frozen=True, slots=True)
class Mark:
    """All snapshots with at most this sequence number were there at ``at``, by our own clock."""

    at: Instant
    sequence_number: int


def marked(marks: Sequence[Mark], metadata: TableMetadata, now: Instant) -> tuple[Mark, ...]:
    """The marks, oldest first, with what is seen now; unchanged where the latest is of less than the gap ago.

    What a clock that was set back has noted as later than now is forgotten, and what tells of no snapshot that is left.
    So is a mark above all numbers: of a table that was put back to an older state, whose numbers are given out again.
    A table of format version 1 numbers nothing, and has none.
    """
    numbers = [snapshot.sequence_number for snapshot in metadata.snapshots]
    least, most = min(numbers, default=0), max(numbers, default=0)
    past = [mark for mark in marks if mark.at <= now and least <= mark.sequence_number <= most]
    if not most or (past and now - past[-1].at < MARK_GAP_MS):
        return tuple(past)
    return (*thinned(past, now), Mark(now, most))


class Dated(Protocol):
    """What was seen at one time."""

    @property
    def at(self) -> Instant:
        """When."""
        ...


D = TypeVar("D", bound=Dated)


def thinned(marks: Sequence[D], now: Instant) -> list[D]:
    """Marks as far apart as their age asks for. The oldest stays: it tells of all that was there before."""
    kept: list[D] = []
    for mark in marks:
        if not kept or mark.at - kept[-1].at >= max(MARK_GAP_MS, (now - mark.at) // GAPS_AN_AGE):
            kept.append(mark)
    return kept


def first_seen(marks: Sequence[Mark], metadata: TableMetadata) -> Mapping[int, Instant]:
    """By when each snapshot was there: never too early, and late by at most the gap to the mark before.

    A snapshot that no mark tells of is left out.
    """
    found: dict[int, Instant] = {}
    for snapshot in metadata.snapshots:
        at = next((mark.at for mark in marks if 0 < snapshot.sequence_number <= mark.sequence_number), None)
        if at is not None:
            found[snapshot.snapshot_id] = at
    return found
