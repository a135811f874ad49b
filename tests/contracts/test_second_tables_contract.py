"""What every door to second tables must do, shown on the one in memory and on a real REST catalog."""

from __future__ import annotations

from pathlib import Path

import pytest

from icewright.actions.undo.second_tables_iceberg import PyIcebergSecondTables
from icewright.actions.undo.second_tables_port import SecondTables
from icewright.core.errors import Conflict, NotAllowed, NotFound, TableReplaced, Unavailable, Unreadable
from icewright.model.iceberg.names import TableId
from tests.contracts.lakes import Lake, MemoryLake, PyIcebergLake, named
from tests.contracts.test_catalog_contract import EVENTS, make_lake
from tests.doubles.second_tables import MemorySecondTables

NAME, SECOND = named(EVENTS), named(("db", "events_before"))


@pytest.fixture(params=["memory", "rest"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    """A table of two snapshots."""
    made = make_lake(str(request.param), request, tmp_path)
    made.create(EVENTS)
    for _ in range(2):
        made.append(EVENTS, ["Bonn"])
    return made


@pytest.fixture
def door(lake: Lake) -> SecondTables:
    if isinstance(lake, MemoryLake):
        return MemorySecondTables(lake.catalog)
    assert isinstance(lake, PyIcebergLake)
    return PyIcebergSecondTables(lake.entry)


def test_an_earlier_state_is_a_table_of_the_same_uuid_with_what_it_had(lake: Lake, door: SecondTables) -> None:
    before = lake.catalog.load(NAME)
    lake.append(EVENTS, ["Bonn"])
    now = lake.catalog.load(NAME)
    assert door.read(now, before.metadata_location).metadata == before
    door.register(SECOND, before.metadata_location)
    there = lake.catalog.load(SECOND)
    assert (there.table_id, there.snapshots, there.refs) == (before.table_id, before.snapshots, before.refs)
    assert there.metadata_location == before.metadata_location
    assert set(lake.catalog.tables()) == {NAME, SECOND}
    assert lake.catalog.load(NAME) == now
    assert lake.catalog.manifests(there, there.snapshots[0])


def test_a_name_that_is_taken_is_a_conflict(lake: Lake, door: SecondTables) -> None:
    lake.create(SECOND.path)
    other, now = lake.catalog.load(SECOND), lake.catalog.load(NAME)
    with pytest.raises(Conflict):
        door.register(SECOND, now.metadata_location)
    assert lake.catalog.load(SECOND) == other


def test_each_says_what_it_is_told_and_nothing_of_the_other(lake: Lake, door: SecondTables) -> None:
    before = lake.catalog.load(NAME)
    lake.append(EVENTS, ["Bonn"])
    now = lake.catalog.load(NAME)
    door.register(SECOND, before.metadata_location)
    door.say(SECOND, now.table_id, {"gc.enabled": "false", "icewright.mode": "observe"})
    there = lake.catalog.load(SECOND)
    assert (there.properties["gc.enabled"], there.properties["icewright.mode"]) == ("false", "observe")
    assert there.snapshots == before.snapshots
    assert lake.catalog.load(NAME) == now
    door.say(SECOND, now.table_id, {"gc.enabled": "false"})
    assert lake.catalog.load(SECOND) == there


def test_a_file_that_is_not_there_is_not_registered(lake: Lake, door: SecondTables) -> None:
    now = lake.catalog.load(NAME)
    gone = now.metadata_location + ".gone"
    with pytest.raises(Unreadable):
        door.read(now, gone)
    with pytest.raises((NotAllowed, Unavailable)):
        door.register(SECOND, gone)
    with pytest.raises(NotFound):
        lake.catalog.load(SECOND)


def test_another_table_of_the_name_is_told_nothing(lake: Lake, door: SecondTables) -> None:
    before = lake.catalog.load(NAME)
    with pytest.raises(TableReplaced):
        door.say(NAME, TableId("lake", "another"), {"gc.enabled": "false"})
    assert lake.catalog.load(NAME) == before


@pytest.mark.parametrize("lake", ["rest"], indirect=True)
def test_a_catalog_that_does_not_answer_is_unavailable(lake: Lake, door: SecondTables) -> None:
    now = lake.catalog.load(NAME)
    lake.go_away()
    with pytest.raises(Unavailable):
        door.register(SECOND, now.metadata_location)
