"""Servers' sessions with a store on PostgreSQL: by its session a server is there, and one of the servers leads.

Two advisory locks say so, which end with the session. All servers share the one: whoever has to be alone, to upgrade
the schema or to make a backup fit, has it without sharing. The other one is the leader's: it tells at once that a
leader has died. A leader that is stopped keeps its session, so it leads by a lease as well, which it renews by the
database's clock. A server that gets the lock, or finds that the lease ran out, begins a new epoch in the store; in the
second case it then ends the session of the last leader. Each write of a leader compares its epoch with the present
one (:func:`icewright.store.transactions.writing`). Why so: ``docs/decisions``, 0061.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import takewhile
from typing import Any, Final

import psycopg
import structlog
from sqlalchemy import Connection, Engine, insert, select, update
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from icewright.core.errors import NotAllowed, StoreUnavailable
from icewright.core.servers import LEADER_LEASE_MS, RENEWALS_A_LEASE
from icewright.core.times import Instant
from icewright.store.engine import must_be_upgraded, present_schema, upgrade_store, upgraded
from icewright.store.locks import LOCKS
from icewright.store.migrate import known_revisions, newest_revision, served_from
from icewright.store.postgresql import LEADER, SCHEMAS, SERVERS, BoundedConnection
from icewright.store.schema import LEADER_SESSION, LEADER_UNTIL, SERVER_EPOCH, counters
from icewright.store.transactions import EPOCH, LONG, now, reading, server_epoch, taken_over

_log = structlog.get_logger("icewright.server")

_TRIED_S: Final = 3.0
"""How long to wait for locks of a server that has just been killed: PostgreSQL may not have noticed yet."""
_PAUSE_S: Final = 0.1

_HOLDERS = """
SELECT activity.pid, coalesce(host(activity.client_addr), 'its own machine'), activity.backend_start
FROM pg_locks AS locks JOIN pg_stat_activity AS activity USING (pid)
WHERE locks.locktype = 'advisory' AND locks.granted AND locks.classid = %s AND locks.objid = %s
AND locks.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND pid <> pg_backend_pid()
ORDER BY activity.backend_start, activity.pid
"""
_SHOWN_MAX: Final = 5
_IS_LEASE: Final = counters.c.name == LEADER_UNTIL

_END_LEADER: Final = """
SELECT pg_terminate_backend(pid, %s) FROM pg_locks
WHERE locktype = 'advisory' AND granted AND classid = %s AND objid = %s
AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND pid <> pg_backend_pid()
"""
_END_MS: Final = 1_000
"""How long PostgreSQL may take to end a session that it was told to end."""
_RENEW: Final = f"""
UPDATE counters SET value = (EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::bigint + %s
WHERE name = '{LEADER_UNTIL}' AND %s = (SELECT value FROM counters WHERE name = '{SERVER_EPOCH}')
"""  # noqa: S608 - names of our own
"""Outside of the turns of writers: a renewal waits for no other transaction than that which begins an epoch."""
_CHANGE_SESSION: Final = f"""
UPDATE counters SET value = pg_backend_pid()
WHERE name = '{LEADER_SESSION}' AND %s = (SELECT value FROM counters WHERE name = '{SERVER_EPOCH}')
"""  # noqa: S608 - names of our own
_LEADER_IS_THERE: Final = f"""
SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = (SELECT value FROM counters WHERE name = '{LEADER_SESSION}')
AND datname = current_database() AND pid <> pg_backend_pid())
"""  # noqa: S608 - a name of our own


class PostgresLeaderElection:
    """A :class:`~icewright.store_admin.leader_lock.LeaderElection` of a server, in effect until :meth:`close`.

    A store that is to be upgraded is upgraded, where no other server is there. Raises
    :class:`~icewright.core.errors.NotAllowed` where others are, and while somebody has the store alone;
    :class:`~icewright.core.errors.InvalidConfiguration` for a store of a newer icewright;
    :class:`~icewright.core.errors.StoreUnavailable` when the store does not answer; and what upgrading it raises.
    """

    def __init__(self, engine: Engine, *, tried_s: float = _TRIED_S, lease_ms: int = LEADER_LEASE_MS) -> None:
        self._engine, self._tried_s, self._lease_ms = engine, tried_s, lease_ms
        self._lock = threading.Lock()
        self._epoch: int | None = None
        self._has_lock = False
        self._renewed_s = 0.0
        self._backend = 0
        self._session = self._join()

    def lead(self, *, deposes: bool = False) -> Engine | None:
        """See the protocol. With ``deposes`` it is as if the lease of the last leader had run out."""
        with self._lock, _translated():
            with reading(self._engine) as connection:
                last, is_over = server_epoch(connection), deposes or _has_run_out(connection)
            if not is_over:
                self._has_lock = _try(self._session, "pg_try_advisory_lock", LEADER)
                if not self._has_lock:
                    return None
                if not self._leader_is_gone():
                    self._unlock()
                    return None
            begun_s = time.monotonic()
            try:
                epoch = _begin_epoch(self._engine, self._lease_ms, behind=last, session=self._session.info.backend_pid)
            except BaseException:
                self._unlock()
                raise
            if epoch is None:
                self._unlock()
                return None
            if is_over:  # only now: of several that see it, the one whose epoch it is ends the session of the leader
                self._end_leader()
            self._epoch, self._renewed_s = epoch, begun_s
            return self._engine.execution_options(**{EPOCH: epoch})

    @property
    def epoch(self) -> int | None:
        """See the protocol."""
        return self._epoch

    @property
    def backend(self) -> int:
        """The process of PostgreSQL that serves the session of this server: it ends with it."""
        return self._backend

    def check(self) -> None:
        """See the protocol. A lock whose session has ended is taken again, as long as no other server has led since."""
        with self._lock, _translated():
            try:
                self._session.execute("SELECT 1")
            except psycopg.Error:
                self._session.close()
                self._has_lock = False
                self._session = self._join()
                if self._epoch is not None:
                    self._session.execute(_CHANGE_SESSION, [self._epoch])
            if self._epoch is not None:
                self._go_on(self._epoch)

    def resign(self) -> None:
        """See the protocol."""
        with self._lock:
            epoch, self._epoch = self._epoch, None
            if epoch is not None:
                with suppress(psycopg.Error):  # the lease runs out then
                    self._session.execute(_RENEW, [-self._lease_ms, epoch])
            self._unlock()

    def close(self) -> None:
        """See the protocol."""
        with self._lock:
            self._session.close()

    def _join(self) -> BoundedConnection:
        """A session that is a server's, of a store that is as this icewright knows it."""
        with _translated():
            session = _open(self._engine)
            try:
                _patiently(self._tried_s, lambda: self._is_in(session))
                # Asked, since what stands between may have told of a process of its own.
                (self._backend,) = session.execute("SELECT pg_backend_pid()").fetchone() or (0,)
            except BaseException:
                session.close()
                raise
            return session

    def _is_in(self, session: BoundedConnection) -> str | None:
        """Whether the session is a server's by now; else why not.

        A store is upgraded while no server of an older schema than :func:`~icewright.store.migrate.served_from` is
        there, and none of these can come: each has the lock of its schema, and whoever upgrades has those of them all.
        """
        own = SCHEMAS + int(newest_revision())
        if _share(session, SERVERS, own):
            if not must_be_upgraded(self._engine):
                return None
            _unshare(session, SERVERS, own)
        oldest, is_in = int(served_from()), False
        alone = [SCHEMAS + number for number in range(int(known_revisions()[0]), oldest)]
        # Servers of before 0048 have no lock but that of all; shared, it says that nobody has the store alone.
        is_served = oldest != int(newest_revision()) and present_schema(self._engine) >= oldest
        if not is_served:
            alone.append(SERVERS)
        elif not _share(session, SERVERS):
            return _refused(session)
        taken = list(takewhile(lambda lock: _try(session, "pg_try_advisory_lock", lock), alone))
        try:
            if taken == alone:
                upgrade_store(self._engine)
                is_in = _share(session, own) if is_served else _share(session, SERVERS, own)  # beside one's own
        finally:
            for lock in taken:
                session.execute("SELECT pg_advisory_unlock(%s, %s)", [LOCKS, lock])
        if is_in:
            return None
        if is_served:
            _unshare(session, SERVERS)
        return _refused(session)

    def _go_on(self, epoch: int) -> None:
        """Renew the lease when it is time. Raises :class:`~icewright.core.errors.StoreTaken`."""
        now_s = time.monotonic()
        if now_s - self._renewed_s >= self._lease_ms / 1000 / RENEWALS_A_LEASE:
            is_present = self._session.execute(_RENEW, [self._lease_ms, epoch]).rowcount == 1
            self._renewed_s = now_s
        else:
            with reading(self._engine) as connection:
                is_present = server_epoch(connection) == epoch
        if not is_present:
            self._epoch = None
            self._unlock()
            raise taken_over()
        if not self._has_lock:  # held by our own old session, which PostgreSQL believes alive, or by a server that ends
            self._has_lock = _try(self._session, "pg_try_advisory_lock", LEADER)

    def _leader_is_gone(self) -> bool:
        """Whether the lock is free since the leader's session ended, not since the leader has yet to take it."""
        (is_there,) = self._session.execute(_LEADER_IS_THERE).fetchone() or (False,)
        return not is_there

    def _end_leader(self) -> None:
        """End the session of a leader whose lease ran out, which ends its lock; take that where it is free then."""
        try:
            try:
                self._session.execute(_END_LEADER, [_END_MS, LOCKS, LEADER])
            except psycopg.errors.InsufficientPrivilege as error:  # it is fenced off by the epoch all the same
                _log.warning("the session of the last leader is still open", detail=str(error))
            self._has_lock = _try(self._session, "pg_try_advisory_lock", LEADER)
        except psycopg.Error as error:  # the epoch is this server's: its next check joins again, and tries the lock
            _log.warning("the session of this server ended when it began to lead", detail=str(error))

    def _unlock(self) -> None:
        self._has_lock = False
        with suppress(psycopg.Error):  # the lock ends with its session, which the next check finds lost
            self._session.execute("SELECT pg_advisory_unlock(%s, %s)", [LOCKS, LEADER])


