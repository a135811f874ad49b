"""Whatever a copy, a position or a disk may do to row groups, no commit follows: here it is done on purpose."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from icewright_spark.executors.stitch import copy as copy_module
from icewright_spark.executors.stitch import proof as proof_module
from icewright_spark.executors.stitch import stitch as stitch_module
from icewright_spark.executors.stitch.stitch import stitch_group
from icewright_spark.parquet.errors import ProofFailed
from icewright_spark.parquet.footer import Chunk, ChunkField, ColumnField, FileField, GroupField
from icewright_spark.parquet.thrift import BINARY, I32, I64, LIST, STRUCT, Struct
from tests.builders.stitch_files import ROWS, footer_of, input_of, job_of, plain, rows, with_footer, write_one, written
from tests.cases import each_case

Damage = Callable[[Path], None]


def flipped(path: Path, position: int) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        (byte,) = file.read(1)
        file.seek(position)
        file.write(bytes([byte ^ 1]))


def somewhere(place: Callable[[Chunk], int]) -> Damage:
    """A flipped bit where a chunk of the last row group but one has something."""
    return lambda path: flipped(path, place(footer_of(path).row_groups[-2].chunks[1]))


def of_groups(change: Callable[[list[Struct]], list[Struct]]) -> Damage:
    """Other row groups in the footer, their rows counted."""

    def changed(fields: Struct) -> Struct:
        groups = change(list(fields[FileField.ROW_GROUPS][1][1]))
        rows = sum(group[GroupField.NUM_ROWS][1] for group in groups)
        return {**fields, FileField.NUM_ROWS: (I64, rows), FileField.ROW_GROUPS: (LIST, (STRUCT, groups))}

    return lambda path: with_footer(path, changed)


def of_chunk(change: Callable[[Struct, Struct], None], number: int = 1) -> Damage:
    """One ``ColumnChunk`` and its ``ColumnMetaData`` changed in the last row group but one."""

    def changed(groups: list[Struct]) -> list[Struct]:
        chunk = groups[-2][GroupField.COLUMNS][1][1][number]
        change(chunk, chunk[ChunkField.META_DATA][1])
        return groups

    return of_groups(changed)


def moved(field_id: int, by: int) -> Callable[[Struct, Struct], None]:
    def change(chunk: Struct, column: Struct) -> None:
        fields = column if field_id in column else chunk
        fields[field_id] = (I64, fields[field_id][1] + by)

    return change


def swapped_chunks(groups: list[Struct]) -> list[Struct]:
    """Two chunks of one column and of equal row counts, each where the other should be."""
    one, other = groups[0][GroupField.COLUMNS][1][1], groups[3][GroupField.COLUMNS][1][1]
    one[0], other[0] = other[0], one[0]
    return groups


def without_null_count(_chunk: Struct, column: Struct) -> None:
    del column[12][1][3]


def other_null_count(_chunk: Struct, column: Struct) -> None:
    column[12][1][3] = (I64, 1)


def other_codec(_chunk: Struct, column: Struct) -> None:
    column[4] = (I32, 0)


def without_bloom_filter(_chunk: Struct, column: Struct) -> None:
    del column[ColumnField.BLOOM_FILTER_OFFSET], column[ColumnField.BLOOM_FILTER_LENGTH]


def without_column_index(chunk: Struct, _column: Struct) -> None:
    del chunk[ChunkField.COLUMN_INDEX_OFFSET], chunk[ChunkField.COLUMN_INDEX_LENGTH]


def of_other_chunk(chunk: Struct, _column: Struct) -> None:
    """The column index of the chunk beside it, which is as long."""
    chunk[ChunkField.COLUMN_INDEX_OFFSET] = (I64, chunk[ChunkField.COLUMN_INDEX_OFFSET][1] + 1)


def truncated(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


FAULTS: dict[str, Damage] = {
    "a bit of the pages": somewhere(lambda chunk: chunk.pages.start + 40),
    "the last bit of the pages": somewhere(lambda chunk: chunk.pages.end - 1),
    "a bit of a bloom filter": somewhere(lambda chunk: (chunk.bloom_filter_at or 0) + 30),
    "a bit of a column index": somewhere(lambda chunk: chunk.column_index.end - 3 if chunk.column_index else 0),
    "a bit of an offset index": somewhere(lambda chunk: chunk.offset_index.end - 3 if chunk.offset_index else 0),
    "a bit of the footer": lambda path: flipped(path, footer_of(path).start + 900),
    "the file ends early": truncated,
    "nothing was written": emptied,
    "a row group is missing": of_groups(lambda groups: groups[:-1]),
    "the first row group is missing": of_groups(lambda groups: groups[1:]),
    "a row group twice": of_groups(lambda groups: [*groups, groups[-1]]),
    "a row group for another": of_groups(lambda groups: [groups[0], groups[0], *groups[2:]]),
    "two row groups swapped": of_groups(lambda groups: [groups[1], groups[0], *groups[2:]]),
    "chunks of two row groups swapped": of_groups(swapped_chunks),
    "pages a byte further on": of_chunk(moved(ColumnField.DATA_PAGE_OFFSET, 1)),
    "pages a byte before": of_chunk(moved(ColumnField.DATA_PAGE_OFFSET, -1)),
    "a dictionary a byte further on": of_chunk(moved(ColumnField.DICTIONARY_PAGE_OFFSET, 1)),
    "pages a byte shorter": of_chunk(moved(ColumnField.TOTAL_COMPRESSED_SIZE, -1)),
    "a value less": of_chunk(moved(ColumnField.NUM_VALUES, -1)),
    "a bloom filter a byte further on": of_chunk(moved(ColumnField.BLOOM_FILTER_OFFSET, 1)),
    "a column index a byte further on": of_chunk(of_other_chunk),
    "an offset index a byte further on": of_chunk(moved(ChunkField.OFFSET_INDEX_OFFSET, 1)),
    "no bloom filter": of_chunk(without_bloom_filter),
    "no column index": of_chunk(without_column_index),
    "no null count": of_chunk(without_null_count),
    "another null count": of_chunk(other_null_count),
    "another codec": of_chunk(other_codec),
    "another writer": lambda path: with_footer(path, lambda fields: {**fields, 6: (BINARY, b"nobody")}),
    "no orders of columns": lambda path: with_footer(path, lambda fields: {k: v for k, v in fields.items() if k != 7}),
}


@each_case("fault", FAULTS)
def test_a_damaged_output_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    output = tmp_path / "out.parquet"
    monkeypatch.setattr(stitch_module, "output_is_written", lambda: FAULTS[fault](output))
    with pytest.raises(ProofFailed):
        stitch_group(job_of(written(tmp_path), output))
    assert output.exists()


def test_no_damage_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The footer written anew without a change: the faults above are found for what they are."""
    output = tmp_path / "out.parquet"
    monkeypatch.setattr(stitch_module, "output_is_written", lambda: of_groups(lambda groups: groups)(output))
    stitch_group(job_of(written(tmp_path), output))


