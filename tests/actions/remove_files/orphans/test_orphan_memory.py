"""A pass in search of orphans holds a part of listing and metadata at a time, never all of them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from icewright.actions.remove_files.orphans.foreign_metadata import MetadataUuids
from icewright.actions.remove_files.orphans.service import OrphanFinder, OrphansFound
from icewright.actions.remove_files.orphans.sightings_sql import SqlSightings
from icewright.catalogs import local_spool as on_disk
from icewright.catalogs.local_spool import open_disk_spool
from icewright.catalogs.objects import Objects
from icewright.core.completeness import Gaps
from icewright.model.actions.remove_files import OrphanPolicy
from icewright.model.iceberg.locations import Aliases, CanonicalPath
from icewright.model.iceberg.objects import Listed, ListedObject
from icewright.ownership.model import Place
from tests.builders.orphan_lake import START
from tests.doubles.clock import ManualClock
from tests.inventory.test_inventory_histories import NAME
from tests.lakes.stores import new_store
from tests.ownership.test_reachable import Large

ROOT = "s3://b/"


@dataclass(frozen=True)
class Endless(Objects):
    """Everything that a large table needs, made up as it is listed, and as much again that nothing needs or hides."""

    table: Large

    def now(self, _path: CanonicalPath) -> int:
        return START

    def list(self, root: CanonicalPath) -> Iterator[Listed]:
        if root != ROOT:  # no table of another format lies in it
            return
        for number in range(self.table.snapshots):
            yield self._object(f"{root}list-{number}")
        for number in range(self.table.snapshots + self.table.manifests_each - 1):
            yield self._object(f"{root}manifest-{number}")
            for file in range(self.table.files_each):
                yield self._object(f"{root}manifest-{number}/{file}")
                yield self._object(f"{root}manifest-{number}/_hidden/{file}")

    def _object(self, path: str) -> ListedObject:
        return ListedObject(CanonicalPath(path), 5, START - 1, "etag")

    def list_folder(self, folder: CanonicalPath) -> Iterator[Listed]:
        assert folder.endswith("/metadata/")
        yield from ()  # the table's own is elsewhere

    def stat(self, path: CanonicalPath) -> ListedObject | None:
        if path == f"{ROOT}schema/schema-0":
            return None
        raise AssertionError(f"nobody needs to look at {path}")

    def read(self, path: CanonicalPath, bytes_max: int) -> bytes:
        raise AssertionError(f"nobody needs to read {path} and its {bytes_max} bytes")


def peak_bytes(table: Large) -> int:
    metadata = table.roots(NAME).metadata
    place = Place(NAME, metadata.table_id.uuid, (ROOT,), ())
    finder = OrphanFinder(
        table,
        Endless(table),
        SqlSightings(new_store(), ManualClock(START)),
        open_disk_spool,
        aliases=Aliases(),
        uuids=MetadataUuids(),
    )
    tracemalloc.start()
    try:
        found = finder.look(NAME, lambda _metadata: Gaps().judge(place), OrphanPolicy())
        assert isinstance(found, OrphansFound), found
        hidden = (table.snapshots + table.manifests_each - 1) * table.files_each
        assert found.kept == {"hidden": hidden}
        assert found.listed.files == found.needed.files + hidden
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_number_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    large = Large(snapshots=4, manifests_each=6, files_each=500)
    monkeypatch.setattr(on_disk, "PER_PART", 750)
    monkeypatch.setattr(on_disk, "_IN_MEMORY_BYTES", 10_000)
    in_parts = peak_bytes(large)
    monkeypatch.setattr(on_disk, "PER_PART", 10**9)
    monkeypatch.setattr(on_disk, "_IN_MEMORY_BYTES", 10**9)
    assert 6 * in_parts < peak_bytes(large)
