"""Files in the place of one table that another table needs: none is ever moved for good, and none is purged.

Real tables on real files, whose writers know nothing of icewright; the server's clock is moved by the tests.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.table import Table

from icewright.actions.remove_files.adapters.opened import CatalogObjects
from icewright.actions.remove_files.deleter import NEEDED_ELSEWHERE
from icewright.actions.remove_files.orphans.foreign_metadata import MetadataUuids
from icewright.actions.remove_files.orphans.gone_tables import LOOKS_MAX, GoneUuids
from icewright.catalogs.pointers.table_files import PyIcebergTableFiles
from icewright.core import fault_points as faults
from icewright.core.completeness import Complete
from icewright.core.errors import NotAllowed, Unreadable
from icewright.core.fault_points import Fault
from icewright.model.actions.deletion import IntentState
from icewright.model.events.feed import FactKind, FeedFilter
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.objects import Listed
from icewright.model.plans.plans import Plan
from tests.builders.command_line import icewright, within
from tests.lakes.house import DAY_MS, House, all_there, files, litter, location, on_disk
from tests.lakes.sqlite import append, database, make_table, rows, table_name, with_tables, writer
from tests.narrowing import of_type


class Lake:
    """Table A with garbage of its own, and table B elsewhere; whatever waits for a person is approved each day."""

    def __init__(self, folder: Path, *, limited: bool = True) -> None:
        self.house = House(folder, limited=limited)
        self.a = self.house.table("a")
        self.b = make_table(self.house.entry, ("other", "b"), properties={"icewright.mode": "observe"})
        append(self.b, range(5))
        self.garbage = litter(self.a, "left-1.parquet", "left-2.parquet")

    def foreign(self, *names: str) -> list[Path]:
        """Files of rows in A's place that A does not know."""
        made = [location(self.a) / "data" / name for name in names]
        for number, path in enumerate(made):
            pq.write_table(rows(range(1_000 * number, 1_000 * number + 10)), path)
        return made

    def import_into(self, table: Table, paths: list[Path]) -> None:
        """As ``add_files`` does it: the table comes to need the files where they are."""
        table.refresh().add_files([f"file://{path}" for path in paths])

    def days(self, count: int) -> None:
        """Days go by; people approve whatever is found."""
        for _ in range(count):
            self.house.days(1, a_day=2)
            self.approve()
            self.house.round()

    def approve(self) -> None:
        for waiting in self.house.control.tables.waiting(limit=100):
            self.house.control.dispatcher.approve(waiting.plan_id, "Ada")

    def until_quarantined(self, *paths: Path) -> None:
        for _ in range(10):
            self.days(1)
            if not any(path.exists() for path in paths):
                return
        raise AssertionError([task.outcome for task in self.house.tasks()])

    def plans(self) -> list[Plan]:
        """What waits for a person."""
        tables = self.house.control.tables
        return [tables.plan(waiting.plan_id) for waiting in tables.waiting(limit=100)]

    def wait_for_plan(self) -> Plan:
        """Days go by until garbage was found."""
        for _ in range(10):
            self.house.days(1, a_day=2)
            for plan in self.plans():
                if plan.actions:
                    return plan
        raise AssertionError("nothing waits")

    def held(self) -> dict[str, bytes]:
        return files(self.house.held)

    def states(self) -> dict[str, IntentState]:
        store = self.house.control.deletions
        return {
            Path(intent.object.path).name: intent.state
            for run in store.runs(limit=100)
            for intent in store.intents(run.run_id, frozenset(IntentState), limit=1_000)
        }


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


@pytest.fixture
def arm() -> Iterator[Callable[[faults.Hook], None]]:
    yield faults.arm
    faults.arm(None)


def only_a_tag_needs(lake: Lake, table: Table, paths: list[Path]) -> None:
    lake.import_into(table, paths)
    imported = table.refresh().current_snapshot()
    assert imported is not None
    table.manage_snapshots().create_tag(imported.snapshot_id, "kept").commit()
    table.refresh().delete(AlwaysTrue())
    append(table, range(3))


