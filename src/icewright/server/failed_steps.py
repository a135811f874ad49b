"""What is told of a round's steps that are to be tried again: each, but of a store that is away not all of them."""

from __future__ import annotations

import time
from collections.abc import Callable

import structlog

from icewright.core.errors import IcewrightError, StoreTaken, StoreUnavailable
from icewright.core.outage_log import Outage

_log = structlog.get_logger("icewright.loop")


class FailedSteps:
    """A store that is away fails every step of every round: that is told at once, and once a minute."""

    def __init__(self, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._monotonic_s, self._outage, self._has_failed = monotonic_s, Outage(), False

    def begin_turn(self) -> None:
        """Another round begins: where no step of the last one failed by the store, the store is back."""
        if not self._has_failed:
            self._outage.over()
        self._has_failed = False

    def tell(self, step: str, what: str, error: IcewrightError) -> None:
        """A step is to be tried again. A store that refuses is not away: that is told each time."""
        times: int | None = 1
        if isinstance(error, StoreUnavailable) and not isinstance(error, StoreTaken):
            self._has_failed = True
            times = self._outage.failed(self._monotonic_s())
        if times is not None:
            _log.warning("put off", step=step, what=what, detail=error.message, times=times)
