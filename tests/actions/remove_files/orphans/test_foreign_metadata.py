"""A table that lies in another one's place gives itself away by its metadata, whatever catalog it is in, or none."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from icewright.actions.remove_files.orphans.foreign_metadata import ForeignMetadata, MetadataUuids, TablesAround
from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.catalogs.storage.local import LocalObjects
from icewright.core.completeness import Complete
from icewright.core.errors import StorageUnavailable, Unreadable, Unsupported
from icewright.core.reasons import Reason
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.locations import Aliases, CanonicalPath
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.objects import Listed, OddEntry
from icewright.model.iceberg.tables import LoggedMetadata
from icewright.ownership.claims import claim
from icewright.ownership.model import Place
from icewright.ownership.ownership import ownership
from tests.cases import each_case
from tests.doubles.clock import ManualClock
from tests.doubles.objects import MemoryObjects, MemoryStorage
from tests.inventory.test_footprint import table
from tests.lakes.sqlite import append, make_lake, make_table, writer

ROOT = CanonicalPath("s3://b/wh/t/")
OURS = Place(TableName("lake", ("db",), "t"), "ours", (ROOT,), ())
TABLE = replace(
    table((), (), None),
    table_id=TableId("lake", "ours"),
    metadata_location=f"{ROOT}metadata/1.metadata.json",
    metadata_log=tuple(
        LoggedMetadata(0, f"{ROOT}metadata/{name}")
        for name in ("0.metadata.json", "2.metadata.json", "2.gz.metadata.json", "3.metadata.json")
    ),
)


class CountingObjects(MemoryObjects):
    """Counts what is read, and can be away."""

    def __init__(self, storage: MemoryStorage) -> None:
        super().__init__(storage)
        self.storage = storage
        self.reads = 0
        self.is_away = False

    def read(self, path: CanonicalPath, bytes_max: int) -> bytes:
        if self.is_away:
            raise StorageUnavailable("away")
        self.reads += 1
        return super().read(path, bytes_max)

    def put(self, name: str, uuid: str | None) -> None:
        document = {"format-version": 2} if uuid is None else {"format-version": 2, "table-uuid": uuid}
        self.storage.write(CanonicalPath(ROOT + name), json.dumps(document).encode())


@pytest.fixture
def objects() -> CountingObjects:
    return CountingObjects(MemoryStorage(ManualClock()))


def looked(objects: CountingObjects, uuids: MetadataUuids | None = None, place: Place = OURS) -> ForeignMetadata:
    foreign = ForeignMetadata(objects, place, uuids or MetadataUuids(), TABLE, Aliases())
    listed = list(objects.list(ROOT))
    assert list(foreign.watched(iter(listed))) == listed
    return foreign


def test_o5_a_place_with_nothing_but_its_own_metadata_stays_its_own(objects: CountingObjects) -> None:
    objects.put("metadata/1.metadata.json", "OURS")
    objects.put("metadata/2.gz.metadata.json", "ours")
    objects.put("data/f.parquet", "theirs")
    foreign = looked(objects)
    assert (foreign.findings(), foreign.place()) == ((), OURS)
    assert objects.reads == 2


def test_o5_metadata_of_another_table_takes_the_place_from_it(objects: CountingObjects) -> None:
    objects.put("metadata/1.metadata.json", "ours")
    for number in range(5):
        objects.put(f"data/deep/down/{number}.metadata.json", f"theirs{number}")
    place = looked(objects).place()
    assert place.roots == ()
    assert not place.owns(CanonicalPath(ROOT + "data/f"))
    (reason,) = place.findings
    assert (reason.code, reason.figures) == ("foreign-metadata", {"files": 5})
    said = reason.text.partition(" (")
    assert said[0] == "5 metadata files in its place are of another table"
    assert re.findall(r"theirs\d until", said[2]) == ["theirs0 until", "theirs1 until", "theirs2 until"]


@pytest.mark.parametrize(
    "name", ["metadata/1.metadata.json", "metadata/1.metadata.json.gz", "metadata/1.gz.metadata.json"]
)
def test_o5_metadata_that_cannot_be_read_takes_it_as_well(objects: CountingObjects, name: str) -> None:
    objects.put(name, None)
    (reason,) = looked(objects).findings()
    assert reason.code == "unreadable-metadata"
    assert "unknown: 's3://b/wh/t/metadata/1" in reason.text


def test_o5_a_link_that_is_called_metadata_is_not_passed_over(objects: CountingObjects) -> None:
    foreign = ForeignMetadata(objects, OURS, MetadataUuids(), TABLE, Aliases())
    foreign.look(OddEntry(CanonicalPath(ROOT + "metadata/1.metadata.json"), Reason("symbolic-link", "a link")))
    foreign.look(OddEntry(CanonicalPath(ROOT + "data/link"), Reason("symbolic-link", "a link")))
    assert [(reason.code, reason.figures) for reason in foreign.findings()] == [("unreadable-metadata", {"files": 1})]


def test_o13_a_storage_that_is_away_says_nothing(objects: CountingObjects) -> None:
    objects.put("metadata/1.metadata.json", "ours")
    objects.is_away = True
    with pytest.raises(StorageUnavailable):
        looked(objects)


def test_each_file_is_read_once_as_long_as_it_is_the_same(objects: CountingObjects) -> None:
    uuids = MetadataUuids()
    objects.put("metadata/1.metadata.json", "ours")
    for _ in range(3):
        assert looked(objects, uuids).findings() == ()
    assert objects.reads == 1
    objects.put("metadata/1.metadata.json", "them")
    assert [reason.code for reason in looked(objects, uuids).findings()] == ["foreign-metadata"]
    assert objects.reads == 2
    theirs = Place(OURS.name, "them", OURS.roots, ())
    assert looked(objects, uuids, theirs).findings() == ()
    assert objects.reads == 2


def test_no_more_is_remembered_than_there_is_room_for(objects: CountingObjects) -> None:
    uuids = MetadataUuids(remembered_max=2)
    for number in range(4):
        objects.put(f"metadata/{number}.metadata.json", "ours")
    looked(objects, uuids)
    looked(objects, uuids)
    assert objects.reads == 8


def test_a_place_that_was_refused_keeps_its_findings(objects: CountingObjects) -> None:
    before = OURS.refused((Reason("gc-disabled", "so"),))
    objects.put("metadata/1.metadata.json", "them")
    assert [reason.code for reason in looked(objects, place=before).place().findings] == [
        "gc-disabled",
        "foreign-metadata",
    ]
    assert OURS.refused(()) is OURS


class TestOnALake:
    """By real tables of PyIceberg's, on local disk."""

    @pytest.fixture
    def lake(self, tmp_path: Path) -> CatalogEntry:
        return make_lake(tmp_path.resolve())

    def place(self, lake: CatalogEntry, path: tuple[str, ...], uuids: MetadataUuids | None = None) -> Place:
        name = TableName(lake.name, path[:-1], path[-1])
        catalog = PyIcebergCatalog(lake)
        made = [claim(catalog.load(one), Aliases()) for one in catalog.tables()]
        known = ownership(made).place(name)
        assert isinstance(known, Complete)
        (root,) = known.value.roots
        foreign = ForeignMetadata(LocalObjects(), known.value, uuids or MetadataUuids(), catalog.load(name), Aliases())
        assert list(foreign.watched(LocalObjects().list(CanonicalPath(root))))
        return foreign.place()

    def test_l6_a_try_of_our_own_that_met_another_commit_is_no_copy_and_anybody_elses_may_be(
        self, lake: CatalogEntry
    ) -> None:
        """Each of our tries has a snapshot id of its own, and a SQL catalog's client leaves its metadata file there."""
        table = make_table(lake, ("db", "t"))
        append(table, range(3))
        append(table, range(3))
        path = Path(table.refresh().metadata_location.removeprefix("file://"))
        tried = json.loads(path.read_text())
        head = next(one for one in tried["snapshots"] if one["snapshot-id"] == tried["current-snapshot-id"])
        head["snapshot-id"] = tried["current-snapshot-id"] = 4711
        head["summary"]["icewright.task-id"] = "task-1"
        stray = path.parent / "00002-11111111-1111-4111-8111-111111111111.metadata.json"
        stray.write_text(json.dumps(tried))
        uuid = str(table.metadata.table_uuid)
        ours = self.place(lake, ("db", "t"), MetadataUuids(lambda *asked: asked == ("task-1", uuid)))
        assert ours.findings == ()
        (reason,) = self.place(lake, ("db", "t")).findings
        assert reason.code == "other-history"

    def test_l4_a_table_that_was_dropped_and_made_anew_is_another_one(self, lake: CatalogEntry) -> None:
        first = make_table(lake, ("db", "t"))
        append(first, range(3))
        assert self.place(lake, ("db", "t")).roots == (f"file://{lake.warehouse}/db/t/",)
        writer(lake).drop_table(("db", "t"))
        append(make_table(lake, ("db", "t")), range(3))
        (reason,) = self.place(lake, ("db", "t")).findings
        assert reason.code == "foreign-metadata"
        assert str(first.metadata.table_uuid) in reason.text

    def test_o5_a_table_of_a_catalog_that_nobody_configured_is_found(self, lake: CatalogEntry, tmp_path: Path) -> None:
        append(make_table(lake, ("db", "t")), range(3))
        stranger = make_lake(tmp_path, "stranger")
        nested = writer(stranger)
        nested.create_namespace("db")
        nested.create_table(
            ("db", "inner"),
            make_table(stranger, ("db", "schema")).schema(),
            location=f"{lake.warehouse}/db/t/data/inner",
            properties={"write.metadata.compression-codec": "gzip"},
        )
        assert [reason.code for reason in self.place(lake, ("db", "t")).findings] == ["foreign-metadata"]


