"""A drill: many files of expired snapshots and many orphans go, and all of it is taken back, to the last byte (G15)."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyiceberg.table import Table

from icewright.model.actions.actions import ActionKind
from icewright.model.actions.expire_snapshots import ExpireSnapshotsRequest
from icewright.model.work.tasks import Task, TaskState
from icewright.ports.store import TaskFilter
from tests.conftest import CAMPAIGN
from tests.lakes.house import House, files, litter, location
from tests.lakes.sqlite import rows as rows_of
from tests.lakes.sqlite import table_name

FILES = 10_000 if CAMPAIGN else 60
PROPERTIES = {"icewright.expire-snapshots.remove-files": "true", "commit.manifest-merge.enabled": "false"}
ROUNDS_MAX = 400


def filled(house: House) -> Table:
    """A table of so many files in one snapshot with a tag of its own, which the next one replaced."""
    table = house.table("t", **PROPERTIES)
    folder = location(table) / "data"
    paths = [folder / f"{number:06}.parquet" for number in range(FILES)]
    for number, path in enumerate(paths):
        pq.write_table(rows_of([10_000 + number]), path)
    table.refresh().add_files([f"file://{path}" for path in paths], check_duplicate_files=False)
    wide = table.refresh().current_snapshot()
    assert wide is not None
    table.manage_snapshots().create_tag(wide.snapshot_id, "wide", max_ref_age_ms=1).commit()
    table.refresh().overwrite(rows_of(range(50)))
    return table.refresh()


def contents(table: Table) -> dict[int, list[int]]:
    table.refresh()
    found = ((one.snapshot_id, table.scan(snapshot_id=one.snapshot_id).to_arrow()) for one in table.metadata.snapshots)
    return {snapshot_id: sorted(rows["id"].to_pylist()) for snapshot_id, rows in found}


def ended(house: House, task_id: str) -> Task:
    for _ in range(ROUNDS_MAX):
        house.round()
        task = house.control.tasks.get(task_id)
        if task.state in (TaskState.SUCCEEDED, TaskState.FAILED, TaskState.SUPERSEDED):
            return task
    raise AssertionError(f"{task} does not end")


def removed(house: House, kind: ActionKind) -> Task:
    """The removal of that kind, by the end of ten days; a person approves what waits."""
    for _ in range(10):
        house.days(1, a_day=1)
        for waiting in house.control.tables.waiting(limit=10):
            house.control.dispatcher.approve(waiting.plan_id, "Ada")
        if found := list(house.control.tasks.tasks(TaskFilter(kind=kind), limit=9)):
            (task,) = found
            return ended(house, task.task_id)
    raise AssertionError(f"no {kind} in ten days")


def undone(house: House, task: Task) -> tuple[float, float]:
    """Take a task back: how many seconds it took on the clock, and of CPU, the files brought back with it included."""
    started_s, cpu_s = time.perf_counter(), time.process_time()
    plan = house.control.undoer.plan(task.task_id)
    back = ended(house, house.control.dispatcher.apply(plan.plan_id).task_id)
    took_s = time.perf_counter() - started_s, time.process_time() - cpu_s
    assert back.state is TaskState.SUCCEEDED, back.outcome
    return took_s


@pytest.mark.timeout(3600 if CAMPAIGN else 300)
def test_g15_an_expiry_and_the_removal_of_orphans_are_taken_back_byte_for_byte(tmp_path: Path) -> None:
    house = House(tmp_path)
    table = filled(house)
    left = litter(table, *(f"left-{number}.parquet" for number in range(FILES // 10)), content=b"PAR1 of nobody")
    house.days(0.25)
    rows, refs = contents(table), dict(table.metadata.refs)
    before = {path: content for path, content in files(location(table)).items() if not path.endswith(".json")}

    orphans = removed(house, ActionKind.REMOVE_ORPHAN_FILES)
    assert orphans.state is TaskState.SUCCEEDED
    plan = house.control.maintainer.plan_asked(table_name(table), ExpireSnapshotsRequest("PT0S", 1))
    expiry = ended(house, house.control.dispatcher.apply(plan.plan_id).task_id)
    assert (expiry.state, len(table.refresh().metadata.snapshots)) == (TaskState.SUCCEEDED, 1)
    assert removed(house, ActionKind.REMOVE_EXPIRED_FILES).state is TaskState.SUCCEEDED
    gone = before.keys() - files(location(table)).keys()
    assert (len(gone) > FILES + len(left), any(path.exists() for path in left)) == (True, False)

    took_s, cpu_s = map(sum, zip(undone(house, orphans), undone(house, expiry), strict=True))
    after = files(location(table))
    assert {path: after.get(path) for path in before} == before
    assert contents(table) == rows
    assert dict(table.metadata.refs) == refs
    said = f"{len(gone):,} files brought back in {took_s:.1f} s, {cpu_s:.1f} s of CPU"
    print(f"G15: {said}")  # noqa: T201 - the figure of docs/bad-days.md
