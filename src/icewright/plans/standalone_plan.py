"""Plans of one action that stand beside what is planned for a table's files: no partition has a verdict in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from icewright.core.times import Instant
from icewright.model.actions.actions import Action
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.plans import Plan, Prediction, Reason
from icewright.model.policy.policy import Policy
from icewright.plans.policy_digest import plan_digest


class Decision(Protocol):
    """What every decision about an action says: what is to be done, if anything, why, and what that would bring."""

    @property
    def action(self) -> Action | None:
        """None where there is nothing to do."""

    @property
    def reason(self) -> Reason:
        """Why."""

    @property
    def prediction(self) -> Prediction | None:
        """As there is an action."""


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision that says no more than that."""

    action: Action | None
    reason: Reason
    prediction: Prediction | None


def build_standalone_plan(
    plan_id: str,
    metadata: TableMetadata,
    policy: Policy,
    decision: Decision,
    now: Instant,
    *,
    asked: bool,
    notes: Sequence[Reason] = (),
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
        rules=tuple(notes),
        asked=asked,
        settings_digest=None if decision.action is None else plan_digest(decision.action.kind, policy),
    )
