"""PostgreSQL as the store on its bad days: slow, stopped, gone in the middle of a commit, or not what it should be."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import psutil
import psycopg
import pytest
from sqlalchemy import Engine, create_engine, make_url, select, text, update

from icewright.core.errors import InvalidConfiguration, InvalidMessage, OutcomeUnknown, StoreUnavailable
from icewright.model.work.tasks import TaskState
from icewright.ports.store import TaskFilter
from icewright.store import postgresql
from icewright.store.engine import open_store
from icewright.store.schema import FENCING_TOKEN, counters
from icewright.store.timeouts import Timeouts
from icewright.store.transactions import reading, writing
from icewright.work.store.task_store import SqlTaskStore
from tests.contracts.samples import PROGRESS, new_task
from tests.doubles.clock import ManualClock
from tests.servers.cutting_proxy import Cut, CuttingProxy
from tests.servers.postgres import PASSWORD, PASSWORD_IN_URLS, PostgresServer

LAKE = frozenset({"lake"})
IMPATIENT = Timeouts(lock_ms=200, connect_ms=1_000, statement_ms=400, answer_ms=600, idle_ms=4_000)


@pytest.fixture
def url(postgres_store_url: str) -> str:
    return postgres_store_url


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engine = open_store(url, patience=IMPATIENT)
    yield engine
    engine.dispose()


def token(engine: Engine) -> int:
    with reading(engine) as connection:
        return int(connection.scalar(select(counters.c.value).where(counters.c.name == FENCING_TOKEN)) or 0)


def _session(engine: Engine) -> int:
    with reading(engine) as connection:
        return int(connection.scalar(text("SELECT pg_backend_pid()")) or 0)


def test_as_many_connections_stay_as_a_busy_server_uses(engine: Engine) -> None:
    def some() -> set[int]:
        with ExitStack() as stack:
            opened = [stack.enter_context(reading(engine)) for _ in range(postgresql.CONNECTIONS_KEPT)]
            return {int(one.scalar(text("SELECT pg_backend_pid()")) or 0) for one in opened}

    before = some()
    assert len(before) == postgresql.CONNECTIONS_KEPT
    assert some() == before


def set_token(engine: Engine, value: int) -> None:
    with writing(engine) as connection:
        connection.execute(update(counters).where(counters.c.name == FENCING_TOKEN).values(value=value))


class TestOpening:
    def test_the_session_is_set_up_whatever_the_database_says(self, postgres: PostgresServer, url: str) -> None:
        for setting in ("synchronous_commit = off", "lock_timeout = 7", "default_transaction_read_only = on"):
            postgres.execute(f"ALTER DATABASE {make_url(url).database} SET {setting}")
        engine = open_store(url)
        set_token(engine, 1)
        with reading(engine) as connection:
            shown = {
                name: connection.scalar(text(f"SHOW {name}"))
                for name in ("synchronous_commit", "lock_timeout", "statement_timeout", "transaction_read_only")
            }
            assert shown == {
                "synchronous_commit": "on",
                "lock_timeout": "30s",
                "statement_timeout": "1min",
                "transaction_read_only": "on",
            }
            assert connection.scalar(text("SHOW transaction_isolation")) == "repeatable read"
        with writing(engine) as connection:
            assert connection.scalar(text("SHOW transaction_isolation")) == "read committed"
        engine.dispose()

    def test_a_database_that_is_not_unicode_is_refused(self, postgres: PostgresServer) -> None:
        postgres.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
        with pytest.raises(InvalidConfiguration, match="LATIN1"):
            open_store(postgres.url("latin"))

    def test_an_old_server_is_refused(self, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(postgresql, "_VERSION_MIN", 99_00_00)
        with pytest.raises(InvalidConfiguration, match="is 1"):
            open_store(url)

    def test_a_role_without_rights_is_told_so(self, postgres: PostgresServer, postgres_url: str) -> None:
        postgres.execute("CREATE ROLE stranger LOGIN PASSWORD 'x'")
        parsed = make_url(postgres_url).set(username="stranger", password=None)
        with pytest.raises(InvalidConfiguration, match="permission denied") as raised:
            open_store(parsed.render_as_string(), password="x")  # noqa: S106 - of a role that only this test has
        assert "own the database" in raised.value.hint

    def test_the_password_comes_beside_the_url_and_is_shown_nowhere(self, url: str) -> None:
        bare = make_url(url).set(password=None).render_as_string()
        engine = open_store(bare, password=PASSWORD)
        assert token(engine) == 0
        shown = f"{engine!r} {engine.url} {engine.url!r}"
        engine.dispose()
        with pytest.raises(StoreUnavailable) as wrong:
            open_store(bare, password=f"{PASSWORD}x")
        with pytest.raises(StoreUnavailable) as gone:
            open_store(make_url(url).set(port=1).render_as_string(hide_password=False))
        for said in (shown, repr(wrong.value), repr(gone.value), str(wrong.value.__cause__), str(gone.value.__cause__)):
            assert PASSWORD not in said
            assert PASSWORD_IN_URLS not in said

    @pytest.mark.parametrize("driver", ["postgresql+asyncpg", "postgresql+psycopg2"])
    def test_another_driver_is_refused(self, driver: str) -> None:
        with pytest.raises(InvalidConfiguration, match=re.escape(driver)):
            open_store(f"{driver}://h/d")

    def test_a_missing_driver_is_named_with_the_extra_that_has_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "psycopg", None)
        with pytest.raises(InvalidConfiguration) as raised:
            open_store("postgresql://h/d")
        assert "icewright[postgresql]" in raised.value.hint

    def test_a_server_that_is_not_there_is_unavailable(self) -> None:
        with pytest.raises(StoreUnavailable, match="does not answer"):
            open_store("postgresql://u@127.0.0.1:1/d", patience=IMPATIENT)

    @pytest.mark.parametrize("value", ["nul\x00", 2**63])
    def test_what_no_column_holds_is_refused_as_such(self, engine: Engine, value: object) -> None:
        query = "UPDATE counters SET value = :v" if isinstance(value, int) else "UPDATE counters SET name = :v"
        with pytest.raises(InvalidMessage), writing(engine) as connection:
            connection.execute(text(query), {"v": value})


class TestBadDays:
    def test_a_lock_held_by_another_session_is_unavailable_and_then_all_is_well(self, engine: Engine, url: str) -> None:
        store = SqlTaskStore(engine)
        other = create_engine(url)
        with other.begin() as connection:
            connection.execute(text("LOCK TABLE tasks"))
            with pytest.raises(StoreUnavailable, match="timeout"):
                store.enqueue(new_task("task-1"))
            with pytest.raises(StoreUnavailable, match="timeout"):
                store.counts()
        other.dispose()
        assert store.enqueue(new_task("task-1")).created

    def test_a_stopped_server_is_unavailable_and_then_all_is_well(
        self, postgres: PostgresServer, engine: Engine
    ) -> None:
        store = SqlTaskStore(engine)
        store.enqueue(new_task("task-1"))
        with stopped(postgres):
            for _ in range(2):  # over a connection that there is, and over a new one
                with pytest.raises(StoreUnavailable):
                    store.get("task-1")
        assert store.get("task-1").state is TaskState.QUEUED
        assert store.enqueue(new_task("task-2", table=2)).created

    def test_a_server_that_stops_in_the_middle_of_a_write_is_unavailable_and_nothing_was_written(
        self, postgres: PostgresServer, engine: Engine
    ) -> None:
        with pytest.raises(StoreUnavailable), writing(engine) as connection:  # noqa: PT012 - one transaction
            connection.execute(update(counters).values(value=5))
            with stopped(postgres):
                connection.execute(update(counters).values(value=6))
        assert token(engine) == 0

    def test_a_server_that_stops_in_the_middle_of_a_commit_leaves_it_unknown(
        self, postgres: PostgresServer, engine: Engine
    ) -> None:
        frozen = stopped(postgres)
        with pytest.raises(OutcomeUnknown), writing(engine) as connection:  # noqa: PT012 - the commit is at its end
            connection.execute(update(counters).values(value=5))
            frozen.__enter__()
        frozen.__exit__(None, None, None)
        assert token(engine) in (0, 5)

    def test_connections_that_the_server_ended_are_replaced(self, postgres: PostgresServer, engine: Engine) -> None:
        assert token(engine) == 0
        end_sessions(postgres, engine)
        set_token(engine, 5)
        end_sessions(postgres, engine)
        assert token(engine) == 5

    def test_a_connection_is_asked_whether_it_lives_only_after_a_rest(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[object] = []
        monkeypatch.setattr(engine.dialect, "do_ping", asked.append)
        for _ in range(3):
            token(engine)
        assert asked == []
        monkeypatch.setattr(postgresql, "RESTS_S_MAX", 0.0)
        token(engine)
        assert len(asked) == 1

    def test_a_connection_that_died_without_a_word_while_it_rested_is_replaced(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = _session(engine)
        monkeypatch.setattr(postgresql, "RESTS_S_MAX", 0.0)

        def silence(_connection: object) -> None:
            raise psycopg.OperationalError("no answer")

        monkeypatch.setattr(engine.dialect, "do_ping", silence)
        assert _session(engine) != before

    def test_a_connection_that_ends_within_a_transaction_is_unavailable(
        self, postgres: PostgresServer, engine: Engine
    ) -> None:
        with pytest.raises(StoreUnavailable), writing(engine) as connection:  # noqa: PT012 - one transaction
            connection.execute(update(counters).values(value=5))
            end_sessions(postgres, engine)
            connection.execute(update(counters).values(value=6))
        assert token(engine) == 0

    def test_a_client_that_stops_within_a_transaction_lets_go_of_the_lock(self, url: str) -> None:
        patient, stopping = open_store(url), open_store(url, patience=replace(IMPATIENT, write_ms=1_000))
        with pytest.raises(StoreUnavailable), writing(stopping) as connection:  # noqa: PT012 - one transaction, which stops
            connection.execute(update(counters).values(value=5))
            set_token(patient, 7)
            connection.execute(update(counters).values(value=6))
        assert token(patient) == 7
        patient.dispose()
        stopping.dispose()


@contextmanager
def stopped(postgres: PostgresServer) -> Iterator[None]:
    """All processes of the server, stopped as a machine that hangs stops them."""
    data = Path(postgres.execute("SHOW data_directory").strip())
    postmaster = psutil.Process(int((data / "postmaster.pid").read_text().split()[0]))
    processes = [postmaster, *postmaster.children()]
    for process in processes:
        with suppress(psutil.NoSuchProcess):  # a session that has just ended
            process.suspend()
    try:
        yield
    finally:
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.resume()


def end_sessions(postgres: PostgresServer, engine: Engine) -> None:
    ends = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname"
    postgres.execute(f"{ends} = '{engine.url.database}'")


@pytest.fixture
def line(postgres: PostgresServer) -> Iterator[CuttingProxy]:
    with CuttingProxy(postgres.port) as proxy:
        yield proxy


@pytest.fixture
def far_engine(line: CuttingProxy, url: str) -> Iterator[Engine]:
    """The database behind a line that may break."""
    engine = open_store(make_url(url).set(port=line.port).render_as_string(hide_password=False))
    yield engine
    engine.dispose()


class TestUnknownCommits:
    """The line breaks while a transaction commits: nobody can tell, and whoever looks again finds the truth."""

    @pytest.mark.parametrize("cut", Cut)
    def test_a_commit_without_an_answer_is_unknown(self, line: CuttingProxy, far_engine: Engine, cut: Cut) -> None:
        line.cut = cut
        with pytest.raises(OutcomeUnknown, match="during a commit") as raised:
            set_token(far_engine, 5)
        assert raised.value.__cause__ is not None
        assert token(far_engine) == (5 if cut is Cut.AFTER else 0)

    @pytest.mark.parametrize("cut", Cut)
    def test_everything_that_is_said_twice_is_done_once(self, line: CuttingProxy, far_engine: Engine, cut: Cut) -> None:
        store = SqlTaskStore(far_engine, clock := ManualClock())

        line.cut = cut
        with pytest.raises(OutcomeUnknown):
            store.enqueue(new_task("task-1"))
        again = store.enqueue(new_task("task-2"))
        assert again.coalesced is (cut is Cut.AFTER)
        (task,) = store.tasks(TaskFilter(), limit=9)

        line.cut = cut
        with pytest.raises(OutcomeUnknown):
            store.claim("optimizer-1", resource_group="default", catalogs=LAKE, lease_ms=1_000)
        if cut is Cut.AFTER:  # a lease that nobody knows of: it runs out
            assert store.claim("optimizer-1", resource_group="default", catalogs=LAKE, lease_ms=1_000) is None
            clock.advance(1_000)
            assert [each.task_id for each in store.expired(9)] == [task.task_id]
            return
        claimed = store.claim("optimizer-1", resource_group="default", catalogs=LAKE, lease_ms=1_000)
        assert claimed is not None
        assert claimed.lease is not None
        line.cut = cut
        with pytest.raises(OutcomeUnknown):
            store.heartbeat(task.task_id, claimed.lease.fencing_token, progress=PROGRESS, lease_ms=2_000)
        assert store.heartbeat(task.task_id, claimed.lease.fencing_token, progress=PROGRESS, lease_ms=2_000).lease
