"""Metrics put together are those of all rows, or left out: a wrong one would lose rows from sight."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from icewright_spark.executors.stitch.metrics import together
from icewright_spark.parquet.metrics import ColumnMetrics, metrics_from_json, metrics_of, serialized
from icewright_spark.parquet.statistics.check import StatedCheck
from tests.builders.merge_tables import array_of, column, iceberg_arrow_schema, list_of, struct_of
from tests.cases import each_case

FIELDS = [
    column(1, "id", "long"),
    column(2, "f", "double"),
    column(3, "s", "string"),
    column(4, "y", "binary"),
    column(5, "d", "decimal(20, 2)"),
    column(6, "b", "boolean"),
    column(7, "st", struct_of(column(8, "x", "int"), column(9, "t", "timestamptz"))),
    column(10, "l", list_of(11, "float")),
]
MODES = {3: "truncate(2)", 4: "full", 8: "counts", 9: "none"}
ROW = st.fixed_dictionaries(
    {
        "id": st.none() | st.integers(-(2**63), 2**63 - 1),
        "f": st.none() | st.floats(),
        "s": st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
        "y": st.none() | st.binary(max_size=3),
        "d": st.none() | st.decimals(-(10**17), 10**17, places=2),
        "b": st.none() | st.booleans(),
        "st": st.none()
        | st.fixed_dictionaries({"x": st.none() | st.integers(-9, 9), "t": st.none() | st.integers(0, 9)}),
        "l": st.none() | st.lists(st.none() | st.floats(width=32), max_size=2),
    }
)


def file_metrics_of(rows: Sequence[dict[str, Any]]) -> ColumnMetrics:
    schema = pa.schema([field.remove_metadata() for field in _schema()])
    arrays = [array_of([row[field.name] for row in rows], field.type) for field in schema]
    check = StatedCheck(FIELDS, {})
    check.update(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return metrics_of(FIELDS, MODES, len(rows), check.finish("the rows"))


def _schema() -> Any:
    kinds = {"s": pa.string(), "y": pa.binary(), "l": pa.list_(pa.float32())}
    return [pa.field(f.name, kinds.get(f.name, f.type)) for f in iceberg_arrow_schema(FIELDS)]


@given(st.lists(st.lists(ROW, min_size=1, max_size=4), min_size=1, max_size=4))
def test_it_is_as_if_all_rows_had_been_in_one_file(files: list[list[dict[str, Any]]]) -> None:
    parts = [file_metrics_of(rows) for rows in files]
    found = together(parts, FIELDS, MODES)
    expected = file_metrics_of([row for rows in files for row in rows])
    assert found.value_counts == expected.value_counts
    assert found.null_counts == expected.null_counts
    assert found.nan_counts == expected.nan_counts
    assert found.lower_bounds == expected.lower_bounds
    # A file whose greatest text cannot be cut and raised has no upper bound, and then there is none of all.
    unknown = {i for part in parts for i in expected.upper_bounds if i not in part.upper_bounds}
    assert {i: b for i, b in found.upper_bounds.items() if i not in unknown} == {
        i: b for i, b in expected.upper_bounds.items() if i not in unknown
    }


def of(kind: str, *bounds: bytes | None, counted: bool = True) -> tuple[bytes | None, bytes | None]:
    """The lower and upper bound of files of ten values with these for both; None is a file of nulls."""
    files = [
        ColumnMetrics({}, {1: 10} if counted else {}, {1: 0 if bound else 10}, {}, *_both(bound)) for bound in bounds
    ]
    found = together(files, [column(1, "c", kind)], {})
    return found.lower_bounds.get(1), found.upper_bounds.get(1)


def _both(bound: bytes | None) -> tuple[dict[int, bytes], dict[int, bytes]]:
    return ({}, {}) if bound is None else ({1: bound}, {1: bound})


def test_values_are_compared_as_what_they_are() -> None:
    for kind, least, greatest in (
        ("int", -1, 1),
        ("long", -(2**40), 3),
        ("decimal(9, 2)", -300, 5),
        ("float", -0.0, 0.0),
        ("double", -math.inf, 1e300),
        ("boolean", False, True),
        ("timestamp_ns", -1, 1),
    ):
        low, high = serialized(kind, least), serialized(kind, greatest)
        assert of(kind, high, low) == (low, high)
        assert of(kind, low, None, high) == (low, high)
    assert of("string", "é".encode(), b"z") == (b"z", "é".encode())
    assert of("binary", b"\xff", b"\x01") == (b"\x01", b"\xff")
    assert of("long", struct.pack("<i", -2), struct.pack("<q", 1)) == (struct.pack("<i", -2), struct.pack("<q", 1))


@each_case(
    ("kind", "bound"),
    [
        ("int", b"\0"),
        ("double", struct.pack("<d", math.nan)),
        ("string", b"\xff\xfe"),
        ("decimal(9, 2)", b""),
        ("boolean", b"12"),
    ],
)
def test_what_is_no_bound_makes_none(kind: str, bound: bytes) -> None:
    assert of(kind, bound) == (None, None)


def test_a_file_with_values_and_without_bounds_leaves_none() -> None:
    bound = serialized("int", 1)
    some = ColumnMetrics({}, {1: 10}, {1: 3}, {}, {1: bound}, {1: bound})
    for other in (
        ColumnMetrics({}, {1: 10}, {1: 9}),
        ColumnMetrics({}, {1: 10}),
        ColumnMetrics({}, {}, {1: 10}),
        ColumnMetrics(),
    ):
        found = together([some, other], [column(1, "c", "int")], {})
        assert (found.lower_bounds, found.upper_bounds) == ({}, {})
    nans = ColumnMetrics({}, {1: 10}, {1: 4}, {1: 6})
    low = serialized("float", 1.0)
    values = ColumnMetrics({}, {1: 1}, {1: 0}, {1: 0}, {1: low}, {1: low})
    found = together([values, nans], [column(1, "c", "float")], {})
    assert (found.lower_bounds, found.nan_counts) == ({1: low}, {1: 6})


def test_what_a_file_does_not_say_is_not_said_of_all() -> None:
    one = ColumnMetrics({1: 5, 2: 6}, {1: 10, 2: 10}, {1: 1}, {1: 0})
    other = ColumnMetrics({1: 7}, {1: 20, 2: 20}, {2: 1})
    found = together([one, other], [column(1, "a", "float"), column(2, "b", "int")], {})
    assert found.column_sizes == {1: 12}
    assert (found.value_counts, found.null_counts, found.nan_counts) == ({1: 30, 2: 30}, {}, {})
    dropped = together([one, one], [column(2, "b", "int")], {})
    assert dropped.value_counts == {2: 20}
    unwanted = together([one, one], [column(1, "a", "float")], {1: "none"})
    assert (unwanted.value_counts, unwanted.column_sizes) == ({}, {})


def test_metrics_are_read_from_icebergs_json() -> None:
    described = {
        "column-sizes": {"keys": [1], "values": [9]},
        "null-value-counts": {"keys": [1], "values": [0]},
        "lower-bounds": {"keys": [1], "values": ["0A00"]},
    }
    assert metrics_from_json(described) == ColumnMetrics({1: 9}, {}, {1: 0}, {}, {1: b"\x0a\0"}, {})
    assert metrics_from_json({}) == ColumnMetrics()
