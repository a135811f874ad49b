"""Plans of one action that stand beside what is planned for a table's files: no partition has a verdict in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from icewright.core.times import Instant
from icewright.model.actions.actions import Action
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.plans import Plan, Prediction, Reason
from icewright.model.policy.policy import Policy
from icewright.plans.action_types import Planning
from icewright.plans.check_table import Wrong
from icewright.plans.policy_digest import plan_digest
from icewright.plans.repository import keep_plan

A_co = TypeVar("A_co", bound=Action, covariant=True)
P_co = TypeVar("P_co", bound=Prediction, covariant=True)


@dataclass(frozen=True, slots=True)
class Decided(Generic[A_co, P_co]):
    """Why something is done about a table, what, and what that would bring; nothing is without an ``action``.

    ``notes`` say what is left out or stays, what depends on it, and what else is to be known.
    """

    reason: Reason
    action: A_co | None = None
    prediction: P_co | None = None
    notes: tuple[Reason, ...] = ()


def build_standalone_plan(
    plan_id: str,
    metadata: TableMetadata,
    policy: Policy,
    decision: Decided[Action, Prediction],
    now: Instant,
    *,
    asked: bool,
) -> Plan:
    """The plan of a decision about a table; ``asked`` by a person, or made by itself. It is not kept yet."""
    return Plan(
        plan_id=plan_id,
        table_id=metadata.table_id,
        table_name=metadata.name,
        snapshot_id=metadata.current_snapshot_id,
        planned_at=now,
        mode=policy.mode,
        actions=() if decision.action is None else (decision.action,),
        reason=decision.reason,
        verdicts=(),
        verdict_counts={},
        prediction=decision.prediction,
        look_again_at=None,
        rules=decision.notes,
        asked=asked,
        settings_digest=None if decision.action is None else plan_digest(decision.action.kind, policy),
    )


def keep_decided(
    planner: Planning,
    metadata: TableMetadata,
    policy: Policy,
    decision: Decided[Action, Prediction],
    violations: Iterable[Wrong] = (),
    *,
    asked: bool,
) -> Plan:
    """The plan of a decision, in the store; what is planned for the table's files stands beside it.

    ``violations`` are what its checker has against it. Raises ``PlanRejected`` where there are any.
    """
    now = planner.clock.now()
    plan = build_standalone_plan(planner.ids.new("plan"), metadata, policy, decision, now, asked=asked)
    return keep_plan(planner.tables, plan, violations)
