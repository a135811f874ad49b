"""Sessions of servers and the assignment of buckets, in the store; see ``docs/decisions``, 0075.

Each method is one transaction, and instants are by the database's clock.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from sqlalchemy import (
    Connection,
    Engine,
    Executable,
    Select,
    and_,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    text,
    update,
)

from icewright.core.clock import Clock
from icewright.core.errors import CoordinatorUnavailable, InvalidConfiguration, NameTaken, Unreadable
from icewright.core.servers import (
    BUCKETS,
    CLUSTER_DEAD_MS,
    FILES,
    SERVERS_KEPT_MS,
    STORE,
    TABLES,
    CoordinatorLink,
    SaidConfiguration,
    bucket_of_digest,
)
from icewright.core.times import Instant
from icewright.server.cluster.assignment import assign, is_balanced
from icewright.store import documents, transactions
from icewright.store.locks import Lock, LockKind
from icewright.store.schema import counters, listed_tables, tables
from icewright.store.scope_filters import FIRST_DIGITS
from icewright.store.servers_schema import ASSIGNMENT, SESSION_NUMBER, buckets, server_sessions
from icewright.store.transactions import reading, writing

GONE_S: Final = 5.0
"""A server whose connection is gone for so long has died: one that lives makes a new one twice a second."""
DIED: Final = "died"
"""Its connection is gone."""
SILENT: Final = "silent"
"""It did not beat for too long."""
LEFT: Final = "left"
"""It ended in order, or its loop hangs."""
JOINED: Final = "joined"
"""Another server has come."""
FIRST: Final = "first"
"""Nobody had the bucket before."""

_ALONE: Final = (Lock(LockKind.ASSIGNMENT),)
"""Those who change the assignment take turns. Whoever writes for a bucket holds its row, which has a move wait."""
_LIVING: Final = (
    select(server_sessions.c.session).where(server_sessions.c.ended_at.is_(None)).order_by(server_sessions.c.session)
)
_BACKENDS = text("SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid = ANY(:pids)")


@dataclass(frozen=True, slots=True)
class Session:
    """A server's session; ``coordinator`` and ``configuration`` are as it said them when it joined."""

    session: int
    server_id: str
    backend: int
    joined_at: Instant
    seen_at: Instant
    coordinator: str | None = None
    configuration: str | None = None

    @property
    def said(self) -> SaidConfiguration | None:
        """What it says of its configuration; None where that is nothing, or what this release does not understand."""
        try:
            return documents.load_optional(SaidConfiguration, self.configuration)
        except Unreadable:
            return None


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket, its owner's session in this ``epoch``, and the session that it is to be handed over to."""

    bucket: int
    session: int | None
    epoch: int
    target: int | None
    moved_at: Instant
    moved_by: str


@dataclass(frozen=True, slots=True)
class Assigned:
    """The assignment at ``now``, with how many tables each bucket has."""

    now: Instant
    version: int
    sessions: tuple[Session, ...]
    buckets: tuple[Bucket, ...]
    tables: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class _State:
    now: Instant
    sessions: tuple[Session, ...]
    buckets: Mapping[int, Bucket]
    backends: frozenset[int]


# Built once: building a statement takes longer than SQLite needs for it.
_HAS_NOT_ENDED: Final = server_sessions.c.ended_at.is_(None)
_SESSIONS: Final = select(*(server_sessions.c[one.name] for one in fields(Session))).order_by(server_sessions.c.session)
_PRESENT_SESSIONS: Final = _SESSIONS.where(_HAS_NOT_ENDED)
_BUCKETS: Final = select(*(buckets.c[one.name] for one in fields(Bucket)))
_HELD: Final = _BUCKETS.where(buckets.c.session == bindparam("held_by"))
_BEAT: Final = update(server_sessions).where(server_sessions.c.session == bindparam("beating"), _HAS_NOT_ENDED)
_VERSION: Final = select(counters.c.value).where(counters.c.name == ASSIGNMENT)
_NEXT: Final = (
    update(counters)
    .where(counters.c.name == bindparam("counter"))
    .values(value=counters.c.value + 1)
    .returning(counters.c.value)
)
_HAND_OVER: Final = (
    update(buckets)
    .where(
        buckets.c.bucket == bindparam("handed"),
        buckets.c.session == bindparam("held_by"),
        buckets.c.epoch == bindparam("held_in"),
        buckets.c.target.is_not(None),
    )
    .values(session=buckets.c.target, target=None, epoch=bindparam("version"), moved_at=bindparam("now"))
)
_OF_BUCKET: Final = update(buckets).where(buckets.c.bucket == bindparam("moved"))
_GIVE: Final = _OF_BUCKET.values(
    session=bindparam("owner"), target=None, epoch=bindparam("version"), moved_at=bindparam("now")
)
_AIM: Final = _OF_BUCKET.values(target=bindparam("aim"), moved_by=bindparam("why"))
_FORGET: Final = delete(server_sessions).where(server_sessions.c.ended_at < bindparam("before"))


