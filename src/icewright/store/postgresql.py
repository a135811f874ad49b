"""PostgreSQL as the store: transactions that behave as SQLite's do, and a server that may be slow, stopped or gone.

A writer is alone behind one lock of the whole store, so that whatever it has read still holds when it writes; or it
shares that lock with others and has locks of its own. Readers see one state and wait for nobody. Why so:
``docs/decisions``, 0010 and 0077.
"""

from __future__ import annotations

import select
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Self, TypeVar

import psycopg
from psycopg.abc import PQGen
from sqlalchemy import URL, Connection, Dialect, Engine, Select, create_engine, event
from sqlalchemy import select as select_of
from sqlalchemy.exc import InvalidatePoolError
from sqlalchemy.pool import ConnectionPoolEntry

from icewright.core.errors import InvalidConfiguration
from icewright.store.locks import LOCKS, Lock
from icewright.store.timeouts import Timeouts
from icewright.store.transactions import (
    ASKS,
    EPOCH,
    FENCED,
    LOCKED,
    LONG,
    PRESENT_EPOCH,
    WRITES,
    Fenced,
    Held,
    asks_for,
    held_now,
)

DRIVER: Final = "postgresql+psycopg"
WRITERS: Final = 1
"""The advisory lock that a writing transaction has alone, migrations included, or shares with others beside it."""
LEADER: Final = 2
"""The advisory lock that the session of the leading server holds."""
SERVERS: Final = 3
"""The advisory lock that the sessions of all servers share."""
SCHEMAS: Final = 100_000
"""And with the number of a schema, those of all servers that were written for it."""
_VERSION_MIN: Final = 14_00_00
"""The oldest PostgreSQL that has all settings used here, and that its makers still mend."""
_ENCODING: Final = "UTF8"
_BEGIN: Final = "BEGIN TRANSACTION"

_LIMITS: Final = "".join(
    f", set_config('{one}', '{{0}}', true)" for one in ("statement_timeout", "idle_in_transaction_session_timeout")
)
RESTS_S_MAX: Final = 5.0
"""A connection that rested for longer is asked whether it lives before it is used, one of a busy server is not: that
was every eighth of its loop's seconds, with a look at a table of 20 transactions (measured with py-spy, 2 cores)."""
CONNECTIONS_KEPT: Final = 8
"""Of a process, while nobody needs them: one for each of four looks, the loop, the leader, and two requests. A new one
takes 8 ms of CPU here and 7 ms of the database, and plans each statement anew (measured on 2 cores)."""
CONNECTIONS_MAX: Final = 15
_RESTS_SINCE: Final = "icewright_rests_since"

RV = TypeVar("RV")


class BoundedConnection(psycopg.Connection[Any]):
    """A connection that waits for no answer longer than ``answer_s``: it closes, and what was asked is not known."""

    answer_s = Timeouts().answer_ms / 1000

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        """See psycopg."""
        try:
            return super().wait(gen, interval, self.answer_s if timeout is None else timeout)
        except psycopg.OperationalError:
            if self.pgconn.transaction_status == psycopg.pq.TransactionStatus.ACTIVE:
                # Its answer may still come, and would be taken for that of the next statement.
                self.close()
            raise


class _Cursor(psycopg.Cursor[Any]):
    """One that begins a transaction and says its first statements in one round trip; the answer is that of the last."""

    def execute(
        self, query: Any, params: Any = None, *, prepare: bool | None = None, binary: bool | None = None
    ) -> Self:
        """See psycopg."""
        begins = isinstance(query, str) and query.startswith(_BEGIN)
        super().execute(query, params, prepare=False if begins else prepare, binary=binary)
        while begins and self.nextset():
            pass
        return self


