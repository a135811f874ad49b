"""Cells follow the layout's order as Spark sorts, for all types, whatever was sampled."""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence
from functools import cache
from itertools import groupby, pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.core.errors import Unsupported
from icewright.model.iceberg.layouts import COLUMN_CURVES, Curve
from icewright.model.iceberg.tables import SortField
from icewright_spark.executors.sort.cells import PLACES, Cells, cells_of
from tests.builders.orders import KINDS, PREFIX, Kind, array_of, field, layout, place_of

FIELDS = st.builds(field, st.sampled_from(["asc", "desc"]), st.sampled_from(["nulls-first", "nulls-last"]))


def table_of(kinds: Sequence[Kind], rows: Sequence[Sequence[Any]]) -> Any:
    arrays = [array_of(kind, [row[place] for row in rows]) for place, kind in enumerate(kinds)]
    return pa.table(arrays, names=[str(place) for place in range(len(kinds))])


def batch_of(kinds: Sequence[Kind], rows: Sequence[Sequence[Any]]) -> Any:
    return pa.RecordBatch.from_arrays(
        [column.combine_chunks() for column in table_of(kinds, rows).columns],
        names=[str(place) for place in range(len(kinds))],
    )


@cache
def rows_of(*kinds: Kind) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    return st.lists(st.tuples(*(st.one_of(st.none(), kind.values) for kind in kinds)), max_size=30)


def sent(cells: Cells) -> Cells:
    """As a worker gets them."""
    arrived: Cells = pickle.loads(pickle.dumps(cells))  # noqa: S301 - our own
    return arrived


def assert_in_order(rows: Sequence[Any], places: Sequence[int], key: Any) -> None:
    """Smaller rows have no larger places; rows that are equal may have several."""
    where = sorted(((key(row), place) for row, place in zip(rows, places, strict=True)), key=lambda pair: pair[0])
    groups = [[place for _, place in group] for _, group in groupby(where, key=lambda pair: pair[0])]
    assert all(max(before) <= min(after) for before, after in pairwise(groups))


@pytest.mark.parametrize("name", KINDS)
@given(data=st.data(), how=FIELDS, files=st.integers(1, 9))
def test_files_of_each_type_follow_its_order(name: str, data: st.DataObject, how: SortField, files: int) -> None:
    kinds = [KINDS[name]]
    sample, rows = data.draw(rows_of(*kinds)), data.draw(rows_of(*kinds))
    table, batch, key = table_of(kinds, sample), batch_of(kinds, rows + sample), place_of(kinds, [how])
    for curve in (Curve.SORT, Curve.ZORDER):
        places = cells_of(table, layout(curve, how), files).place(batch)
        assert places.schema == PLACES
        assert set(places["cell"].to_pylist()) <= set(range(files))
        assert_in_order(rows + sample, places["cell"].to_pylist(), key)
        assert_in_order(rows + sample, places["key"].to_pylist(), key)


@given(
    data=st.data(),
    kinds=st.lists(st.sampled_from(list(KINDS.values())), min_size=2, max_size=4),
    files=st.integers(1, 9),
)
def test_later_columns_decide_among_equals(data: st.DataObject, kinds: list[Kind], files: int) -> None:
    fields = [data.draw(FIELDS) for _ in kinds]
    few = [data.draw(st.lists(st.one_of(st.none(), kind.values), min_size=1, max_size=3)) for kind in kinds]
    some = st.lists(st.tuples(*(st.sampled_from(values) for values in few)), max_size=30)
    sample, rows = data.draw(some), data.draw(some)
    cells = sent(cells_of(table_of(kinds, sample), layout(Curve.SORT, *fields), files))
    assert_in_order(rows, cells.place(batch_of(kinds, rows))["cell"].to_pylist(), place_of(kinds, fields))


@given(data=st.data(), curve=st.sampled_from([Curve.ZORDER, Curve.HILBERT]), files=st.integers(1, 9))
def test_cells_of_a_curve_follow_its_key(data: st.DataObject, curve: Curve, files: int) -> None:
    kinds = [KINDS["double"], KINDS["string"], KINDS["int"]]
    sample, rows = data.draw(rows_of(*kinds)), data.draw(rows_of(*kinds))
    cells = sent(cells_of(table_of(kinds, sample), layout(curve, *[field()] * 3), files))
    places = cells.place(batch_of(kinds, rows))
    keys = places["key"].to_pylist()
    assert_in_order(keys, places["cell"].to_pylist(), lambda key: key)
    assert all(key >= 0 for key in keys)