class SqlCoordinator:
    """What servers agree on. ``clock`` stands in for the database's, and ``monotonic_s`` for the system's."""

    def __init__(
        self,
        engine: Engine,
        clock: Clock | None = None,
        *,
        dead_ms: int = CLUSTER_DEAD_MS,
        monotonic_s: Callable[[], float] = time.monotonic,
        said: SaidConfiguration | None = None,
        kind: str = STORE,
        balance: str = TABLES,
    ) -> None:
        """``said`` is what this server says of its configuration; ``kind`` is what tells it which servers are there.

        ``balance`` is of what each server has about as much as the others.
        """
        self._weigh = _files if balance == FILES else _tables
        self._engine, self._clock, self._dead_ms, self._monotonic_s = engine, clock, dead_ms, monotonic_s
        self._said, self._kind = documents.dump_optional(said), kind
        self._gone_since: dict[int, float] = {}
        """Since when the connections of sessions are gone."""
        self._looked_s = monotonic_s()
        self._read: tuple[int, Mapping[int, Bucket]] | None = None
        """The buckets as they were last read, with the version of the assignment, which each change of them changes."""

    @property
    def link(self) -> CoordinatorLink:
        """See the protocol: what is asked of the store is answered, or raises."""
        return CoordinatorLink(STORE)

    def join(self, server_id: str, backend: int) -> int:
        """Begin a session of a server, whose connection ``backend`` of the database serves.

        An earlier session of that name ends, if its connection is gone or the same one. Raises
        :class:`~icewright.core.errors.NameTaken` for one that is another server's,
        :class:`~icewright.core.errors.InvalidConfiguration` while a server with another coordinator lives, and
        :class:`~icewright.core.errors.CoordinatorUnavailable` as long as nobody knows whether one does.
        """
        with writing(self._engine, _ALONE) as connection:
            connection.execute(_LIVING.with_for_update())
            state = self._state(connection)
            before = [one for one in state.sessions if one.server_id == server_id]
            if any(one.backend in state.backends - {backend} for one in before):
                raise NameTaken(
                    f"another server has the name {server_id} in the store",
                    hint="end that one: it may be a copy of this machine",
                )
            ended = dict.fromkeys([one.session for one in before], DIED)
            self._end(connection, {**self._dead_of_others(state, server_id), **ended}, state.now)
            session, now = _next(connection, SESSION_NUMBER), state.now
            row = {"session": session, "server_id": server_id, "backend": backend, "joined_at": now, "seen_at": now}
            said = {"coordinator": self._kind, "configuration": self._said}
            connection.execute(insert(server_sessions).values({**row, **said}))
            return session

    def beat(self, session: int, backend: int) -> bool:
        """Say that a server is there; whether its session has not ended."""
        with writing(self._engine, ()) as connection:
            said = {"beating": session, "seen_at": self._now(connection), "backend": backend}
            return connection.execute(_BEAT, said).rowcount == 1

    def leave(self, session: int, why: str = LEFT) -> None:
        """End a session, and take all buckets from it. Harmless for one that has ended."""
        with writing(self._engine, _ALONE) as connection:
            self._end(connection, {session: why}, self._now(connection))

    def now(self) -> Instant:
        """By the database's clock."""
        with reading(self._engine) as connection:
            return self._now(connection)

    def version(self) -> int:
        """Of the assignment."""
        with reading(self._engine) as connection:
            return _version(connection)

    def held(self, session: int) -> Sequence[Bucket]:
        """The buckets of a session."""
        with reading(self._engine) as connection:
            return [Bucket(*row) for row in connection.execute(_HELD, {"held_by": session})]

    def hand_over(self, session: int, handed: Iterable[Bucket]) -> None:
        """Give buckets to those that they are to go to. Harmless for what is not the session's in that epoch."""
        with writing(self._engine, _ALONE) as connection:
            said = {"held_by": session, "version": _next(connection, ASSIGNMENT), "now": self._now(connection)}
            _execute_all(
                connection, _HAND_OVER, [{**said, "handed": one.bucket, "held_in": one.epoch} for one in handed]
            )

    def assign(self, engine: Engine, own: int | None = None, *, since: Instant | None = None) -> Mapping[str, int]:
        """End the sessions of the dead, and say where buckets are to be; how many that moved, by why.

        ``engine`` is the leader's: what it writes is refused when another server leads. ``own`` is its session, and
        ``since`` since when it hears of the store: what was before that tells of nobody's death.
        """
        with reading(engine) as connection:
            state = self._state(connection, self._known_buckets(connection))
        over = self._over(state.sessions, own)
        dead = {**over, **self._dead(state, own, since)}
        if not dead and _is_settled(state):
            return {}
        with writing(engine, _ALONE) as connection:
            # Nobody beats between what is read and what is written, nor writes for what may end.
            connection.execute(_LIVING.with_for_update())
            state = self._state(connection)
            if self._end(connection, {**over, **self._dead(state, own, since)}, state.now):
                state = self._state(connection)
            return _move(connection, state, self._weigh)

    def sessions(self) -> Sequence[Session]:
        """Those that have not ended."""
        with reading(self._engine) as connection:
            return _sessions(connection)

    def assigned(self) -> Assigned:
        """All of it, for people."""
        with reading(self._engine) as connection:
            version = _version(connection)
            state = self._state(connection, self._known_buckets(connection))
            weights = _tables(connection)
        found = tuple(state.buckets[bucket] for bucket in sorted(state.buckets))
        return Assigned(state.now, version, state.sessions, found, weights)

    def latest_sessions(self) -> Sequence[Session]:
        """Those that have not ended, or did so less than a day ago."""
        with reading(self._engine) as connection:
            since = self._now(connection) - SERVERS_KEPT_MS
            late = or_(server_sessions.c.ended_at.is_(None), server_sessions.c.ended_at > since)
            return _sessions(connection, _SESSIONS.where(late))

    def _now(self, connection: Connection) -> Instant:
        return transactions.now(connection, self._clock)

    def _known_buckets(self, connection: Connection) -> Mapping[int, Bucket]:
        """All buckets, in a transaction that sees one state and changes nothing; read anew if one has changed."""
        version, known = _version(connection), self._read
        if known is None or known[0] != version:
            self._read = known = version, _buckets(connection)
        return known[1]

    def _state(self, connection: Connection, known: Mapping[int, Bucket] | None = None) -> _State:
        """Who is there and has what; ``known`` are the buckets, if they have been read."""
        sessions = _sessions(connection)
        found = _buckets(connection) if known is None else known
        pids = [one.backend for one in sessions]
        if connection.dialect.name == "postgresql":
            pids = list(connection.scalars(_BACKENDS, {"pids": pids}))
        return _State(self._now(connection), sessions, found, frozenset(pids))

    def _over(self, sessions: Iterable[Session], own: int | None) -> Mapping[int, str]:
        """Which of the sessions that were just read are over for others than the store, with why."""
        del sessions, own
        return {}

    def _dead(self, state: _State, own: int | None, since: Instant | None) -> Mapping[int, str]:
        """Which sessions are those of dead servers, with why."""
        now_s, dead = self._monotonic_s(), dict[int, str]()
        if now_s - self._looked_s > GONE_S / 2:  # the database was away, and so were all connections
            self._gone_since = {}
        self._looked_s = now_s
        gone = {one.session for one in state.sessions if one.backend not in state.backends} - {own}
        self._gone_since = {session: self._gone_since.get(session, now_s) for session in gone}
        for one in state.sessions:
            heard_at = one.seen_at if since is None else max(one.seen_at, since)
            if now_s - self._gone_since.get(one.session, now_s) >= GONE_S:
                dead[one.session] = DIED
            elif one.session != own and state.now - heard_at > self._dead_ms:
                dead[one.session] = SILENT
        return dead

    def _dead_of_others(self, state: _State, server_id: str) -> Mapping[int, str]:
        """Which sessions with another coordinator are those of dead servers, with why. Raises as :meth:`join`."""
        others = [
            one for one in state.sessions if one.server_id != server_id and one.coordinator not in (None, self._kind)
        ]
        dead = self._dead(state, None, None) if others else {}
        living = [one for one in others if one.session not in dead]
        for one in living:
            if one.backend in state.backends:
                raise InvalidConfiguration(
                    f"server {one.server_id} of this store has the coordinator {one.coordinator}, and this server "
                    f"{self._kind}: each kind would take the other's servers for dead",
                    hint="give all servers the same [cluster]; to change it, stop all of them, and start them again",
                )
        for one in living:
            raise CoordinatorUnavailable(
                f"server {one.server_id}, which has the coordinator {one.coordinator} and not {self._kind}, may live",
                hint="wait: a server without a connection to the store is dead after some seconds",
            )
        return {one.session: dead[one.session] for one in others}

    def _end(self, connection: Connection, ended: Mapping[int, str], now: Instant) -> bool:
        """End sessions, and forget those that ended long ago; whether any was to end."""
        for session, why in ended.items():
            own = (server_sessions.c.session == session, server_sessions.c.ended_at.is_(None))
            connection.execute(select(server_sessions.c.session).where(*own).with_for_update())
            if connection.execute(update(server_sessions).where(*own).values(ended_at=now, ended_by=why)).rowcount:
                lost = {"session": None, "epoch": _next(connection, ASSIGNMENT), "moved_at": now, "moved_by": why}
                connection.execute(update(buckets).where(buckets.c.session == session).values(**lost))
                connection.execute(update(buckets).where(buckets.c.target == session).values(target=None))
        connection.execute(_FORGET, {"before": now - SERVERS_KEPT_MS})
        return bool(ended)


