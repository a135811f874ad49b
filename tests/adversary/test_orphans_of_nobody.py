"""Attacks on the removal of orphan files: files of others in a place that the owner of a table names, clocks that jump.

And garbage that was never removed: where the table keeps nothing any more, and where another one lay before.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

import pyarrow.parquet as pq
import pytest
from pyiceberg.table import Table
from pyiceberg.table.update import SetLocationUpdate

from icewright.actions.remove_files.orphans.file_names import WRITTEN_NAMES, is_staging, written_by
from icewright.api_client.client import Client
from icewright.core import fault_points as faults
from icewright.core.clock import Uptime, noted
from icewright.core.codec import dumps
from icewright.core.errors import NotAllowed
from icewright.core.fault_points import Fault
from icewright.core.system_clock import system_uptime
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.deletion import IntentState
from icewright.model.actions.remove_files import Doubt, RemoveOrphanFiles
from icewright.model.events.feed import FactKind, FeedFilter
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.plans.plans import Plan
from icewright.model.work.tasks import TaskState
from icewright.ports.store import WaitingPlan
from icewright.terminal.address import read_address
from tests.actions.remove_files.test_expired_files_adapter import expired
from tests.builders.command_line import icewright, within
from tests.builders.orphan_lake import ALL, DAY_MS, OrphanLake
from tests.lakes.house import House, all_there, files, litter, location, on_disk
from tests.lakes.sqlite import append, files_of, make_table, rows, table_name, with_tables, writer

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


def aged(paths: Iterable[str], days: int) -> None:
    """As if nobody had touched these files for so many days."""
    for path in paths:
        written_at = Path(path).stat().st_mtime - days * DAY_MS / 1000
        os.utime(path, (written_at, written_at))


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
    return sum(house.control.deletions.count_intents(run.run_id)[IntentState.QUARANTINED].files for run in runs)


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


def pointed_away(house: House, **more: str) -> tuple[Table, Path]:
    """A table whose data and metadata lie elsewhere, and garbage below its location, where nothing is needed."""
    elsewhere = f"{house.entry.warehouse}/elsewhere"
    paths = {"write.data.path": f"{elsewhere}/data", "write.metadata.path": f"{elsewhere}/metadata"}
    table = house.table(**paths, **more)
    (location(table) / "data").mkdir(parents=True)
    (left,) = litter(table, "left.parquet")
    return table, left


class TestNothingKnownHere:
    """Data lies at ``write.data.path``, metadata at ``write.metadata.path``, and garbage below the location."""

    def test_garbage_where_the_table_has_nothing_goes_by_approval(self, house: House) -> None:
        table, left = pointed_away(house)
        report = left.with_name("report.parquet")
        report.write_bytes(b"of somebody")
        house.days(9, a_day=1)
        (action,) = plan_of(house).actions
        assert isinstance(action, RemoveOrphanFiles)
        assert [(file.path, file.doubt) for file in action.files] == [(f"file://{left}", Doubt.NOTHING_KNOWN)]
        house.control.dispatcher.approve(waiting(house).plan_id, "Ada")
        house.round()
        assert (left.exists(), report.exists(), all_there(table)) == (False, True, True)

    def test_nothing_goes_where_a_needed_file_was_not_found(self, house: House) -> None:
        """What is missing elsewhere may be what is here, by another name."""
        table, left = pointed_away(house)
        needed = on_disk(next(path for path in files_of(table) if path.endswith(".parquet")))
        append(table.refresh(), range(5))
        for number in range(200):  # one of so many is not enough to disbelieve the listing
            (location(table).parent.parent / "elsewhere" / "data" / f"x{number}").touch()
        needed.rename(left.with_name("00000-0-2dd664f9-d2c4-4ffe-878f-c6c70c1fb0cb.parquet"))
        house.days(9, a_day=1)
        assert left.exists()
        assert house.control.tables.waiting(limit=1) == []

    def test_nothing_goes_where_a_needed_file_lies_outside_of_all_roots(self, house: House, tmp_path: Path) -> None:
        table, left = pointed_away(house)
        moved_to = tmp_path / "warehouse" / "imported.parquet"
        pq.write_table(rows(range(3)), moved_to)
        table.refresh().add_files([moved_to.as_uri()])
        house.days(9, a_day=1)
        assert left.exists()
        assert house.control.tables.waiting(limit=1) == []

    def test_without_roots_of_the_catalog_nothing_is_believed(self, tmp_path: Path) -> None:
        house = House(tmp_path, limited=False)
        table, left = pointed_away(house)
        house.days(9, a_day=1)
        assert (house.look(table_name(table)).reason.code, left.exists()) == ("nothing-in-common", True)


class TestMadeAnew:
    """A table was dropped without purge and made anew at its location: the old files lie in the new one's place."""

    def made_anew(
        self, house: House, days: int = 40, old: Table | None = None
    ) -> tuple[Table, str, dict[str, bytes], Path]:
        """The new table, the uuid of the old one, its files, untouched for so many days, and its metadata."""
        old = house.table() if old is None else old
        left = files(location(old))
        writer(house.entry).drop_table(("db", "events"))
        aged(left, days)
        new = house.table()
        assert location(new) == location(old)
        return new, str(old.metadata.table_uuid), left, on_disk(old.metadata_location)

    def declare(self, house: House, table: Table, uuid: str) -> None:
        house.control.gone.declare(table_name(table), uuid, "Ada", house.clock.now())

    def approved_and_gone(self, house: House) -> tuple[Table, str, dict[str, bytes], Path]:
        made = table, uuid, left, _ = self.made_anew(house)
        self.declare(house, table, uuid)
        house.days(9, a_day=1)
        house.control.dispatcher.approve(waiting(house).plan_id, "Ada")
        house.round()
        assert (files(location(table)).keys() & left.keys(), all_there(table)) == (set(), True)
        return made

    def commit_elsewhere(self, tmp_path: Path, metadata: Path) -> Table:
        """A catalog that is not configured has the old table, and writes to it."""
        other = with_tables(CatalogEntry("other", CatalogKind.SQL, f"sqlite:///{tmp_path}/other.db", str(tmp_path)))
        writer(other).create_namespace("db")
        alive = writer(other).register_table(("db", "alive"), metadata.as_uri())
        alive.transaction().set_properties(said="hello").commit_transaction()
        return alive

    def test_nothing_goes_by_itself_and_the_uuid_is_named(self, house: House) -> None:
        table, uuid, left, _ = self.made_anew(house)
        house.days(9, a_day=1)
        said = house.look(table_name(table)).reason
        assert (said.code, uuid in said.text, "declare-gone" in said.text) == ("place-not-owned", True, True)
        assert files(location(table)).items() >= left.items()
        assert house.control.tables.waiting(limit=1) == []

    def test_a_person_names_the_uuid_and_approves_and_all_of_it_goes(self, house: House) -> None:
        table, uuid, left, _ = self.made_anew(house)
        house.days(1)
        self.declare(house, table, uuid)
        house.days(6, a_day=2)
        assert house.control.tables.waiting(limit=1) == [], "the grace begins with the declaration"
        house.days(3, a_day=2)
        plan = plan_of(house)
        (action,) = plan.actions
        assert isinstance(action, RemoveOrphanFiles)
        assert (action.gone, {file.path for file in action.files}) == ((uuid,), {f"file://{path}" for path in left})
        assert {file.doubt for file in action.files} == {Doubt.GONE_TABLE}
        assert uuid in plan.reason.text
        assert files(location(table)).items() >= left.items(), "not without approval"
        house.control.dispatcher.approve(plan.plan_id, "Ada")
        house.round()
        assert (files(location(table)).keys() & left.keys(), all_there(table)) == (set(), True)
        assert house.undo(house.tasks()[-1].task_id).state is TaskState.SUCCEEDED
        assert files(location(table)).items() >= left.items(), "it can be taken back"

    def test_what_expired_of_the_new_one_goes_as_well(self, house: House) -> None:
        table, uuid, left, _ = self.made_anew(house)
        with table.refresh().transaction() as change:
            change.set_properties({"icewright.expire-snapshots.remove-files": "true"})
        before = files(location(table)).keys() - left.keys()
        table.refresh().overwrite(rows(range(5)))
        house.days(0.25)
        expired(house, table)
        house.days(2, a_day=1)
        assert files(location(table)).keys() >= before, "metadata of the old one lies beside its own"
        self.declare(house, table, uuid)
        house.days(2, a_day=1)
        plans = [
            plan for plan in house.control.tables.waiting(limit=10) if plan.kind is ActionKind.REMOVE_EXPIRED_FILES
        ]
        house.control.dispatcher.approve(plans[0].plan_id, "Ada")
        house.round()
        assert before - files(location(table)).keys()
        assert files(location(table)).items() >= left.items()
        assert all_there(table)

    def test_what_is_in_quarantine_is_purged_after_its_week(self, house: House) -> None:
        table, _, _, _ = self.approved_and_gone(house)
        house.days(9, a_day=1)
        assert (files(house.held), all_there(table)) == ({}, True)

    def test_metadata_of_the_last_thirty_days_stays(self, house: House) -> None:
        table, uuid, left, _ = self.made_anew(house, days=10)
        self.declare(house, table, uuid)
        house.days(9, a_day=1)
        (action,) = plan_of(house).actions
        assert isinstance(action, RemoveOrphanFiles)
        young = {f"file://{path}" for path in left if path.endswith(".metadata.json")}
        assert {file.path for file in action.files} == {f"file://{path}" for path in left} - young

    def test_what_was_written_a_week_ago_is_not_gone(self, house: House) -> None:
        table, uuid, left, _ = self.made_anew(house, days=5)
        self.declare(house, table, uuid)
        house.days(9, a_day=1)
        said = house.look(table_name(table)).reason
        assert (said.code, "committed to less than 7 d before" in said.text) == ("place-not-owned", True)
        assert files(location(table)).items() >= left.items()

    def test_a_table_further_down_is_not_gone_by_anybodys_word(self, house: House) -> None:
        """Its metadata is not where it is looked for again before files go: a commit to it would not be seen."""
        table = house.table()
        catalog = writer(house.entry)
        below = catalog.create_table(("db", "below"), table.schema(), location=f"file://{location(table)}/old")
        append(below, range(5))
        left = files(location(below))
        catalog.drop_table(("db", "below"))
        aged(left, 40)
        house.days(1)
        self.declare(house, table, str(below.metadata.table_uuid))
        house.days(9, a_day=1)
        assert house.look(table_name(table)).reason.code == "place-not-owned"
        assert (files(location(below)), moved(house)) == (left, 0)

    def test_a_declaration_is_for_the_place_as_it_was(self, house: House, tmp_path: Path) -> None:
        """Who owns the table points its location at a backup of the old one."""
        table, uuid, left, _ = self.made_anew(house)
        self.declare(house, table, uuid)
        backup = tmp_path / "warehouse" / "backup" / "events"
        shutil.copytree(location(table), backup)
        for path in left:
            shutil.copystat(path, backup / Path(path).relative_to(location(table)))
        for copied in backup.glob("metadata/*.json"):  # but for the new one's, which would be no part of its history
            if uuid not in copied.read_text():
                copied.unlink()
        there = files(backup)
        with table.refresh().transaction() as change:
            change._apply((SetLocationUpdate(location=backup.as_uri()),))
        append(table.refresh(), range(3))
        house.days(9, a_day=1)
        assert "declared gone from another place" in house.look(table_name(table)).reason.text
        assert files(backup).items() >= there.items()
        assert house.control.tables.waiting(limit=1) == []

    def test_the_word_is_asked_for_and_is_in_the_audit(
        self, house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What nobody here can see is a catalog that is not configured: who declares says that none has the table."""
        _, uuid, _, _ = self.made_anew(house)
        declare = ("table", "declare-gone", "lake.db.events")
        with within(house, monkeypatch):
            house.round()
            found = icewright("orphans", "lake.db.events")
            assert (found.status, uuid in found.out) == (1, True)
            for options in ((), ("--yes",), ("--in-no-catalog",)):
                assert icewright(*declare, uuid, *options).status == 1
            address = read_address(tmp_path / "state" / "server.json")
            with (
                Client(address.url, address.token) as client,
                pytest.raises(NotAllowed, match="catalog that is not configured"),
            ):
                client.declare_gone("lake.db.events", uuid, "Ada", in_no_catalog=False)
            assert list(house.control.gone.declared()) == []
            assert icewright(*declare, "no-uuid", "--in-no-catalog", "--yes", "--by", "Ada").status == 2
            assert icewright(*declare, uuid, "--in-no-catalog", "--yes", "--by", "Ada").status == 0
            ((name, one),) = house.control.gone.declared()
            assert (str(name), one.uuid, one.declared_by) == ("lake.db.events", uuid, "owner (Ada)")
            assert icewright("orphans", "lake.db.events").status == 0
            said = icewright("audit", "list", "--json").out
            assert uuid in said, said
            assert icewright(*declare, uuid, "--withdraw").status == 0
            found = icewright("orphans", "lake.db.events")
            assert (found.status, "which was withdrawn" in found.out) == (1, True)

    def test_of_two_tables_of_before_both_are_named(self, house: House) -> None:
        between, first, _, _ = self.made_anew(house)
        table, second, left, _ = self.made_anew(house, old=between)
        self.declare(house, table, first)
        house.days(9, a_day=1)
        said = house.look(table_name(table)).reason
        assert (said.code, first in said.text, second in said.text) == ("place-not-owned", False, True)
        assert files(location(table)).items() >= left.items()

    def test_a_commit_from_a_catalog_that_is_not_configured_ends_it(self, house: House, tmp_path: Path) -> None:
        """Between the approval and the removal, and a declaration is not needed to see that."""
        table, uuid, _, metadata = self.made_anew(house)
        self.declare(house, table, uuid)
        house.days(9, a_day=1)
        plan_id = waiting(house).plan_id
        alive = self.commit_elsewhere(tmp_path, metadata)
        there = files(location(table))
        house.control.dispatcher.approve(plan_id, "Ada")
        house.days(2, a_day=1)
        assert (files(location(table)).items() >= there.items(), all_there(alive)) == (True, True)
        assert "committed to less than 7 d before, or since" in house.look(table_name(table)).reason.text

    def test_a_commit_after_the_removal_keeps_the_files_from_the_purge(self, house: House, tmp_path: Path) -> None:
        table, _, left, metadata = self.approved_and_gone(house)
        held = files(house.held)
        (copy,) = (path for path in held if path.endswith(metadata.name))
        metadata.write_bytes(held[copy])
        self.commit_elsewhere(tmp_path, metadata)
        house.days(10, a_day=1)
        assert files(house.held) == held
        assert house.undo(house.tasks()[-1].task_id).state in (TaskState.SUCCEEDED, TaskState.FAILED)
        assert files(location(table)).items() >= left.items()

    def test_a_catalog_that_is_configured_has_it(self, house: House) -> None:
        """It was renamed, not dropped; or it is registered again, before the removal or after it."""
        table, uuid, left, metadata = self.made_anew(house)
        again = writer(house.entry).register_table(("db", "again"), metadata.as_uri())
        with pytest.raises(NotAllowed, match=r"lake\.db\.again"):
            self.declare(house, table, uuid)
        writer(house.entry).drop_table(("db", "again"))
        house.clock.advance(1_000)
        self.declare(house, table, uuid)
        house.days(9, a_day=1)
        plan_id = waiting(house).plan_id
        again = writer(house.entry).register_table(("db", "again"), metadata.as_uri())
        house.control.dispatcher.approve(plan_id, "Ada")
        house.days(2, a_day=1)
        assert (files(location(table)).items() >= left.items(), all_there(again)) == (True, True)

    def test_what_is_registered_again_after_the_removal_keeps_its_files_from_the_purge(self, house: House) -> None:
        _, _, left, metadata = self.approved_and_gone(house)
        held = files(house.held)
        (copy,) = (path for path in held if path.endswith(metadata.name))
        metadata.write_bytes(held[copy])
        again = writer(house.entry).register_table(("db", "again"), metadata.as_uri())
        house.days(10, a_day=1)
        assert files(house.held) == held
        house.undo(house.tasks()[-1].task_id)
        assert (all_there(again), list(files(house.held))) == (True, [copy]), "what is there already stays held"
        assert left.keys() <= files(location(again)).keys()

    def test_files_that_another_table_imported_from_it_stay(self, house: House) -> None:
        table, uuid, left, _ = self.made_anew(house)
        imported = next(path for path in left if path.endswith(".parquet"))
        other = make_table(house.entry, ("db", "other"), properties={"icewright.mode": "observe"})
        other.add_files([f"file://{imported}"])
        self.declare(house, table, uuid)
        house.days(9, a_day=1)
        assert (house.control.tables.waiting(limit=1), all_there(other)) == ([], True)

    def test_files_that_the_new_table_took_over_stay(self, house: House) -> None:
        table, uuid, left, _ = self.made_anew(house)
        imported = next(path for path in left if path.endswith(".parquet"))
        table.refresh().add_files([f"file://{imported}"])
        self.declare(house, table, uuid)
        house.days(9, a_day=1)
        house.control.dispatcher.approve(waiting(house).plan_id, "Ada")
        house.round()
        assert (Path(imported).exists(), all_there(table)) == (True, True)
        assert files(location(table)).keys() & left.keys() == {imported}

    def test_withdrawn_nothing_goes_and_nothing_is_purged(self, house: House) -> None:
        table, uuid, left, _ = self.approved_and_gone(house)
        held = files(house.held)
        house.control.gone.withdraw(table_name(table), uuid)
        house.restart()
        house.days(10, a_day=1)
        assert files(house.held) == held
        assert house.undo(house.tasks()[-1].task_id).state is TaskState.SUCCEEDED
        house.days(9, a_day=1)
        assert files(location(table)).items() >= left.items()
        assert house.control.tables.waiting(limit=1) == []
        assert list(house.control.gone.declared()) == []

    def test_withdrawn_after_the_approval_nothing_goes(self, house: House) -> None:
        table, uuid, left, _ = self.made_anew(house)
        self.declare(house, table, uuid)
        house.days(9, a_day=1)
        plan_id = waiting(house).plan_id
        house.control.gone.withdraw(table_name(table), uuid)
        house.control.dispatcher.approve(plan_id, "Ada")
        house.round()
        assert files(location(table)).items() >= left.items()

    def test_a_declaration_goes_with_the_table_and_outlives_the_server(self, house: House) -> None:
        """It is for the very table: one of its name that is made anew once more has none."""
        table, uuid, _, _ = self.made_anew(house)
        self.declare(house, table, uuid)
        house.restart()
        house.round()
        assert [(str(name), one.uuid) for name, one in house.control.gone.declared()] == [("lake.db.events", uuid)]
        writer(house.entry).rename_table(("db", "events"), ("db", "renamed"))
        house.days(1, a_day=2)
        assert [str(name) for name, _ in house.control.gone.declared()] == ["lake.db.renamed"]
        writer(house.entry).drop_table(("db", "renamed"))
        again = house.table()
        house.days(1, a_day=2)
        assert list(house.control.gone.declared()) == []
        assert house.look(table_name(again)).reason.code == "place-not-owned"


class Died(BaseException):
    """The process is gone."""


def test_a_removal_that_died_three_times_says_so_in_its_own_words(house: House) -> None:
    """No word of snapshots: it commits nothing. How far it came is what a person has to know."""
    table = house.table()
    litter(table, *(f"{number}.parquet" for number in range(5)))
    house.days(9, a_day=1)
    task_id = house.control.dispatcher.approve(waiting(house).plan_id, "Ada").task_id

    def die(at: Fault) -> None:
        if at is Fault.DELETION_FILE_DONE:
            raise Died

    faults.arm(die)
    try:
        for _ in range(9):
            with suppress(Died):
                house.control.loop.round()
            house.restart()
            house.clock.advance(600_000)
    finally:
        faults.arm(None)
    task = house.control.tasks.get(task_id)
    assert task.outcome is not None
    said = task.outcome.reason
    assert (task.state, said.code) == (TaskState.FAILED, "broke-off")
    assert "try 3 of 3 broke off" in said.text
    assert said.text.endswith("of 5 files 3 in quarantine, 2 at their places")
    record = house.control.tables.record(task.table_id)
    assert record is not None
    assert said.text in dumps(house.control.explainer.why(record))
    told = house.control.tasks.feed.after(0, 1_000, FeedFilter()).told
    assert [one.fact.reason for one in told if one.fact.fact is FactKind.FAILED] == [said]
    assert all_there(table)
