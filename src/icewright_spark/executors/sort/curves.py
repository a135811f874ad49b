"""Curves through a grid: one number for each cell of a grid of 2 to 4 columns (z-order: of any number).

Both go by tables. That of the Hilbert curve is :func:`~icewright.model.iceberg.layouts.hilbert_table`, made larger:
from state and the next bits of all coordinates to output and next state, it takes 12 bits at a step.
"""

from __future__ import annotations

from functools import cache
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from icewright.model.iceberg.layouts import KEY_BITS, MAX_COORDINATE_BITS, hilbert_table

Grid: TypeAlias = list[npt.NDArray[np.int64]]
"""The coordinates, one array per column."""

HILBERT_COLUMNS: Final = (2, 4)
"""The fewest and the most."""

_STEP_BITS: Final = 12


def zorder(grid: Grid) -> npt.NDArray[np.int64]:
    """Bits interleaved, the first column's ahead. Coordinates have at most 16 bits, in all at most 63."""
    spread = _spread(len(grid))
    keys = np.zeros(len(grid[0]), np.int64)
    for place, coordinates in enumerate(reversed(grid)):
        keys |= spread[coordinates] << np.int64(place)
    return keys


def hilbert(grid: Grid, bits: int) -> npt.NDArray[np.int64]:
    """The distance along the Hilbert curve. Coordinates have ``bits``, at most 16, in all at most 63."""
    columns = len(grid)
    outputs, states = _steps(columns)
    step = _STEP_BITS // columns
    rounds = -(-bits // step)
    spare = rounds * step - bits
    spread = _spread(columns)
    keys, state = np.zeros(len(grid[0]), np.int64), np.zeros(len(grid[0]), np.int64)
    low = np.int64((1 << step) - 1)
    for number in range(rounds - 1, -1, -1):
        at = state << np.int64(_STEP_BITS)
        for place, coordinates in enumerate(reversed(grid)):
            digits = ((coordinates << np.int64(spare)) >> np.int64(number * step)) & low
            at |= spread[digits] << np.int64(place)
        keys = (keys << np.int64(_STEP_BITS)) | outputs[at]
        state = states[at]
    return keys >> np.int64(spare * columns)


@cache
def _spread(columns: int) -> npt.NDArray[np.int64]:
    """For each number of 16 bits: its bits, each ``columns`` places from the next; those beyond 63 are dropped."""
    numbers, spread = np.arange(1 << MAX_COORDINATE_BITS, dtype=np.int64), np.zeros(1 << MAX_COORDINATE_BITS, np.int64)
    for bit in range(min(MAX_COORDINATE_BITS, -(-KEY_BITS // columns))):
        spread |= ((numbers >> np.int64(bit)) & np.int64(1)) << np.int64(bit * columns)
    spread.flags.writeable = False
    return spread


@cache
def _steps(columns: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Output and next state, by state and 12 bits of input: as many bits of each coordinate, the upper ones ahead."""
    outputs, states = (np.array(table) for table in hilbert_table(columns))
    inputs, sides = np.arange(1 << _STEP_BITS), 1 << columns
    state, output = np.repeat(np.arange(len(outputs)), len(inputs)), np.zeros(len(outputs) * len(inputs), np.int64)
    digits = np.tile(inputs, len(outputs))
    for number in range(_STEP_BITS // columns - 1, -1, -1):
        digit = (digits >> (number * columns)) % sides
        output = output * sides + outputs[state, digit]
        state = states[state, digit]
    for table in (output, state):
        table.flags.writeable = False
    return output, state
