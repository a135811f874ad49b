"""The action as the server knows it: how it is planned, checked, carried out and verified."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from icewright.catalogs.port import Catalog
from icewright.core.errors import Conflict
from icewright.core.times import Instant
from icewright.model.actions.expire_snapshots import Hold
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.observation import Observation
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import Policy
from icewright.model.work.jobs import Committed, Result
from icewright.model.work.tasks import Outcome, Task
from icewright.plans.action_types import ActionRules, ActionType, Planned, Planning, RequestedPlan, never
from icewright.plans.standalone_plan import Decided, keep_decided
from tests.toy_action.model import AskedCountSnapshots, CountSnapshots, CountSnapshotsPrediction


def decide(metadata: TableMetadata) -> Decided[CountSnapshots, CountSnapshotsPrediction]:
    """What there is to count."""
    if metadata.current_snapshot_id is None:
        return Decided(Reason("no-snapshot", "nothing to do: the table has no snapshot yet"))
    said = CountSnapshotsPrediction(len(metadata.snapshots))
    reason = Reason("count", f"count {said.snapshots:,} snapshots")
    return Decided(reason, CountSnapshots(metadata.current_snapshot_id), said)


def violations(
    action: CountSnapshots, said: CountSnapshotsPrediction, table: TableMetadata
) -> Iterator[tuple[str, str]]:
    """What is wrong with a plan, found without asking what planned it."""
    if action.base_snapshot_id not in {snapshot.snapshot_id for snapshot in table.snapshots}:
        yield "snapshot-unknown", f"the table has no snapshot {action.base_snapshot_id}"
    if said.snapshots != len(table.snapshots):
        yield "figures-wrong", f"the table has {len(table.snapshots)} snapshots, not {said.snapshots}"


def plan_asked(
    planner: Planning, observation: Observation, _asked: AskedCountSnapshots, _holds: Sequence[Hold]
) -> Planned:
    """The plan that a person asks for, checked and kept."""
    metadata, policy = observation.metadata, planner.policy(observation.metadata)
    decision = decide(metadata)
    action, said = decision.action, decision.prediction
    wrong = () if action is None or said is None else tuple(violations(action, said, metadata))
    return Planned(keep_decided(planner, metadata, policy, decision, wrong, asked=True), observation, policy)


def conflict(action: CountSnapshots, metadata: TableMetadata) -> Reason | None:
    """Why a plan does not hold any more."""
    if metadata.snapshot(action.base_snapshot_id) is None:
        return Reason("snapshot-gone", f"snapshot {action.base_snapshot_id} has expired since")
    return None


def no_obstacle(_action: Any, _metadata: TableMetadata, _policy: Policy, _now: Instant) -> None:
    """Snapshots can always be counted."""


def no_effect(_action: Any, _task: Task, _metadata: TableMetadata) -> None:
    """It leaves nothing in the table."""


def verify(_verification: Any, _task: Task, action: CountSnapshots, metadata: TableMetadata) -> Outcome:
    """Count again."""
    problem, count = conflict(action, metadata), len(metadata.snapshots)
    return Outcome(problem or Reason("verified", f"the table has {count:,} snapshots", {"snapshots": count}))


class SnapshotCounter:
    """Carries the action out."""

    def __init__(self, catalogs: Mapping[str, Catalog]) -> None:
        self._catalogs = catalogs

    def carry_out(self, task: Task, may_commit: Callable[[], None]) -> Result:
        """Count, and commit nothing."""
        metadata = self._catalogs[task.table_name.catalog].load(task.table_name)
        if not isinstance(task.action, CountSnapshots):
            raise TypeError(f"task {task.task_id} counts nothing")
        reason = conflict(task.action, metadata)
        if reason is not None:
            raise Conflict(reason.text)
        may_commit()
        return Committed(None)


COUNT_SNAPSHOTS: Final = ActionType(
    ActionRules(CountSnapshots, no_obstacle, conflict, no_effect),
    verify,
    never("it changed nothing", "nothing has to be done"),
    RequestedPlan(AskedCountSnapshots, plan_asked),
    carrier=SnapshotCounter,
)
