"""``icewright policy``: an owner says what is wanted, sees what follows, and only then does it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from icewright.core.codec import from_json
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.policy.views import PolicyChangeView, PolicyView
from tests.builders.command_line import at_home, icewright, write_configuration
from tests.cases import each_case
from tests.lakes.sqlite import append, make_lake, make_table, writer

EVENTS = ("db", "events")


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CatalogEntry:
    entry = make_lake(tmp_path)
    append(make_table(entry, EVENTS), range(3))
    write_configuration(tmp_path, entry)
    at_home(tmp_path, monkeypatch)
    return entry


def properties(lake: CatalogEntry) -> Mapping[str, str]:
    return writer(lake).load_table(EVENTS).properties


def test_nothing_is_done_before_somebody_says_yes(lake: CatalogEntry) -> None:
    before = writer(lake).load_table(EVENTS).metadata_location
    said = icewright("policy", "set", "db.events", "layout=sort(id)", "mode=auto")
    assert said.status == 1
    assert "icewright.layout  -       sort(id)" in said.out
    assert said.out.endswith("Nothing has been changed yet: add --yes to do it.\n")
    assert writer(lake).load_table(EVENTS).metadata_location == before


def test_set_and_unset(lake: CatalogEntry) -> None:
    said = icewright("policy", "set", "db.events", "layout=Sort( id desc )", "icewright.mode=auto", "--yes")
    assert (said.status, said.out.splitlines()[-1]) == (0, "Done.")
    assert "layout  sort(id desc) (table property)" in said.out
    assert "Plans run without approval." in said.out
    assert properties(lake)["icewright.layout"] == "Sort( id desc )"
    assert properties(lake)["icewright.mode"] == "auto"
    said = icewright("policy", "unset", "db.events", "layout", "--yes")
    assert said.status == 0
    assert "icewright.layout" not in properties(lake)
    assert properties(lake)["icewright.mode"] == "auto"


def test_neither_sort_order_nor_distribution_mode_is_touched(lake: CatalogEntry) -> None:
    before = writer(lake).load_table(EVENTS)
    icewright("policy", "set", "db.events", "layout=hilbert(id, city)", "--yes")
    after = writer(lake).load_table(EVENTS)
    assert after.metadata.sort_orders == before.metadata.sort_orders
    assert "write.distribution-mode" not in after.properties
    assert after.metadata.snapshots == before.metadata.snapshots


def test_what_is_so_already_is_nothing_to_do(lake: CatalogEntry) -> None:
    assert icewright("policy", "set", "db.events", "layout=sort(id)", "--yes").status == 0
    location = writer(lake).load_table(EVENTS).metadata_location
    said = icewright("policy", "set", "db.events", "layout=sort(id)", "--yes")
    assert (said.status, said.out) == (0, "Nothing to change: lake.db.events is so already.\n")
    assert writer(lake).load_table(EVENTS).metadata_location == location


def test_while_a_table_is_only_observed_it_is_said_that_nothing_follows(lake: CatalogEntry) -> None:
    said = icewright("policy", "set", "db.events", "layout=sort(id)", "--yes")
    assert "nothing follows from this before icewright.mode is approve or auto" in said.out
    assert properties(lake)["icewright.layout"] == "sort(id)"


WRONG = [
    (["layout=sort(idd)"], "the layout sort(idd) names idd, which the table does not have; perhaps id is meant"),
    (["layout=sort(ID)"], "perhaps id is meant"),
    (["layout=sort(id"], "at the end: a comma or ) is missing"),
    (["layout=hilbert(id)"], "hilbert is for 2 to 4 columns, and sort for one"),
    (["mode=on"], "icewright.mode: 'on' is not observe, approve or auto"),
    (["layot=sort(id)"], "perhaps icewright.layout is meant"),
    (["write.distribution-mode=range"], "there is no setting 'write.distribution-mode'"),
    (["mode"], "write key=value: mode=auto"),
    (["mode=auto", "icewright.mode=observe"], "icewright.mode is set twice"),
]


@each_case(("settings", "problem"), WRONG)
def test_what_cannot_be_used_is_refused_at_once(lake: CatalogEntry, settings: list[str], problem: str) -> None:
    before = writer(lake).load_table(EVENTS).metadata_location
    said = icewright("policy", "set", "db.events", *settings, "--yes")
    assert said.status == 2
    assert problem in said.err
    assert writer(lake).load_table(EVENTS).metadata_location == before


def test_a_typing_error_that_somebody_made_elsewhere_can_be_removed(lake: CatalogEntry) -> None:
    with writer(lake).load_table(EVENTS).transaction() as transaction:
        transaction.set_properties({"icewright.mod": "auto"})
    said = icewright("policy", "show", "db.events")
    assert said.status == 1
    assert "there is no setting 'icewright.mod'; perhaps icewright.mode is meant" in said.out
    assert icewright("policy", "unset", "db.events", "mod", "--yes").status == 0
    assert icewright("policy", "show", "db.events").status == 0


def test_show_says_every_value_and_where_it_comes_from(lake: CatalogEntry, tmp_path: Path) -> None:
    more = '[[policies]]\ncatalog = "lake"\nnamespace = "db"\nproperties = { "icewright.layout" = "sort(booked_at)" }\n'
    write_configuration(tmp_path, lake, more)
    said = icewright("policy", "show", "db.events")
    assert said.status == 1
    (line,) = [line for line in said.out.splitlines() if line.startswith("layout")]
    assert line.startswith("layout  none, because the layout sort(booked_at) names booked_at, which the table")
    (line,) = [line for line in said.out.splitlines() if line.startswith("icewright.layout ")]
    assert line.split() == ["icewright.layout", "sort(booked_at)", "namespace", "lake.db"]
    assert "cannot be used" not in said.out  # it is no problem of the policy: other tables have the column
    assert "a setting cannot be used" not in icewright("plan", "db.events").out


def test_what_follows_from_a_layout_is_planned_and_explained(lake: CatalogEntry) -> None:
    for _ in range(3):
        append(writer(lake).load_table(EVENTS), range(10))
    settings = ("layout=sort(id)", "level-1.size-bytes=4000")
    assert icewright("policy", "set", "db.events", *settings, "--yes").status == 0
    said = icewright("explain", "db.events").out
    assert "Layout sort(id) (table property)." in said
    assert "of 3.9 KiB gathered in (unpartitioned)." in said
    assert icewright("policy", "set", "db.events", "level-1.size-bytes=1000", "--yes").status == 0
    said = icewright("plan", "db.events").out
    lines = dict(line.split(maxsplit=1) for line in said.splitlines() if len(line.split()) > 1)
    assert (lines["level"], lines["order"]) == ("level-1", "sort(id)")
    assert lines["lookup"] == (
        "one value of id in (unpartitioned) is in 3.7 of these files now (4 at most), in 1.0 afterwards (1 at most); "
        "it has at most 10 values (estimate)"
    )
    assert "Estimated: one value of id in (unpartitioned) is in 3.7 of these" in icewright("explain", "db.events").out
    assert "sort_order => '`id` ASC NULLS FIRST'" in said
    assert "; 1 partition due." in icewright("explain", "db.events").out


@pytest.mark.usefixtures("lake")
def test_all_of_it_as_json() -> None:
    said = icewright("policy", "set", "db.events", "layout=sort(id)", "--json")
    view = from_json(PolicyChangeView, said.json)
    assert [(change.key, change.before, change.after) for change in view.changes] == [
        ("icewright.layout", None, "sort(id)")
    ]
    assert not view.done
    shown = from_json(PolicyView, icewright("policy", "show", "db.events", "--json").json)
    assert shown.layout is None
    assert icewright("policy", "set", "db.events", "layout=sort(id)", "--yes", "--json").json["done"]
    shown = from_json(PolicyView, icewright("policy", "show", "db.events", "--json").json)
    assert shown.layout is not None
    assert (shown.layout.text, shown.layout.key, shown.layout.origin) == ("sort(id)", "sort(1)", "table property")
    said = icewright("policy", "show", "db.nothing", "--json")
    assert (said.status, said.json["error"]["code"]) == (2, "not-found")
