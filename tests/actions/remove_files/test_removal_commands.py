"""What is moved into quarantine, approved, brought back and purged, from the command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from icewright.actions.remove_files import deleter
from icewright.actions.remove_files import quarantine_scheduler as removal_rounds
from icewright.model.iceberg.names import TableName
from icewright.server.liveness import SILENT_MS_MAX
from tests.builders.command_line import icewright, within, write_configuration
from tests.lakes.house import HOUR_MS, House, all_there, files, litter, location
from tests.lakes.sqlite import SCHEMA, writer


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    with within(House(tmp_path), monkeypatch) as made:
        yield made


def test_garbage_is_shown_approved_removed_and_brought_back(house: House) -> None:
    table = house.table()
    before = files(location(table))
    (left,) = litter(table, "aborted.parquet")
    house.days(0.5)
    assert unneeded() == {
        "once": (1, 22),
        "waiting": (0, 0),
        "removable": (0, 0),
        "moved_since": (0, 0),
        "held": (0, 0),
    }
    said = icewright("remove-orphan-files", "db.events", "--yes")
    assert (said.status, "no file may be removed yet: 1 file that nothing needs was seen" in said.out) == (0, True)
    assert icewright("approve").out == "no plan waits for approval\n"
    assert unneeded()["waiting"] == (1, 22)
    house.days(10)
    assert unneeded()["removable"] == (1, 22)
    told = icewright("table", "storage", "db.events")
    (row,) = [line for line in told.out.splitlines() if line.startswith("removable orphans")]
    assert (" ".join(row.split()), told.status) == ("removable orphans 1 22 B seen for long enough", 0)
    assert "icewright remove-orphan-files lake.db.events" in told.out
    listed = icewright("approve")
    assert (listed.status, "no file of this table was ever removed" in listed.out) == (1, True)
    assert "waiting for approval: 1 plan (`icewright approve`)" in icewright("status").out
    (waiting,) = icewright("approve", "--json").json["items"]
    shown = icewright("approve", waiting["plan_id"], "--show")
    assert (shown.status, str(left) in shown.out, left.exists()) == (0, True, True)
    assert icewright("approve", "--namespace", "lake.other", "--yes").out == "no plan waits for approval\n"
    done = icewright("approve", "--namespace", "lake.db", "--yes", "--by", "Ada", "--json")
    task_id = done.json["task_id"]
    house.round()
    assert files(location(table)) == before
    shown = icewright("tasks", "show", task_id)
    assert "1 file (22 B) moved into quarantine" in shown.out
    assert f"icewright approve {waiting['plan_id']} --show" in shown.out
    said = icewright("tasks", "show", task_id, "--json")
    assert (left.name in said.out, said.json["files_at"]) == (False, f"/api/v1/plans/{waiting['plan_id']}/files")
    held = icewright("quarantine", "list")
    assert (task_id in held.out, "Ada" in held.out) == (True, True)
    seen = unneeded()
    assert (seen["removable"], seen["moved_since"], seen["held"]) == ((1, 22), (1, 22), (1, 22))
    told = icewright("table", "storage", "db.events")
    (held_row,) = [line for line in told.out.splitlines() if line.startswith("in quarantine")]
    assert " ".join(held_row.split()).startswith("in quarantine 1 22 B purged from 2")
    house.days(1, a_day=1)
    seen = unneeded()
    assert (seen["removable"], seen["moved_since"], seen["held"]) == ((0, 0), (0, 0), (1, 22))
    purged = icewright("quarantine", "purge", task_id)
    assert ("0 so far" in purged.out, "to be purged from" in purged.out, len(files(house.held))) == (True, True, 1)
    undone = icewright("undo", task_id)
    assert (undone.status, "1 file (22 B)" in undone.out, left.exists()) == (1, True, False)
    assert icewright("undo", task_id, "--yes").status == 0
    house.round()
    assert files(location(table)) == {**before, str(left): b"PAR1 nobody needs this"}
    assert icewright("quarantine", "list").out == "nothing is in quarantine\n"
    assert all_there(table)


def test_l4_files_of_a_table_that_is_gone_wait_for_a_persons_word(house: House) -> None:
    table = house.table()
    (left,) = litter(table, "aborted.parquet")
    house.days(8.5, a_day=1)
    task_id = icewright("approve", "--namespace", "lake.db", "--yes", "--by", "Ada", "--json").json["task_id"]
    house.round()
    held = files(house.held)
    assert list(held.values()) == [b"PAR1 nobody needs this"]
    there = icewright("quarantine", "purge-gone", task_id, "--yes", "--by", "Ada")
    assert (there.status, "lake.db.events is there" in there.err) == (1, True)
    at = table.metadata_location
    writer(house.entry).drop_table(("db", "events"))
    house.days(9, a_day=1)
    assert files(house.held) == held
    said = icewright("quarantine", "list")
    assert ("not automatically" in said.out, "lake.db.events is gone since" in said.err) == (True, True)
    shown = icewright("quarantine", "purge-gone", task_id)
    assert (shown.status, left.name in shown.out, files(house.held)) == (1, True, held)
    writer(house.entry).register_table(("db", "again"), at)
    again = icewright("quarantine", "purge-gone", task_id, "--yes", "--by", "Ada")
    assert (again.status, "lake.db.again" in again.out, files(house.held)) == (1, True, held)
    writer(house.entry).drop_table(("db", "again"))
    house.clock.advance(2 * HOUR_MS)
    gone = icewright("quarantine", "purge-gone", task_id, "--yes", "--by", "Ada")
    assert (gone.status, "1 so far" in gone.out, files(house.held)) == (0, True, {})
    assert icewright("quarantine", "list").out == "nothing is in quarantine\n"


def test_who_waits_for_a_purge_is_told_what_keeps_it(house: House) -> None:
    table = house.table()
    litter(table, "aborted.parquet")
    house.days(8.5, a_day=1)
    task_id = icewright("approve", "--namespace", "lake.db", "--yes", "--by", "Ada", "--json").json["task_id"]
    house.round()
    held = files(house.held)
    writer(house.entry).create_table("db.around", SCHEMA, location=house.held.as_uri())
    house.days(8, a_day=1)
    assert icewright("quarantine", "list").err == ""
    house.days(1, a_day=1)
    listed = icewright("quarantine", "list")
    assert f"past their window by more than a day; `icewright quarantine purge {task_id}` says" in listed.err
    purged = icewright("quarantine", "purge", task_id)
    (why,) = [line for line in purged.out.splitlines() if line.startswith("but ")]
    assert ("belongs to this table alone, and stay: " in why, "lake.db.around" in why) == (True, True)
    assert held.items() <= files(house.held).items()
    writer(house.entry).drop_table(("db", "around"))
    house.days(2, a_day=1)
    assert held.items() <= files(house.held).items(), "it may be hidden from us, and in use"
    house.control.registry.declare_lost(TableName("lake", ("db",), "around"), "Ada")
    house.days(2, a_day=1)
    assert not held.keys() & files(house.held).keys()


def unneeded() -> dict[str, tuple[int, int]]:
    """What ``table storage`` says that the server knows, as files and bytes."""
    found = icewright("table", "storage", "db.events", "--json").json["unneeded"]
    seen, held = found["orphans"]["seen"], found["quarantine"]
    sums = {
        **{key: seen[key] for key in ("once", "waiting", "removable")},
        "moved_since": found["orphans"]["moved_since"],
    }
    return {key: (one["files"], one["size_bytes"]) for key, one in {**sums, "held": held}.items()}


def test_without_a_server_nobody_says_that_there_are_no_orphans(house: House, tmp_path: Path) -> None:
    house.table()
    (tmp_path / "state" / "server.json").unlink()
    said = icewright("table", "storage", "db.events", "--json")
    assert (said.status, said.json["unneeded"], said.json["not_asked"]["code"]) == (0, None, "unavailable")
    told = icewright("table", "storage", "db.events").out
    assert "orphan files and quarantine: not known: " in told
    assert "orphans seen" not in told


def test_before_the_first_search_orphans_are_not_known(house: House) -> None:
    house.table(**{"icewright.remove-orphan-files.enabled": "false"})
    house.round()
    assert icewright("table", "storage", "db.events", "--json").json["unneeded"]["orphans"] is None
    told = icewright("table", "storage", "db.events").out
    assert "not known: no search for them is complete" in told
    assert "icewright remove-orphan-files lake.db.events" in told


def test_status_warns_of_what_hangs(house: House) -> None:
    pulse = house.control.loop._pulse
    pulse.begin("removals", "remove_files")
    house.clock.advance(SILENT_MS_MAX)
    said = icewright("status").out
    assert ("removals: remove files, since" in said, "hangs" in said) == (True, False)
    house.clock.advance(1)
    assert "removals hangs: no sign of life since" in icewright("status").out
    pulse.end()


def test_a_purge_goes_by_pages_and_tells_how_far_it_is(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each page is one request: what takes long is cut off by whatever is in between."""
    table = house.table()
    for number in range(3):
        litter(table, f"{number}.parquet")
    house.days(10)
    (waiting,) = icewright("approve", "--json").json["items"]
    task_id = icewright("approve", waiting["plan_id"], "--by", "Ada", "--json").json["task_id"]
    house.round()
    house.clock.advance(8 * 24 * 3_600_000)
    monkeypatch.setattr(removal_rounds, "PAGE_BATCHES", 1)
    monkeypatch.setattr(deleter, "BATCH_FILES", 1)
    purged = icewright("quarantine", "purge", task_id, "--show-api")
    assert ("3 so far" in purged.out, files(house.held)) == (True, {})
    assert [f"{n} purged" in purged.err for n in (1, 2, 3)] == [True, True, True]
    assert purged.err.count("/purge") == 4
    assert icewright("quarantine", "purge", task_id, "--json").json["next_cursor"] is None


