"""Transactions that read or write, the database's clock, and the errors of SQLAlchemy in icewright's words."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import BigInteger, ColumnElement, Connection, Engine, literal_column, select
from sqlalchemy.exc import DBAPIError, IntegrityError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from icewright.domain.errors import InvalidMessage, StoreAway
from icewright.domain.tables import Instant
from icewright.ports.clock import Clock

WRITES = "icewright_writes"
"""The execution option of a connection whose transactions write."""

_NOW = {
    # SQLite below 3.42 has no sub-second unixepoch(); 2440587.5 is the Julian day of the Unix epoch.
    "sqlite": "CAST(ROUND((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)",
    # Not now(): that stands still during a transaction, which may have waited for a lock.
    "postgresql": "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
}


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """One transaction that sees one state of the database."""
    with translated(), engine.connect() as connection, connection.begin():
        yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """One transaction that may write; committed at the end, rolled back by any exception."""
    with (
        translated(),
        engine.connect() as connection,
        connection.execution_options(**{WRITES: True}).begin(),
    ):
        yield connection


@contextmanager
def translated() -> Iterator[None]:
    """The door: what libraries raise leaves as an error of icewright.

    Broken constraints and wrong SQL are not translated: where they are not expected, they are mistakes of ours.
    """
    try:
        yield
    except (IntegrityError, ProgrammingError):
        raise
    except (DBAPIError, PoolTimeoutError, sqlite3.OperationalError, sqlite3.DatabaseError) as error:
        cause = getattr(error, "orig", None) or error
        raise StoreAway(f"the store does not answer: {cause}") from error
    except (UnicodeEncodeError, OverflowError) as error:
        raise InvalidMessage(f"the store cannot hold the value: {error}") from error


def now(connection: Connection, clock: Clock | None = None) -> Instant:
    """The database's own clock, in ms since the Unix epoch; ``clock`` stands in for it where time is simulated."""
    if clock is not None:
        return clock.now()
    return int(connection.scalar(select(_now_expression(connection.dialect.name))) or 0)


def _now_expression(dialect: str) -> ColumnElement[int]:
    """The one place where the dialects are told apart in SQL."""
    return literal_column(_NOW[dialect], BigInteger)