def point(lake: Lake, name: str, pointer: str) -> None:
    """A pointer that somebody writes into the catalog's own tables."""
    with sqlite3.connect(database(lake.house.entry)) as connection:
        connection.execute("DELETE FROM iceberg_tables WHERE table_namespace = 'other' AND table_name = ?", (name,))
        row = ("lake", "other", name, pointer, None, "TABLE")
        connection.execute("INSERT INTO iceberg_tables VALUES (?, ?, ?, ?, ?, ?)", row)


def tagged_rows(table: Table) -> int:
    ref = table.refresh().refs()["kept"]
    return int(table.scan(snapshot_id=ref.snapshot_id).to_arrow().num_rows)


def test_f1_files_that_only_a_tag_of_another_table_needs_stay(lake: Lake) -> None:
    imported = lake.foreign("imported-1.parquet", "imported-2.parquet")
    only_a_tag_needs(lake, lake.b, imported)
    before = {path: path.read_bytes() for path in imported}
    lake.days(12)
    moved = [path for path in imported if not path.exists()]
    purged = [name for name, state in lake.states().items() if state is IntentState.PURGED]
    assert (len(moved), len(purged)) == (0, 0), "live files moved, purged"
    assert {path: path.read_bytes() for path in imported} == before
    assert all_there(lake.b)
    assert tagged_rows(lake.b) == 25
    assert lake.house.control.registry.ownership().findings[table_name(lake.a)][0].code == "lends-files"


def test_f1_files_that_only_an_older_snapshot_or_a_branch_needs_stay(lake: Lake) -> None:
    older, branch = lake.foreign("older.parquet"), lake.foreign("branch.parquet")
    lake.import_into(lake.b, older)
    lake.b.refresh().delete(AlwaysTrue())
    append(lake.b, range(3))
    c = make_table(lake.house.entry, ("other", "c"))
    append(c, range(3))
    head = c.refresh().current_snapshot()
    assert head is not None
    c.manage_snapshots().create_branch(head.snapshot_id, "side").commit()
    c.refresh().add_files([f"file://{branch[0]}"], branch="side")
    lake.days(10)
    assert [path for path in (*older, *branch) if not path.exists()] == []
    assert all_there(lake.b)
    assert all_there(c)


def test_f1_what_another_table_comes_to_need_is_put_back_by_the_server_and_told(lake: Lake) -> None:
    imported = lake.foreign("imported-1.parquet", "imported-2.parquet")
    only_a_tag_needs(lake, lake.b, imported)
    pointer = lake.b.refresh().metadata_location
    catalog = writer(lake.house.entry)
    catalog.drop_table(("other", "b"))  # for now nobody knows of it
    lake.until_quarantined(*imported, *lake.garbage)
    b = catalog.register_table(("other", "b"), pointer)
    lake.days(3)
    assert [path for path in imported if not path.exists()] == []
    assert tagged_rows(b) == 25
    assert {lake.states()[path.name] for path in imported} == {IntentState.RESTORED}
    why = [
        intent.why
        for run in lake.house.control.deletions.runs(limit=10)
        for intent in lake.house.control.deletions.intents(run.run_id, frozenset({IntentState.RESTORED}), limit=10)
    ]
    assert {(one.code, one.text) for one in why if one is not None} == {
        (NEEDED_ELSEWHERE, "table lake.other.b needs it")
    }
    said = lake.house.control.tasks.feed.after(0, 1_000, FeedFilter())
    told = [one.fact.reason for one in said.told if one.fact.fact is FactKind.DATA_AT_RISK]
    assert [(one.code, one.figures) for one in told] == [(NEEDED_ELSEWHERE, {"files": 2})]
    assert "lake.other.b" in told[0].text


