"""A lake full of garbage is left alone for a week: what nobody needs goes, the rest reads as before, all comes back.

Real files, a real store and a whole server but for its sockets. Only its clock is moved; no floor is lowered.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import Table

from icewright.core import fault_points as faults
from icewright.core.fault_points import Fault
from icewright.model.actions.actions import ActionKind
from icewright.model.work.tasks import Task, TaskState
from icewright.ports.store import TaskFilter
from tests.builders.command_line import icewright, write_configuration
from tests.lakes.house import House, all_there, files, litter, location
from tests.lakes.sqlite import append
from tests.lakes.sqlite import rows as rows_of

LEFT_ALONE = {
    "icewright.expire-snapshots.enabled": "true",
    "icewright.expire-snapshots.remove-files": "true",
    "icewright.remove-orphan-files.enabled": "true",
    "history.expire.min-snapshots-to-keep": "1",
}
DELETER = [point for point in Fault if point.value.startswith("deleter.")]


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def ids(table: Table, snapshot_id: int) -> list[int]:
    return sorted(table.scan(snapshot_id=snapshot_id).to_arrow()["id"].to_pylist())


def contents(table: Table) -> dict[int, list[int]]:
    """The rows of every snapshot, by reading them."""
    table.refresh()
    return {one.snapshot_id: ids(table, one.snapshot_id) for one in table.metadata.snapshots}


def messy(house: House) -> tuple[Table, Table]:
    """A table with a tag, a branch, a snapshot that is on no branch any more, and replaced rows; and its sibling."""
    table, sibling = house.table("t", **LEFT_ALONE), house.table("t_2", **LEFT_ALONE)
    first, second, _ = table.refresh().metadata.snapshots
    table.manage_snapshots().create_tag(first.snapshot_id, "audit").create_branch(second.snapshot_id, "dev").commit()
    table.append(rows_of(range(7000, 7010)), branch="dev")
    table.manage_snapshots().create_branch(second.snapshot_id, "staged").commit()
    table.append(rows_of(range(8000, 8010)), branch="staged")
    table.manage_snapshots().remove_branch("staged").commit()
    table.refresh().overwrite(rows_of(range(9000, 9020)))
    append(table, range(9100, 9110))
    litter(table, "00000-aborted.parquet", "00001-aborted.parquet", content=b"PAR1" + b"x" * 100_000)
    return table, sibling


def tasks(house: House, kind: ActionKind) -> list[Task]:
    return sorted(house.control.tasks.tasks(TaskFilter(kind=kind), limit=50), key=lambda task: task.task_id)


def only_in_old_snapshots(name: str) -> int:
    """Files that neither the present table nor a ref needs, as the storage report has them."""
    report = json.loads(icewright("table", "storage", name, "--json").out)
    assert report["complete"]
    return sum(each["by_history"]["files"] for each in report["classes"])


def test_left_alone_a_lake_is_cleaned_and_everything_can_be_had_back(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_configuration(tmp_path, house.entry)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    table, sibling = messy(house)
    house.days(0.25)
    before, rows, others = files(location(table)), contents(table), contents(sibling)
    refs = {name: ref.snapshot_id for name, ref in table.metadata.refs.items()}
    assert only_in_old_snapshots("db.t") > 0

    house.days(7)
    assert (contents(table), {name: ref.snapshot_id for name, ref in table.metadata.refs.items()}) == (rows, refs)
    approve(house, {ActionKind.EXPIRE_SNAPSHOTS})
    house.days(2)
    left = contents(table)
    assert left == {snapshot_id: rows[snapshot_id] for snapshot_id in left}
    assert {name: ref.snapshot_id for name, ref in table.metadata.refs.items()} == refs
    assert len(left) < len(rows)
    approve(house, {ActionKind.REMOVE_EXPIRED_FILES, ActionKind.REMOVE_ORPHAN_FILES})

    assert only_in_old_snapshots("db.t") == 0
    now = files(location(table))
    data = {path for path in now if "/data/" in path}
    assert data == {path for snapshot in table.metadata.snapshots for path in data_of(table, snapshot)}
    assert (contents(table), all_there(table), contents(sibling)[current(sibling)]) == (
        left,
        True,
        others[current(sibling)],
    )

    for kind in (ActionKind.REMOVE_ORPHAN_FILES, ActionKind.EXPIRE_SNAPSHOTS):
        for task in tasks(house, kind):
            if task.table_id.uuid == str(table.metadata.table_uuid):
                assert task.state is TaskState.SUCCEEDED
                assert house.undo(task.task_id).state is TaskState.SUCCEEDED
    assert contents(table) == rows
    assert {name: ref.snapshot_id for name, ref in table.metadata.refs.items()} == refs
    after = files(location(table))
    assert {path: after.get(path) for path in before} == before
    assert (all_there(table), all_there(sibling)) == (True, True)


def approve(house: House, kinds: set[ActionKind]) -> None:
    """A person lets go what waits for the tables' first time."""
    waiting = house.control.tables.waiting(limit=10)
    assert {one.kind for one in waiting} >= kinds
    for one in waiting:
        if one.kind in kinds:
            house.control.dispatcher.approve(one.plan_id, "Ada")
            house.round()


