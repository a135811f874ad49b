"""What is particular to PyIceberg's catalog: damage in real files, foreign catalogs, what entries inherit."""

from __future__ import annotations

import gzip
import json
import os
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from pyiceberg.io import FileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestWriterV2,
    write_manifest_list,
)
from pyiceberg.table import Table
from pyiceberg.typedef import Record

from icewright.catalogs.metadata.manifests import Manifest, read_manifest_list
from icewright.catalogs.metadata.translated_errors import reading
from icewright.catalogs.pointers import catalog as catalog_module
from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.catalogs.storage.local import real_folder
from icewright.core.errors import IcewrightError, StorageUnavailable, Unavailable, Unreadable, Unsupported
from icewright.model.iceberg import files as domain_files
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.inventory import ManifestSummary
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import Snapshot, TableMetadata
from tests.cases import each_case
from tests.lakes import sqlite

NAME = TableName("lake", ("db",), "events")
BONN = domain_files.Partition(0, '["Bonn"]')


@pytest.fixture
def entry(tmp_path: Path) -> CatalogEntry:
    return sqlite.make_lake(tmp_path)


@pytest.fixture
def table(entry: CatalogEntry) -> Table:
    return sqlite.make_table(entry, spec=sqlite.BY_CITY)


def loaded(entry: CatalogEntry) -> tuple[PyIcebergCatalog, TableMetadata, Snapshot]:
    catalog = PyIcebergCatalog(entry)
    metadata = catalog.load(NAME)
    assert metadata.current_snapshot is not None
    return catalog, metadata, metadata.current_snapshot


def local(location: str) -> Path:
    return Path(location.removeprefix("file://"))


def execute(entry: CatalogEntry, statement: str, *values: str) -> None:
    with closing(sqlite3.connect(sqlite.database(entry))) as connection, connection:
        connection.execute(statement, values)


def test_looking_for_a_catalog_does_not_create_it(tmp_path: Path) -> None:
    entry = replace(sqlite.make_lake(tmp_path), uri=f"sqlite:///{tmp_path}/missing.db")
    with pytest.raises(Unavailable):
        list(PyIcebergCatalog(entry).tables())
    assert not sqlite.database(entry).exists()


def test_an_empty_database_is_no_catalog(tmp_path: Path) -> None:
    entry = replace(sqlite.make_lake(tmp_path), uri=f"sqlite:///{tmp_path}/empty.db")
    sqlite.database(entry).touch()
    with pytest.raises(Unavailable):
        list(PyIcebergCatalog(entry).tables())


def test_a_database_that_is_none_is_unavailable(tmp_path: Path) -> None:
    entry = sqlite.make_lake(tmp_path)
    sqlite.database(entry).write_bytes(b"this is no database" * 100)
    with pytest.raises(Unavailable):
        PyIcebergCatalog(entry).metadata_location(NAME)


def test_a_path_with_url_characters_is_taken_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "a %41?b#c"
    folder.mkdir()
    entry = sqlite.make_lake(tmp_path)
    sqlite.make_table(entry)
    moved = folder / "lake.db"
    sqlite.database(entry).rename(moved)
    other = replace(entry, uri="sqlite:///" + str(moved).replace("%", "%25").replace("?", "%3F").replace("#", "%23"))
    assert list(PyIcebergCatalog(other).tables()) == [NAME]


def test_catalogs_of_schema_v0_have_no_column_for_views(entry: CatalogEntry, table: Table) -> None:
    execute(entry, "ALTER TABLE iceberg_tables DROP COLUMN iceberg_type")
    catalog = PyIcebergCatalog(entry)
    assert list(catalog.tables()) == [NAME]
    assert catalog.load(NAME).table_id.uuid == str(table.metadata.table_uuid)


def test_views_and_other_catalogs_rows_are_not_listed(entry: CatalogEntry, table: Table) -> None:
    insert = "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, iceberg_type)"
    execute(entry, f"{insert} VALUES ('lake', 'db', 'a_view', 'file:///v', 'VIEW')")
    execute(entry, f"{insert} VALUES ('other', 'db', 'theirs', 'file:///t', 'TABLE')")
    execute(entry, f"{insert} VALUES ('lake', '', 'rootless', 'file:///r', 'TABLE')")
    assert list(PyIcebergCatalog(entry).tables()) == [NAME]
    assert table.name() == NAME.path


