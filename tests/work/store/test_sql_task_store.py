"""What the SQL queue promises beyond the port: promises kept by the database itself."""

import re
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise

import pytest
from sqlalchemy import Connection, Engine, delete, event, func, select, text, update
from sqlalchemy.exc import IntegrityError

from icewright.core.errors import Conflict, LeaseLost, Unavailable, Unreadable
from icewright.model.actions.actions import Action, rewrite_of
from icewright.model.actions.traits import BESIDE, TableSlot
from icewright.model.work.admission import NO_LANE, Lane
from icewright.model.work.tasks import ACTIVE_STATES, TERMINAL_STATES, AttemptState, Task, TaskState
from icewright.ports.store import Change, TaskFilter
from icewright.store.documents import pack
from icewright.store.engine import open_store
from icewright.store.schema import attempts, counters, task_actions, tasks
from icewright.store.timeouts import Timeouts
from icewright.store.transactions import reading, writing
from icewright.work.store import actions, admission_queries, task_queries
from icewright.work.store.actions import KeptActions, digest_of
from icewright.work.store.admission_queries import Head
from icewright.work.store.task_store import SqlTaskStore
from tests.contracts.samples import OUTCOME, PROGRESS, new_task, table_id
from tests.doubles.clock import ManualClock
from tests.narrowing import not_none

TAKEN = re.compile("unique constraint", re.IGNORECASE)
LAKE = frozenset({"lake"})


on_sqlite = pytest.mark.parametrize("migrated_url", ["sqlite"], indirect=True)
"""For what is said in SQLite's own words: triggers, and how it runs a query."""


@pytest.fixture
def engine(migrated_url: str) -> Iterator[Engine]:
    engine = open_store(migrated_url, patience=Timeouts(lock_ms=50))
    yield engine
    engine.dispose()


@pytest.fixture
def store(engine: Engine) -> SqlTaskStore:
    return SqlTaskStore(engine, ManualClock())


def claim(store: SqlTaskStore, lease_ms: int = 60_000) -> Task:
    return not_none(store.claim("optimizer-1", resource_group="default", catalogs=LAKE, lease_ms=lease_ms))


def statements(engine: Engine) -> list[str]:
    """What is said to the database from now on."""
    said: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda _c, _cursor, statement, *_rest: said.append(statement))
    return said


def plans_of(engine: Engine, act: str, store: SqlTaskStore) -> list[str]:
    """How SQLite would run each query on tasks that a method of the store makes."""
    statements: list[tuple[str, object]] = []

    def remember(_c: object, _cursor: object, statement: str, parameters: object, *_rest: object) -> None:
        statements.append((statement, parameters))

    event.listen(engine, "before_cursor_execute", remember)
    match act:
        case "claim":
            store.claim("optimizer-1", resource_group="default", catalogs=LAKE, lease_ms=1)
        case "claim for a batch":
            store.claim("optimizer-1", resource_group="default", catalogs=LAKE, lease_ms=1, shareable_bytes_max=9)
        case "expired":
            store.expired(10)
        case "line":
            store.line("task-1")
        case "took":
            store.took("default")
        case "prune":
            store.prune(5, 10)
        case _:
            store.enqueue(new_task("task-1"))
    event.remove(engine, "before_cursor_execute", remember)
    with engine.connect() as connection:
        return [
            " | ".join(row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters))  # type: ignore[arg-type]  # as they were sent
            for statement, parameters in statements
            if statement.startswith(("SELECT", "WITH")) and "FROM tasks" in statement
        ]


