"""Writing one Parquet file from a stream of record batches, with either of two implementations.

arrow-rs (arro3) writes wherever it loses nothing: it streams, holding an encoded row group at most. pyarrow writes
the rest and holds a decoded row group. Both write version-1 data pages only (Iceberg's vectorised reader throws on
version 2), page indexes, decimals as integers where they fit, and no Arrow schema in the footer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import arro3.io
import pyarrow as pa
import pyarrow.parquet as pq

from icewright.model.iceberg.tables import Json
from icewright.model.iceberg.writer_settings import WriterSettings
from icewright_spark.executors.merge.read import Decoder, decode_arrow_rs, decode_pyarrow
from icewright_spark.parquet.errors import is_panic, unwritable
from icewright_spark.parquet.float_footer import FloatFooter, HeldBack
from icewright_spark.parquet.metrics import DEFAULT_MODE, metrics_mode
from icewright_spark.parquet.schema import Leaf, compatible_name
from icewright_spark.parquet.storage import Storage

COLLECTED_BYTES_MAX = 1 << 30
"""Decoded bytes at which pyarrow's row group ends, however small it is encoded: the limit of memory."""

_CUT_ROWS_MIN = 1024
"""Batches are not cut smaller than this for the sake of pages: arrow-rs takes as many rows at a time anyway."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a file is laid out. ``dictionary`` holds the paths of the leaves to be dictionary-encoded.

    ``fields`` are all columns as the schema has them, for what the footer says of floats; without, it stays as it is.
    """

    schema: Any
    settings: WriterSettings
    dictionary: tuple[tuple[str, ...], ...]
    row_group_rows: int
    fields: Sequence[Json] = ()


class Writer(Protocol):
    """A Parquet writer, and the decoder that reads back what it wrote: never the same library."""

    @property
    def name(self) -> str:
        """For the receipt."""

    @property
    def read_back(self) -> Decoder:
        """The decoder of the other library."""

    def write(self, batches: Iterable[Any], file: Any, layout: Layout) -> None:
        """Writes all batches, in order, as one Parquet file. Errors of ``batches`` come out as they are."""


class ArrowRsWriter:
    """Writes with arrow-rs, streaming."""

    name = "arrow-rs"
    read_back = staticmethod(decode_pyarrow)

    def write(self, batches: Iterable[Any], file: Any, layout: Layout) -> None:
        """See :class:`Writer`."""
        source = _Source(_cut_at_pages(batches, layout))
        settings = layout.settings
        level = settings.compression_level
        try:
            arro3.io.write_parquet(
                pa.RecordBatchReader.from_batches(layout.schema, source),
                file,
                compression=settings.codec if level is None else f"{settings.codec}({level})",
                dictionary_enabled=False,
                column_dictionary_enabled=dict.fromkeys(layout.dictionary, True),
                max_row_group_size=layout.row_group_rows,
                data_page_size_limit=settings.page_size_bytes,
                data_page_row_count_limit=settings.page_row_limit,
                dictionary_page_size_limit=settings.dictionary_size_bytes,
                skip_arrow_metadata=True,
                writer_version="parquet_1_0",
            )
        except BaseException as error:
            if source.error is not None:  # arrow-rs only passes on its text
                raise source.error from error
            if isinstance(error, Exception) or is_panic(error):
                raise unwritable("arrow-rs could not write the output", error) from error
            raise


class PyArrowWriter:
    """Writes with Parquet C++, a row group at a time: each of its writes begins a new one."""

    name = "pyarrow"
    read_back = staticmethod(decode_arrow_rs)

    def write(self, batches: Iterable[Any], file: Any, layout: Layout) -> None:
        """See :class:`Writer`."""
        settings = layout.settings
        try:
            writer = pq.ParquetWriter(
                file,
                layout.schema,
                version="2.6",  # of the format, for nanoseconds; pages stay version 1
                data_page_version="1.0",
                compression=settings.codec if settings.codec != "uncompressed" else "none",
                compression_level=settings.compression_level,
                use_dictionary=[".".join(path) for path in layout.dictionary],
                data_page_size=settings.page_size_bytes,
                max_rows_per_page=settings.page_row_limit,
                dictionary_pagesize_limit=settings.dictionary_size_bytes,
                store_decimal_as_integer=True,
                store_schema=False,
                write_page_index=True,
                write_page_checksum=True,
            )
            with writer:
                for table in _row_groups(batches, layout):
                    writer.write_table(table, row_group_size=max(table.num_rows, 1))
        except (OSError, pa.ArrowException) as error:
            raise unwritable("pyarrow could not write the output", error) from error


ARROW_RS = ArrowRsWriter()
PYARROW = PyArrowWriter()