def test_f1_the_purge_asks_all_tables_again(lake: Lake) -> None:
    """In quarantine for its window, and needed by a table that came since: back, and never purged."""
    imported = lake.foreign("imported.parquet")
    only_a_tag_needs(lake, lake.b, imported)
    pointer = lake.b.refresh().metadata_location
    catalog = writer(lake.house.entry)
    catalog.drop_table(("other", "b"))
    lake.until_quarantined(*imported, *lake.garbage)
    lake.house.clock.advance(30 * DAY_MS)  # the server was down for a month
    catalog.register_table(("other", "b"), pointer)
    lake.days(3)
    assert imported[0].exists()
    assert lake.states()["imported.parquet"] is IntentState.RESTORED


def test_f1_while_a_table_cannot_be_read_nothing_is_purged(lake: Lake) -> None:
    imported = lake.foreign("imported.parquet")
    only_a_tag_needs(lake, lake.b, imported)
    pointer = lake.b.refresh().metadata_location
    catalog = writer(lake.house.entry)
    catalog.drop_table(("other", "b"))
    lake.until_quarantined(*imported, *lake.garbage)
    hidden = on_disk(pointer).rename(on_disk(pointer).with_suffix(".hidden"))
    point(lake, "b", pointer)
    lake.days(20)
    assert IntentState.PURGED not in lake.states().values()
    hidden.rename(on_disk(pointer))
    lake.days(2)
    assert imported[0].exists()
    lake.days(2)
    assert lake.states()[lake.garbage[0].name] in (IntentState.PURGED, IntentState.QUARANTINED)


def test_f2_an_import_moments_before_the_removal_is_seen(lake: Lake) -> None:
    wanted = lake.foreign("wanted.parquet")
    plan = lake.wait_for_plan()
    lake.import_into(lake.b, wanted)  # nothing looks at B for an hour
    lake.house.control.dispatcher.approve(plan.plan_id, "Ada")
    lake.house.round()
    assert wanted[0].exists()
    assert all_there(lake.b)
    assert IntentState.QUARANTINED not in lake.states().values()


def test_f2_an_import_between_the_check_and_the_move_is_put_back_at_once(
    lake: Lake, arm: Callable[[faults.Hook], None]
) -> None:
    wanted = lake.foreign("wanted.parquet")
    plan = lake.wait_for_plan()
    came: list[Fault] = []

    def hook(point: Fault) -> None:
        if point is Fault.DELETION_CHECKED and not came:
            came.append(point)
            lake.import_into(lake.b, wanted)

    arm(hook)
    lake.house.control.dispatcher.approve(plan.plan_id, "Ada")
    lake.house.round()
    assert came
    assert wanted[0].exists()
    assert all_there(lake.b)
    assert lake.states()["wanted.parquet"] is IntentState.RESTORED


def copy_of(lake: Lake, folder: Path) -> Table:
    """Table A under a name in a catalog that the server does not know."""
    elsewhere = with_tables(replace(lake.house.entry, name="elsewhere", uri=f"sqlite:///{folder}/elsewhere.db"))
    catalog = writer(elsewhere)
    catalog.create_namespace("db")
    return catalog.register_table(("db", "copy"), lake.a.refresh().metadata_location)


def findings(lake: Lake) -> set[str]:
    """Why the latest searches for garbage in A's place said nothing of any file."""
    plan = lake.house.look(table_name(lake.a))
    assert not plan.actions
    return {plan.reason.code}


def test_f4_a_copy_in_a_catalog_that_is_not_configured_keeps_what_it_committed(lake: Lake, tmp_path: Path) -> None:
    copy = copy_of(lake, tmp_path)
    append(copy, range(500, 600))
    append(lake.a, range(600, 610))
    before = files(location(lake.a))
    lake.days(10)
    assert files(location(lake.a)) == before
    assert lake.states() == {}
    assert copy.refresh().scan().to_arrow().num_rows == 400
    assert findings(lake) == {"place-not-owned"}
    assert "no part of its history" in lake.house.look(table_name(lake.a)).reason.text


