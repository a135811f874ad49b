"""Stores at the newest schema for tests that are not about migrations: copies of one that this process made.

icewright opens a copy as it opens any store. Making one loads Alembic and takes 12 ms of CPU, a copy takes one.
:func:`new_store` is for tests that want a store and do not care which. :func:`next_version` is for tests of what comes
with the next migration.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import weakref
from functools import cache
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine, delete, event, insert, select

from icewright.store import migrate
from icewright.store.engine import open_store
from icewright.store.schema import counters
from icewright.store.transactions import ASKS, reading, writing
from icewright.store_admin.all_tables import metadata
from tests.servers.postgres import PostgresServer

_DELETING = [str(delete(table)) for table in reversed(metadata.sorted_tables)]
_RESTARTING = {
    "sqlite": "DELETE FROM sqlite_sequence",
    "postgresql": "SELECT setval(oid, 1, false) FROM pg_class WHERE relkind = 'S'",
}
_FREE: list[SharedStore] = []
"""Those of :func:`new_store` that nobody refers to."""
_NUMBERS = count()

_NEXT = """
import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "{}", "{}", None, None
{}

def upgrade() -> None:
    op.add_column("tasks", sa.Column("{}", sa.Text()))
"""


def sqlite_store(path: Path) -> str:
    """SQLAlchemy's URL of a store in a new file ``path``, whose folder is made where it is missing."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o600, exist_ok=False)  # as icewright makes it
    path.write_bytes(_sqlite_template())
    return f"sqlite:///{path}"


def postgres_store(postgres: PostgresServer) -> str:
    """SQLAlchemy's URL of a store in a new database, for :meth:`PostgresServer.drop`."""
    return postgres.new_database(_postgres_template(postgres))


def new_store() -> Engine:
    """An empty store on SQLite for one test: it serves the next one as soon as nobody refers to it any more.

    The rows of the test before are deleted, which takes less than 2 ms, a new file with its engine 10 ms; compiled
    statements stay.
    """
    shared = _FREE.pop() if _FREE else SharedStore(sqlite_store(Path(_folder().name) / f"{next(_NUMBERS)}.db"))
    shared.empty()
    store = shared.engine.execution_options()
    weakref.finalize(store, _FREE.append, shared)
    return store


class SharedStore:
    """A database for all tests in turn. Nothing is flushed to the disk."""

    def __init__(self, url: str) -> None:
        self.engine = open_without_sync(url)
        with reading(self.engine) as connection:
            self._counters = [dict(row) for row in connection.execute(select(counters)).mappings()]

    def empty(self) -> None:
        """As a new store is. Deleting the few rows of a test takes a fraction of what TRUNCATE takes for 40 tables."""
        with writing(self.engine) as connection:
            statements = [*_DELETING, _RESTARTING[connection.dialect.name]]
            if connection.dialect.name == "postgresql":  # which is far away, and takes them at once
                statements = ["; ".join(statements)]
            for statement in statements:
                connection.exec_driver_sql(statement)
            connection.execute(insert(counters), self._counters)


def open_without_sync(url: str) -> Engine:
    """The engine of a store that flushes nothing to the disk."""
    engine = open_store(url)
    event.listen(engine, "before_cursor_execute", _one_question_only)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _flush_nothing)
        engine.dispose()
    return engine


_ASKED: weakref.WeakSet[Connection] = weakref.WeakSet()


def _one_question_only(connection: Connection, _cursor: object, statement: str, *_more: object) -> None:
    """What is asked without a transaction is one statement that reads: two may see two states, and a write no fence."""
    if connection.get_execution_options().get(ASKS, False):
        assert connection not in _ASKED, f"a second statement needs a transaction: {statement}"
        assert statement.lstrip("( ").startswith(("SELECT", "WITH")), f"what writes needs a transaction: {statement}"
        _ASKED.add(connection)


def _flush_nothing(connection: sqlite3.Connection, _record: object) -> None:
    connection.execute("PRAGMA synchronous = OFF")


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(dir=os.environ.get("PYTEST_DEBUG_TEMPROOT"))


@cache
def _sqlite_template() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "template.db"
        open_store(f"sqlite:///{path}").dispose()  # the last connection leaves no log behind
        return path.read_bytes()


@cache
def _postgres_template(postgres: PostgresServer) -> str:
    """The name of a database that nothing is connected to, as ``CREATE DATABASE ... TEMPLATE`` wants it."""
    url = postgres.new_database()
    open_store(url).dispose()
    return url.rpartition("/")[2]


def next_version(monkeypatch: pytest.MonkeyPatch, folder: Path, *, serves: str | None = None) -> str:
    """Be the icewright that comes next, whose one more migration adds ``tasks.of_next``; the schema that it has.

    ``serves`` is the oldest schema whose servers go on beside it, where it says so.
    """
    migrations = folder / f"migrations_after_{migrate.newest_revision()}"
    shutil.copytree(migrate._MIGRATIONS, migrations, ignore=shutil.ignore_patterns("__pycache__"))
    present = migrate.newest_revision()
    following = f"{int(present) + 1:04}"
    column = "of_next" + "_but_one" * len(list(migrations.glob("versions/*_next.py")))
    (migrations / "versions" / f"v{following}_next.py").write_text(
        _NEXT.format(following, present, f'serves = "{serves}"' if serves else "", column), encoding="utf-8"
    )
    monkeypatch.setattr(migrate, "_MIGRATIONS", migrations)
    monkeypatch.setattr(
        migrate, "known_revisions", getattr(migrate.known_revisions, "__wrapped__", migrate.known_revisions)
    )
    return following
