"""Reading data files, batch by batch, with either of two Parquet implementations that share no code.

pyarrow (Parquet C++) reads the inputs; arrow-rs (arro3) reads a sample of them again, and each reads back what the
other wrote. Both yield record batches of the table's schema.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import arro3.io
import pyarrow as pa
import pyarrow.parquet as pq

from icewright.domain.actions import InputFile
from icewright.domain.tables import Json
from icewright_spark.merge.convert import Converter
from icewright_spark.merge.errors import (
    FileUnreadable,
    ProofFailed,
    UnsupportedColumn,
    UnsupportedFile,
    reading,
)
from icewright_spark.merge.schema import arrow_schema, leaf_ids, leaves
from icewright_spark.merge.storage import LOCAL, BlockReader, Source, Storage

BATCH_ROWS_MAX = 65_536
BATCH_ROWS_MIN = 1_024
_BATCH_BYTES = 16 << 20
_COLUMN_BUFFER_BYTES = 1 << 20

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


@dataclass(frozen=True, slots=True)
class RowsOfTable:
    """Reads files as rows of one table. ``identity_ids`` as in :class:`Converter`."""

    schema_fields: Sequence[Json]
    identity_ids: Collection[int] | None
    storage: Storage = LOCAL

    @property
    def schema(self) -> Any:
        """The table's Arrow schema. Raises :class:`UnsupportedColumn`."""
        return arrow_schema(self.schema_fields)

    def inspect(self, file: InputFile) -> int:
        """All that can be seen of a file without reading rows: its size, its number of rows, its schema.

        Gives the bytes that its column chunks have, encoded and compressed.
        Raises :class:`ProofFailed` when it is not what its manifest says, :class:`FileUnreadable`,
        :class:`UnsupportedFile` and :class:`UnsupportedColumn`.
        """
        expect_size(file.path, file.size_bytes, self.storage)
        footer = open_footer(file.path, self.storage)
        _expect_rows(file, footer.metadata.num_rows)
        _refuse_int96(file.path, footer, self.schema_fields)
        self._converter(footer.schema_arrow)
        return _chunk_bytes(footer.metadata)

    def batches(self, location: str, decode: Decoder) -> Iterator[Any]:
        """All rows of a file, in order, in bounded batches.

        Raises :class:`FileUnreadable`, :class:`UnsupportedFile` and :class:`UnsupportedColumn`.
        """
        source = self.storage.source(location)
        batch_rows = _batch_rows(_footer(location, source).metadata)
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
                raise UnsupportedColumn(f"{location} cannot be converted: {error}") from error
            yield converted

    def checked_batches(self, file: InputFile, decode: Decoder) -> Iterator[Any]:
        """As :meth:`batches`; raises :class:`ProofFailed` besides when the rows are not as many as they should be."""
        rows = 0
        for batch in self.batches(file.path, decode):
            rows += batch.num_rows
            yield batch
        _expect_rows(file, rows)

    def _converter(self, have: Any) -> Converter:
        return Converter(have, self.schema, self.schema_fields, self.identity_ids)


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
    """Raises :class:`ProofFailed` when a file is not as long as its manifest says."""
    found = storage.size(location)
    if found != size_bytes:
        raise ProofFailed(f"{location} has {found} bytes, its manifest says {size_bytes}")


def _expect_rows(file: InputFile, rows: int) -> None:
    if rows != file.record_count:
        raise ProofFailed(f"{file.path} has {rows} rows, its manifest says {file.record_count}")


def _refuse_int96(location: str, footer: Any, schema_fields: Sequence[Json]) -> None:
    """INT96 holds nanoseconds beyond what Arrow's timestamps can; decoding it could wrap around."""
    wanted = {leaf.field_id for leaf in leaves(schema_fields)}
    for position, identity in enumerate(leaf_ids(footer.schema_arrow)):
        leaf = footer.schema.column(position)
        if identity in wanted and leaf.physical_type == "INT96":
            raise UnsupportedFile(f"{location}: column {leaf.path!r} is INT96")


def _chunk_bytes(metadata: Any) -> int:
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    return sum(group.column(n).total_compressed_size for group in groups for n in range(group.num_columns))


def _batch_rows(metadata: Any) -> int:
    """Rows per batch so that a batch stays near ``_BATCH_BYTES``, as far as encoded sizes can tell."""
    total_bytes = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
    fitting = _BATCH_BYTES * int(metadata.num_rows) // max(int(total_bytes), 1)
    return max(BATCH_ROWS_MIN, min(BATCH_ROWS_MAX, fitting))
