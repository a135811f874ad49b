"""Servers of one store on PostgreSQL: who is there, who leads, how that is lost, and what becomes of who lost it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Connection, Engine, make_url, text

from icewright.actions.remove_files.adapters.deletion_store import SqlDeletionStore
from icewright.core.errors import InvalidConfiguration, NotAllowed, OutcomeUnknown, StoreTaken, StoreUnavailable
from icewright.store import migrate, session_lock
from icewright.store import session_lock as hold_module
from icewright.store.engine import open_store, store_engine, upgrade_store
from icewright.store.migrate import newest_revision
from icewright.store.postgresql import SERVERS, BoundedConnection, postgresql_engine
from icewright.store.session_lock import PostgresLeaderElection, hold_exclusively
from icewright.store.timeouts import Timeouts
from icewright.store.transactions import FOLLOWS, reading, require_lead, server_epoch, writing
from icewright.work.store.task_store import SqlTaskStore
from tests.contracts.samples import new_task
from tests.lakes.stores import next_version
from tests.servers.postgres import PostgresServer


@pytest.fixture
def url(postgres_store_url: str) -> str:
    return postgres_store_url


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engine = open_store(url)
    yield engine
    engine.dispose()


@pytest.fixture
def elections(engine: Engine) -> Iterator[tuple[PostgresLeaderElection, PostgresLeaderElection]]:
    """Two servers of one store."""
    first, second = PostgresLeaderElection(engine, tried_s=0), PostgresLeaderElection(engine, tried_s=0)
    yield first, second
    first.close()
    second.close()


def led(election: PostgresLeaderElection) -> Engine:
    """It leads, as soon as PostgreSQL has noticed that the session of the other one is closed."""
    until_s = time.monotonic() + 30
    while (engine := election.lead()) is None:
        assert time.monotonic() < until_s
        time.sleep(0.01)
    return engine


def end_session(postgres: PostgresServer, session: BoundedConnection) -> None:
    """End it on the server, and wait until it has let go of everything."""
    postgres.execute(f"SELECT pg_terminate_backend({session.info.backend_pid}, 5000)")


def test_of_two_servers_one_leads_and_the_other_one_when_that_resigns_or_ends(
    elections: tuple[PostgresLeaderElection, PostgresLeaderElection],
) -> None:
    first, second = elections
    led(first)
    assert second.lead() is None
    assert (first.epoch, second.epoch) == (1, None)
    first.resign()
    led(second)
    assert first.lead() is None
    assert (first.epoch, second.epoch) == (None, 2)
    second.close()
    led(first)
    assert first.epoch == 3


def test_stores_of_one_database_server_do_not_concern_each_other(engine: Engine, postgres: PostgresServer) -> None:
    other = open_store(postgres.new_database())
    first, second = PostgresLeaderElection(engine), PostgresLeaderElection(other)
    led(first)
    led(second)
    first.close()
    second.close()
    other.dispose()


def test_writing_is_possible_while_one_leads_and_nothing_stays_open(
    engine: Engine, elections: tuple[PostgresLeaderElection, PostgresLeaderElection]
) -> None:
    assert SqlTaskStore(led(elections[0])).enqueue(new_task("task-1")).created
    assert SqlTaskStore(engine).enqueue(new_task("task-2", table=2)).created
    with writing(engine) as connection:
        query = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in%'"
        assert connection.scalar(text(query)) == 0


def test_a_lost_session_is_replaced_and_its_server_goes_on_to_lead(
    elections: tuple[PostgresLeaderElection, PostgresLeaderElection], postgres: PostgresServer
) -> None:
    first, second = elections
    engine = led(first)
    end_session(postgres, first._session)
    first.check()
    first.check()
    assert SqlTaskStore(engine).enqueue(new_task("task-1")).created
    assert second.lead() is None


def test_i15_whoever_was_replaced_writes_nothing_and_follows(
    elections: tuple[PostgresLeaderElection, PostgresLeaderElection], engine: Engine, postgres: PostgresServer
) -> None:
    first, second = elections
    store = SqlTaskStore(led(first))
    store.enqueue(new_task("task-1"))
    end_session(postgres, first._session)
    led(second)
    with pytest.raises(StoreTaken):
        store.claim("optimizer-1", resource_group="default", catalogs=frozenset({"lake"}), lease_ms=1_000)
    with pytest.raises(StoreTaken):
        first.check()
    assert first.epoch is None
    first.check()  # it is there all the same, and follows
    assert first.lead() is None
    assert store.get("task-1").attempt == 0
    claimed = SqlTaskStore(engine).claim(
        "optimizer-1", resource_group="default", catalogs=frozenset({"lake"}), lease_ms=1_000
    )
    assert claimed is not None  # what any server may do, it may


def test_who_lost_the_lead_to_one_that_has_ended_by_now_does_not_go_on_as_if_nothing_was(
    elections: tuple[PostgresLeaderElection, PostgresLeaderElection], postgres: PostgresServer
) -> None:
    first, second = elections
    led(first)
    end_session(postgres, first._session)
    led(second)
    second.close()
    with pytest.raises(StoreTaken):
        first.check()
    led(first)
    assert first.epoch == 3


def test_a_leader_whose_session_only_it_lost_leads_on_by_its_lease(
    elections: tuple[PostgresLeaderElection, PostgresLeaderElection], engine: Engine, postgres: PostgresServer
) -> None:
    """PostgreSQL believes the session alive, until its keepalives tell: no other server can lead."""
    first, second = elections
    led(first)
    ghost = first._session
    first._session = _closed(engine)
    for _ in range(2):
        first.check()
    assert second.lead() is None
    end_session(postgres, ghost)
    first.check()
    assert second.lead() is None
    assert first.epoch == 1


def test_a_leader_that_does_not_renew_its_lease_loses_its_session_and_the_lead(engine: Engine) -> None:
    first, second = PostgresLeaderElection(engine, lease_ms=500), PostgresLeaderElection(engine, lease_ms=500)
    store = SqlTaskStore(led(first))
    until_s = time.monotonic() + 1.5
    while time.monotonic() < until_s:
        first.check()  # a leader that renews leads on
        assert second.lead() is None
    led(second)  # it stands still
    assert first._session.closed or not _answers(first._session)
    with pytest.raises(StoreTaken):
        store.enqueue(new_task("task-1"))
    with pytest.raises(StoreTaken):
        SqlDeletionStore(store._engine).epoch()
    with pytest.raises(StoreTaken):
        require_lead(store._engine)
    with pytest.raises(StoreTaken):
        first.check()
    second.check()
    assert (first.epoch, second.epoch, first.lead()) == (None, 2, None)
    first.close()
    second.close()


def test_a_session_that_the_role_may_not_end_is_fenced_off_all_the_same(
    postgres: PostgresServer, engine: Engine
) -> None:
    """Servers with roles of their own: the lead goes over without the lock, and the lock follows it."""
    first = PostgresLeaderElection(engine, lease_ms=500)
    store = SqlTaskStore(led(first))
    database = str(engine.url.database)
    postgres.execute("CREATE ROLE other LOGIN PASSWORD 'other-password'")
    try:
        granted = "GRANT ALL ON ALL TABLES IN SCHEMA public TO other; GRANT CREATE ON SCHEMA public TO other"
        postgres.execute(granted, database)
        theirs = store_engine(str(engine.url.set(username="other", password=None)), password="other-password")  # noqa: S106 - of this test
        second = PostgresLeaderElection(theirs, lease_ms=500)
        led(second)
        assert second.epoch == 2
        with pytest.raises(StoreTaken):
            store.enqueue(new_task("task-1"))
        second.check()
        assert first.lead() is None if first.epoch is None else True
        with pytest.raises(StoreTaken):
            first.check()
        second.check()
        assert second._has_lock
        second.close()
        theirs.dispose()
    finally:
        first.close()
        postgres.execute("DROP OWNED BY other; ", database)
        postgres.execute("DROP ROLE other")


def test_of_many_that_find_the_lease_run_out_at_once_one_leads(engine: Engine) -> None:
    elections = [PostgresLeaderElection(engine, lease_ms=lease_ms) for lease_ms in (2_000, *[60_000] * 5)]
    led(elections[0])
    time.sleep(2.1)
    with ThreadPoolExecutor(5) as pool:
        engines = list(pool.map(lambda election: election.lead(), elections[1:]))
    assert sum(one is not None for one in engines) == 1
    assert [election.epoch for election in elections[1:] if election.epoch is not None] == [2]
    for election in elections:
        election.close()


def test_one_that_comes_late_ends_no_session_of_the_new_leader(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has seen that the lease ran out, and before it does anything another server leads."""
    elections = [PostgresLeaderElection(engine, lease_ms=lease_ms) for lease_ms in (100, *[60_000] * 3)]
    led(elections[0])
    time.sleep(0.2)
    has_run_out = session_lock._has_run_out

    def late(connection: Connection) -> bool:
        seen = has_run_out(connection)
        monkeypatch.setattr(session_lock, "_has_run_out", has_run_out)
        led(elections[1])
        return seen

    monkeypatch.setattr(session_lock, "_has_run_out", late)
    assert elections[2].lead() is None
    assert elections[3].lead() is None
    elections[1].check()
    assert elections[1].epoch == 2
    assert elections[1]._has_lock
    for election in elections:
        election.close()


