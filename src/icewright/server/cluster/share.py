"""What this server looks at: its share of the tables, as it is by now, and what it is at in it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final

import structlog
from sqlalchemy import Engine

from icewright.core.servers import CLUSTER_DEAD_MS, CLUSTER_HEARTBEAT_MS, TableShare
from icewright.core.times import Instant
from icewright.model.iceberg.names import TableName
from icewright.server.cluster.coordinator import LEFT, Bucket
from icewright.server.cluster.differences import differences
from icewright.server.cluster.port import Coordinator
from icewright.store.scope_filters import bucket_of
from icewright.store.transactions import Held, holding

_log = structlog.get_logger("icewright.server")


class Part:
    """A loop's part of the work: all of it, unless there are other servers."""

    leads = True
    """Whether it does what must be one's."""

    @property
    def is_present(self) -> bool:
        """Whether it may still begin anything."""
        return True

    @property
    def tables(self) -> TableShare | None:
        """The tables that it looks at; None for all."""
        return None

    def working(self, name: TableName) -> AbstractContextManager[bool]:
        """Whether it may work on the table within the block: what is written there is fenced."""
        del name
        return nullcontext(True)

    def owns(self, name: TableName) -> bool:
        """Whether the table is in a bucket of this server."""
        del name
        return True

    def as_server(self) -> AbstractContextManager[None]:
        """Write within the block what is of no table."""
        return nullcontext()


ALL_TABLES: Final = Part()
"""The part of the only server."""


