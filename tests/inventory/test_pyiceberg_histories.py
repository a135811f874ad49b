"""Random histories of real tables: the inventory moved forward step by step equals its recomputation.

Both equal PyIceberg's own inspection, and each manifest is read once, when it is first seen.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyiceberg.table import Table
from pyiceberg.table.snapshots import ancestors_of
from pyiceberg.transforms import BucketTransform, IdentityTransform

from icewright.catalogs.metadata.manifests import Entry, Manifest, ManifestReader
from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.inventory.arithmetic import advance, affected_partitions, manifest_changes, recompute
from icewright.model.iceberg.files import FileFormat, Partition
from icewright.model.iceberg.inventory import ManifestKey, ManifestSummary, PartitionStatistics
from icewright.model.iceberg.tables import TableMetadata
from tests.cases import each_case
from tests.lakes import sqlite
from tests.narrowing import not_none

STEPS = 14
CITIES = ("Bonn", "Köln", "Ulm")


class Writer:
    """Does one random thing to the table after the other, as PyIceberg can."""

    def __init__(self, table: Table, dice: Random) -> None:
        self._table = table
        self._dice = dice
        self._ids = 0

    def step(self) -> None:
        self._table.refresh()
        self._dice.choice(self._steps())()

    def _steps(self) -> Sequence[Callable[[], None]]:
        always = (self._append, self._append, self._change_the_spec)
        if self._table.current_snapshot() is None:
            return always
        return (*always, self._overwrite, self._delete, self._delete, self._roll_back, self._work_on_a_branch)

    def _rows(self) -> pa.Table:
        count = self._dice.randint(1, 6)
        self._ids += count
        return sqlite.rows(range(self._ids - count, self._ids), self._dice.sample(CITIES, self._dice.randint(1, 3)))

    def _append(self) -> None:
        self._table.append(self._rows())

    def _overwrite(self) -> None:
        if self._identity():
            self._table.dynamic_partition_overwrite(self._rows())
        else:
            self._table.overwrite(self._rows(), "id < 3")

    def _delete(self) -> None:
        city = self._dice.choice(CITIES)
        where = f"city = '{city}'" if self._dice.random() < 0.5 else f"id = {self._dice.randrange(self._ids)}"
        self._table.delete(where)

    def _roll_back(self) -> None:
        lineage = list(ancestors_of(self._table.current_snapshot(), self._table.metadata))
        with self._table.manage_snapshots() as manage:
            manage.rollback_to_snapshot(self._dice.choice(lineage).snapshot_id)

    def _work_on_a_branch(self) -> None:
        current = not_none(self._table.current_snapshot())
        if "side" not in self._table.metadata.refs:
            with self._table.manage_snapshots() as manage:
                manage.create_branch(current.snapshot_id, "side")
        self._table.append(self._rows(), branch="side")

    def _identity(self) -> bool:
        fields = self._table.spec().fields
        return bool(fields) and all(isinstance(field.transform, IdentityTransform) for field in fields)

    def _change_the_spec(self) -> None:
        names = [field.name for field in self._table.spec().fields]
        with self._table.update_spec() as update:
            if names:
                update.remove_field(names[0])
            elif self._dice.random() < 0.6:
                update.add_field("city", IdentityTransform(), "city")
            else:
                update.add_field("id", BucketTransform(2), "id_bucket")


class Inventory:
    """A minimal keeper of an inventory, as the service is: summaries by key, statistics by partition."""

    def __init__(self, catalog: PyIcebergCatalog) -> None:
        self._catalog = catalog
        self.summaries: dict[ManifestKey, ManifestSummary] = {}
        self.partitions: dict[Partition, PartitionStatistics] = {}

    def move(self, metadata: TableMetadata) -> None:
        snapshot = not_none(metadata.current_snapshot)
        added_keys, removed_keys = manifest_changes(self.summaries, self._catalog.manifests(metadata, snapshot))
        added = list(self._catalog.summarize(metadata, snapshot, added_keys))
        removed = [self.summaries[key] for key in removed_keys]
        affected = affected_partitions((*added, *removed))
        change = advance(
            metadata, self.partitions, added=added, removed=removed, remaining=list(self.summaries.values())
        )
        assert {s.partition for s in change.changed} | set(change.removed) <= affected
        for key in removed_keys:
            del self.summaries[key]
        self.summaries.update({summary.key: summary for summary in added})
        self.partitions.update({statistics.partition: statistics for statistics in change.changed})
        for partition in change.removed:
            del self.partitions[partition]


def inspected(table: Table) -> dict[tuple[int, str], tuple[int, int, int]]:
    """Files, bytes and rows by spec and partition, as PyIceberg's own inspection has them."""
    found: Counter[tuple[int, str, str]] = Counter()
    for row in table.refresh().inspect.files().to_pylist():
        names = [field.name for field in table.specs()[row["spec_id"]].fields]
        values = json.dumps([row["partition"][name] for name in names], separators=(",", ":"), ensure_ascii=False)
        values = "[]" if not any(row["partition"][name] is not None for name in names) else values
        for what, amount in (("files", 1), ("bytes", row["file_size_in_bytes"]), ("rows", row["record_count"])):
            found[row["spec_id"], values, what] += amount
    keys = {(spec_id, values) for spec_id, values, _ in found}
    return {key: (found[*key, "files"], found[*key, "bytes"], found[*key, "rows"]) for key in keys}


@pytest.mark.filterwarnings("ignore:Delete operation did not match any records")
@each_case("seed", range(8))
def test_moving_forward_is_the_same_as_recomputing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    read: Counter[ManifestKey] = Counter()
    entries = ManifestReader.entries

    def counted(self: ManifestReader, manifest: Manifest) -> Iterator[Entry]:
        read[manifest.key] += 1
        return entries(self, manifest)

    lake = sqlite.make_lake(tmp_path)
    merging = {"commit.manifest-merge.enabled": str(seed % 4 < 2).lower(), "commit.manifest.min-count-to-merge": "2"}
    properties = {"format-version": str(1 + seed % 2), **merging}
    table = sqlite.make_table(lake, spec=sqlite.BY_CITY, properties=properties)
    writer = Writer(table, Random(seed))  # noqa: S311 - a history to be repeated, no secret
    catalog = PyIcebergCatalog(lake)
    inventory = Inventory(catalog)
    for _ in range(STEPS):
        writer.step()
        metadata = catalog.load(sqlite.table_name(table))
        snapshot = metadata.current_snapshot
        if snapshot is None:
            continue
        known = set(inventory.summaries)
        read.clear()
        with monkeypatch.context() as patch:
            patch.setattr(ManifestReader, "entries", counted)
            inventory.move(metadata)
        keys = catalog.manifests(metadata, snapshot)
        assert read == Counter(set(keys) - known)
        full = recompute(metadata, catalog.summarize(metadata, snapshot, keys))
        assert inventory.partitions == {statistics.partition: statistics for statistics in full}
        sums = {
            (s.partition.spec_id, s.partition.values): (s.counts.data_files, s.counts.data_bytes, s.counts.records)
            for s in full
        }
        assert sums == inspected(table)
        assert sum(files for files, _, _ in sums.values()) == sum(table.inspect.partitions()["file_count"].to_pylist())
        assert all(s.counts.formats == {FileFormat.PARQUET: s.counts.data_files} for s in full)
        assert all(s.written_at is not None for s in full)
