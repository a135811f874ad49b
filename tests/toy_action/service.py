"""The action as the server knows it: how it is planned, checked, carried out and verified."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from icewright.catalogs.port import Catalog
from icewright.core.errors import Conflict
from icewright.maintenance.planner import Planned, Planner
from icewright.maintenance.registry.services import ActionServices, AskedPlan
from icewright.maintenance.registry.undo import never
from icewright.model.actions.expire_snapshots import Hold
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.observation import Observation
from icewright.model.plans.plans import Reason
from icewright.model.work.jobs import Committed, Result
from icewright.model.work.tasks import Outcome, Task
from icewright.plans.repository import keep_plan
from icewright.plans.standalone_plan import Decided, plan_beside
from tests.toy_action.model import AskedCountSnapshots, CountSnapshots, CountSnapshotsPrediction
from tests.toy_action.rules import conflict


def decide(metadata: TableMetadata) -> Decided:
    """What there is to count."""
    if metadata.current_snapshot_id is None:
        return Decided(None, Reason("no-snapshot", "nothing, because the table has no snapshot yet"), None)
    said = CountSnapshotsPrediction(len(metadata.snapshots))
    return Decided(
        CountSnapshots(metadata.current_snapshot_id), Reason("count", f"count {said.snapshots:,} snapshots"), said
    )


def violations(
    action: CountSnapshots, said: CountSnapshotsPrediction, table: TableMetadata
) -> Iterator[tuple[str, str]]:
    """What is wrong with a plan, found without asking what planned it."""
    if action.base_snapshot_id not in {snapshot.snapshot_id for snapshot in table.snapshots}:
        yield "snapshot-unknown", f"the table has no snapshot {action.base_snapshot_id}"
    if said.snapshots != len(table.snapshots):
        yield "figures-wrong", f"the table has {len(table.snapshots)} snapshots, not {said.snapshots}"


def plan_asked(
    planner: Planner, observation: Observation, _asked: AskedCountSnapshots, _holds: Sequence[Hold]
) -> Planned:
    """The plan that a person asks for, checked and kept."""
    metadata, policy = observation.metadata, planner.policy(observation.metadata)
    decision, now = decide(metadata), planner.clock.now()
    plan = plan_beside(planner.ids.new("plan"), metadata, policy, decision, now, asked=True)
    action, said = decision.action, decision.prediction
    wrong: Sequence[tuple[str, str]] = ()
    if isinstance(action, CountSnapshots) and isinstance(said, CountSnapshotsPrediction):
        wrong = tuple(violations(action, said, metadata))
    return Planned(keep_plan(planner.tables, plan, wrong), observation, policy)


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


SERVICES: Final = ActionServices(
    CountSnapshots,
    verify,
    never("it changed nothing", "nothing has to be done"),
    AskedPlan(AskedCountSnapshots, plan_asked),
    carrier=SnapshotCounter,
)
