"""Metrics as Iceberg's Java reports them; PyIceberg is asked where it agrees, the rest is reckoned by hand."""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.conversions import from_bytes
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.schema import Schema
from pyiceberg.types import DecimalType

from icewright.core.errors import InvalidConfiguration
from icewright_spark.executors.merge.merge import merge_group
from icewright_spark.executors.merge.output import OutputFile
from icewright_spark.executors.merge.write import PYARROW
from icewright_spark.parquet.errors import UnsupportedColumn
from icewright_spark.parquet.metrics import MetricsMode, metrics_mode, serialized, truncated_above, truncated_below
from tests.builders.merge_tables import arrow_table, column, job_of, list_of, map_of, struct_of, write_input
from tests.cases import each_case

FIELDS = [
    column(1, "id", "long", required=True),
    column(2, "s", "string"),
    column(3, "y", "binary"),
    column(4, "d", "double"),
    column(5, "dec", "decimal(20, 2)"),
    column(6, "u", "uuid"),
    column(7, "fx", "fixed[20]"),
    column(8, "st", struct_of(column(9, "a", "int"), column(10, "f", "float"))),
    column(11, "l", list_of(12, "double")),
    column(13, "m", map_of(14, "string", 15, "string")),
    column(16, "ok", "boolean"),
    column(17, "t", "timestamp"),
    column(18, "nothing", "string"),
]
ROWS: dict[str, list[Any]] = {
    "id": [3, 1, 2],
    "s": ["b" * 20, None, "a" * 20],
    "y": [b"\xff" * 20, b"\x80", b"\x7f"],
    "d": [math.nan, 0.0, None],
    "dec": [Decimal("-1.28"), Decimal("1.28"), None],
    "u": [b"\xff" * 16, b"\x00" * 16, None],
    "fx": [b"z" * 20, b"a" * 20, None],
    "st": [None, {"a": None, "f": math.nan}, {"a": 5, "f": -1.0}],
    "l": [[math.nan, 1.0], None, []],
    "m": [[("k", None)], None, []],
    "ok": [True, None, False],
    "t": [5, None, -5],
    "nothing": [None, None, None],
}


def merged(directory: Path, modes: dict[int, str] | None = None, **more: Any) -> OutputFile:
    """Two files, so that everything is summed up over batches."""
    table = arrow_table(FIELDS, ROWS)
    files = [write_input(directory, table.slice(0, 1)), write_input(directory, table.slice(1))]
    return merge_group(job_of(FIELDS, files, directory / "out.parquet", metrics_modes=modes or {}), **more).outputs[0]


def test_metrics_as_java_has_them(tmp_path: Path) -> None:
    output = merged(tmp_path)
    flat = {1, 2, 3, 4, 5, 6, 7, 9, 10, 16, 17, 18}
    assert output.metrics.value_counts == dict.fromkeys(flat, 3)
    assert output.metrics.null_counts == {
        1: 0, 2: 1, 3: 0, 4: 1, 5: 1, 6: 1, 7: 1, 9: 2, 10: 1, 16: 1, 17: 1, 18: 3
    }  # fmt: skip
    assert output.metrics.nan_counts == {4: 1, 10: 1}
    assert output.metrics.lower_bounds == {
        1: struct.pack("<q", 1),
        2: b"a" * 16,
        3: b"\x7f",
        4: struct.pack("<d", -0.0),
        5: b"\x80",
        6: b"\x00" * 16,
        7: b"a" * 20,
        9: struct.pack("<i", 5),
        10: struct.pack("<f", -1.0),
        16: b"\x00",
        17: struct.pack("<q", -5),
    }
    assert output.metrics.upper_bounds == {
        1: struct.pack("<q", 3),
        2: b"b" * 15 + b"c",
        # 3: twenty bytes of 0xff have no shorter upper bound; 4 and 10: NaN, which is greater than all for Spark
        5: b"\x00\x80",
        6: b"\xff" * 16,
        7: b"z" * 20,
        9: struct.pack("<i", 5),
        16: b"\x01",
        17: struct.pack("<q", 5),
    }
    assert output.metrics.column_sizes.keys() == flat | {12, 14, 15}
    assert all(size > 0 for size in output.metrics.column_sizes.values())


def test_modes(tmp_path: Path) -> None:
    output = merged(tmp_path, {1: "none", 2: "counts", 3: "full", 4: "counts", 7: "truncate(2)", 12: "none"})
    assert not {1, 12} & output.metrics.column_sizes.keys()  # as Java: nothing at all
    assert {1, 2, 4} & output.metrics.value_counts.keys() == {2, 4}
    assert output.metrics.nan_counts[4] == 1
    assert not {1, 2, 4} & output.metrics.lower_bounds.keys()
    assert output.metrics.upper_bounds[3] == b"\xff" * 20
    assert output.metrics.upper_bounds[7] == b"z" * 20  # fixed is never truncated