def _sessions(connection: Connection, which: Select[Any] = _PRESENT_SESSIONS) -> tuple[Session, ...]:
    return tuple(Session(*row) for row in connection.execute(which))


def _buckets(connection: Connection) -> Mapping[int, Bucket]:
    return {row[0]: Bucket(*row) for row in connection.execute(_BUCKETS)}


def _move(connection: Connection, state: _State, weigh: Callable[[Connection], Mapping[int, int]]) -> Mapping[str, int]:
    """Bring the buckets where they should be, as far as that is not their owners' to do."""
    live = {one.session for one in state.sessions}
    if not live or _is_settled(state):
        return {}
    wanted = assign(_destinations(state), live, weigh(connection))
    moved, version = Counter[str](), _next(connection, ASSIGNMENT)
    new, given, aimed = list[dict[str, Any]](), list[dict[str, Any]](), list[dict[str, Any]]()
    for bucket, session in wanted.items():
        found = state.buckets.get(bucket)
        if found is None:
            row = {"bucket": bucket, "session": session, "epoch": version, "moved_at": state.now, "moved_by": FIRST}
            new.append(row)
            moved[FIRST] += 1
        elif found.session not in live:
            given.append({"moved": bucket, "owner": session, "version": version, "now": state.now})
            moved[found.moved_by] += 1
        else:
            target = None if session == found.session else session
            if target != found.target:
                aimed.append({"moved": bucket, "aim": target, "why": found.moved_by if target is None else JOINED})
                moved[JOINED] += target is not None
    for statement, rows in ((insert(buckets), new), (_GIVE, given), (_AIM, aimed)):
        _execute_all(connection, statement, rows)
    return moved