def test_a_lock_that_is_free_tells_of_no_death_while_the_leaders_session_is_there(engine: Engine) -> None:
    """Such as right after another one has ended, or after the leader's own was cut and made anew."""
    first, second = PostgresLeaderElection(engine), PostgresLeaderElection(engine)
    led(first)
    first._unlock()
    assert second.lead() is None
    first.check()
    assert first._has_lock
    first._session.close()
    first.check()
    first._unlock()
    assert second.lead() is None
    first.check()
    assert first.epoch == 1
    first.close()
    led(second)
    assert second.epoch == 2
    second.close()


def test_a_writer_that_stands_still_is_ended_within_half_a_lease(engine: Engine) -> None:
    bounded = postgresql_engine(engine.url, Timeouts.of_lease(1_000))

    def stand_still() -> None:
        with writing(bounded) as connection:
            connection.execute(text("UPDATE counters SET value = 77 WHERE name = 'server_epoch'"))
            assert SqlTaskStore(engine).enqueue(new_task("task-1")).created  # waits for its end

    with pytest.raises((StoreUnavailable, OutcomeUnknown)):
        stand_still()
    with pytest.raises(StoreUnavailable, match="statement timeout"), writing(bounded) as connection:
        connection.execute(text("SELECT pg_sleep(2)"))
    with reading(engine) as connection:
        assert server_epoch(connection) == 0
    bounded.dispose()


