"""What cannot be stitched is refused by name, and before anything is written; damaged files are said to be so."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icewright.core.errors import IcewrightError, InvalidMessage, NotStitchable
from icewright.model.actions.actions import InputFile
from icewright.model.iceberg.files import DeleteFile, FileContent, FileFormat, Partition
from icewright_spark.executors.stitch import copy as copy_module
from icewright_spark.executors.stitch import stitch as stitch_module
from icewright_spark.executors.stitch.stitch import stitch_group
from icewright_spark.parquet import footer as footer_module
from icewright_spark.parquet.errors import FileChanged, FileUnreadable, OutputExists, OutputUnwritable, UnsupportedFile
from icewright_spark.parquet.footer import ChunkField, ColumnField, FileField, GroupField, key_values
from icewright_spark.parquet.thrift import BINARY, I32, I64, LIST, STRUCT, Struct, read_struct
from tests.builders.stitch_files import (
    ROWS,
    by_arrow_rs,
    footer_of,
    input_of,
    job_of,
    rows,
    with_footer,
    write_one,
    written,
)
from tests.cases import each_case

Change = Callable[[Struct], Struct]


def first_column(fields: Struct) -> tuple[Struct, Struct, Struct]:
    """The first row group, its first chunk, and what is said of the column."""
    group = fields[FileField.ROW_GROUPS][1][1][0]
    chunk = group[GroupField.COLUMNS][1][1][0]
    return group, chunk, chunk[ChunkField.META_DATA][1]


def in_part(number: int, field_id: int, value: Any) -> Change:
    """A value of one of the parts that :func:`first_column` gives."""

    def change(fields: Struct) -> Struct:
        first_column(fields)[number][field_id] = value
        return fields

    return change


in_group, in_chunk, in_column = (partial(in_part, number) for number in range(3))


def in_file(field_id: int, value: Any) -> Change:
    return lambda fields: {**fields, field_id: value}


def with_pair(key: bytes, value: bytes) -> Change:
    def change(fields: Struct) -> Struct:
        _, (_, pairs) = fields.get(FileField.KEY_VALUES, (LIST, (STRUCT, [])))
        pair: Struct = {1: (BINARY, key), 2: (BINARY, value)}
        return {**fields, FileField.KEY_VALUES: (LIST, (STRUCT, [*pairs, pair]))}

    return change


def renamed(fields: Struct) -> Struct:
    fields[FileField.SCHEMA][1][1][1][4] = (BINARY, b"other")
    return fields


def with_other_field_id(fields: Struct) -> Struct:
    fields[FileField.SCHEMA][1][1][1][9] = (I32, 77)
    return fields


def required(fields: Struct) -> Struct:
    fields[FileField.SCHEMA][1][1][1][3] = (I32, 0)
    return fields


def without_a_column(fields: Struct) -> Struct:
    for group in fields[FileField.ROW_GROUPS][1][1]:
        del group[GroupField.COLUMNS][1][1][0]
    return fields


def without_sizes(fields: Struct) -> Struct:
    del first_column(fields)[2][ColumnField.TOTAL_COMPRESSED_SIZE]
    return fields


NEW = (I64, 5)
STRANGE: dict[str, Change] = {
    "another version": in_file(FileField.VERSION, (I32, 1)),
    "another name": renamed,
    "another field id": with_other_field_id,
    "another nullability": required,
    "another writer": in_file(FileField.CREATED_BY, (BINARY, b"parquet-mr version 1.0")),
    "other orders of columns": in_file(FileField.COLUMN_ORDERS, (LIST, (STRUCT, []))),
    "another calendar": with_pair(b"writer.date.proleptic", b"true"),
    "a key twice": lambda fields: with_pair(b"a", b"1")(with_pair(b"a", b"1")(fields)),
    "an encrypted column": in_file(FileField.ENCRYPTION, (STRUCT, {})),
    "a signed footer": in_file(FileField.SIGNING_KEY, (BINARY, b"k")),
    "what a file may have in the future": in_file(10, NEW),
    "what a row group may have": in_group(8, NEW),
    "what a chunk may have": in_chunk(10, NEW),
    "what a column may have": in_column(18, NEW),
    "a chunk of another file": in_chunk(ChunkField.FILE_PATH, (BINARY, b"/etc/passwd")),
    "an encrypted chunk": in_chunk(8, (STRUCT, {})),
    "an index page": in_column(ColumnField.INDEX_PAGE_OFFSET, NEW),
}
DAMAGED: dict[str, Change] = {
    "pages before the file": in_column(ColumnField.DATA_PAGE_OFFSET, (I64, 1)),
    "pages behind the file": in_column(ColumnField.DATA_PAGE_OFFSET, (I64, 1 << 60)),
    "pages of negative size": in_column(ColumnField.TOTAL_COMPRESSED_SIZE, (I64, -1)),
    "pages of another chunk": in_column(ColumnField.TOTAL_COMPRESSED_SIZE, (I64, 9000)),
    "no size": without_sizes,
    "a size that is none": in_column(ColumnField.TOTAL_COMPRESSED_SIZE, (BINARY, b"9")),
    "an index behind the file": in_chunk(ChunkField.OFFSET_INDEX_OFFSET, (I64, 1 << 60)),
    "a bloom filter that is none": in_column(ColumnField.BLOOM_FILTER_OFFSET, (I64, 5)),
    "a column less": without_a_column,
    "rows that nobody has": in_file(FileField.NUM_ROWS, (I64, 5)),
    "no row groups": in_file(FileField.ROW_GROUPS, (I64, 5)),
    "row groups that are none": in_file(FileField.ROW_GROUPS, (LIST, (I32, [1]))),
    "pairs that are none": in_file(FileField.KEY_VALUES, (LIST, (STRUCT, [{2: (BINARY, b"v")}]))),
    "a pair of numbers": in_file(FileField.KEY_VALUES, (LIST, (STRUCT, [{1: (I32, 1), 2: (I32, 2)}]))),
}


def refused(files: list[InputFile], output: Path, kind: type[IcewrightError], match: str | None = None) -> None:
    with pytest.raises(kind, match=match):
        stitch_group(job_of(files, output))


def with_change(folder: Path, change: Change, which: int = 1) -> list[InputFile]:
    files = written(folder)
    with_footer(files[which].path, change)
    return [input_of(Path(file.path), file.record_count) for file in files]


@each_case("change", STRANGE)
def test_files_that_differ_are_not_stitched(tmp_path: Path, change: str) -> None:
    refused(with_change(tmp_path, STRANGE[change]), tmp_path / "out.parquet", NotStitchable)
    assert not (tmp_path / "out.parquet").exists()


@each_case("change", DAMAGED)
def test_damaged_footers_are_said(tmp_path: Path, change: str) -> None:
    refused(with_change(tmp_path, DAMAGED[change], 0), tmp_path / "out.parquet", FileUnreadable)


def test_files_of_two_writers_are_not_stitched(tmp_path: Path) -> None:
    files = [write_one(tmp_path, rows(0)), write_one(tmp_path, rows(ROWS), by_arrow_rs)]
    refused(files, tmp_path / "out.parquet", NotStitchable)
    assert not (tmp_path / "out.parquet").exists()


def test_the_tables_schema_is_left_out_where_files_differ_in_it(tmp_path: Path) -> None:
    """Its documentation changed, say; the columns are the same."""
    files = []
    for number in range(3):
        file = write_one(tmp_path, rows(number * ROWS))
        with_footer(file.path, with_pair(b"iceberg.schema", b"new" if number == 1 else b"old"))
        with_footer(file.path, with_pair(b"delete-type", b"none"))
        files.append(input_of(Path(file.path), ROWS))
    output = stitch_group(job_of(files, tmp_path / "out.parquet")).outputs[0]
    assert key_values(footer_of(output.path)) == {b"delete-type": b"none"}
    same = stitch_group(job_of([files[0], files[2]], tmp_path / "same.parquet")).outputs[0]
    assert key_values(footer_of(same.path)) == {b"iceberg.schema": b"old", b"delete-type": b"none"}


def test_what_is_no_parquet_file_is_refused(tmp_path: Path) -> None:
    files = written(tmp_path)
    path = Path(files[1].path)
    data = path.read_bytes()
    for kind, content in (
        (UnsupportedFile, b"PARE" + data[4:]),
        (UnsupportedFile, data[:-4] + b"PARE"),
        (UnsupportedFile, b"ORC1" + data[4:]),
        (FileUnreadable, data[:-4] + b"none"),
        (FileUnreadable, data[: len(data) // 2]),
        (FileUnreadable, data[:-8] + b"\xff\xff\xff\x7fPAR1"),
        (FileUnreadable, data[:-8] + b"\x05\0\0\0PAR1"),
        (FileUnreadable, b"PAR1PAR1"),
        (UnsupportedFile, b""),
    ):
        path.write_bytes(content)
        refused([files[0], input_of(path, ROWS)], tmp_path / "out.parquet", kind)
    path.unlink()
    refused([*files], tmp_path / "out.parquet", FileUnreadable)
    assert not (tmp_path / "out.parquet").exists()


def test_files_that_are_not_those_of_the_plan_are_refused(tmp_path: Path) -> None:
    first, second, _ = written(tmp_path)
    output = tmp_path / "out.parquet"
    refused([first, dataclasses.replace(second, record_count=ROWS - 1)], output, FileChanged)
    refused([first, dataclasses.replace(second, size_bytes=second.size_bytes + 1)], output, FileChanged)
    refused([first, first], output, InvalidMessage)
    refused([], output, InvalidMessage)
    delete = DeleteFile("d", FileContent.POSITION_DELETES, FileFormat.PARQUET, Partition(0, "[]"), 9, 1, 1, 2)
    job = job_of([first, second], output)
    with pytest.raises(NotStitchable):
        stitch_group(dataclasses.replace(job, group=dataclasses.replace(job.group, delete_files=(delete,))))
    with pytest.raises(NotStitchable, match="ids by their place"):
        stitch_group(job_of([first, dataclasses.replace(second, first_row_id=0)], output))
    assert not output.exists()


def test_chunks_that_are_shorter_than_their_pages_are_not_stitched(tmp_path: Path) -> None:
    """As parquet-java 1.2.8 said them, and readers allow for: a copy would lack the end of the last page."""

    def without_dictionary_headers(fields: Struct) -> Struct:
        for group in fields[FileField.ROW_GROUPS][1][1]:
            column = group[GroupField.COLUMNS][1][1][1][ChunkField.META_DATA][1]
            at, (kind, size) = column[ColumnField.DICTIONARY_PAGE_OFFSET][1], column[ColumnField.TOTAL_COMPRESSED_SIZE]
            column[ColumnField.TOTAL_COMPRESSED_SIZE] = (kind, size - read_struct(data, at)[1] + at)
        return {**fields, FileField.CREATED_BY: (BINARY, b"parquet-mr version 1.2.8 (build 1)")}

    columns = {"a": pa.array(range(ROWS), pa.int64()), "b": pa.array([n * 7 % ROWS for n in range(ROWS)], pa.int64())}
    path = tmp_path / "old.parquet"
    pq.write_table(pa.table(columns), path, compression="none", use_dictionary=["b"], write_statistics=False)
    data = path.read_bytes()
    with_footer(path, without_dictionary_headers)
    assert pq.read_table(path).equals(pa.table(columns))
    refused([input_of(path, ROWS)], tmp_path / "out.parquet", NotStitchable, "not as long as its pages")


def test_a_chunk_without_its_last_page_is_not_stitched(tmp_path: Path) -> None:
    """Where its length ends, a page does; but there are values more."""
    path = tmp_path / "short.parquet"
    table = pa.table({"a": pa.array(range(ROWS), pa.int64())})
    pq.write_table(table, path, use_dictionary=False, max_rows_per_page=400, write_batch_size=100)
    data, fields = path.read_bytes(), footer_of(path).fields
    column = first_column(fields)[2]
    at = column[ColumnField.DATA_PAGE_OFFSET][1]
    header, end = read_struct(data, at)
    with_footer(path, in_column(ColumnField.TOTAL_COMPRESSED_SIZE, (I64, end - at + header[3][1])))
    refused([input_of(path, ROWS)], tmp_path / "out.parquet", NotStitchable, "400 values of 1000, and 0 bytes")


def test_an_output_that_is_there_stays(tmp_path: Path) -> None:
    output = tmp_path / "out.parquet"
    output.write_text("somebody's only copy")
    refused(written(tmp_path), output, OutputExists)
    assert output.read_text() == "somebody's only copy"


def test_a_disk_that_is_full_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    init = copy_module.Copy.__init__

    with Path("/dev/full").open("wb", buffering=0) as full:
        monkeypatch.setattr(copy_module.Copy, "__init__", lambda self, _, *more: init(self, full, *more))
        refused(written(tmp_path), tmp_path / "out.parquet", OutputUnwritable, "No space left")


def test_row_groups_without_rows_are_not_stitched(tmp_path: Path) -> None:
    file = write_one(tmp_path, rows(0).slice(0, 0))
    refused([file, *written(tmp_path)], tmp_path / "out.parquet", NotStitchable, "without rows")


def test_offset_indexes_that_lead_elsewhere_are_not_stitched(tmp_path: Path) -> None:
    """They would lead elsewhere in the copy as well."""
    files = written(tmp_path)
    chunks = footer_of(files[0].path).row_groups[0].chunks
    assert chunks[0].offset_index is not None
    change = in_chunk(
        ChunkField.OFFSET_INDEX_OFFSET, (I64, chunks[1].offset_index.start if chunks[1].offset_index else 0)
    )
    with_footer(files[0].path, change)
    files[0] = input_of(Path(files[0].path), ROWS)
    with pytest.raises((NotStitchable, FileUnreadable)):
        stitch_group(job_of(files, tmp_path / "out.parquet"))


def test_what_is_held_at_once_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, output = written(tmp_path), tmp_path / "out.parquet"
    lengths = sum(len(footer_of(file.path).tail) for file in files)
    with monkeypatch.context() as patch:
        patch.setattr(stitch_module, "FOOTER_BYTES_MAX", lengths - 1)
        refused(files, output, NotStitchable, "footers")
    with monkeypatch.context() as patch:
        patch.setattr(footer_module, "FOOTER_BYTES_MAX", 100)
        refused(files, output, NotStitchable, "too long")
    with monkeypatch.context() as patch:
        patch.setattr(stitch_module, "INDEX_BYTES_MAX", 100)
        refused(files, output, NotStitchable, "page indexes")
    with monkeypatch.context() as patch:
        patch.setattr(stitch_module, "ORDINAL_MAX", 8)
        refused(files, output, NotStitchable, "9 row groups")
    assert not output.exists()


def test_footers_longer_than_the_first_look_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = written(tmp_path)
    monkeypatch.setattr(footer_module, "TAIL_BYTES", 50)
    assert stitch_group(job_of(files, tmp_path / "out.parquet")).receipt.records == 3 * ROWS