class TestConstraints:
    @pytest.mark.parametrize("first", sorted(ACTIVE_STATES))
    @pytest.mark.parametrize("second", sorted(ACTIVE_STATES))
    def test_two_active_tasks_of_a_table_are_impossible(
        self, engine: Engine, store: SqlTaskStore, first: TaskState, second: TaskState
    ) -> None:
        store.enqueue(new_task("task-1", table=1))
        store.enqueue(new_task("task-2", table=2))
        force(engine, "task-1", first)
        force(engine, "task-2", second)
        with writing(engine) as connection:  # of another kind of action, so that only the one index can object
            connection.execute(text("UPDATE tasks SET kind = 'other' WHERE task_id = 'task-2'"))
        with pytest.raises(IntegrityError, match=TAKEN), writing(engine) as connection:
            same_table(connection)

    @pytest.mark.parametrize("first", TableSlot)
    @pytest.mark.parametrize("second", TableSlot)
    def test_two_active_tasks_that_hold_one_slot_are_impossible(
        self, engine: Engine, store: SqlTaskStore, first: TableSlot, second: TableSlot
    ) -> None:
        for number, slot in ((1, first), (2, second)):
            store.enqueue(new_task(f"task-{number}", table=number))
            force(engine, f"task-{number}", TaskState.RUNNING)
            with writing(engine) as connection:
                kind = f"kind-{number}"
                connection.execute(
                    update(tasks).where(tasks.c.task_id == f"task-{number}").values(kind=kind, table_slot=slot.value)
                )
        refused = nullcontext() if second in BESIDE[first] else pytest.raises(IntegrityError, match=TAKEN)
        with refused, writing(engine) as connection:
            same_table(connection)

    def test_two_waiting_tasks_of_a_table_and_kind_are_impossible(self, engine: Engine, store: SqlTaskStore) -> None:
        store.enqueue(new_task("task-1", table=1))
        store.enqueue(new_task("task-2", table=2))
        with pytest.raises(IntegrityError, match=TAKEN), writing(engine) as connection:
            same_table(connection)

    def test_other_kinds_may_wait_beside_an_active_task(self, engine: Engine, store: SqlTaskStore) -> None:
        store.enqueue(new_task("task-1", table=1))
        store.enqueue(new_task("task-2", table=2))
        force(engine, "task-1", TaskState.RUNNING)
        with writing(engine) as connection:
            connection.execute(text("UPDATE tasks SET kind = 'other' WHERE task_id = 'task-2'"))
            same_table(connection)
        assert store.claim("o", resource_group="default", catalogs=LAKE, lease_ms=1) is None

    def test_a_fencing_token_is_never_used_twice(self, engine: Engine, store: SqlTaskStore) -> None:
        for number in (1, 2):
            store.enqueue(new_task(f"task-{number}", table=number))
            claim(store)
        with pytest.raises(IntegrityError, match="fencing_token"), writing(engine) as connection:
            connection.execute(update(attempts).values(fencing_token=7))

    def test_no_lease_without_a_running_task_nor_the_reverse(self, engine: Engine, store: SqlTaskStore) -> None:
        store.enqueue(new_task("task-1"))
        with pytest.raises(IntegrityError, match="ck_tasks_lease"), writing(engine) as connection:
            connection.execute(update(tasks).values(state="running"))
        claim(store)
        with pytest.raises(IntegrityError, match="ck_tasks_lease"), writing(engine) as connection:
            connection.execute(update(tasks).values(state="failed"))
        with pytest.raises(IntegrityError, match="ck_tasks_lease"), writing(engine) as connection:
            connection.execute(update(tasks).values(lease_expires_at=None))


def force(engine: Engine, task_id: str, state: TaskState) -> None:
    """Put a task into an active state behind the store's back."""
    leased = state is not TaskState.COMMITTED
    with writing(engine) as connection:
        connection.execute(
            update(tasks)
            .where(tasks.c.task_id == task_id)
            .values(
                state=state.value,
                lease_optimizer_id="o" if leased else None,
                lease_fencing_token=1 if leased else None,
                lease_expires_at=1 if leased else None,
            )
        )


def same_table(connection: Connection) -> None:
    connection.execute(update(tasks).values(table_uuid="one"))


