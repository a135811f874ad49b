"""A server's hold on a store on PostgreSQL: a lock that ends with its session, and an epoch that outlives it.

The lock keeps a second server from starting. It is only as good as its session, which may end while the server goes
on. So whoever gets it begins a new epoch in the store, and every write of a server asks first whether its epoch is the
present one (:func:`icewright.adapters.sql.transactions.writing`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from sqlalchemy import Engine, update
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from icewright.adapters.sql.engine import upgraded
from icewright.adapters.sql.postgresql import LOCKS, SERVER, BoundedConnection
from icewright.adapters.sql.schema import SERVER_EPOCH, counters
from icewright.adapters.sql.transactions import EPOCH, reading, server_epoch
from icewright.domain.errors import NotAllowed, StoreAway, StoreTaken

_TRIED_S: Final = 3.0
"""How long to wait for the lock of a server that has just been killed: PostgreSQL may not have noticed yet."""
_PAUSE_S: Final = 0.1

_HOLDER = """
SELECT activity.pid, coalesce(host(activity.client_addr), 'its own machine'), activity.backend_start
FROM pg_locks AS locks JOIN pg_stat_activity AS activity USING (pid)
WHERE locks.locktype = 'advisory' AND locks.granted AND locks.classid = %s AND locks.objid = %s
AND locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


class SessionHold:
    """The store, held for this process until :meth:`close`, and at the newest schema from the same moment on.

    Raises :class:`~icewright.domain.errors.NotAllowed` while another process holds it,
    :class:`~icewright.domain.errors.StoreAway` when the store does not answer, and what upgrading it raises.
    """

    def __init__(self, engine: Engine, *, tried_s: float = _TRIED_S) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        with _translated():
            self._session = _open(engine)
            self._take(tried_s)
        try:
            self._epoch = _begin_epoch(engine)
        except BaseException:
            self._session.close()
            raise
        self.engine = engine.execution_options(**{EPOCH: self._epoch})
        """The engine to write by: fenced off as soon as another server takes the store over."""

    def check(self) -> None:
        """Make sure that the store is still ours; a lock whose session has ended is taken again.

        Raises :class:`~icewright.domain.errors.StoreTaken` when another server has taken the store over, and
        :class:`~icewright.domain.errors.StoreAway` while that cannot be told.
        """
        with self._lock:
            try:
                self._session.execute("SELECT 1")
            except psycopg.Error:
                self._session.close()
                self._take_again()

    def close(self) -> None:
        """Let go of the store."""
        with self._lock:
            self._session.close()

    def _take_again(self) -> None:
        with _translated():
            self._session = _open(self._engine)
            taken = _try_lock(self._session)
        # Without the lock: held by our own old session, which the server believes alive, or by whoever comes next.
        with reading(self._engine) as connection:
            epoch = server_epoch(connection)
        if epoch != self._epoch:
            self._session.close()
            raise StoreTaken("another server has taken the store over", hint="one server per store: stop one of them")
        if not taken:
            self._session.close()
            raise StoreAway("the lock on the store was lost, and is not free yet")

    def _take(self, tried_s: float) -> None:
        until_s = time.monotonic() + tried_s
        while not _try_lock(self._session):
            if time.monotonic() >= until_s:
                holder = self._session.execute(_HOLDER, [LOCKS, SERVER]).fetchone()
                self._session.close()
                raise NotAllowed(
                    f"another server holds the store{_described(holder)}",
                    hint="one server per store: stop it first, or give this one a database of its own",
                )
            time.sleep(_PAUSE_S)


@contextmanager
def _translated() -> Iterator[None]:
    """As the door of SQLAlchemy's errors, for those of the driver itself."""
    try:
        yield
    except (psycopg.Error, PoolTimeoutError) as error:
        raise StoreAway(f"the store does not answer: {error}") from error


def _open(engine: Engine) -> BoundedConnection:
    """A session outside of the pool and outside of any transaction."""
    borrowed = engine.raw_connection()
    session: Any = borrowed.dbapi_connection
    borrowed.detach()
    session.autocommit = True
    return session  # type: ignore[no-any-return]  # the engine makes no other connections


def _try_lock(session: BoundedConnection) -> bool:
    (taken,) = session.execute("SELECT pg_try_advisory_lock(%s, %s)", [LOCKS, SERVER]).fetchone() or (False,)
    return bool(taken)


def _begin_epoch(engine: Engine) -> int:
    query = update(counters).where(counters.c.name == SERVER_EPOCH).values(value=counters.c.value + 1)
    with upgraded(engine) as connection:
        return int(connection.execute(query.returning(counters.c.value)).scalar_one())


def _described(holder: tuple[Any, ...] | None) -> str:
    if holder is None:
        return ""
    pid, address, since = holder
    return f": session {pid} of the database, from {address}, since {since:%Y-%m-%d %H:%M:%S %Z}"
