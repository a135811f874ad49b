"""The action as it is planned: whether its plan still holds, and that it leaves nothing in the table."""

from __future__ import annotations

from typing import Any, Final

from icewright.core.times import Instant
from icewright.maintenance.registry.planning import ActionRules
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import Policy
from icewright.model.work.tasks import Task
from tests.toy_action.model import CountSnapshots


def conflict(action: CountSnapshots, metadata: TableMetadata) -> Reason | None:
    """Why a plan does not hold any more."""
    if metadata.snapshot(action.base_snapshot_id) is None:
        return Reason("snapshot-gone", f"snapshot {action.base_snapshot_id} has expired since")
    return None


def no_obstacle(_action: Any, _metadata: TableMetadata, _policy: Policy, _now: Instant) -> None:
    """Snapshots can always be counted."""


def no_effect(_action: Any, _task: Task, _metadata: TableMetadata) -> None:
    """It leaves nothing in the table."""


RULES: Final = ActionRules(CountSnapshots, no_obstacle, conflict, no_effect)