class TestFencing:
    def test_tokens_outlive_the_process_and_the_tasks(self, engine: Engine, store: SqlTaskStore) -> None:
        with writing(engine) as connection:
            connection.execute(update(counters).values(value=41))
        store.enqueue(new_task("task-1"))
        assert not_none(claim(store).lease).fencing_token == 42

    @on_sqlite
    def test_a_claim_that_fails_halfway_leaves_the_task_waiting(self, engine: Engine, store: SqlTaskStore) -> None:
        store.enqueue(new_task("task-1"))
        with writing(engine) as connection:
            connection.execute(
                text("CREATE TRIGGER broken BEFORE INSERT ON attempts BEGIN SELECT RAISE(ABORT, 'no'); END")
            )
        with pytest.raises(IntegrityError, match="no"):
            claim(store)
        task = store.get("task-1")
        assert (task.state, task.version, task.lease) == (TaskState.QUEUED, 1, None)
        assert len(store.history("task-1")) == 1


class TestTime:
    def test_leases_run_by_the_databases_clock(self, engine: Engine) -> None:
        store = SqlTaskStore(engine)
        store.enqueue(new_task("task-1"))
        before = store.now()
        task = claim(store, lease_ms=0)
        assert task.lease is not None
        assert before <= task.lease.expires_at <= store.now()
        assert [each.task_id for each in store.expired(1)] == ["task-1"]
        with pytest.raises(LeaseLost):
            store.check_lease("task-1", task.lease.fencing_token)


class TestErrors:
    def test_a_locked_database_is_unavailable(self, store: SqlTaskStore, migrated_url: str) -> None:
        other = open_store(migrated_url, patience=Timeouts(lock_ms=50))  # as another process has it
        with writing(other), pytest.raises(Unavailable, match="lock") as raised:
            store.enqueue(new_task("task-1"))
        assert raised.value.__cause__ is not None
        other.dispose()

    def test_a_damaged_document_is_unreadable(self, engine: Engine, store: SqlTaskStore) -> None:
        store.enqueue(new_task("task-1"))
        with writing(engine) as connection:
            connection.execute(update(task_actions).values(digest="damaged", action=pack({"kind": "unheard-of"})))
        with pytest.raises(Unreadable):
            store.get("task-1")