@contextmanager
def hold_exclusively(engine: Engine, *, tried_s: float = _TRIED_S) -> Iterator[Engine]:
    """The engine of a store to write by, at the newest schema, while no server is there and none can come.

    Raises :class:`~icewright.core.errors.NotAllowed` while one is there, and as :class:`PostgresLeaderElection`.
    """
    with _translated(), closing(_open(engine)) as session:

        def held() -> str | None:
            if _try(session, "pg_try_advisory_lock", SERVERS):
                return None
            return f"another server holds the store{_described(session)}"

        _patiently(tried_s, held)
        epoch = _begin_epoch(engine, lease_ms=0)
        yield engine.execution_options(**{EPOCH: epoch, LONG: True})


def _patiently(tried_s: float, obstacle: Callable[[], str | None]) -> None:
    """Wait until nothing is in the way. Raises :class:`~icewright.core.errors.NotAllowed`."""
    until_s = time.monotonic() + tried_s
    while (found := obstacle()) is not None:
        if time.monotonic() >= until_s:
            hint = "stop all servers of the store first, or give this one a database of its own"
            raise NotAllowed(found, hint=hint)
        time.sleep(_PAUSE_S)


@contextmanager
def _translated() -> Iterator[None]:
    """As the door of SQLAlchemy's errors, for those of the driver itself."""
    try:
        yield
    except (psycopg.Error, PoolTimeoutError) as error:
        raise StoreUnavailable(f"the store does not answer: {error}") from error


