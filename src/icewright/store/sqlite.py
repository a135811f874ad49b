"""SQLite as the store: one file on a local disk, for one process."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, create_engine, event

from icewright.core.errors import InvalidConfiguration
from icewright.store.locks import WriteLock
from icewright.store.timeouts import Timeouts
from icewright.store.transactions import ASKS, TURNS, WRITES, translated

_SWITCH_S_MAX: Final = 5.0
_PAUSE_S: Final = 0.05


def sqlite_engine(url: URL, patience: Timeouts) -> Engine:
    """The engine of a file, which is created for its owner alone where it is missing.

    Raises :class:`~icewright.core.errors.InvalidConfiguration`.
    """
    if not url.database or url.database == ":memory:" or url.database.startswith("file:"):
        raise InvalidConfiguration(
            f"the store's url {str(url)!r} names no file", hint="write sqlite:////absolute/path.db: four slashes"
        )
    _create_privately(Path(url.database))
    engine = create_engine(url, connect_args={"timeout": patience.lock_ms / 1000})
    engine.update_execution_options(**{TURNS: WriteLock(patience.lock_ms)})
    _configure(engine)
    return engine


def _create_privately(path: Path) -> None:
    """The file, readable by its owner alone; SQLite gives its log files the same mode."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise InvalidConfiguration(f"the store {path} cannot be opened: {error.strerror}") from error


def switch_to_wal(connection: Any) -> str:
    """The journal mode that SQLite answers.

    Of several connections that switch a new file at the same time it fails all but one at once, whatever the timeout:
    each holds the lock that the other waits for. Later tries find the file switched.
    """
    until_s = time.monotonic() + _SWITCH_S_MAX
    while True:
        try:
            return str(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        except sqlite3.OperationalError as error:
            primary_code = error.sqlite_errorcode & 0xFF
            if primary_code != sqlite3.SQLITE_BUSY or time.monotonic() > until_s:
                raise
            time.sleep(_PAUSE_S)


def _configure(engine: Engine) -> None:
    """Real transactions: the driver's own begin too late to lock, and leave reads out (SQLAlchemy, SQLite dialect)."""

    @event.listens_for(engine, "connect")
    def on_connect(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # the driver begins nothing by itself
        with translated():
            mode = switch_to_wal(connection)
        if mode != "wal":
            raise InvalidConfiguration(
                f"SQLite answers journal mode {mode!r} instead of WAL", hint="keep the store on a local disk"
            )
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")

    @event.listens_for(engine, "begin")
    def on_begin(connection: Connection) -> None:
        # A transaction that reads first and writes later cannot wait for another writer: SQLite fails it at once.
        options = connection.get_execution_options()
        if options.get(ASKS, False):
            return
        # Asked of the driver itself: of a transaction that reads one row, SQLAlchemy's way took a fifth.
        driver: Any = connection.connection.driver_connection
        driver.execute("BEGIN IMMEDIATE" if options.get(WRITES, False) else "BEGIN")