class Share:
    """This server's session, its buckets as it last read them, and the tables that it is at. Safe for several threads.

    ``backend`` is the process of the database that serves the server's own connection.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        server_id: str,
        backend: Callable[[], int],
        *,
        heartbeat_ms: int = CLUSTER_HEARTBEAT_MS,
        dead_ms: int = CLUSTER_DEAD_MS,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.coordinator, self._server_id, self._backend = coordinator, server_id, backend
        self._heartbeat_s, self._monotonic_s = heartbeat_ms / 1000, monotonic_s
        self._away_s = max(heartbeat_ms, dead_ms - 2 * heartbeat_ms) / 1000
        """A store that did not answer for so long may not have heard of others either."""
        self._patience_ms = max(0, dead_ms - heartbeat_ms)
        """Who lives says so at its next poll when the store answers again: it is given a heartbeat for that."""
        self._lock = threading.Lock()
        self._session: int | None = None
        self._told: tuple[float, int] | None = None
        """When this server beat last, and by which connection."""
        self._version: int | None = None
        self._own: dict[int, Bucket] = {}
        self._leaving: dict[int, Bucket] = {}
        """Buckets that are to go to others as soon as nothing in them is worked on."""
        self._at: dict[TableName, int] = {}
        """The tables that are worked on, each with its bucket."""
        self._present: SharedPart | None = None
        self._since: Instant | None = None
        """Since when the store answers again; None where it always did."""
        self._kept_s = monotonic_s()
        self._compared: int | None = None
        """The version of the assignment at which configurations were compared: whoever comes changes it."""
        self.differing: Mapping[str, tuple[str, ...]] = {}
        """In which sections the configurations of others differ, by server, as this one last compared as the leader."""

    @property
    def session(self) -> int | None:
        """The session of this server; None before it joined, and when it has ended."""
        return self._session

    @property
    def buckets(self) -> frozenset[int]:
        """The buckets in which this server may begin something."""
        with self._lock:
            return frozenset(self._own)

    def part(self, *, leads: bool, is_new: Callable[[TableName], bool] = lambda _: False) -> SharedPart:
        """The part of a loop; that of one before begins nothing any more.

        ``is_new`` tells a leader whether a table has no record.
        """
        part = SharedPart(self, leads=leads, is_new=is_new)
        with self._lock:
            self._present = part
        return part

    def is_present(self, part: SharedPart) -> bool:
        """Whether a part is the latest one, of a session that has not ended as far as this server knows."""
        with self._lock:
            return self._present is part

    def keep(self) -> None:
        """Join, beat, hand over, and read what is this server's by now, as far as it is time. Raises ``Unavailable``.

        A session that was ended by others is given up, with all that is worked on in it; then another one begins.
        """
        now_s, backend = self._monotonic_s(), self._backend()
        session, told = self._session, self._told
        if session is None:
            session = self.coordinator.join(self._server_id, backend)
            _log.info("joined", server=self._server_id, session=session)
            with self._lock:
                self._session, self._told, self._version = session, (now_s, backend), None
        elif told is None or told[1] != backend or now_s - told[0] >= self._heartbeat_s:
            if not self.coordinator.beat(session, backend):
                _log.error("declared dead", server=self._server_id, session=session)
                self._give_up()
                return
            self._told = now_s, backend
        self._read(session)
        if now_s - self._kept_s > self._away_s:
            self._since = self.coordinator.now() - self._patience_ms
        self._kept_s = now_s
        self._hand_over(session)

    def assign(self, engine: Engine) -> None:
        """Assign the buckets, as the server that leads and writes by ``engine``."""
        for why, count in self.coordinator.assign(engine, self._session, since=self._since).items():
            _log.info("buckets assigned", why=why, buckets=count)
        if self._compared is None or self._compared != self._version:
            self._compare()

    def _compare(self) -> None:
        version = self._version
        found = differences(self.coordinator.sessions(), self._server_id)
        for server, sections in found.items():
            if self.differing.get(server) != sections:
                _log.warning("a server has another configuration than the leader", server=server, sections=sections)
        self.differing, self._compared = found, version

    def leave(self, why: str = LEFT) -> None:
        """Give up the session: others look at its tables at once. Raises ``Unavailable``; then it is fenced later."""
        session = self._session
        self._give_up()
        if session is not None:
            self.coordinator.leave(session, why)

    def _give_up(self) -> None:
        with self._lock:
            self._session, self._present, self._version = None, None, None
            self._own, self._leaving, self._at = {}, {}, {}

    def _read(self, session: int) -> None:
        version = self.coordinator.version()
        if version == self._version:
            return
        found = self.coordinator.held(session)
        with self._lock:
            self._own = {one.bucket: one for one in found if one.target is None}
            self._leaving = {one.bucket: one for one in found if one.target is not None}
        self._version = version

    def _hand_over(self, session: int) -> None:
        with self._lock:
            busy = set(self._at.values())
            idle = [one for one in self._leaving.values() if one.bucket not in busy]
        if idle:
            self.coordinator.hand_over(session, idle)
            self._version = None

    def begin(self, part: SharedPart, name: TableName, bucket: int) -> tuple[Held | None, bool]:
        """Begin to work on a table: what to write by, and whether that may be; None without a lease of its bucket."""
        with self._lock:
            if self._present is not part or name in self._at or self._session is None:
                return None, False
            own = self._own.get(bucket)
            if own is None and not part.leads:
                return None, False
            self._at[name] = bucket
            return (None if own is None else Held(self._session, bucket, own.epoch)), True

    def end(self, part: SharedPart, name: TableName) -> None:
        """Work on a table no more."""
        with self._lock:
            if part.session == self._session:
                self._at.pop(name, None)


class SharedPart(Part):
    """The part of a loop that is one of several; see :meth:`Share.part`."""

    def __init__(self, share: Share, *, leads: bool, is_new: Callable[[TableName], bool]) -> None:
        self._share, self.leads, self._is_new = share, leads, is_new
        self.session = share.session

    @property
    def is_present(self) -> bool:
        """See the base."""
        return self._share.is_present(self)

    @property
    def tables(self) -> TableShare | None:
        """See the base."""
        return TableShare(self._share.buckets)

    @contextmanager
    def working(self, name: TableName) -> Iterator[bool]:
        """See the base. A leader works without a bucket's lease on tables that have no record."""
        held, may = self._share.begin(self, name, bucket_of(name))
        if not may:
            yield False
            return
        try:
            if held is not None:
                with holding(held):
                    yield True
            else:
                yield self._is_new(name)
        finally:
            self._share.end(self, name)

    def owns(self, name: TableName) -> bool:
        """See the base."""
        return bucket_of(name) in self._share.buckets

    @contextmanager
    def as_server(self) -> Iterator[None]:
        """See the base."""
        with holding(Held(self.session or 0)):
            yield
