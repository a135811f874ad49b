"""Transactions that read or write, the database's clock, and the errors of SQLAlchemy in icewright's words."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import BigInteger, ColumnElement, Connection, Engine, Select, bindparam, func, literal_column, select
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from icewright.core.clock import Clock
from icewright.core.errors import BucketLost, InvalidMessage, OutcomeUnknown, StoreTaken, StoreUnavailable
from icewright.core.times import Instant
from icewright.store.locks import ASSIGNED, Lock, WriteLock, in_order
from icewright.store.schema import SERVER_EPOCH, counters
from icewright.store.servers_schema import buckets, server_sessions

WRITES = "icewright_writes"
"""The execution option of a connection whose transactions write."""
ASKS = "icewright_asks"
"""The execution option of a connection that says one statement, which needs no transaction around it."""
LOCKED = "icewright_locked"
"""The execution option of a connection whose transactions write beside others: what they lock, in order."""
EPOCH = "icewright_epoch"
"""The execution option of an engine that may write only as long as no other server leads."""
FOLLOWS = "icewright_follows"
"""The execution option of an engine of a server that need not lead: it removes no files."""
SHARES = "icewright_shares"
"""The execution option of an engine that writes nothing but within :func:`holding`: that by which a follower looks."""
LONG = "icewright_long"
"""The execution option of transactions that write for long while no server does: upgrades and restores."""
TURNS = "icewright_turns"
"""The execution option of an engine whose writers in this process take turns by :class:`WriteLock`: that of SQLite."""
FENCED = "icewright_fenced"
"""What a connection notes of a transaction that asked with its locks for its fences: see :class:`Fenced`."""
_PRIMARY_CODE = 0xFF
"""The part of SQLite's extended error codes that says which error it is."""

NOW = "icewright_now"
"""The column of :func:`now_column`."""
_NOW = {
    # SQLite below 3.42 has no sub-second unixepoch(); 2440587.5 is the Julian day of the Unix epoch.
    "sqlite": "CAST(ROUND((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)",
    # Not now(): that stands still during a transaction, which may have waited for a lock.
    "postgresql": "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
}
# Built once: each transaction that writes asks for one of them, and building it takes longer than SQLite needs for it.
PRESENT_EPOCH: Final = select(counters.c.value).where(counters.c.name == SERVER_EPOCH).scalar_subquery()
"""How often a server has come to lead so far; NULL before the first time."""
_EPOCH_ASKED: Final = select(PRESENT_EPOCH)
_OWN_SESSION: Final = (
    select(server_sessions.c.session)
    .where(server_sessions.c.session == bindparam("held_by"), server_sessions.c.ended_at.is_(None))
    .with_for_update(read=True, key_share=True)
)
_OWN_BUCKET: Final = (
    select(buckets.c.bucket)
    .where(buckets.c.bucket == bindparam("held"), buckets.c.epoch == bindparam("held_in"))
    .with_for_update(read=True)
)


@dataclass(frozen=True, slots=True)
class Held:
    """What a server writes by: its session, and a bucket in the epoch in which that is its own; None for no table."""

    session: int
    bucket: int | None = None
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class Fenced:
    """What a transaction found of its fences as it began: whether what it writes by is held, and who leads.

    ``epoch`` is None where that has to be asked.
    """

    epoch: int | None
    held: Held | None
    is_held: bool


_UNASKED = Fenced(None, None, is_held=False)
_HELD: ContextVar[Held | None] = ContextVar("icewright_held", default=None)


@contextmanager
def holding(held: Held) -> Iterator[None]:
    """Write, within the block and in its thread, only as long as that is held."""
    token = _HELD.set(held)
    try:
        yield
    finally:
        _HELD.reset(token)


def held_now() -> Held | None:
    """What this thread writes by: see :func:`holding`; None outside of that."""
    return _HELD.get()


_WRITTEN_BEFORE: ContextVar[Callable[[], None] | None] = ContextVar("icewright_written_before", default=None)


