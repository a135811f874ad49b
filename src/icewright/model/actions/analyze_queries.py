"""Analyzing the queries of a table: the action, what lists show of it, and what it would take.

It reads rows, the list of files and the query log, and changes nothing: what it finds is a recommendation
(:mod:`icewright.model.queries.recommendations`), which its report carries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from icewright.core.times import Instant
from icewright.model.actions.traits import ActionTraits, TableSlot
from icewright.model.iceberg.layouts import LayoutExpression
from icewright.model.iceberg.names import TableName

WEEKS_MAX: Final = 52


@dataclass(frozen=True, slots=True)
class AnalyzeQueriesFigures:
    """What lists show of the action."""

    kind: ClassVar[Literal["analyze_queries"]] = "analyze_queries"
    base_snapshot_id: int
    queries: int


@dataclass(frozen=True, slots=True)
class Measure:
    """Which recommendation is measured, instead of making one: queries are planned against two snapshots.

    Those that began at ``later_than`` or after it count as later ones, those from ``judged_since`` to ``judged_until``
    are those by which it was recommended. ``before_snapshot_id`` may have expired.
    """

    recommendation_id: str
    before_snapshot_id: int
    judged_since: Instant
    judged_until: Instant
    later_than: Instant


@dataclass(frozen=True, slots=True)
class AnalyzeQueries:
    """Try layouts on the queries that ``queries_table`` has of the table since ``since``.

    Rows are read of the snapshot ``base_snapshot_id``, about ``sample_rows`` of its ``records``. ``queries`` were
    counted as it was planned. ``current`` is the layout that the table is to have now, None without one. With
    ``measure`` no layout is tried, and no row read.
    """

    kind: ClassVar[Literal["analyze_queries"]] = "analyze_queries"
    base_snapshot_id: int
    queries_table: TableName
    since: Instant
    queries: int
    records: int
    sample_rows: int
    current: LayoutExpression | None = None
    measure: Measure | None = None

    @property
    def figures(self) -> AnalyzeQueriesFigures:
        """The action for lists."""
        return AnalyzeQueriesFigures(self.base_snapshot_id, self.queries)


@dataclass(frozen=True, slots=True)
class AnalyzeQueriesPrediction:
    """What carrying out the action would take.

    ``read_bytes`` is what the table has: a sample of rows reads the columns that queries filter by in all files.
    ``call`` is empty: no procedure of Iceberg's does the like.
    """

    kind: ClassVar[Literal["analyze_queries"]] = "analyze_queries"
    queries: int
    data_files: int
    sample_rows: int
    read_bytes: int
    call: str = ""


@dataclass(frozen=True, slots=True)
class AnalyzeQueriesRequest:
    """Analyze the queries of a table of the last ``weeks``, this one and those before it.

    ``measure`` is an accepted recommendation that is to be measured, instead of making a new one.
    """

    kind: ClassVar[Literal["analyze_queries"]] = "analyze_queries"
    weeks: int = 8
    measure: Measure | None = None


TRAITS: Final = ActionTraits(
    AnalyzeQueries,
    AnalyzeQueriesFigures,
    AnalyzeQueriesPrediction,
    names=lambda _action: 1,
    in_mode_observe=True,
    asked=AnalyzeQueriesRequest,
    slot=TableSlot.METADATA,
    protocol_version=3,  # layouts by cuts, and measuring; settings of the file format
    settings=frozenset({"layout", "layout_cuts"}),
)
