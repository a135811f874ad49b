"""What manifests of format version 2 and 3 say beyond files: row ids and whom they are inherited from, delete files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.table import Table

from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.core.errors import Unreadable
from icewright.model.iceberg import files as domain
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.files import DataFile, DeleteFile, Partition
from tests.lakes import sqlite
from tests.lakes.manifests import DELETED, EXISTING, SEQUENCE_NUMBER, SNAPSHOT_ID, Made, snapshot_of

POSITION, EQUALITY = DataFileContent.POSITION_DELETES, DataFileContent.EQUALITY_DELETES
PATH_ID = 2_147_483_546
BONN, KOELN = Partition(0, '["Bonn"]'), Partition(0, '["Köln"]')


@pytest.fixture
def entry(tmp_path: Path) -> CatalogEntry:
    return sqlite.make_lake(tmp_path)


@pytest.fixture
def table(entry: CatalogEntry) -> Table:
    return sqlite.make_table(entry, spec=sqlite.BY_CITY)


def data_files(table: Table, *manifests: Sequence[Made], first_row_ids: Sequence[int | None] = ()) -> list[DataFile]:
    catalog = PyIcebergCatalog(sqlite.entry_of(table))
    metadata = catalog.load(sqlite.table_name(table))
    snapshot = snapshot_of(table, *manifests, first_row_ids=first_row_ids)
    keys = catalog.manifests(metadata, snapshot)
    return list(catalog.data_files(metadata, snapshot, keys, frozenset({BONN})))


def delete_files(table: Table, *made: Made, partition: Partition = BONN) -> list[DeleteFile]:
    catalog = PyIcebergCatalog(sqlite.entry_of(table))
    metadata = catalog.load(sqlite.table_name(table))
    snapshot = snapshot_of(table, [Made("data")], made)
    keys = catalog.manifests(metadata, snapshot)
    return list(catalog.delete_files(metadata, snapshot, keys, frozenset({partition})))


def row_ids(files: Sequence[DataFile]) -> dict[str, int | None]:
    return {file.path: file.first_row_id for file in files}


def test_the_example_of_the_spec(table: Table) -> None:
    """Under "Row lineage example": what is known stays, what is added counts on from the manifest's."""
    made = [
        Made("data1", status=EXISTING, sequence_number=1, records=25, more={"first_row_id": 800}),
        Made("data2", records=50),
        Made("data3", records=50),
    ]
    assert row_ids(data_files(table, made, first_row_ids=[1000])) == {"data1": 800, "data2": 1000, "data3": 1050}


def test_existing_files_of_an_upgraded_table_count_as_well_and_removed_ones_do_not(table: Table) -> None:
    made = [
        Made("gone", status=DELETED, sequence_number=1, records=7),
        Made("old", status=EXISTING, sequence_number=1, records=25),
        Made("kept", status=EXISTING, sequence_number=1, records=3, more={"first_row_id": 5}),
        Made("elsewhere", records=40, city="Köln"),
        Made("new", records=50),
    ]
    assert row_ids(data_files(table, made, first_row_ids=[100])) == {"old": 100, "kept": 5, "new": 165}


def test_each_manifest_counts_for_itself(table: Table) -> None:
    manifests = [[Made("a"), Made("b")], [Made("c")]]
    assert row_ids(data_files(table, *manifests, first_row_ids=[30, 0])) == {"a": 30, "b": 40, "c": 0}


def test_before_the_first_commit_of_version_3_there_are_none(table: Table) -> None:
    """Iceberg's Java takes away what an entry says, where its manifest has no row id."""
    made = [Made("a"), Made("b", status=EXISTING, sequence_number=1, more={"first_row_id": 5})]
    assert row_ids(data_files(table, made)) == {"a": None, "b": None}


def test_tables_of_version_2_have_none(table: Table) -> None:
    sqlite.append(table, range(4), ["Bonn"])
    catalog = PyIcebergCatalog(sqlite.entry_of(table))
    metadata = catalog.load(sqlite.table_name(table))
    assert metadata.current_snapshot is not None
    keys = catalog.manifests(metadata, metadata.current_snapshot)
    (file,) = catalog.data_files(metadata, metadata.current_snapshot, keys, frozenset({BONN}))
    assert file.first_row_id is None
    assert list(catalog.delete_files(metadata, metadata.current_snapshot, keys, frozenset({BONN}))) == []


def test_split_offsets_say_how_many_row_groups_a_file_has(table: Table) -> None:
    offsets: list[list[int] | None] = [[4], [4, 900, 1800], None, []]
    made = [Made(f"f{number}", more={"split_offsets": said}) for number, said in enumerate(offsets)]
    assert [file.row_groups for file in data_files(table, made)] == [1, 3, None, None]


def test_all_that_is_said_of_delete_files(table: Table) -> None:
    bounds = {"lower_bounds": {PATH_ID: b"s3://b/a"}, "upper_bounds": {PATH_ID: b"s3://b/z", 1: b"1"}}
    vector = {"referenced_data_file": "s3://b/d", "content_offset": 4, "content_size_in_bytes": 40}
    found = delete_files(
        table,
        Made("p", POSITION, records=3, more=bounds),
        Made("v", POSITION, FileFormat.PUFFIN, EXISTING, sequence_number=3, records=5, more=vector),
        Made("e", EQUALITY, FileFormat.AVRO, more={"equality_ids": [1, 2]}),
        Made("gone", POSITION, status=DELETED, sequence_number=1),
        Made("elsewhere", POSITION, city="Köln"),
    )
    position, equality = domain.FileContent.POSITION_DELETES, domain.FileContent.EQUALITY_DELETES
    parquet, puffin, avro = domain.FileFormat.PARQUET, domain.FileFormat.PUFFIN, domain.FileFormat.AVRO
    here, now = SNAPSHOT_ID, SEQUENCE_NUMBER
    assert found == [
        DeleteFile("p", position, parquet, BONN, 1000, 3, here, now, path_lower="s3://b/a", path_upper="s3://b/z"),
        DeleteFile("v", position, puffin, BONN, 1000, 5, here, 3, "s3://b/d", 4, 40),
        DeleteFile("e", equality, avro, BONN, 1000, 10, here, now, equality_ids=(1, 2)),
    ]


def test_bounds_that_end_inside_a_character_tell_nothing(table: Table) -> None:
    more = {"lower_bounds": {PATH_ID: "a/ö".encode()[:-1]}, "upper_bounds": {PATH_ID: "ö".encode()}}
    (found,) = delete_files(table, Made("p", POSITION, more=more))
    assert (found.path_lower, found.path_upper) == (None, "ö")


def test_equality_deletes_without_partitions_are_for_all(entry: CatalogEntry) -> None:
    unpartitioned = sqlite.make_table(entry, ("db", "whole"))
    made = [Made("e", EQUALITY, more={"equality_ids": [1]}), Made("p", POSITION)]
    assert [file.path for file in delete_files(unpartitioned, *made, partition=Partition(5, "[1]"))] == ["e"]
    whole = Partition(0, domain.UNPARTITIONED)
    assert [file.path for file in delete_files(unpartitioned, *made, partition=whole)] == ["e", "p"]


def test_a_delete_file_among_data_files_is_damage(table: Table) -> None:
    with pytest.raises(Unreadable, match="for the other kind"):
        data_files(table, [Made("a"), Made("p", POSITION)])
    with pytest.raises(Unreadable, match="for the other kind"):
        delete_files(table, Made("p", POSITION), Made("a"))
