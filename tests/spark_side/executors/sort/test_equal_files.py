"""Files get about the same number of rows, whatever the values are, and equal rows stay together where they can."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from icewright.model.iceberg.layouts import COLUMN_CURVES, Curve
from icewright_spark.executors.sort.cells import CurveCells, cells_of, sample_rows
from icewright_spark.executors.sort.cuts import TIES, Cuts, Ties
from tests.builders.orders import PREFIX, field, layout
from tests.cases import each_case

ROWS, FILES = 60_000, 16
TOLERANCE = 0.25
"""Of a file: what the sample's cuts scatter by, and what is not worth to divide equal rows for."""


def _columns() -> Mapping[str, tuple[Any, Any]]:
    rng = np.random.default_rng(7)
    many, few = rng.integers(0, 1 << 60, ROWS), rng.integers(0, 3, ROWS)
    half = np.where(rng.random(ROWS) < 0.5, 42, many)
    return {
        "distinct": (many, rng.normal(size=ROWS)),
        "skewed": (rng.zipf(1.3, ROWS) % 100_000, rng.lognormal(0, 3, ROWS)),
        "half of the rows one value": (half, half),
        "half of the rows one value, and then others": (half, many),
        "three values": (few, few),
        "one value": (np.zeros(ROWS), np.zeros(ROWS)),
        "all NULL": (pa.nulls(ROWS, pa.int64()), pa.nulls(ROWS, pa.string())),
        "half NULL": (pa.array(many, mask=rng.random(ROWS) < 0.5), few),
        "one diagonal": (many, many),
        "long common prefixes": ([f"{PREFIX}{value}" for value in rng.zipf(1.5, ROWS)], many),
        "NaN": (np.where(rng.random(ROWS) < 0.4, np.nan, many), few),
    }


COLUMNS = _columns()


@each_case("name", COLUMNS)
@each_case("curve", COLUMN_CURVES)
def test_files_are_about_equal(curve: Curve, name: str) -> None:
    table = pa.table(dict(zip("ab", COLUMNS[name], strict=True)))
    cells = cells_of(sample_of(table), layout(curve, field(), field()), FILES)
    counts = np.bincount(placed(cells, table), minlength=FILES) * FILES / ROWS
    assert counts.max() < 1 + TOLERANCE
    assert counts.min() > 1 - TOLERANCE


def test_equal_rows_stay_together_unless_they_are_many() -> None:
    values = np.random.default_rng(7).permutation(np.repeat(np.arange(ROWS // 200), 200))
    table = pa.table({"a": values})
    for curve in (Curve.SORT, Curve.ZORDER):
        found = placed(cells_of(sample_of(table), layout(curve, field()), FILES), table)
        assert len({*zip(values.tolist(), found.tolist(), strict=True)}) == ROWS // 200


@pytest.mark.parametrize(("before", "cell"), [(54, 0), (46, 1)])
def test_what_does_not_even_out_much_goes_to_one_side(before: int, cell: int) -> None:
    """Of 100 rows for two files the equal ones end, or begin, a little beside the middle."""
    cuts, rows = Cuts.of(np.repeat([0, 1], [before, 100 - before]), 2)
    found = {int(cuts.cells(np.array([1]), constantly(tie))[0]) for tie in (0, TIES // 2, TIES - 1)}
    assert (rows.tolist(), found) == (([0], {0}) if cell == 0 else ([before], {1}))


def test_a_value_takes_as_much_of_its_side_as_it_has_rows() -> None:
    values = np.concatenate([np.zeros(90_000), np.arange(1, 10_001)])
    cells = cells_of(pa.table({"a": values, "b": values}), layout(Curve.ZORDER, field(), field()), FILES)
    assert isinstance(cells, CurveCells)
    (axis, _), side = cells.axes, 1 << cells.bits
    where = axis.coordinates[axis.scale.read(pa.array([0.0, 1.0, 5_000.0, 10_000.0]))] / side
    assert where == pytest.approx([0.45, 0.9, 0.95, 1.0], abs=0.002)


def test_rows_told_apart_by_further_columns_lie_the_same_in_any_batches() -> None:
    batch = pa.RecordBatch.from_pydict({"a": np.zeros(ROWS), "row": np.arange(ROWS)})
    cells = cells_of(pa.table({"a": np.zeros(100)}), layout(Curve.SORT, field()), FILES)
    whole = np.asarray(cells.place(batch)["cell"])
    parts = [np.asarray(cells.place(batch.slice(start, 7_777))["cell"]) for start in range(0, ROWS, 7_777)]
    assert np.array_equal(whole, np.concatenate(parts))
    counts = np.bincount(whole, minlength=FILES) * FILES / ROWS
    assert abs(counts - 1).max() < TOLERANCE


@each_case("curve", COLUMN_CURVES)
def test_without_a_sample_everything_goes_into_the_first_file(curve: Curve) -> None:
    empty = pa.table({"a": pa.array([], pa.int32()), "b": pa.array([], pa.string())})
    cells = cells_of(empty, layout(curve, field(), field()), FILES)
    rows = pa.RecordBatch.from_pydict({"a": pa.array([1, None], pa.int32()), "b": ["", None]})
    assert cells.place(rows)["cell"].to_pylist() == [0, 0]
    assert cells.place(rows.slice(0, 0)).num_rows == 0


@each_case("curve", COLUMN_CURVES)
def test_one_sampled_row_is_a_sample(curve: Curve) -> None:
    cells = cells_of(pa.table({"a": [5], "b": ["x"]}), layout(curve, field(), field()), FILES)
    rows = pa.RecordBatch.from_pydict({"a": [1, 5, 9], "b": ["x"] * 3})
    first, middle, last = cells.place(rows)["cell"].to_pylist()
    assert first == 0 <= middle <= last == FILES - 1


@each_case("curve", COLUMN_CURVES)
def test_cells_are_small(curve: Curve) -> None:
    for files, limit in ((16, 64 << 10), (1_000, 1 << 20)):
        table = pa.table({"a": COLUMNS["distinct"][0], "b": COLUMNS["half NULL"][0]})
        assert len(pickle.dumps(cells_of(table, layout(curve, field(), field()), files))) < limit


@each_case("curve", COLUMN_CURVES)
def test_how_values_are_spread_is_of_no_consequence(curve: Curve) -> None:
    ranks = np.random.default_rng(9).integers(0, 2_000, (2, 5_000))
    plain = pa.table({"a": ranks[0], "b": ranks[1]})
    skewed = pa.table({"a": np.exp(ranks[0] / 5), "b": [f"{PREFIX}{rank:04}" for rank in ranks[1]]})
    first, second = (
        cells_of(table, layout(curve, field(), field()), FILES).place(table.to_batches()[0])
        for table in (plain, skewed)
    )
    assert first.equals(second)


@each_case("files", [1, 16, 1_000, 100_000])
def test_samples_are_of_sensible_sizes(files: int) -> None:
    assert 20_000 <= sample_rows(files) <= 400_000
    assert sample_rows(files) >= min(400 * files, 400_000)


def constantly(tie: int) -> Ties:
    return lambda rows: np.full(len(rows), tie)


def sample_of(table: Any) -> Any:
    chosen = np.random.default_rng(8).choice(ROWS, sample_rows(FILES), replace=False)
    return table.take(pa.array(chosen))


def placed(cells: Any, table: Any) -> Any:
    batches = table.combine_chunks().to_batches(max_chunksize=10_000)
    return np.concatenate([np.asarray(cells.place(batch)["cell"]) for batch in batches])
