"""Metrics that are not true of the partition are found in real manifests, and nothing else is."""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.manifest import DataFile as LibraryFile
from pyiceberg.table import Table

from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.model.actions.actions import FileGroup, InputFile, RewriteDataFiles
from icewright.model.iceberg.files import DataFile, Partition
from icewright.model.iceberg.tables import SortField
from icewright.plans.evidence.service import changes_between, problem_of
from tests.lakes.sqlite import BY_CITY, append, entry_of, make_lake, make_table, table_name
from tests.narrowing import not_none

CITY = 2
ASKED = (SortField(CITY, "identity", "asc", "nulls-first"),)
LONG = "a city of a name that is longer than bounds are"


def live(table: Table) -> list[DataFile]:
    catalog = PyIcebergCatalog(entry_of(table))
    metadata = catalog.load(table_name(table))
    snapshot = not_none(metadata.current_snapshot)
    keys = catalog.manifests(metadata, snapshot)
    partitions = frozenset(one for summary in catalog.summarize(metadata, snapshot, keys) for one in summary.partitions)
    return list(catalog.data_files(metadata, snapshot, keys, partitions, ASKED))


def add_forged(table: Table, **changes: dict[int, Any] | None) -> None:
    """The first file once more, under another name, with other metrics."""
    snapshot = not_none(table.refresh().current_snapshot())
    first: LibraryFile = snapshot.manifests(table.io)[0].fetch_manifest_entry(table.io)[0].data_file
    said = {
        name: getattr(first, name)
        for name in ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
    }
    forged = LibraryFile.from_args(
        content=first.content,
        file_path=f"{first.file_path}.forged.parquet",
        file_format=first.file_format,
        partition=copy(first.partition),
        record_count=first.record_count,
        file_size_in_bytes=first.file_size_in_bytes,
        **{**said, **changes},
    )
    forged.spec_id = table.spec().spec_id
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as new:
        new.append_data_file(forged)


@pytest.fixture
def table(tmp_path: Path) -> Table:
    table = make_table(make_lake(tmp_path), spec=BY_CITY)
    append(table, range(4), [LONG])
    return table


def test_what_is_true_is_no_problem(table: Table) -> None:
    append(table, range(4), ["Bonn", "Köln"])
    assert [file.misstated for file in live(table)] == [""] * 3


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"null_value_counts": {1: 0, CITY: 4}}, "4 nulls in column 2"),
        ({"lower_bounds": {CITY: b"b"}}, "the lower bound 'b'"),
        ({"upper_bounds": {CITY: b"Z"}}, "the upper bound 'Z'"),
        ({"lower_bounds": {}, "upper_bounds": {}, "null_value_counts": {}}, ""),
    ],
)
def test_what_is_not_true_of_the_partition_is_said(changes: dict[str, Any], said: str, table: Table) -> None:
    add_forged(table, **changes)
    (forged,) = [file for file in live(table) if file.path.endswith("forged.parquet")]
    assert said in forged.misstated
    assert bool(forged.misstated) is bool(said)


def test_a_commit_of_such_a_file_is_not_verified(table: Table) -> None:
    catalog = PyIcebergCatalog(entry_of(table))
    before = not_none(catalog.load(table_name(table)).current_snapshot)
    (file,) = live(table)
    add_forged(table, null_value_counts={1: 0, CITY: 4})
    metadata = catalog.load(table_name(table))
    after = not_none(metadata.current_snapshot)
    inputs = (InputFile(file.path, file.size_bytes, file.record_count, 1),)
    group = FileGroup(0, Partition(0, file.partition.values), "", inputs)
    action = RewriteDataFiles(before.snapshot_id, 0, (group,), 1 << 29)
    changes = changes_between(catalog, metadata, before, after, action)
    assert len(changes.misstated) == 1
    assert "4 nulls" in changes.misstated[0]
    assert problem_of(action, after, changes) is not None
