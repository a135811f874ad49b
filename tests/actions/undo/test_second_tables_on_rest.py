"""An expiry undone in a real REST catalog, over real files: the files return, and a second table reads them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyiceberg.table import Table

from icewright.core.errors import NotAllowed
from icewright.model.actions.expire_snapshots import ExpireSnapshotsRequest
from icewright.model.actions.remove_files import RemoveOrphanFilesRequest
from icewright.model.actions.undo import UndoExpiryPrediction
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.work.tasks import TaskState
from tests.actions.remove_files.test_expired_files_adapter import approved, data_files, expired, overwritten
from tests.lakes.house import House, all_there, files, location, on_disk
from tests.lakes.sqlite import append, table_name, writer
from tests.servers.rest import RestCatalogServer

CLEANED = {"icewright.remove-orphan-files.enabled": "true"}


@pytest.fixture
def house(tmp_path: Path, rest_catalog: RestCatalogServer) -> House:
    rest_catalog.forget()
    shutil.rmtree(rest_catalog.warehouse / "db", ignore_errors=True)  # all that tests of the same names left
    roots = (str(rest_catalog.warehouse),)
    return House(tmp_path, entry=CatalogEntry("lake", CatalogKind.REST, rest_catalog.uri, "", roots=roots))


def read(table: Table) -> dict[int, list[int]]:
    """The ids in each snapshot."""
    return {
        one.snapshot_id: sorted(table.scan(snapshot_id=one.snapshot_id).to_arrow()["id"].to_pylist())
        for one in table.refresh().metadata.snapshots
    }


def test_g15_l6_files_return_a_second_table_reads_every_snapshot_and_nothing_goes_of_either(house: House) -> None:
    table = overwritten(house, **CLEANED)
    house.days(0.25)
    seen, before = read(table), table.refresh().metadata
    content = {path: found for path, found in files(location(table)).items() if not path.endswith(".json")}
    expiry = expired(house, table)
    house.days(2)
    approved(house)
    assert len(data_files(table)) == 1
    append(table, range(5000, 5005))

    plan = house.control.undoer.plan(expiry.task_id)
    assert isinstance(plan.prediction, UndoExpiryPrediction)
    assert plan.prediction.second is not None
    name = plan.prediction.second.name
    assert not writer(house.entry).table_exists(name.path)
    task = house.control.dispatcher.apply(plan.plan_id)
    house.round()
    done = house.control.tasks.get(task.task_id)
    assert (done.state, done.outcome and done.outcome.reason.code) == (TaskState.SUCCEEDED, "verified")

    assert content.items() <= files(location(table)).items()
    second = writer(house.entry).load_table(name.path)
    assert (read(second), second.metadata.table_uuid) == (seen, before.table_uuid)
    assert second.metadata.refs == before.refs
    assert all_there(second)
    assert len(table.refresh().metadata.snapshots) == 2
    for one in (table, second):
        assert one.refresh().properties["gc.enabled"] == "false"

    kept = files(location(table))
    house.days(6)
    now = files(location(table))
    assert {path: now.get(path) for path in kept} == kept
    assert list(house.control.tables.waiting(limit=10)) == []
    for one in (table, second):
        with pytest.raises(NotAllowed):
            house.control.dispatcher.apply(house.look(table_name(one), RemoveOrphanFilesRequest()).plan_id)


def test_the_metadata_file_of_before_may_go_once_the_second_table_is_there(house: House) -> None:
    table = overwritten(house)
    house.days(0.25)
    seen, before = read(table), on_disk(table.refresh().metadata_location)
    expiry = expired(house, table)
    assert house.undo(expiry.task_id).state is TaskState.SUCCEEDED
    before.unlink()
    (second,) = [one for one in writer(house.entry).list_tables("db") if one[-1] != "events"]
    assert read(writer(house.entry).load_table(second)) == seen


def test_i3_without_the_metadata_file_of_before_it_is_refused_in_words(house: House) -> None:
    table = overwritten(house)
    house.days(0.25)
    before = on_disk(table.refresh().metadata_location)
    expiry = expired(house, table)
    before.unlink()
    with pytest.raises(NotAllowed, match="cannot be undone any more"):
        house.control.undoer.plan(expiry.task_id)
    assert len(writer(house.entry).list_tables("db")) == 1


@pytest.mark.parametrize("guard", ["both", "the names alone", "none"])
def test_o8_l6_what_a_later_expiry_left_stays_while_the_second_table_shows_it(house: House, guard: str) -> None:
    """The first does not need it: without the second table it goes."""
    table = overwritten(house)
    house.days(0.25)
    seen = read(table)
    asked = house.control.maintainer.plan_asked(table_name(table), ExpireSnapshotsRequest("PT0S", 4))
    task = house.control.dispatcher.apply(asked.plan_id)
    house.round()
    expired(house, table)
    assert house.undo(task.task_id).state is TaskState.SUCCEEDED
    (second,) = [one for one in writer(house.entry).list_tables("db") if one[-1] != "events"]
    if guard != "both":
        for name in (table_name(table).path, second):
            writer(house.entry).load_table(name).transaction().set_properties(
                {"gc.enabled": "true"}
            ).commit_transaction()
    if guard == "none":
        left = writer(house.entry).load_table(second).metadata_location
        known = {table.refresh().metadata_location, *(one.metadata_file for one in table.metadata.metadata_log)}
        writer(house.entry).drop_table(second)
        for path in location(table).rglob("*.metadata.json"):  # else it may be a copy that somebody has (F4)
            if path.name not in {on_disk(one).name for one in known}:
                path.unlink()
        assert not on_disk(left).exists()
    house.days(2)
    for waiting in house.control.tables.waiting(limit=10):
        house.control.dispatcher.approve(waiting.plan_id, "Ada")
    house.days(1)
    if guard == "none":
        assert len(data_files(table)) < 4
        return
    assert read(writer(house.entry).load_table(second)) == seen
    assert len(data_files(table)) == 4
