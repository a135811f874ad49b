"""Analyzing the queries of a table as the server knows it: planned from what was counted, verified by the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from icewright.actions.analyze_queries.check import analysis_violations
from icewright.actions.analyze_queries.plan import decide_analysis
from icewright.core.errors import InvalidMessage, NotAllowed
from icewright.core.times import Instant
from icewright.model.actions.analyze_queries import (
    WEEKS_MAX,
    AnalyzeQueries,
    AnalyzeQueriesPrediction,
    AnalyzeQueriesRequest,
)
from icewright.model.actions.expire_snapshots import Hold
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.observation import Observation
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import Policy
from icewright.plans.action_types import ActionRules, Planned, Planning, RequestedPlan
from icewright.plans.repository import keep_plan
from icewright.plans.standalone_plan import build_standalone_plan

_WEEK_MS: Final = 7 * 24 * 3_600_000


def plan_asked(
    planner: Planning, observation: Observation, asked: AnalyzeQueriesRequest, _holds: Sequence[Hold]
) -> Planned:
    """The plan that a person asks for, checked and kept.

    Raises :class:`NotAllowed` where the server keeps no table of queries, ``InvalidMessage`` and ``PlanRejected``.
    """
    history = planner.queries
    queries_table = None if history is None else history.table
    if history is None or queries_table is None:
        raise NotAllowed(
            "the queries of engines are kept in no table", hint="set queries.catalog in the server's configuration"
        )
    if not 1 <= asked.weeks <= WEEKS_MAX:
        raise InvalidMessage(f"{asked.weeks} weeks", hint=f"1 to {WEEKS_MAX}")
    metadata, policy, now = observation.metadata, planner.policy(observation.metadata), planner.clock.now()
    since, measure = now - asked.weeks * _WEEK_MS, asked.measure
    if measure is not None:
        since = min(measure.judged_since, measure.later_than)
    counts = [partition.counts for partition in observation.inventory.partitions]
    decision = decide_analysis(
        metadata,
        policy,
        data_files=sum(each.data_files for each in counts),
        data_bytes=sum(each.data_bytes for each in counts),
        records=sum(each.records for each in counts),
        queries=history.queries_of(metadata.table_id, since),
        queries_table=queries_table,
        since=since,
        measure=measure,
    )
    plan = build_standalone_plan(planner.ids.new("plan"), metadata, policy, decision, now, asked=True)
    action, said = decision.action, decision.prediction
    wrong: Sequence[tuple[str, str]] = ()
    if isinstance(action, AnalyzeQueries) and isinstance(said, AnalyzeQueriesPrediction):
        wrong = tuple(analysis_violations(action, said, metadata, policy, queries_table, now))
    return Planned(keep_plan(planner.tables, plan, wrong), observation, policy)


def conflict(action: AnalyzeQueries, metadata: TableMetadata) -> Reason | None:
    """Why a plan does not hold any more."""
    if metadata.snapshot(action.base_snapshot_id) is None:
        return Reason("snapshot-gone", f"snapshot {action.base_snapshot_id} has expired since")
    return None


def no_obstacle(_action: Any, _metadata: TableMetadata, _policy: Policy, _now: Instant) -> None:
    """What only reads is kept from no table."""


def no_effect(_action: Any, _task: Any, _metadata: TableMetadata) -> None:
    """It leaves nothing in the table: what was not reported is done again."""


RULES: Final = ActionRules(AnalyzeQueries, no_obstacle, conflict, no_effect)
REQUEST: Final[RequestedPlan[AnalyzeQueriesRequest]] = RequestedPlan(AnalyzeQueriesRequest, plan_asked)
