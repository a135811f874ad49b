"""Attacks on the removal of orphan files: files of others in a place that the owner of a table names."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

import pytest
from pyiceberg.table import Table
from pyiceberg.table.update import SetLocationUpdate

from icewright.adapters.clock import system_uptime
from icewright.domain.clock_notes import Uptime, noted
from icewright.domain.deletion import IntentState
from icewright.domain.errors import NotAllowed
from icewright.domain.file_names import WRITTEN_NAMES, is_staging, written_by
from icewright.domain.locations import CanonicalPath
from icewright.domain.plans import Plan
from icewright.domain.remove_orphan_files import Doubt, RemoveOrphanFiles
from icewright.domain.tasks import TaskState
from icewright.ports.store import WaitingPlan
from tests.lakes.house import House, all_there, files, litter
from tests.lakes.sqlite import append, table_name
from tests.services.orphan_lake import ALL, DAY_MS, OrphanLake

REPORTS = tuple(f"report-{number}.xlsx" for number in range(20))
SPARKS = tuple(f"part-{number:05d}-{uuid5(NAMESPACE_URL, 'job')}-c000.snappy.parquet" for number in range(20))


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def approved_once(house: House) -> Table:
    """A table of which a person has approved one small removal."""
    table = house.table()
    litter(table, "first.parquet", content=b"")
    house.days(10)
    house.control.dispatcher.approve(waiting(house).plan_id, "Ada")
    house.round()
    assert [task.state for task in house.tasks()] == [TaskState.SUCCEEDED]
    return table


def point_at(table: Table, folder: Path, names: Iterable[str]) -> None:
    """The owner says that the table lies in somebody's folder, and writes there."""
    folder.mkdir()
    for name in names:
        (folder / name).write_bytes(b"")
    with table.refresh().transaction() as change:
        change._apply((SetLocationUpdate(location=folder.as_uri()),))
    append(table.refresh(), range(1000, 1100))


def waiting(house: House) -> WaitingPlan:
    (found,) = house.control.tables.waiting(limit=10)
    return found


def plan_of(house: House) -> Plan:
    found = house.control.tables.plan(waiting(house).plan_id)
    assert found is not None
    return found


def moved(house: House) -> int:
    """Files that were moved in any run, live or not."""
    runs = house.control.deletions.runs(limit=100)
    return sum(house.control.deletions.tally(run.run_id)[IntentState.QUARANTINED].files for run in runs)


def test_f3_files_of_somebody_never_go_without_a_question(house: House) -> None:
    table = approved_once(house)
    before = moved(house)
    folder = Path(table.location()[len("file://") :]).parent / "finance"
    point_at(table, folder, REPORTS)
    house.days(12)
    assert waiting(house).reason.code == "doubtful-files"
    assert (moved(house) - before, [name for name in REPORTS if not (folder / name).exists()]) == (0, [])
    (action,) = plan_of(house).actions
    assert isinstance(action, RemoveOrphanFiles)
    assert {file.doubt for file in action.files if file.path.endswith(".xlsx")} == {Doubt.UNFAMILIAR}
    with pytest.raises(NotAllowed, match="approved first"):
        house.control.dispatcher.apply(plan_of(house).plan_id)
    assert all_there(table)


def test_f3_an_approval_is_for_the_place_too(house: House) -> None:
    """The files are called as Spark calls them: somebody's table of plain Parquet."""
    table = approved_once(house)
    before = moved(house)
    folder = Path(table.location()[len("file://") :]).parent / "sales"
    point_at(table, folder, SPARKS)
    os.utime(folder / SPARKS[0], (1_500_000_000, 1_500_000_000))
    house.days(12)
    assert waiting(house).reason.code in ("other-place", "beyond-budget", "doubtful-files")
    assert (moved(house) - before, [name for name in SPARKS if not (folder / name).exists()]) == (0, [])


def test_f3_a_place_is_asked_for_also_where_all_is_within_the_budget(house: House) -> None:
    table = approved_once(house)
    folder = Path(table.location()[len("file://") :]).parent / "small"
    point_at(table, folder, ())
    (left,) = litter(table.refresh(), "second.parquet", content=b"")
    house.days(12)
    assert (waiting(house).reason.code, left.exists()) == ("other-place", True)
    house.control.dispatcher.approve(waiting(house).plan_id, "Ada")
    house.round()
    (third,) = litter(table.refresh(), "third.parquet", content=b"")
    house.days(12)
    assert (left.exists(), third.exists(), all_there(table)) == (False, False, True)


def test_f3_without_roots_of_the_catalog_each_removal_is_approved(tmp_path: Path) -> None:
    house = House(tmp_path, limited=False)
    table = approved_once(house)
    (left,) = litter(table, "second.parquet", content=b"")
    house.days(12)
    assert (waiting(house).reason.code, left.exists()) == ("no-roots", True)
    house.control.dispatcher.approve(waiting(house).plan_id, "Ada")
    house.round()
    assert (left.exists(), all_there(table)) == (False, True)