def test_a_missing_metadata_file_is_unreadable(entry: CatalogEntry, table: Table) -> None:
    local(table.metadata_location).unlink()
    with pytest.raises(Unreadable, match="cannot be opened"):
        PyIcebergCatalog(entry).load(NAME)


@pytest.mark.filterwarnings("ignore:No preferred file implementation")
def test_a_location_of_an_unknown_kind_concerns_its_table_alone(entry: CatalogEntry, table: Table) -> None:
    execute(entry, "UPDATE iceberg_tables SET metadata_location = ?", "gopher://there/m.json")
    with pytest.raises(Unreadable):
        PyIcebergCatalog(entry).load(NAME)
    assert table.name() == NAME.path


def test_gzipped_metadata(entry: CatalogEntry, table: Table) -> None:
    plain = local(table.metadata_location)
    zipped = plain.with_name("v9.gz.metadata.json")
    zipped.write_bytes(gzip.compress(plain.read_bytes()))
    execute(entry, "UPDATE iceberg_tables SET metadata_location = ?", f"file://{zipped}")
    assert PyIcebergCatalog(entry).load(NAME).table_id.uuid == str(table.metadata.table_uuid)
    zipped.write_bytes(b"\x1f\x8b" + b"broken" * 5)
    with pytest.raises(Unreadable):
        PyIcebergCatalog(entry).load(NAME)


def test_a_v1_table_without_a_uuid_is_marked_and_known_by_its_name_and_location(
    entry: CatalogEntry, table: Table
) -> None:
    path = local(table.metadata_location)
    raw = json.loads(path.read_text())
    del raw["table-uuid"]
    path.write_text(json.dumps({**raw, "format-version": 1}))
    found = PyIcebergCatalog(entry).load(NAME)
    assert not found.has_uuid
    assert found.table_id == PyIcebergCatalog(entry).load(NAME).table_id
    assert found.table_id.uuid.startswith("no-uuid-")
    path.write_text(json.dumps({**raw, "format-version": 1, "location": "file:///elsewhere"}))
    assert PyIcebergCatalog(entry).load(NAME).table_id != found.table_id


@each_case(
    ("error", "expected"),
    [
        (FileNotFoundError("gone"), Unreadable),
        (PermissionError("no"), Unreadable),
        (ConnectionResetError("gone"), StorageUnavailable),
        (TimeoutError(), StorageUnavailable),
        (OSError("When reading: AWS Error ACCESS_DENIED during GetObject operation"), Unreadable),
        (ModuleNotFoundError("No module named 'ossfs'"), Unsupported),
        (OSError("When reading: AWS Error NETWORK_CONNECTION during GetObject operation"), StorageUnavailable),
        (gzip.BadGzipFile("no"), Unreadable),
        (MemoryError(), Unreadable),
        (UnicodeDecodeError("utf-8", b"", 0, 1, "no"), Unreadable),
        (NotImplementedError("geometry"), Unsupported),
    ],
)
def test_errors_are_translated_at_the_door(error: Exception, expected: type[IcewrightError]) -> None:
    with pytest.raises(IcewrightError) as caught, reading("something"):
        raise error
    assert type(caught.value) is expected
    assert caught.value.__cause__ is error


def test_other_errors_are_nobodys_to_translate() -> None:
    with pytest.raises(RuntimeError, match="a bug"), reading("something"):
        raise RuntimeError("a bug")


def test_a_file_cut_off_anywhere_is_noticed(entry: CatalogEntry, table: Table) -> None:
    for ids in range(3):
        sqlite.append(table, [ids], ["Bonn"])
    catalog, metadata, snapshot = loaded(entry)
    (newest, *_) = catalog.manifests(metadata, snapshot)
    for path, read in (
        (local(snapshot.manifest_list), lambda: PyIcebergCatalog(entry).manifests(metadata, snapshot)),
        (local(newest.path), lambda: list(catalog.summarize(metadata, snapshot, [newest]))),
    ):
        whole = path.read_bytes()
        for length in (*range(0, len(whole), 37), len(whole) - 16, len(whole) - 1):
            path.write_bytes(whole[:length])
            with pytest.raises(Unreadable):
                read()
        path.write_bytes(whole)
        read()


