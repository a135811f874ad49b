"""What every writer of properties must do, shown on the one in memory and on real catalogs: SQL, REST, Hive."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from icewright.core.errors import Conflict, NotFound, TableReplaced, Unavailable
from icewright.model.iceberg.tables import LoggedMetadata, TableMetadata
from tests.cases import each_case
from tests.contracts.lakes import Lake, named
from tests.contracts.test_catalog_contract import EVENTS, KINDS, make_lake

LAYOUT = "icewright.layout"
MODE = "icewright.mode"


@pytest.fixture(params=KINDS)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    made = make_lake(request.param, request, tmp_path)
    made.create(EVENTS, by_city=True)
    return made


def table(lake: Lake) -> TableMetadata:
    return lake.catalog.load(named(EVENTS))


def test_v4_properties_change_and_nothing_else_does(lake: Lake) -> None:
    lake.append(EVENTS, ["Bonn", "Köln"])
    lake.properties.change(table(lake), {MODE: "auto", LAYOUT: "sort(id)"})
    before = table(lake)
    assert (before.properties[MODE], before.properties[LAYOUT]) == ("auto", "sort(id)")
    lake.properties.change(before, {MODE: None, LAYOUT: "hilbert(id, city)"})
    after = table(lake)
    assert after.metadata_location != before.metadata_location
    kept = {key: text for key, text in before.properties.items() if key != MODE}
    assert dict(after.properties) == {**kept, LAYOUT: "hilbert(id, city)"}
    same = replace(
        after,
        properties=before.properties,
        metadata_location=before.metadata_location,
        updated_at=before.updated_at,
        metadata_log=before.metadata_log,
    )
    assert same == before
    assert after.updated_at >= before.updated_at
    assert after.metadata_log == (*before.metadata_log, LoggedMetadata(before.updated_at, before.metadata_location))


def test_writers_go_on_from_it(lake: Lake) -> None:
    first = lake.append(EVENTS, ["Bonn"])
    lake.properties.change(table(lake), {LAYOUT: "sort(id)"})
    second = lake.append(EVENTS, ["Köln"])
    after = table(lake)
    assert [snapshot.snapshot_id for snapshot in after.snapshots] == [first, second]
    assert after.properties[LAYOUT] == "sort(id)"


def test_what_is_so_already_is_not_committed(lake: Lake) -> None:
    lake.properties.change(table(lake), {LAYOUT: "sort(id)"})
    before = table(lake)
    lake.properties.change(before, {LAYOUT: "sort(id)", MODE: None})
    assert table(lake).metadata_location == before.metadata_location


@each_case("text", ['sort(`it\'s "x"`, `a``b`)', "sort(`städte 🧊`)", "", " ", "$1;--\\n", "a\nb"])
def test_any_text_is_kept_as_it_is(lake: Lake, text: str) -> None:
    lake.properties.change(table(lake), {LAYOUT: text})
    assert table(lake).properties[LAYOUT] == text


def test_a_commit_in_between_stays(lake: Lake) -> None:
    seen = table(lake)
    snapshot_id = lake.append(EVENTS, ["Bonn"])
    lake.properties.change(seen, {LAYOUT: "sort(id)"})
    after = table(lake)
    assert after.current_snapshot_id == snapshot_id
    assert after.properties[LAYOUT] == "sort(id)"


def test_a_value_that_somebody_else_changed_is_not_overwritten(lake: Lake) -> None:
    seen = table(lake)
    lake.properties.change(seen, {MODE: "auto"})
    lake.properties.change(seen, {LAYOUT: "sort(id)"})
    before = table(lake)
    with pytest.raises(Conflict):
        lake.properties.change(seen, {MODE: "approve", LAYOUT: None})
    assert table(lake) == before


def test_l4_another_table_of_the_name_is_not_touched(lake: Lake) -> None:
    seen = table(lake)
    lake.drop(EVENTS)
    with pytest.raises(NotFound):
        lake.properties.change(seen, {MODE: "auto"})
    lake.create(EVENTS)
    before = table(lake)
    with pytest.raises(TableReplaced):
        lake.properties.change(seen, {MODE: "auto"})
    assert table(lake) == before


def test_a_catalog_that_is_gone_is_unavailable(lake: Lake) -> None:
    seen = table(lake)
    lake.go_away()
    with pytest.raises(Unavailable):
        lake.properties.change(seen, {MODE: "auto"})
