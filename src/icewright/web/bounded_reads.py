"""Answers that take a long read: few at a time, each for so long at most, and none for a client that has gone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

import anyio
import anyio.to_thread
from fastapi import Response
from starlette.types import Receive, Scope, Send

from icewright.core.errors import IcewrightError, Unavailable

READS_MAX: Final = 2
"""Long reads of one server at the same time; others wait for their turn."""
READ_S: Final = 10.0
"""How long one goes on before it answers with what it has."""
WAIT_S: Final = 10.0
"""How long one waits for its turn: behind catalogs that hang, nobody would begin a read that nobody waits for."""


class Until:
    """When a read has to end: asked between its steps, and true once its client has gone or its time is over."""

    def __init__(self, seconds: float = READ_S) -> None:
        self._seconds, self._gone = seconds, threading.Event()
        self.begin()

    def begin(self) -> None:
        """From now on its time counts."""
        self._end_at = time.monotonic() + self._seconds

    def __call__(self) -> bool:
        """Whether to end now, with what there is."""
        return self._gone.is_set() or time.monotonic() >= self._end_at

    @property
    def is_left(self) -> bool:
        """Whether nobody waits for the answer any more."""
        return self._gone.is_set()

    def leave(self) -> None:
        """Nobody waits for the answer any more."""
        self._gone.set()


class Reads:
    """All long reads of one server process; ``seconds`` and ``wait_s`` are what tests shorten."""

    def __init__(self, seconds: float = READ_S, wait_s: float = WAIT_S) -> None:
        self.seconds, self.wait_s = seconds, wait_s
        self.turns = anyio.CapacityLimiter(READS_MAX)


class BoundedRead(Response):
    """The answer of ``read``, which is called in a thread of its own when it is its turn."""

    def __init__(self, reads: Reads, read: Callable[[Until], Response]) -> None:
        super().__init__()
        self._reads, self._read = reads, read

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Raises what ``read`` raises, and ``Unavailable`` where its turn does not come."""
        answer: Response | None = None
        failure: IcewrightError | None = None
        until = Until(self._reads.seconds)
        latest_s = time.monotonic() + self._reads.wait_s

        def in_turn() -> Response:
            if time.monotonic() > latest_s:
                raise Unavailable("other long reads take longer than expected", hint="ask again in some seconds")
            until.begin()
            return self._read(until)

        async with anyio.create_task_group() as group:
            group.start_soon(self._until_gone, receive, until, group.cancel_scope)
            try:
                answer = await anyio.to_thread.run_sync(in_turn, limiter=self._reads.turns)
            except IcewrightError as error:  # out of the group, which would wrap it up
                failure = error
            group.cancel_scope.cancel()
        if until.is_left:
            return
        if failure is not None:
            raise failure
        if answer is not None:
            await answer(scope, receive, send)

    @staticmethod
    async def _until_gone(receive: Receive, until: Until, scope: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        until.leave()  # the thread is waited for: it ends at its next step
        scope.cancel()