class CountingListings(MemoryObjects):
    """Counts what its listings have told."""

    told = 0

    def list(self, root: CanonicalPath) -> Iterator[Listed]:
        for one in super().list(root):
            self.told += 1
            yield one

    def list_folder(self, folder: CanonicalPath) -> Iterator[Listed]:
        for one in MemoryObjects(self._storage).list_folder(folder):
            self.told += 1
            yield one


@pytest.fixture
def counting() -> tuple[MemoryStorage, CountingListings]:
    storage = MemoryStorage(ManualClock())
    return storage, CountingListings(storage)


def test_a_namespace_called_metadata_around_the_place_is_not_listed_to_its_depths(
    counting: tuple[MemoryStorage, CountingListings],
) -> None:
    storage, objects = counting
    for number in range(100):
        storage.write(CanonicalPath(f"s3://b/metadata/t{number}/metadata/00000-x.metadata.json"), b"{}")
    around = TablesAround(objects, MetadataUuids(), Aliases())
    assert around.refusal(OURS) is None
    assert objects.told == 0
    storage.write(CanonicalPath("s3://b/metadata/00000-x.metadata.json"), b'{"table-uuid": "other"}')
    assert (found := around.refusal(OURS)) is not None
    assert found.code == "other-table-format"
    assert "s3://b/" in found.text


