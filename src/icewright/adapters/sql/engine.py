"""Opening the database: the settings that durability and exclusion rest on, and the way up to the newest schema."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from icewright.adapters.sql.migrate import upgrade
from icewright.adapters.sql.transactions import WRITES, translated, writing
from icewright.domain.errors import InvalidConfiguration

BUSY_TIMEOUT_MS = 30_000
"""How long to wait for another process's write transaction. All of ours are short; longer means that it hangs."""

_SQLITE = "sqlite"
_SUPPORTED = frozenset({_SQLITE})


def open_store(url: str, *, busy_timeout_ms: int = BUSY_TIMEOUT_MS) -> Engine:
    """The engine of a database that is there, ours, and at the newest schema.

    ``url`` is SQLAlchemy's, such as ``sqlite:////var/lib/icewright/state.db``; a missing SQLite file is created for
    its owner alone. Raises :class:`~icewright.domain.errors.InvalidConfiguration` when the database cannot be used
    as it is, and :class:`~icewright.domain.errors.Unavailable` when it does not answer.
    """
    parsed = _parse(url)
    _create_privately(Path(str(parsed.database)))
    engine = create_engine(parsed, connect_args={"timeout": busy_timeout_ms / 1000})
    _configure_sqlite(engine)
    try:
        with writing(engine) as connection:
            upgrade(connection)
    except BaseException:
        engine.dispose()
        raise
    return engine


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
        parsed.get_dialect()
    except (ArgumentError, NoSuchModuleError) as error:
        raise InvalidConfiguration(f"the store's url cannot be used: {error}") from error
    if backend not in _SUPPORTED:
        raise InvalidConfiguration(f"the store cannot be {backend} yet", hint="write sqlite:////absolute/path.db")
    if not parsed.database or parsed.database == ":memory:" or parsed.database.startswith("file:"):
        raise InvalidConfiguration(
            f"the store's url {url!r} names no file", hint="write sqlite:////absolute/path.db: four slashes"
        )
    return parsed


def _create_privately(path: Path) -> None:
    """The file, readable by its owner alone; SQLite gives its log files the same mode."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise InvalidConfiguration(f"the store {path} cannot be opened: {error.strerror}") from error


def _configure_sqlite(engine: Engine) -> None:
    """Real transactions: the driver's own begin too late to lock, and leave reads out (SQLAlchemy, SQLite dialect)."""

    @event.listens_for(engine, "connect")
    def on_connect(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # the driver begins nothing by itself
        with translated():
            mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        if mode != "wal":
            raise InvalidConfiguration(
                f"SQLite answers journal mode {mode!r} instead of WAL", hint="keep the store on a local disk"
            )
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")

    @event.listens_for(engine, "begin")
    def on_begin(connection: Connection) -> None:
        # A transaction that reads first and writes later cannot wait for another writer: SQLite fails it at once.
        writes = connection.get_execution_options().get(WRITES, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
