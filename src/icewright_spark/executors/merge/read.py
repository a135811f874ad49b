"""Reading data files, batch by batch, with either of two Parquet implementations that share no code.

pyarrow (Parquet C++) reads the inputs; arrow-rs (arro3) reads a sample of them again, and each reads back what the
other wrote. Both yield record batches of the table's schema.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import arro3.io
import pyarrow as pa
import pyarrow.parquet as pq

from icewright.model.actions.actions import InputFile
from icewright.model.iceberg.tables import Json
from icewright_spark.executors.merge.convert import Converter
from icewright_spark.parquet.errors import (
    FileChanged,
    FileUnreadable,
    ProofFailed,
    UnsupportedColumn,
    UnsupportedFile,
    reading,
    worker_trouble,
)
from icewright_spark.parquet.schema import arrow_schema, field_id, leaf_ids, leaves
from icewright_spark.parquet.storage import LOCAL, BlockReader, Source, Storage

BATCH_ROWS_MAX = 65_536
BATCH_ROWS_MIN = 1_024
BATCH_BYTES = 16 << 20
_COLUMN_BUFFER_BYTES = 1 << 20
_CONVERTERS_KEPT = 8

_MAGIC = b"PAR1"
_ENCRYPTED_MAGIC = b"PARE"

Decoder: TypeAlias = Callable[[Source, int], tuple[Any, Iterator[Any]]]
"""What a storage gives for a file, and rows per batch, to the file's Arrow schema and its record batches."""


def decode_pyarrow(source: Source, batch_rows: int) -> tuple[Any, Iterator[Any]]:
    """Reads with Parquet C++, and checks the checksums of pages that have them (parquet-java writes them).

    Without ``pre_buffer`` and with a buffer it holds a buffer per column, not the column chunks of a row group.
    """
    file = pq.ParquetFile(
        source, memory_map=False, pre_buffer=False, buffer_size=_COLUMN_BUFFER_BYTES, page_checksum_verification=True
    )
    return file.schema_arrow, file.iter_batches(batch_size=batch_rows, use_threads=False)


def decode_arrow_rs(source: Source, batch_rows: int) -> tuple[Any, Iterator[Any]]:
    """Reads with arrow-rs."""
    file: Any = source if isinstance(source, (str, pa.BufferReader)) else BlockReader(source)
    reader = pa.RecordBatchReader.from_stream(arro3.io.read_parquet(file, batch_size=batch_rows))
    return reader.schema, iter(reader)


def first_row_of(identities: Collection[int]) -> Decoder:
    """A decoder that reads little more than the first row, and of that the top-level columns with these ids."""

    def decode(source: Source, _batch_rows: int) -> tuple[Any, Iterator[Any]]:
        file = pq.ParquetFile(source, memory_map=False, pre_buffer=False, buffer_size=_COLUMN_BUFFER_BYTES)
        schema = file.schema_arrow
        wanted = [field for field in schema if field_id(field) in identities]
        paths = [field.name for field in wanted]
        if not paths or any("." in path for path in paths):  # which Arrow takes for one inside a struct
            rows = file.iter_batches(batch_size=1, use_threads=False)
        else:
            rows = file.iter_batches(batch_size=1, columns=paths, use_threads=False)
        return pa.schema(wanted), (batch.select(paths) for batch in islice(rows, 1))

    return decode


