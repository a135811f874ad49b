"""Rows that move to another partition spec: into how many partitions, and that each lies in its own.

What a writer says of the partition of a new file decides which scans skip it. So the file is read back as if it were in
no partition (Iceberg's readers would else put the manifest's values in the place of what the file holds), the fields of
the spec are computed anew from each row, and all rows of a file must have the one partition that its entry says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame

from icewright.model.actions.actions import FileGroup
from icewright.model.iceberg.files import Partition
from icewright_spark.executors.staged.fields import numbered, term_columns
from icewright_spark.executors.staged.hash_job import Watch
from icewright_spark.iceberg.java_api import SparkTable
from icewright_spark.parquet.errors import ManyPartitions, NoRowsLeft, PartitionValue, ProofFailed

_SHOWN_MAX: Final = 2
"""Partitions of one file that are kept: more than one is wrong already."""


class PartitionsOfFiles:
    """Watches the rows of files go by, by columns that are the fields of a spec."""

    def __init__(self) -> None:
        self._found: dict[str, list[list[Any] | None]] = {}

    def add(self, file: str, columns: Any) -> None:
        """The next rows of a file, one at least."""
        known = self._found.setdefault(file, [])
        distinct: list[list[Any] | None]
        try:
            distinct = [*_distinct(columns)]
        except (OverflowError, ValueError):  # Python's dates end with the year 9999
            distinct = [None]
        for values in distinct:
            if values not in known and len(known) < _SHOWN_MAX:
                known.append(values)

    def found(self, file: str) -> list[list[Any] | None]:
        """The partitions of the rows of a file, as Iceberg's JSON has their values; None where that has no form."""
        return self._found[file]


def watch_partitions() -> Watch:
    """For :func:`icewright_spark.executors.staged.hash_job.hash_rows`."""
    return PartitionsOfFiles()


def spec_columns(table: SparkTable, spec_id: int, catalog: str, rows: DataFrame) -> list[Column]:
    """The fields of a partition spec over :func:`icewright_spark.executors.staged.fields.numbered` rows.

    Raises :class:`Unsupported` for a field that Spark cannot compute.
    """
    return term_columns(table.schema_fields(), table.spec_terms(spec_id), catalog, rows)


def check_partitions_made(
    table: SparkTable, group: FileGroup, catalog: str, rows: DataFrame, *, may_be_empty: bool = False
) -> None:
    """Before anything is written: the rows of a group belong to no more partitions than it may become files.

    Raises :class:`ManyPartitions`, and :class:`NoRowsLeft` where there must be some.
    """
    spec_id, most = group.output_spec_id, group.output_files
    if spec_id is None:
        return
    shown = numbered(rows)
    columns = spec_columns(table, spec_id, catalog, shown)
    found = shown.select(*columns).distinct().limit(most + 1).count() if columns else shown.limit(1).count()
    if found > most:
        raise ManyPartitions(
            f"group {group.group_id}: its rows belong to more than {most} partitions of spec {spec_id}, and so many "
            "files were planned at most"
        )
    if not found and not may_be_empty:
        raise NoRowsLeft(f"group {group.group_id}: no row is left of its files, which stay in their partition")


def check_partitions(
    table: SparkTable,
    spec_id: int,
    files: Sequence[Any],
    watched: Mapping[str, Sequence[Sequence[Sequence[Any] | None]]],
) -> None:
    """Each of Java's data files is in the partition of that spec that all of its rows belong to, alone of its group.

    ``watched`` is what :class:`PartitionsOfFiles` found in the files as read back. Raises :class:`ProofFailed`, and
    :class:`PartitionValue` where a value has no form that it could be compared by.
    """
    taken: set[str] = set()
    for file in files:
        path = str(file.location())
        listed = [values for part in watched.get(path, ()) for values in part]
        if None in listed:
            raise PartitionValue(f"{path}: a value of its partition in spec {spec_id} has no form in JSON")
        found = {json.dumps(values) for values in listed}
        if len(found) != 1:
            raise ProofFailed(f"the rows of {path} belong to {len(found)} partitions: {', '.join(sorted(found))}")
        (values,) = found
        if not table.is_in_partition(file, Partition(spec_id, values)):
            raise ProofFailed(
                f"the rows of {path} belong to partition {values} of spec {spec_id}, and it was written to another"
            )
        if values in taken:
            raise ProofFailed(f"{path} is not the only file of its group in partition {values} of spec {spec_id}")
        taken.add(values)


def _distinct(columns: Any) -> list[list[Any]]:
    """The distinct rows of a record batch, as Iceberg's JSON has their values (spec, Appendix D)."""
    if not columns.num_columns:
        return [[]]
    rows = pa.Table.from_batches([columns]).group_by(columns.schema.names, use_threads=False).aggregate([])
    # A batch may hold columns of the rows in any order that Arrow groups them in; names tell.
    listed = [rows.column(name).to_pylist() for name in columns.schema.names]
    return [[_in_json(value) for value in values] for values in zip(*listed, strict=True)]


def _in_json(value: Any) -> Any:
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    return value.hex().upper() if isinstance(value, bytes) else value
