"""What every catalog says of delete files and row ids: the one in memory, and PyIceberg's over manifests by hand."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import pytest
from pyiceberg.manifest import DataFileContent
from pyiceberg.manifest import FileFormat as LibraryFormat

from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.catalogs.port import Catalog
from icewright.core.errors import Conflict, Unreadable
from icewright.model.iceberg.files import DeleteFile, FileContent, FileFormat, Partition
from icewright.model.iceberg.inventory import ManifestKey
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import PartitionField, Snapshot, TableMetadata
from tests.doubles.catalog import MemoryCatalog
from tests.doubles.clock import ManualClock
from tests.doubles.lake import MemoryFile
from tests.lakes import sqlite
from tests.lakes.manifests import Made, snapshot_of

NAME = TableName("lake", ("db",), "events")
BONN, KYOTO = Partition(0, '["Bonn"]'), Partition(0, '["Kyoto"]')
POSITION, EQUALITY = FileContent.POSITION_DELETES, FileContent.EQUALITY_DELETES

Told: TypeAlias = tuple[Catalog, TableMetadata, Snapshot]


def in_memory(_folder: Path) -> Told:
    catalog = MemoryCatalog("lake", ManualClock())
    catalog.create(NAME, partition_fields=(PartitionField(2, 1000, "city", "identity"),), format_version=3)
    catalog.append(NAME, [MemoryFile("a", BONN, 1000, 10), MemoryFile("b", BONN, 1000, 10)])
    named = {"referenced_data_file": "a"}
    deletes = [
        MemoryFile("p", BONN, 1000, 3, content=POSITION, path_lower="a", path_upper="b"),
        MemoryFile("v", BONN, 1000, 2, FileFormat.PUFFIN, POSITION, None, "a", 4, 40),
        MemoryFile("e", KYOTO, 1000, 1, content=EQUALITY, equality_ids=(1,)),
        MemoryFile("gone", BONN, 1000, 1, content=POSITION, **named),  # type: ignore[arg-type]  # names of fields
    ]
    catalog.overwrite(NAME, add=deletes, remove=[])
    snapshot = catalog.overwrite(NAME, add=[], remove=["gone"])
    return catalog, catalog.load(NAME), snapshot


def by_pyiceberg(folder: Path) -> Told:
    entry = sqlite.make_lake(folder)
    table = sqlite.make_table(entry, spec=sqlite.BY_CITY)
    position, equality = DataFileContent.POSITION_DELETES, DataFileContent.EQUALITY_DELETES
    bounds = {"lower_bounds": {2_147_483_546: b"a"}, "upper_bounds": {2_147_483_546: b"b"}}
    vector = {"referenced_data_file": "a", "content_offset": 4, "content_size_in_bytes": 40}
    deletes = [
        Made("p", position, records=3, more=bounds),
        Made("v", position, LibraryFormat.PUFFIN, records=2, more=vector),
        Made("e", equality, records=1, city="Kyoto", more={"equality_ids": [1]}),
    ]
    snapshot = snapshot_of(table, [Made("a"), Made("b")], deletes, first_row_ids=[0])
    catalog = PyIcebergCatalog(entry)
    return catalog, catalog.load(NAME), snapshot


@pytest.fixture(params=[in_memory, by_pyiceberg], ids=["memory", "pyiceberg"])
def told(request: pytest.FixtureRequest, tmp_path: Path) -> Told:
    made: Told = request.param(tmp_path)
    return made


def delete_files(told: Told, *partitions: Partition) -> list[DeleteFile]:
    catalog, metadata, snapshot = told
    keys = catalog.manifests(metadata, snapshot)
    found = catalog.delete_files(metadata, snapshot, keys, frozenset(partitions))
    return sorted(found, key=lambda file: file.path)


def test_the_live_delete_files_of_partitions(told: Told) -> None:
    assert [file.path for file in delete_files(told, BONN)] == ["p", "v"]
    assert [file.path for file in delete_files(told, KYOTO)] == ["e"]
    assert [file.path for file in delete_files(told, BONN, KYOTO)] == ["e", "p", "v"]
    assert delete_files(told) == []


def test_what_is_said_of_each(told: Told) -> None:
    equality, position, vector = delete_files(told, BONN, KYOTO)
    assert (position.content, position.file_format, position.record_count) == (POSITION, FileFormat.PARQUET, 3)
    assert (position.path_lower, position.path_upper, position.referenced_data_file) == ("a", "b", None)
    assert (vector.content, vector.file_format, vector.record_count) == (POSITION, FileFormat.PUFFIN, 2)
    assert (vector.referenced_data_file, vector.content_offset, vector.content_size_bytes) == ("a", 4, 40)
    assert (equality.content, equality.equality_ids, equality.partition) == (EQUALITY, (1,), KYOTO)
    assert position.data_sequence_number == vector.data_sequence_number > 1


def test_data_files_have_row_ids(told: Told) -> None:
    catalog, metadata, snapshot = told
    keys = catalog.manifests(metadata, snapshot)
    found = catalog.data_files(metadata, snapshot, keys, frozenset({BONN}))
    assert [(file.path, file.first_row_id) for file in found] == [("a", 0), ("b", 10)]


def test_a_manifest_that_is_not_of_the_snapshot_is_a_conflict(told: Told) -> None:
    catalog, metadata, snapshot = told
    with pytest.raises(Conflict):
        list(catalog.delete_files(metadata, snapshot, [ManifestKey("elsewhere", 1, 1)], frozenset({BONN})))


def test_a_damaged_manifest_is_unreadable(told: Told) -> None:
    catalog, metadata, snapshot = told
    keys = catalog.manifests(metadata, snapshot)
    for key in keys:
        if isinstance(catalog, MemoryCatalog):
            catalog.damage(key.path)
        else:
            file = Path(key.path.removeprefix("file://"))
            file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(Unreadable):
        list(catalog.delete_files(metadata, snapshot, keys, frozenset({BONN})))