def test_strings_are_compared_beyond_any_prefix() -> None:
    texts = [PREFIX + f"{number:03}" for number in range(1_000)]
    cells = cells_of(pa.table({"s": texts}), layout(Curve.SORT, field()), 10)
    found = cells.place(pa.RecordBatch.from_pydict({"s": texts}))["cell"].to_pylist()
    assert found == [number // 100 for number in range(1_000)]


def test_long_strings_of_the_sample_are_cut_and_rows_are_not() -> None:
    long = "x" * 1_024
    texts = [long[1:], long, long + "a", long + "b", "y"]
    cells = cells_of(pa.table({"s": [text * 3 for text in texts]}), layout(Curve.SORT, field()), 5)
    assert len(pickle.dumps(cells)) < 6 * 1_024
    assert_in_order(texts, cells.place(pa.RecordBatch.from_pydict({"s": texts}))["cell"].to_pylist(), lambda text: text)


@pytest.mark.parametrize(("one", "other"), [(-0.0, 0.0), (math.nan, -math.nan)])
def test_zeros_and_what_is_no_number_are_one_value_each(one: float, other: float) -> None:
    rows = {"f": [one, other, one, other], "i": [1, 1, 2, 2]}
    for sample in (rows, {"f": [other, one] * 2, "i": [1, 1, 2, 2]}):
        cells = cells_of(pa.table(sample), layout(Curve.SORT, field(), field()), 2)
        assert cells.place(pa.RecordBatch.from_pydict(rows))["cell"].to_pylist() == [0, 0, 1, 1]


def test_slices_are_placed_as_what_they_show() -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "d": pa.array(range(100), pa.decimal128(38, 0)),
            "s": [f"{number:02}" for number in range(100)],
            "b": [number > 49 for number in range(100)],
            "f": [float(number) if number % 3 else None for number in range(100)],
        }
    )
    sample = pa.Table.from_batches([batch.slice(0, 40), batch.slice(40)])
    for curve in COLUMN_CURVES:
        cells = cells_of(sample, layout(curve, *[field()] * 4), 7)
        whole = cells.place(batch)
        assert cells.place(batch.slice(30, 20)).equals(whole.slice(30, 20))


def test_rows_of_another_type_are_refused() -> None:
    cells = cells_of(pa.table({"s": ["a"]}), layout(Curve.SORT, field()), 2)
    with pytest.raises(TypeError, match="sampled as string, these rows have int64"):
        cells.place(pa.RecordBatch.from_pydict({"s": [1]}))
    assert cells.place(pa.RecordBatch.from_pydict({"s": pa.array(["b"], pa.large_string())}))["cell"].to_pylist() == [1]


def test_the_name_of_a_time_zone_is_no_type() -> None:
    cells = cells_of(pa.table({"t": pa.array([5], pa.timestamp("us", "UTC"))}), layout(Curve.SORT, field()), 2)
    for zone in ("Etc/UTC", "Europe/Berlin"):
        rows = pa.RecordBatch.from_pydict({"t": pa.array([4, 6], pa.timestamp("us", zone))})
        assert cells.place(rows)["cell"].to_pylist() == [0, 1]
    with pytest.raises(TypeError, match="sampled as"):
        cells.place(pa.RecordBatch.from_pydict({"t": pa.array([4], pa.timestamp("us"))}))


def test_what_has_no_order_is_refused() -> None:
    with pytest.raises(Unsupported, match="no order"):
        cells_of(pa.table({"l": [[1]]}), layout(Curve.SORT, field()), 2)
    ones = pa.table({str(place): [1] for place in range(5)})
    for columns in (1, 5):
        with pytest.raises(Unsupported, match="2 to 4 columns"):
            cells_of(ones, layout(Curve.HILBERT, *[field()] * columns), 2)
    with pytest.raises(ValueError, match="0 files"):
        cells_of(ones, layout(Curve.SORT, field()), 0)
