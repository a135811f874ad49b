"""Whether there are queries of a table to analyze, and how many of its rows are sampled. Pure."""

from __future__ import annotations

from typing import Final

from icewright.core import wording
from icewright.core.times import Instant
from icewright.model.actions.analyze_queries import AnalyzeQueries, AnalyzeQueriesPrediction, Measure
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import Policy
from icewright.plans.standalone_plan import Decided

QUERIES_MIN: Final = 20
"""With fewer, no layout has a chance to be tried: half of them choose it, and half of them judge it."""
SAMPLE_ROWS_PER_FILE: Final = 160
"""Twice the 80 that a file must have (docs/recommendations.md), so that a file of average size has them for certain."""
SAMPLE_ROWS_MIN: Final = 20_000
SAMPLE_ROWS_MAX: Final = 2_000_000


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
) -> Decided:
    """What is analyzed; ``queries`` of the table were counted since then.

    With ``measure`` the queries are planned again, however few they are: that they are too few is an answer then.
    """
    snapshot_id = metadata.current_snapshot_id
    if snapshot_id is None or not records:
        return Decided(None, Reason("no-rows", "nothing to do: the table has no rows yet"), None)
    if measure is None and queries < QUERIES_MIN:
        counted = wording.count(queries, "query is", "queries are")
        text = f"nothing to do: {counted} known of this table since {wording.instant(since)}, {QUERIES_MIN} are needed"
        return Decided(None, Reason("too-few-queries", text, {"queries": queries}), None)
    sample_rows = sample_of(data_files, records)
    action = AnalyzeQueries(snapshot_id, queries_table, since, queries, records, sample_rows, policy.layout, measure)
    prediction = AnalyzeQueriesPrediction(queries, data_files, sample_rows, data_bytes)
    if measure is not None:
        text = f"measure what {measure.recommendation_id} has brought, by queries since {wording.instant(since)}"
        return Decided(action, Reason("measure-recommendation", text), prediction)
    text = f"analyze {queries:,} queries since {wording.instant(since)} on a sample of {sample_rows:,} rows"
    return Decided(action, Reason("analyze-queries", text), prediction)


def sample_of(data_files: int, records: int) -> int:
    """How many rows are sampled."""
    return min(records, max(SAMPLE_ROWS_MIN, min(SAMPLE_ROWS_MAX, data_files * SAMPLE_ROWS_PER_FILE)))
