"""Tables that several tests begin with, written once: for Spark it takes longer to write one than to change it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName
from icewright_spark.iceberg.java_api import SparkTable
from tests.lakes.sqlite import writer

Write = Callable[[SparkSession, TableName], None]
"""Creates a table of this name, and fills it."""


class Beginnings:
    """Tables that are in a lake of each test as they were written, in the same files, which no test may change."""

    def __init__(self, spark: SparkSession, entry: CatalogEntry) -> None:
        self._spark, self._entry = spark, entry
        self._written: dict[Write, str] = {}
        self._files: dict[Path, bytes] = {}

    def table(self, lake: CatalogEntry, write: Write, name: str = "t") -> TableName:
        """The table in another lake, of which the test alone sees what it commits there."""
        if write not in self._written:
            self._spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {self._entry.name}.db")
            first = TableName(self._entry.name, ("db",), f"t{len(self._written)}")
            write(self._spark, first)
            self._written[write] = SparkTable(self._spark, first).metadata_location
            self._files |= {path: path.read_bytes() for path in self._all_files()}
        catalog = writer(lake)
        catalog.create_namespace_if_not_exists("db")
        catalog.register_table(("db", name), self._written[write])
        return TableName(lake.name, ("db",), name)

    def check(self) -> None:
        """Every file is as it was written."""
        changed = [path for path, content in self._files.items() if not path.exists() or path.read_bytes() != content]
        assert changed == []

    def _all_files(self) -> list[Path]:
        return [path for path in Path(self._entry.warehouse).rglob("*") if path.is_file()]
