"""Whether rows are in an order, as Arrow is asked and as Python's own comparison has it; no Spark."""

from __future__ import annotations

import math
from datetime import date
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.model.iceberg.layouts import Curve, Layout
from icewright.model.iceberg.tables import SortField
from icewright_spark.executors.merge.order import Direction, after, in_order
from icewright_spark.executors.sort.cells import cells_of
from icewright_spark.executors.sort.order_proof import OrderOfFiles, check_order, watch_of
from icewright_spark.parquet.errors import ProofFailed

DIRECTIONS = st.builds(Direction, st.booleans(), st.booleans())
TYPES: dict[Any, Any] = {
    pa.int64(): st.integers(-3, 3),
    pa.float64(): st.sampled_from([-math.inf, -1.5, -0.0, 0.0, 2.5, math.inf, math.nan]),
    pa.float32(): st.sampled_from([-1.5, -0.0, 0.0, math.nan]),
    pa.string(): st.text("aéz\U0001f600", max_size=2),
    pa.binary(): st.binary(max_size=2),
    pa.bool_(): st.booleans(),
    pa.decimal128(20, 2): st.decimals(-2, 2, places=2),
    pa.date32(): st.dates(date(2024, 1, 1), date(2024, 1, 4)),
}


@st.composite
def rows(draw: st.DrawFn) -> tuple[Any, tuple[Direction, ...]]:
    kinds = draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=3))
    size = draw(st.integers(0, 6))
    columns = [pa.array(draw(st.lists(st.none() | TYPES[kind], min_size=size, max_size=size)), kind) for kind in kinds]
    batch = pa.RecordBatch.from_arrays(columns, names=[str(number) for number in range(len(columns))])
    return batch, tuple(draw(DIRECTIONS) for _ in kinds)


def compare(left: Any, right: Any, direction: Direction) -> int:
    """As the spec of Iceberg's sort orders says it, one value at a time."""
    if left is None or right is None:
        return 0 if left is right else -1 if (left is None) == direction.nulls_first else 1
    if isinstance(left, float) and (math.isnan(left) or math.isnan(right)):
        found = math.isnan(left) - math.isnan(right)
    elif isinstance(left, str):
        found = (left.encode() > right.encode()) - (left.encode() < right.encode())
    else:
        found = (left > right) - (left < right)
    return -found if direction.descending else found


def compare_rows(left: Any, right: Any, directions: tuple[Direction, ...]) -> int:
    for ours, theirs, direction in zip(left, right, directions, strict=True):
        found = compare(ours, theirs, direction)
        if found:
            return found
    return 0


def listed(batch: Any) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


@given(rows())
def test_rows_come_after_each_other_as_python_has_it(given_rows: tuple[Any, tuple[Direction, ...]]) -> None:
    batch, directions = given_rows
    turned = batch.take(pa.array(range(batch.num_rows - 1, -1, -1), pa.int64()))
    expected = [compare_rows(a, b, directions) > 0 for a, b in zip(listed(batch), listed(turned), strict=True)]
    assert after(batch, turned, directions).tolist() == expected
    ordered = all(compare_rows(a, b, directions) <= 0 for a, b in pairwise(listed(batch)))
    assert in_order(batch, directions) is ordered


@given(rows(), st.integers(1, 3))
def test_a_file_is_in_order_however_it_comes_in_batches(
    given_rows: tuple[Any, tuple[Direction, ...]], at_once: int
) -> None:
    batch, directions = given_rows
    values = listed(batch)

    def compare_places(left: int, right: int) -> int:
        return compare_rows(values[left], values[right], directions)

    places = sorted(range(batch.num_rows), key=cmp_to_key(compare_places))
    for candidate in (batch, batch.take(pa.array(places, pa.int64()))):
        watch = OrderOfFiles(directions)
        for start in range(0, candidate.num_rows, at_once):
            watch.add("f", candidate.slice(start, at_once))
        if candidate.num_rows:
            assert (watch.found("f") is not None) is in_order(candidate, directions)


SORT = Layout(Curve.SORT, (SortField(1, "identity", "desc", "nulls-last"),))


def watched(layout: Layout, files: dict[str, list[Any]]) -> dict[str, list[Any]]:
    cells = cells_of(pa.table({"a": [number for file in files.values() for number in file]}), layout, len(files))
    found = {}
    for path, numbers in files.items():
        watch = watch_of(layout, {path: cells})()
        watch.add(path, pa.record_batch({"a": pa.array(numbers, pa.int64())}))
        found[path] = [watch.found(path)]
    return found


@pytest.mark.parametrize(
    ("layout", "files"),
    [
        (SORT, {"a": [5, 4], "b": [4, 3], "c": [2, None]}),
        (Layout(Curve.ZORDER, (SortField(1, "identity", "asc", "nulls-first"),)), {"a": [None, 4], "b": [4, 5]}),
    ],
)
def test_files_may_touch_in_equal_values_and_no_more(layout: Layout, files: dict[str, list[Any]]) -> None:
    found = watched(layout, files)
    check_order(layout, list(files), found)
    with pytest.raises(ProofFailed, match="overlap"):
        check_order(layout, list(files)[::-1], found)
    with pytest.raises(ProofFailed, match="not in the order"):
        check_order(layout, ["a"], watched(layout, {"a": [*files["b"], *files["a"]]}))
    with pytest.raises(ProofFailed, match="in parts"):
        check_order(layout, ["a"], {"a": found["a"] * 2})


def test_files_without_rows_are_in_any_order() -> None:
    check_order(SORT, ["a", "b"], {})