def test_f3_files_in_doubt_wait_and_the_others_go(house: House) -> None:
    table = approved_once(house)
    before = files(house.held)
    (left,) = litter(table, "second.parquet", content=b"")
    report = left.with_name("report.parquet")
    report.write_bytes(b"")
    house.days(12)
    assert (left.exists(), report.exists()) == (False, True)
    assert len(files(house.held).keys() - before.keys()) == 1
    (action,) = plan_of(house).actions
    assert [file.path for file in getattr(action, "files", ())] == [f"file://{report}"]
    house.control.dispatcher.approve(waiting(house).plan_id, "Ada")
    house.round()
    assert (report.exists(), all_there(table)) == (False, True)


def test_f3_the_budget_counts_what_was_listed_and_not_what_manifests_claim() -> None:
    lake = OrphanLake()
    table = lake.table()
    table.commit("data/1.parquet", "data/2.parquet")
    lake.pass_time(DAY_MS)
    lake.write("s3://b/t/data/left.parquet", size_bytes=1_000)
    table.file_bytes = 10**15
    lake.look(table)
    lake.pass_time(10 * DAY_MS)
    found = lake.found(table, policy=ALL)
    assert found.action is not None
    assert found.action.is_beyond_budget
    assert found.action.listed_table_bytes <= found.listed.size_bytes


def test_f3_only_complete_names_of_writers_are_familiar() -> None:
    page = Path("docs/orphan-files.md").read_text(encoding="utf-8")
    for name in WRITTEN_NAMES:
        assert f"| {name.writer} | {name.what} | `{name.example}` |" in page
        path = f"file:///t/data/p=1/{name.example}"
        assert written_by(CanonicalPath(path)) is not None, name
        assert written_by(CanonicalPath(f"file:///t/.{name.example}.crc")) is not None, name
        others = (f"x{name.example}", f"{name.example}.bak", f"{name.example}\n", f"{name.example}.xlsx")
        assert [other for other in others if written_by(CanonicalPath(f"file:///t/{other}"))] == [], name
    strange = (
        "report.parquet",
        "data.avro",
        "part-0.parquet",
        "00000.parquet",
        "snap.avro",
        "x-m0.avro",
        "a/_SUCCESS.txt",
    )
    assert [name for name in strange if written_by(CanonicalPath(f"file:///t/{name}")) is not None] == []
    assert [is_staging(name) for name in ("_temporary", ".spark-staging-1", "_backup", ".git")] == [
        True,
        False,
        False,
        False,
    ]


class TestClockJumps:
    """The clock goes ahead by eight days, and no time has passed."""

    def test_f5_a_file_of_two_minutes_ago_stays(self, house: House) -> None:
        table = approved_once(house)
        before = moved(house)
        (left,) = litter(table, "second.parquet", content=b"")
        house.days(0.5)
        house.jump(8 * DAY_MS)
        house.days(3)
        assert (left.exists(), moved(house) - before) == (True, 0)
        assert house.control.tables.waiting(limit=1) == []
        house.days(9)
        assert (left.exists(), all_there(table)) == (False, True)

    def test_f5_nothing_is_purged_early(self, house: House) -> None:
        table = approved_once(house)
        held = files(house.held)
        assert held
        house.jump(8 * DAY_MS)
        house.days(2)
        assert files(house.held) == held
        house.days(7)
        assert (files(house.held), all_there(table)) == ({}, True)

    def test_f5_a_jump_while_the_server_is_down_counts_too(self, house: House) -> None:
        """The machine is started again, with a clock of next week: nobody has counted that time."""
        approved_once(house)
        held = files(house.held)
        house.boot = 2
        house.jump(8 * DAY_MS)
        house.restart()
        house.days(2)
        assert files(house.held) == held

    def test_f5_a_clock_that_is_set_back_begins_again_as_well(self, house: House) -> None:
        table = approved_once(house)
        (left,) = litter(table, "second.parquet", content=b"")
        house.jump(8 * DAY_MS)
        house.days(1)
        house.jump(-8 * DAY_MS)
        house.days(6)
        assert left.exists()
        house.days(14)  # the table is looked at again when the clock has come to where it was
        assert (left.exists(), all_there(table)) == (False, True)

    def test_f5_the_jump_is_told(self, house: House) -> None:
        table = house.table()
        litter(table, "first.parquet", content=b"")
        house.days(1)
        house.jump(8 * DAY_MS)
        plan = house.look(table_name(table))
        assert (plan.actions, plan.rules[0].code) == ((), "clock-jumped")


def test_f5_what_the_machine_counts_is_compared() -> None:
    hour = 3_600_000
    first = noted(None, 10 * hour, Uptime(hour, 1))
    assert noted(first, 12 * hour, Uptime(3 * hour, 1)).graces_since == 0
    assert noted(first, 12 * hour, Uptime(2 * hour, 1)).graces_since == 12 * hour
    assert noted(first, 9 * hour, Uptime(3 * hour, 1)).graces_since == 9 * hour
    assert noted(first, 30 * hour, Uptime(0, 2)).graces_since == 0
    assert noted(first, 80 * hour, Uptime(0, 2)).graces_since == 80 * hour
    assert noted(first, 9 * hour, Uptime(0, 2)).graces_since == 9 * hour
    now = system_uptime()
    assert now.ms > 0
    assert system_uptime().boot == now.boot
