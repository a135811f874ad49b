"""What the files that Spark wrote state of their rows, read on the driver and compared in Spark's Python workers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from icewright_spark.iceberg.java_api import SparkTable
from icewright_spark.parquet.statistics.check import StatedCheck, check_of, wrongly_read

_PARQUET: Final = "PARQUET"


class JavaFiles:
    """The files of a table, as its ``FileIO`` reads them on the driver."""

    def __init__(self, io: Any) -> None:
        self._io = io

    @contextmanager
    def open_input(self, location: str) -> Iterator[Any]:
        """A file to be read with ``seek`` and ``read``."""
        stream = self._io.newInputFile(location).newStream()
        try:
            yield _Stream(stream)
        finally:
            stream.close()

    def read(self, location: str, offset: int, size_bytes: int) -> bytes:
        """Bytes of a file."""
        with self.open_input(location) as file:
            file.seek(offset)
            return bytes(file.read(size_bytes))


class _Stream:
    """Java's ``SeekableInputStream`` as a file of Python."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def seek(self, offset: int, _whence: int = os.SEEK_SET) -> None:
        self._stream.seek(offset)

    def read(self, size_bytes: int) -> bytes:
        return bytes(self._stream.readNBytes(size_bytes))


def stated_by(table: SparkTable, files: Sequence[Any]) -> Mapping[str, StatedCheck]:
    """Checks of what new files state of the table's columns, by path, for workers; ``files`` are Java's ``DataFile``.

    There is none for a file without rows, and none for files of other formats than Parquet, whose indexes nobody here
    knows. Row ids are left out: readers show some where a file has none. Raises :class:`FileUnreadable` and
    :class:`UnsupportedFile`.
    """
    storage, fields = JavaFiles(table.java.io()), table.schema_fields()
    return {
        str(file.location()): check_of(storage, str(file.location()), int(file.fileSizeInBytes()), fields)
        for file in files
        if str(file.format()) == _PARQUET and int(file.recordCount())
    }


def check_stated(files: Iterable[str], misstated: Mapping[str, str]) -> None:
    """``misstated`` is what the workers found, by path. Raises :class:`ProofFailed` for the first of these files."""
    for path in files:
        if path in misstated:
            raise wrongly_read(path, misstated[path])
