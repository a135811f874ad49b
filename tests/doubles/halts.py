"""Halts of the queue in memory, for the simulation."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from icewright.audit.acting import acting
from icewright.core.clock import Clock
from icewright.core.errors import NotAllowed
from icewright.feed.task_events import fact_of_halt, fact_of_resume
from icewright.model.work.halts import HALTS_MAX, Halt, NewHalt, Part, require_why
from tests.doubles.feed import MemoryFeed


class MemoryHalts:
    """A :class:`~icewright.ports.store.Halts` that is gone with the process, under the lock of its task store."""

    def __init__(self, clock: Clock, feed: MemoryFeed, lock: threading.RLock) -> None:
        self._clock, self._feed, self._lock = clock, feed, lock
        self._halts: dict[tuple[str, str, str], Halt] = {}

    def present(self) -> Sequence[Halt]:
        with self._lock:
            return [halt for _, halt in sorted(self._halts.items())]

    def halt(self, new: NewHalt) -> Halt:
        with self._lock:
            before = self._halts.get(new.part.key)
            if before is not None and (before.state, before.why) == (new.state, new.why):
                return before
            if before is None and len(self._halts) >= HALTS_MAX:
                raise NotAllowed(f"there are {HALTS_MAX:,} halts already", hint="pause catalogs or groups instead")
            halt = Halt(new.part, new.state, new.why, acting(), self._clock.now())
            self._halts[new.part.key] = halt
            self._feed.append(fact_of_halt(halt))
            return halt

    def resume(self, part: Part, why: str) -> Halt | None:
        require_why(why)
        with self._lock:
            before = self._halts.pop(part.key, None)
            if before is not None:
                self._feed.append(fact_of_resume(before, acting(), why))
            return before
