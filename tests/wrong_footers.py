"""Parquet files that state what does not hold of their rows, by footers, page indexes and bloom filters changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from icewright_spark.parquet.footer import Chunk, ChunkField, FileField, GroupField
from icewright_spark.parquet.indexes import bloom_filter_span
from icewright_spark.parquet.thrift import I32, I64, Struct, read_struct, write_struct
from tests.builders.stitch_files import footer_of, with_footer
from tests.narrowing import not_none

Damage = Callable[[Path], None]


def of_column(name: str, change: Callable[[Struct], None]) -> Damage:
    """The ``ColumnMetaData`` of a leaf changed in the first row group."""

    def changed(fields: Struct) -> Struct:
        chunks = fields[FileField.ROW_GROUPS][1][1][0][GroupField.COLUMNS][1][1]
        columns = [chunk[ChunkField.META_DATA][1] for chunk in chunks]
        (found,) = [one for one in columns if one[3][1][1][-1].decode() == name]
        change(found)
        return fields

    return lambda path: with_footer(path, changed)


def stated(name: str, field_id: int, kind: int, value: Any, *more: int) -> Damage:
    """Another field of ``Statistics``."""

    def change(found: Struct) -> None:
        fields = dict(found[12][1])
        for gone in more:
            fields.pop(gone, None)
        fields[field_id] = (kind, value)
        found[12] = (found[12][0], dict(sorted(fields.items())))

    return of_column(name, change)


def chunk_of(path: Path, name: str) -> Chunk:
    chunks = footer_of(path).row_groups[0].chunks
    (found,) = [chunk for chunk in chunks if chunk.column[3][1][1][-1].decode() == name]
    return found


def of_index(name: str, change: Callable[[Struct], None], *, offsets: bool = False) -> Damage:
    """The column index, or the offset index, of a leaf changed in the first row group; it stays as long."""

    def damage(path: Path) -> None:
        chunk = chunk_of(path, name)
        span = not_none(chunk.offset_index if offsets else chunk.column_index)
        with path.open("r+b") as file:
            file.seek(span.start)
            index, _ = read_struct(file.read(span.size))
            change(index)
            data = write_struct(index)
            assert len(data) == span.size
            file.seek(span.start)
            file.write(data)

    return damage


def put(field_id: int, page: int, value: Any) -> Callable[[Struct], None]:
    def change(index: Struct) -> None:
        assert index[field_id][1][1][page] != value
        index[field_id][1][1][page] = value

    return change


def other_order(index: Struct) -> None:
    assert index[4] == (I32, 0)
    index[4] = (I32, 1)


def moved_page(index: Struct) -> None:
    pages = index[1][1][1]
    assert pages[1][3] == (I64, 1024)
    pages[1][3] = (I64, 1023)


def without_a_bit(path: Path, name: str, *, all_of_them: bool) -> None:
    chunk = chunk_of(path, name)
    start = not_none(chunk.bloom_filter_at)
    with path.open("r+b") as file:
        file.seek(start)
        head = file.read(64)
        span = bloom_filter_span(str(path), head, chunk)
        _, header = read_struct(head)
        file.seek(start + header)
        bits = bytearray(file.read(span.size - header))
        if all_of_them:
            bits[:] = bytes(len(bits))
        else:
            used = next(position for position, byte in enumerate(bits) if byte)
            bits[used] &= bits[used] - 1
        file.seek(start + header)
        file.write(bits)


def damaged_at(location: str, damage: Damage) -> None:
    """A local file of Spark's, without the checksums that Hadoop keeps beside it."""
    path = Path(location.removeprefix("file:"))
    (path.parent / f".{path.name}.crc").unlink()
    damage(path)
