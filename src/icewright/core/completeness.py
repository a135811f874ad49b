"""Whether all of something is known: a type of its own, since what was not seen must never look like nothing.

Whatever may one day be deleted is what is left of a listing when everything that a table needs is subtracted. A set of
needed files that is too small would then cost live data. So what was put together from many reads says by its type
whether it is all there is; a function that needs all of it takes :class:`Complete` and cannot be given anything else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar

from icewright.core.reasons import Reason

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

GAPS_KEPT_MAX: Final = 100
"""A damaged table may have millions; the number of all is kept."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that could not be read, or was not understood: ``what`` is a file, a field or a ref."""

    what: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Complete(Generic[T_co]):
    """All of it. Made by :meth:`Gaps.judge` alone."""

    value: T_co


@dataclass(frozen=True, slots=True)
class Partial(Generic[T_co]):
    """A part of it, and why there may be more. ``gaps`` are the first ones found of ``gaps_count``.

    Its field is called otherwise than that of :class:`Complete`, so that nothing takes the one for the other.
    """

    found: T_co
    gaps: tuple[Gap, ...]
    gaps_count: int


Known: TypeAlias = Complete[T] | Partial[T]


class Gaps:
    """Gathers what is missing while something is put together."""

    def __init__(self) -> None:
        self._kept: list[Gap] = []
        self._count = 0

    def add(self, gap: Gap) -> None:
        """One more."""
        self._count += 1
        if len(self._kept) < GAPS_KEPT_MAX:
            self._kept.append(gap)

    def judge(self, found: T) -> Known[T]:
        """What was found: complete if and only if there was no gap."""
        return Partial(found, tuple(self._kept), self._count) if self._count else Complete(found)
