"""Claims that are answered together: each gets what it would have got behind the others."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from sqlalchemy import Connection, update

from icewright.model.actions.actions import EVERY_KIND, ActionKind
from icewright.model.events.feed import FeedFilter
from icewright.model.policy.resource_groups import Queue, ResourceGroup, TenantCaps
from icewright.model.work.admission import FREE, Holding, Lane, Terms, Urgency
from icewright.model.work.tasks import AttemptState, Task, TaskState
from icewright.ports.store import Change, TaskFilter
from icewright.store.engine import open_store
from icewright.store.schema import tasks
from icewright.store.transactions import writing
from icewright.work.store import task_queries as queries
from icewright.work.store.claiming import ClaimSelector
from icewright.work.store.task_store import SqlTaskStore
from tests.cases import each_case
from tests.contracts.samples import OUTCOME, new_task, table_id
from tests.doubles.clock import ManualClock
from tests.work.store.test_sql_task_store import statements

LAKE = frozenset({"lake"})
READS = ("SELECT", "WITH")
KINDS = (ActionKind.REWRITE_DATA_FILES, ActionKind.COMPUTE_STATISTICS, ActionKind.EXPIRE_SNAPSHOTS)
TENANTS = ("", "ops", "sales")
GROUP = ResourceGroup(
    "default", 14, 200, applications_max=5, large_share=0.3, tenants=(TenantCaps("ops", tasks_max=3),)
)


def seeded(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - the same each time, which is the point


def filled(url: str, chance: random.Random, queues: Sequence[Queue] = tuple(Queue)) -> SqlTaskStore:
    """Tasks in all lanes of the queues; three of each table, of three kinds, each of which holds another slot."""
    engine = open_store(url)
    clock = ManualClock()
    store = SqlTaskStore(engine, clock)
    places = [(table, kind) for table in range(10) for kind in KINDS]
    chance.shuffle(places)
    for number in range(len(places)):
        lane = Lane(chance.choice(queues), chance.choice(tuple(Urgency)), chance.choice(TENANTS))
        new = new_task(f"task-{number:02d}", table=number, priority=chance.randrange(3))
        store.enqueue(replace(new, lane=lane))
    with writing(engine) as connection:
        for number, (table, kind) in enumerate(places):
            slot = kind.traits.slot.value
            of_table = {"table_uuid": table_id(100 + table).uuid, "kind": kind.value, "table_slot": slot}
            connection.execute(update(tasks).where(tasks.c.task_id == f"task-{number:02d}").values(**of_table))
    clock.advance(1_000)
    return store


def asked_by(chance: random.Random, count: int) -> list[ClaimSelector]:
    return [
        ClaimSelector(
            f"optimizer-{chance.randrange(6)}",
            "default",
            LAKE,
            60_000,
            None,
            Terms(GROUP, Holding(chance.randrange(1, 3), 10), joins=chance.random() < 0.2),
            EVERY_KIND,
        )
        for _ in range(count)
    ]


def together(store: SqlTaskStore, asked: Sequence[ClaimSelector]) -> list[Task | None]:
    given: list[Task | None] = []
    while len(given) < len(asked):
        left = asked[len(given) :]
        given += store._claim("default", lambda: left)  # noqa: B023 - it is called at once
    return given


@each_case("seed", range(12))
def test_all_get_what_they_would_have_got_one_after_the_other(seed: int, tmp_path: Path) -> None:
    one, all_ = (filled(f"sqlite:///{tmp_path}/{name}.db", seeded(seed)) for name in ("one", "all"))
    chance = seeded(seed)
    for _ in range(3):
        asked = asked_by(chance, 7)
        expected = [given for request in asked for given in together(one, [request])]
        assert together(all_, asked) == expected
        for given in filter(None, expected):
            assert all_.get(given.task_id) == given, "what is told is what was written"
        for task in islice((task for task in expected if task is not None), 2):
            for store in (one, all_):
                store.change(Change(task.task_id, task.version, TaskState.CANCELLED, OUTCOME, AttemptState.CANCELLED))
    of_all = TaskFilter()
    assert all_.tasks(of_all, limit=99) == one.tasks(of_all, limit=99)
    for task in one.tasks(TaskFilter(frozenset({TaskState.RUNNING})), limit=99):
        assert all_.history(task.task_id) == one.history(task.task_id)
        assert all_.attempts(task.task_id) == one.attempts(task.task_id)
    assert all_.feed.after(0, 999, FeedFilter()) == one.feed.after(0, 999, FeedFilter())
    assert all_.census(9).totals == one.census(9).totals
    assert all_.facts("default") == one.facts("default")
    for store in (one, all_):
        store._engine.dispose()


def test_what_several_get_is_written_by_as_many_statements_as_what_one_gets(tmp_path: Path) -> None:
    store = filled(f"sqlite:///{tmp_path}/store.db", seeded(1), [Queue.NORMAL])
    asked = [replace(one, terms=FREE) for one in asked_by(seeded(1), 8)]
    said = statements(store._engine)
    together(store, asked[:1])
    alone = [one for one in said if not one.startswith(READS)]
    said.clear()
    given = together(store, asked)
    assert sum(task is not None for task in given) == 8
    assert len([one for one in said if not one.startswith(READS)]) == len(alone)


def test_what_is_lost_by_one_is_lost_by_none_of_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that changes between choice and write, on a database that does not lock: the others are given out."""
    store = filled(f"sqlite:///{tmp_path}/store.db", seeded(2))
    asked = [replace(one, terms=FREE) for one in asked_by(seeded(2), 4)]
    read, lost = queries.tasks_by_id, list[str]()

    def read_before(connection: Connection, task_ids: Sequence[str]) -> dict[str, Task]:
        found = read(connection, task_ids)
        if not lost:
            lost.append(task_ids[1])
            connection.execute(update(tasks).where(tasks.c.task_id == lost[0]).values(version=9, not_before_at=2**60))
        return found

    monkeypatch.setattr(queries, "tasks_by_id", read_before)
    given = {task.task_id for task in together(store, asked) if task is not None}
    assert len(given) == 4
    assert lost[0] not in given
    monkeypatch.undo()
    assert store.get(lost[0]).state is TaskState.QUEUED
    assert [len(store.history(task_id)) for task_id in sorted(given)] == [2] * 4