def test_a_manifest_list_is_read_once_for_its_table_and_snapshot(entry: CatalogEntry, table: Table) -> None:
    sqlite.append(table, [1], ["Bonn"])
    catalog, metadata, snapshot = loaded(entry)
    keys = catalog.manifests(metadata, snapshot)
    local(snapshot.manifest_list).unlink()
    assert catalog.manifests(metadata, snapshot) == keys
    assert len(list(catalog.summarize(metadata, snapshot, keys))) == 1
    # Paths have been reused: the list of another table, or of another snapshot, is another one.
    other = replace(metadata, table_id=replace(metadata.table_id, uuid="another"))
    for table_asked, snapshot_asked in ((other, snapshot), (metadata, replace(snapshot, snapshot_id=1))):
        with pytest.raises(Unreadable):
            catalog.manifests(table_asked, snapshot_asked)


def lists_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The snapshots whose manifest lists are read from now on."""
    read = list[int]()

    def note(io: FileIO, snapshot: Snapshot) -> tuple[Manifest, ...]:
        read.append(snapshot.snapshot_id)
        return read_manifest_list(io, snapshot)

    monkeypatch.setattr(catalog_module, "read_manifest_list", note)
    return read


def test_several_looks_that_ask_in_turns_for_their_lists_read_each_once(
    entry: CatalogEntry, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(8):
        sqlite.append(table, [number])
    catalog, metadata, _ = loaded(entry)
    read = lists_read(monkeypatch)
    for snapshot in 2 * metadata.snapshots:
        catalog.manifests(metadata, snapshot)
    assert read == [snapshot.snapshot_id for snapshot in metadata.snapshots]


def test_lists_are_kept_as_far_as_their_manifests_are_not_too_many(
    entry: CatalogEntry, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        sqlite.append(table, [number])
    catalog, metadata, _ = loaded(entry)
    one, two, three, four = metadata.snapshots  # of so many manifests each
    monkeypatch.setattr(catalog_module, "_MANIFESTS_KEPT", 4)
    read = lists_read(monkeypatch)
    for snapshot in (one, two, one, two, four, four, three, one, three):
        catalog.manifests(metadata, snapshot)
    assert read == [each.snapshot_id for each in (one, two, four, three, one)]


def test_a_list_that_two_looks_read_at_once_is_counted_once(
    entry: CatalogEntry, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2):
        sqlite.append(table, [number])
    catalog, metadata, _ = loaded(entry)
    one, two = metadata.snapshots  # of so many manifests each
    monkeypatch.setattr(catalog_module, "_MANIFESTS_KEPT", 3)
    read = list[int]()

    def meanwhile(io: FileIO, snapshot: Snapshot) -> tuple[Manifest, ...]:
        read.append(snapshot.snapshot_id)
        if read.count(two.snapshot_id) == 1:
            catalog.manifests(metadata, two)
        return read_manifest_list(io, snapshot)

    monkeypatch.setattr(catalog_module, "read_manifest_list", meanwhile)
    for snapshot in (one, two, one, two):
        catalog.manifests(metadata, snapshot)
    assert read == [one.snapshot_id, two.snapshot_id, two.snapshot_id]


def test_any_damage_ends_in_an_error_of_ours_or_in_none(entry: CatalogEntry, table: Table) -> None:
    sqlite.append(table, [1], ["Bonn"])
    catalog, metadata, snapshot = loaded(entry)
    (key,) = catalog.manifests(metadata, snapshot)
    dice = random.Random(3)  # noqa: S311 - repeatable damage, no secret
    for path in (local(snapshot.manifest_list), local(key.path), local(metadata.metadata_location)):
        whole = path.read_bytes()
        for _ in range(150):
            damaged = bytearray(whole)
            for _ in range(dice.randint(1, 4)):
                damaged[dice.randrange(len(damaged))] = dice.randrange(256)
            path.write_bytes(damaged)
            try:
                fresh = PyIcebergCatalog(entry)  # which has read no manifest list yet
                list(fresh.summarize(fresh.load(NAME), snapshot, [key]))
            except IcewrightError:
                pass
            finally:
                path.write_bytes(whole)


def test_a_path_with_a_nul_leads_nowhere() -> None:
    assert real_folder("file:///a/\0/b/") == "file:///a/\0/b/"


def test_a_manifest_that_was_written_over_is_noticed(entry: CatalogEntry, table: Table) -> None:
    sqlite.append(table, [1], ["Bonn"])
    sqlite.append(table, [2, 3], ["Bonn", "Köln, which makes the manifest longer"])
    catalog, metadata, snapshot = loaded(entry)
    one, other = catalog.manifests(metadata, snapshot)
    local(one.path).write_bytes(local(other.path).read_bytes())
    with pytest.raises(Unreadable, match="bytes long"):
        list(catalog.summarize(metadata, snapshot, [one]))


def test_a_manifest_list_without_manifests_contradicts_its_summary(entry: CatalogEntry, table: Table) -> None:
    sqlite.append(table, [1], ["Bonn"])
    catalog, metadata, snapshot = loaded(entry)
    with write_manifest_list(2, table.io.new_output(f"{table.location()}/empty.avro"), 1, None, 1, "null") as writer:
        writer.add_manifests([])
    empty = replace(snapshot, manifest_list=f"{table.location()}/empty.avro")
    with pytest.raises(Unreadable, match="1 data files"):
        catalog.manifests(metadata, empty)
    assert catalog.manifests(metadata, replace(empty, summary={})) == ()


def test_a_snapshot_without_a_manifest_list_is_unsupported(entry: CatalogEntry, table: Table) -> None:
    sqlite.append(table, [1], ["Bonn"])
    catalog, metadata, snapshot = loaded(entry)
    with pytest.raises(Unsupported, match="no manifest list"):
        catalog.manifests(metadata, replace(snapshot, manifest_list=""))


def test_the_first_file_of_a_commit_tells_when_its_writer_began(entry: CatalogEntry, table: Table) -> None:
    sqlite.append(table, range(2), ["Bonn", "Köln"])
    sqlite.append(table, range(2), ["Bonn", "Köln"])
    catalog, metadata, snapshot = loaded(entry)
    first, second = metadata.snapshots
    for position, path in enumerate(sorted(local(str(f)) for f in table.inspect.files()["file_path"].to_pylist())):
        os.utime(path, (position + 100, position + 100))
    times = {catalog.first_written_at(metadata, first), catalog.first_written_at(metadata, second)}
    assert times <= {100_000, 101_000, 102_000}
    assert len(times) == 2
    for path in local(f"{table.location()}/data").rglob("*.parquet"):
        path.unlink()
    assert catalog.first_written_at(metadata, snapshot) is None


class _DeleteManifest(ManifestWriterV2):
    """PyIceberg writes no delete manifests; other engines do."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES


class _Careless(ManifestWriterV2):
    """PyIceberg refuses to write what the spec forbids."""

    def prepare_entry(self, entry: ManifestEntry) -> ManifestEntry:
        return entry


class _OfTheFuture(ManifestWriterV2):
    """Writes a status that the spec does not have."""

    def prepare_entry(self, entry: ManifestEntry) -> ManifestEntry:
        entry.status = 3  # type: ignore[assignment] # the library's enum ends at 2
        return entry


def entry_of(
    status: ManifestEntryStatus,
    *,
    content: DataFileContent = DataFileContent.DATA,
    file_format: FileFormat = FileFormat.PARQUET,
    sequence_number: int | None = None,
    records: int = 10,
) -> ManifestEntry:
    data_file = DataFile.from_args(
        content=content,
        file_path=f"file:///{content.name}-{file_format.name}-{records}",
        file_format=file_format,
        partition=Record("Bonn"),
        record_count=records,
        file_size_in_bytes=1000,
        column_sizes={},
        value_counts={},
        null_value_counts={},
        nan_value_counts={},
        lower_bounds={},
        upper_bounds={},
    )
    data_file.spec_id = 0
    return ManifestEntry.from_args(
        status=status,
        snapshot_id=None,
        sequence_number=sequence_number,
        file_sequence_number=sequence_number,
        data_file=data_file,
    )


