"""How much room rows take under a layout is predicted from a sample, against files that are written with all rows."""

from __future__ import annotations

import io
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from icewright.model.iceberg.layouts import Curve, LayoutExpression
from icewright_spark.executors.sort.cells import cells_of
from icewright_spark.trials.predicates import flat_columns
from icewright_spark.trials.simulation import Ends, Simulation
from icewright_spark.trials.sizes import MISSED, Sizes, layout_by_place, shares_of_columns
from icewright_spark.trials.table_sample import table_sample
from tests.spark_side.trials.trial_tables import FILE_BYTES, Made, in_files, layout

ROWS, FILES = 40_000, 10


def made() -> Made:
    """Rows as they arrive: time goes on, a city is in a region, amounts are anything."""
    rng = np.random.default_rng(11)
    city = rng.zipf(1.4, ROWS) % 2_000
    arrived = np.arange(ROWS) * 20_000_000 + rng.exponential(60_000_000, ROWS).astype(np.int64)
    return in_files(
        {
            "at": pa.array(arrived + 1_790_000_000_000_000).view(pa.timestamp("us", tz="UTC")),
            "city": pa.array(city),
            "region": pa.array([f"region-{number % 17:02}" for number in city.tolist()]),
            "amount": pa.array(rng.lognormal(3, 1, ROWS)),
            "count": pa.array(rng.integers(0, 1 << 40, ROWS)),
        },
        FILES,
    )


def written(rows: Any) -> Mapping[str, int]:
    """The bytes of each column in a file as Iceberg's writer makes it: Zstandard, level 3.

    Dictionaries only where they are smaller.
    """
    short = [name for name in rows.column_names if len(pc.unique(rows[name])) < rows.num_rows / 2]
    out = io.BytesIO()
    pq.write_table(
        rows, out, compression="zstd", compression_level=3, use_dictionary=short, row_group_size=rows.num_rows
    )
    group = pq.read_metadata(out).row_group(0)
    return {name: group.column(place).total_compressed_size for place, name in enumerate(rows.column_names)}


def bytes_of(table: Made, orders: list[npt.NDArray[np.int64]]) -> dict[str, int]:
    found = [written(table.rows.take(pa.array(order))) for order in orders]
    return {name: sum(file[name] for file in found) for name in table.rows.column_names}


def bytes_now(table: Made) -> dict[str, int]:
    return bytes_of(table, [np.flatnonzero(table.placed == file) for file in range(table.files)])


def bytes_under(table: Made, by: LayoutExpression) -> dict[str, int]:
    """All rows placed and ordered as the shuffle does it."""
    columns = table.rows.select([column.path[0] for column in by.columns]).combine_chunks()
    found = cells_of(columns, layout_by_place(by), table.files).place(columns.to_batches()[0])
    cells, keys = np.asarray(found["cell"]), np.asarray(found["key"])
    values = [np.asarray(pc.rank(columns.column(place), tiebreaker="dense")) for place in range(columns.num_columns)]
    order = np.lexsort([*values[::-1], cells] if by.curve is Curve.SORT else [keys, cells])
    return bytes_of(table, [order[cells[order] == cell] for cell in np.unique(cells)])