@contextmanager
def written_before(write: Callable[[], None]) -> Iterator[None]:
    """Within the block and in its thread, before any other transaction: what is written later than it was said to be.

    So whatever is read or written behind it finds it. Exempt is what is read ``beside`` it (:func:`reading`).
    """
    token = _WRITTEN_BEFORE.set(write)
    try:
        yield
    finally:
        _WRITTEN_BEFORE.reset(token)


def _write_before() -> None:
    write = _WRITTEN_BEFORE.get()
    if write is not None:
        write()


@contextmanager
def reading(engine: Engine, *, beside: bool = False) -> Iterator[Connection]:
    """One transaction that sees one state of the database.

    ``beside``: it reads nothing of what this thread may have yet to write (:func:`written_before`).
    """
    if not beside:
        _write_before()
    with translated(), engine.connect() as connection, connection.begin():
        yield connection


@contextmanager
def asking(engine: Engine, *, beside: bool = False) -> Iterator[Connection]:
    """As :func:`reading`, for a single statement: without a transaction, whose beginning and end cost more than it."""
    if not beside:
        _write_before()
    with translated(), engine.connect() as connection, connection.execution_options(**{ASKS: True}).begin():
        yield connection


@contextmanager
def writing(engine: Engine, locks: Iterable[Lock] | None = None) -> Iterator[Connection]:
    """One transaction that may write; committed at the end, rolled back by any exception.

    Alone in the store, also of several processes: what it has read still holds when it writes. With ``locks``, none of
    them included, it is on PostgreSQL beside others that have such as well, and alone with each of its locks; what it
    has read then holds as far as these, rows that it locked or constraints say so (``docs/decisions``, 0077).
    Raises :class:`~icewright.core.errors.OutcomeUnknown` when the store went away in the middle of the commit,
    :class:`~icewright.core.errors.StoreTaken` when the engine is that of a server that was replaced, and
    :class:`~icewright.core.errors.BucketLost` when what is held (:func:`holding`) is another server's by now.
    """
    _write_before()
    options = {WRITES: True, LOCKED: None if locks is None else tuple(in_order(locks))}
    with translated(), _turn(engine), engine.connect() as connection:
        committing = False
        try:
            with connection.execution_options(**options).begin():
                _require_epoch(connection)
                _require_held(connection)
                yield connection
                committing = True
        except DBAPIError as error:
            if committing and _may_have_happened(error):
                raise OutcomeUnknown(
                    f"the store stopped answering during a commit: {error.orig}",
                    hint="the outcome is unknown; check it before you retry",
                ) from error
            raise


def require_locked(connection: Connection, wanted: Lock) -> None:
    """Make sure that a transaction that writes is alone, or has a lock: it would be a mistake of ours."""
    held = connection.get_execution_options().get(LOCKED)
    if held is not None and wanted not in held:
        raise RuntimeError(f"a transaction that shares the store has no {wanted}")


def await_writers(engine: Engine, wanted: Lock) -> None:
    """Wait until all writers have ended that share a lock at this moment: what they wrote is there afterwards."""
    with reading(engine) as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(select(func.pg_advisory_xact_lock(*wanted.key)))


def _turn(engine: Engine) -> AbstractContextManager[None]:
    turns: WriteLock | None = engine.get_execution_options().get(TURNS)
    return nullcontext() if turns is None else turns.turn()


def _may_have_happened(error: DBAPIError) -> bool:
    """Whether a commit that failed so may have happened all the same.

    An answer of PostgreSQL is a refusal; without one nobody knows. SQLite's log may hold a commit that could not be
    flushed to disk, and bring it to life after a crash.
    """
    code = getattr(error.orig, "sqlite_errorcode", 0)
    return error.connection_invalidated or code & _PRIMARY_CODE == sqlite3.SQLITE_IOERR


