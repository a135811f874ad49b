"""Orphans of a real table on real files: what goes is exactly the garbage, and every snapshot reads as before."""

from __future__ import annotations

import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pytest
from pyiceberg.table import Table

from icewright.actions.remove_files.orphans.foreign_metadata import MetadataUuids
from icewright.actions.remove_files.orphans.service import OrphanFinder, OrphanPass, OrphansFound, OrphansRefused
from icewright.actions.remove_files.orphans.sightings_sql import SqlSightings
from icewright.catalogs.local_spool import open_disk_spool
from icewright.catalogs.storage.local import LocalObjects
from icewright.core.completeness import Gaps
from icewright.model.actions.remove_files import OrphanBudget, OrphanPolicy
from icewright.model.iceberg.locations import Aliases
from icewright.model.iceberg.tables import TableMetadata
from icewright.ownership.model import Place
from icewright.store.engine import open_store
from tests.contracts.lakes import PyIcebergLake, named
from tests.contracts.test_catalog_contract import EVENTS
from tests.doubles.clock import ManualClock
from tests.lakes import sqlite
from tests.lakes.stores import sqlite_store
from tests.narrowing import of_type

DAY_MS = 24 * 3_600_000
POLICY = OrphanPolicy(budget=OrphanBudget(1.0))


class World:
    """A table with history, a tag and garbage; a finder with the store, and clocks of its own."""

    def __init__(self, folder: Path) -> None:
        self.lake = PyIcebergLake(sqlite.make_lake(folder))
        self.lake.create(EVENTS, by_city=True)
        self.lake.append(EVENTS, ["Bonn", "Ulm"])
        self.lake.append(EVENTS, ["Bonn", "K\u00f6ln / Deutz"])
        self.lake.remove_city(EVENTS, "Ulm")
        first = self.table.metadata.snapshots[0].snapshot_id
        self.table.manage_snapshots().create_tag(first, "kept").commit()
        self.clock = ManualClock(int(time.time() * 1000) + 60_000)
        self.finder = OrphanFinder(
            self.lake.files,
            LocalObjects(self.clock),
            SqlSightings(open_store(sqlite_store(folder / "state" / "icewright.db")), self.clock),
            open_disk_spool,
            aliases=Aliases(),
            uuids=MetadataUuids(),
        )

    @property
    def table(self) -> Table:
        return sqlite.writer(self.lake.entry).load_table(EVENTS)

    @property
    def root(self) -> str:
        return Aliases().canonical(self.table.location()).rstrip("/") + "/"

    def garbage(self, *names: str) -> set[str]:
        for name in names:
            file = Path(urlsplit(self.root).path) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(b"left behind")
        return {self.root + name for name in names}

    def look(self) -> OrphanPass:
        def place(metadata: TableMetadata) -> object:
            return Gaps().judge(Place(metadata.name, metadata.table_id.uuid, (self.root,), ()))

        return self.finder.look(named(EVENTS), place, POLICY)  # type: ignore[arg-type]  # known by its value

    def rows(self) -> dict[int, pa.Table]:
        """What each snapshot reads, to the last byte."""
        table = self.table
        return {
            one.snapshot_id: table.scan(snapshot_id=one.snapshot_id).to_arrow().sort_by([("id", "ascending")])
            for one in table.metadata.snapshots
        }


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_g18_exactly_the_garbage_goes_and_every_snapshot_reads_as_before(world: World) -> None:
    garbage = world.garbage(
        "data/city=Bonn/left.parquet",
        "data/city=K%C3%B6ln/left 2.parquet",
        "data/nobody#?.parquet",
        "metadata/aborted-m0.avro",
        "data/.gone.parquet.crc",
        "data/city=Bonn/.left.parquet.crc",
        "_temporary/0/x.parquet",
    )
    world.garbage("metadata/version-hint.text", "_hidden/x.parquet")
    before = world.rows()
    first = world.look()
    assert isinstance(first, OrphansFound), first
    assert (first.action, first.finished.files) == (None, len(garbage))
    world.clock.advance(7 * DAY_MS)
    found = of_type(OrphansFound, world.look())
    assert found.action is not None
    assert {file.path for file in found.action.files} == garbage
    for file in found.action.files:
        Path(file.path.removeprefix("file://")).unlink()
    assert len(before) == 3
    assert {key: rows.to_pylist() for key, rows in world.rows().items()} == {
        key: rows.to_pylist() for key, rows in before.items()
    }
    again = of_type(OrphansFound, world.look())
    assert (again.action, again.finished.files) == (None, 0)


def test_checksums_of_hadoop_go_with_their_files_and_decide_nothing(world: World) -> None:
    """Spark writes one beside each file of a table on a local disk, its metadata included."""
    root = Path(urlsplit(world.root).path)
    live = [path for path in root.rglob("*") if path.is_file()]
    for path in live:
        path.with_name(f".{path.name}.crc").write_bytes(b"crc\0")
    garbage = world.garbage("data/left.parquet", "data/.left.parquet.crc", "metadata/.gone-m0.avro.crc")
    world.look()
    world.clock.advance(6 * DAY_MS)
    young = world.garbage("data/young.parquet", "data/.young.parquet.crc")
    world.look()
    world.clock.advance(DAY_MS)
    found = world.look()
    assert isinstance(found, OrphansFound), found
    assert found.action is not None
    assert {file.path for file in found.action.files} == garbage
    assert found.kept == {"checksum": len(live), "seen-lately": len(young)}


def test_a_checksum_waits_for_its_file(world: World) -> None:
    (sum_,) = world.garbage("data/.left.parquet.crc")
    world.look()
    world.clock.advance(10 * DAY_MS)
    world.garbage("data/left.parquet")
    found = of_type(OrphansFound, world.look())
    assert (found.action, found.kept) == (None, {"checksum": 1, "seen-lately": 1}), sum_


def test_o3_what_is_written_now_is_not_touched(world: World) -> None:
    world.look()
    world.clock.advance(3 * DAY_MS)
    world.garbage("data/new.parquet")
    assert of_type(OrphansFound, world.look()).action is None


def test_o1_a_link_below_the_root_refuses_the_pass(world: World) -> None:
    (Path(urlsplit(world.root).path) / "data" / "link").symlink_to("/")
    assert of_type(OrphansRefused, world.look()).reason.code == "odd-entry"


def test_o13_a_damaged_manifest_list_refuses_the_pass(world: World) -> None:
    world.garbage("data/left.parquet")
    world.look()
    world.clock.advance(30 * DAY_MS)
    first = world.table.metadata.snapshots[0]
    world.lake.damage(first.manifest_list)
    refused = of_type(OrphansRefused, world.look())
    assert refused.reason.code == "not-all-known"
    assert unquote(refused.gaps[0].what) == unquote(first.manifest_list)
