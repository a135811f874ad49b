"""Stores at the newest schema for tests that are not about migrations: copies of one that was migrated in this process.

icewright opens a copy as it opens any store. 36 migrations take some 170 ms of CPU on SQLite, a copy takes one.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from icewright.adapters.sql.engine import open_store
from tests.servers.postgres import PostgresServer


def sqlite_store(path: Path) -> str:
    """SQLAlchemy's URL of a store in a new file ``path``, whose folder is made where it is missing."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o600, exist_ok=False)  # as icewright makes it
    path.write_bytes(_sqlite_template())
    return f"sqlite:///{path}"


def postgres_store(postgres: PostgresServer) -> str:
    """SQLAlchemy's URL of a store in a new database, for :meth:`PostgresServer.drop`."""
    return postgres.new_database(_postgres_template(postgres))


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
