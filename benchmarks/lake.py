"""A lake of the benchmark's own: tables written by Spark, rewritten, and set back to the very files they began with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

from benchmarks import data
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.names import TableName
from icewright.model.policy.policy import MODE_KEY, Mode
from icewright.policy.settings import TARGET_FILE_SIZE_KEY
from icewright_spark.iceberg.java_api import SparkTable

TARGET_FILE_SIZE_BYTES: Final = 128 << 20
"""What both contestants aim at: the size of a row group, so that it limits neither of them otherwise."""


class Mismatch(Exception):
    """Something is not as it must be for a measurement to count: rows differ, or work was left undone."""


class Deletes(StrEnum):
    """How 5 % of the rows of each file are deleted before the rewrite, as Spark does it merge-on-read."""

    NONE = "none"
    POSITIONS = "position deletes"
    VECTORS = "deletion vectors"


_DELETED: Final = "event_id % 20 = 7"


@dataclass(frozen=True, slots=True)
class Files:
    """The data files of one snapshot; ``records`` are rows in them, deleted ones too."""

    count: int
    size_bytes: int
    records: int


def make_lake(spark: SparkSession, folder: Path, name: str) -> CatalogEntry:
    """An empty catalog ``name`` on SQLite in ``folder``, known to the session."""
    entry = CatalogEntry(name, CatalogKind.SQL, f"sqlite:///{folder}/{name}.db", str(folder / name))
    for key, value in entry.spark_properties().items():
        spark.conf.set(key, value)
    spark.sql(f"CREATE NAMESPACE {name}.bench")
    return entry


class BenchTable:
    """One table of many small files, as it is before, and as it is after a rewrite."""

    def __init__(self, spark: SparkSession, entry: CatalogEntry, name: str) -> None:
        self._spark, self._warehouse = spark, Path(entry.warehouse)
        self.name = TableName(entry.name, ("bench",), name)
        self._kept: set[int] = set()
        self.base_snapshot_id = 0
        self.base = Files(0, 0, 0)
        self.live_rows = 0
        self._has_lineage = False

    def write(
        self,
        files: int,
        rows_per_file: int,
        seed: int,
        target_file_size_bytes: int,
        deletes: Deletes = Deletes.NONE,
    ) -> None:
        """Create the table with so many files in one append, written by Spark, one task each; then delete of each."""
        self._has_lineage = deletes is Deletes.VECTORS
        properties = {
            "format-version": "3" if deletes is Deletes.VECTORS else "2",
            "write.delete.mode": "merge-on-read",
            TARGET_FILE_SIZE_KEY: str(target_file_size_bytes),
            MODE_KEY: Mode.AUTO.value,
            "write.distribution-mode": "none",
        }
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        self._spark.sql(f"CREATE TABLE {self.name} ({data.SPARK_SCHEMA}) USING iceberg TBLPROPERTIES ({listed})")
        cloudpickle.register_pickle_by_value(data)  # type: ignore[no-untyped-call] # workers need not find this package
        try:
            numbers = self._spark.range(0, files, 1, files)
            numbers.mapInArrow(_writer(rows_per_file, seed), data.SPARK_SCHEMA).writeTo(str(self.name)).append()
        finally:
            cloudpickle.unregister_pickle_by_value(data)  # type: ignore[no-untyped-call] # it has no annotations
        deleted_rows = self._delete(deletes)
        self.base_snapshot_id = self.snapshot_id()
        self.base = self.files(self.base_snapshot_id)
        self.live_rows = self.base.records - deleted_rows
        if self.base.count != files:
            raise Mismatch(f"{self.base.count} files were written instead of {files}")

    def _delete(self, deletes: Deletes) -> int:
        """Delete a twentieth of the rows of each file; how many they are. Raises :class:`Mismatch`."""
        if deletes is Deletes.NONE:
            return 0
        self._spark.sql(f"DELETE FROM {self.name} WHERE {_DELETED}")  # noqa: S608 - our own name and constant
        kind = "added-dvs" if deletes is Deletes.VECTORS else "added-position-delete-files"
        if self.summary(kind) != self.files(self.snapshot_id()).count:
            raise Mismatch(f"{self.summary(kind)} {deletes.value} were written, which is not one for each file")
        return self.summary("added-position-deletes")

    def snapshot_id(self) -> int:
        """The snapshot that readers see."""
        return int(SparkTable(self._spark, self.name).java.currentSnapshot().snapshotId())

    def summary(self, key: str) -> int:
        """A number of the current snapshot's summary, 0 where it has none."""
        return int(SparkTable(self._spark, self.name).java.currentSnapshot().summary().get(key) or 0)

    def files(self, snapshot_id: int) -> Files:
        """The data files of a snapshot."""
        (row,) = (
            self._read(f"{self.name}.data_files", snapshot_id)
            .selectExpr("count(*)", "sum(file_size_in_bytes)", "sum(record_count)")
            .collect()
        )
        return Files(int(row[0]), int(row[1]), int(row[2]))

    def fingerprint(self, snapshot_id: int) -> tuple[Any, ...]:
        """Equal for equal multisets of rows: their number and the sums of two 64-bit hashes over all columns.

        In format version 3 the lineage of each row is one of them. Read by Spark from the files themselves; a
        difference that keeps both sums has a chance of about 2^-128.
        """
        every = "*, _row_id, _last_updated_sequence_number" if self._has_lineage else "*"
        hashed = [f"sum(cast(xxhash64({columns}) AS decimal(38,0)))" for columns in (every, f"'again', {every}")]
        (row,) = self._read(str(self.name), snapshot_id).selectExpr("sum(1)", *hashed).collect()
        return tuple(row)

    def scan(self, snapshot_id: int) -> None:
        """Read every value of every column; a hash keeps Spark from answering out of metadata."""
        self._read(str(self.name), snapshot_id).selectExpr("sum(hash(*))").collect()

    def _read(self, name: str, snapshot_id: int) -> DataFrame:
        return self._spark.read.option("versionAsOf", snapshot_id).table(name)

    def keep(self) -> int:
        """Keep the current snapshot and its files for reading when the table is set back; gives its id."""
        snapshot_id = self.snapshot_id()
        self._spark.sql(f"ALTER TABLE {self.name} CREATE TAG `kept-{snapshot_id}` AS OF VERSION {snapshot_id}")
        self._kept.add(snapshot_id)
        return snapshot_id

    def set_back(self) -> None:
        """Bring the table back to the files that it began with, and remove what a rewrite has left since.

        Raises :class:`Mismatch` when files are there that should not be, or the other way round.
        """
        table = SparkTable(self._spark, self.name)
        current = int(table.java.currentSnapshot().snapshotId())
        if current != self.base_snapshot_id:
            table.java.manageSnapshots().rollbackTo(self.base_snapshot_id).commit()
            if current not in self._kept:
                table.java.expireSnapshots().expireSnapshotId(current).commit()
        expected = {path for snapshot_id in (self.base_snapshot_id, *self._kept) for path in self._paths(snapshot_id)}
        folder = self._warehouse / "bench" / self.name.name / "data"
        found = sum(1 for kind in ("parquet", "puffin") for _ in folder.glob(f"**/*.{kind}"))
        if found != len(expected):
            raise Mismatch(f"{found} data and delete files lie in the table's folder instead of {len(expected)}")

    def _paths(self, snapshot_id: int) -> set[str]:
        """The data and delete files of a snapshot; many deletion vectors may lie in one file."""
        return {row[0] for row in self._read(f"{self.name}.files", snapshot_id).select("file_path").collect()}


def _writer(rows_per_file: int, seed: int) -> Callable[[Iterable[Any]], Iterable[Any]]:
    def write(batches: Iterable[Any]) -> Iterable[Any]:
        for batch in batches:
            for file_number in batch.column(0).to_pylist():
                yield data.events(file_number, rows_per_file, seed)

    return write