def test_the_first_entry_of_a_long_log_of_another_format_is_enough(
    counting: tuple[MemoryStorage, CountingListings],
) -> None:
    storage, objects = counting
    for number in range(100):
        storage.write(CanonicalPath(f"s3://b/_delta_log/{number:020d}.json"), b"{}")
    found = TablesAround(objects, MetadataUuids(), Aliases()).refusal(OURS)
    assert (found and found.code, objects.told) == ("other-table-format", 1)


@each_case("error", [Unreadable("S3 refuses: AccessDenied"), Unsupported("it is reached through a link")])
@each_case(("folder", "names_roots"), [("s3://b/wh/t/", False), ("s3://b/wh/", True), ("s3://b/", True)])
def test_a_folder_around_the_place_that_nobody_may_list_refuses_with_the_remedy(
    error: Unreadable | Unsupported, folder: str, *, names_roots: bool
) -> None:
    class Closed(MemoryObjects):
        def list(self, root: CanonicalPath) -> Iterator[Listed]:
            if root.removeprefix(folder).count("/") == 1:
                raise error
            return super().list(root)

    objects = Closed(MemoryStorage(ManualClock()))
    found = TablesAround(objects, MetadataUuids(), Aliases()).refusal(OURS)
    assert found is not None
    assert found.code == "place-not-owned"
    assert f"whether {folder!r} is another table" in found.text
    assert error.message in found.text
    assert "allow icewright to list that folder" in found.text
    assert ("name the `roots` of the catalog in the configuration" in found.text) is names_roots
    assert "/wh/t/" in folder or TablesAround(objects, MetadataUuids(), Aliases(), (ROOT,)).refusal(OURS) is None, (
        "which helps"
    )
