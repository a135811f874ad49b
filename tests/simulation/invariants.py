"""What must hold in the simulation: after every step, and once the faults have stopped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from icewright.actions.expire_snapshots.commit import is_expired
from icewright.model.actions.actions import RewriteDataFiles
from icewright.model.actions.expire_snapshots import ExpireSnapshots
from icewright.model.actions.undo import UndoExpiry
from icewright.model.iceberg.names import TableId
from icewright.model.iceberg.tables import TASK_ID_KEY
from icewright.model.work.tasks import ACTIVE_STATES, TERMINAL_STATES, Task, TaskState
from tests.simulation.world import World
from tests.simulation.writers import MODE_KEY, Broken

COMMIT_DATA = (
    *("rewrite_data_files", "rewrite_manifests", "rewrite_position_delete_files", "remove_dangling_deletes"),
    *("expire_data", "undo_expire_data"),
)
ALONE = (
    *("expire_snapshots", "undo_expire_snapshots", "rollback_to_snapshot"),
    *("remove_orphan_files", "remove_expired_files", "restore_files"),
)
SLOTS = {**dict.fromkeys(COMMIT_DATA, "d"), "compute_statistics": "m", **dict.fromkeys(ALONE, "dm")}
"""What each kind of task holds of its table (d: data, m: metadata), written out once more (decision 0069)."""


def check(world: World) -> None:
    """Rows are as the writers left them, and no table has two tasks. Raises :class:`Broken`."""
    tasks = world.all_tasks()
    active = Counter(
        (task.table_id, slot) for task in tasks if task.state in ACTIVE_STATES for slot in SLOTS[task.kind.value]
    )
    live = Counter((task.table_id, task.action.kind) for task in tasks if task.state not in TERMINAL_STATES)
    for counter, word in ((active, "active"), (live, "live")):
        if any(count > 1 for count in counter.values()):  # by table and slot, or by table and kind
            raise Broken(f"two {word} tasks of one table: {counter}")
    _check_caps(world, tasks)
    for name in world.names:
        world.writers.check(name)
    world.look()


def _check_caps(world: World, tasks: Sequence[Task]) -> None:
    """What runs keeps to the caps of its group, summed from nothing but leases."""
    leases = [
        task.lease
        for task in tasks
        if task.state is TaskState.RUNNING and task.resource_group == world.group.name and task.lease is not None
    ]
    sums = {
        "tasks": (len(leases), world.group.tasks_max),
        "cores": (sum(lease.holding.cores or 0 for lease in leases), world.group.cores),
        "applications": (len({lease.optimizer_id for lease in leases}), world.group.applications_max),
    }
    for what, (held, cap) in sums.items():
        if cap is not None and held > cap:
            raise Broken(f"group {world.group.name} may have {cap} {what} and has {held}")
        world.counted[f"{what} at their cap"] += held == cap


def check_end(world: World) -> None:
    """Everything has ended, is known as it is, and is told truly. Raises :class:`Broken`."""
    check(world)
    world.acknowledged()
    # The undo of an earlier expiry, too, brings back what a later one has taken again.
    undone = {task.table_id for task in world.all_tasks() if isinstance(task.action, UndoExpiry)}
    for task in world.all_tasks():
        if task.state not in TERMINAL_STATES:
            raise Broken(f"task {task.task_id} is {task.state} for ever: {task.outcome}")
        world.counted[f"task {task.state}"] += 1
        if isinstance(task.action, ExpireSnapshots) and task.table_id not in undone:
            _check_expiry(world, task.table_id, task.action, task.state)
        elif isinstance(task.action, RewriteDataFiles) and not world.may_lie:
            _check_task(world, task.task_id, task.state)
    for position, _ in enumerate(world.names):
        _check_table(world, position)
    world.look_at_last()
    if world.stores[0].inbox(10):
        raise Broken("events were never worked on")


def _check_task(world: World, task_id: str, state: TaskState) -> None:
    """A task has succeeded if and only if the table says so, as far as the table can still say."""
    if state is TaskState.SUCCEEDED:
        if task_id not in world.commits:
            raise Broken(f"task {task_id} is said to have succeeded and never committed")
        return
    table_id = world.commits.get(task_id)
    present = {metadata.table_id: metadata for metadata in map(world.house.metadata_of, world.names)}
    if table_id not in present:
        return
    snapshot = present[table_id].snapshot_of_task(task_id)
    if snapshot is not None and present[table_id].snapshot(snapshot.parent_id) is not None:
        raise Broken(f"task {task_id} is {state}, and snapshot {snapshot.snapshot_id} carries it ({TASK_ID_KEY})")


def _check_expiry(world: World, table_id: TableId, action: ExpireSnapshots, state: TaskState) -> None:
    """What is said to have expired is gone."""
    if state is not TaskState.SUCCEEDED:
        return
    world.counted["expired"] += 1
    for metadata in map(world.house.metadata_of, world.names):
        if metadata.table_id == table_id and not is_expired(action, metadata):
            raise Broken(f"snapshots of {metadata.name} are said to have expired, and are there")


def _check_table(world: World, position: int) -> None:
    name = world.names[position]
    record = world.stores[0].record_by_name(name)
    metadata = world.house.metadata_of(name)
    if record is None or record.snapshot_id != metadata.current_snapshot_id or record.plan_id is None:
        raise Broken(f"{name} is not known as it is: {record}")
    plan = world.stores[0].plan(record.plan_id)
    if plan.snapshot_id != metadata.current_snapshot_id or not plan.reason.text:
        raise Broken(f"the plan of {name} is not of today: {plan.reason.text}")
    mode = metadata.properties[MODE_KEY]
    if mode == "auto" and not plan.is_empty and record.problem is None:
        raise Broken(f"{name} could be optimized, and nobody does it: {plan.reason.text}")
    if name == world.writers.observed and any(s.task_id for s in metadata.snapshots):
        raise Broken(f"{name} may only be observed, and was changed")
    world.counted[f"plan {plan.reason.code}"] += 1
