"""Approvals as the API shows them."""

from __future__ import annotations

from dataclasses import dataclass

from icewright.core.times import Instant
from icewright.model.actions.actions import ActionKind
from icewright.model.iceberg.names import TableName
from icewright.model.plans.approvals import Approval
from icewright.model.plans.plans import Reason


@dataclass(frozen=True, slots=True)
class ApprovalView:
    """Who let which plan go, and when; ``because`` is why it had to wait, null where that was not known any more.

    ``plan_hash`` is what it was given for, as the audit names it. Of one of before plans were kept with it that is all,
    and all about the plan is null. ``table`` is as the table was called then.
    """

    plan_hash: str
    plan_id: str | None
    table: str | None
    table_name: TableName | None
    catalog: str | None
    uuid: str | None
    kind: ActionKind | None
    approved_by: str
    approved_at: Instant
    because: Reason | None


def approval_view(approval: Approval) -> ApprovalView:
    """An approval for display."""
    plan = approval.plan
    return ApprovalView(
        plan_hash=approval.plan_hash,
        plan_id=None if plan is None else plan.plan_id,
        table=None if plan is None else str(plan.table_name),
        table_name=None if plan is None else plan.table_name,
        catalog=None if plan is None else plan.table_id.catalog,
        uuid=None if plan is None else plan.table_id.uuid,
        kind=None if plan is None else plan.kind,
        approved_by=approval.approved_by,
        approved_at=approval.approved_at,
        because=None if plan is None else plan.because,
    )
