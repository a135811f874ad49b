"""What expired snapshots leave to nobody, over real files: it goes a day later, and comes back with the snapshots."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import Table
from pyiceberg.typedef import Record

from icewright.actions.remove_files import deleter, expired_files
from icewright.actions.remove_files.adapters.opened import CatalogQuarantine
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.deletion import Held
from icewright.model.actions.expire_snapshots import ExpireSnapshotsRequest
from icewright.model.iceberg.objects import ListedObject
from icewright.model.work.jobs import Heartbeat, HeartbeatReply
from icewright.model.work.tasks import RESTORING, Progress, Task, TaskState
from icewright.ports.store import TaskFilter
from tests.lakes.house import House, all_there, files, litter, location, rows
from tests.lakes.sqlite import append, table_name, with_tables, writer
from tests.lakes.sqlite import rows as rows_of
from tests.narrowing import not_none

KEEPS = {"icewright.remove-orphan-files.enabled": "false", "icewright.expire-snapshots.remove-files": "true"}


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def overwritten(house: House, **properties: str) -> Table:
    """A table of a few commits, the last of which replaced all rows."""
    table = house.table(**{**KEEPS, **properties})
    table.refresh().overwrite(rows_of(range(1000, 1010)))
    return table


def expired(house: House, table: Table) -> Task:
    """All snapshots but the current one, at a person's word."""
    plan = house.control.maintainer.plan_asked(table_name(table), ExpireSnapshotsRequest("PT0S", 1))
    task = house.control.dispatcher.apply(plan.plan_id)
    house.round()
    found = house.control.tasks.get(task.task_id)
    assert (found.state, found.outcome and found.outcome.reason.code) == (TaskState.SUCCEEDED, "verified")
    return found


def removals(house: House) -> list[Task]:
    return list(house.control.tasks.tasks(TaskFilter(kind=ActionKind.REMOVE_EXPIRED_FILES), limit=10))


def approved(house: House) -> Task:
    """The removal that waits, approved and carried out."""
    (waiting,) = house.control.tables.waiting(limit=10)
    assert (waiting.kind, waiting.reason.code) == (ActionKind.REMOVE_EXPIRED_FILES, "first-removal")
    task = house.control.dispatcher.approve(waiting.plan_id, "Ada")
    house.round()
    return house.control.tasks.get(task.task_id)


def data_files(table: Table) -> set[str]:
    return {path for path in files(location(table)) if "/data/" in path}


def live(table: Table) -> set[str]:
    found: list[str] = table.refresh().inspect.data_files()["file_path"].to_pylist()
    return {path.removeprefix("file://") for path in found}


def live_of(table: Table, number: int) -> set[str]:
    snapshot = table.metadata.snapshots[number]
    return {
        entry.data_file.file_path.removeprefix("file://")
        for manifest in snapshot.manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io)
    }


def test_g18_what_an_expiry_left_goes_a_day_later_and_nothing_else(house: House) -> None:
    table = overwritten(house)
    (other,) = litter(table, "aborted.parquet")
    house.days(0.25)
    before, ids = files(location(table)), rows(table)
    expired(house, table)
    house.days(0.75)
    assert (list(house.control.tables.waiting(limit=10)), len(data_files(table))) == ([], 5)
    house.days(0.5)
    task = approved(house)
    assert (task.state, task.outcome and task.outcome.reason.figures["files_left"]) == (TaskState.SUCCEEDED, 0)
    assert data_files(table) == {str(other), *live(table)}
    assert (rows(table), all_there(table)) == (ids, True)
    gone = before.keys() - files(location(table)).keys()
    assert {Path(path).suffix for path in gone} == {".parquet", ".avro"}
    house.days(3)
    assert len(removals(house)) == 1


