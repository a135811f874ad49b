"""Files of a layout are simulated as the shuffle would write them, and as readers would see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from icewright.core.errors import Rejected
from icewright.model.iceberg.layouts import COLUMN_CURVES, Curve
from icewright.model.queries.queries import Filter, Operator
from icewright_spark.trials.predicates import UNKNOWN_HIGH, UNKNOWN_LOW, condition_of, flat_columns
from icewright_spark.trials.simulation import Ends, Files, Scanned, Simulation, scanned
from icewright_spark.trials.table_sample import TableSample, table_sample
from tests.spark_side.trials.trial_tables import FILE_BYTES, Made, between, equals, in_files, layout, number, text

RNG = np.random.default_rng(5)


def sampled(made: Made, rows_per_file: int, listed: Any = None, **modes: str) -> TableSample:
    flat = flat_columns(made.sample(rows_per_file))
    names = [(name,) for name in made.rows.column_names]
    return table_sample(
        flat, made.listed() if listed is None else listed, names, {(name,): mode for name, mode in modes.items()}
    )


def opened(table: TableSample, files: Files, *filters: Sequence[Filter]) -> Scanned:
    conditions = []
    for query in filters:
        found = [condition_of(item, (item.column,), table.columns[item.column,].scale) for item in query]
        assert None not in found
        conditions.append([it for it in found if it is not None])
    return scanned(conditions, files)


def test_there_are_as_many_files_as_now_in_each_partition_and_as_many_bytes() -> None:
    made = in_files({"x": RNG.integers(0, 10**6, 30_000)}, 30)
    partitions = ["a"] * 10 + ["b"] * 19 + ["c"]
    table = sampled(made, 100, made.listed(partitions))
    simulation = Simulation(table)
    files = simulation.under(layout(Curve.SORT, "x"))
    assert simulation.partitions == 3
    assert len(files.bytes) == 30
    assert files.bytes.sum() == pytest.approx(30 * FILE_BYTES)
    assert simulation.simulated_bytes == 29 * FILE_BYTES
    # Each partition is sorted by itself: a value is in one file of each of the two, and in that of one file.
    wide = [between("x", low, low) for low in (250_001, 500_001, 750_001)]
    assert opened(table, files, *wide).files.tolist() == pytest.approx([3, 3, 3], abs=1)
    assert opened(table, simulation.now(), *wide).files.tolist() == [30, 30, 30]


def test_partitions_with_too_few_rows_stay_as_they_are() -> None:
    made = in_files({"x": np.arange(20_000)}, 20)
    simulation = Simulation(sampled(made, 79))
    now, then = simulation.now(), simulation.under(layout(Curve.SORT, "x"))
    assert (simulation.simulated_bytes, simulation.unsampled_bytes) == (0, 20 * FILE_BYTES)
    assert simulation.rows_wanted == 20 * 80
    assert then.bytes.tolist() == now.bytes.tolist()
    assert then.bounds["x",].lower.tolist() == now.bounds["x",].lower.tolist()


@pytest.mark.parametrize("curve", COLUMN_CURVES)
def test_a_sample_of_all_rows_predicts_what_all_rows_say(curve: Curve) -> None:
    rows = {"x": RNG.integers(0, 10**6, 4_000), "y": RNG.lognormal(size=4_000), "z": RNG.integers(0, 50, 4_000)}
    made = in_files(rows, 8)
    table = sampled(made, 500)
    assert table.rows == 4_000
    simulation = Simulation(table)
    asked = [
        *(between("x", low, low + 50_000) for low in range(0, 10**6, 90_001)),
        *((equals("z", number(value)),) for value in range(0, 50, 9)),
    ]
    found = [opened(table, simulation.under(layout(curve, "x", "z"), ends), *asked) for ends in Ends]
    for other in found[1:]:
        assert other.files.tolist() == found[0].files.tolist()
    # And so it is for the rows themselves: every file that has a matching row is opened.
    assert found[0].files.min() >= 1


def test_ends_are_moved_outwards_and_never_past_what_files_say() -> None:
    made = in_files({"x": RNG.normal(size=64_000), "y": RNG.normal(size=64_000)}, 16)
    table = sampled(made, 100)
    simulation = Simulation(table)
    seen, finite, exponential = (simulation.under(layout(Curve.ZORDER, "x", "y"), ends) for ends in Ends)
    now = simulation.now()
    for name in "xy":
        low = [files.bounds[name,].lower for files in (exponential, finite, seen)]
        high = [files.bounds[name,].upper for files in (seen, finite, exponential)]
        assert (low[0] <= low[1]).all()
        assert (low[1] <= low[2]).all()
        assert (low[0] < low[2]).any()
        assert (high[0] <= high[1]).all()
        assert (high[1] <= high[2]).all()
        assert exponential.bounds[name,].lower.min() >= now.bounds[name,].lower.min()
        assert exponential.bounds[name,].upper.max() <= now.bounds[name,].upper.max()


def test_strings_with_one_long_prefix_have_one_bound_for_all_readers() -> None:
    words = [f"{'p' * 40}{value:06}" for value in RNG.permutation(8_000).tolist()]
    made = in_files({"s": words}, 8)
    point = (equals("s", text(words[17])),)
    prefix = (Filter("s", Operator.STARTS_WITH, (text("p" * 40 + "0001"),)),)
    cut, full = sampled(made, 200), sampled(made, 200, made.listed(length=99), s="full")
    by_cut, by_full = (Simulation(table).under(layout(Curve.SORT, "s")) for table in (cut, full))
    assert opened(cut, by_cut, point, prefix).files.tolist() == [8, 8]
    assert opened(full, by_full, point, prefix).files.max() <= 2


def test_a_column_that_files_say_nothing_of_is_not_bounded_in_new_files_either() -> None:
    made = in_files({"x": RNG.permutation(8_000), "y": RNG.permutation(8_000)}, 8)
    listed = made.listed()
    metrics = listed["readable_metrics"].combine_chunks().flatten()[0]
    only_x = listed.set_column(3, "readable_metrics", pa.StructArray.from_arrays([metrics], ["x"]))
    table = sampled(made, 100, only_x)
    files = Simulation(table).under(layout(Curve.SORT, "y"))
    assert (files.bounds["y",].lower == UNKNOWN_LOW).all()
    assert opened(table, files, between("y", 5, 5)).files.tolist() == [8]
    none = sampled(made, 100, y="none")
    assert opened(none, Simulation(none).under(layout(Curve.SORT, "y")), between("y", 5, 5)).files.tolist() == [8]


def test_files_without_bounds_are_estimated_from_the_sample() -> None:
    made = in_files({"x": np.arange(8_000)}, 8)
    table = sampled(made, 100, made.listed().drop_columns(["readable_metrics"]))
    simulation = Simulation(table)
    assert opened(table, simulation.now(), between("x", 1_500, 1_500)).files.tolist() == [1]
    assert not table.has_bounds


def test_nulls_and_nan_are_where_the_layout_puts_them() -> None:
    x = pa.array([None if value < 0.5 else value for value in RNG.random(8_000).tolist()])
    y = pa.array([float("nan") if value < 0.01 else value for value in RNG.random(8_000).tolist()])
    made = in_files({"x": x, "y": y}, 8)
    table = sampled(made, 200)
    files = Simulation(table).under(layout(Curve.SORT, "x"))
    by_x, by_y = files.bounds["x",], files.bounds["y",]
    assert by_x.all_null.sum() in (3, 4)
    assert opened(table, files, (Filter("x", Operator.IS_NULL),)).files.tolist() in ([4], [5])
    assert opened(table, files, between("x", 0.9, 0.91)).files.max() <= 2
    # NaN may be in any file that is not ordered by the column: none has an upper bound, as the executor writes it.
    assert (by_y.upper == UNKNOWN_HIGH).all()
    assert (Simulation(table).under(layout(Curve.SORT, "y")).bounds["y",].upper == UNKNOWN_HIGH).sum() == 1


def test_a_column_of_nothing_but_null_is_no_obstacle() -> None:
    made = in_files({"x": RNG.permutation(8_000), "n": pa.nulls(8_000, pa.int64())}, 8)
    table = sampled(made, 100)
    files = Simulation(table).under(layout(Curve.SORT, "n"))
    assert opened(table, files, between("n", 1, 2), (Filter("n", Operator.IS_NULL),)).files.tolist()[0] == 0


def test_one_value_that_fills_half_of_the_table_fills_half_of_its_files() -> None:
    x = np.where(RNG.random(16_000) < 0.5, 7, RNG.integers(0, 10**6, 16_000))
    table = sampled(in_files({"x": x}, 16), 200)
    files = Simulation(table).under(layout(Curve.SORT, "x"))
    found = opened(table, files, between("x", 7, 7), between("x", 500_000, 500_000))
    assert 8 <= found.files[0] <= 9
    assert found.files[1] <= 2
    assert found.bytes[0] == pytest.approx(8 * FILE_BYTES, rel=0.15)


def test_rows_of_files_that_are_not_listed_count_for_nothing() -> None:
    made = in_files({"x": np.arange(8_000)}, 8)
    listed = made.listed()
    table = sampled(made, 100, listed.slice(1))
    assert (table.rows + table.lost_rows, len(table.files.rows)) == (800, 7)
    assert table.lost_rows > 0


def test_files_without_rows_are_none() -> None:
    made = in_files({"x": np.arange(8_000)}, 8)
    listed = made.listed().set_column(1, "record_count", [[0] + [1_000] * 7])
    assert len(sampled(made, 100, listed).files.rows) == 7


def test_input_without_its_columns_is_refused() -> None:
    made = in_files({"x": np.arange(800)}, 2)
    flat = flat_columns(made.sample(100))
    with pytest.raises(Rejected, match="no column record_count"):
        table_sample(flat, made.listed().drop_columns(["record_count"]), [], {})
    del flat["_file",]  # type: ignore[attr-defined]  # a dictionary, in truth
    with pytest.raises(Rejected, match="no column _file"):
        table_sample(flat, made.listed(), [], {})
