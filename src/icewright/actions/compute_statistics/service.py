"""Planning statistics: decide (pure), check (pure, by other code), keep the plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from icewright.actions.compute_statistics.check import statistics_violations
from icewright.actions.compute_statistics.due import due_because, still_new
from icewright.actions.compute_statistics.plan import StatisticsDecision, decide_statistics
from icewright.actions.compute_statistics.settings import PLAIN_NAME
from icewright.core import wording
from icewright.core.errors import InvalidMessage
from icewright.model.actions.compute_statistics import COLUMNS_MAX, ComputeStatisticsRequest
from icewright.model.actions.expire_snapshots import Hold
from icewright.model.plans.observation import Observation
from icewright.model.plans.plans import Plan, Reason
from icewright.model.policy.policy import Policy
from icewright.plans.action_types import Planned, Planning, Rest
from icewright.plans.check_table import Wrong
from icewright.plans.due import Due
from icewright.plans.standalone_plan import keep_decided

STATISTICS_NEW: Final = "statistics-new"
"""The code of a reason that says: what changed since the last ones does not call for new ones."""


def plan_asked(
    planner: Planning, observation: Observation, asked: ComputeStatisticsRequest, _holds: Sequence[Hold]
) -> Planned:
    """The plan of what a person asks for.

    Raises :class:`InvalidMessage` for what cannot be asked for, and ``PlanRejected``.
    """
    policy = planner.policy(observation.metadata)
    if asked.columns is not None:
        _check_names(asked.columns)
        _check_there(observation, asked.columns, asked.snapshot_id)
    if asked.snapshot_id is not None and observation.metadata.snapshot(asked.snapshot_id) is None:
        raise InvalidMessage(
            f"the table has no snapshot {asked.snapshot_id}",
            hint="icewright table snapshots lists those that there are",
        )
    decision = decide_statistics(observation, policy, asked.columns, asked.snapshot_id)
    return Planned(_kept(planner, observation, policy, decision, asked=True), observation, policy)


def statistics_due(planner: Planning, observation: Observation, rest: Rest) -> Due:
    """What is due by itself, of a table whose owner lets it. What is kept of it may raise ``PlanRejected``."""
    metadata, policy = observation.metadata, planner.policy(observation.metadata)
    if rest.rested_ms is not None and rest.rested_ms < policy.statistics_interval_ms:
        at_most = wording.duration(policy.statistics_interval_ms)
        return Due(Reason("upkeep-lately", f"nothing to do: they are computed once in {at_most} at most"))
    because = due_because(metadata, policy.statistics_min_change)
    if because is None:
        return Due(Reason(STATISTICS_NEW, f"nothing to do: {still_new(metadata, policy.statistics_min_change)}"))
    decision = decide_statistics(observation, policy, because=because)
    if decision.action is None:
        return Due(decision.reason)
    current = metadata.current_snapshot
    return Due(
        decision.reason,
        lambda: _kept(planner, observation, policy, decision, asked=False),
        since=None if current is None else current.committed_at,
    )


def _kept(
    planner: Planning, observation: Observation, policy: Policy, decision: StatisticsDecision, *, asked: bool
) -> Plan:
    violations: Iterable[Wrong] = ()
    if decision.action is not None and decision.prediction is not None:
        violations = statistics_violations(decision.action, decision.prediction, observation, policy)
    return keep_decided(planner, observation.metadata, policy, decision, violations, asked=asked)


def _check_names(names: Sequence[str]) -> None:
    bad = [name for name in names if not PLAIN_NAME.fullmatch(name)]
    if bad:
        raise InvalidMessage(
            f"{wording.quoted(bad[0])} cannot be named to Iceberg's action",
            hint="columns of the top level, by names of letters, digits and underscores",
        )
    if not names or len(names) > COLUMNS_MAX or len(set(names)) < len(names):
        raise InvalidMessage(f"name 1 to {COLUMNS_MAX} columns, each once")


def _check_there(observation: Observation, names: Sequence[str], snapshot_id: int | None) -> None:
    """What a person names and is not there is a typing error, which a policy for many tables may make."""
    metadata = observation.metadata
    snapshot = metadata.snapshot(metadata.current_snapshot_id if snapshot_id is None else snapshot_id)
    schema = next((one for one in metadata.schemas if snapshot and one.schema_id == snapshot.schema_id), None)
    known = set() if schema is None else {str(field["name"]) for field in schema.fields}
    missing = [name for name in names if name not in known]
    if schema is not None and missing:
        raise InvalidMessage(
            f"the table has no column {wording.name(missing[0])} at the top level, as of that snapshot"
        )
