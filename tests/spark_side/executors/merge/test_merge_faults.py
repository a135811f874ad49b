"""The proof must catch whatever a writer, a reader or a disk may do to the rows: here they do it on purpose."""

from __future__ import annotations

import dataclasses
import errno
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pytest

from icewright.core.errors import OutOfMemory
from icewright.model.actions.actions import InputFile
from icewright.model.iceberg.writer_settings import WriterSettings
from icewright_spark.executors.merge import merge as merge_module
from icewright_spark.executors.merge.merge import MergeJob, merge_group
from icewright_spark.executors.merge.read import Decoder, decode_pyarrow, open_footer
from icewright_spark.executors.merge.write import ARROW_RS, PYARROW, Layout, Writer
from icewright_spark.parquet.errors import (
    DiskFull,
    FileChanged,
    FileUnreadable,
    ProofFailed,
    UnsupportedFile,
    reading,
    unwritable,
)
from tests.builders.merge_tables import arrow_table, column, job_of, list_of, map_of, struct_of, write_input
from tests.cases import each_case

FIELDS = [
    column(1, "id", "long", required=True),
    column(2, "n", "int"),
    column(3, "f", "double"),
    column(4, "s", "string"),
    column(5, "l", list_of(6, "float")),
    column(7, "st", struct_of(column(8, "x", "int"), column(9, "t", "string"))),
]
MAP = column(10, "m", map_of(11, "string", 12, "int"))
NAN = struct.unpack("<d", struct.pack("<Q", 0x7FF8_0000_0000_0001))[0]
OTHER_NAN = struct.unpack("<d", struct.pack("<Q", 0x7FF8_0000_0000_0002))[0]

ROWS: dict[str, list[Any]] = {
    "id": [0, 1, 2, 3, 4],
    "n": [0, None, 7, 8, 9],
    "f": [0.0, NAN, 1.0, None, 2.0],
    "s": ["ab", "c", "", None, "tail"],
    "l": [[1.0, 2.0], [3.0], None, [], [0.0, None]],
    "st": [{"x": 1, "t": "a"}, None, {"x": None, "t": None}, {"x": 2, "t": ""}, {"x": 3, "t": None}],
}
MAP_ROWS = [[("k", 1)], None, [], [("k", None), ("l", 2)], [("", 0)]]

Fault = Callable[[Any], Any]


def replaced(name: str, values: list[Any]) -> Fault:
    """The first rows of a column become ``values``."""

    def fault(table: Any) -> Any:
        index = table.schema.get_field_index(name)
        kind = table.schema.field(index).type
        old = table.column(index).combine_chunks()
        new = pa.concat_arrays([pa.array(values, kind), old.slice(len(values))])
        return table.set_column(index, table.schema.field(index), new)

    return fault


def swapped(table: Any) -> Any:
    return table.take(pa.array([1, 0, *range(2, table.num_rows)]))


def flipped_bit(table: Any) -> Any:
    values = table.column("id").combine_chunks()
    data = bytearray(values.buffers()[1])
    data[-8] ^= 1
    changed = pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(bytes(data))])
    return table.set_column(0, table.schema.field(0), changed)


FAULTS: dict[str, Fault] = {
    "drop the last row": lambda table: table.slice(0, table.num_rows - 1),
    "drop the first row": lambda table: table.slice(1),
    "drop all rows": lambda table: table.slice(0, 0),
    "duplicate a row": lambda table: pa.concat_tables([table, table.slice(0, 1)]),
    "replace a row by another": lambda table: pa.concat_tables([table.slice(0, 1), table.slice(0, 1), table.slice(2)]),
    "swap rows": swapped,
    "swap two values in a column": replaced("s", ["c", "ab"]),
    "flip a bit": flipped_bit,
    "0.0 to -0.0": replaced("f", [-0.0]),
    "another NaN": replaced("f", [0.0, OTHER_NAN]),
    "NaN to NULL": replaced("f", [0.0, None]),
    "NULL to NaN": replaced("f", [0.0, NAN, 1.0, NAN]),
    "NULL to 0": replaced("n", [0, 0]),
    "0 to NULL": replaced("n", [None]),
    "NULL to ''": replaced("s", ["ab", "c", "", ""]),
    "'' to NULL": replaced("s", ["ab", "c", None]),
    "string boundary": replaced("s", ["a", "bc"]),
    "list boundary": replaced("l", [[1.0], [2.0, 3.0]]),
    "NULL list to []": replaced("l", [[1.0, 2.0], [3.0], []]),
    "[] to NULL list": replaced("l", [[1.0, 2.0], [3.0], None, None]),
    "-0.0 in a list": replaced("l", [[1.0, 2.0], [3.0], None, [], [-0.0, None]]),
    "NULL to 0 in a list": replaced("l", [[1.0, 2.0], [3.0], None, [], [0.0, 0.0]]),
    "NULL struct to struct of NULL": replaced("st", [{"x": 1, "t": "a"}, {"x": None, "t": None}]),
    "struct of NULL to NULL struct": replaced("st", [{"x": 1, "t": "a"}, None, None]),
    "'' to NULL in a struct": replaced("st", [*ROWS["st"][:3], {"x": 2, "t": None}]),
}
MAP_FAULTS: dict[str, Fault] = {
    "NULL map to empty": replaced("m", [[("k", 1)], []]),
    "map value": replaced("m", [[("k", 2)]]),
    "map key": replaced("m", [[("K", 1)]]),
    "map NULL value to 0": replaced("m", [*MAP_ROWS[:3], [("k", 0), ("l", 2)]]),
    "map order": replaced("m", [*MAP_ROWS[:3], [("l", 2), ("k", None)]]),
}