class RowsOfTable:
    """Reads files as rows of one table. ``partition_scalars`` as in :class:`Converter`.

    Many files are small, so that what they have in common is worked out once.
    """

    def __init__(
        self,
        schema_fields: Sequence[Json],
        partition_scalars: Mapping[int, Any] | None,
        storage: Storage = LOCAL,
        batch_bytes: int = BATCH_BYTES,
    ) -> None:
        """``batch_bytes`` is about as long as a batch gets. Raises :class:`UnsupportedColumn`."""
        self.schema = arrow_schema(schema_fields)
        self._fields, self._partition_scalars, self._storage = schema_fields, partition_scalars, storage
        self._leaf_ids = frozenset(leaf.field_id for leaf in leaves(schema_fields))
        self._converters: list[tuple[Any, Converter]] = []
        self._batch_bytes = batch_bytes
        self._batch_rows: dict[str, int] = {}
        self._without_int96: Any = None

    def inspect(self, file: InputFile) -> int:
        """All that can be seen of a file without reading rows: its size, its number of rows, its schema.

        Gives the bytes that its rows take, encoded and compressed.
        Raises :class:`FileChanged` when it is not what its manifest says, :class:`FileUnreadable`,
        :class:`UnsupportedFile` and :class:`UnsupportedColumn`.
        """
        expect_size(file.path, file.size_bytes, self._storage)
        footer = open_footer(file.path, self._storage)
        metadata = footer.metadata
        if metadata.num_rows != file.record_count:
            raise FileChanged(f"{file.path} has {metadata.num_rows} rows, its manifest says {file.record_count}")
        self._refuse_int96(file.path, footer.schema, footer.schema_arrow)
        self._converter(footer.schema_arrow)
        self._batch_rows[file.path] = _batch_rows(metadata, self._batch_bytes)
        return file.size_bytes - int(metadata.serialized_size)

    def batches(self, location: str, decode: Decoder) -> Iterator[Any]:
        """All rows of a file, in order, in bounded batches.

        Raises :class:`FileUnreadable`, :class:`UnsupportedFile` and :class:`UnsupportedColumn`.
        """
        source = self._storage.source(location)
        batch_rows = self._batch_rows.get(location) or _batch_rows(
            _footer(location, source).metadata, self._batch_bytes
        )
        with reading(location):
            have, decoded = decode(source, batch_rows)
        convert = self._converter(have)
        while True:
            with reading(location):
                batch = next(decoded, None)
            if batch is None:
                return
            try:
                converted = convert(batch)
            except pa.ArrowException as error:
                raise (worker_trouble(error) or UnsupportedColumn)(
                    f"{location} cannot be converted: {error}"
                ) from error
            yield converted

    def checked_batches(self, file: InputFile, decode: Decoder) -> Iterator[Any]:
        """As :meth:`batches`; raises :class:`ProofFailed` besides when the rows are not as many as they should be."""
        rows = 0
        for batch in self.batches(file.path, decode):
            rows += batch.num_rows
            yield batch
        if rows != file.record_count:
            raise ProofFailed(f"{rows} rows were decoded of {file.path}, which has {file.record_count}")

    def _converter(self, have: Any) -> Converter:
        columns = have.remove_metadata()  # of the file, which may be its own; that of the columns has their ids
        for known, converter in self._converters:
            if known.equals(columns, check_metadata=True):
                return converter
        converter = Converter(columns, self.schema, self._fields, self._partition_scalars)
        self._converters = [(columns, converter), *self._converters[: _CONVERTERS_KEPT - 1]]
        return converter

    def _refuse_int96(self, location: str, schema: Any, arrow: Any) -> None:
        """INT96 holds nanoseconds beyond what Arrow's timestamps can; decoding it could wrap around."""
        if self._without_int96 is not None and self._without_int96.equals(schema):
            return
        columns = [schema.column(position) for position in range(len(schema))]
        found = [position for position, column in enumerate(columns) if column.physical_type == "INT96"]
        identities = leaf_ids(arrow) if found else []
        for position in found:
            if identities[position] in self._leaf_ids:
                raise UnsupportedFile(f"{location}: column {columns[position].path!r} is INT96")
        self._without_int96 = schema


def joined(batches: Iterable[Any]) -> Iterator[Any]:
    """The same rows in larger batches, still bounded: each batch costs something for each of its columns."""
    held: list[Any] = []
    rows = held_bytes = 0
    for batch in batches:
        size_bytes = batch.nbytes
        if held and (rows + batch.num_rows > BATCH_ROWS_MAX or held_bytes + size_bytes > BATCH_BYTES):
            yield pa.concat_batches(held) if len(held) > 1 else held[0]
            held, rows, held_bytes = [], 0, 0
        if batch.num_rows:
            held.append(batch)
            rows, held_bytes = rows + batch.num_rows, held_bytes + size_bytes
    if held:
        yield pa.concat_batches(held) if len(held) > 1 else held[0]


def open_footer(location: str, storage: Storage = LOCAL) -> Any:
    """The footer of a Parquet file as pyarrow's ``ParquetFile``.

    Raises :class:`UnsupportedFile`, :class:`FileUnreadable`, and what storages raise.
    """
    return _footer(location, storage.source(location))


def _footer(location: str, source: Source) -> Any:
    with reading(location):
        with _opened(source) as file:
            file.seek(0)
            head = file.read(len(_MAGIC))
            file.seek(-len(_MAGIC), os.SEEK_END)
            tail = file.read()
        if _ENCRYPTED_MAGIC in (head, tail):
            raise UnsupportedFile(f"{location} is encrypted")
        if head != _MAGIC:
            raise UnsupportedFile(f"{location} is not a Parquet file")
        if tail != _MAGIC:
            raise FileUnreadable(f"{location} has no Parquet footer: it is truncated")
        return pq.ParquetFile(source, memory_map=False, pre_buffer=False)


def _opened(source: Source) -> AbstractContextManager[Any]:
    return Path(source).open("rb") if isinstance(source, str) else nullcontext(source)


def expect_size(location: str, size_bytes: int, storage: Storage) -> None:
    """Raises :class:`FileChanged` when a file is not as long as its manifest says."""
    found = storage.size(location)
    if found != size_bytes:
        raise FileChanged(f"{location} has {found} bytes, its manifest says {size_bytes}")


def _batch_rows(metadata: Any, batch_bytes: int) -> int:
    """Rows per batch so that a batch stays near ``batch_bytes``, as far as encoded sizes can tell."""
    total_bytes = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
    fitting = batch_bytes * int(metadata.num_rows) // max(int(total_bytes), 1)
    return max(BATCH_ROWS_MIN, min(BATCH_ROWS_MAX, fitting))
