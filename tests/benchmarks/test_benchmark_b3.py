"""The benchmark of layouts counts what it says: rows in files whose bounds meet a query, and bounds that rows have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import b3_written
from benchmarks import layout_tables as made
from benchmarks.b3 import bounds_of, full, place, ranks_of
from benchmarks.lake import Mismatch
from benchmarks.layout_tables import Query
from icewright.model.iceberg.layouts import Curve, Layout
from icewright.model.iceberg.tables import SortField
from icewright_spark.executors.sort.cells import cells_of

RANKS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=40)
RANGES = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(lambda ends: (min(ends), max(ends)))


@given(RANKS, st.lists(st.dictionaries(st.sampled_from("ab"), RANGES, min_size=1), min_size=1, max_size=3))
def test_rows_are_scanned_in_files_whose_bounds_meet_the_query(
    rows: list[tuple[int, int, int]], asked: list[dict[str, tuple[int, int]]]
) -> None:
    placed, a, b = (np.array(column) for column in zip(*rows, strict=True))
    found = bounds_of(placed, 4, {"a": a, "b": b}).scanned([Query(ranges) for ranges in asked])
    scanned = 0
    for ranges in asked:
        for cell in set(placed.tolist()):
            inside = {"a": a[placed == cell], "b": b[placed == cell]}
            met = all(inside[name].min() <= high and inside[name].max() >= low for name, (low, high) in ranges.items())
            scanned += met * int((placed == cell).sum())
    assert found == pytest.approx(scanned / len(rows) / len(asked))


def test_a_bound_that_no_row_has_is_seen() -> None:
    distinct = pa.array(["a", "c"])
    assert ranks_of(pa.array(["c", "a"]), distinct).tolist() == [1, 0]
    for wrong in ("b", "d", None):
        with pytest.raises(Mismatch, match="no row has"):
            ranks_of(pa.array(["a", wrong], pa.string()), distinct)


def test_there_are_tables_and_each_is_asked_for_what_it_has(tmp_path: Path) -> None:
    tables = list(made.tables(500, seed=1))
    assert len(full(1).tables) == 30
    assert {table.family for table in tables[:30]} == set(made.FAMILIES)
    assert {table.family for table in tables[30:]} == set(made.LATER_FAMILIES)
    for table in [*tables, *(made.generated(tmp_path, number, 0.001) for number in made.GENERATED)]:
        distinct = table.distinct
        assert 2 <= len(table.layout) <= 4
        ranks = {name: ranks_of(table.rows[name], values) for name, values in distinct.items()}
        asked = made.queries(table, ranks, seed=1)
        assert len(asked) == made.QUERIES
        assert asked == made.queries(table, ranks, seed=1)
        for query in asked:
            matching = np.ones(table.rows.num_rows, bool)
            for name, (low, high) in query.ranges.items():
                assert 0 <= low <= high < len(distinct[name])
                matching &= (ranks[name] >= low) & (ranks[name] <= high)
            assert len(query.ranges) > 1 or matching.any()


def test_what_is_written_are_thirty_tables_by_which_nothing_was_chosen() -> None:
    options = b3_written.full(1)
    *by_seed, lineitem, orders = options.tables
    assert len({made.table(50, 1, number).name for number in by_seed}) == 30
    assert all(number % 2 for number in by_seed if number < 30)
    assert [made.GENERATED[number] for number in (lineitem, orders)] == ["lineitem", "orders"]
    families = {made.table(50, 1, number).family for number in b3_written.usual(1).tables}
    assert families == {*made.FAMILIES, *made.LATER_FAMILIES}


def test_tables_are_the_same_one_by_one() -> None:
    every = list(made.tables(50, seed=2))
    assert [made.table(50, 2, number) for number in range(len(every))] == every
    with pytest.raises(IndexError, match="no table 47"):
        made.table(50, 2, 47)


def test_all_rows_are_placed() -> None:
    table = next(made.tables(25_000, seed=1))
    fields = tuple(SortField(number, "identity", "asc", "nulls-first") for number in range(2))
    cells = cells_of(table.rows.select(list(table.layout)), Layout(Curve.HILBERT, fields), 5)
    assert np.bincount(place(cells, table)) == pytest.approx(5_000, rel=0.05)
