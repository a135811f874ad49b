"""Sorted files are merged by their key: the right order of every type, nothing lost, and what is not sorted refused."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
import random
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.core.errors import InvalidMessage, NotSorted
from icewright.model.actions.actions import InputFile
from icewright.model.iceberg.layouts import Curve
from icewright.model.iceberg.layouts import Layout as RowOrder
from icewright.model.iceberg.tables import SortField
from icewright_spark.executors.merge import by_key
from icewright_spark.executors.merge import read as read_module
from icewright_spark.executors.merge.by_key import Key, SortedFile, merged
from icewright_spark.executors.merge.deletes import without
from icewright_spark.executors.merge.merge import MergeJob, merge_group
from icewright_spark.executors.merge.write import ARROW_RS, PYARROW, Writer
from icewright_spark.parquet.errors import FileChanged, ProofFailed, UnsupportedColumn
from icewright_spark.parquet.schema import arrow_schema
from tests.builders.delete_files import deletion_vector, with_deletes
from tests.builders.merge_tables import arrow_table, column, job_of, struct_of, write_input
from tests.cases import each_case
from tests.spark_side.executors.merge.test_merge_faults import FaultyWriter

FIELDS = [column(1, "k", "int"), column(2, "n", "long", required=True), column(3, "s", "string")]
NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0001))[0]


def sort(*fields: SortField) -> RowOrder:
    return RowOrder(Curve.SORT, fields)


def ascending(source_id: int) -> SortField:
    return SortField(source_id, "identity", "asc", "nulls-first")


BY_K = sort(ascending(1))


def rows_of(job: MergeJob) -> list[dict[str, Any]]:
    result = merge_group(job)
    return [row for output in result.outputs for row in pq.read_table(output.path).to_pylist()]


def job_by(
    directory: Path, fields: Sequence[dict[str, Any]], order: RowOrder, parts: Sequence[Any], outputs: int = 1
) -> MergeJob:
    job = job_of(fields, [write_input(directory, part) for part in parts], directory / "out")
    paths = tuple(str(directory / f"out-{number}.parquet") for number in range(outputs))
    return dataclasses.replace(job, sorted_by=order, output_paths=paths)


def numbered_job(directory: Path, keys: Sequence[Sequence[int | None]], outputs: int = 1) -> MergeJob:
    """Files with these keys; ``n`` numbers the rows as the files have them."""
    start, parts = 0, []
    for part in keys:
        rows = range(start, start + len(part))
        parts.append(arrow_table(FIELDS, {"k": list(part), "n": list(rows), "s": [f"row {row}" for row in rows]}))
        start += len(part)
    return job_by(directory, FIELDS, BY_K, parts, outputs)


UTC = dt.UTC
ORDERED: dict[str, list[Any]] = {
    "boolean": [False, True],
    "int": [-(2**31), -1, 0, 1, 2**31 - 1],
    "long": [-(2**63), -(2**53) - 1, -(2**53), 0, 2**63 - 2, 2**63 - 1],
    "float": [-math.inf, -1.5, 0.0, 1e-40, 1.5, math.inf, math.nan],
    "double": [-math.inf, -1.5, -5e-324, 0.0, 5e-324, math.inf, math.nan],
    "decimal(9,2)": [Decimal("-9999999.99"), Decimal("-0.01"), Decimal(0), Decimal("9999999.99")],
    "decimal(38,6)": [Decimal(-(10**31)), Decimal("-0.000001"), Decimal(0), Decimal("0.000001"), Decimal(10**31)],
    "date": [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(9999, 12, 31)],
    "time": [dt.time(0), dt.time(0, 0, 0, 1), dt.time(23, 59, 59, 999_999)],
    "timestamp": [dt.datetime(1, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime(2200, 1, 1)],  # noqa: DTZ001 - the type has no zone
    "timestamptz": [dt.datetime(1, 1, 1, tzinfo=UTC), dt.datetime(1970, 1, 1, tzinfo=UTC)],
    "string": ["", "\0", "A", "a", "a\0", "aa", "z", "é", "\uffff", "\U0001f600"],
    "binary": [b"", b"\0", b"\x7f", b"\x80", b"\x80\0", b"\xff\xff"],
    "fixed[2]": [b"\0\0", b"\0\xff", b"\x7f\xff", b"\x80\0", b"\xff\xff"],
    "uuid": [bytes(16), b"\x7f" * 16, b"\x80" * 16, b"\xff" * 16],
}
"""Values of each type in Iceberg's order."""


