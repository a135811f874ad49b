"""The databases that the store can be on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.servers.postgres import PostgresServer


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """SQLAlchemy's URL of an empty database, of each kind in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/icewright.db"
    postgres: PostgresServer = request.getfixturevalue("postgres")
    return postgres.new_database()
