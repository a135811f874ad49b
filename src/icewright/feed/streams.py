"""Server-sent events: what comes in its order, as the feed of the store does, tailed for each client by any server.

An idle stream costs nothing: all streams of a source share one look at its end, twice a second at most. There
are at most so many streams, their reads have few threads, and who does not read is cut off.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Protocol, cast

import anyio
import anyio.to_thread
import structlog
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from icewright.core.codec import to_json
from icewright.core.errors import Unavailable
from icewright.feed.views import fact_view
from icewright.model.access.permissions import EVERYTHING, Permission, Principal
from icewright.model.access.redacted_text import Words
from icewright.model.events.feed import FeedFilter
from icewright.ports.feed import Feed
from icewright.web.deps import PRINCIPAL
from icewright.web.problems import Problem, problem_response
from icewright.web.redaction import shown_to

_log = structlog.get_logger("icewright.api")

STREAMS_MAX: Final = 100
"""Streams of one server at the same time."""
EACH_MAX: Final = 10
"""Streams of one principal among them."""
KEPT_BACK: Final = 20
"""Streams among them that are left to principals who may read everything: those who run the place."""
THREADS_MAX: Final = 4
"""Reads of the store for all of them at the same time."""
LOOKED_EVERY_S: Final = 0.5
BEAT_S: Final = 15.0
"""How long a stream is silent at most: proxies close what says nothing. So often it is asked who still may read it."""
LIFE_S: Final = 900.0
"""How long a stream lasts: whoever asks again is let in again, or not any more."""
SLOW_S: Final = 10.0
"""How long a client may take to make room for what is sent to it."""
FACTS_AT_ONCE: Final = 200
RETRY_MS: Final = 3_000
"""How soon a client asks again whose stream has ended."""

MEDIA_TYPE: Final = "text/event-stream"


@dataclass
class Pace:
    """How often streams look, beat and lose patience, in seconds; tests are in a hurry."""

    look_s: float = LOOKED_EVERY_S
    beat_s: float = BEAT_S
    slow_s: float = SLOW_S
    life_s: float = LIFE_S
    streams_max: int = STREAMS_MAX
    each_max: int = EACH_MAX
    kept_back: int = KEPT_BACK


@dataclass(frozen=True, slots=True)
class Event:
    """What is sent: its number, which grows, its kind, and a document."""

    number: int
    kind: str
    document: Any


class Source(Protocol):
    """What is streamed. Raises ``Unavailable`` while the store is away; nothing is lost by that."""

    @property
    def name(self) -> str:
        """The address of the list that has the same, page by page."""
        ...

    def last(self) -> int:
        """The number of the latest event."""
        ...

    def forgotten_through(self) -> int:
        """The greatest number of what is not kept any more."""
        ...

    def after(self, number: int, limit: int) -> tuple[Sequence[Event], int]:
        """At most so many events after a number, and how far that is."""
        ...


class FeedSource:
    """The facts of the feed that somebody wants and may see."""

    name = "/api/v1/feed"

    def __init__(self, feed: Feed, only: FeedFilter) -> None:
        self._feed, self._only = feed, only
        self.last, self.forgotten_through = feed.last, feed.forgotten_through

    def after(self, number: int, limit: int) -> tuple[Sequence[Event], int]:
        """See the port."""
        page = self._feed.after(number, limit, self._only)
        return [
            Event(told.sequence, told.fact.fact.value, to_json(fact_view(told))) for told in page.told
        ], page.through


class Streams:
    """All streams of one server process; ``is_ending`` tells them when it ends."""

    def __init__(self, feed: Feed, words: Words, pace: Pace | None = None) -> None:
        self.feed, self.words, self.pace = feed, words, pace or Pace()
        self.is_ending: Callable[[], bool] = lambda: False
        self.open = 0
        self._of: Counter[str] = Counter()
        self._threads = anyio.CapacityLimiter(THREADS_MAX)
        self._ends: dict[str, tuple[int, float]] = {}

    def enter(self, caller: Principal) -> str:
        """Count a stream of a caller's, until :meth:`leave`; or why there can be none now."""
        everywhere = EVERYTHING in caller.scopes(Permission.READ)
        if self._of[caller.name] >= self.pace.each_max:
            return f"{caller.name} has {self.pace.each_max} streams already"
        if self.open >= self.pace.streams_max - (0 if everywhere else self.pace.kept_back):
            return "there are too many streams already"
        self.open += 1
        self._of[caller.name] += 1
        return ""

    def leave(self, caller: Principal) -> None:
        """A stream has ended."""
        self.open -= 1
        self._of[caller.name] -= 1
        self._of = +self._of

    async def read(self, call: Callable[[], Any]) -> Any:
        """What a call that reads the store gives, by one of the few threads for that."""
        return await anyio.to_thread.run_sync(call, limiter=self._threads)

    async def last(self, source: Source) -> int:
        """The end of a source, as it was a moment ago; it is the same for whoever streams from it."""
        last, looked_at = self._ends.get(source.name, (0, -self.pace.look_s))
        if time.monotonic() - looked_at >= self.pace.look_s:
            self._ends[source.name] = last, time.monotonic()  # others wait for their turn rather than for this answer
            last = await self.read(source.last)
            self._ends[source.name] = last, time.monotonic()
        return last


