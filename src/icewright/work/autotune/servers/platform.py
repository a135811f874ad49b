"""What autotuning needs of a platform that starts and ends servers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from icewright.core.reasons import Reason


@dataclass(frozen=True, slots=True)
class Resize:
    """That there are to be ``after`` servers, where ``before`` are seen; the number makes a repetition harmless."""

    decision_id: str
    before: int
    after: int
    reason: Reason


class Platform(Protocol):
    """Where servers run."""

    def resize(self, wanted: Resize) -> str:
        """Ask for a number of servers; what was asked of whom, for people.

        Raises :class:`~icewright.core.errors.OutcomeUnknown` where it may have been done and nobody heard of it;
        every other :class:`~icewright.core.errors.IcewrightError` says that it was not.
        """