def _require_epoch(connection: Connection) -> None:
    """Fence off a server that was replaced: it may have read before the other one wrote."""
    epoch = connection.get_execution_options().get(EPOCH)
    if epoch is None:
        return
    told = connection.info.get(FENCED, _UNASKED).epoch
    if (server_epoch(connection) if told is None else told) != epoch:
        raise taken_over()


def _require_held(connection: Connection) -> None:
    """Fence off a server that lost a bucket: it may have read before the new owner wrote.

    The row is locked, so that no owner changes until the transaction has ended. A session is seen anew meanwhile, and
    does not end.
    """
    held = _HELD.get()
    if held is None:
        if connection.get_execution_options().get(SHARES, False):
            raise RuntimeError("a server that follows writes for nothing that it holds")
        return
    fenced: Fenced = connection.info.get(FENCED, _UNASKED)
    is_told = fenced.held == held
    if not (fenced.is_held if is_told else connection.scalar(*asks_for(held)) is not None):
        raise BucketLost(
            "the tables are another server's now", hint="nothing was written; that server continues with them"
        )


def asks_for(held: Held) -> tuple[Select[Any], Mapping[str, int]]:
    """What finds nothing if that is not held any more, and its parameters; else it locks it."""
    if held.bucket is None:
        return _OWN_SESSION, {"held_by": held.session}
    return _OWN_BUCKET, {"held": held.bucket, "held_in": held.epoch}


def lost_leases(connection: Connection, leases: Collection[Held]) -> AbstractSet[Held]:
    """Which of these leases of buckets have ended. The others hold until the transaction has: it has ``ASSIGNED``."""
    if not leases:
        return frozenset()
    require_locked(connection, ASSIGNED)
    asked = {one.bucket for one in leases}
    rows = connection.execute(select(buckets.c.bucket, buckets.c.epoch).where(buckets.c.bucket.in_(asked)))
    epochs: dict[int | None, int] = {row[0]: row[1] for row in rows}
    return frozenset(one for one in leases if epochs.get(one.bucket) != one.epoch)


def require_lead(engine: Engine) -> None:
    """Ask right before something outside of the store is changed for good, as :func:`writing` asks for the store.

    Raises :class:`~icewright.core.errors.StoreTaken` when the engine is that of a server that was replaced.
    """
    with reading(engine) as connection:
        _require_epoch(connection)


def taken_over() -> StoreTaken:
    """What a server is told that writes as the leader and is not any more."""
    return StoreTaken("another server leads now", hint="nothing was written; that server continues it")


def server_epoch(connection: Connection) -> int:
    """How often a server has come to lead so far."""
    return int(connection.scalar(_EPOCH_ASKED) or 0)


@contextmanager
def translated() -> Iterator[None]:
    """The door: what libraries raise leaves as an error of icewright.

    Broken constraints and wrong SQL are not translated: where they are not expected, they are mistakes of ours.
    """
    try:
        yield
    except (IntegrityError, ProgrammingError):
        raise
    except (DataError, UnicodeEncodeError, OverflowError) as error:
        cause = getattr(error, "orig", None) or error
        raise InvalidMessage(f"the store cannot hold the value: {cause}") from error
    except (DBAPIError, PoolTimeoutError, sqlite3.OperationalError, sqlite3.DatabaseError) as error:
        cause = getattr(error, "orig", None) or error
        raise StoreUnavailable(f"the store does not answer: {cause}") from error


def now(connection: Connection, clock: Clock | None = None) -> Instant:
    """The database's own clock, in ms since the Unix epoch; ``clock`` stands in for it where time is simulated."""
    if clock is not None:
        return clock.now()
    return int(connection.scalar(select(now_column(connection.dialect.name))) or 0)


def now_column(dialect: str) -> ColumnElement[int]:
    """The database's own clock as a column named :data:`NOW`, in a statement that asks for more.

    The one place where the dialects are told apart in SQL.
    """
    return literal_column(_NOW[dialect], BigInteger).label(NOW)
