"""Reading data files, batch by batch, with either of two Parquet implementations that share no code.

pyarrow (Parquet C++) reads the inputs; arrow-rs (arro3) reads a sample of them again, and each reads back what the
other wrote. Both yield record batches of the table's schema.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

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
    UnsupportedLocation,
    reading,
)
from icewright_spark.merge.schema import arrow_schema, leaf_ids, leaves

BATCH_ROWS_MAX = 65_536
BATCH_ROWS_MIN = 1_024
_BATCH_BYTES = 16 << 20
_COLUMN_BUFFER_BYTES = 1 << 20

_MAGIC = b"PAR1"
_ENCRYPTED_MAGIC = b"PARE"

Decoder: TypeAlias = Callable[[str, int], tuple[Any, Iterator[Any]]]
"""A path and rows per batch to a file's Arrow schema and its record batches."""


def decode_pyarrow(path: str, batch_rows: int) -> tuple[Any, Iterator[Any]]:
    """Reads with Parquet C++, and checks the checksums of pages that have them (parquet-java writes them).

    Without ``pre_buffer`` and with a buffer it holds a buffer per column, not the column chunks of a row group.
    """
    file = pq.ParquetFile(
        path, memory_map=False, pre_buffer=False, buffer_size=_COLUMN_BUFFER_BYTES, page_checksum_verification=True
    )
    return file.schema_arrow, file.iter_batches(batch_size=batch_rows, use_threads=False)


def decode_arrow_rs(path: str, batch_rows: int) -> tuple[Any, Iterator[Any]]:
    """Reads with arrow-rs."""
    reader = pa.RecordBatchReader.from_stream(arro3.io.read_parquet(path, batch_size=batch_rows))
    return reader.schema, iter(reader)


@dataclass(frozen=True, slots=True)
class RowsOfTable:
    """Reads files as rows of one table. ``identity_ids`` as in :class:`Converter`."""

    schema_fields: Sequence[Json]
    identity_ids: Collection[int] | None

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
        expect_size(file.path, file.size_bytes)
        footer = open_footer(file.path)
        _expect_rows(file, footer.metadata.num_rows)
        _refuse_int96(file.path, footer, self.schema_fields)
        self._converter(footer.schema_arrow)
        return _chunk_bytes(footer.metadata)

    def batches(self, location: str, decode: Decoder) -> Iterator[Any]:
        """All rows of a file, in order, in bounded batches.

        Raises :class:`FileUnreadable`, :class:`UnsupportedFile` and :class:`UnsupportedColumn`.
        """
        path = local_path(location)
        batch_rows = _batch_rows(open_footer(location).metadata)
        with reading(location):
            have, decoded = decode(str(path), batch_rows)
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


def local_path(location: str) -> Path:
    """The path of a location on a local file system; characters are taken as they are, as Hadoop does.

    Raises :class:`UnsupportedLocation` for every other scheme.
    """
    scheme = urlsplit(location).scheme if ":" in location.partition("/")[0] else ""
    if scheme == "" and location.startswith("/"):
        return Path(location)
    if scheme == "file":
        rest = location[len("file:") :]
        path = "/" + rest.lstrip("/") if rest.startswith("///") or not rest.startswith("//") else ""
        if rest.startswith("/") and path:
            return Path(path)
    raise UnsupportedLocation(
        f"{location!r} is not an absolute local path", hint="only file: locations can be merged so far"
    )


def open_footer(location: str) -> Any:
    """The footer of a Parquet file as pyarrow's ``ParquetFile``.

    Raises :class:`UnsupportedFile` and :class:`FileUnreadable`.
    """
    path = local_path(location)
    _regular_file(location)
    with reading(location):
        with path.open("rb") as file:
            head = file.read(len(_MAGIC))
            file.seek(-len(_MAGIC), os.SEEK_END)
            tail = file.read()
        if _ENCRYPTED_MAGIC in (head, tail):
            raise UnsupportedFile(f"{location} is encrypted")
        if head != _MAGIC:
            raise UnsupportedFile(f"{location} is not a Parquet file")
        if tail != _MAGIC:
            raise FileUnreadable(f"{location} has no Parquet footer: it is truncated")
        return pq.ParquetFile(str(path), memory_map=False, pre_buffer=False)


def read_bytes(location: str, offset: int, size_bytes: int) -> bytes:
    """The bytes of a file from ``offset`` on, fewer than ``size_bytes`` where it ends before.

    Raises :class:`UnsupportedFile` and :class:`FileUnreadable`.
    """
    _regular_file(location)
    with reading(location), local_path(location).open("rb") as file:
        file.seek(offset)
        return file.read(size_bytes)


def _regular_file(location: str) -> os.stat_result:
    """What the file system says of a file, which must be a regular one.

    Opening a named pipe would wait for its writer, for ever perhaps, and a device may have no end.
    """
    with reading(location):
        status = local_path(location).stat()
    if not stat.S_ISREG(status.st_mode):
        raise UnsupportedFile(f"{location} is no regular file")
    return status


def expect_size(location: str, size_bytes: int) -> None:
    """Raises :class:`ProofFailed` when a file is not as long as its manifest says."""
    found = _regular_file(location).st_size
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