def with_metadata_elsewhere(lake: Lake, folder: Path) -> None:
    """From its next commit on, table A has its metadata outside of its location."""
    (folder / "away" / "metadata").mkdir(parents=True)
    with lake.a.refresh().transaction() as change:
        change.set_properties({"write.metadata.path": f"file://{folder}/away/metadata"})


@pytest.mark.parametrize("moves_back", [False, True])
def test_f4_a_copy_whose_metadata_is_elsewhere_keeps_what_it_committed(tmp_path: Path, *, moves_back: bool) -> None:
    """What it commits lies beside the metadata of the table as it was when the copy was made, and nothing beside data.

    The table may have its metadata in its location again by then.
    """
    lake = Lake(tmp_path, limited=False)
    with_metadata_elsewhere(lake, tmp_path)
    append(lake.a.refresh(), range(5))
    copy = copy_of(lake, tmp_path)
    if moves_back:
        with lake.a.refresh().transaction() as change:
            change.remove_properties("write.metadata.path")
    append(copy, range(500, 600))
    append(lake.a, range(600, 610))
    before = files(location(lake.a))
    lake.days(9)
    assert files(location(lake.a)) == before
    assert lake.states() == {}
    assert copy.refresh().scan().to_arrow().num_rows == 405
    assert findings(lake) == {"place-not-owned"}
    assert "no part of its history" in lake.house.look(table_name(lake.a)).reason.text


def test_f4_a_table_whose_metadata_is_elsewhere_loses_its_garbage_alone(tmp_path: Path) -> None:
    lake = Lake(tmp_path, limited=False)
    with_metadata_elsewhere(lake, tmp_path)
    append(lake.a.refresh(), range(5))
    lake.until_quarantined(*lake.garbage)
    assert all_there(lake.a)


def test_f4_what_a_copy_commits_for_the_first_time_once_garbage_is_approved_stays(lake: Lake, tmp_path: Path) -> None:
    copy = copy_of(lake, tmp_path)
    (imported,) = lake.foreign("left-3.parquet")
    lake.wait_for_plan()
    lake.import_into(copy, [imported])
    before = {path: path.read_bytes() for path in (imported, *lake.garbage)}
    lake.days(12)
    assert {path: path.read_bytes() for path in before} == before
    assert lake.held() == {}
    assert copy.refresh().scan().to_arrow().num_rows == 310
    assert list(lake.states().values()) == [IntentState.SKIPPED] * 3


def test_f4_what_went_before_a_copy_committed_for_the_first_time_is_not_purged(lake: Lake, tmp_path: Path) -> None:
    lake.until_quarantined(*lake.garbage)
    held = lake.held()
    copy = copy_of(lake, tmp_path)
    append(copy, range(500, 600))
    lake.days(20)
    assert lake.held() == held


def point_a(lake: Lake, pointer: str) -> None:
    with sqlite3.connect(database(lake.house.entry)) as connection:
        connection.execute("UPDATE iceberg_tables SET metadata_location = ? WHERE table_name = 'a'", (pointer,))


@pytest.mark.parametrize("ends_in_look", [1, LOOKS_MAX, LOOKS_MAX + 1])
def test_f4_a_commit_of_the_table_itself_that_is_under_way_is_no_copy(lake: Lake, ends_in_look: int) -> None:
    """Its metadata is there before its catalog points to it: it is looked at again, and counts if it stays so."""
    lake.house.round()
    before = lake.a.refresh().metadata_location
    append(lake.a, range(5))
    written = lake.a.refresh().metadata_location
    point_a(lake, before)
    listed: list[CanonicalPath] = []

    class UnderWay(CatalogObjects):
        def list(self, root: CanonicalPath) -> Iterator[Listed]:
            listed.append(root)
            yield from super().list(root)
            if len(listed) == ends_in_look:
                point_a(lake, written)

    files_now, objects = PyIcebergTableFiles(lake.house.entry), UnderWay(lake.house.entry, lake.house.clock)
    gone = GoneUuids(lake.house.control.registry)
    place = of_type(Complete, gone.place_of(table_name(lake.a), files_now, objects, MetadataUuids())).value
    is_seen = ends_in_look <= LOOKS_MAX
    assert [one.code for one in place.findings] == ([] if is_seen else ["other-history"])
    assert place.owns(CanonicalPath(f"file://{lake.garbage[0]}")) is is_seen
    assert len(listed) == min(ends_in_look, LOOKS_MAX)


