"""Cuts: where in the order one file ends and the next begins, so that all get about the same number of rows.

Equal rows stay together, unless they fill more than an eighth of a file on both sides of a cut: then they are dealt out
to both in the proportion that makes the files equal, by a number that each row brings along.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from icewright_spark.executors.sort.scale import Codes

Ties: TypeAlias = Callable[[Codes], npt.NDArray[np.int64]]
"""For the rows of these numbers a number below :data:`TIES`, by which equal rows are dealt out."""

TIES: Final = 1 << 32
KEEP_TOGETHER: Final = 0.125
"""Of a file: equal rows are not divided to even out less than this."""

_STEP: Final = 2 * TIES
"""From one distinct cut to the next on the line of positions; equal rows lie in 1..TIES after their cut."""


@dataclass(frozen=True, slots=True)
class Cuts:
    """``thresholds``, ascending, one per cut: a row lies behind a cut if its position is not below the threshold."""

    thresholds: Codes

    @classmethod
    def of(cls, ranks: Codes, files: int) -> tuple[Cuts, Codes]:
        """From the sample's ranks, ascending, equal for equal rows. Also the index of a row for each distinct cut.

        Without a sample there is no cut: everything goes into the first file.
        """
        if not len(ranks):
            return cls(np.zeros(0, np.int64)), np.zeros(0, np.int64)
        aims = np.arange(1, files) * (len(ranks) / files)
        cut_ranks = ranks[np.minimum(aims.astype(np.int64), len(ranks) - 1)]
        first, last = np.searchsorted(ranks, cut_ranks, "left"), np.searchsorted(ranks, cut_ranks, "right")
        spare = KEEP_TOGETHER * len(ranks) / files
        shares = np.where(
            aims - first <= spare, 0.0, np.where(last - aims <= spare, 1.0, (aims - first) / (last - first))
        )
        rows, numbers = np.unique(first, return_inverse=True)
        return cls(numbers * _STEP + 1 + (shares * TIES).astype(np.int64)), rows.astype(np.int64)

    @classmethod
    def at(cls, starts: Sequence[tuple[int, float]]) -> Cuts:
        """Where each file but the first begins: in which of the distinct cuts, and after which share of its rows."""
        found = [number * _STEP + (1 + int(share * TIES) if share else 0) for number, share in starts]
        return cls(np.array(found, np.int64))

    def cells(self, codes: Codes, ties: Ties) -> npt.NDArray[np.int32]:
        """The cell of each row from its code against the distinct cuts: ``2 * i`` before cut i, one more on it."""
        positions = (codes >> 1) * _STEP
        equal = np.flatnonzero(codes & 1)
        if len(equal):
            positions[equal] += 1 + ties(equal)
        return np.searchsorted(self.thresholds, positions, "right").astype(np.int32)
