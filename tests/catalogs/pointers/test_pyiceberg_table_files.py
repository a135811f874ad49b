"""All files of real tables: against PyIceberg's own inspection, and metadata of all versions that was tampered with."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.typedef import Record
from pyiceberg.types import IntegerType, LongType, NestedField, StringType

from icewright.catalogs.local_spool import open_disk_spool
from icewright.catalogs.metadata import avro
from icewright.catalogs.metadata import bounded_reader as bounded
from icewright.catalogs.pointers import pointers
from icewright.catalogs.pointers.pointers import Pointed
from icewright.catalogs.pointers.table_files import PyIcebergTableFiles
from icewright.core.completeness import Complete, Known, Partial
from icewright.core.errors import StorageUnavailable, Unreadable, Unsupported
from icewright.inventory.reference_bits import reference_bits
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.locations import Aliases
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.reachable_files import FileClass, ListedManifest, Roots
from icewright.ownership.reachable import Reachable, reachable
from tests.cases import each_case
from tests.inventory.test_pyiceberg_histories import Writer
from tests.lakes import sqlite
from tests.lakes.manifests import DELETED, EXISTING, Made, snapshot_of

STEPS = 10


class Busy(Writer):
    """Tags and expires as well."""

    def _steps(self) -> Sequence[Callable[[], None]]:
        steps = super()._steps()
        return steps if self._table.current_snapshot() is None else (*steps, self._tag, self._expire)

    def _tag(self) -> None:
        chosen = self._dice.choice(self._table.metadata.snapshots)
        name = f"tag{self._dice.randrange(3)}"
        with self._table.manage_snapshots() as manage:
            if name in self._table.metadata.refs:
                manage.remove_tag(name)
            else:
                manage.create_tag(chosen.snapshot_id, name)

    def _expire(self) -> None:
        kept = {ref.snapshot_id for ref in self._table.metadata.refs.values()}
        old = [one.snapshot_id for one in self._table.metadata.snapshots if one.snapshot_id not in kept]
        if old:
            self._table.maintenance.expire_snapshots().by_id(self._dice.choice(old)).commit()


def reach(entry: CatalogEntry, table: Table) -> tuple[Known[Reachable], dict[str, FileClass]]:
    with reachable(
        PyIcebergTableFiles(entry),
        sqlite.table_name(table),
        lambda metadata: reference_bits(metadata, (), 0),
        open_disk_spool,
        aliases=Aliases(),
        progress=lambda _step, _done, _total: None,
    ) as known:
        found = known.value if isinstance(known, Complete) else known.found
        return known, {str(file.path): file.file_class for file in found.files()}


def gaps(entry: CatalogEntry, table: Table) -> dict[str, str]:
    known, _ = reach(entry, table)
    return {gap.what: gap.reason.code for gap in known.gaps} if isinstance(known, Partial) else {}


def inspected(table: Table) -> dict[str, FileClass]:
    """All files by PyIceberg's own metadata tables; deletion vectors and deletes it does not write."""
    table.refresh()
    metadata = table.metadata
    found = {entry.metadata_file: FileClass.METADATA for entry in metadata.metadata_log}
    found[table.metadata_location] = FileClass.METADATA
    found |= {snapshot.manifest_list: FileClass.MANIFEST_LIST for snapshot in metadata.snapshots}
    found |= dict.fromkeys(table.inspect.all_manifests()["path"].to_pylist(), FileClass.MANIFEST)
    for snapshot in metadata.snapshots:
        found |= dict.fromkeys(table.inspect.files(snapshot.snapshot_id)["file_path"].to_pylist(), FileClass.DATA)
    return {**found, f"{table.location()}/metadata/version-hint.text": FileClass.VERSION_HINT}


