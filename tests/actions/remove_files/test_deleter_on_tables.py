"""The Deleter over real tables, metadata and storages: garbage goes, rows stay, and all comes back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import Table

from icewright.actions.remove_files.adapters.deletion_store import SqlDeletionStore
from icewright.actions.remove_files.adapters.opened import CatalogObjects, CatalogQuarantine
from icewright.actions.remove_files.deleter import Deleter
from icewright.catalogs.local_spool import open_disk_spool
from icewright.catalogs.pointers.table_files import PyIcebergTableFiles
from icewright.catalogs.storage.s3 import S3Client
from icewright.core.completeness import Complete, Known, Partial
from icewright.model.actions.deletion import WINDOW_FLOOR_MS, Candidate, Cause, DeletePlan, IntentState, plan_deletes
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.locations import Aliases, CanonicalPath
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.objects import ListedObject
from icewright.ownership.claims import claim
from icewright.ownership.model import Place
from icewright.ownership.needed_files import TableNeeds
from icewright.ownership.ownership import ownership
from icewright.store.engine import open_store
from tests.builders.deletions import DAY_MS, no_other
from tests.doubles.clock import ManualClock
from tests.lakes.sqlite import append, make_table, table_name, with_tables
from tests.lakes.stores import sqlite_store
from tests.narrowing import not_none, of_type
from tests.servers.s3 import S3Server


class Lake:
    """One table with three commits, garbage beside them, and a sibling whose name begins alike."""

    def __init__(self, entry: CatalogEntry, held: str, folder: Path) -> None:
        self.entry = with_tables(entry)
        self.table = make_table(entry, ("db", "t"))
        for start in (0, 10, 20):
            append(self.table, range(start, start + 10))
        self.sibling = make_table(entry, ("db", "t_2"))
        append(self.sibling, range(5))
        self.clock = ManualClock()
        self.objects = CatalogObjects(entry)
        self.clock.advance(self.objects.now(CanonicalPath(held)) + 40 * DAY_MS - self.clock.now())
        self.held = CanonicalPath(held)
        self.store = SqlDeletionStore(open_store(sqlite_store(folder / "icewright.db")), self.clock)
        self.needs = TableNeeds(PyIcebergTableFiles(entry), open_disk_spool, Aliases())

    def place(self, name: TableName) -> Known[Place]:
        files = PyIcebergTableFiles(self.entry)
        tables = [table_name(table) for table in (self.table, self.sibling)]
        return ownership(claim(files.roots(one).metadata, Aliases()) for one in tables).place(name)

    def deleter(self) -> Deleter:
        return Deleter(
            self.store,
            LaterObjects(self),
            CatalogQuarantine(self.entry, [self.held]),
            self.needs,
            self.place,
            no_other,
            aliases=Aliases(),
        )

    def listed(self, table: Table) -> list[ListedObject]:
        root = Aliases().canonical(table.location())
        return [one for one in self.objects.list(root) if isinstance(one, ListedObject)]

    def plan(self) -> DeletePlan:
        """All that a listing has and the table does not need."""
        found = self.listed(self.table)
        known = of_type(Complete, self.needs(table_name(self.table), [one.path for one in found]))
        garbage = [one for one in found if one.path not in known.value.needed]
        return plan_deletes(
            known,
            Cause.ORPHAN,
            [Candidate(one, self.clock.now() - 30 * DAY_MS) for one in garbage],
            plan_id="plan-1",
            table_name=table_name(self.table),
            planned_at=self.clock.now(),
        )

    def rows(self, table: Table) -> list[Any]:
        """Every row of every snapshot, read from its bytes."""
        table.refresh()
        return [
            sorted(table.scan(snapshot_id=one.snapshot_id).to_arrow()["id"].to_pylist())
            for one in table.metadata.snapshots
        ]


class LaterObjects(CatalogObjects):
    """The storages forty days later: no storage can be told to have old files."""

    def __init__(self, lake: Lake) -> None:
        super().__init__(lake.entry)
        self._lake = lake

    def now(self, _path: CanonicalPath) -> int:
        return self._lake.clock.now()


@pytest.fixture
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    folder = tmp_path.resolve()
    if request.param == "local":
        (folder / "held").mkdir()
        entry = CatalogEntry("lake", CatalogKind.SQL, f"sqlite:///{folder}/lake.db", f"{folder}/wh")
        return Lake(entry, f"file://{folder}/held", folder)
    s3: S3Server = request.getfixturevalue("s3")
    bucket = s3.new_bucket()
    if request.param == "s3-versions":
        S3Client(s3.file_io).writes.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    entry = CatalogEntry("lake", CatalogKind.SQL, f"sqlite:///{folder}/lake.db", f"s3://{bucket}/wh", s3.file_io)
    return Lake(entry, f"s3://{bucket}/held", folder)


def with_garbage(lake: Lake) -> dict[str, bytes]:
    """Files that no metadata names, of a size within the budget; with what is in them."""
    made = {}
    for name in ("data/00000-0-lost.parquet", "data/a b%20c/d+e.parquet", "metadata/x-m0.avro"):
        location = f"{lake.table.location()}/{name}"
        with lake.table.io.new_output(location).create() as file:
            file.write(name[:5].encode())
        made[str(Aliases().canonical(location))] = name[:5].encode()
    return made


@pytest.mark.parametrize("lake", ["local", "s3", "s3-versions"], indirect=True)
def test_o6_garbage_goes_and_comes_back_and_no_row_of_any_table_is_missing(lake: Lake) -> None:
    garbage = with_garbage(lake)
    before, sibling = lake.rows(lake.table), lake.rows(lake.sibling)
    plan = lake.plan()
    assert {one.object.path for one in plan.candidates} == set(garbage)
    lake.deleter().begin(plan, "run-1")
    batch = lake.deleter().advance("run-1")
    assert batch.count(IntentState.QUARANTINED) == len(garbage)
    assert not set(garbage) & {one.path for one in lake.listed(lake.table)}
    assert lake.deleter().advance("run-1").is_done
    assert (lake.rows(lake.table), lake.rows(lake.sibling)) == (before, sibling)
    assert lake.deleter().undo("run-1").count(IntentState.RESTORED) == len(garbage)
    for path, content in garbage.items():
        assert lake.objects.read(CanonicalPath(path), 100) == content
    assert lake.deleter().undo("run-1").is_done
    lake.deleter().begin(lake.plan(), "run-2")
    lake.deleter().advance("run-2")
    lake.clock.advance(WINDOW_FLOOR_MS)
    assert lake.deleter().tend("run-2").count(IntentState.PURGED) == len(garbage)
    assert [one for one in lake.objects.list(lake.held) if isinstance(one, ListedObject)] == []
    assert lake.plan().candidates == ()
    assert (lake.rows(lake.table), lake.rows(lake.sibling)) == (before, sibling)


@pytest.mark.parametrize("lake", ["local", "s3"], indirect=True)
def test_e3_a_plan_made_before_a_commit_takes_nothing_of_it(lake: Lake) -> None:
    with_garbage(lake)
    stale = lake.plan()
    append(lake.table, range(30, 40))
    found = [one for one in lake.listed(lake.table) if one.path not in {c.object.path for c in stale.candidates}]
    before = lake.rows(lake.table)
    # As if the plan had been made when the files of that commit were there and the commit was not.
    candidates = tuple(Candidate(one, lake.clock.now() - 30 * DAY_MS) for one in found)
    careless = DeletePlan(
        stale.plan_id,
        stale.table_id,
        stale.table_name,
        stale.metadata_location,
        Cause.EXPIRED,
        stale.table_bytes,
        (*stale.candidates, *candidates),
        stale.planned_at,
    )
    lake.deleter().begin(careless, "run-1")
    batch = lake.deleter().advance("run-1")
    assert batch.count(IntentState.QUARANTINED) == len(stale.candidates)
    assert batch.count(IntentState.SKIPPED) == len(found)
    assert lake.rows(lake.table) == before
    assert lake.rows(lake.table)[-1] == list(range(40))


@pytest.mark.parametrize("lake", ["local", "s3-versions"], indirect=True)
def test_e7_a_table_that_cannot_be_read_in_full_keeps_everything(lake: Lake) -> None:
    garbage = with_garbage(lake)
    lake.deleter().begin(lake.plan(), "run-1")
    append(lake.table, range(30, 31))
    snapshot = not_none(lake.table.refresh().current_snapshot())
    lake.table.io.delete(snapshot.manifest_list)
    batch = lake.deleter().advance("run-1")
    assert not_none(batch.waits).code == "partial-knowledge"
    assert set(garbage) <= {one.path for one in lake.listed(lake.table)}


@pytest.mark.parametrize("lake", ["local"], indirect=True)
def test_needs_are_read_once_for_the_same_metadata(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lists: list[str] = []
    manifests = PyIcebergTableFiles.manifests

    def counted(self: PyIcebergTableFiles, table: Any, path: str) -> Any:
        lists.append(path)
        return manifests(self, table, path)

    monkeypatch.setattr(PyIcebergTableFiles, "manifests", counted)
    name, paths = table_name(lake.table), [one.path for one in lake.listed(lake.table)]
    first = of_type(Complete, lake.needs(name, paths))
    assert first.value.needed == set(paths)
    assert lake.needs(name, paths[:3]) is first
    read = len(lists)
    append(lake.table, range(30, 31))
    later = of_type(Complete, lake.needs(name, paths))
    assert later.value.metadata_location != first.value.metadata_location
    assert len(lists) > read
    assert not isinstance(lake.needs(name, [*paths, CanonicalPath("s3://b/else")]), Partial)
    assert len(lists) > read + 1
