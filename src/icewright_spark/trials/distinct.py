"""How many distinct values there are among more rows than were sampled (Chao et al. 2014)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.int64]


def combined(columns: Sequence[Codes]) -> Codes:
    """A number for each row, the same for two rows exactly where all their codes are."""
    found = np.unique(columns[0], return_inverse=True)[1].reshape(-1)
    for column in columns[1:]:
        own = np.unique(column, return_inverse=True)[1].reshape(-1)
        found = np.unique(found * (int(own.max(initial=0)) + 1) + own, return_inverse=True)[1].reshape(-1)
    return np.asarray(found, np.int64)


def distinct_among(counts: npt.NDArray[np.float64], rows: int, some: float) -> float:
    """The distinct values among ``some`` rows, where each value came ``counts`` times among ``rows``.

    Of fewer rows than were sampled, exactly what a part of the sample has on the mean; beyond, by how many values came
    once and twice, which is at least what there is on the mean.
    """
    if some <= rows:
        return float((1 - (1 - some / rows) ** counts).sum())
    once, twice = float((counts == 1).sum()), float((counts == 2).sum())  # noqa: PLR2004 - as it says
    unseen = once * (once - 1) / (2 * (twice + 1))
    if unseen <= 0:
        return float(len(counts))
    return float(len(counts) + unseen * (1 - max(0.0, 1 - once / (rows * unseen)) ** (some - rows)))
