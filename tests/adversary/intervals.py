"""How sure a share is."""

from __future__ import annotations

from math import sqrt


def wilson(hits: int, tries: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's interval of a share, at 95 percent."""
    share, spread = hits / tries, z * z / tries
    middle, half = share + spread / 2, z * sqrt(share * (1 - share) / tries + spread / tries / 4)
    return max(0.0, (middle - half) / (1 + spread)), (middle + half) / (1 + spread)
