"""Rows of a table as its files have them, written again in memory and decoded, by the code of rewrites.

Nothing is written anywhere else. A *round* is one such pass with one set of settings: bytes are the same in every
round, CPU seconds are not.
"""

from __future__ import annotations

import io
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from icewright.core.errors import Unsupported
from icewright.model.iceberg.tables import Json
from icewright.model.iceberg.writer_settings import WriterSettings
from icewright_spark.executors.merge.dictionary import dictionary_ids, spread
from icewright_spark.executors.merge.read import RowsOfTable, decode_pyarrow
from icewright_spark.executors.merge.write import Layout, choose_writer, dictionary_paths, write_rows
from icewright_spark.parquet.errors import FileChanged
from icewright_spark.parquet.footer import MAGIC, ChunkField, ColumnField, FileField, GroupField, number, structs
from icewright_spark.parquet.schema import Leaf, leaves
from icewright_spark.parquet.statistics.stated import whole_dictionary
from icewright_spark.parquet.storage import LOCAL, Storage
from icewright_spark.parquet.thrift import Struct, read_struct
from icewright_spark.trials.table_sample import BYTES, PATH, ROWS

Amounts: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]

FILES_MAX: Final = 4
PIECE_BYTES: Final = 32 << 20
"""Decoded, of each file: it is read from its first row until there are as many."""
LEAVES_MAX: Final = 500
"""Of a row: a reader holds a buffer for each, and each is decoded by itself, in each round."""
ROW_BYTES_MAX: Final = 64 << 10
"""Of an average row in its file: a batch has a thousand rows at least, however long they are."""
_END_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class Piece:
    """The first rows of a file, and about how many bytes they take there."""

    rows: Any
    encoded_bytes: int


@dataclass(frozen=True, slots=True)
class FormatSample:
    """Some files, each as far as it is read, of a table with so many rows.

    ``dictionary`` are the ids of the leaves that a merge of these files writes with dictionaries; ``modes`` the metrics
    modes, by field id.
    """

    fields: tuple[Json, ...]
    properties: Mapping[str, str]
    modes: Mapping[int, str]
    dictionary: frozenset[int]
    pieces: tuple[Piece, ...]
    table_rows: int

    @property
    def rows(self) -> int:
        """Rows of all pieces."""
        return sum(piece.rows.num_rows for piece in self.pieces)

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The columns of a file, in its order."""
        return leaves(self.fields)

    @property
    def table(self) -> Any:
        """All rows, piece after piece."""
        return pa.concat_tables(piece.rows for piece in self.pieces)


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """What one pass came to.

    ``rows`` are those of each row group, piece after piece; ``bytes`` and ``whole`` have a row for each of them and a
    column for each leaf: what it takes, and whether a dictionary has all of its values. ``decode_s`` is of each leaf,
    over all rows, 0 where it was not asked for.
    """

    rows: npt.NDArray[np.int64]
    bytes: Amounts
    whole: Flags
    file_bytes: int
    write_s: float
    decode_s: Amounts


def format_sample(
    fields: Sequence[Json],
    properties: Mapping[str, str],
    modes: Mapping[int, str],
    files: Any,
    storage: Storage = LOCAL,
) -> FormatSample:
    """Rows of some files, evenly chosen by their paths, of those that the metadata table ``files`` lists.

    Deleted rows are among them. Raises :class:`~icewright.core.errors.Unsupported` where a merge could not read them,
    or where it takes too much memory, what :meth:`~icewright_spark.executors.merge.read.RowsOfTable.batches` raises,
    and what storages raise.
    """
    listed = {row[PATH]: row for row in files.select([PATH, ROWS, BYTES]).sort_by(PATH).to_pylist() if row[ROWS] > 0}
    chosen = [listed[path] for path in spread(list(listed), FILES_MAX)]
    source = RowsOfTable(fields, None, storage)
    if len(leaves(fields)) > LEAVES_MAX:
        raise Unsupported(f"the table has {len(leaves(fields)):,} columns, more than {LEAVES_MAX}")
    pieces = []
    for row in chosen:
        if row[BYTES] > ROW_BYTES_MAX * row[ROWS]:
            raise Unsupported(f"a row of {row[PATH]} has more than {ROW_BYTES_MAX >> 10} KiB on average")
        found = pa.Table.from_batches(_first_batches(source, row[PATH]), schema=source.schema)
        if not found.num_rows:
            raise FileChanged(f"{row[PATH]} has no rows, its manifest says {row[ROWS]}")
        pieces.append(Piece(found, max(1, row[BYTES] * found.num_rows // row[ROWS])))
    dictionary = dictionary_ids([row[PATH] for row in chosen], storage)
    rows = sum(row[ROWS] for row in listed.values())
    return FormatSample(tuple(fields), dict(properties), modes, dictionary, tuple(pieces), rows)


def one_round(sample: FormatSample, settings: WriterSettings, columns: Collection[str]) -> Round:
    """Write all pieces, and decode the top-level ``columns``, by one thread."""
    its_leaves = sample.leaves
    written, write_s = [], 0.0
    for piece in sample.pieces:
        started = time.thread_time()
        written.append(_written(sample, piece, settings))
        write_s += time.thread_time() - started
    groups = [group for content in written for group in _row_groups(content)]
    sizes = np.array([[number(column, ColumnField.TOTAL_COMPRESSED_SIZE) for column in of] for _, of in groups])
    whole = np.array([[whole_dictionary(column) for column in of] for _, of in groups], np.bool_)
    decode_s = np.zeros(len(its_leaves))
    files = [pq.ParquetFile(pa.BufferReader(content)) for content in written]
    for name in columns:
        mine = np.array([leaf.path[0] == name for leaf in its_leaves])
        started = time.thread_time()
        for file in files:
            file.read(columns=[name], use_threads=False)
        spent = time.thread_time() - started
        decode_s[mine] = spent * sizes[:, mine].sum(axis=0) / max(1, sizes[:, mine].sum())
    rows = np.array([rows for rows, _ in groups], np.int64)
    return Round(rows, sizes.astype(np.float64), whole, sum(map(len, written)), write_s, decode_s)


def _first_batches(source: RowsOfTable, path: str) -> Iterator[Any]:
    held = 0
    for batch in source.batches(path, decode_pyarrow):
        yield batch
        held += batch.nbytes
        if held >= PIECE_BYTES:
            return


def _written(sample: FormatSample, piece: Piece, settings: WriterSettings) -> bytes:
    its_leaves, rows = sample.leaves, piece.rows.num_rows
    layout = Layout(
        schema=piece.rows.schema,
        settings=settings,
        dictionary=dictionary_paths(its_leaves, sample.dictionary, settings.plain_columns),
        row_group_rows=max(1, settings.row_group_size_bytes * rows // piece.encoded_bytes),
        fields=sample.fields,
    )
    content = io.BytesIO()
    batches = piece.rows.to_batches()
    write_rows(content, "a sample", batches, choose_writer(its_leaves, sample.modes), layout)
    return content.getvalue()


def _row_groups(content: bytes) -> Iterator[tuple[int, list[Struct]]]:
    """The rows of each row group, and the ``ColumnMetaData`` of its columns."""
    length = int.from_bytes(content[-_END_BYTES : -len(MAGIC)], "little")
    fields, _ = read_struct(content, len(content) - _END_BYTES - length)
    for group in structs(fields, FileField.ROW_GROUPS):
        chunks = structs(group, GroupField.COLUMNS)
        yield number(group, GroupField.NUM_ROWS), [chunk[ChunkField.META_DATA][1] for chunk in chunks]