def test_a_bit_that_flips_on_its_way_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put = copy_module.Copy._put

    def faulty(self: Any, data: Any) -> None:
        changed = bytearray(data)
        if len(changed) > 2000:
            changed[1000] ^= 1
        put(self, bytes(changed))

    monkeypatch.setattr(copy_module.Copy, "_put", faulty)
    with pytest.raises(ProofFailed):
        stitch_group(job_of(written(tmp_path), tmp_path / "out.parquet"))


WRONG: dict[str, Any] = {
    "chunk_at": lambda chunk_at: lambda chunk, start, bloom: chunk_at(chunk, start + 1, bloom),
    "with_indexes": lambda with_indexes: lambda struct, one, two: with_indexes(struct, two, one),
    "moved": lambda moved: lambda index, by: moved(index, by + 1),
}


@each_case("name", WRONG)
def test_a_wrong_position_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A defect of ours where positions are made."""
    monkeypatch.setattr(copy_module, name, WRONG[name](getattr(copy_module, name)))
    with pytest.raises(ProofFailed):
        stitch_group(job_of(written(tmp_path), tmp_path / "out.parquet"))


def test_pages_that_cannot_be_decoded_are_caught(tmp_path: Path) -> None:
    """The input itself is damaged: a copy would be, too, and one column of each row group is decoded."""
    files = written(tmp_path)
    path = Path(files[0].path)
    flipped(path, footer_of(path).row_groups[0].chunks[0].pages.end - 10)
    with pytest.raises(ProofFailed, match="cannot be decoded"):
        stitch_group(job_of(files, tmp_path / "out.parquet"))


def test_rows_that_pages_do_not_have_are_not_counted(tmp_path: Path) -> None:
    """Manifest and footer agree on a row that nobody wrote: a copy agrees as well, and only its pages tell."""

    def a_row_more(groups: list[Struct]) -> list[Struct]:
        groups[0][GroupField.NUM_ROWS] = (I64, groups[0][GroupField.NUM_ROWS][1] + 1)
        return groups

    file = write_one(tmp_path, rows(0), plain)
    of_groups(a_row_more)(Path(file.path))
    with pytest.raises(ProofFailed, match="1000 rows of 1001 in column 0"):
        stitch_group(job_of([input_of(Path(file.path), ROWS + 1)], tmp_path / "out.parquet"))


def test_the_proof_relies_on_a_second_parser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were pyarrow to find the bytes elsewhere than we do, there would be no commit."""
    metadata_of = proof_module.metadata_of

    def other(footer: Any) -> Any:
        if "out" not in footer.location:
            return metadata_of(footer)
        return metadata_of(footer_of(tmp_path / "other.parquet"))

    first, second = written(tmp_path), written(tmp_path)[::-1]
    stitch_group(job_of(second, tmp_path / "other.parquet"))
    monkeypatch.setattr(stitch_module, "metadata_of", other)
    with pytest.raises(ProofFailed):
        stitch_group(job_of(first, tmp_path / "out.parquet"))
