"""The Hilbert curve as a table of states: what the planner walks and the shuffle computes keys by.

Skilling's loop over bits (*Programming the Hilbert curve*, AIP Conf. Proc. 707, 2004) turns and mirrors the lower bits
by what the upper ones are, so what it has done so far is one of a few states.
"""

from __future__ import annotations

from functools import cache
from typing import Final, TypeAlias

KEY_BITS: Final = 63
"""The most bits of a place on a curve."""
MAX_COORDINATE_BITS: Final = 16

Table: TypeAlias = tuple[tuple[int, ...], ...]
_State: TypeAlias = tuple[tuple[int, ...], int, int]
"""Which coordinate stands where, which of them are mirrored, and whether the output is turned over."""


@cache
def hilbert_table(columns: int) -> tuple[Table, Table]:
    """By state, and by one bit of each coordinate: the same number of bits of the curve, and the next state.

    State 0 is the first; the first coordinate's bit is ahead in what goes in.
    """
    first: _State = tuple(range(columns)), 0, 0
    found, outputs, states = {first: 0}, [], []
    for state in (queue := [first]):  # grows meanwhile
        steps = [_step(state, digits, columns) for digits in range(1 << columns)]
        for _, behind in steps:
            if behind not in found:
                found[behind] = len(found)
                queue.append(behind)
        outputs.append(tuple(output for output, _ in steps))
        states.append(tuple(found[behind] for _, behind in steps))
    return tuple(outputs), tuple(states)


def _step(state: _State, digits: int, columns: int) -> tuple[int, _State]:
    """Skilling's loops for one bit of each coordinate, the first one's ahead in ``digits`` and in what comes out."""
    order, mirrored, turned = list(state[0]), [state[1] >> place & 1 for place in range(columns)], state[2]
    bits = [(digits >> (columns - 1 - order[place]) & 1) ^ mirrored[place] for place in range(columns)]
    for place, bit in enumerate(bits):
        if bit:
            mirrored[0] ^= 1
        else:
            order[0], order[place] = order[place], order[0]
            mirrored[0], mirrored[place] = mirrored[place], mirrored[0]
    output = gray = 0
    for bit in bits:
        gray ^= bit
        output = output << 1 | gray ^ turned
    return output, (tuple(order), sum(bit << place for place, bit in enumerate(mirrored)), turned ^ gray)
