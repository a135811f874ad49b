"""A store that comes from a backup: no token twice, nothing lost that tables know, nothing removed by old intents."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine, func, insert, select, update

from icewright.actions.remove_files.adapters.deletion_store import SqlDeletionStore
from icewright.audit.sql import SqlAudit
from icewright.config.model import Config
from icewright.configuration.load import load_config
from icewright.core.clock import Clock
from icewright.core.errors import (
    BucketLost,
    Conflict,
    InvalidConfiguration,
    LeaseLost,
    NotAllowed,
    NotFound,
    Unreadable,
)
from icewright.identity.sql import SqlIdentities
from icewright.model.access.identity import NewToken
from icewright.model.access.permissions import Role
from icewright.model.actions.actions import ActionKind
from icewright.model.events.feed import FeedFilter
from icewright.model.plans.approvals import Approval
from icewright.model.policy.resource_groups import Queue
from icewright.model.work.optimizers import Submitter, Submitting
from icewright.model.work.tasks import Progress, TaskState
from icewright.ports.store import TaskFilter
from icewright.ports.table_lists import TableQuery
from icewright.server.cluster.coordinator import SqlCoordinator
from icewright.store.engine import open_store
from icewright.store.schema import FENCING_TOKEN, SERVER_EPOCH, attempts, counters, orphan_passes
from icewright.store.transactions import Held, holding, reading, writing
from icewright.store_admin.leader_lock import lock_store
from icewright.store_admin.restore import RESTORED, prepare_restored_store
from icewright.store_admin.service import back_up, check, restore
from icewright.work.launch.submitters import SqlSubmitters
from icewright.work.store.table_store import SqlTableStore
from icewright.work.store.task_store import SqlTaskStore
from tests.builders.lakehouse import Lakehouse
from tests.builders.worker import at_work, succeeded
from tests.cases import ROOT
from tests.contracts.samples import REASON, new_task, of_kind, record
from tests.lakes.stores import new_store, next_version
from tests.narrowing import not_none
from tests.servers.postgres import PostgresServer

LAKE = frozenset({"lake"})
FORMER = ROOT / "tests" / "store" / "store_0039.sql"
"""A store as the version before wrote it, with a task in each state."""


@pytest.fixture
def config(tmp_path: Path) -> Config:
    (tmp_path / "icewright.toml").write_text(f'[server]\nstate_dir = "{tmp_path}"\n', encoding="utf-8")
    return load_config(tmp_path / "icewright.toml", {}, tmp_path)


@contextmanager
def opened(config: Config) -> Iterator[Engine]:
    engine = open_store(config.server.store_url)
    try:
        yield engine
    finally:
        engine.dispose()


def claimed(engine: Engine, clock: Clock | None = None) -> tuple[str, int]:
    task = not_none(SqlTaskStore(engine, clock).claim("o", resource_group="default", catalogs=LAKE, lease_ms=600_000))
    return task.task_id, not_none(task.lease).fencing_token


def queue(engine: Engine, *numbers: int) -> None:
    for number in numbers:
        SqlTaskStore(engine).enqueue(new_task(f"task-{number}", table=number))


def test_a_backup_is_whole_while_somebody_writes_and_for_its_owner_alone(config: Config, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    with opened(config) as engine:
        queue(engine, 1)
        with writing(engine) as connection:
            connection.execute(update(counters).where(counters.c.name == FENCING_TOKEN).values(value=99))
            assert back_up(config, copy) == copy.stat().st_size
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("SELECT count(*) FROM tasks").fetchone() == (1,)
        assert connection.execute("SELECT value FROM counters WHERE name = 'fencing_token'").fetchone() == (0,)
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []


def test_a_backup_replaces_nothing_and_needs_a_store(config: Config, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        back_up(config, tmp_path / "copy.db")
    assert not (tmp_path / "icewright.db").exists()
    with opened(config):
        (tmp_path / "copy.db").write_text("mine")
        with pytest.raises(Conflict):
            back_up(config, tmp_path / "copy.db")
    assert (tmp_path / "copy.db").read_text() == "mine"


def test_a_store_that_a_server_holds_is_not_replaced(config: Config, tmp_path: Path) -> None:
    with opened(config) as engine:
        back_up(config, tmp_path / "copy.db")
        with lock_store(engine), pytest.raises(NotAllowed, match="holds"):
            restore(config, {}, tmp_path / "copy.db", 1)


def test_q9_no_token_that_was_given_out_after_the_backup_is_given_out_again(config: Config, tmp_path: Path) -> None:
    with opened(config) as engine:
        queue(engine, 1, 2)
        back_up(config, tmp_path / "copy.db")
        task_id, token = claimed(engine)
    restore(config, {}, tmp_path / "copy.db", 1)
    with opened(config) as engine:
        store = SqlTaskStore(engine)
        with pytest.raises(LeaseLost):
            store.heartbeat(task_id, token, progress=Progress("merging", 0, 1), lease_ms=1)
        queue(engine, 3)
        _, again = claimed(engine)
        assert again > token + 2**32
        with reading(engine) as connection:
            epoch = connection.scalar(select(counters.c.value).where(counters.c.name == SERVER_EPOCH))
            assert int(epoch or 0) >= 2**20
            assert connection.scalar(select(func.max(attempts.c.fencing_token))) == again


def test_q9_a_lease_of_the_backup_holds_no_more_however_long_it_was(config: Config, tmp_path: Path) -> None:
    with opened(config) as engine:
        queue(engine, 1)
        task_id, token = claimed(engine)
        back_up(config, tmp_path / "copy.db")
    assert restore(config, {}, tmp_path / "copy.db", 1).found.in_doubt == 1
    with opened(config) as engine:
        store = SqlTaskStore(engine)
        with pytest.raises(LeaseLost):
            store.check_lease(task_id, token)
        assert [task.task_id for task in store.expired(9)] == [task_id]


def test_what_waited_ends_and_nothing_that_was_approved_or_seen_then_counts(config: Config, tmp_path: Path) -> None:
    with opened(config) as engine:
        queue(engine, 1)
        SqlTableStore(engine).save_record(record(1))
        SqlDeletionStore(engine).approve(Approval("hash", "Ada", 1))
        passed = {"catalog": "lake", "table_uuid": "u", "begun": 1, "finished_number": 0, "finished": None}
        with writing(engine) as connection:
            connection.execute(insert(orphan_passes), passed)
        back_up(config, tmp_path / "copy.db")
    done = restore(config, {}, tmp_path / "copy.db", 1)
    assert done.found.superseded == 1
    with opened(config) as engine:
        task = SqlTaskStore(engine).get("task-1")
        assert task.state is TaskState.SUPERSEDED
        assert not_none(task.outcome).reason.code == RESTORED
        assert SqlDeletionStore(engine).approval("hash") is None
        assert SqlTaskStore(engine).restored_at() is not None
        with reading(engine) as connection:
            assert connection.scalar(select(func.count()).select_from(orphan_passes)) == 0
        (due,) = SqlTableStore(engine).due(2**50, 9)
        assert due.next_look_at > 1_600_000_000_000


def test_q9_what_takes_something_away_is_asked_to_stop_and_a_rewrite_may_be_tried_again(
    config: Config, tmp_path: Path
) -> None:
    with opened(config) as engine:
        queue(engine, 1)
        SqlTaskStore(engine).enqueue(of_kind("task-2", ActionKind.EXPIRE_SNAPSHOTS, table=2))
        claimed(engine)
        claimed(engine)
        back_up(config, tmp_path / "copy.db")
    restore(config, {}, tmp_path / "copy.db", 1)
    with opened(config) as engine:
        asked = {task.task_id: task.cancel_requested for task in SqlTaskStore(engine).tasks(TaskFilter(), limit=9)}
    assert asked == {"task-1": False, "task-2": True}


def test_nobody_comes_in_by_a_token_of_the_backup_which_may_have_been_revoked_since(
    config: Config, tmp_path: Path
) -> None:
    with opened(config) as engine:
        identities = SqlIdentities(engine)
        identities.add_token(NewToken("ada", (Role.APPROVER,), ("*",)), "d" * 64, "icw_", "somebody")
        assert identities.token("d" * 64) is not None
        back_up(config, tmp_path / "copy.db")
        identities.revoke("ada")
    restore(config, {}, tmp_path / "copy.db", 1)
    with opened(config) as engine:
        assert SqlIdentities(engine).token("d" * 64) is None
        (last,) = SqlAudit(engine).latest(limit=1)
        assert last.action == "store.restored"


def test_who_started_applications_then_is_nobody_that_work_waits_for_now(config: Config, tmp_path: Path) -> None:
    submitter = Submitter(Submitting("submitter-1", "edge-1", 0, 4), "default", ("lake",), tuple(Queue), None, None)
    with opened(config) as engine:
        SqlSubmitters(engine).note(submitter)
        back_up(config, tmp_path / "copy.db")
    restore(config, {}, tmp_path / "copy.db", 1)
    with opened(config) as engine:
        assert SqlSubmitters(engine).noted() == []


def test_readers_of_the_feed_hear_what_comes_after_a_restore(config: Config, tmp_path: Path) -> None:
    with opened(config) as engine:
        queue(engine, 1)
        back_up(config, tmp_path / "copy.db")
        queue(engine, 2, 3, 4)
        heard = SqlTaskStore(engine).feed.last()
    restore(config, {}, tmp_path / "copy.db", 1)
    with opened(config) as engine:
        queue(engine, 5)
        page = SqlTaskStore(engine).feed.after(heard, 9, FeedFilter())
        assert [told.sequence > heard for told in page.told] == [True] * len(page.told)
        assert len(page.told) >= 1


def test_readers_of_the_lists_hear_of_every_table_after_a_restore(config: Config, tmp_path: Path) -> None:
    with opened(config) as engine:
        tables = SqlTableStore(engine)
        for number in (1, 2):
            tables.save_record(record(number))
        back_up(config, tmp_path / "copy.db")
        for number in range(1, 11):
            known = not_none(tables.record(record(1).table_id))
            tables.save_record(replace(known, observed_at=number, problem=REASON if number % 2 else None))
        heard = tables.lists.last_change()
    restore(config, {}, tmp_path / "copy.db", 1)
    with opened(config) as engine:
        tables = SqlTableStore(engine)
        changes = tables.lists.changed(heard, TableQuery(), 9)
        assert sorted(one.table_id.uuid for _, one in changes.tables) == [record(n).table_id.uuid for n in (1, 2)]
        assert tables.lists.changed(changes.through, TableQuery(), 9).tables == [], "once"
        known = not_none(tables.record(record(2).table_id))
        tables.save_record(replace(known, observed_at=99, problem=REASON))
        ((_, later),) = tables.lists.changed(changes.through, TableQuery(), 9).tables
        assert later.table_id == record(2).table_id


def test_the_store_of_before_is_kept_and_there_is_one_at_every_moment(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(config) as engine:
        back_up(config, tmp_path / "copy.db")
        queue(engine, 1)
    store, real = tmp_path / "icewright.db", Path.replace

    def replacing(self: Path, target: Path) -> Path:
        assert store.exists()
        moved = real(self, target)
        assert store.exists()
        return moved

    monkeypatch.setattr(Path, "replace", replacing)
    done = restore(config, {}, tmp_path / "copy.db", 77)
    assert done.kept == tmp_path / "icewright.db.before-77"
    with closing(sqlite3.connect(done.kept)) as connection:
        assert connection.execute("SELECT task_id FROM tasks").fetchall() == [("task-1",)]
    with opened(config) as engine:
        assert SqlTaskStore(engine).tasks(TaskFilter(), limit=9) == []
    assert stat.S_IMODE(store.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"no database at all", b""])
def test_a_damaged_backup_changes_nothing(config: Config, tmp_path: Path, content: bytes) -> None:
    with opened(config) as engine:
        queue(engine, 1)
    (tmp_path / "copy.db").write_bytes(content)
    with pytest.raises(Unreadable):
        restore(config, {}, tmp_path / "copy.db", 1)
    with opened(config) as engine:
        assert len(SqlTaskStore(engine).tasks(TaskFilter(), limit=9)) == 1


def test_a_restore_that_is_done_twice_is_harmless(config: Config, tmp_path: Path) -> None:
    with opened(config) as engine:
        queue(engine, 1)
        back_up(config, tmp_path / "copy.db")
    restore(config, {}, tmp_path / "copy.db", 1)
    assert restore(config, {}, tmp_path / "copy.db", 2).found.superseded == 1
    assert check(config, {}) == []


def test_a_store_of_the_former_release_can_be_restored_with_all_that_is_in_it(config: Config, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "former.db")) as connection:
        connection.executescript(FORMER.read_text(encoding="utf-8"))
    found = restore(config, {}, tmp_path / "former.db", 1).found
    assert (found.superseded, found.in_doubt, found.to_verify) == (1, 2, 1)
    assert check(config, {}) == []


@pytest.mark.parametrize(
    ("revision", "helps"),
    [("0038", "upgrade it by an earlier version first"), ("9999", "it was written by a newer icewright")],
)
def test_a_store_that_this_version_cannot_upgrade_is_told_by_a_check_and_restored_by_nobody(
    config: Config, tmp_path: Path, revision: str, helps: str
) -> None:
    with opened(config) as engine:
        queue(engine, 1)
        back_up(config, tmp_path / "copy.db")
    with closing(sqlite3.connect(tmp_path / "copy.db")) as connection:
        connection.execute("UPDATE icewright_schema SET version_num = ?", [revision])
        connection.commit()
    with pytest.raises(InvalidConfiguration, match=f"schema {revision}") as raised:
        restore(config, {}, tmp_path / "copy.db", 1)
    assert raised.value.hint.startswith(helps)
    assert check(config, {}) == []
    (tmp_path / "copy.db").replace(tmp_path / "icewright.db")
    (found,) = check(config, {})
    assert f"schema {revision}" in found
    assert helps in found


def test_a_check_tells_that_the_next_server_upgrades_a_store(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(config):
        following = next_version(monkeypatch, tmp_path)
        (found,) = check(config, {})
    assert f"not {following}: the next server of this icewright brings it there" in found


def test_a_check_finds_what_a_copy_by_other_means_breaks(config: Config, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        check(config, {})
    with opened(config) as engine:
        queue(engine, 1)
        claimed(engine)
        assert check(config, {}) == []
        with writing(engine) as connection:
            connection.execute(update(counters).where(counters.c.name == FENCING_TOKEN).values(value=0))
            connection.exec_driver_sql("DELETE FROM task_actions")
        found = " ".join(check(config, {}))
    assert "fencing token 1 was given out" in found
    assert "task-1" in found
    store = tmp_path / "icewright.db"
    store.write_bytes(store.read_bytes()[: store.stat().st_size // 2])
    assert "damaged" in " ".join(check(config, {}))


def sql_house(engine: Engine) -> Lakehouse:
    return Lakehouse(stores=lambda clock: (SqlTableStore(engine, clock), SqlTaskStore(engine, clock)))


def test_q9_c1_what_was_committed_after_the_backup_is_found_in_its_table_and_done_once(tmp_path: Path) -> None:
    """One task ran when the backup was made, and committed later; nobody does it again."""
    url = f"sqlite:///{tmp_path / 'store.db'}"
    engine = open_store(url)
    house = sql_house(engine)
    house.ready_table()
    house.control.loop.round()
    worker, spec = at_work(house)
    with closing(sqlite3.connect(tmp_path / "store.db")) as source, closing(sqlite3.connect(tmp_path / "b.db")) as to:
        source.backup(to)
    snapshot = worker.commit(spec)
    engine.dispose()
    engine = open_store(f"sqlite:///{tmp_path / 'b.db'}")
    with writing(engine) as connection:
        prepare_restored_store(connection, house.store_clock)
    house.tables, house.tasks = SqlTableStore(engine, house.store_clock), SqlTaskStore(engine, house.store_clock)
    house.restart()
    house.rounds(90)
    task = house.tasks.get(spec.task_id)
    assert succeeded(task).snapshot_id == snapshot.snapshot_id
    assert [one.task_id for one in house.metadata().ancestors() if one.task_id] == [spec.task_id]
    engine.dispose()


def test_a_person_begins_anew_what_expires_by_itself_after_a_restore() -> None:
    """What somebody took back since the backup, nobody knows any more."""
    house = Lakehouse().with_ready_table()
    task = replace(house.let_expire_once(), state=TaskState.SUCCEEDED)
    first_runs = house.control.maintainer._first_runs
    latest = lambda kind: [task] if kind is task.kind else []  # noqa: E731 - of this test
    assert first_runs.reason_for_approval(task.kind, house.metadata(), latest, None) is None
    restored_at = house.clock.now() + 1
    reason = not_none(first_runs.reason_for_approval(task.kind, house.metadata(), latest, restored_at))
    assert reason.code == "restored"
    later = replace(task, created_at=house.clock.now() + 2)
    latest = lambda kind: [later] if kind is task.kind else []  # noqa: E731 - of this test
    assert first_runs.reason_for_approval(task.kind, house.metadata(), latest, restored_at) is None


def test_postgresql_is_put_back_by_its_own_means_and_made_fit_here(
    config: Config, tmp_path: Path, postgres: PostgresServer
) -> None:
    config = replace(config, server=replace(config.server, store_url=postgres.new_database()))
    with opened(config) as engine:
        queue(engine, 1, 2)
        task_id, token = claimed(engine)
    with pytest.raises(NotAllowed, match="its own means"):
        back_up(config, tmp_path / "copy.db")
    with pytest.raises(NotAllowed, match="its own means"):
        restore(config, {}, tmp_path / "copy.db", 1)
    found = restore(config, {}, None, 1).found
    assert (found.superseded, found.in_doubt) == (1, 1)
    assert check(config, {}) == []
    with opened(config) as engine:
        with pytest.raises(LeaseLost):
            SqlTaskStore(engine).check_lease(task_id, token)
        queue(engine, 3)
        assert claimed(engine)[1] > token + 2**32


def test_no_server_of_before_holds_any_table_of_a_restored_store() -> None:
    """One that slept through it all would write by an epoch that is given out once more."""
    engine = new_store()
    coordinator = SqlCoordinator(engine)
    session = coordinator.join("server-1", 0)
    coordinator.assign(engine)
    before = coordinator.held(session)[0]
    with writing(engine) as connection:
        prepare_restored_store(connection)
    assert (coordinator.assigned().sessions, coordinator.assigned().buckets) == ((), ())
    again = coordinator.join("server-1", 0)
    coordinator.assign(engine)
    assert again > session + 1_000
    for held in (Held(session), Held(session, before.bucket, before.epoch)):
        with holding(held), pytest.raises(BucketLost), writing(engine):
            pass