def _answers(session: BoundedConnection) -> bool:
    try:
        session.execute("SELECT 1")
    except psycopg.Error:
        return False
    return True


def test_a_database_that_is_away_says_so(engine: Engine) -> None:
    election = PostgresLeaderElection(engine)
    election.close()
    election._engine = postgresql_engine(make_url("postgresql://u@127.0.0.1:1/d"), Timeouts())
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="does not answer"):
            election.check()


def test_whoever_puts_a_backup_in_place_needs_all_servers_gone(engine: Engine) -> None:
    follows = PostgresLeaderElection(engine)
    with (
        pytest.raises(NotAllowed, match="another server holds the store: session") as raised,
        hold_exclusively(engine, tried_s=0),
    ):
        pass
    assert f"session {follows._session.info.backend_pid} of" in raised.value.message
    follows.close()
    with hold_exclusively(engine, tried_s=3) as own:
        assert SqlTaskStore(own).enqueue(new_task("task-1")).created
        with pytest.raises(NotAllowed, match="hold the store"):
            PostgresLeaderElection(engine, tried_s=0)
    PostgresLeaderElection(engine, tried_s=3).close()


def test_a_store_is_upgraded_by_who_comes_first_and_never_under_others(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    older, other = PostgresLeaderElection(engine), PostgresLeaderElection(engine)
    present, following = newest_revision(), next_version(monkeypatch, tmp_path)
    with pytest.raises(NotAllowed, match="other servers hold the store, and it is to be upgraded"):
        PostgresLeaderElection(engine, tried_s=0)
    assert _version(engine) == present
    older.close()
    with pytest.raises(NotAllowed):
        PostgresLeaderElection(engine, tried_s=0)
    other.close()
    newer = PostgresLeaderElection(engine, tried_s=3)
    assert _version(engine) == newest_revision() == following
    PostgresLeaderElection(engine, tried_s=0).close()
    newer.close()


def test_a_store_is_upgraded_under_servers_that_the_next_release_serves_and_both_go_on(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, postgres: PostgresServer
) -> None:
    present = newest_revision()
    older = PostgresLeaderElection(engine)
    assert older.lead() is not None
    with monkeypatch.context() as next_release:
        next_version(next_release, tmp_path, serves=present)
        newer = PostgresLeaderElection(engine, tried_s=0)
        assert _version(engine) == newest_revision() != present
        assert newer.lead() is None, "the older one leads"
    older.check()
    end_session(postgres, older._session)
    older.check()
    SqlTaskStore(engine).enqueue(new_task("of-the-older-one"))
    PostgresLeaderElection(engine, tried_s=0).close()  # one more of the older release
    older.close()
    newer.check()
    led(newer)
    newer.close()


def test_a_release_that_takes_something_away_waits_for_all_that_it_does_not_serve(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Three releases: the second serves the first, the third serves the second alone."""
    first = PostgresLeaderElection(engine)
    with monkeypatch.context() as releases:
        second_schema = next_version(releases, tmp_path, serves=newest_revision())
        second = PostgresLeaderElection(engine, tried_s=0)
        third_schema = next_version(releases, tmp_path, serves=second_schema)
        with pytest.raises(NotAllowed, match="other servers hold the store, and it is to be upgraded"):
            PostgresLeaderElection(engine, tried_s=0)
        assert _version(engine) == second_schema
        first.close()
        third = PostgresLeaderElection(engine, tried_s=3)
        assert _version(engine) == third_schema
    with pytest.raises(InvalidConfiguration, match=f"schema {third_schema}, which this version"):
        PostgresLeaderElection(engine, tried_s=0)
    second.check()
    for one in (second, third):
        one.close()


def test_a_server_that_has_no_lock_of_its_schema_is_waited_for_as_well(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As releases before 0048 have none."""
    with closing(session_lock._open(engine)) as session:
        assert session_lock._try(session, "pg_try_advisory_lock_shared", SERVERS)
        next_version(monkeypatch, tmp_path, serves=next_version(monkeypatch, tmp_path))
        with pytest.raises(NotAllowed, match="other servers hold the store, and it is to be upgraded"):
            PostgresLeaderElection(engine, tried_s=0)


def test_nobody_of_an_unserved_release_comes_while_the_store_is_upgraded(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    came = list[str]()

    def slow(engine: Engine) -> None:
        with monkeypatch.context() as older:
            older.setattr(session_lock, "newest_revision", lambda: first_schema)
            older.setattr(session_lock, "must_be_upgraded", lambda _: False)
            older.setattr(session_lock, "upgrade_store", upgrade_store)
            with pytest.raises(NotAllowed, match="is being upgraded"):
                PostgresLeaderElection(engine, tried_s=0)
        came.append("refused")
        upgrade_store(engine)

    first_schema = newest_revision()
    with monkeypatch.context() as releases:
        second_schema = next_version(releases, tmp_path, serves=first_schema)
        second = PostgresLeaderElection(engine, tried_s=0)
        next_version(releases, tmp_path, serves=second_schema)
        monkeypatch.setattr(session_lock, "upgrade_store", slow)
        third = PostgresLeaderElection(engine, tried_s=0)
    assert came == ["refused"]
    for one in (second, third):
        one.close()


def test_a_store_is_not_upgraded_under_who_has_it_alone_and_nobody_has_it_alone_while_it_is_upgraded(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also where the servers of before may go on: a backup is put in place, by one release or the other."""
    present, upgrades = newest_revision(), list[bool]()
    next_version(monkeypatch, tmp_path, serves=present)
    with closing(session_lock._open(engine)) as alone:

        def slow(engine: Engine) -> None:
            upgrades.append(session_lock._try(alone, "pg_try_advisory_lock", SERVERS))
            upgrade_store(engine)

        monkeypatch.setattr(session_lock, "upgrade_store", slow)
        assert session_lock._try(alone, "pg_try_advisory_lock", SERVERS)
        with pytest.raises(NotAllowed, match="other servers hold the store"):
            PostgresLeaderElection(engine, tried_s=0)
        assert (_version(engine), upgrades) == (present, [])
        alone.execute("SELECT pg_advisory_unlock_all()")
        newer = PostgresLeaderElection(engine, tried_s=0)
        assert (_version(engine), upgrades) == (newest_revision(), [False])
        assert not session_lock._try(alone, "pg_try_advisory_lock", SERVERS)
        newer.close()


def test_a_migration_serves_none_that_those_before_it_do_not() -> None:
    """An older release goes on with all that came since, or not at all."""
    oldest = "0000"
    for path in sorted((migrate._MIGRATIONS / "versions").glob("v*.py")):
        said = re.search(r'^serves = "(\d{4})"$', path.read_text(), re.MULTILINE)
        serves = said[1] if said else path.name[1:5]
        assert oldest <= serves <= path.name[1:5], path.name
        oldest = serves


def test_a_server_whose_store_was_upgraded_while_it_was_away_is_none_any_more(
    engine: Engine, postgres: PostgresServer
) -> None:
    election = PostgresLeaderElection(engine)
    end_session(postgres, election._session)
    with writing(engine) as connection:
        connection.execute(text("UPDATE icewright_schema SET version_num = '9999'"))
        connection.execute(text("UPDATE counters SET value = 9999 WHERE name = 'schema_serves'"))
    with pytest.raises(InvalidConfiguration, match="9999"):
        election.check()


def test_i15_a_follower_has_no_hands_on_files(engine: Engine) -> None:
    """Also where somebody forgets that, and where it knows the epoch."""
    store = SqlDeletionStore(engine.execution_options(**{FOLLOWS: True}))
    for write in (
        lambda: store.change(store.epoch(), []),
        lambda: store.close("run", store.epoch()),
        lambda: store.rest("run", store.epoch(), 0),
    ):
        with pytest.raises(NotAllowed, match="the server that leads alone"):
            write()


def _version(engine: Engine) -> str:
    with engine.connect() as connection:
        return str(connection.scalar(text("SELECT version_num FROM icewright_schema")))


def _closed(engine: Engine) -> BoundedConnection:
    session = hold_module._open(engine)
    session.close()
    return session
