"""What speaks HTTP with strangers: how many of them at once, and for how long each may take to ask.

Whoever reaches the port may open connections and say nothing. So there are never more connections than descriptors are
left for, behind a reserve for the store, the catalogs and the files; the one that has waited for the longest, of the
peer that has most, makes room for the next; and when all of them are at work, the next one is told so, but for
``healthz``, which a few more may ask. TLS is begun here as well, and not by uvicorn: a connection counts from the
moment on in which it is accepted. Why so: ``docs/decisions``, 0062.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import ssl
import time
from collections import Counter
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, cast

import structlog
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from icewright.core.server_urls import is_loopback
from icewright.identity.gate import HEALTH
from icewright.web.problems import Problem, problem_response
from icewright.web.transport import LOCAL, Transport

_log = structlog.get_logger("icewright.server")

CONNECTIONS_MAX: Final = 1_000
DESCRIPTORS_RESERVED: Final = 160
"""For the store (15), catalogs and storages, files, and connections that are about to be answered or closed."""
DESCRIPTORS_MAX: Final = 65_536
ACCEPTED_AT_ONCE: Final = 32
"""Connections that the event loop accepts before it looks at any of them."""
WAITING_MAX: Final = 1_024
"""Connections that the kernel keeps until they are accepted."""
END_S: Final = 3
"""How long requests have that are at work when the server ends."""
BEYOND_MAX: Final = 16
"""Connections beyond the limit that are answered all the same: `healthz`, and for all else that there are too many."""
LOG_INTERVAL_S: Final = 10.0
"""How often the log tells of connections that were closed, and of accepts that failed."""
_SWEEPS_TICKS: Final = 10
"""Uvicorn ticks ten times a second."""
_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


@dataclass(frozen=True, slots=True)
class Limits:
    """How many connections there may be, and how long each may take for what only its peer can do.

    A handshake, and a head until it is complete; a body; and the bytes of an answer that the peer does not take.
    """

    connections: int = CONNECTIONS_MAX
    handshake_s: float = 10.0
    head_s: float = 10.0
    body_s: float = 30.0
    stuck_s: float = 60.0

    @property
    def of_peer(self) -> int:
        """How many of one address there may be. Programs of this machine, and trusted proxies, share one each."""
        return max(1, self.connections // 2)


def descriptors() -> int:
    """Raise the limit of descriptors as far as this process may; how many it has then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS_MAX if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS_MAX)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return DESCRIPTORS_MAX if soft == resource.RLIM_INFINITY else soft


def limits_of(connections_max: int) -> Limits:
    """So many connections, or as many as there are descriptors for."""
    return Limits(connections=max(BEYOND_MAX, min(connections_max, descriptors() - DESCRIPTORS_RESERVED)))


