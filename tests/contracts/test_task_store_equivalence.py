"""The queue of the simulation lives as that in a database does: after every step both give the same answers."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from icewright.core.clock import Clock
from icewright.core.errors import IcewrightError
from icewright.model.actions.actions import EVERY_KIND, ActionKind
from icewright.model.actions.traits import BESIDE
from icewright.model.work.lifecycle import LIVE_STATES
from icewright.model.work.tasks import (
    ACTIVE_STATES,
    Attempt,
    AttemptState,
    HistoryEntry,
    LogLines,
    Progress,
    Task,
    TaskState,
)
from icewright.ports.store import Change, TaskFilter, TaskStore
from icewright.work.groups.rank import AGEING_MS
from tests.builders.specs import log_lines
from tests.conftest import CAMPAIGN
from tests.contracts.samples import OF_SLOTS, OUTCOME, REASON, new_task
from tests.contracts.stores import Stores, stores_on
from tests.doubles.clock import ManualClock
from tests.doubles.task_store import MemoryTaskStore

TABLES = st.integers(1, 3)
LOGS = st.builds(
    lambda first, texts: log_lines(*texts, first=first), st.integers(1, 9), st.lists(st.just("x"), min_size=1)
)
EVERYTHING = TaskFilter()


class TwoStores(RuleBasedStateMachine):
    def __init__(self, empty: Callable[[Clock], Stores]) -> None:
        """``empty`` gives stores with nothing in them."""
        super().__init__()
        self.clock = ManualClock()
        self.pair: list[TaskStore] = [cast("TaskStore", MemoryTaskStore(self.clock)), empty(self.clock).tasks()]
        self.made = 0
        self.tokens = 0
        self.seen: dict[str, Task] = {}
        """Of which nothing has changed since it was last looked at with all its past."""

    def both(self, ask: Callable[[TaskStore], Any]) -> Any:
        answers = [self.answer(ask, store) for store in self.pair]
        assert answers[0] == answers[1]
        return answers[0]

    @staticmethod
    def answer(ask: Callable[[TaskStore], Any], store: TaskStore) -> Any:
        try:
            return ask(store)
        except IcewrightError as error:
            return type(error)

    def tasks(self) -> list[Task]:
        return list(self.pair[0].tasks(EVERYTHING, limit=999))

    @initialize(tables=st.lists(TABLES, max_size=3))
    def begin(self, tables: list[int]) -> None:
        for table in tables:
            self.enqueue(table, 0)

    @rule(table=TABLES, priority=st.integers(-1, 2), kind=st.sampled_from(tuple(OF_SLOTS)))
    def enqueue(self, table: int, priority: int, kind: ActionKind = ActionKind.REWRITE_DATA_FILES) -> None:
        self.made += 1
        new = new_task(f"task-{self.made:04d}", table=table, priority=priority, base_snapshot_id=self.made)
        if kind is not ActionKind.REWRITE_DATA_FILES:
            action, prediction = OF_SLOTS[kind]
            new = replace(new, action=action, prediction=prediction)
        self.both(lambda store: store.enqueue(new))

    @rule(
        lease_ms=st.integers(1, 50),
        at_most=st.sampled_from([None, 19, 20]),
        kinds=st.sampled_from([EVERY_KIND, EVERY_KIND - {ActionKind.REWRITE_DATA_FILES}]),
    )
    def claim(self, lease_ms: int, at_most: int | None, kinds: frozenset[ActionKind]) -> None:
        catalogs = frozenset({"lake"})
        task = self.both(
            lambda store: store.claim(
                "optimizer-1",
                resource_group="default",
                catalogs=catalogs,
                lease_ms=lease_ms,
                shareable_bytes_max=at_most,
                kinds=kinds,
            )
        )
        if task is not None:
            assert task.lease.fencing_token > self.tokens
            self.tokens = task.lease.fencing_token

    @rule(delta_ms=st.sampled_from([1, 20, 60, AGEING_MS]))
    def time_passes(self, delta_ms: int) -> None:
        self.clock.advance(delta_ms)

    @precondition(lambda self: self.tasks())
    @rule(data=st.data(), state=st.sampled_from(TaskState), end=st.none() | st.sampled_from(AttemptState))
    def change(self, data: st.DataObject, state: TaskState, end: AttemptState | None) -> None:
        task = data.draw(st.sampled_from(self.tasks()))
        version = task.version - data.draw(st.sampled_from([0, 0, 0, 1]))
        report = data.draw(st.sampled_from([None, "{}"]))
        change = Change(task.task_id, version, state, OUTCOME, end, report, data.draw(st.sampled_from([0, 30])))
        log = data.draw(st.none() | LOGS)
        self.seen.pop(task.task_id, None)
        self.both(lambda store: store.change(replace(change, log=log)))

    @precondition(lambda self: self.tasks())
    @rule(data=st.data(), age=st.integers(0, 2), done=st.integers(0, 5), log=st.none() | LOGS)
    def heartbeat(self, data: st.DataObject, age: int, done: int, log: LogLines | None) -> None:
        task = data.draw(st.sampled_from(self.tasks()))
        token = self.tokens - age
        progress = Progress("merging", done, 5)
        self.seen.pop(task.task_id, None)
        self.both(lambda store: store.check_lease(task.task_id, token))
        self.both(lambda store: store.heartbeat(task.task_id, token, progress=progress, lease_ms=40, log=log))

    @precondition(lambda self: self.tasks())
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        task = data.draw(st.sampled_from(self.tasks()))
        self.both(lambda store: store.request_cancel(task.task_id, REASON))

    @rule(age_ms=st.integers(-1, 60), limit=st.integers(1, 3))
    def prune(self, age_ms: int, limit: int) -> None:
        ended_before = self.clock.now() - age_ms
        self.both(lambda store: store.prune(ended_before, limit))

    @rule(age_ms=st.integers(-1, 60))
    def prune_logs(self, age_ms: int) -> None:
        written_before = self.clock.now() - age_ms
        self.seen.clear()
        self.both(lambda store: store.prune_logs(written_before, 99))

    def teardown(self) -> None:
        """Look at all the past of all tasks once more, also of those to which nothing should have happened."""
        self.seen.clear()
        self.answers_agree()

    def past(self, task_id: str) -> tuple[list[HistoryEntry], list[Attempt]]:
        history: list[HistoryEntry] = self.both(lambda store: list(store.history(task_id)))
        attempts: list[Attempt] = self.both(lambda store: list(store.attempts(task_id)))
        for one in attempts:
            self.both(lambda store, number=one.attempt: store.log(task_id, number))  # type: ignore[misc]  # the loop's
        return history, attempts

    @invariant()
    def answers_agree(self) -> None:
        self.both(lambda store: store.counts())
        self.both(lambda store: list(store.ended(None, self.clock.now(), 99)))
        self.both(lambda store: [task.task_id for task in store.expired(99)])
        self.both(lambda store: list(store.listed(EVERYTHING, limit=999)))
        for task in self.both(lambda store: list(store.tasks(EVERYTHING, limit=999))):
            if self.seen.get(task.task_id) == task:
                continue
            self.seen[task.task_id] = task
            history, attempts = self.past(task.task_id)
            last = history[-1]
            assert [entry.version for entry in history] == list(range(1, task.version + 1))
            assert (last.state, last.attempt, last.at) == (task.state, task.attempt, task.updated_at)
            assert [attempt.attempt for attempt in attempts] == list(range(1, task.attempt + 1))
            assert (task.lease is not None) == (task.state in {TaskState.RUNNING, TaskState.IN_DOUBT})
            open_attempts = [a.attempt for a in attempts if a.state is AttemptState.RUNNING]
            assert open_attempts in ([], [task.attempt])
            assert not open_attempts or task.lease is not None

    @invariant()
    def tables_have_one_task_of_a_slot_at_a_time(self) -> None:
        active = [task for task in self.tasks() if task.state in ACTIVE_STATES]
        live = [(task.table_id, task.kind) for task in self.tasks() if task.state in LIVE_STATES]
        for one, other in combinations(active, 2):
            assert one.table_id != other.table_id or one.kind.traits.slot in BESIDE[other.kind.traits.slot]
        assert len(live) == len(set(live))


SHORT = settings(max_examples=40, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize(
    ("database", "examples"), [("sqlite", 40 if CAMPAIGN else 16), ("postgresql", 15 if CAMPAIGN else 5)]
)
def test_the_queue_of_the_simulation_behaves_as_that_in_a_database(
    database: str, examples: int, request: pytest.FixtureRequest
) -> None:
    machine: Any = partial(TwoStores, partial(stores_on, database, request))  # anything that makes one
    run_state_machine_as_test(machine, settings=settings(SHORT, max_examples=examples))
