"""Readers skip by what a file states of its rows: where that is wrong, here on purpose, no commit follows."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO

import arro3.io
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icewright.model.iceberg.writer_settings import WriterSettings
from icewright_spark.executors.merge import merge as merge_module
from icewright_spark.executors.merge.merge import MergeJob, merge_group
from icewright_spark.executors.merge.read import Decoder
from icewright_spark.executors.merge.write import ARROW_RS, PYARROW, Layout, Writer
from icewright_spark.parquet.errors import ProofFailed
from icewright_spark.parquet.float_footer import FloatFooter
from icewright_spark.parquet.schema import arrow_schema
from icewright_spark.parquet.statistics.check import check_of
from icewright_spark.parquet.storage import LOCAL
from icewright_spark.parquet.thrift import BINARY, I64, TRUE
from tests.arrow_values import KIND_NAMES, VALUES
from tests.builders.merge_tables import arrow_table, column, job_of, list_of, map_of, struct_of, write_input
from tests.builders.stitch_files import footer_of, with_footer
from tests.cases import each_case
from tests.wrong_footers import Damage, moved_page, of_index, other_order, put, stated, without_a_bit

FIELDS = [
    column(1, "id", "long", required=True),
    column(2, "n", "int"),
    column(3, "f", "double"),
    column(4, "s", "string"),
    column(5, "d", "decimal(25, 2)"),
    column(6, "x", "fixed[3]"),
    column(7, "st", struct_of(column(8, "day", "date"))),
]
LISTED = column(9, "l", list_of(10, "float"))
ROWS = 6000
WRITERS = each_case("writer", [ARROW_RS, PYARROW], ids=lambda writer: writer.name)


def table_of(fields: list[Any]) -> Any:
    numbers = range(ROWS)
    rows: dict[str, list[Any]] = {
        "id": [n * 7919 % 10_007 for n in numbers],
        "n": [None if n % 3 else n for n in numbers],
        "f": [(0.0 if n % 8 else -0.0, float("nan"), None, n / 3)[n % 4] for n in numbers],
        "s": [None if n % 7 == 0 else f"name {n}" for n in numbers],
        "d": [Decimal(n - 3000) / 100 for n in numbers],
        "x": [n.to_bytes(3, "big") for n in numbers],
        "st": [None if n % 5 == 0 else {"day": None if n % 2 else n} for n in numbers],
        "l": [None if n % 5 == 0 else [float(n), None] for n in numbers],
    }
    return arrow_table(fields, {field["name"]: rows[field["name"]] for field in fields})


def job_in(folder: Path, fields: list[Any] = FIELDS) -> MergeJob:
    """A merge into two row groups, of three pages at most each."""
    table = table_of(fields)
    files = [write_input(folder, table.slice(start, 2000)) for start in range(0, ROWS, 2000)]
    half = sum(file.size_bytes for file in files) // 2
    chosen = WriterSettings(page_row_limit=1024, row_group_size_bytes=half)
    return job_of(fields, files, folder / "out.parquet", settings=chosen)


def long(value: int) -> bytes:
    return struct.pack("<q", value)


FAULTS: dict[str, tuple[Damage, str]] = {
    "a maximum is lowered": (stated("id", 5, BINARY, long(9000), 7), "maximum is stated to be 9000, and"),
    "a minimum is raised": (stated("id", 6, BINARY, long(100), 8), "minimum is stated to be 100, and"),
    "a maximum of old is lowered": (stated("id", 1, BINARY, long(9000)), "as of old: the maximum"),
    "what is exact is not": (stated("id", 5, BINARY, long(1 << 40)), "exactly, and is"),
    "fewer nulls": (stated("n", 3, I64, 0), "0 nulls are stated"),
    "more nulls": (stated("day", 3, I64, 9), "9 nulls are stated"),
    "nulls where there are none": (stated("id", 3, I64, 1), "1 nulls are stated, 0 found"),
    "-0.0 is below the minimum": (stated("f", 6, BINARY, struct.pack("<d", 0.0), 8), "stated to be 0.0, and -0.0"),
    "a string cut as if it were less": (stated("s", 5, BINARY, b"name ", 7), "maximum is stated to be b'name '"),
    "a decimal without its sign": (stated("d", 6, BINARY, (1).to_bytes(11, "big"), 8), "stated to be 1, and -3000"),
    "bytes by their sign": (stated("x", 5, BINARY, b"\0\x0b\x7f", 7), "maximum is stated to be b'"),
    "a bound of another length": (stated("id", 5, BINARY, b"\1"), "a bound of 1 bytes"),
    "another number of distinct values": (stated("id", 4, I64, 3), "3 distinct values are stated"),
    "a page's minimum is raised": (of_index("id", put(2, 0, long(5000))), "page 0: the minimum"),
    "a page's maximum is lowered": (of_index("id", put(3, 1, long(5))), "page 1: the maximum"),
    "a page is said to have no values": (of_index("id", put(1, 1, TRUE)), "page 1: no value is stated"),
    "a page's nulls": (of_index("n", put(5, 0, 680)), "page 0: 680 nulls are stated"),
    "pages are said to be in order": (of_index("id", other_order), "not in the order that they are said"),
    "a page begins a row before": (of_index("n", moved_page, offsets=True), "page [01]: "),
}


@WRITERS
@each_case("fault", FAULTS)
def test_a_wrong_statement_is_caught(
    fault: str, writer: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_in(tmp_path)
    damage, said = FAULTS[fault]
    monkeypatch.setattr(merge_module, "output_is_written", lambda: damage(Path(job.output_paths[0])))
    with pytest.raises(ProofFailed, match=said):
        merge_group(job, writer=writer)
    assert Path(job.output_paths[0]).exists()


@WRITERS
def test_the_same_footer_written_anew_is_no_fault(
    writer: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The faults above are found for what they are; two row groups, and pages in them, are compared."""
    job = job_in(tmp_path)
    output = Path(job.output_paths[0])
    monkeypatch.setattr(merge_module, "output_is_written", lambda: with_footer(output, lambda fields: fields))
    merge_group(job, writer=writer)
    assert len(footer_of(output).row_groups) == 2
    without_index = [chunk for chunk in footer_of(output).row_groups[0].chunks if chunk.column_index is None]
    assert [chunk.column[3][1][1][-1] for chunk in without_index] == [b"f"]  # which has NaN


