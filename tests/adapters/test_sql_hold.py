"""One server per store on PostgreSQL: who holds it, how that is lost, and what becomes of who lost it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, make_url, text

from icewright.adapters.sql import hold as hold_module
from icewright.adapters.sql.engine import open_store
from icewright.adapters.sql.hold import SessionHold
from icewright.adapters.sql.patience import Patience
from icewright.adapters.sql.postgresql import BoundedConnection, postgresql_engine
from icewright.adapters.sql.task_store import SqlTaskStore
from icewright.adapters.sql.transactions import writing
from icewright.domain.errors import NotAllowed, StoreAway, StoreTaken
from tests.contracts.samples import new_task
from tests.servers.postgres import PostgresServer


@pytest.fixture
def url(postgres_url: str) -> str:
    return postgres_url


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engine = open_store(url)
    yield engine
    engine.dispose()


def refused(engine: Engine) -> NotAllowed:
    with pytest.raises(NotAllowed) as raised:
        SessionHold(engine, tried_s=0)
    return raised.value


def end_session(postgres: PostgresServer, session: BoundedConnection) -> None:
    """End it on the server, and wait until it has let go of everything."""
    postgres.execute(f"SELECT pg_terminate_backend({session.info.backend_pid}, 5000)")


def test_a_second_server_is_told_who_holds_the_store(engine: Engine) -> None:
    first = SessionHold(engine)
    assert f"another server holds the store: session {first._session.info.backend_pid} " in refused(engine).message
    first.close()
    SessionHold(engine).close()


def test_stores_of_one_database_server_do_not_concern_each_other(engine: Engine, postgres: PostgresServer) -> None:
    other = open_store(postgres.new_database())
    first, second = SessionHold(engine), SessionHold(other)
    first.close()
    second.close()
    other.dispose()


def test_writing_is_possible_while_it_is_held_and_nothing_stays_open(engine: Engine) -> None:
    hold = SessionHold(engine)
    assert SqlTaskStore(hold.engine).enqueue(new_task("task-1")).created
    with writing(engine) as connection:
        query = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in%'"
        assert connection.scalar(text(query)) == 0
    hold.close()


def test_a_lost_session_is_replaced_and_work_goes_on(engine: Engine, postgres: PostgresServer) -> None:
    hold = SessionHold(engine)
    end_session(postgres, hold._session)
    hold.check()
    hold.check()
    assert SqlTaskStore(hold.engine).enqueue(new_task("task-1")).created
    refused(engine)
    hold.close()


def test_whoever_was_replaced_writes_nothing_and_is_told(engine: Engine, postgres: PostgresServer) -> None:
    first = SessionHold(engine)
    store = SqlTaskStore(first.engine)
    store.enqueue(new_task("task-1"))
    end_session(postgres, first._session)
    second = SessionHold(engine)
    with pytest.raises(StoreTaken):
        store.claim("optimizer-1", resource_group="default", catalogs=frozenset({"lake"}), lease_ms=1_000)
    with pytest.raises(StoreTaken):
        first.check()
    second.close()
    with pytest.raises(StoreTaken):  # also when the other one has ended by now
        first.check()
    assert store.get("task-1").attempt == 0
    first.close()


def test_a_session_that_only_we_lost_is_waited_for(engine: Engine, postgres: PostgresServer) -> None:
    """The server believes it alive, until its keepalives tell: nobody else can have taken the store."""
    hold = SessionHold(engine)
    ghost = hold._session
    hold._session = _closed(engine)
    with pytest.raises(StoreAway, match="not free yet") as raised:
        hold.check()
    assert not isinstance(raised.value, StoreTaken)
    end_session(postgres, ghost)
    hold.check()
    hold.close()


def test_a_database_that_is_away_says_so(engine: Engine) -> None:
    hold = SessionHold(engine)
    hold.close()
    hold._engine = postgresql_engine(make_url("postgresql://u@127.0.0.1:1/d"), Patience())
    with pytest.raises(StoreAway, match="does not answer"):
        hold.check()


def _closed(engine: Engine) -> BoundedConnection:
    session = hold_module._open(engine)
    session.close()
    return session