class Connection(H11Protocol):
    """A connection from the moment on in which it is accepted."""

    def __init__(self, guard: Guard, **uvicorns: Any) -> None:
        super().__init__(**uvicorns)
        self.guard, self.raw, self.peer = guard, cast("asyncio.Transport", None), ""
        self.is_open, self.early = False, b""
        self.phase: tuple[object, ...] = ()
        self.since = time.monotonic()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn gives a transport
        """Count it; then TLS, where there is any, and HTTP."""
        self.raw = transport
        self.peer = str((transport.get_extra_info("peername") or ("",))[0])
        if not self.guard.admits(self):
            transport.abort()
        elif self.guard.tls is None:
            self._open(transport)
        else:
            transport.pause_reading()
            self.guard.upgrading.add(task := self.loop.create_task(self._upgrade(self.guard.tls)))
            task.add_done_callback(self.guard.upgrading.discard)

    def data_received(self, data: bytes) -> None:
        """See uvicorn. What came within the last packet of the handshake waits for the end of it."""
        if self.is_open:
            super().data_received(data)
        else:
            self.early += data

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self.guard.forget(self)
        if self.is_open:
            super().connection_lost(exc)

    def waits_for(self) -> str | None:
        """What only its peer can do next; None while the server is at work for it."""
        if not self.is_open:
            return "handshake"
        if self.cycle is None or self.cycle.response_complete:
            return "head"
        if self.cycle.more_body and not self.cycle.response_started:
            return "body"
        return "stuck" if self.flow.write_paused else None

    def is_late(self, now_s: float) -> bool:
        """Whether its peer has taken too long for that."""
        waits_for = self.waits_for()
        phase = (waits_for, self.cycle)
        if phase != self.phase:
            self.phase, self.since = phase, now_s
        limit_s = None if waits_for is None else getattr(self.guard.limits, f"{waits_for}_s")
        return limit_s is not None and now_s - self.since > limit_s

    def _open(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self.is_open, early = True, self.early
        if early:
            self.data_received(early)

    async def _upgrade(self, tls: ssl.SSLContext) -> None:
        try:
            secured = await self.loop.start_tls(
                self.raw, self, tls, server_side=True, ssl_handshake_timeout=self.guard.limits.handshake_s
            )
        except OSError:  # a stranger that speaks no TLS, takes too long, or is gone
            secured = None
        if secured is None or secured.is_closing():
            self.guard.forget(self)
            self.raw.abort()
        else:
            self._open(secured)


@dataclass(eq=False)
class Guard:
    """Counts connections, and closes what takes too long. For the event loop's thread."""

    app: ASGIApp
    limits: Limits
    tls: ssl.SSLContext | None = None
    transport: Transport = LOCAL
    peers: dict[str, dict[Connection, None]] = field(default_factory=dict)
    """By peer, in the order in which they came."""
    beyond: dict[Connection, None] = field(default_factory=dict)
    upgrading: set[asyncio.Task[None]] = field(default_factory=set)
    asking: Counter[str] = field(default_factory=Counter)
    """Requests under way that came by a proxy, by who asks."""
    closed: Counter[str] = field(default_factory=Counter)
    """Since the log told of it."""
    logged_s: float = 0.0

    @property
    def open_count(self) -> int:
        """How many connections there are, without those beyond the limit."""
        return sum(len(of_peer) for of_peer in self.peers.values())

    def admits(self, one: Connection) -> bool:
        """Whether a connection may stay, for which another one may have to go."""
        of_peer = self.peers.get(one.peer, {})
        shares_address = is_loopback(one.peer) or self.transport.is_proxy(one.peer)
        if not shares_address and len(of_peer) >= self.limits.of_peer:
            has_room = self._evicts(of_peer)
        else:
            has_room = self.open_count < self.limits.connections or self._makes_room()
        if has_room:
            self.peers.setdefault(one.peer, {})[one] = None
            return True
        if len(self.beyond) >= BEYOND_MAX and not self._evicts(self.beyond):
            self.closed["refused"] += 1
            return False
        self.beyond[one] = None
        one.app = self._full
        return True

    def forget(self, one: Connection) -> None:
        """A connection is gone."""
        self.beyond.pop(one, None)
        of_peer = self.peers.get(one.peer, {})
        of_peer.pop(one, None)
        if not of_peer:
            self.peers.pop(one.peer, None)

    def sweep(self) -> None:
        """Close what takes too long, and tell of it now and then."""
        now_s = time.monotonic()
        for one in [*(one for of_peer in self.peers.values() for one in of_peer), *self.beyond]:
            if one.is_late(now_s):
                self._close(one, "late")
        if self.closed and now_s - self.logged_s >= LOG_INTERVAL_S:
            _log.warning("connections closed", **self.closed, open=self.open_count, most=self.limits.connections)
            self.closed.clear()
            self.logged_s = now_s

    def on_trouble(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """The event loop's trouble. It tells of each accept that fails, thousands a second."""
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in _EXHAUSTED:
            self.closed["not_accepted"] += 1
        else:
            loop.default_exception_handler(context)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The application; of requests that come by a proxy, each client has so many at once."""
        client = None if scope["type"] != "http" else self.transport.forwarded_client(scope)
        if client is None:
            await self.app(scope, receive, send)
        elif self.asking[client] >= self.limits.of_peer:
            self.closed["refused"] += 1
            await self._refuse(scope, receive, send)
        else:
            self.asking[client] += 1
            try:
                await self.app(scope, receive, send)
            finally:
                self.asking[client] -= 1
                if not self.asking[client]:
                    del self.asking[client]

    async def _full(self, scope: Scope, receive: Receive, send: Send) -> None:
        """What a connection beyond the limit is answered."""
        if scope["type"] == "http" and (scope["method"], scope["path"]) == HEALTH:
            await self.app(scope, receive, send)
        else:
            self.closed["refused"] += 1
            await self._refuse(scope, receive, send)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        problem = Problem(HTTPStatus.SERVICE_UNAVAILABLE, "too-many-connections", "too many connections", "ask again")
        await problem_response(problem, scope["path"], {"Connection": "close"})(scope, receive, send)

    def _makes_room(self) -> bool:
        """Close a connection that only waits, of the peer with most of them."""
        return any(self._evicts(of_peer) for of_peer in sorted(self.peers.values(), key=len, reverse=True))

    def _evicts(self, of_peer: dict[Connection, None]) -> bool:
        """Close the oldest connection of a peer that only waits for it; whether there was one."""
        found = next((one for one in of_peer if one.waits_for() is not None), None)
        if found is not None:
            self._close(found, "evicted")
        return found is not None

    def _close(self, one: Connection, why: str) -> None:
        self.closed[why] += 1
        self.forget(one)
        one.raw.abort()


class WebServer(uvicorn.Server):
    """Uvicorn's, with a guard over its connections."""

    def __init__(self, config: uvicorn.Config, guard: Guard) -> None:
        super().__init__(config)
        self._guard = guard

    async def startup(self, sockets: list[Any] | None = None) -> None:
        """See uvicorn."""
        asyncio.get_running_loop().set_exception_handler(self._guard.on_trouble)
        await super().startup(sockets)
        for listening in sockets or []:
            listening.listen(WAITING_MAX)  # what the loop accepts at once is fewer than what may wait for it

    async def on_tick(self, counter: int) -> bool:
        """See uvicorn."""
        if counter % _SWEEPS_TICKS == 0:
            self._guard.sweep()
        return await super().on_tick(counter)


def web_server(
    app: ASGIApp, tls: ssl.SSLContext | None = None, limits: Limits | None = None, transport: Transport = LOCAL
) -> WebServer:
    """What speaks HTTP for the application, within TLS where there is any.

    Forwarded headers are :mod:`icewright.web.transport`'s business alone: by itself uvicorn believes whoever is here.
    """
    logging.getLogger("uvicorn.error").addFilter(_is_no_strangers_noise)
    guard = Guard(app, limits or Limits(), tls, transport)

    class Guarded(Connection):
        def __init__(self, **uvicorns: Any) -> None:
            super().__init__(guard, **uvicorns)

    config = uvicorn.Config(
        guard,
        http=Guarded,
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=END_S,
        proxy_headers=False,
        backlog=ACCEPTED_AT_ONCE,
    )
    return WebServer(config, guard)


def _is_no_strangers_noise(record: logging.LogRecord) -> bool:
    """Whether a line is none that a stranger can have written as often as it likes."""
    return record.getMessage() != "Invalid HTTP request received."