def test_g15_an_expiry_is_undone_with_its_files_and_every_snapshot_reads_as_before(house: House) -> None:
    table = overwritten(house)
    house.days(0.25)
    seen = {
        one.snapshot_id: sorted(table.scan(snapshot_id=one.snapshot_id).to_arrow()["id"].to_pylist())
        for one in table.refresh().metadata.snapshots
    }
    content = {path: found for path, found in files(location(table)).items() if not path.endswith(".json")}
    expiry = expired(house, table)
    house.days(2)
    approved(house)
    assert len(data_files(table)) == 1
    append(table, range(5000, 5005))
    undo = house.undo(expiry.task_id)
    assert (undo.state, undo.outcome and undo.outcome.reason.code) == (TaskState.SUCCEEDED, "verified")
    table.refresh()
    for snapshot_id, ids in seen.items():
        assert sorted(table.scan(snapshot_id=snapshot_id).to_arrow()["id"].to_pylist()) == ids
    assert content.items() <= files(location(table)).items()
    assert all_there(table)
    house.days(3)
    assert (len(removals(house)), all_there(table)) == (1, True)


def test_an_undo_tells_with_each_file_that_it_goes_on_and_with_each_batch_how_far_it_is(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its server would be restarted, and its lease would run out, while it puts back many files."""
    table = overwritten(house)
    house.days(0.25)
    expiry = expired(house, table)
    house.days(2)
    removed = len(files(house.held))
    approved(house)
    moved = len(files(house.held)) - removed
    silent: list[int] = []
    told: list[Progress] = []
    pulse, dispatcher = house.control.loop._pulse, house.control.dispatcher
    restore, heartbeat = CatalogQuarantine.restore, dispatcher.heartbeat

    def slow(self: CatalogQuarantine, run_id: str, expected: ListedObject, held: Held) -> None:
        silent.append(house.clock.now() - pulse.doing[0].heard_at)
        house.clock.advance(1)
        restore(self, run_id, expected, held)

    def beat(task_id: str, one: Heartbeat) -> HeartbeatReply:
        told.append(one.progress)
        return heartbeat(task_id, one)

    monkeypatch.setattr(CatalogQuarantine, "restore", slow)
    monkeypatch.setattr(dispatcher, "heartbeat", beat)
    monkeypatch.setattr(deleter, "BATCH_FILES", 2)
    pulse.begin("housekeeper", "test")
    assert house.undo(expiry.task_id).state is TaskState.SUCCEEDED
    pulse.end()
    assert (moved > 4, silent) == (True, [0] * moved)
    assert [one.groups_done for one in told if one.phase == RESTORING] == [*range(0, moved, 2), moved]
    assert {one.groups_total for one in told if one.phase == RESTORING} == {moved}


def test_o8_what_is_needed_by_a_tag_or_written_anew_stays(house: House) -> None:
    table = overwritten(house)
    first = table.refresh().metadata.snapshots[0]
    table.manage_snapshots().create_tag(first.snapshot_id, "kept").commit()
    (second,) = live_of(table, 1) - live_of(table, 0)
    house.days(0.25)
    expired(house, table)
    house.days(0.25)
    Path(second).write_bytes(b"PAR1 another file by now")
    written_at_s = house.clock.now() / 1000
    os.utime(second, (written_at_s, written_at_s))
    house.days(2)
    approved(house)
    assert Path(second).read_bytes() == b"PAR1 another file by now"
    tagged = table.refresh().scan(snapshot_id=first.snapshot_id).to_arrow()["id"].to_pylist()
    assert (sorted(tagged), all_there(table)) == (list(range(100)), True)


def registered(table: Table, location: str, size_bytes: int) -> None:
    """A commit that adds a file by this name, as a writer spells it."""
    named = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=location,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=5,
        file_size_in_bytes=size_bytes,
        spec_id=0,
        _table_format_version=2,
    )
    with table.refresh().transaction() as change, change.update_snapshot().fast_append() as added:
        added.append_data_file(named)


def test_e8_what_is_needed_by_another_name_of_its_storage_stays(house: House) -> None:
    """Nobody has declared the name; an expired snapshot knew the file by the other one."""
    table = overwritten(house)
    (second,) = live_of(table, 1) - live_of(table, 0)
    content = Path(second).read_bytes()
    registered(table, f"file://localhost{second}", len(content))
    house.days(0.25)
    expired(house, table)
    house.days(2)
    assert approved(house).state is TaskState.SUCCEEDED
    house.days(10)
    assert Path(second).read_bytes() == content
    assert len(data_files(table)) == 2, "the others went"


def test_l6_what_a_copy_may_need_stays_where_the_table_had_its_metadata_elsewhere_before(
    house: House, tmp_path: Path
) -> None:
    """A copy in a catalog that is not configured commits beside the metadata by which it was registered."""
    table = overwritten(house)
    house.days(0.25)
    elsewhere = writer(with_tables(replace(house.entry, name="elsewhere", uri=f"sqlite:///{tmp_path}/elsewhere.db")))
    elsewhere.create_namespace("db")
    copy = elsewhere.register_table(("db", "copy"), table.refresh().metadata_location)
    with table.transaction() as change:
        change.set_properties({"write.metadata.path": f"{table.location()}/later"})
    append(copy, range(500, 600))
    first = table.refresh().metadata.snapshots[0].snapshot_id
    before, count = data_files(table), table.scan(snapshot_id=first).to_arrow().num_rows
    expired(house, table)
    house.days(3)
    for waiting in house.control.tables.waiting(limit=10):
        house.control.dispatcher.approve(waiting.plan_id, "Ada")
    house.days(3)
    assert before <= data_files(table)
    assert copy.refresh().scan(snapshot_id=first).to_arrow().num_rows == count > 0


def test_without_the_owners_word_nothing_goes(house: House) -> None:
    table = overwritten(house, **{"icewright.expire-snapshots.remove-files": "false"})
    house.days(0.25)
    expired(house, table)
    house.days(5)
    assert (len(data_files(table)), removals(house), list(house.control.tables.waiting(limit=10))) == (4, [], [])


def test_what_is_beyond_one_action_goes_with_the_next(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expired_files, "FILES_MAX", 3)
    table = overwritten(house)
    house.days(0.25)
    expired(house, table)
    house.days(2)
    approved(house)
    house.days(5)
    assert (data_files(table), all_there(table)) == (live(table), True)
    figures = [task.outcome.reason.figures["files_removed"] for task in removals(house) if task.outcome is not None]
    assert (len(figures) > 1, max(figures), {task.state for task in removals(house)}) == (
        True,
        3,
        {TaskState.SUCCEEDED},
    )


def test_more_files_than_are_looked_at_in_one_go_make_fewer_that_go(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expired_files, "PATHS_MAX", 4)
    table = overwritten(house)
    house.days(0.25)
    before, ids = len(files(location(table))), rows(table)
    expired(house, table)
    house.days(2)
    task = approved(house)
    assert 0 < int(not_none(task.outcome).reason.figures["files_removed"]) <= 4
    assert (len(files(location(table))) > before - 4, rows(table), all_there(table)) == (True, ids, True)


def test_files_that_went_as_orphans_come_back_first_or_the_expiry_is_not_undone(house: House) -> None:
    ways = {"icewright.remove-orphan-files.enabled": "true", "icewright.remove-orphan-files.older-than": "P3D"}
    table = overwritten(house, **ways, **{"icewright.expire-snapshots.remove-files": "false"})
    house.days(0.25)
    content = {path: found for path, found in files(location(table)).items() if "/data/" in path}
    expiry = expired(house, table)
    house.days(4.5)
    (waiting,) = house.control.tables.waiting(limit=10)
    removal = house.control.dispatcher.approve(waiting.plan_id, "Ada")
    house.round()
    assert len(data_files(table)) == 1
    refused = house.undo(expiry.task_id)
    assert (refused.state, len(table.refresh().metadata.snapshots)) == (TaskState.SUPERSEDED, 1)
    assert "undo that removal first" in not_none(refused.outcome).reason.text
    assert house.undo(removal.task_id).state is TaskState.SUCCEEDED
    assert house.undo(expiry.task_id).state is TaskState.SUCCEEDED
    assert ({path: files(location(table))[path] for path in content}, all_there(table)) == (content, True)


def test_an_expiry_that_was_undone_leaves_nothing_to_remove(house: House) -> None:
    table = overwritten(house)
    house.days(0.25)
    expiry = expired(house, table)
    assert house.undo(expiry.task_id).state is TaskState.SUCCEEDED
    house.days(5)
    assert (len(data_files(table)), removals(house), list(house.control.tables.waiting(limit=10))) == (4, [], [])
    assert all_there(table)