@each_case("null_order", ["nulls-first", "nulls-last"])
@each_case("direction", ["asc", "desc"])
@each_case("kind", ORDERED)
def test_every_type_has_its_order(kind: str, direction: str, null_order: str, tmp_path: Path) -> None:
    fields = [column(1, "k", kind), column(2, "n", "long")]
    values = ORDERED[kind] if direction == "asc" else ORDERED[kind][::-1]
    ordered = [None, *values] if null_order == "nulls-first" else [*values, None]
    ranks, chance = range(2 * len(ordered)), random.Random(kind)  # noqa: S311 - a deal, no secret
    dealt: list[list[int]] = [[], [], []]
    for rank in ranks:  # each value twice
        dealt[chance.randrange(3)].append(rank)
    parts = [
        arrow_table(fields, {"k": [ordered[rank // 2] for rank in part], "n": [rank // 2 for rank in part]})
        for part in dealt
    ]
    order = sort(SortField(1, "identity", direction, null_order))
    result = merge_group(job_by(tmp_path, fields, order, parts))
    found = pq.read_table(result.outputs[0].path)
    assert found["n"].to_pylist() == [rank // 2 for rank in ranks]


def test_zeros_are_equal_and_so_are_nans_and_neither_is_changed(tmp_path: Path) -> None:
    fields = [column(1, "k", "double"), column(2, "n", "long")]
    parts = [
        arrow_table(fields, {"k": [0.0, -0.0, math.nan, NAN], "n": [0, 1, 2, 3]}),
        arrow_table(fields, {"k": [-0.0, 0.0, NAN, math.nan], "n": [4, 5, 6, 7]}),
    ]
    table = pq.read_table(merge_group(job_by(tmp_path, fields, BY_K, parts)).outputs[0].path)
    assert table["n"].to_pylist() == [0, 1, 4, 5, 2, 3, 6, 7]
    bits = table["k"].combine_chunks().view(pa.int64()).to_pylist()
    plain, odd = (struct.unpack("<q", struct.pack("<d", value))[0] for value in (math.nan, NAN))
    assert bits == [0, -(2**63), -(2**63), 0, plain, odd, odd, plain]


def test_several_columns_one_of_them_in_a_struct(tmp_path: Path) -> None:
    fields = [column(1, "a", "string"), column(2, "st", struct_of(column(3, "x", "int"))), column(4, "n", "int")]
    order = sort(SortField(1, "identity", "desc", "nulls-last"), SortField(3, "identity", "asc", "nulls-first"))
    rows = [("z", None), ("z", {"x": None}), ("z", {"x": 1}), ("b", {"x": -1}), ("b", {"x": 5}), (None, {"x": 0})]
    parts = [
        arrow_table(
            fields,
            {"a": [rows[i][0] for i in part], "st": [rows[i][1] for i in part], "n": list(part)},
        )
        for part in ([0, 2, 4], [1, 3, 5])
    ]
    assert [row["n"] for row in rows_of(job_by(tmp_path, fields, order, parts))] == list(range(6))


KEYS = st.lists(st.lists(st.none() | st.integers(0, 12), max_size=30), min_size=1, max_size=6)


def ranked(key: int | None) -> tuple[int, int]:
    return (0, 0) if key is None else (1, key)


@given(KEYS, st.integers(1, 7))
def test_merging_is_a_stable_sort(keys: list[list[int | None]], batch_rows: int) -> None:
    key, schema = Key(FIELDS[:2], BY_K), arrow_schema(FIELDS[:2])
    files, everything = [], []
    for number, part in enumerate(keys):
        ordered = sorted(part, key=ranked)
        rows = [(value, 100 * number + position) for position, value in enumerate(ordered)]
        everything += rows
        batch = pa.RecordBatch.from_pydict({"k": [row[0] for row in rows], "n": [row[1] for row in rows]}, schema)
        batches = [batch.slice(start, batch_rows) for start in range(0, len(rows), batch_rows)]
        first = key.values(batch.slice(0, 1)) if rows or number % 2 else None  # a file without rows may give a batch
        files.append(SortedFile(number, f"file {number}", first, batches, key))
    found = [row for batch in merged(files, key) for row in zip(*batch.to_pydict().values(), strict=True)]
    assert found == sorted(everything, key=lambda row: ranked(row[0]))


def test_outputs_are_of_equal_rows_and_follow_each_other(tmp_path: Path) -> None:
    job = numbered_job(tmp_path, [range(0, 100, 2), range(1, 101, 2), range(1000, 1001)], outputs=4)
    result = merge_group(job)
    assert [output.record_count for output in result.outputs] == [25, 25, 25, 26]
    found = [pq.read_table(output.path)["k"].to_pylist() for output in result.outputs]
    assert [key for part in found for key in part] == [*range(100), 1000]
    assert [output.metrics.lower_bounds[1] for output in result.outputs] == [
        struct.pack("<i", part[0]) for part in found
    ]
    assert result.figures.output_paths == job.output_paths
    assert result.figures.output_bytes == sum(Path(path).stat().st_size for path in job.output_paths)
    assert result.receipt.input_digest == result.receipt.output_digest
    assert "multiset" in result.receipt.method
    assert result.receipt.records == result.figures.records == 101


@each_case("rows", [0, 1, 3])
def test_no_output_is_empty_while_there_are_rows(rows: int, tmp_path: Path) -> None:
    result = merge_group(numbered_job(tmp_path, [range(rows), []], outputs=4))
    assert [output.record_count for output in result.outputs] == ([1] * rows or [0])


def test_deleted_rows_are_gone_and_files_need_not_begin_with_a_live_one(tmp_path: Path) -> None:
    job = numbered_job(tmp_path, [[1, 3, 5, 7], [1, 2, 8, None][:3]])
    first, second = job.group.files
    group = with_deletes(
        job.group,
        [
            (deletion_vector(tmp_path, first.path, [0, 2]), [first]),
            (deletion_vector(tmp_path, second.path, [0]), [second]),
        ],
    )
    job = dataclasses.replace(job, group=group)
    assert [row["k"] for row in rows_of(job)] == [2, 3, 7, 8]


@each_case("keys", [[2, 1], [1, 3, 2, 4], [None, 1, None]])
def test_a_file_that_is_not_sorted_is_refused(keys: list[int | None], tmp_path: Path) -> None:
    with pytest.raises(NotSorted, match="not in the order"):
        merge_group(numbered_job(tmp_path, [[1, 2, 3], keys]))


def test_disorder_between_two_batches_is_seen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(read_module, "BATCH_ROWS_MAX", 2)
    monkeypatch.setattr(read_module, "BATCH_ROWS_MIN", 2)
    with pytest.raises(NotSorted, match="not in the order"):
        merge_group(numbered_job(tmp_path, [[1, 5, 4, 6]]))


def test_a_least_row_behind_a_deleted_first_one_is_seen(tmp_path: Path) -> None:
    """The file would be opened too late: what is left of it is in order, but begins before its first row."""
    job = numbered_job(tmp_path, [[1, 2, 3], [9, 1, 2]])
    second = job.group.files[1]
    group = with_deletes(job.group, [(deletion_vector(tmp_path, second.path, [0]), [second])])
    with pytest.raises(NotSorted, match="not its least"):
        merge_group(dataclasses.replace(job, group=group))


def test_only_what_overlaps_is_open(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(by_key, "OPEN_FILES_MAX", 2)
    runs = [range(start, start + 10) for start in range(0, 200, 10)]
    overlapping = [*runs, range(200)]
    assert [row["k"] for row in rows_of(numbered_job(tmp_path, overlapping))] == sorted([*range(200)] * 2)
    job = numbered_job(tmp_path, [range(5), range(5), range(2, 5)])
    with pytest.raises(NotSorted, match="more than 2 files overlap"):
        merge_group(dataclasses.replace(job, output_paths=(str(tmp_path / "other"),)))


def test_held_rows_are_bounded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """However long the files are, two batches of each are held."""
    monkeypatch.setattr(read_module, "BATCH_ROWS_MAX", 64)
    monkeypatch.setattr(read_module, "BATCH_ROWS_MIN", 64)
    steps: list[int] = []
    plain = by_key._in_order

    def watched(parts: Sequence[tuple[Any, Any]], key: Key) -> Any:
        steps.append(sum(part[0].num_rows for part in parts))
        return plain(parts, key)

    monkeypatch.setattr(by_key, "_in_order", watched)
    assert len(rows_of(numbered_job(tmp_path, [range(start, 4000, 4) for start in range(4)]))) == 4000
    assert max(steps) <= 4 * 2 * 64


@each_case(
    ("order", "said"),
    [
        (RowOrder(Curve.HILBERT, (ascending(1), ascending(2))), "only by columns as they are"),
        (sort(SortField(1, "bucket[4]", "asc", "nulls-first")), "only by columns as they are"),
        (sort(ascending(99)), "no column 99"),
    ],
)
def test_layouts_that_no_files_can_be_merged_by(order: RowOrder, said: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedColumn, match=said):
        merge_group(dataclasses.replace(numbered_job(tmp_path, [[1], [2]]), sorted_by=order))


def test_several_outputs_want_an_order(tmp_path: Path) -> None:
    with pytest.raises(InvalidMessage, match="cannot become 2 files"):
        merge_group(dataclasses.replace(numbered_job(tmp_path, [[1], [2]], outputs=2), sorted_by=None))


def test_a_column_that_a_file_lacks_is_null(tmp_path: Path) -> None:
    without = arrow_table(FIELDS[1:], {"n": [7, 8], "s": ["x", "y"]})
    whole = arrow_table(FIELDS, {"k": [None, 1], "n": [1, 2], "s": ["a", "b"]})
    assert [row["n"] for row in rows_of(job_by(tmp_path, FIELDS, BY_K, [whole, without]))] == [1, 7, 8, 2]


def test_dots_in_names_mislead_nobody(tmp_path: Path) -> None:
    fields = [column(1, "a.b", "int"), column(2, "n", "long")]
    schema = pa.schema(
        [
            pa.field("a.b", pa.int32(), metadata={"PARQUET:field_id": "1"}),
            pa.field("n", pa.int64(), metadata={"PARQUET:field_id": "2"}),
        ]
    )
    parts = [
        pa.table([pa.array(keys, pa.int32()), pa.array(keys, pa.int64())], schema=schema) for keys in ([1, 3], [2, 4])
    ]
    assert [row["n"] for row in rows_of(job_by(tmp_path, fields, BY_K, parts))] == [1, 2, 3, 4]


Fault = Callable[[Any], Any]


def replaced(name: str, values: list[Any]) -> Fault:
    def fault(table: Any) -> Any:
        index = table.schema.get_field_index(name)
        new = pa.array([*values, *table.column(index).to_pylist()[len(values) :]], table.schema.field(index).type)
        return table.set_column(index, table.schema.field(index), new)

    return fault


FAULT_FIELDS = [column(1, "k", "double"), column(2, "n", "long", required=True), column(3, "s", "string")]
FAULT_ROWS: dict[str, list[Any]] = {"k": [0.0, 1.0, 2.0, 3.0], "n": [1, 2, 3, 4], "s": ["a", "b", "", None]}

FAULTS: dict[str, Fault] = {
    "drop a row": lambda table: table.slice(1),
    "duplicate a row": lambda table: pa.concat_tables([table.slice(0, 1), table]),
    "a row for another": lambda table: pa.concat_tables([table.slice(0, 1), table.slice(0, 1), table.slice(2)]),
    "swap rows": lambda table: table.take([1, 0, 2, 3]),
    "swap two values": replaced("s", ["b", "a"]),
    "flip a zero": replaced("k", [-0.0]),
    "NULL to ''": replaced("s", ["a", "b", "", ""]),
    "'' to NULL": replaced("s", ["a", "b", None, None]),
    "another number": replaced("n", [2]),
}


def faulty_job(directory: Path) -> MergeJob:
    whole = arrow_table(FAULT_FIELDS, FAULT_ROWS)
    return job_by(directory, FAULT_FIELDS, BY_K, [whole.take([0, 3]), whole.take([1, 2])])


@each_case("writer", [ARROW_RS, PYARROW], ids=lambda writer: writer.name)
@each_case("name", FAULTS)
def test_a_fault_between_merging_and_the_file_is_caught(name: str, writer: Writer, tmp_path: Path) -> None:
    job = faulty_job(tmp_path)
    with pytest.raises(ProofFailed, match="read back"):
        merge_group(job, writer=FaultyWriter(writer, FAULTS[name]))
    assert Path(job.output_paths[0]).exists()


@each_case("name", [name for name in FAULTS if name != "swap rows"])
def test_a_fault_in_the_merging_itself_is_caught(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What is taken over the inputs is taken before they are merged."""
    plain = merged

    def faulty(files: Sequence[SortedFile], key: Key) -> Iterator[Any]:
        table = FAULTS[name](pa.Table.from_batches(list(plain(files, key))))
        return iter(table.combine_chunks().to_batches())

    monkeypatch.setattr("icewright_spark.executors.merge.merge.merged", faulty)
    with pytest.raises(ProofFailed):
        merge_group(faulty_job(tmp_path))


def test_files_merged_in_a_wrong_order_are_caught(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """All rows are there, so that only the look at the order tells; by code that the merging does not use."""
    monkeypatch.setattr(by_key, "_in_order", lambda parts, _key: pa.concat_batches([part[0] for part in parts]))
    with pytest.raises(ProofFailed, match="not in the order of"):
        merge_group(numbered_job(tmp_path, [[1, 5], [2, 6]]))


def test_rows_that_go_to_the_wrong_file_are_caught(tmp_path: Path) -> None:
    """The rows of all outputs together are right, and in order."""
    held: list[Any] = []

    class Late(FaultyWriter):
        def write(self, batches: Iterable[Any], file: BinaryIO, layout: Any) -> None:
            rows = held + list(batches)
            held[:] = rows[-1:] if not held else []
            self.inner.write(rows if not held else rows[:-1], file, layout)

    job = numbered_job(tmp_path, [range(0, 8, 2), range(1, 8, 2)], outputs=2)
    with pytest.raises(ProofFailed, match="0 rows, 4 were written"):
        merge_group(job, writer=Late(ARROW_RS, lambda table: table))


def test_a_wrong_delete_mask_is_caught(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    job = numbered_job(tmp_path, [[1, 2, 3], [1, 2]])
    first = job.group.files[0]
    group = with_deletes(job.group, [(deletion_vector(tmp_path, first.path, [1]), [first])])
    plain = without

    def shifted(batch: Any, start: int, positions: Any) -> Any:
        return plain(batch, start, None if positions is None else type(positions)([0]))

    monkeypatch.setattr("icewright_spark.executors.merge.merge.without", shifted)
    with pytest.raises(ProofFailed, match="decoded by arrow-rs differs"):
        merge_group(dataclasses.replace(job, group=group))


def test_row_lineage_travels_with_its_row(tmp_path: Path) -> None:
    job = numbered_job(tmp_path, [[1, 3], [2, 4]])
    files = [
        dataclasses.replace(file, first_row_id=100 * number, data_sequence_number=5 + number)
        for number, file in enumerate(job.group.files)
    ]
    job = dataclasses.replace(job, group=dataclasses.replace(job.group, files=tuple(files)), row_lineage=True)
    found = [(row["_row_id"], row["_last_updated_sequence_number"]) for row in rows_of(job)]
    assert found == [(0, 5), (100, 6), (1, 5), (101, 6)]


def test_an_input_is_what_was_planned(tmp_path: Path) -> None:
    job = numbered_job(tmp_path, [[1], [2]])
    first, second = job.group.files
    other: InputFile = dataclasses.replace(second, record_count=2)
    with pytest.raises(FileChanged, match="rows, its manifest says"):
        merge_group(dataclasses.replace(job, group=dataclasses.replace(job.group, files=(first, other))))
