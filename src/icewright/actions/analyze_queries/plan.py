"""Whether there are queries of a table to analyze, and how many of its rows are sampled. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

from icewright.core import wording
from icewright.core.times import Instant
from icewright.model.actions.analyze_queries import AnalyzeQueries, AnalyzeQueriesPrediction, Measure
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import Policy
from icewright.model.queries.templates import OTHER_TEMPLATES, TemplateWeek
from icewright.plans.standalone_plan import Decided

MEASURING: Final = "measure-recommendation"
"""The code of the reason of a task that measures an accepted recommendation, and analyzes nothing."""
QUERIES_MIN: Final = 20
"""With fewer, no layout has a chance to be tried: half of them choose it, and half of them judge it."""
SAMPLE_ROWS_PER_FILE: Final = 160
"""Twice the 80 that a file must have (docs/recommendations.md), so that a file of average size has them for certain."""
SAMPLE_ROWS_MIN: Final = 20_000
SAMPLE_ROWS_MAX: Final = 2_000_000
AnalysisDecision: TypeAlias = Decided[AnalyzeQueries, AnalyzeQueriesPrediction]


def decide_analysis(
    metadata: TableMetadata,
    policy: Policy,
    *,
    data_files: int,
    data_bytes: int,
    records: int,
    queries: int,
    queries_table: TableName,
    since: Instant,
    measure: Measure | None = None,
) -> AnalysisDecision:
    """What is analyzed; ``queries`` of the table were counted since then.

    With ``measure`` the queries are planned again, however few they are: that they are too few is an answer then.
    """
    snapshot_id = metadata.current_snapshot_id
    if snapshot_id is None or not records:
        return Decided(Reason("no-rows", "nothing to do: the table has no rows yet"))
    if measure is None and queries < QUERIES_MIN:
        counted = wording.count(queries, "query is", "queries are")
        text = f"nothing to do: {counted} known of this table since {wording.instant(since)}, {QUERIES_MIN} are needed"
        return Decided(Reason("too-few-queries", text, {"queries": queries}))
    sample_rows = sample_of(data_files, records)
    action = AnalyzeQueries(snapshot_id, queries_table, since, queries, records, sample_rows, policy.layout, measure)
    prediction = AnalyzeQueriesPrediction(queries, data_files, sample_rows, data_bytes)
    if measure is not None:
        text = f"measure what {measure.recommendation_id} has brought, by queries since {wording.instant(since)}"
        return Decided(Reason(MEASURING, text), action, prediction)
    text = f"analyze {queries:,} queries since {wording.instant(since)} on a sample of {sample_rows:,} rows"
    return Decided(Reason("analyze-queries", text), action, prediction)


@dataclass(frozen=True, slots=True)
class Drift:
    """Queries since the last analysis, and how many of them have templates that it did not see."""

    queries: int
    new: int

    @property
    def share(self) -> float:
        """The share of new ones, 0 where fewer than :data:`QUERIES_MIN` are new: they would not change an analysis."""
        return self.new / self.queries if self.new >= QUERIES_MIN else 0.0


def drift_since(weeks: Iterable[TemplateWeek], analyzed_at: Instant) -> Drift:
    """The drift of a table's queries, by their sums.

    A template was seen if a query of it began before the analysis. Sums are of whole weeks: in the week of the
    analysis, queries before it count too, which lowers the share. Templates that are not told apart count as seen.
    """
    found = list(weeks)
    seen = {week.template for week in found if week.sums.first_at <= analyzed_at} | {OTHER_TEMPLATES}
    since = [week for week in found if week.sums.last_at > analyzed_at]
    new = sum(week.sums.queries for week in since if week.template not in seen)
    return Drift(sum(week.sums.queries for week in since), new)


def sample_of(data_files: int, records: int) -> int:
    """How many rows are sampled."""
    return min(records, max(SAMPLE_ROWS_MIN, min(SAMPLE_ROWS_MAX, data_files * SAMPLE_ROWS_PER_FILE)))