@pytest.mark.usefixtures("house")
def test_who_has_no_name_says_who_approves(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise KeyError("getpwuid(): uid not found: 1000")

    monkeypatch.setattr("getpass.getuser", nobody)
    assert icewright("approve").out == "no plan waits for approval\n"
    refused = icewright("approve", "plan-1")
    assert (refused.status, "--by NAME" in refused.err) == (2, True)


def test_what_was_not_looked_for_by_a_server_is_not_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(tmp_path)
    house.table()
    write_configuration(tmp_path, house.entry)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    said = icewright("remove-orphan-files", "db.events")
    assert (said.status, "looked for by the server alone" in said.err) == (1, True)


def test_two_ways_to_say_what_is_approved_are_one_too_many(house: House) -> None:
    house.table()
    said = icewright("approve", "plan-1", "--namespace", "lake.db")
    assert (said.status, "leave one of the two out" in said.err) == (2, True)
    said = icewright("approve", "plan-1", "--action", "expire-data")
    assert (said.status, "leave one of the two out" in said.err) == (2, True)
    assert icewright("approve", "plan-1").status == 2
    assert icewright("quarantine", "purge", "task-1").status == 2


def test_one_table_that_may_not_be_touched_any_more_keeps_no_other_from_being_approved(house: House) -> None:
    tables = [house.table(name) for name in ("first", "second", "third")]
    for table in tables:
        litter(table, "aborted.parquet")
    house.days(10)
    assert "waiting for approval: 3 plans" in icewright("status").out
    owner = tables[0].transaction()
    owner.set_properties({"icewright.mode": "observe"})
    owner.commit_transaction()
    done = icewright("approve", "--namespace", "lake.db", "--yes", "--by", "Ada")
    assert (done.status, "is in mode observe" in done.err) == (1, True)
    house.round()
    assert sorted(str(task.table_name) for task in house.tasks()) == ["lake.db.second", "lake.db.third"]


def test_x3_what_is_approved_together_is_of_the_kind_that_was_meant_and_beyond_no_budget(house: House) -> None:
    small, large = house.table("small"), house.table("large")
    litter(small, "aborted.parquet")
    litter(large, "aborted.parquet", content=b"PAR1" * 10_000)
    house.days(10)
    waiting = {one["table"]: one for one in icewright("approve", "--json").json["items"]}
    codes = {table: one["reason"]["code"] for table, one in waiting.items()}
    assert codes == {"lake.db.small": "first-removal", "lake.db.large": "beyond-budget"}
    by_kind = ("approve", "--namespace", "lake.db", "--yes", "--by", "Ada", "--action")
    assert icewright(*by_kind, "expire-snapshots").out == "no plan waits for approval\n"
    assert len(icewright("approve", "--action", "remove-orphan-files", "--json").json["items"]) == 2
    done = icewright(*by_kind, "remove-orphan-files")
    assert (done.status, "left out: 1 plan beyond a budget" in done.err) == (0, True)
    assert [str(task.table_name) for task in house.tasks()] == ["lake.db.small"]
    again = icewright(*by_kind, "remove-orphan-files", "--json")
    assert (again.status, again.out, "icewright approve PLAN_ID" in again.err) == (1, "", True)
    assert icewright("approve", waiting["lake.db.large"]["plan_id"], "--by", "Ada").status == 0
    assert icewright("approve").out == "no plan waits for approval\n"