def written(
    table: Table, entry: CatalogEntry, kind: type[ManifestWriterV2], entries: list[ManifestEntry], *, claimed: int = 0
) -> Iterator[ManifestSummary]:
    """The summary of a manifest with these entries, as sequence number 7 of a snapshot 99 has it."""
    catalog = PyIcebergCatalog(entry)
    metadata = catalog.load(NAME)
    output = table.io.new_output(f"{table.location()}/metadata/made.avro")
    with kind(table.spec(), table.schema(), output, 99, "null") as writer:
        for item in entries:
            writer.add_entry(item)
    location = f"{table.location()}/metadata/list.avro"
    with write_manifest_list(2, table.io.new_output(location), 99, None, 7, "null") as writer_of_list:
        manifest = writer.to_manifest_file()
        manifest[7] += claimed  # added files that are not there
        writer_of_list.add_manifests([manifest])
    snapshot = Snapshot(99, None, 7, 1, None, location, None, {})
    return catalog.summarize(metadata, snapshot, catalog.manifests(metadata, snapshot))


def test_delete_files_of_all_kinds(entry: CatalogEntry, table: Table) -> None:
    added = ManifestEntryStatus.ADDED
    entries = [
        entry_of(added, content=DataFileContent.POSITION_DELETES, records=3),
        entry_of(added, content=DataFileContent.POSITION_DELETES, file_format=FileFormat.PUFFIN, records=4),
        entry_of(added, content=DataFileContent.EQUALITY_DELETES, file_format=FileFormat.AVRO, records=5),
        entry_of(ManifestEntryStatus.DELETED, content=DataFileContent.POSITION_DELETES, sequence_number=2),
    ]
    (summary,) = written(table, entry, _DeleteManifest, entries)
    assert summary.content is domain_files.FileContent.POSITION_DELETES
    share = summary.partitions[BONN]
    counts = share.counts
    assert (counts.position_delete_files, counts.deletion_vectors, counts.equality_delete_files) == (1, 1, 1)
    assert (counts.deleted_records, counts.data_files, share.removed_files) == (7, 0, 1)
    assert share.sequence_number_max is None


def test_added_entries_inherit_and_existing_ones_do_not(entry: CatalogEntry, table: Table) -> None:
    existing = entry_of(ManifestEntryStatus.EXISTING, sequence_number=3)
    (summary,) = written(table, entry, ManifestWriterV2, [existing])
    assert summary.partitions[BONN].sequence_number_max == 3
    (summary,) = written(table, entry, ManifestWriterV2, [existing, entry_of(ManifestEntryStatus.ADDED)])
    assert summary.partitions[BONN].sequence_number_max == 7
    assert summary.partitions[BONN].snapshot_ids == frozenset()


def test_an_existing_entry_without_a_sequence_number_is_damage(entry: CatalogEntry, table: Table) -> None:
    with pytest.raises(Unreadable, match="no sequence number"):
        list(written(table, entry, _Careless, [entry_of(ManifestEntryStatus.EXISTING)]))


def test_a_manifest_with_other_than_the_listed_number_of_entries_is_damage(entry: CatalogEntry, table: Table) -> None:
    with pytest.raises(Unreadable, match="1 entries, and the manifest list says 2"):
        list(written(table, entry, ManifestWriterV2, [entry_of(ManifestEntryStatus.ADDED)], claimed=1))


def test_an_unknown_status_is_never_taken_for_a_live_file(entry: CatalogEntry, table: Table) -> None:
    with pytest.raises(Unreadable, match="unknown status 3"):
        list(written(table, entry, _OfTheFuture, [entry_of(ManifestEntryStatus.ADDED)]))