@dataclasses.dataclass(frozen=True)
class FaultyWriter:
    """A writer that is handed the right rows and does something to them."""

    inner: Writer
    fault: Fault

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def read_back(self) -> Decoder:
        return self.inner.read_back

    def write(self, batches: Iterable[Any], file: BinaryIO, layout: Layout) -> None:
        table = self.fault(pa.Table.from_batches(list(batches), schema=layout.schema))
        self.inner.write(table.to_batches(), file, layout)


def job_in(directory: Path, *, maps: bool = False, **more: Any) -> MergeJob:
    fields, rows = ([*FIELDS, MAP], {**ROWS, "m": MAP_ROWS}) if maps else (FIELDS, ROWS)
    table = arrow_table(fields, rows)
    files = [write_input(directory, table.slice(0, 3)), write_input(directory, table.slice(3))]
    return job_of(fields, files, directory / "out.parquet", **more)


@each_case("writer", [ARROW_RS, PYARROW], ids=lambda writer: writer.name)
@each_case("name", FAULTS)
def test_w1_a_fault_between_reading_and_the_file_is_caught(name: str, writer: Writer, tmp_path: Path) -> None:
    job = job_in(tmp_path)
    with pytest.raises(ProofFailed, match=r"read back differs; rows 5 -> "):
        merge_group(job, writer=FaultyWriter(writer, FAULTS[name]))
    assert Path(job.output_paths[0]).exists()  # evidence is never deleted


@each_case("name", MAP_FAULTS)
def test_a_fault_in_a_map_is_caught_and_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(ProofFailed, match=r"columns m: [0-9a-f]{32} -> [0-9a-f]{32}$"):
        merge_group(job_in(tmp_path, maps=True), writer=FaultyWriter(PYARROW, MAP_FAULTS[name]))


def test_without_a_fault_the_same_writers_pass(tmp_path: Path) -> None:
    for writer in (ARROW_RS, PYARROW):
        job = dataclasses.replace(job_in(tmp_path), output_paths=(str(tmp_path / f"{writer.name}.parquet"),))
        merge_group(job, writer=FaultyWriter(writer, lambda table: table))