class EventStream(Response):
    """The events after a number, as they come, until the client goes, does not read, or the server ends.

    ``stands`` tells whether its client would still be let in: who is not any more is told nothing more.
    """

    media_type = MEDIA_TYPE

    def __init__(self, streams: Streams, source: Source, after: int | None, stands: Callable[[], bool]) -> None:
        super().__init__()
        self._streams, self._source, self._after, self._stands = streams, source, after, stands

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, for as long as it takes."""
        caller = cast("Principal", scope[PRINCIPAL])
        if refusal := self._streams.enter(caller):
            hint = f"read `GET {self._source.name}` page by page"
            full = Problem(HTTPStatus.SERVICE_UNAVAILABLE, Unavailable.code, refusal, hint)
            await problem_response(full, scope["path"])(scope, receive, send)
            return
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(_until_gone, receive, group.cancel_scope)
                await self._tell(send, caller)
                group.cancel_scope.cancel()
        finally:
            self._streams.leave(caller)

    async def _tell(self, send: Send, caller: Principal) -> None:
        headers = [(b"content-type", MEDIA_TYPE.encode()), (b"x-accel-buffering", b"no")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        pace, streams = self._streams.pace, self._streams
        position, opening = await self._begin()
        is_read = await self._send(send, opening)
        silent_since = begun_at = asked_at = time.monotonic()
        while is_read and not streams.is_ending() and time.monotonic() - begun_at < pace.life_s:
            if time.monotonic() - asked_at >= pace.beat_s:
                asked_at = time.monotonic()
                if not await self._may_stay():
                    break
            text, through = await self._news(position, caller)
            if text or time.monotonic() - silent_since >= pace.beat_s:
                silent_since = time.monotonic()
                # The number of a beat is remembered by clients, though it comes with no event.
                is_read = await self._send(send, text or f": all is well\nid: {through}\n\n")
            if through == position:
                await anyio.sleep(pace.look_s)
            position = through
        if is_read:
            with anyio.move_on_after(pace.slow_s):
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        else:
            _log.warning("stream cut off", detail=f"its client did not read for {pace.slow_s:g} s")

    async def _may_stay(self) -> bool:
        """Whether the client's credentials still stand; while the store is away nobody knows, and nothing is told."""
        with suppress(Unavailable):
            return bool(await self._streams.read(self._stands))
        return True

    async def _begin(self) -> tuple[int, str]:
        """Where the stream begins, and its first words: with a ``gap`` where facts that were asked for are not kept."""
        opening, source = f"retry: {RETRY_MS}\n\n", self._source
        while True:
            with suppress(Unavailable):
                last, forgotten = await self._streams.read(lambda: (source.last(), source.forgotten_through()))
                break
            if self._streams.is_ending():
                return 0, opening
            await anyio.sleep(self._streams.pace.look_s)
        if self._after is None:
            return last, f"{opening}id: {last}\n\n"
        if forgotten <= self._after <= last:
            return self._after, opening
        position = forgotten if self._after < forgotten else last
        gap = json.dumps({"asked_after": self._after, "begins_after": position})
        return position, f"{opening}id: {position}\nevent: gap\ndata: {gap}\n\n"

    async def _news(self, position: int, caller: Principal) -> tuple[str, int]:
        """What is to be sent of what came after a number, and how far that is; nothing while the store is away."""
        with suppress(Unavailable):
            if await self._streams.last(self._source) > position:
                events, through = await self._streams.read(lambda: self._source.after(position, FACTS_AT_ONCE))
                words = self._streams.words
                return "".join(_on_the_wire(one, shown_to(caller, words, one.document)) for one in events), through
        return "", position

    async def _send(self, send: Send, text: str) -> bool:
        """Whether the client made room for it in time."""
        with anyio.move_on_after(self._streams.pace.slow_s) as waited:
            await send({"type": "http.response.body", "body": text.encode("ascii"), "more_body": True})
        return not waited.cancelled_caught


async def _until_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    """End the stream when its client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


def _on_the_wire(event: Event, document: Any) -> str:
    """An event with what its client may see of its document: one line of data in ASCII, so that no name can end it."""
    return f"id: {event.number}\nevent: {event.kind}\ndata: {json.dumps(document, separators=(',', ':'))}\n\n"