@pytest.mark.filterwarnings("ignore:Delete operation did not match any records")
@each_case("seed", range(4))
def test_o7_all_files_are_those_of_pyicebergs_inspection(tmp_path: Path, seed: int) -> None:
    entry = sqlite.make_lake(tmp_path)
    merging = {"commit.manifest-merge.enabled": str(seed % 2 == 0).lower(), "commit.manifest.min-count-to-merge": "2"}
    table = sqlite.make_table(entry, spec=sqlite.BY_CITY, properties={"format-version": str(1 + seed // 2), **merging})
    writer = Busy(table, Random(seed))  # noqa: S311 - a history to be repeated, no secret
    for _ in range(STEPS):
        writer.step()
        known, found = reach(entry, table)
        assert isinstance(known, Complete)
        assert found == inspected(table)
        for path, file_class in found.items():
            assert Path(path.removeprefix("file://")).exists() is (file_class is not FileClass.VERSION_HINT)


@pytest.fixture
def entry(tmp_path: Path) -> CatalogEntry:
    return sqlite.make_lake(tmp_path)


@pytest.fixture
def table(entry: CatalogEntry) -> Table:
    made = sqlite.make_table(entry, spec=sqlite.BY_CITY)
    sqlite.append(made, range(4), ("Bonn", "Ulm"))
    sqlite.append(made, range(4, 8), ("Bonn",))
    made.delete("city = 'Ulm'")
    return made.refresh()


def local(location: str) -> Path:
    return Path(location.removeprefix("file://"))


def change(table: Table, edit: Callable[[dict[str, Any]], None]) -> None:
    """Edit the metadata file in its place."""
    file = local(table.metadata_location)
    metadata = json.loads(file.read_text())
    edit(metadata)
    file.write_text(json.dumps(metadata))


UNKNOWN_FIELDS: Mapping[str, Callable[[dict[str, Any]], Any]] = {
    "materialized-view-files": lambda metadata: metadata.update({"materialized-view-files": ["s3://b/x"]}),
    "flag": lambda metadata: metadata.update(flag=True),
    "snapshots.index-file": lambda metadata: metadata["snapshots"][0].update({"index-file": "s3://b/x"}),
    "refs.file": lambda metadata: metadata["refs"]["main"].update(file="s3://b/x"),
    "encryption-keys.key-file": lambda metadata: metadata.update(
        {"encryption-keys": [{"key-id": "1", "key-file": "x"}]}
    ),
    "statistics.blob-metadata.path": lambda metadata: metadata.update(
        statistics=[{**statistics(1), "blob-metadata": [{"type": "x", "path": "s3://b/x"}]}]
    ),
    "metadata-log.checksum-file": lambda metadata: metadata["metadata-log"][0].update({"checksum-file": "x"}),
    "statistics.sketch-path": lambda metadata: metadata.update(statistics=[{**statistics(1), "sketch-path": "s3://b"}]),
    "partition-statistics.next": lambda metadata: metadata.update(
        {"partition-statistics": [{**statistics(1), "next": 1}]}
    ),
}


def statistics(snapshot_id: int, path: str = "s3://b/statistics.puffin") -> dict[str, Any]:
    return {
        "snapshot-id": snapshot_id,
        "statistics-path": path,
        "file-size-in-bytes": 77,
        "file-footer-size-in-bytes": 7,
        "blob-metadata": [],
    }


@pytest.mark.parametrize("field", UNKNOWN_FIELDS)
def test_o7_a_field_that_nobody_knows_is_a_gap(entry: CatalogEntry, table: Table, field: str) -> None:
    assert gaps(entry, table) == {}
    change(table, UNKNOWN_FIELDS[field])
    assert gaps(entry, table) == {field: "unknown-field"}


def test_o7_e9_statistics_of_both_kinds_are_files_of_their_snapshot(entry: CatalogEntry, table: Table) -> None:
    current = sqlite.current_snapshot_id(table)
    gone = {**statistics(1, "s3://b/gone.puffin")}

    def edit(metadata: dict[str, Any]) -> None:
        metadata["statistics"] = [statistics(current), gone]
        metadata["partition-statistics"] = [statistics(metadata["snapshots"][0]["snapshot-id"], "s3a://b/p.parquet")]

    change(table, edit)
    known, found = reach(entry, table)
    assert isinstance(known, Complete)
    assert found["s3://b/statistics.puffin"] is found["s3://b/gone.puffin"] is FileClass.STATISTICS
    assert found["s3://b/p.parquet"] is FileClass.PARTITION_STATISTICS


@pytest.mark.parametrize("version", [0, 4, 99])
def test_o7_another_format_version_is_refused(entry: CatalogEntry, table: Table, version: int) -> None:
    change(table, lambda metadata: metadata.update({"format-version": version}))
    with pytest.raises(Unsupported):
        reach(entry, table)


def test_snapshots_of_v1_may_have_their_manifests_in_the_metadata(tmp_path: Path) -> None:
    entry = sqlite.make_lake(tmp_path)
    table = sqlite.make_table(entry, properties={"format-version": "1"})
    for number in range(3):
        sqlite.append(table, range(number, number + 2))
    table.refresh()
    manifests = {
        one.snapshot_id: [m.manifest_path for m in one.manifests(table.io)] for one in table.metadata.snapshots
    }
    expected = inspected(table)

    def embed(metadata: dict[str, Any]) -> None:
        for snapshot in metadata["snapshots"]:
            del snapshot["manifest-list"]
            snapshot["manifests"] = manifests[snapshot["snapshot-id"]]

    change(table, embed)
    known, found = reach(entry, table)
    assert isinstance(known, Complete)
    assert found == {path: one for path, one in expected.items() if one is not FileClass.MANIFEST_LIST}

    def drop_one(metadata: dict[str, Any]) -> None:
        metadata["snapshots"][-1]["manifests"].pop()

    change(table, drop_one)
    assert set(gaps(entry, table).values()) == {"too-few-files"}


def test_both_a_list_and_manifests_is_more_than_anybody_knows(entry: CatalogEntry, table: Table) -> None:
    change(table, lambda metadata: metadata["snapshots"][0].update(manifests=["file:///x"]))
    assert set(gaps(entry, table).values()) == {"unknown-field"}


def made_snapshot(table: Table, *manifests: Sequence[Made]) -> None:
    """A further snapshot with these manifests, into the metadata."""
    snapshot = snapshot_of(table, *manifests)
    live = [one for made in manifests for one in made if one.status is not DELETED]
    data = sum(one.content is DataFileContent.DATA for one in live)

    def add(metadata: dict[str, Any]) -> None:
        metadata["snapshots"].append(
            {
                "snapshot-id": snapshot.snapshot_id,
                "sequence-number": snapshot.sequence_number,
                "timestamp-ms": 1,
                "manifest-list": snapshot.manifest_list,
                "summary": {
                    "operation": "append",
                    "total-data-files": str(data),
                    "total-delete-files": str(len(live) - data),
                },
            }
        )

    change(table, add)


POSITION, EQUALITY = DataFileContent.POSITION_DELETES, DataFileContent.EQUALITY_DELETES


def test_o7_v5_every_class_of_files_and_many_vectors_in_one_puffin(tmp_path: Path) -> None:
    entry = sqlite.make_lake(tmp_path)
    table = sqlite.make_table(entry)
    change(table, lambda metadata: metadata.update({"format-version": 3, "next-row-id": 0}))
    made_snapshot(
        table,
        [
            Made("s3://b/old", status=DELETED, sequence_number=1),
            Made("s3a://b/data"),
            Made("s3://b/data", status=EXISTING, sequence_number=1),
            Made("s3://b/kept", status=EXISTING, sequence_number=1),
            Made("s3://b/orc", file_format=FileFormat.ORC),
        ],
        [
            Made("s3://b/positions", POSITION),
            Made("s3://b/equal", EQUALITY),
            Made(
                "s3://b/shared.puffin",
                POSITION,
                FileFormat.PUFFIN,
                more={"referenced_data_file": "s3://b/data", "content_offset": 4},
            ),
            Made(
                "s3://b/shared.puffin",
                POSITION,
                FileFormat.PUFFIN,
                more={"referenced_data_file": "s3://b/orc", "content_offset": 90},
            ),
            Made("s3://b/gone.puffin", POSITION, FileFormat.PUFFIN, status=DELETED, sequence_number=1),
        ],
    )
    known, found = reach(entry, table)
    assert isinstance(known, Complete), known
    assert {path: one for path, one in found.items() if path.startswith("s3:")} == {
        "s3://b/data": FileClass.DATA,
        "s3://b/kept": FileClass.DATA,
        "s3://b/orc": FileClass.DATA,
        "s3://b/positions": FileClass.POSITION_DELETES,
        "s3://b/equal": FileClass.EQUALITY_DELETES,
        "s3://b/shared.puffin": FileClass.DELETION_VECTORS,
    }


@pytest.mark.parametrize(
    "made", [Made("s3://b/p", file_format=FileFormat.PUFFIN), Made("s3://b/e", EQUALITY, FileFormat.PUFFIN)]
)
def test_o7_a_kind_of_file_that_the_specification_does_not_have_is_a_gap(
    entry: CatalogEntry, table: Table, made: Made
) -> None:
    made_snapshot(table, [made])
    assert "unsupported" in gaps(entry, table).values()


def test_deletion_vectors_are_unknown_to_version_2(entry: CatalogEntry, table: Table) -> None:
    made_snapshot(table, [Made("s3://b/v", POSITION, FileFormat.PUFFIN)])
    assert gaps(entry, table) == {"s3://b/v": "unknown-class"}


def test_o7_a_column_of_manifests_that_nobody_knows_is_a_gap(entry: CatalogEntry, table: Table) -> None:
    """Such as the column files of a format to come."""
    location = f"{table.location()}/metadata/strange.avro"
    schema = Schema(
        NestedField(500, "manifest_path", StringType(), required=True),
        NestedField(501, "manifest_length", LongType(), required=True),
        NestedField(517, "content", IntegerType(), required=True),
        NestedField(599, "column_file", StringType(), required=True),
    )
    with AvroOutputFile[Record](
        output_file=table.io.new_output(location),
        file_schema=schema,
        record_schema=schema,
        schema_name="manifest_file",
        metadata={},
    ) as writer:
        writer.write_block([Record("file:///x", 1, 0, "file:///y")])
    change(table, lambda metadata: metadata["snapshots"][0].update({"manifest-list": location}))
    assert "unsupported" in gaps(entry, table).values()


def read_paths(entry: CatalogEntry, table: Table) -> list[str]:
    """Every manifest list and manifest."""
    _, found = reach(entry, table)
    return [path for path, one in found.items() if one in (FileClass.MANIFEST_LIST, FileClass.MANIFEST)]


def spoiled(content: bytes) -> Iterator[bytes | None]:
    yield None
    yield b""
    yield content[: len(content) // 2]
    yield content[:-1]
    yield content[: content.rindex(content[-16:])]
    yield content + b"\0"


def test_o13_e7_a_file_that_is_missing_or_cut_off_is_never_a_smaller_complete_answer(
    entry: CatalogEntry, table: Table
) -> None:
    """Every manifest list and every manifest of every snapshot, in several ways."""
    _, everything = reach(entry, table)
    paths = read_paths(entry, table)
    assert len(paths) >= 6
    for path in paths:
        file = local(path)
        content = file.read_bytes()
        for bad in spoiled(content):
            if bad is None:
                file.unlink()
            else:
                file.write_bytes(bad)
            known, found = reach(entry, table)
            assert isinstance(known, Partial), (path, bad and len(bad))
            assert path in {gap.what for gap in known.gaps}
            assert found.keys() <= everything.keys()
        file.write_bytes(content)
    assert isinstance(reach(entry, table)[0], Complete)


def test_a_manifest_that_was_written_over_by_another_one_is_noticed(entry: CatalogEntry, table: Table) -> None:
    """Writers have used a name twice; both are whole and have as many entries."""
    manifest = table.metadata.snapshots[0].manifests(table.io)[0]
    entries = len(manifest.fetch_manifest_entry(table.io, discard_deleted=False))
    snapshot_of(table, [Made(f"s3://b/{number}") for number in range(entries)])
    local(manifest.manifest_path).write_bytes(local(f"{table.location()}/metadata/made-0.avro").read_bytes())
    known, _ = reach(entry, table)
    assert isinstance(known, Partial)
    assert {gap.what for gap in known.gaps} == {manifest.manifest_path}
    assert "bytes long" in known.gaps[0].reason.text


def test_a_list_that_was_cut_off_behind_its_header_is_noticed(entry: CatalogEntry, table: Table) -> None:
    """A valid file without manifests."""
    snapshot = table.metadata.snapshots[0]
    file = local(snapshot.manifest_list)
    content = file.read_bytes()
    sync = content[-16:]
    file.write_bytes(content[: content.index(sync) + 16])
    assert gaps(entry, table) == {snapshot.manifest_list: "too-few-files"}


@pytest.mark.parametrize("error", [TimeoutError("no answer"), OSError("AWS Error SLOW_DOWN"), ConnectionResetError()])
def test_o13_e7_storage_that_does_not_answer_is_an_error_at_every_read(
    entry: CatalogEntry, table: Table, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    """Whichever read it is: the k-th one fails, for every k."""
    read_whole = bounded.read_whole
    reads = wrong_at = 0

    def read(io: FileIO, path: str, bytes_max: int) -> bytes:
        nonlocal reads
        reads += 1
        if reads == wrong_at:
            raise error
        return read_whole(io, path, bytes_max)

    monkeypatch.setattr(avro, "read_whole", read)
    monkeypatch.setattr(pointers, "read_whole", read)
    reach(entry, table)
    for number in range(1, reads + 1):
        reads, wrong_at = 0, number
        with pytest.raises(StorageUnavailable):
            reach(entry, table)


def test_files_that_are_not_there_are_unreadable(entry: CatalogEntry, table: Table) -> None:
    files = PyIcebergTableFiles(entry)
    metadata = files.roots(sqlite.table_name(table)).metadata
    missing = f"{table.location()}/metadata/nothing.avro"
    asked: tuple[Callable[[], object], ...] = (
        lambda: files.manifests(metadata, missing),
        lambda: list(files.live_files(metadata, ListedManifest(missing))),
        lambda: files.size_bytes(metadata, missing),
    )
    for ask in asked:
        with pytest.raises(Unreadable):
            ask()
    assert files.size_bytes(metadata, table.metadata_location) == local(table.metadata_location).stat().st_size


class Answering:
    """A REST catalog whose answer may know less than the metadata file; files are read as ever."""

    def __init__(self, table: Table, change: Callable[[dict[str, Any]], None]) -> None:
        metadata = json.loads(local(table.metadata_location).read_text())
        change(metadata)
        self._pointed = Pointed(table.metadata_location, metadata)
        self._io = table.io

    def load(self, _name: TableName) -> Pointed:
        return self._pointed

    def file_io(self, _location: str) -> FileIO:
        return self._io


def rest_roots(table: Table, change: Callable[[dict[str, Any]], None]) -> Roots:
    files = PyIcebergTableFiles(CatalogEntry("lake", CatalogKind.REST, "http://127.0.0.1:1", ""))
    files._pointers = Answering(table, change)  # type: ignore[assignment]  # what is asked of it here
    return files.roots(sqlite.table_name(table))


def test_behind_a_rest_catalog_the_metadata_file_counts(table: Table) -> None:
    """The catalog did not understand a field, and left it out."""
    change(table, lambda metadata: metadata.update({"materialized-view-files": ["s3://b/x"]}))
    roots = rest_roots(table, lambda metadata: metadata.pop("materialized-view-files"))
    assert [gap.what for gap in roots.gaps] == ["materialized-view-files"]


DIFFERENT: Mapping[str, Callable[[dict[str, Any]], Any]] = {
    "fewer snapshots": lambda metadata: metadata["snapshots"].pop(0),
    "more snapshots": lambda metadata: metadata["snapshots"].append({**metadata["snapshots"][0], "snapshot-id": 7}),
    "another table": lambda metadata: metadata.update({"table-uuid": "00000000-0000-0000-0000-000000000000"}),
    "another state": lambda metadata: metadata.update(
        {"current-snapshot-id": metadata["snapshots"][0]["snapshot-id"], "refs": {}}
    ),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_o12_a_rest_catalog_that_says_otherwise_than_the_file_is_unreadable(table: Table, what: str) -> None:
    with pytest.raises(Unreadable, match="is not what is in"):
        rest_roots(table, DIFFERENT[what])