def test_pyiceberg_agrees(tmp_path: Path) -> None:
    output = merged(tmp_path, writer=PYARROW)
    schema = Schema.model_validate({"type": "struct", "schema-id": 0, "fields": FIELDS})
    theirs = data_file_statistics_from_parquet_metadata(
        parquet_metadata=pq.ParquetFile(output.path).metadata,
        stats_columns=compute_statistics_plan(schema, {}),
        parquet_column_mapping=parquet_path_to_id_mapping(schema),
    )
    assert theirs.record_count == output.record_count
    assert theirs.column_sizes == output.metrics.column_sizes
    assert theirs.split_offsets == list(output.split_offsets)
    inside = {12, 14, 15}  # PyIceberg counts inside lists and maps, Java does not
    assert {k: v for k, v in theirs.value_counts.items() if k not in inside} == output.metrics.value_counts
    assert {k: v for k, v in theirs.null_value_counts.items() if k not in inside} == output.metrics.null_counts
    bounds = theirs.to_serialized_dict()
    # Not compared: zeros of floats, truncation of fixed, upper bounds that cannot be raised, and fields of structs,
    # of which PyIceberg keeps counts only.
    same = {1, 2, 5, 6, 16, 17}
    assert not {9, 10} & bounds["lower_bounds"].keys()
    assert {k: bounds["lower_bounds"][k] for k in same} == {k: output.metrics.lower_bounds[k] for k in same}
    assert {k: bounds["upper_bounds"][k] for k in same} == {k: output.metrics.upper_bounds[k] for k in same}


def test_split_offsets_are_where_row_groups_begin(tmp_path: Path) -> None:
    output = merged(tmp_path)
    assert output.split_offsets == (4,)
    assert output.size_bytes == Path(output.path).stat().st_size


def test_nothing_is_said_of_values_that_are_all_nan(tmp_path: Path) -> None:
    fields = [column(1, "f", "float")]
    file = write_input(tmp_path, arrow_table(fields, {"f": [math.nan, math.nan]}))
    output = merge_group(job_of(fields, [file], tmp_path / "out.parquet")).outputs[0]
    assert (output.metrics.nan_counts, output.metrics.lower_bounds, output.metrics.upper_bounds) == ({}, {}, {})


def test_text_that_is_not_utf_8_is_refused() -> None:
    assert truncated_below("string", "éé".encode(), 1) == "é".encode()
    with pytest.raises(UnsupportedColumn, match="not UTF-8"):
        truncated_below("string", b"\xff", 1)


@settings(deadline=None)
@given(st.text(max_size=6), st.integers(1, 6))
def test_bounds_of_text_enclose_it(text: str, length: int) -> None:
    value = text.encode()
    lower, upper = truncated_below("string", value, length), truncated_above("string", value, length)
    assert lower <= value
    assert len(lower.decode()) <= length
    if upper is None:
        assert set(text[:length]) == {"\U0010ffff"}
    else:
        assert value <= upper
        assert len(upper.decode()) <= length


@settings(deadline=None)
@given(st.binary(max_size=6), st.integers(1, 6))
def test_bounds_of_bytes_enclose_them(value: bytes, length: int) -> None:
    lower, upper = truncated_below("binary", value, length), truncated_above("binary", value, length)
    assert lower <= value
    assert upper is None or (value <= upper and len(upper) <= length)
    assert (upper is None) == (len(value) > length and set(value[:length]) == {0xFF})


@each_case(
    ("text", "bound"),
    [
        ("ab", "ab"),
        ("abc", "ac"),
        ("a\U0010ffffc", "b"),
        ("a\ud7ffc", "a\ue000"),  # the next code points are surrogates
        ("\U0001f9ca\U0001f9cax", "\U0001f9ca\U0001f9cb"),
    ],
)
def test_upper_bounds_of_text_are_raised_by_code_point(text: str, bound: str) -> None:
    assert truncated_above("string", text.encode(), 2) == bound.encode()


@settings(deadline=None)
@given(st.integers(-(10**38) + 1, 10**38 - 1))
def test_decimals_are_minimal_and_read_by_pyiceberg(unscaled: int) -> None:
    data = serialized("decimal(38, 0)", unscaled)
    read: Any = from_bytes(DecimalType(38, 0), data)
    assert read == unscaled
    shorter = data[1:]
    assert not shorter or int.from_bytes(shorter, "big", signed=True) != unscaled


@each_case(
    ("text", "mode"),
    [
        ("none", MetricsMode(counts=False, bounds=False)),
        ("counts", MetricsMode(counts=True, bounds=False)),
        ("FULL", MetricsMode(counts=True, bounds=True)),
        ("truncate(16)", MetricsMode(counts=True, bounds=True, length=16)),
    ],
)
def test_modes_are_written_as_iceberg_writes_them(text: str, mode: MetricsMode) -> None:
    assert metrics_mode(text) == mode


@each_case("text", ["", "truncate", "truncate(0)", "truncate(-1)", "all"])
def test_what_is_no_mode_is_refused(text: str) -> None:
    with pytest.raises(InvalidConfiguration, match="no metrics mode"):
        metrics_mode(text)
