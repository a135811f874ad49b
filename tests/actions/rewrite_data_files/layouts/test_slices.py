"""Slices of a layout, against every cell of a grid put in order by the plainest means."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise, product
from math import ceil, floor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.actions.rewrite_data_files.layouts.depth import Opened
from icewright.actions.rewrite_data_files.layouts.slices import FILES_WALKED, opened
from icewright.model.iceberg.layouts import COLUMN_CURVES, Curve
from tests.cases import each_case
from tests.spark_side.executors.sort.test_curves import interleaved, skilling

KEYS: dict[Curve, Callable[[tuple[int, ...], int], Any]] = {
    Curve.HILBERT: skilling,
    Curve.ZORDER: lambda point, _: interleaved(point, 16),
    Curve.SORT: lambda point, _: point,
}


def brute_force(curve: Curve, values: tuple[int, ...], files: int) -> list[float]:
    """The mean number of files that a value of each column is in; each combination of values is a row."""
    bits = min(16, 63 // len(values))
    middle = [[((2 * value + 1) << bits) // (2 * number) for value in range(number)] for number in values]
    rows = sorted(
        product(*map(range, values)),
        key=lambda row: KEYS[curve](tuple(middle[place][value] for place, value in enumerate(row)), bits),
    )
    bounds = []
    for late in (1, -1):  # a cut is a little too late as often as too early
        cuts = [Fraction(32 * file + late, 32 * files) * len(rows) for file in range(1, files)]
        for start, end in pairwise([Fraction(0), *cuts, Fraction(len(rows))]):
            its = rows[floor(start) : ceil(end)]
            bounds.append([(min(column), max(column)) for column in zip(*its, strict=True)])
    return [
        sum(low <= value <= high for low, high in (one[place] for one in bounds) for value in range(number))
        / (2 * number)
        for place, number in enumerate(values)
    ]


@pytest.mark.parametrize("curve", COLUMN_CURVES)
@given(st.tuples(st.integers(1, 12), st.integers(1, 12)), st.integers(1, 20))
def test_files_are_counted_as_by_brute_force(curve: Curve, values: tuple[int, ...], files: int) -> None:
    found = opened(curve, values, files)
    assert [one.mean for one in found] == pytest.approx(brute_force(curve, values, files))
    assert all(1 <= one.worst <= files and one.mean <= one.worst for one in found)


@each_case("curve", COLUMN_CURVES)
def test_three_columns_as_by_brute_force(curve: Curve) -> None:
    for values, files in (((4, 8, 2), 8), ((3, 5, 7), 6), ((8, 8, 8), 64)):
        assert [one.mean for one in opened(curve, values, files)] == pytest.approx(brute_force(curve, values, files))


@each_case(("columns", "files", "mean"), [(2, 4, 2), (2, 64, 8), (2, 256, 16), (3, 64, 16), (4, 256, 64)])
def test_every_column_of_a_curve_gets_its_share(columns: int, files: int, mean: float) -> None:
    for curve, scattered in ((Curve.HILBERT, 1.15), (Curve.ZORDER, 1.8)):
        found = [one.mean for one in opened(curve, [None] * columns, files)]
        assert mean <= min(found) <= max(found) <= scattered * mean


def test_the_first_columns_of_z_order_get_more_where_files_are_no_power() -> None:
    first, second = opened(Curve.ZORDER, [None] * 2, 8)
    assert 1.5 * first.mean < second.mean < 2 * first.mean
    one, other = opened(Curve.HILBERT, [None] * 2, 8)
    assert one.mean == pytest.approx(other.mean, rel=0.1)


def test_a_sort_is_for_its_first_column_and_for_the_next_where_that_has_few_values() -> None:
    found = opened(Curve.SORT, [None, None], 16)
    assert [(round(one.mean, 2), one.worst) for one in found] == [(1, 2), (16, 16)]
    found = opened(Curve.SORT, [2, None], 16)
    assert [one.mean for one in found] == pytest.approx([8.5, 3], abs=0.5)


def test_one_value_is_in_all_files() -> None:
    assert opened(Curve.HILBERT, [1, 1], 4) == (Opened(4, 4), Opened(4, 4))


def test_very_many_files_go_by_the_power_law() -> None:
    many = 4 * FILES_WALKED
    for curve, columns in ((Curve.HILBERT, 2), (Curve.ZORDER, 8), (Curve.SORT, 2)):
        for some, more in zip(
            opened(curve, [None] * columns, FILES_WALKED), opened(curve, [None] * columns, many), strict=True
        ):
            assert some.mean <= more.mean <= 4 * some.mean
            assert more.worst <= many
    assert opened(Curve.SORT, [2, None], many)[0].mean == many / 2
    assert opened(Curve.HILBERT, [None] * 2, many)[0].mean == pytest.approx(many**0.5, rel=0.2)
