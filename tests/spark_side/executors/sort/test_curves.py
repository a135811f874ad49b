"""The curves, against what defines them and against the plainest way to compute them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright_spark.executors.sort.curves import Grid, hilbert, zorder
from tests.cases import each_case


def whole_grid(columns: int, bits: int) -> Grid:
    return [side.ravel() for side in np.meshgrid(*[np.arange(1 << bits)] * columns)]


@each_case(
    ("columns", "bits"), [(2, 1), (2, 2), (2, 6), (2, 7), (3, 1), (3, 3), (3, 4), (3, 5), (4, 1), (4, 3), (4, 4)]
)
def test_the_hilbert_curve_goes_through_every_cell_by_single_steps(columns: int, bits: int) -> None:
    grid = whole_grid(columns, bits)
    keys = hilbert(grid, bits)
    order = np.argsort(keys)
    assert np.array_equal(keys[order], np.arange(1 << (columns * bits)))
    steps = sum(np.abs(np.diff(side[order])) for side in grid)
    assert np.all(steps == 1)


def points(columns: int, bits: int) -> st.SearchStrategy[list[tuple[int, ...]]]:
    return st.lists(st.tuples(*[st.integers(0, (1 << bits) - 1)] * columns), min_size=1, max_size=50)


@pytest.mark.parametrize(("columns", "bits"), [(2, 16), (3, 16), (4, 15), (2, 11), (3, 13), (4, 14)])
@given(data=st.data())
def test_the_hilbert_curve_is_skillings(columns: int, bits: int, data: st.DataObject) -> None:
    where = data.draw(points(columns, bits))
    keys = hilbert([np.array(side) for side in zip(*where, strict=True)], bits)
    assert keys.tolist() == [skilling(point, bits) for point in where]


@pytest.mark.parametrize(("columns", "bits"), [(1, 16), (2, 16), (3, 16), (4, 15), (5, 12), (9, 7)])
@given(data=st.data())
def test_zorder_interleaves_bits(columns: int, bits: int, data: st.DataObject) -> None:
    where = data.draw(points(columns, bits))
    keys = zorder([np.array(side) for side in zip(*where, strict=True)])
    assert keys.tolist() == [interleaved(point, bits) for point in where]


def interleaved(point: tuple[int, ...], bits: int) -> int:
    key = 0
    for bit in range(bits - 1, -1, -1):
        for coordinate in point:
            key = key << 1 | coordinate >> bit & 1
    return key


def skilling(point: tuple[int, ...], bits: int) -> int:
    """AxestoTranspose of the paper, and the transposed bits read out."""
    sides = list(point)
    for q in (1 << bit for bit in range(bits - 1, 0, -1)):
        for place in range(len(sides)):
            if sides[place] & q:
                sides[0] ^= q - 1
            else:
                exchanged = (sides[0] ^ sides[place]) & (q - 1)
                sides[0] ^= exchanged
                sides[place] ^= exchanged
    for place in range(1, len(sides)):
        sides[place] ^= sides[place - 1]
    turned = 0
    for q in (1 << bit for bit in range(bits - 1, 0, -1)):
        if sides[-1] & q:
            turned ^= q - 1
    return interleaved(tuple(side ^ turned for side in sides), bits)