def listed(table: Made, sizes: Mapping[str, int] | None = None) -> Any:
    """The list of files; of each column its bytes, if they are given."""
    files = table.listed()
    if sizes is None:
        return files
    metrics = files["readable_metrics"].combine_chunks()
    columns = []
    for place, name in enumerate(table.rows.column_names):
        parts = metrics.field(place)
        names = [parts.type.field(number).name for number in range(parts.type.num_fields)]
        each = pa.array(np.full(table.files, sizes[name] // table.files))
        columns.append(pa.StructArray.from_arrays([*parts.flatten(), each], [*names, "column_size"]))
    place = files.column_names.index("readable_metrics")
    return files.set_column(
        place, "readable_metrics", pa.StructArray.from_arrays(columns, list(table.rows.column_names))
    )


def everywhere(table: Made) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    return np.array([table.files]), np.array([True])


@pytest.fixture(scope="module")
def table() -> Made:
    return made()


@pytest.fixture(scope="module")
def now(table: Made) -> dict[str, int]:
    return bytes_now(table)


@pytest.mark.parametrize(
    "by",
    [
        layout(Curve.SORT, "city"),
        layout(Curve.SORT, "region", "city"),
        layout(Curve.SORT, "amount"),
        layout(Curve.SORT, "at"),
        layout(Curve.HILBERT, "city", "at"),
        layout(Curve.ZORDER, "region", "amount"),
    ],
    ids=str,
)
@pytest.mark.parametrize("rows_per_file", [80, 400])
def test_sizes_are_predicted_as_they_are_written(
    table: Made, now: dict[str, int], by: LayoutExpression, rows_per_file: int
) -> None:
    sizes = Sizes.of(table.sample(rows_per_file), listed(table, now))
    assert sizes is not None
    there = sum(bytes_under(table, by).values()) / sum(now.values())
    assert sizes.ratio(by, *everywhere(table)) == pytest.approx(there, rel=MISSED)


def of_one(table: Made, name: str, by: LayoutExpression) -> float:
    """The ratio of a table of which all bytes are in one column."""
    paths = [(column,) for column in table.rows.column_names]
    rows = table_sample(flat_columns(table.sample(80)), listed(table).drop_columns(["readable_metrics"]), paths, {})
    return Sizes(rows, {(name,): 1.0}).ratio(by, *everywhere(table))


def test_what_is_ordered_takes_less_room_and_what_loses_its_order_more(table: Made) -> None:
    by_city, by_amount = layout(Curve.SORT, "city"), layout(Curve.SORT, "amount")
    assert of_one(table, "city", by_city) < 0.4
    assert of_one(table, "region", by_city) < 0.4  # it follows from the city
    assert of_one(table, "at", by_amount) > 1.2
    for name in ("region", "amount", "count"):
        assert of_one(table, name, layout(Curve.SORT, "at")) == pytest.approx(1, abs=0.03)


def test_columns_count_by_their_bytes_and_others_as_they_are(table: Made, now: dict[str, int]) -> None:
    by = layout(Curve.SORT, "city")
    half = {name: 100 if name in ("city", "amount") else 0 for name in now}
    sizes = Sizes.of(table.sample(80), listed(table, half))
    assert sizes is not None
    ratio = sizes.ratio(by, *everywhere(table))
    assert ratio == pytest.approx(1 + (of_one(table, "city", by) + of_one(table, "amount", by) - 2) / 2)
    # Of a column that no row was read of, nothing is known.
    sizes = Sizes.of(table.sample(80).drop_columns(["amount"]), listed(table, half))
    assert sizes is not None
    assert sizes.ratio(by, *everywhere(table)) == pytest.approx(1 + (of_one(table, "city", by) - 1) / 2)


def test_where_nothing_is_known_rows_take_as_much_room(table: Made, now: dict[str, int]) -> None:
    by, sample = layout(Curve.SORT, "city"), table.sample(80)
    assert Sizes.of(sample, listed(table)) is None
    assert Sizes.of(sample, listed(table).drop_columns(["readable_metrics"])) is None
    assert Sizes.of(sample, listed(table, dict.fromkeys(now, 0))) is None
    without = Sizes.of(sample.drop_columns(["city"]), listed(table, now))
    few = Sizes.of(sample.slice(0, 79), listed(table, now))
    nowhere = Sizes.of(sample, listed(table, now))
    assert without is not None
    assert few is not None
    assert nowhere is not None
    assert without.ratio(by, *everywhere(table)) == few.ratio(by, *everywhere(table)) == 1.0
    assert nowhere.ratio(by, np.array([table.files]), np.array([False])) == 1.0


def test_no_more_columns_count_than_have_a_hundredth_of_the_bytes(table: Made, now: dict[str, int]) -> None:
    """Else rows with all of 2,000 columns would be read, and need more memory than the driver has, for nothing."""
    assert sum(shares_of_columns(listed(table, now)).values()) == pytest.approx(1, abs=0.02)
    assert shares_of_columns(listed(table).drop_columns(["readable_metrics"])) == {}
    size = {"column_size": 10}
    wide = {f"c{number}": size for number in range(2_000)}
    assert shares_of_columns(pa.table({"readable_metrics": [wide]})) == {}
    one = pa.table({"readable_metrics": [{**wide, "note": {"column_size": 20_000}}]})
    assert shares_of_columns(one) == {("note",): 0.5}


def test_columns_of_all_types_with_nulls_have_a_size() -> None:
    rows = 4_000
    rng = np.random.default_rng(12)
    some = [None if number % 7 == 0 else number for number in rng.integers(0, 50, rows).tolist()]
    values = {
        "flag": pa.array([None if one is None else one > 20 for one in some]),
        "day": pa.array(some, pa.int32()).cast(pa.date32()),
        "small": pa.array(some, pa.int32()),
        "real": pa.array(some, pa.float32()),
        "price": pa.array([None if one is None else Decimal(one) for one in some], pa.decimal128(12, 2)),
        "text": pa.array([None if one is None else f"{one:05}" for one in some]),
        "raw": pa.array([None if one is None else bytes([one]) * 16 for one in some], pa.binary(16)),
        "bytes": pa.array([None if one is None else bytes([one]) for one in some], pa.binary()),
        "nothing": pa.nulls(rows, pa.int64()),
    }
    table = in_files(values, 5)
    for name in values:
        assert 0.001 < of_one(table, name, layout(Curve.SORT, "small")) < 1.1
        assert of_one(table, name, layout(Curve.SORT, "nothing")) == pytest.approx(1, abs=0.05)


def test_files_that_are_simulated_have_the_size_and_its_error_and_others_none(table: Made, now: dict[str, int]) -> None:
    partitions = ["a"] * (FILES - 1) + ["b"]
    files = listed(table, now).append_column("partition", pa.array(partitions))
    sizes, by = Sizes.of(table.sample(100), files), layout(Curve.SORT, "city")
    assert sizes is not None
    sample = table_sample(flat_columns(table.sample(100)), files, [("city",)], {})
    simulation = Simulation(sample, sizes)
    ratio = sizes.ratio(by, np.array([FILES - 1, 1]), np.array([True, False]))
    assert ratio < 0.99
    for ends, missed in ((Ends.SEEN, -MISSED), (Ends.FINITE, 0.0), (Ends.EXPONENTIAL, MISSED)):
        found = simulation.under(by, ends).bytes
        assert found.sum() == pytest.approx((FILES - 1) * FILE_BYTES * (ratio + missed) + FILE_BYTES)
    assert simulation.now().bytes.sum() == FILES * FILE_BYTES
    assert Simulation(sample).under(by).bytes.sum() == pytest.approx(FILES * FILE_BYTES)