@WRITERS
def test_a_bound_that_is_wider_loses_nothing(writer: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of strings that are cut."""
    job = job_in(tmp_path)
    wider = stated("s", 5, BINARY, b"nb", 7)
    monkeypatch.setattr(merge_module, "output_is_written", lambda: wider(Path(job.output_paths[0])))
    merge_group(job, writer=writer)


@dataclasses.dataclass(frozen=True)
class Filtering:
    """Writes bloom filters, which no merge does now."""

    inner: Writer
    name: str = "filtering"

    @property
    def read_back(self) -> Decoder:
        return self.inner.read_back

    def write(self, batches: Iterable[Any], file: BinaryIO, layout: Layout) -> None:
        table = pa.Table.from_batches(list(batches), schema=layout.schema)
        if self.inner is ARROW_RS:
            arro3.io.write_parquet(table, file, bloom_filter_enabled=True, skip_arrow_metadata=True)
            return
        options = {name: {"ndv": ROWS} for name in ("id", "n", "f", "s", "d", "x", "st.day")}
        pq.write_table(
            table,
            file,
            store_schema=False,
            write_page_index=True,
            bloom_filter_options=options,
            row_group_size=3000,
            store_decimal_as_integer=True,
        )


@WRITERS
@each_case("name", ["id", "n", "f", "s", "d", "x", "day"])
@each_case("all_of_them", [True, False])
def test_a_bloom_filter_that_lacks_a_value_is_caught(
    name: str, writer: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, all_of_them: bool
) -> None:
    job = job_in(tmp_path)
    merge_group(dataclasses.replace(job, output_paths=(f"{tmp_path}/whole",)), writer=Filtering(writer))
    output = Path(job.output_paths[0])
    monkeypatch.setattr(merge_module, "output_is_written", lambda: without_a_bit(output, name, all_of_them=all_of_them))
    with pytest.raises(ProofFailed, match="its bloom filter lacks"):
        merge_group(job, writer=Filtering(writer))


def test_what_arrow_rs_states_of_pages_in_lists_is_caught(tmp_path: Path) -> None:
    """As many nulls as rows, and it states that there is no value: why tables with lists are written by pyarrow."""
    fields = [*FIELDS, LISTED]
    with pytest.raises(ProofFailed, match=r"'l.list.element'.* page 0: no value is stated"):
        merge_group(job_in(tmp_path, fields), writer=ARROW_RS)
    job = dataclasses.replace(job_in(tmp_path, fields), output_paths=(f"{tmp_path}/other",))
    assert "pyarrow" in merge_group(job).receipt.method


SHAPES: dict[str, Any] = {
    "b": "boolean",
    "i": "int",
    "l": "long",
    "f": "float",
    "d": "double",
    "s": "string",
    "y": "binary",
    "x": "fixed[3]",
    "dec": "decimal(38, 2)",
    "list": list_of(2, "double"),
    "lists": list_of(2, list_of(3, "string")),
    "struct": struct_of(column(2, "a", "int"), column(3, "b", list_of(4, "string"))),
    "structs": list_of(2, struct_of(column(3, "a", "string"), column(4, "b", "float"))),
    "map": map_of(2, "string", 3, list_of(4, "long")),
}


@settings(deadline=None)
@given(st.data(), KIND_NAMES, st.integers(1, 4), st.integers(1, 7))
def test_what_is_seen_of_rows_is_what_a_writer_says(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, name: str, page_rows: int, batch_rows: int
) -> None:
    """Of rows of all shapes, however they come: what pyarrow says is exact has to be, and each null is counted."""
    values = data.draw(st.lists(VALUES[name], min_size=1, max_size=12))
    fields = [column(1, "c", SHAPES[name])]
    schema = arrow_schema(fields)
    table = pa.Table.from_arrays([pa.array(values, schema.field(0).type)], schema=schema)
    path = tmp_path_factory.mktemp("seen") / "one.parquet"
    pq.write_table(
        table, path, row_group_size=5, max_rows_per_page=page_rows, write_page_index=True, store_schema=False
    )
    floats = FloatFooter(fields)  # without it, bounds are stated of rows with NaN
    assert sum(batch.num_rows for batch in floats.watched(table.to_batches())) == table.num_rows
    with_footer(path, floats.changed)
    check = check_of(LOCAL, str(path), path.stat().st_size, fields)
    for start in range(0, table.num_rows, batch_rows):
        for batch in table.slice(start, batch_rows).to_batches():
            check.update(batch)
    check.finish(str(path))


ZEROS = [
    column(1, "f", "double"),
    column(2, "st", struct_of(column(3, "g", "float"))),
    column(4, "l", list_of(5, "float")),
]


@each_case("of", ["dictionary", "bloom filter"])
@each_case(("name", "zero"), [("f", -0.0), ("f", 0.0), ("g", -0.0), ("g", 0.0)])
def test_what_readers_look_for_one_of_two_zeros_in_is_caught(of: str, name: str, zero: float, tmp_path: Path) -> None:
    """Each equals the other in SQL; in lists nobody looks for them."""
    path, options = tmp_path / "zeros.parquet", {"f" if name == "f" else "st.g": {"ndv": 10}}

    def said_of(*values: float) -> str | None:
        others = [1.5] * len(values)
        f, g = ([*values], others) if name == "f" else (others, [*values])
        table = arrow_table(ZEROS, {"f": f, "st": [{"g": each} for each in g], "l": [[zero]] * len(values)})
        used = True if of == "dictionary" else ["l.list.element"]
        filtered = None if of == "dictionary" else options
        pq.write_table(table, path, use_dictionary=used, bloom_filter_options=filtered, store_schema=False)
        check = check_of(LOCAL, str(path), path.stat().st_size, ZEROS)
        check.update(table.to_batches()[0])
        return check.difference

    found = said_of(zero, 1.5, zero)
    assert found is not None
    assert f"{name}', row group 0: it has zeros, and " in found
    assert of in found
    assert said_of(2.5, 1.5, 2.5) is None
    if of == "bloom filter":
        assert said_of(-zero, 1.5, zero) is None


def test_rows_that_nothing_is_stated_of_are_missed(tmp_path: Path) -> None:
    fields = FIELDS[:1]
    table = table_of(fields)
    file = write_input(tmp_path, table)
    check = check_of(LOCAL, file.path, file.size_bytes, fields)
    check.update(table.slice(0, ROWS - 1).to_batches()[0])
    with pytest.raises(ProofFailed, match="other rows than the 5999"):
        check.finish(file.path)
