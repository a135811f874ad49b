"""What plans to take something back have in common: they are asked for, and of no file."""

from __future__ import annotations

from icewright.domain.plans import Plan
from icewright.domain.policy import Policy
from icewright.domain.tables import Instant, TableMetadata
from icewright.planning.expiry_undo import UndoDecision
from icewright.planning.rollback import RollbackDecision


def recovery_plan(
    plan_id: str, metadata: TableMetadata, policy: Policy, decision: UndoDecision | RollbackDecision, now: Instant
) -> Plan:
    """The plan of a decision. It is not kept yet."""
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
        asked=True,
    )
