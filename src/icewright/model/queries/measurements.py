"""What an accepted recommendation has brought: what an optimizer read, what was concluded, and the rows behind it.

Each query is a row with what bounds of files leave of the table before and after, so that a reader who doubts a figure
can compute it again. Nothing here is predicted: what was expected stands beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.iceberg.names import TableId
from icewright.model.queries.recommendations import Interval, JudgedQuery

MEASURED_QUERIES_MAX: Final = 1_000
"""Queries of a measurement; of more, those of the smallest keys, which are digests: a sample by chance."""


@dataclass(frozen=True, slots=True)
class MeasuredQuery:
    """Queries with the same filters, which ran ``weight`` times; files and bytes are of one run.

    What they would have read ``before`` is None where that snapshot has expired.
    """

    key: str
    weight: int
    files: int
    bytes: int
    files_before: int | None = None
    bytes_before: int | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """What an optimizer reads to measure a recommendation: queries planned against two snapshots of the table.

    ``later`` ran after the layout was carried out, ``judged`` are those by which it was recommended. ``table_before``
    is None where the snapshot of before has expired; ``unusable`` counts queries by the reason why they say nothing.
    """

    recommendation_id: str
    snapshot_id: int
    table: FileSums
    table_before: FileSums | None
    later: tuple[MeasuredQuery, ...] = ()
    judged: tuple[MeasuredQuery, ...] = ()
    unusable: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FileSums:
    """The data files of a snapshot that have rows."""

    files: int
    bytes: int


class Effect(StrEnum):
    """What a change has done to queries."""

    BETTER = "better"
    AS_BEFORE = "as-before"
    """Not certainly better, and certainly no more than 5 % worse."""
    WORSE = "worse"
    """Certainly more than 5 % worse."""
    UNKNOWN = "unknown"
    """The figures do not say; the reason says what is missing."""


@dataclass(frozen=True, slots=True)
class PlannedReads:
    """Queries planned by the bounds of files, before and after. Means are of one query.

    ``change`` is what is read more, as a share of what was read before (-0.9: a tenth is left), with its 95 % interval,
    None where it is unknown. ``change_of_share`` is the same of the share of the table, for one that has grown or
    shrunk meanwhile. ``rows`` are those that all of it is computed from.
    """

    effect: Effect
    reason: Reason
    are_later: bool
    queries: int
    files_before: float
    files: float
    bytes_before: float
    bytes: float
    table_before: FileSums | None
    table: FileSums
    change: Interval | None
    change_of_share: Interval | None
    rows: tuple[MeasuredQuery, ...]


@dataclass(frozen=True, slots=True)
class WeekOfReads:
    """What one query read in a week, against what the same templates read before the acceptance.

    ``log_ratio`` is of the table, ``log_ratio_of_others`` the mean of ``others`` similar tables in the same week; 0 is
    as before. ``bytes_read`` and ``bytes_expected`` are of all ``queries`` of the week.
    """

    week_at: Instant
    is_after: bool
    queries: int
    bytes_read: int
    bytes_expected: float
    log_ratio: float
    others: int
    log_ratio_of_others: float


@dataclass(frozen=True, slots=True)
class ScannedReads:
    """What engines said they read, week by week, against similar tables that were left alone.

    ``change`` is that of the table beyond that of the others, as a share. ``others`` is how many they are: who may read
    this table need not know of them.
    """

    effect: Effect
    reason: Reason
    change: Interval | None
    weeks: tuple[WeekOfReads, ...] = ()
    others: int = 0


@dataclass(frozen=True, slots=True)
class Measurement:
    """What an accepted recommendation has brought so far. ``predicted`` is the change that was expected, as a share."""

    recommendation_id: str
    table_id: TableId
    task_id: str
    made_at: Instant
    accepted_at: Instant
    carried_out_at: Instant
    effect: Effect
    reason: Reason
    predicted: Interval | None
    planned: PlannedReads
    scanned: ScannedReads


def judged_of(queries: Mapping[str, JudgedQuery], measured: MeasuredQuery) -> MeasuredQuery:
    """A query with what was kept of it from before, where nothing else says it."""
    kept = queries.get(measured.key)
    if measured.files_before is not None or kept is None:
        return measured
    return MeasuredQuery(measured.key, measured.weight, measured.files, measured.bytes, kept.files, kept.bytes)
