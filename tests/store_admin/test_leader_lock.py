"""One server per store on SQLite, never a lock that outlives its holder, and no schema changed under a server."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Engine, inspect

from icewright.configuration.load import load_config
from icewright.core.errors import NotAllowed
from icewright.server.control_wiring import open_control_plane
from icewright.store.engine import open_store, store_engine
from icewright.store.migrate import VERSION_TABLE
from icewright.store_admin.leader_lock import alone_with, open_leader_election
from tests.lakes.sqlite import make_lake
from tests.lakes.stores import next_version, postgres_store, sqlite_store
from tests.servers.postgres import PostgresServer

_HOLD = """
import sys
from icewright.store.engine import open_store
from icewright.store_admin.leader_lock import open_leader_election
with open_leader_election(open_store(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


_CONFIG = """
[[catalogs]]
name = "lake"
type = "sql"
uri = "{uri}"
warehouse = "{warehouse}"
"""


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_who_needs_the_store_alone_is_refused_until_the_last_server_has_ended(
    database: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if database == "postgresql":
        url = postgres_store(request.getfixturevalue("postgres"))
    else:
        url = sqlite_store(tmp_path / "icewright.db")
    engine = open_store(url)
    first = subprocess.Popen(  # noqa: S603 - our own interpreter, as a list
        [sys.executable, "-c", _HOLD, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert first.stdout is not None
    assert first.stdout.readline() == "held\n"

    with pytest.raises(NotAllowed, match="another server holds the store"), alone_with(engine):
        pass
    first.kill()
    first.communicate()
    with alone_with(engine):
        if database == "sqlite":
            assert (tmp_path / "icewright.db.lock").stat().st_mode & 0o777 == 0o600
    engine.dispose()


def schema(engine: Engine) -> tuple[set[str], str | None]:
    """The columns of tasks, and the version of the schema."""
    with engine.connect() as connection:
        found = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        return {column["name"] for column in inspect(connection).get_columns("tasks")}, found.get_current_revision()


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_a_newer_server_beside_a_running_one_leaves_it_the_schema_that_it_knows(
    database: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Upgraded first and refused then, it would have changed the tables of the server that goes on."""
    entry = make_lake(tmp_path)
    (tmp_path / "icewright.toml").write_text(_CONFIG.format(uri=entry.uri, warehouse=entry.warehouse))
    config = load_config(None, {"HOME": str(tmp_path)}, tmp_path)
    if database == "postgresql":
        postgres: PostgresServer = request.getfixturevalue("postgres")
        config = replace(config, server=replace(config.server, store_url=postgres_store(postgres)))
    older = store_engine(config.server.store_url)
    running = ExitStack()
    running.enter_context(alone_with(older))
    columns, version = schema(older)
    following = next_version(monkeypatch, tmp_path)
    with running:
        with pytest.raises(NotAllowed, match="hold"), open_control_plane(config, {}):
            pass
        assert schema(older) == (columns, version)
    with open_control_plane(config, {}):
        found, after = schema(older)
        assert (found - columns, after) == ({"of_next"}, following)
    older.dispose()


def test_a_store_on_sqlite_has_one_server_which_leads(tmp_path: Path) -> None:
    engine = open_store(sqlite_store(tmp_path / "icewright.db"))
    with open_leader_election(engine) as election:
        assert election.lead() is not None
        with pytest.raises(NotAllowed, match="another server holds the store") as raised, open_leader_election(engine):
            pass
        assert "several servers share a store on PostgreSQL" in raised.value.hint
    engine.dispose()