def choose_writer(schema_leaves: Sequence[Leaf], modes: Mapping[int, str]) -> Writer:
    """arrow-rs, unless the table has something that it would lose.

    It drops the annotation of uuid, names the middle group of a map other than the Parquet spec does, and cuts
    minima and maxima of strings and binaries, which are wanted whole in mode ``full``. Of a page in a list or a map it
    states that there is no value in it where it has as many nulls as rows.
    """
    for leaf in schema_leaves:
        mode = metrics_mode(modes.get(leaf.field_id, DEFAULT_MODE))
        whole_bounds = leaf.type in ("string", "binary") and mode.bounds and mode.length is None
        if leaf.type == "uuid" or leaf.repeated or whole_bounds:
            return PYARROW
    return ARROW_RS


def dictionary_paths(
    schema_leaves: Sequence[Leaf], identities: Collection[int], plain_columns: Collection[str] = ()
) -> tuple[tuple[str, ...], ...]:
    """Paths of the leaves with these ids, but for ``plain_columns`` by their names in the table.

    Booleans have no dictionary encoding in the spec.
    """
    plain = {tuple(map(compatible_name, name.split("."))) for name in plain_columns}
    wanted = (leaf for leaf in schema_leaves if leaf.field_id in identities and leaf.type != "boolean")
    return tuple(leaf.path for leaf in wanted if leaf.path not in plain)


def write_new_file(storage: Storage, location: str, batches: Iterable[Any], writer: Writer, layout: Layout) -> None:
    """Writes a file that did not exist; :meth:`Storage.settle` makes it durable.

    What its footer states of floats is what readers can take (:mod:`icewright_spark.parquet.float_footer`). Raises
    :class:`OutputExists`, :class:`OutputUnwritable`, what storages raise, and whatever ``batches`` raises.
    On an error :meth:`Storage.create` says what becomes of the part that was written.
    """
    with storage.create(location, durable=False) as file:
        write_rows(file, location, batches, writer, layout)


def write_rows(file: Any, location: str, batches: Iterable[Any], writer: Writer, layout: Layout) -> None:
    """Writes a Parquet file as every rewrite does; raises as :func:`write_new_file`. ``location`` is for errors."""
    floats = FloatFooter(layout.fields)
    held = HeldBack(file)
    writer.write(floats.watched(batches), held, layout)
    try:
        held.finish(floats.changed if floats.changes else None)
    except (OSError, pa.ArrowException) as error:
        raise unwritable(f"{location} could not be finished", error) from error


class _Source:
    """Iterates batches and remembers the error that ended them, which Arrow's C interface reduces to text."""

    def __init__(self, batches: Iterable[Any]) -> None:
        self._batches = iter(batches)
        self.error: BaseException | None = None

    def __iter__(self) -> Iterator[Any]:
        try:
            yield from self._batches
        except GeneratorExit:  # nobody reads on, since the writer failed: that is the error
            raise
        except BaseException as error:
            self.error = error
            raise


def _cut_at_pages(batches: Iterable[Any], layout: Layout) -> Iterator[Any]:
    """The batches, cut where a page has as many rows as it may have.

    arrow-rs begins a new page only between two of the pieces that it takes a batch in, so that pages would get up to
    twice as many rows as the table allows. Readers in Java pay for that: a page beyond half a region of the heap
    (512 KiB of 1 MiB, for a heap of 2 GiB) is a humongous object, and each of them may set off a marking of the heap.
    """
    page_rows = max(layout.settings.page_row_limit, _CUT_ROWS_MIN)
    rows = 0
    for batch in batches:
        rest = batch
        while rest.num_rows:
            in_group = rows % layout.row_group_rows
            part = rest.slice(0, min(page_rows - in_group % page_rows, layout.row_group_rows - in_group))
            rest = rest.slice(part.num_rows)
            rows += part.num_rows
            yield part


def _row_groups(batches: Iterable[Any], layout: Layout) -> Iterator[Any]:
    """The rows as tables of one row group each. Rows beyond a full row group begin the next one."""
    held: list[Any] = []
    rows = 0
    held_bytes = 0
    for batch in batches:
        rest = batch
        while rest.num_rows:
            part = rest.slice(0, layout.row_group_rows - rows)
            rest = rest.slice(part.num_rows)
            held.append(part)
            rows += part.num_rows
            held_bytes += part.nbytes
            if rows >= layout.row_group_rows or held_bytes >= COLLECTED_BYTES_MAX:
                yield pa.Table.from_batches(held, schema=layout.schema)
                held, rows, held_bytes = [], 0, 0
    if held:
        yield pa.Table.from_batches(held, schema=layout.schema)