def current(table: Table) -> int:
    snapshot = table.refresh().current_snapshot()
    assert snapshot is not None
    return snapshot.snapshot_id


def data_of(table: Table, snapshot: Any) -> set[str]:
    return {
        entry.data_file.file_path.removeprefix("file://")
        for manifest in snapshot.manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)
    }


class Died(BaseException):
    """As a process that was killed: nothing behind it happens."""


def test_w11_wherever_a_server_dies_over_files_nothing_is_lost_or_done_twice(house: House) -> None:
    """At each named place, on the way into quarantine and back, and on the way out for good."""
    table = house.table("t", **LEFT_ALONE)
    house.table("t_2", **LEFT_ALONE)
    litter(table, "first.parquet", content=b"")
    house.days(9, a_day=1)
    for one in house.control.tables.waiting(limit=10):
        house.control.dispatcher.approve(one.plan_id, "Ada")
    house.days(1, a_day=1)
    died: set[Fault] = set()
    for number, point in enumerate(DELETER):
        names = [f"{number}-{file}.parquet" for file in range(2)]
        left = litter(table, *names, content=b"PAR1")
        known = {task.task_id for task in tasks(house, ActionKind.REMOVE_ORPHAN_FILES)}
        deadly(house, point, died, 14)
        assert [path.exists() for path in left] == [False, False], point
        (task,) = [one for one in tasks(house, ActionKind.REMOVE_ORPHAN_FILES) if one.task_id not in known]
        assert (task.state, all_there(table)) == (TaskState.SUCCEEDED, True), point
        if number % 2:
            deadly(house, point, died, 9)  # purged
            assert [path.exists() for path in left] == [False, False], point
        else:
            plan = house.control.undoer.plan(task.task_id)
            house.control.dispatcher.apply(plan.plan_id)
            deadly(house, point, died, 5)
            assert [path.read_bytes() for path in left] == [b"PAR1", b"PAR1"], point
            for path in left:
                path.unlink()
        assert (all_there(table), files(house.held)) == (True, {}), point
    assert died >= {point for point in DELETER if point not in NOT_ON_THIS_WAY}


NOT_ON_THIS_WAY = {Fault.DELETION_LEFT}
"""Comes by when a removal is given up; ``tests/actions/remove_files/test_deleter_faults.py`` has it."""


def deadly(house: House, point: Fault, died: set[Fault], days: int) -> None:
    """Some days, in which the server dies the first time that it comes by a place, and is started again.

    A person approves what waits: after an undo nothing goes without that.
    """
    settling = point in (Fault.DELETION_SETTLE_BEFORE, Fault.DELETION_SETTLE_AFTER)
    armed = [Fault.DELETION_FILE_DONE, point] if settling else [point]  # there is something to settle after a death

    def hook(found: Fault) -> None:
        if armed and found is armed[0]:
            died.add(armed.pop(0))
            raise Died

    faults.arm(hook)
    try:
        for _ in range(days):
            try:
                house.days(1, a_day=1)
                for one in house.control.tables.waiting(limit=10):
                    house.control.dispatcher.approve(one.plan_id, "Ada")
            except Died:
                house.restart()
    finally:
        faults.arm(None)