def test_a_writer_that_stops_listening_is_caught(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What it did not take is in neither digest."""
    monkeypatch.setattr("icewright_spark.executors.merge.read.BATCH_ROWS_MAX", 3)

    class Impatient(FaultyWriter):
        def write(self, batches: Iterable[Any], file: BinaryIO, layout: Layout) -> None:
            self.inner.write([next(iter(batches))], file, layout)

    with pytest.raises(ProofFailed, match="3 rows read, 5 planned"):
        merge_group(job_in(tmp_path), writer=Impatient(ARROW_RS, lambda table: table))


def truncated_by_half(file: BinaryIO) -> None:
    file.truncate(os.fstat(file.fileno()).st_size // 2)


def truncated_by_a_byte(file: BinaryIO) -> None:
    file.truncate(os.fstat(file.fileno()).st_size - 1)


def emptied(file: BinaryIO) -> None:
    file.truncate(0)


def changed_value(file: BinaryIO) -> None:
    value = b"\4\0\0\0tail"  # not a copy of it in statistics
    content = file.read()
    assert content.count(value) == 1
    file.seek(content.index(value))
    file.write(b"\4\0\0\0tall")


def changed_footer(file: BinaryIO) -> None:
    file.seek(-40, os.SEEK_END)
    file.write(b"\xff" * 20)


@each_case("writer", [ARROW_RS, PYARROW], ids=lambda writer: writer.name)
@each_case(
    "damage", [truncated_by_half, truncated_by_a_byte, emptied, changed_value, changed_footer], ids=lambda d: d.__name__
)
def test_a_damaged_output_is_caught(
    damage: Callable[[BinaryIO], None], writer: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk changes what was written."""
    job = job_in(tmp_path, settings=WriterSettings(codec="uncompressed", compression_level=None))
    output = Path(job.output_paths[0])

    def change() -> None:
        with output.open("r+b") as file:
            damage(file)

    monkeypatch.setattr(merge_module, "output_is_written", change)
    with pytest.raises(ProofFailed):
        merge_group(job, writer=writer)
    assert output.exists()


def test_a_schema_other_than_the_tables_is_caught(tmp_path: Path) -> None:
    """Digests see values only; a required column written as optional has the same."""

    class Looser(FaultyWriter):
        def write(self, batches: Iterable[Any], file: BinaryIO, layout: Layout) -> None:
            schema = layout.schema.set(0, layout.schema.field(0).with_nullable(True))
            self.inner.write(
                (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in batches),
                file,
                dataclasses.replace(layout, schema=schema),
            )

    with pytest.raises(ProofFailed, match="not written with the table's schema"):
        merge_group(job_in(tmp_path), writer=Looser(ARROW_RS, lambda table: table))


def test_a_wrong_decode_of_the_inputs_is_caught(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither digest of the rows could see it: both are taken after the decoding."""

    def wrong(path: str, batch_rows: int) -> tuple[Any, Iterator[Any]]:
        schema, batches = decode_pyarrow(path, batch_rows)
        return schema, (batch.take(pa.array(range(batch.num_rows)[::-1])) for batch in batches)

    monkeypatch.setattr(merge_module, "decode_pyarrow", wrong)
    with pytest.raises(ProofFailed, match=r"in-\d+.parquet decoded by arrow-rs differs"):
        merge_group(job_in(tmp_path))


def test_w1_a_decoder_that_loses_rows_is_caught(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def short(path: str, batch_rows: int) -> tuple[Any, Iterator[Any]]:
        schema, batches = decode_pyarrow(path, batch_rows)
        return schema, (batch.slice(1) for batch in batches)

    monkeypatch.setattr(merge_module, "decode_pyarrow", short)
    with pytest.raises(ProofFailed, match=r"2 rows were decoded of .*, which has 3"):
        merge_group(job_in(tmp_path))


@pytest.mark.parametrize(("changed", "said"), [("size_bytes", "bytes"), ("record_count", "rows")])
def test_inputs_other_than_planned_are_caught_before_anything_is_written(
    changed: str, said: str, tmp_path: Path
) -> None:
    job = job_in(tmp_path)
    first, second = job.group.files
    other = dataclasses.replace(second, **{changed: getattr(second, changed) + 1})
    job = dataclasses.replace(job, group=dataclasses.replace(job.group, files=(first, other)))
    with pytest.raises(FileChanged, match=f"{said}, its manifest says"):
        merge_group(job)
    assert not Path(job.output_paths[0]).exists()


@pytest.mark.parametrize("planned_bytes", [0, 100])
def test_an_input_that_is_a_pipe_is_refused_rather_than_waited_for(planned_bytes: int, tmp_path: Path) -> None:
    """A pipe has 0 bytes; nobody writes to this one."""
    job = job_in(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    pipe = InputFile(str(tmp_path / "pipe"), planned_bytes, 0, 1)
    job = dataclasses.replace(job, group=dataclasses.replace(job.group, files=(*job.group.files, pipe)))
    with pytest.raises(UnsupportedFile, match="no regular file"):
        merge_group(job)
    with pytest.raises(UnsupportedFile, match="no regular file"):
        open_footer(pipe.path)
    assert not Path(job.output_paths[0]).exists()


def test_a_full_disk_is_said_and_nothing_is_left_of_the_output(tmp_path: Path) -> None:
    class Full(FaultyWriter):
        def write(self, batches: Iterable[Any], file: BinaryIO, layout: Layout) -> None:
            assert file.writable()
            with Path("/dev/full").open("wb", buffering=0) as full:
                self.inner.write(batches, full, layout)

    for writer in (ARROW_RS, PYARROW):
        job = dataclasses.replace(job_in(tmp_path), output_paths=(str(tmp_path / writer.name),))
        with pytest.raises(DiskFull, match="No space left"):
            merge_group(job, writer=Full(writer, lambda table: table))
        assert not Path(job.output_paths[0]).exists()


@each_case(
    "error", [MemoryError(), pa.ArrowMemoryError("malloc of size 9 failed"), OSError(errno.ENOMEM, "Cannot allocate")]
)
def test_memory_that_ran_out_is_no_fault_of_a_file(error: Exception) -> None:
    with pytest.raises(OutOfMemory, match="the file"), reading("the file"):
        raise error
    assert isinstance(unwritable("the output", error), OutOfMemory)
    with pytest.raises(FileUnreadable), reading("the file"):
        raise OSError(errno.EIO, "Input/output error")