@on_sqlite
class TestSpeed:
    """Queries that run all the time must not look at every task there ever was."""

    def test_a_claim_reads_the_queue_in_order(self, engine: Engine, store: SqlTaskStore) -> None:
        """From lane to lane, and in each from the best task on; and what runs, without looking at anything else."""
        store.enqueue(new_task("task-1"))
        best, held, *_ = plans_of(engine, "claim", store)
        assert "uq_tasks_active_data" in best
        assert "uq_tasks_active_metadata" in best
        assert best.count("ix_tasks_queue") == 3
        assert "TEMP B-TREE" not in best
        assert "SCAN tasks" not in best + held
        assert "ix_tasks_held" in held

    def test_a_claim_for_a_batch_reads_what_may_share_in_order(self, engine: Engine, store: SqlTaskStore) -> None:
        (plan,) = plans_of(engine, "claim for a batch", store)
        assert "ix_tasks_shareable" in plan
        assert "TEMP B-TREE" not in plan

    def test_expired_leases_and_candidates_are_looked_up(self, engine: Engine, store: SqlTaskStore) -> None:
        assert "ix_tasks_state" in plans_of(engine, "expired", store)[0]
        assert "uq_tasks_live_kind" in plans_of(engine, "enqueue", store)[0]

    def test_tasks_that_ended_first_are_looked_up(self, engine: Engine, store: SqlTaskStore) -> None:
        (plan,) = plans_of(engine, "prune", store)
        assert plan.count("ix_tasks_ended (state=? AND updated_at<?)") == len(TERMINAL_STATES)  # not all that ended
        assert plan.count("TEMP B-TREE") == 1  # nor are they sorted, but for the first of each state

    def test_what_waits_beside_a_task_is_read_from_the_queue_in_order(
        self, engine: Engine, store: SqlTaskStore
    ) -> None:
        store.enqueue(new_task("task-1", table=1))
        store.enqueue(replace(new_task("task-2", table=2), lane=Lane(tenant="ops")))
        _, *plans = plans_of(engine, "line", store)
        assert len(plans) == 3
        for plan in plans:
            assert "ix_tasks_queue (resource_group=?" in plan
            assert "SCAN tasks" not in plan

    def test_what_ended_last_of_a_group_is_looked_up(self, engine: Engine, store: SqlTaskStore) -> None:
        (plan,) = plans_of(engine, "took", store)
        assert "ix_tasks_group_ended (resource_group=?)" in plan

    def test_work_on_a_task_does_not_write_its_action_again(self, engine: Engine, store: SqlTaskStore) -> None:
        store.enqueue(new_task("task-1"))
        with writing(engine) as connection:
            connection.execute(
                text("CREATE TRIGGER w BEFORE UPDATE OF action ON tasks BEGIN SELECT RAISE(ABORT, 'rewritten'); END")
            )
        task = claim(store)
        assert task.lease is not None
        store.heartbeat("task-1", task.lease.fencing_token, progress=PROGRESS, lease_ms=1)
        store.request_cancel("task-1", OUTCOME.reason)

    def test_listing_tasks_again_decodes_no_action_again(
        self, store: SqlTaskStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store.enqueue(new_task("task-1"))
        store.enqueue(new_task("task-2", table=2, base_snapshot_id=2))
        listed = store.tasks(TaskFilter(), limit=9)
        monkeypatch.setattr(actions, "unpack", None)
        assert store.tasks(TaskFilter(), limit=9) == listed
        assert [task.rewrite.base_snapshot_id for task in listed] == [2, 1]

    def test_a_list_for_people_decodes_no_action_at_all(
        self, engine: Engine, store: SqlTaskStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        task = store.enqueue(new_task("task-1")).task
        with writing(engine) as connection:
            connection.execute(update(task_actions).values(action=b"not an action"))
        monkeypatch.setattr(actions, "unpack", None)
        assert store.listed(TaskFilter(), limit=9) == [task.listed()]
        assert store.head("task-1") == task.listed()

    def test_a_task_that_is_older_than_its_figures_is_listed_by_its_action(
        self, engine: Engine, store: SqlTaskStore
    ) -> None:
        task = store.enqueue(new_task("task-1")).task
        with writing(engine) as connection:
            connection.execute(update(tasks).values(figures=None))
        assert store.listed(TaskFilter(), limit=9) == [task.listed()]
        assert store.head("task-1") == task.listed()

    def test_who_works_on_a_task_or_shows_it_neither_reads_nor_writes_its_action_again(
        self, engine: Engine, store: SqlTaskStore
    ) -> None:
        """It may be of megabytes, and is asked about each time that a hundred files go."""
        store.enqueue(new_task("task-1"))
        task = claim(store)
        token, said = not_none(task.lease).fencing_token, statements(engine)
        assert store.heartbeat("task-1", token, progress=PROGRESS, lease_ms=60_000).action == task.action
        assert store.check_lease("task-1", token).action == task.action
        assert store.get("task-1").action == task.action
        store.listed(TaskFilter(), limit=9)
        store.head("task-1")
        store.history("task-1")
        store.attempts("task-1")
        store.expired(9)
        store.request_cancel("task-1", OUTCOME.reason)
        store.change(Change("task-1", task.version + 1, TaskState.FAILED, OUTCOME, AttemptState.FAILED))
        assert len(said) > 9
        assert [one for one in said if "task_actions.action" in one or "INTO task_actions" in one] == []
        assert [one for one in said if one.startswith("UPDATE task_actions")] == []

    def test_a_newer_candidate_brings_its_action_along(self, store: SqlTaskStore) -> None:
        store.enqueue(new_task("task-1"))
        newer = new_task("task-2", base_snapshot_id=2)
        assert store.enqueue(newer).coalesced
        assert store.get("task-1").action == newer.action

    def test_an_action_that_is_not_there_is_told(self, engine: Engine, store: SqlTaskStore) -> None:
        store.enqueue(new_task("task-1", base_snapshot_id=77))
        with writing(engine) as connection:
            connection.execute(delete(task_actions))
        with pytest.raises(Unreadable, match="task-1"):
            store.get("task-1")
        assert store.head("task-1").task_id == "task-1"

    def test_an_action_of_many_files_is_stored_in_little_room(self, engine: Engine, store: SqlTaskStore) -> None:
        task = new_task("task-1")
        group = rewrite_of(task.action).groups[0]
        files = tuple(replace(group.files[0], path=f"s3://b/data/{number}.parquet") for number in range(10_000))
        action = replace(rewrite_of(task.action), groups=(replace(group, files=files),))
        store.enqueue(replace(task, action=action))
        with reading(engine) as connection:
            size_bytes = connection.execute(select(func.length(task_actions.c.action))).scalar_one()
        assert size_bytes < 10 * len(files)
        assert store.get("task-1").action == action


def test_no_more_actions_are_kept_than_name_so_many_files() -> None:
    kept = KeptActions(names_max=4)
    packed = [pack(new_task("t", base_snapshot_id=number).action) for number in range(3)]

    def get(number: int) -> Action:
        return kept.get(digest_of(packed[number]), lambda: packed[number])

    first = get(0)
    assert rewrite_of(first).input_files == 2
    second = get(1)
    assert get(0) is first
    get(2)
    assert get(0) is first
    assert get(1) is not second


class TestRaces:
    """Two servers at once, on a database that does not lock them out as SQLite does: what was read is stale."""

    def test_a_claim_goes_on_to_the_next_when_somebody_was_faster(
        self, store: SqlTaskStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number, table in enumerate((1, 2, 3), start=1):
            store.enqueue(new_task(f"task-{number}", table=table))
        heads = [Head(f"task-{number}", 1, 0, number, table_id(number)) for number in (1, 2, 3)]
        claim(store)
        with writing(store._engine) as connection:  # a task of another kind, of the table that is now busy
            connection.execute(text("UPDATE tasks SET kind = 'other' WHERE task_id = 'task-2'"))
            connection.execute(
                update(tasks).where(tasks.c.task_id == "task-2").values(table_uuid=store.get("task-1").table_id.uuid)
            )
        behind = dict(pairwise([*heads, None]))
        monkeypatch.setattr(admission_queries, "ready", lambda *_args: ([NO_LANE], heads[:1]))
        monkeypatch.setattr(admission_queries, "after", lambda _connection, _wanted, head: behind[head])
        assert claim(store).task_id == "task-3"
        assert store.claim("o", resource_group="default", catalogs=LAKE, lease_ms=1) is None
        assert store.get("task-2").state is TaskState.QUEUED
        assert [len(store.history(f"task-{number}")) for number in (1, 2, 3)] == [2, 1, 2]

    def test_an_enqueue_looks_again_when_somebody_was_faster(
        self, store: SqlTaskStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store.enqueue(new_task("task-1"))
        look, blind = task_queries.live_task, [True]
        monkeypatch.setattr(task_queries, "live_task", lambda *args: None if blind and blind.pop() else look(*args))
        enqueued = store.enqueue(new_task("task-2"))
        assert (enqueued.task.task_id, enqueued.coalesced) == ("task-1", True)
        assert store.counts()[TaskState.QUEUED] == 1

    def test_a_change_based_on_a_stale_task_writes_nothing(
        self, store: SqlTaskStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store.enqueue(new_task("task-1"))
        stale = claim(store)
        failed = store.change(Change("task-1", stale.version, TaskState.FAILED, OUTCOME, AttemptState.FAILED))
        monkeypatch.setattr(task_queries, "task_by_id", lambda *_args: stale)
        with pytest.raises(Conflict):
            store.change(Change("task-1", stale.version, TaskState.COMMITTED, OUTCOME, AttemptState.COMMITTED))
        assert stale.lease is not None
        with pytest.raises(Conflict):
            store.heartbeat("task-1", stale.lease.fencing_token, progress=PROGRESS, lease_ms=1)
        monkeypatch.undo()
        assert store.get("task-1") == failed
        assert store.attempts("task-1")[0].state is AttemptState.FAILED