def test_f4_nothing_goes_where_the_folders_of_the_metadata_cannot_be_listed(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.wait_for_plan()
    lake.approve()

    def refused(_self: CatalogObjects, folder: CanonicalPath) -> Iterator[Listed]:
        raise Unreadable(f"{folder} may not be listed")

    monkeypatch.setattr(CatalogObjects, "list", refused)
    lake.house.round()
    assert all(path.exists() for path in lake.garbage)
    assert lake.held() == {}
    monkeypatch.undo()
    lake.until_quarantined(*lake.garbage)


def test_f4_a_copy_with_no_snapshot_of_its_own_keeps_its_metadata(lake: Lake, tmp_path: Path) -> None:
    copy = copy_of(lake, tmp_path)
    with copy.transaction() as transaction:
        transaction.set_properties({"owner": "them"})
    append(lake.a, range(600, 610))
    lake.days(8)
    assert lake.states() == {}
    assert "no part of its history" in lake.house.look(table_name(lake.a)).reason.text


def test_f4_metadata_of_its_own_that_no_log_names_any_more_is_no_copy(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    with lake.a.transaction() as transaction:
        transaction.set_properties({"write.metadata.previous-versions-max": "2"})
    for number in range(8):
        append(lake.a, range(number, number + 1))
    assert len(lake.a.refresh().metadata.metadata_log) == 2
    lake.until_quarantined(*lake.garbage)
    assert all_there(lake.a)


def test_f4_a_try_that_met_another_commit_is_no_copy(lake: Lake) -> None:
    """Java writes a metadata file for each try of a commit, and its snapshot keeps its id."""
    append(lake.a, range(5))
    now = lake.a.refresh()
    tried = on_disk(now.metadata_location)
    (tried.parent / "00004-11111111-1111-4111-8111-111111111111.metadata.json").write_bytes(tried.read_bytes())
    append(lake.a, range(5))
    lake.until_quarantined(*lake.garbage)
    assert all_there(lake.a)


def test_f6_files_that_another_table_reaches_by_a_link_of_a_folder_stay(lake: Lake) -> None:
    imported = lake.foreign("imported.parquet")
    inside = location(lake.b) / "data" / "linked"
    inside.symlink_to(location(lake.a) / "data")
    lake.b.refresh().add_files([f"file://{inside}/imported.parquet"])
    lake.days(8)
    assert imported[0].exists()
    assert lake.states() == {}
    assert all_there(lake.b)


def test_f6_files_that_the_table_itself_needs_by_a_link_of_a_folder_stay(lake: Lake) -> None:
    """They lie in its own place, where nothing needs them by their own names."""
    (imported,) = lake.foreign("imported.parquet")
    link = location(lake.a).parent / "link"
    link.symlink_to(imported.parent)
    lake.import_into(lake.a, [link / imported.name])
    lake.days(10)
    assert (imported.exists(), all_there(lake.a)) == (True, True)
    codes = {one.code for one in lake.house.control.registry.ownership().findings[table_name(lake.a)]}
    assert codes == {"linked-place"}


def test_f6_a_table_whose_location_is_a_link_into_another_ones_place_is_found(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(location(lake.a))
    catalog = writer(lake.house.entry)
    linked = catalog.create_table(("other", "linked"), lake.b.schema(), location=f"file://{tmp_path}/link/data/sub")
    append(linked, range(5))
    lake.days(8)
    assert lake.states() == {}
    assert all_there(linked)


def test_f7_two_pointers_of_one_uuid_are_found_before_a_batch(lake: Lake) -> None:
    plan = lake.wait_for_plan()
    point(lake, "b", lake.a.refresh().metadata_location)  # nothing looks at it for an hour
    lake.house.control.dispatcher.approve(plan.plan_id, "Ada")
    lake.house.round()
    assert lake.states() == {} or set(lake.states().values()) == {IntentState.SKIPPED}
    assert [path for path in lake.garbage if not path.exists()] == []
    codes = {one.code for one in lake.house.control.registry.ownership().findings[table_name(lake.a)]}
    assert "shared-uuid" in codes


def unreadable(lake: Lake) -> Path:
    """A table far away, whose metadata is not there any more."""
    lost = make_table(lake.house.entry, ("far", "lost"), properties={"icewright.mode": "observe"})
    append(lost, range(3))
    metadata = on_disk(lost.refresh().metadata_location)
    return metadata.rename(metadata.with_suffix(".hidden"))


def test_o13_a_table_that_cannot_be_read_and_has_not_moved_keeps_nothing_but_its_own(lake: Lake) -> None:
    far = make_table(lake.house.entry, ("far", "away"), properties={"icewright.mode": "observe"})
    append(far, range(3))
    lake.days(1)
    metadata = on_disk(far.refresh().metadata_location)
    metadata.rename(metadata.with_suffix(".hidden"))
    lake.until_quarantined(*lake.garbage)
    assert all_there(lake.b)


def test_o13_a_table_that_was_never_read_stops_removals_and_is_named_first(lake: Lake) -> None:
    unreadable(lake)
    lake.days(8)
    assert [path for path in lake.garbage if not path.exists()] == []
    said = lake.house.look(table_name(lake.a)).reason
    assert said.code == "place-unknown"
    assert said.text.startswith("lake.far.lost ")


def test_o13_an_administrator_declares_it_lost_and_takes_that_back(lake: Lake) -> None:
    hidden, name = unreadable(lake), TableName("lake", ("far",), "lost")
    lake.days(1)
    registry = lake.house.control.registry
    registry.declare_lost(name, "Ada")
    assert [one.lost_by for one in registry.book().lost()] == ["Ada"]
    registry.withdraw_lost(name)
    assert lake.house.look(table_name(lake.a)).reason.code == "place-unknown"
    registry.declare_lost(name, "Ada")
    lake.house.restart()
    lake.until_quarantined(*lake.garbage)
    with pytest.raises(NotAllowed):
        lake.house.control.registry.declare_lost(table_name(lake.b), "Ada")
    hidden.rename(hidden.with_suffix(".json"))
    lake.days(1)
    assert lake.house.control.registry.book().lost() == (), "it can be read again"


def test_o13_what_was_declared_lost_at_one_pointer_is_not_at_another(lake: Lake) -> None:
    unreadable(lake)
    lake.house.control.registry.declare_lost(TableName("lake", ("far",), "lost"), "Ada")
    assert lake.house.look(table_name(lake.a)).reason.code != "place-unknown"
    with sqlite3.connect(database(lake.house.entry)) as connection:
        connection.execute("UPDATE iceberg_tables SET metadata_location = 'file:///x.json' WHERE table_name = 'lost'")
    assert lake.house.look(table_name(lake.a)).reason.code == "place-unknown"


KINDS = ("missing file", "bad JSON", "format of the future", "relative location", "dead S3")


def spoil(lake: Lake, table: Table, kind: str) -> None:
    """Nobody can read the table any more, or tell where it is."""
    metadata = on_disk(table.refresh().metadata_location)
    text = metadata.read_text()
    match kind:
        case "missing file":
            metadata.unlink()
        case "bad JSON":
            metadata.write_text(text[: len(text) // 2])
        case "format of the future":
            metadata.write_text(text.replace('"format-version":2', '"format-version":9'))
        case "relative location":
            metadata.write_text(json.dumps({**json.loads(text), "location": "some/where"}))
        case "dead S3":
            *_, name = table.name()
            point(lake, name, "s3://dead/t/metadata/00001-x.metadata.json")


@pytest.fixture
def no_s3(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where S3 is asked for, nobody listens, and it is asked once instead of three times, some seconds apart."""
    once = partial(pyarrow.fs.S3FileSystem, retry_strategy=pyarrow.fs.AwsStandardS3RetryStrategy(max_attempts=1))
    monkeypatch.setattr(pyarrow.fs, "S3FileSystem", once)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(key, "nobody")
    monkeypatch.setenv("AWS_REGION", "us-east-1")


@pytest.mark.usefixtures("no_s3")
@pytest.mark.parametrize("kind", KINDS)
def test_o13_each_kind_of_unreadable_table_is_named_first_and_can_be_declared_lost(lake: Lake, kind: str) -> None:
    far = make_table(lake.house.entry, ("other", "far"), properties={"icewright.mode": "observe"})
    append(far, range(3))
    spoil(lake, far, kind)
    said = lake.house.look(table_name(lake.a)).reason
    assert (said.code, said.text.split()[0]) == ("place-unknown", "lake.other.far")
    lake.house.control.registry.declare_lost(TableName("lake", ("other",), "far"), "Ada")
    lake.house.clock.advance(DAY_MS)
    lake.house.restart()
    assert lake.house.look(table_name(lake.a)).reason.code == "no-orphans"


@pytest.mark.usefixtures("no_s3")
@pytest.mark.parametrize("kind", KINDS[:3])
def test_o13_each_kind_that_was_read_before_keeps_nothing_but_its_own(lake: Lake, kind: str) -> None:
    """The pointer of none of them has moved: what they claimed is all that they can need."""
    far = make_table(lake.house.entry, ("other", "far"), properties={"icewright.mode": "observe"})
    append(far, range(3))
    lake.house.look(table_name(lake.a))
    spoil(lake, far, kind)
    lake.house.clock.advance(DAY_MS)
    assert lake.house.look(table_name(lake.a)).reason.code == "no-orphans"


def test_removal_that_is_blocked_is_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands exit with 1, and say whose table is in the way before anything else."""
    lake = Lake(tmp_path)
    with within(lake.house, monkeypatch):
        lake.house.round()
        assert icewright("orphans", "lake.db.a").status == 0
        unreadable(lake)
        for command in (("orphans",), ("remove-orphan-files",), ("remove-orphan-files", "--yes")):
            said = icewright(command[0], "lake.db.a", *command[1:])
            assert said.status == 1, said.out
            assert "lake.far.lost is not known" in said.out, said.out
            assert icewright(command[0], "lake.db.a", *command[1:], "--json").status == 1
        assert icewright("orphans", "lake.db.a").out.startswith("lake.far.lost is not known")
        assert icewright("scan").status == 1


def test_o13_what_is_declared_lost_by_command_is_asked_for_and_is_in_the_audit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(tmp_path)
    declare = ("table", "declare-lost", "lake.far.lost")
    with within(lake.house, monkeypatch):
        lake.house.round()
        unreadable(lake)
        assert icewright("orphans", "lake.db.a").status == 1
        said = icewright(*declare)
        assert (said.status, "--yes declares it lost" in said.out) == (1, True)
        assert lake.house.control.registry.book().lost() == ()
        assert icewright(*declare, "--yes", "--by", "Ada").status == 0
        assert [one.lost_by for one in lake.house.control.registry.book().lost()] == ["owner (Ada)"]
        assert icewright("orphans", "lake.db.a").status == 0
        assert icewright(*declare, "--withdraw").status == 0
        assert icewright("orphans", "lake.db.a").status == 1
        entries = icewright("audit", "list", "--json").json["items"]
    told = [entry["resource"] for entry in entries if "lake.far.lost" in str(entry["detail"])]
    assert told == ["POST /lost-tables/{name}/withdraw", "POST /lost-tables/{name}"]