def _open(engine: Engine) -> BoundedConnection:
    """A session outside of the pool and outside of any transaction."""
    borrowed = engine.raw_connection()
    session: Any = borrowed.dbapi_connection
    borrowed.detach()
    return session  # type: ignore[no-any-return]  # the engine makes no other connections


def _try(session: BoundedConnection, function: str, lock: int) -> bool:
    (taken,) = session.execute(f"SELECT {function}(%s, %s)", [LOCKS, lock]).fetchone() or (False,)
    return bool(taken)


def _share(session: BoundedConnection, *locks: int) -> bool:
    """Take all of these beside others that share them, or none."""
    taken = list(takewhile(lambda lock: _try(session, "pg_try_advisory_lock_shared", lock), locks))
    if len(taken) < len(locks):
        _unshare(session, *taken)
    return len(taken) == len(locks)


def _unshare(session: BoundedConnection, *locks: int) -> None:
    for lock in locks:
        session.execute("SELECT pg_advisory_unlock_shared(%s, %s)", [LOCKS, lock])


def _begin_epoch(engine: Engine, lease_ms: int, *, behind: int | None = None, session: int = 0) -> int | None:
    """The next epoch, with a lease; None where it would not be the next one ``behind`` that: another was quicker.

    ``session`` is the process of PostgreSQL that serves the leader's session.
    """
    query = update(counters).where(counters.c.name == SERVER_EPOCH).values(value=counters.c.value + 1)
    with upgraded(engine) as connection:
        if behind is not None and server_epoch(connection) != behind:
            return None
        for name, value in ((LEADER_UNTIL, now(connection) + lease_ms), (LEADER_SESSION, session)):
            if connection.execute(update(counters).where(counters.c.name == name).values(value=value)).rowcount == 0:
                connection.execute(insert(counters).values(name=name, value=value))
        return int(connection.execute(query.returning(counters.c.value)).scalar_one())


def _has_run_out(connection: Connection) -> bool:
    """Whether a leader has not renewed its lease in time; not where none has led yet."""
    until: Instant | None = connection.scalar(select(counters.c.value).where(_IS_LEASE))
    return until is not None and until < now(connection)


def _refused(session: BoundedConnection) -> str:
    return f"other servers hold the store, and it is to be upgraded, or is being upgraded{_described(session)}"


def _described(session: BoundedConnection) -> str:
    found = session.execute(_HOLDERS, [LOCKS, SERVERS]).fetchall()
    told = [
        f"session {pid} of the database, from {address}, since {since:%Y-%m-%d %H:%M:%S %Z}"
        for pid, address, since in found[:_SHOWN_MAX]
    ]
    return f": {'; '.join(told)}" if told else ""
