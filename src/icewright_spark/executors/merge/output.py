"""The files that a merge writes: rows dealt out to them, and what Iceberg is told of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from icewright.core.fault_points import Fault, fault
from icewright.model.iceberg.tables import Json
from icewright_spark.executors.merge.read import open_footer
from icewright_spark.parquet.errors import ProofFailed
from icewright_spark.parquet.metrics import ColumnMetrics, metrics_mode
from icewright_spark.parquet.schema import arrow_schema, leaf_ids, shape
from icewright_spark.parquet.storage import Storage


def output_is_written() -> None:
    """Called when the files of a group are written, by whatever wrote them, and before they are read back."""
    fault(Fault.WORKER_WRITTEN)


@dataclass(frozen=True, slots=True)
class OutputFile:
    """The file written, with all that Iceberg's ``DataFile`` says of it."""

    path: str
    size_bytes: int
    record_count: int
    split_offsets: tuple[int, ...]
    metrics: ColumnMetrics


@dataclass(frozen=True, slots=True)
class Written:
    """A file that was written."""

    path: str
    rows: int


class Stream:
    """Record batches that several files are written from, one after the other. ``taken`` counts the rows so far."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches, self._rest = batches, None
        self.taken = 0

    def next_rows(self, count: int | None) -> Iterator[pa.RecordBatch]:
        """So many of the next rows, or all."""
        left = count
        while left is None or left > 0:
            batch = self._rest if self._rest is not None else next(self._batches, None)
            self._rest = None
            if batch is None:
                return
            if left is not None and batch.num_rows > left:
                batch, self._rest = batch.slice(0, left), batch.slice(left)
            left = None if left is None else left - batch.num_rows
            self.taken += batch.num_rows
            yield batch


def output_file(
    fields: Sequence[Json], modes: Mapping[int, str], storage: Storage, written: Written, metrics: ColumnMetrics
) -> OutputFile:
    """What Iceberg is told of a file. Raises :class:`ProofFailed` when it was not written with the table's schema."""
    file = open_footer(written.path, storage)
    if shape(file.schema_arrow) != shape(arrow_schema(fields)):
        raise ProofFailed(f"{written.path} was not written with the table's schema: {file.schema_arrow}")
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    sizes: dict[int, int] = {}
    for position, identity in enumerate(leaf_ids(file.schema_arrow)):
        if identity is not None and metrics_mode(modes.get(identity, "full")).counts:
            sizes[identity] = sum(group.column(position).total_compressed_size for group in groups)
    return OutputFile(
        path=written.path,
        size_bytes=storage.size(written.path),
        record_count=written.rows,
        split_offsets=tuple(_first_byte(group.column(0)) for group in groups),
        metrics=replace(metrics, column_sizes=sizes),
    )


def _first_byte(chunk: Any) -> int:
    offsets: tuple[int | None, int] = (chunk.dictionary_page_offset, chunk.data_page_offset)
    return min(offset for offset in offsets if offset)
