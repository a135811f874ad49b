"""The databases that the store can be on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lakes.stores import postgres_store, sqlite_store
from tests.servers.postgres import PostgresServer


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """SQLAlchemy's URL of an empty database on PostgreSQL."""
    url = postgres.new_database()
    yield url
    postgres.drop(url)


@pytest.fixture
def postgres_store_url(postgres: PostgresServer) -> Iterator[str]:
    """SQLAlchemy's URL of a store on PostgreSQL at the newest schema."""
    url = postgres_store(postgres)
    yield url
    postgres.drop(url)


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """SQLAlchemy's URL of an empty database, of each kind in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/icewright.db"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture(params=["sqlite", "postgresql"])
def migrated_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """SQLAlchemy's URL of a store at the newest schema, of each kind in turn."""
    if request.param == "sqlite":
        return sqlite_store(tmp_path / "icewright.db")
    return str(request.getfixturevalue("postgres_store_url"))
