"""Analyzing the queries of a table as the server knows it: planned from what was counted, verified by the answer.

A person asks for it, or it is due: once per interval, earlier when the queries drift.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

from icewright.actions.analyze_queries.check import analysis_violations
from icewright.actions.analyze_queries.plan import MEASURING, AnalysisDecision, Drift, decide_analysis, drift_since
from icewright.actions.analyze_queries.settings import ANALYZES_KEY, DAY_MS
from icewright.core import wording
from icewright.core.errors import InvalidMessage, NotAllowed
from icewright.core.times import Instant
from icewright.model.actions.analyze_queries import (
    WEEKS_MAX,
    AnalyzeQueries,
    AnalyzeQueriesRequest,
    Measure,
)
from icewright.model.actions.expire_snapshots import Hold
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.observation import Observation
from icewright.model.plans.plans import Plan, Reason
from icewright.model.policy.policy import Policy
from icewright.model.work.tasks import Outcome, Task
from icewright.plans.action_types import (
    ActionRules,
    ActionType,
    DueRule,
    Planned,
    Planning,
    QueryHistory,
    RequestedPlan,
    Rest,
    Upkeep,
    never,
)
from icewright.plans.check_table import Wrong
from icewright.plans.due import Due
from icewright.plans.eligibility import no_obstacle, policy_obstacle
from icewright.plans.standalone_plan import keep_decided

_WEEK_MS: Final = 7 * DAY_MS
DRIFT_REST_MS: Final = DAY_MS
"""How far apart analyses are at least, however much queries drift: each reads columns of all files."""
ANALYSIS_PRIORITY: Final = -2
"""Behind all other work: it changes nothing."""
ANALYSES_WAITING_MAX: Final = 20
"""How many analyses wait in the queue at most that no person asked for; the other tables follow with later looks."""


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
    policy, measure = planner.policy(observation.metadata), asked.measure
    since = planner.clock.now() - asked.weeks * _WEEK_MS
    if measure is not None:
        since = min(measure.judged_since, measure.later_than)
    decision = _decided(observation, policy, history, queries_table, since, measure)
    return Planned(_kept(planner, observation, decision, queries_table, asked=True), observation, policy)


def analysis_due(planner: Planning, observation: Observation, rest: Rest) -> Due:
    """Whether the queries of a table are analyzed without a request.

    What is kept of it may raise ``PlanRejected``.
    """
    metadata, history = observation.metadata, planner.queries
    queries_table = None if history is None else history.table
    if history is None or queries_table is None:
        return Due(Reason("no-query-table", "nothing to do: this server keeps queries in no table"))
    policy = planner.policy(metadata)
    obstacle = policy_obstacle(policy) or _missing(planner, queries_table)
    if obstacle is not None:
        return Due(obstacle)
    since, because = planner.clock.now() - AnalyzeQueriesRequest().weeks * _WEEK_MS, ""
    if rest.rested_ms is not None and rest.rested_ms < policy.analysis_interval_ms:
        drift = Drift(0, 0)
        if rest.rested_ms >= DRIFT_REST_MS:
            drift = drift_since(history.templates_of(metadata.table_id, since), rest.now - rest.rested_ms)
        if not drift.new or drift.share < policy.analysis_drift:
            return Due(_analyzed_lately(rest, policy, drift))
        because = f"{drift.new:,} of {drift.queries:,} queries since the last analysis have templates that are new: "
    decision = _decided(observation, policy, history, queries_table, since)
    if decision.action is None:
        return Due(decision.reason)
    if because:
        decision = replace(decision, reason=Reason("queries-drifted", because + decision.reason.text))
    return Due(decision.reason, lambda: _kept(planner, observation, decision, queries_table, asked=False))


def _missing(planner: Planning, queries_table: TableName) -> Reason | None:
    """Why the table of queries cannot be read yet."""
    record = planner.tables.record_by_name(queries_table)
    if record is None or record.dropped_at is not None:
        return Reason("query-table-missing", f"nothing to do: there is no table {queries_table} yet")
    return None


def _analyzed_lately(rest: Rest, policy: Policy, drift: Drift) -> Reason:
    until = rest.now - (rest.rested_ms or 0) + policy.analysis_interval_ms
    text = f"nothing to do until {wording.instant(until)}: analyzed once in "
    text += f"{wording.duration(policy.analysis_interval_ms)}, earlier when {policy.analysis_drift:.0%} of the queries "
    text += f"have new templates ({drift.new:,} of {drift.queries:,} now)"
    return Reason("analyzed-lately", text, {"until": until, "new": drift.new, "queries": drift.queries})


def _decided(
    observation: Observation,
    policy: Policy,
    history: QueryHistory,
    queries_table: TableName,
    since: Instant,
    measure: Measure | None = None,
) -> AnalysisDecision:
    metadata = observation.metadata
    counts = [partition.counts for partition in observation.inventory.partitions]
    return decide_analysis(
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


def _kept(
    planner: Planning, observation: Observation, decision: AnalysisDecision, queries_table: TableName, *, asked: bool
) -> Plan:
    """The plan of a decision, checked, in the store. Raises ``PlanRejected``."""
    metadata, policy = observation.metadata, planner.policy(observation.metadata)
    action, said = decision.action, decision.prediction
    wrong: Iterable[Wrong] = ()
    if action is not None and said is not None:
        wrong = analysis_violations(action, said, metadata, policy, queries_table, planner.clock.now())
    return keep_decided(planner, metadata, policy, decision, wrong, asked=asked)


def conflict(action: AnalyzeQueries, metadata: TableMetadata) -> Reason | None:
    """Why a plan does not hold any more."""
    if metadata.snapshot(action.base_snapshot_id) is None:
        return Reason("snapshot-gone", f"snapshot {action.base_snapshot_id} has expired since")
    return None


def no_effect(_action: Any, _task: Any, _metadata: TableMetadata) -> None:
    """It leaves nothing in the table: what was not reported is done again."""


UPKEEP: Final[Upkeep[AnalyzeQueries]] = Upkeep(
    ANALYZES_KEY, lambda policy: policy.analyzes_queries, "the owner does not want automatic analyses any more"
)


class Answers(Protocol):
    """What reads, checks and keeps the answer of an analysis (the server's verification)."""

    def analysis(self, task: Task, action: AnalyzeQueries, metadata: TableMetadata) -> Outcome:
        """What an analysis found."""


def verify(answers: Answers, task: Task, action: AnalyzeQueries, metadata: TableMetadata) -> Outcome:
    """Check the answer: no table has anything of an analysis."""
    return answers.analysis(task, action, metadata)


DUE: Final = DueRule(
    "Automatic analysis of queries",
    analysis_due,
    is_possible=lambda planner: planner.queries is not None and planner.queries.table is not None,
    priority=ANALYSIS_PRIORITY,
    waiting_max=ANALYSES_WAITING_MAX,
    other_reasons=frozenset({MEASURING}),
)
ANALYZE_QUERIES: Final = ActionType(
    ActionRules(AnalyzeQueries, no_obstacle, conflict, no_effect, upkeep=UPKEEP),
    verify,
    never("it changed nothing", "nothing has to be done"),
    RequestedPlan(AnalyzeQueriesRequest, plan_asked),
    DUE,
)