def postgresql_engine(url: URL, patience: Timeouts) -> Engine:
    """The engine of a database; nothing is asked of it yet.

    Raises :class:`~icewright.core.errors.InvalidConfiguration` for another driver than psycopg.
    """
    if url.drivername not in ("postgresql", DRIVER):
        raise InvalidConfiguration(f"the store does not speak {url.drivername}", hint="write postgresql://...")
    defaults = {
        "application_name": "icewright",
        "client_encoding": "utf8",
        "connect_timeout": max(1, patience.connect_ms // 1000),
    }
    given = {name: value for name, value in defaults.items() if name not in url.query}
    engine = create_engine(
        url.set(drivername=DRIVER),
        connect_args=given,
        hide_parameters=True,
        pool_size=CONNECTIONS_KEPT,
        max_overflow=CONNECTIONS_MAX - CONNECTIONS_KEPT,
        pool_use_lifo=True,  # what was used last has its statements prepared
    )
    _configure(engine, patience)
    return engine


def _configure(engine: Engine, patience: Timeouts) -> None:
    @event.listens_for(engine, "do_connect")
    def do_connect(_dialect: object, _record: object, cargs: Any, cparams: Any) -> BoundedConnection:
        connection = BoundedConnection.connect(*cargs, cursor_factory=_Cursor, **cparams)
        connection.answer_s = patience.answer_ms / 1000
        return connection

    @event.listens_for(engine, "connect")
    def on_connect(connection: BoundedConnection, _record: object) -> None:
        _require_fit(connection)
        connection.autocommit = True
        _set(connection, _session_settings(connection, patience))  # on_begin begins what is more than one statement

    @event.listens_for(engine, "checkin")
    def on_checkin(connection: BoundedConnection | None, record: ConnectionPoolEntry) -> None:
        if connection is not None:
            record.info[_RESTS_SINCE] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def on_checkout(connection: BoundedConnection, record: ConnectionPoolEntry, _proxy: object) -> None:
        since = record.info.get(_RESTS_SINCE)
        if since is None or (time.monotonic() - since < RESTS_S_MAX and not _has_heard(connection)):
            return
        driver: Any = connection
        try:
            engine.dialect.do_ping(driver)
        except psycopg.Error as error:
            raise InvalidatePoolError from error  # the other ones are as old: the pool makes new ones

    @event.listens_for(engine, "begin")
    def on_begin(connection: Connection) -> None:
        _begin(connection, patience)


def _begin(connection: Connection, patience: Timeouts) -> None:
    """Begin a transaction, in one round trip with the locks and the fence of one that writes."""
    connection.info.pop(FENCED, None)
    options = connection.get_execution_options()
    if not options.get(WRITES, False):
        if not options.get(ASKS, False):
            connection.exec_driver_sql(f"{_BEGIN} ISOLATION LEVEL REPEATABLE READ READ ONLY")
        return
    # A writer sees what was committed before it had the lock, not before it asked for it: so not REPEATABLE READ,
    # whose one state is that of the statement that waits.
    said = [f"{_BEGIN} ISOLATION LEVEL READ COMMITTED READ WRITE"]
    # The limits are those of what follows: waiting for the lock has its own, and keeps no others waiting.
    limits = "" if options.get(LONG, False) else _LIMITS.format(patience.write_ms)
    said.append(f"SELECT {taking(options.get(LOCKED))}{limits}")
    held, is_fenced = held_now(), EPOCH in options or held_now() is not None
    if is_fenced:
        said.append(_fence(held, connection.dialect))
    answer = connection.exec_driver_sql("; ".join(said))
    if is_fenced:
        found = answer.first()
        epoch = None if found is None else int(found[0] or 0)
        connection.info[FENCED] = Fenced(epoch, held, found is not None)


@lru_cache(maxsize=1024)
def _fence(held: Held | None, dialect: Dialect) -> str:
    """What asks who leads and for what is held, with its numbers: of several statements, none has parameters."""
    asked: Select[Any] = select_of(PRESENT_EPOCH)
    if held is not None:
        statement, parameters = asks_for(held)
        asked = statement.with_only_columns(PRESENT_EPOCH).params(parameters)
    return str(asked.compile(dialect=dialect, compile_kwargs={"literal_binds": True}))


def taking(locks: Sequence[Lock] | None) -> str:
    """What takes locks, one after the other: the whole store's alone, or that together with others and then these."""
    if locks is None:
        return f"pg_advisory_xact_lock({LOCKS}, {WRITERS})"
    own = ["pg_advisory_xact_lock{}({}, {})".format("_shared" if one.shared else "", *one.key) for one in locks]
    return ", ".join([f"pg_advisory_xact_lock_shared({LOCKS}, {WRITERS})", *own])


def _has_heard(connection: BoundedConnection) -> bool:
    """Whether something came in that nobody has read: where a connection rests, its end or its server's last words."""
    if connection.closed:
        return True
    asked = select.poll()
    asked.register(connection.fileno(), select.POLLIN)
    return bool(asked.poll(0))


def _require_fit(connection: BoundedConnection) -> None:
    version = connection.info.server_version
    if version < _VERSION_MIN:
        raise InvalidConfiguration(
            f"the store's PostgreSQL is {version // 10_000}", hint=f"use {_VERSION_MIN // 10_000} or newer"
        )
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != _ENCODING:
        raise InvalidConfiguration(
            f"the store's database is encoded in {encoding}", hint="create it with ENCODING 'UTF8'"
        )


def _session_settings(connection: BoundedConnection, patience: Timeouts) -> Mapping[str, str]:
    settings = {
        "lock_timeout": str(patience.lock_ms),
        "statement_timeout": str(patience.statement_ms),
        "idle_in_transaction_session_timeout": str(patience.idle_ms),
        "idle_session_timeout": "0",  # the session of a server holds its lock
        # A server whose machine is gone lets go of its locks after some 25 s instead of two hours.
        "tcp_keepalives_idle": "10",
        "tcp_keepalives_interval": "5",
        "tcp_keepalives_count": "3",
        # Nor does a client that has stopped reading hold the lock of all writers by an answer that it does not take.
        "tcp_user_timeout": str(patience.write_ms),
    }
    (durability,) = connection.execute("SELECT current_setting('synchronous_commit')").fetchone() or ("",)
    # What was answered must be on disk. Databases of tests say fsync=off, which is not for us to change.
    return {**settings, "synchronous_commit": "on"} if durability == "off" else settings


def _set(connection: BoundedConnection, settings: Mapping[str, str]) -> None:
    query = "SELECT set_config(name, value, false) FROM unnest(%s::text[], %s::text[]) AS settings (name, value)"
    connection.execute(query, [list(settings), list(settings.values())])