def _execute_all(connection: Connection, statement: Executable, rows: Sequence[Mapping[str, Any]]) -> None:
    """Execute a statement for each of the rows, of which there may be none."""
    if rows:
        connection.execute(statement, rows)


def _is_settled(state: _State) -> bool:
    """Whether there is nothing to assign."""
    live = {one.session for one in state.sessions}
    where = _destinations(state)
    has_owners = all(one.session in live for one in state.buckets.values())
    return not live or (len(state.buckets) == BUCKETS and has_owners and is_balanced(where, live))


def _destinations(state: _State) -> Mapping[int, int | None]:
    """Where each bucket is, or is on its way to."""
    live: Collection[int] = {one.session for one in state.sessions}
    found: dict[int, int | None] = dict.fromkeys(range(BUCKETS))
    for bucket, one in state.buckets.items():
        found[bucket] = one.target if one.target in live else one.session if one.session in live else None
    return found


def _tables(connection: Connection) -> Mapping[int, int]:
    """How many tables are in each bucket."""
    return _by_bucket(connection, select(FIRST_DIGITS, func.count()))


def _files(connection: Connection) -> Mapping[int, int]:
    """How many data files the tables of each bucket have, as last seen."""
    same = and_(listed_tables.c.catalog == tables.c.catalog, listed_tables.c.table_uuid == tables.c.table_uuid)
    query = select(FIRST_DIGITS, func.sum(listed_tables.c.data_files)).join(listed_tables, same)
    return _by_bucket(connection, query)


def _by_bucket(connection: Connection, query: Select[Any]) -> Mapping[int, int]:
    found = Counter[int]()
    for digits, number in connection.execute(query.where(tables.c.dropped_at.is_(None)).group_by(FIRST_DIGITS)):
        found[bucket_of_digest(digits)] += int(number)
    return found


def _next(connection: Connection, counter: str) -> int:
    return int(connection.execute(_NEXT, {"counter": counter}).scalar_one())


def _version(connection: Connection) -> int:
    return int(connection.scalar(_VERSION) or 0)
