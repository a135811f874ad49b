"""Fetches events from a source into the inbox: acknowledged behind the inbox's transaction, hence at least once."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final

import structlog

from icewright.core.errors import OutcomeUnknown, Unavailable
from icewright.events.intake import Intake
from icewright.events.sources.port import EventSource, Fetched
from icewright.model.events.events import CommitEvent
from icewright.model.events.messages import EVENTS_MAX

_log = structlog.get_logger("icewright.events")

FETCH_S: Final = 1.0
"""How long a source may wait for something to come, and an end of the server for the source."""
PAUSE_S: Final = 5.0
"""How long a source, or the store, is left alone that did not answer."""


class Listener:
    """One source, listened to by a thread of its own. Nothing that comes in, and no failure, ends it."""

    def __init__(self, source: EventSource, intake: Intake) -> None:
        self._source, self._intake = source, intake

    def run(self, stop: threading.Event) -> None:
        """Listen until told to stop; then close the source."""
        try:
            while not stop.is_set():
                stop.wait(self._step(stop))
        finally:
            self._source.close()

    def _step(self, stop: threading.Event) -> float:
        """Fetch once, and see it into the inbox; how long to rest, in seconds."""
        try:
            return self.listen(stop)
        except (Unavailable, OutcomeUnknown) as error:
            _log.warning("source away", source=self._source.name, detail=error.message)
        except Exception:  # noqa: BLE001 - the thread's outermost edge: whatever a message brings about never stops it
            _log.exception("listening failed", source=self._source.name)
        return PAUSE_S

    def listen(self, stop: threading.Event) -> float:
        """Fetch once, and see it into the inbox, however long the store is away; how long to rest, in seconds."""
        fetched = self._source.fetch(EVENTS_MAX, FETCH_S)
        events = self._usable(fetched)
        while not self._taken(events):
            if stop.wait(PAUSE_S):
                return 0.0  # not acknowledged: it comes again
        if fetched.events or fetched.passed_over or fetched.lost:
            self._source.acknowledge()
            return 0.0
        return self._source.idle_s

    def _taken(self, events: Sequence[CommitEvent]) -> bool:
        """Whether they are in the inbox; what was fetched is not fetched again by this object, so it is held on to."""
        try:
            self._intake.take(events, self._source.channel, self._source.name)
        except (Unavailable, OutcomeUnknown) as error:
            _log.warning("inbox away", source=self._source.name, detail=error.message)
            return False
        except Exception as error:  # noqa: BLE001 - one that the store cannot hold, or a defect: never in others' way
            if len(events) == 1:
                self._pass_over("event-refused", 1, f"{type(error).__name__}: {error}")
                return True
            taken = [self._taken([event]) for event in events]
            return all(taken)
        return True

    def _usable(self, fetched: Fetched) -> Sequence[CommitEvent]:
        if fetched.lost:
            _log.warning("events lost", source=self._source.name, events=fetched.lost, detail="the sweep finds them")
            self._intake.pass_over("event-lost", fetched.lost)
        if fetched.passed_over:
            self._pass_over("message-of-no-known-shape", fetched.passed_over, fetched.problem)
        events = [event for event in fetched.events if self._intake.knows(event.table_name.catalog)]
        strangers = len(fetched.events) - len(events)
        if strangers:
            self._pass_over("event-of-unknown-catalog", strangers, "no catalog of that name is configured")
        return events

    def _pass_over(self, what: str, count: int, detail: str) -> None:
        _log.warning("messages passed over", source=self._source.name, what=what, messages=count, detail=detail[:500])
        self._intake.pass_over(what, count)
