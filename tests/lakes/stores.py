"""Stores at the newest schema for tests that are not about migrations: copies of one that this process made.

icewright opens a copy as it opens any store. Making one loads Alembic and takes 12 ms of CPU, a copy takes one.
:func:`next_version` is for tests of what comes with the next migration.
"""

from __future__ import annotations

import shutil
import tempfile
from functools import cache
from pathlib import Path

import pytest

from icewright.store import migrate
from icewright.store.engine import open_store
from tests.servers.postgres import PostgresServer

_NEXT = """
import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "{}", "{}", None, None


def upgrade() -> None:
    op.add_column("tasks", sa.Column("of_next", sa.Text()))
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


def next_version(monkeypatch: pytest.MonkeyPatch, folder: Path) -> str:
    """Be the icewright that comes next, whose one more migration adds ``tasks.of_next``; the schema that it has."""
    migrations = folder / "migrations_of_next"
    shutil.copytree(migrate._MIGRATIONS, migrations, ignore=shutil.ignore_patterns("__pycache__"))
    present = migrate.newest_revision()
    following = f"{int(present) + 1:04}"
    (migrations / "versions" / f"v{following}_next.py").write_text(_NEXT.format(following, present), encoding="utf-8")
    monkeypatch.setattr(migrate, "_MIGRATIONS", migrations)
    monkeypatch.setattr(migrate, "known_revisions", migrate.known_revisions.__wrapped__)
    return following
