"""What is predicted of lookups, against the bounds of the files that rows are really placed into."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from icewright.actions.rewrite_data_files.layouts.slices import opened
from icewright.model.iceberg.layouts import COLUMN_CURVES, Curve
from icewright_spark.executors.sort.cells import cells_of
from tests.builders.orders import field, layout
from tests.cases import each_case

ROWS, LOOKUPS = 60_000, 500


@each_case("curve", COLUMN_CURVES)
@each_case(("columns", "files"), [(2, 8), (2, 23), (2, 64), (3, 32), (4, 32)])
@each_case("skewed", [False, True])
def test_lookups_open_as_many_files_as_predicted(curve: Curve, columns: int, files: int, *, skewed: bool) -> None:
    rng = np.random.default_rng(3)
    rows = [rng.lognormal(0, 3, ROWS) if skewed else rng.random(ROWS) for _ in range(columns)]
    found = lookups_of(curve, rows, files)
    for (mean, worst), said in zip(found, opened(curve, [None] * columns, files), strict=True):
        assert mean == pytest.approx(said.mean, rel=0.2)
        assert worst <= said.worst * 1.3 + 1


@pytest.mark.parametrize("curve", [Curve.HILBERT, Curve.ZORDER])
def test_columns_of_few_values_as_well(curve: Curve) -> None:
    rng = np.random.default_rng(3)
    rows = [rng.integers(0, 4, ROWS).astype(float), rng.random(ROWS)]
    for (mean, _), said in zip(lookups_of(curve, rows, 32), opened(curve, [4, None], 32), strict=True):
        assert mean == pytest.approx(said.mean, rel=0.2)


def lookups_of(curve: Curve, rows: list[Any], files: int) -> list[tuple[float, int]]:
    """How many files a lookup of a value that there is opens, by the bounds of the files: the mean, and the most."""
    names = "abcd"[: len(rows)]
    table = pa.table(dict(zip(names, rows, strict=True)))
    cells = cells_of(table.slice(0, 20_000), layout(curve, *[field()] * len(rows)), files)
    placed = np.asarray(cells.place(table.combine_chunks().to_batches()[0]).column("cell"))
    found = []
    for column in rows:
        bounds = [(column[placed == file].min(), column[placed == file].max()) for file in range(files)]
        counts = [sum(low <= value <= high for low, high in bounds) for value in column[-LOOKUPS:]]
        found.append((sum(counts) / LOOKUPS, max(counts)))
    return found
