"""Answers to keyed requests in memory: the plainest statement of the port."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from icewright.core.clock import Clock
from icewright.core.times import Instant
from icewright.web.idempotent_answers import AnotherRequest, Answer, Answered, Begun, First, KeyedRequest, UnderWay


@dataclass(slots=True)
class _Kept:
    fingerprint: str
    until: Instant
    answer: Answer | None = None


class MemoryAnswers:
    """An :class:`~icewright.web.idempotent_answers_port.Answers` that is gone with the process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, str], _Kept] = {}

    def begin(self, request: KeyedRequest, lifetime_ms: int) -> Begun:
        """See the port."""
        with self._lock:
            now = self._clock.now()
            self._kept = {name: one for name, one in self._kept.items() if one.until > now}
            name = request.principal, request.key
            found = self._kept.get(name)
            if found is None:
                self._kept[name] = _Kept(request.fingerprint, now + lifetime_ms)
                return First()
            if found.fingerprint != request.fingerprint:
                return AnotherRequest()
            return UnderWay() if found.answer is None else Answered(found.answer)

    def keep(self, request: KeyedRequest, answer: Answer) -> None:
        """See the port."""
        with self._lock:
            found = self._kept.get((request.principal, request.key))
            if found is not None and found.fingerprint == request.fingerprint:
                found.answer = answer

    def forget(self, request: KeyedRequest) -> None:
        """See the port."""
        with self._lock:
            found = self._kept.get((request.principal, request.key))
            if found is not None and found.fingerprint == request.fingerprint:
                del self._kept[request.principal, request.key]
