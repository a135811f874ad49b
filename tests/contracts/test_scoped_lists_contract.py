"""Lists of scopes, on SQLite and PostgreSQL: the filter of the whole list, page by page, and its totals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from icewright.model.access.permissions import EVERYWHERE, Scope, Scopes, covers
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.deletion import Checked, IntentState, Step
from icewright.model.events.events import Channel, CommitEvent, Reporting, StoredEvent
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.plans.approvals import Approval, ApprovalPlace, ApprovedPlan
from icewright.model.work.tasks import ListedTask, TaskState
from icewright.ports.deletions import DeletionStore
from icewright.ports.inbox import EventFilter
from icewright.ports.store import TableRecord, TableStore, TaskFilter, TaskStore, WaitingPlan
from tests.contracts.samples import HOSTILE_PARTS, REASON, new_task, plan, record, table_id
from tests.contracts.stores import Stores
from tests.contracts.test_deletion_store_contract import ALL, a_run, some_intents

T = TypeVar("T")

# Each begins as another one does, or would mean something else to a pattern, a quote or a database's order.
NAMESPACES = (
    ("db",),
    ("db", "sub"),
    ("db", "sub", "db"),
    ("db2",),
    ("DB",),
    ("d_",),
    ("d%",),
    ('db"', "x"),
    ('db","sub',),
    ("db\\",),
    *((part,) for part in HOSTILE_PARTS),
)
SCOPES = (
    *(Scope("lake", namespace) for namespace in NAMESPACES),
    Scope("lake"),
    Scope("lak"),
    Scope("other"),
    Scope("other", ("db",)),
    Scope("lake", ("nowhere",)),
)
UNKNOWN, DROPPED = 900, 3
"""The number of the first table without a record, and of one that is known to be dropped."""


@dataclass(frozen=True)
class Lake:
    """A store with tables in all kinds of namespaces, each with a task, a plan that waits, and files in quarantine."""

    tables: TableStore
    tasks: TaskStore
    deletions: DeletionStore
    names: dict[TableId, TableName]


@pytest.fixture
def lake(stores: Stores) -> Lake:
    tables, tasks, deletions = stores.tables(), stores.tasks(), stores.deletions()
    places = [("lake", namespace) for namespace in NAMESPACES] + [("other", ("db",)), ("Lake", ("db",))]
    names: dict[TableId, TableName] = {}
    for number, (catalog, namespace) in enumerate(places, 1):
        name = TableName(catalog, namespace, f"t{number}")
        known = replace(
            record(number), table_id=table_id(number, catalog), name=name, reporting=Reporting(0, 0, sweep_only=number)
        )
        tables.save_record(known)
        names[known.table_id] = name
        at_first = TableName(catalog, ("db2",), "as-it-was-called")  # its record says where it is now
        tasks.enqueue(new_task(f"task-{number:03d}", table=number, catalog=catalog, name=at_first))
        one = plan(f"plan-{number:03d}", table=number)
        tables.wait(WaitingPlan(one.plan_id, known.table_id, at_first, ActionKind.EXPIRE_SNAPSHOTS, REASON, 7))
        approved = ApprovedPlan(one.plan_id, known.table_id, at_first, ActionKind.EXPIRE_SNAPSHOTS, None)
        deletions.approve(Approval(f"hash-{number:03d}", "Ada", 7, approved))
        run = replace(a_run(deletions, f"run-{number:03d}", table=number), table_id=known.table_id)
        deletions.begin(run, some_intents(1, run.run_id))
        tables.receive(CommitEvent(name, number), channel=Channel.KAFKA if number % 2 else Channel.HTTP)
    stored = tables.record(table_id(DROPPED))
    assert stored is not None
    tables.save_record(replace(stored, dropped_at=5))
    for number in (UNKNOWN, UNKNOWN + 1):
        tasks.enqueue(new_task(f"task-{number}", table=number))
        deletions.begin(a_run(deletions, f"run-{number}", table=number), some_intents(1, f"run-{number}"))
        tables.receive(CommitEvent(TableName("lake", ("db",), f"t{number}"), number))
    _hold(deletions)
    return Lake(tables, tasks, deletions, names)


def _hold(deletions: DeletionStore) -> None:
    """Take the first step with each file: of unknown outcome, which counts as held."""
    checked = Checked("s3://b/v2.json", 1, 99)
    for run in deletions.runs(limit=999):
        found = deletions.intents(run.run_id, ALL, limit=9)
        begun = [replace(one, state=IntentState.UNKNOWN, step=Step.QUARANTINE, checked=checked) for one in found]
        deletions.change(deletions.epoch(), begun)


@dataclass(frozen=True)
class Whole:
    """All that is in the lists of a lake."""

    tables: Sequence[TableRecord]
    waiting: Sequence[WaitingPlan]
    tasks: Sequence[ListedTask]
    held: Sequence[str]
    table_of: dict[str, TableId]
    """Of a run of which files are held."""
    approvals: Sequence[Approval]
    events: Sequence[StoredEvent]


@pytest.fixture
def whole(lake: Lake) -> Whole:
    held = lake.deletions.with_held(limit=999)
    return Whole(
        tables=lake.tables.records(limit=999),
        waiting=lake.tables.waiting(limit=999),
        tasks=lake.tasks.listed(TaskFilter(), limit=999),
        held=held,
        table_of={run_id: lake.deletions.run(run_id).table_id for run_id in held},
        approvals=lake.deletions.approvals(limit=999),
        events=lake.tables.received(EventFilter(), limit=999),
    )


def paged(ask: Callable[[Any], Sequence[T]], key: Callable[[T], Any], limit: int) -> list[T]:
    """All pages of a list, each but the last of the length that was asked for."""
    found: list[T] = []
    after = None
    while True:
        page = ask(after)
        found.extend(page)
        if len(page) < limit:
            return found
        after = key(page[-1])


scopes = st.lists(st.sampled_from(SCOPES), max_size=4, unique=True).map(tuple)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(within=st.one_of(scopes, st.just(EVERYWHERE)), limit=st.integers(1, 7))
def test_t2_a_list_of_scopes_is_the_filter_of_the_whole_list(
    lake: Lake, whole: Whole, within: Scopes, limit: int
) -> None:
    def is_in(table: TableId) -> bool:
        name = lake.names.get(table)
        return within == EVERYWHERE or (name is not None and covers(within, Scope.of(name)))

    tables = [one for one in whole.tables if is_in(one.table_id)]
    assert tables == paged(
        lambda after: lake.tables.records(limit=limit, after=after, within=within), lambda one: one.table_id, limit
    )
    waiting = [one for one in whole.waiting if is_in(one.table_id)]
    assert waiting == paged(
        lambda after: lake.tables.waiting(limit=limit, after=after, within=within), lambda one: one.plan_id, limit
    )
    tasks = [one for one in whole.tasks if is_in(one.table_id)]
    only = TaskFilter(within=within)
    assert tasks == paged(
        lambda before: lake.tasks.listed(only, limit=limit, before=before), lambda one: one.task_id, limit
    )
    assert [one.task_id for one in lake.tasks.tasks(only, limit=999)] == [one.task_id for one in tasks]
    counted = Counter(one.state for one in tasks)
    assert lake.tasks.counts(within) == {state: counted[state] for state in TaskState}
    held = [one for one in whole.held if is_in(whole.table_of[one])]
    assert held == paged(
        lambda before: lake.deletions.with_held(limit=limit, before=before, within=within), lambda one: one, limit
    )
    approvals = [one for one in whole.approvals if one.plan is None or is_in(one.plan.table_id)]
    assert approvals == paged(
        lambda before: lake.deletions.approvals(limit=limit, before=before, within=within),
        lambda one: ApprovalPlace(one.approved_at, one.plan_hash),
        limit,
    )
    known = {one.name for one in tables}
    events = [one for one in whole.events if within == EVERYWHERE or one.event.table_name in known]
    ours = EventFilter(within=within)
    assert events == paged(
        lambda before: lake.tables.received(ours, limit=limit, before=before), lambda one: one.event_id, limit
    )
    figures = lake.tables.event_figures(limit=limit, within=within)
    assert figures.sweep_only == sum(one.reporting.sweep_only for one in tables if one.reporting is not None)
    least = sorted(
        (one.reporting.sweep_only, one.name) for one in tables if one.reporting is not None and one.reporting.sweep_only
    )
    assert [(one.sweep_only, one.table_name) for one in figures.least_reported] == least[::-1][:limit]
    gone = 3 if within == EVERYWHERE else 0  # events of tables that nobody knows, and of the one that was dropped
    assert sum(channel.events for channel in figures.channels) == len(tables) + gone


def test_t2_ids_that_begin_or_end_so_are_of_scopes(lake: Lake) -> None:
    each = (EVERYWHERE, (Scope("lake", ("db",)),), ())
    for within in each:
        ids = [task.task_id for task in lake.tasks.tasks(TaskFilter(within=within), limit=1000)]
        assert lake.tasks.ids_like("", within, 1000) == ids
        for whole in ids:
            part = whole.removeprefix("task-")[-4:]
            assert lake.tasks.ids_like(part, within, 1000) == [one for one in ids if one.endswith(part)]
            assert lake.tasks.ids_like(part, within, 1) == [one for one in ids if one.endswith(part)][:1]
    for number, of_table in enumerate(lake.names):
        lake.tables.save_plan(replace(plan(f"plan-{number:03d}", table=number + 1), table_id=of_table))
    for within in each:
        found = [
            f"plan-{number:03d}" for number, name in enumerate(lake.names.values()) if covers(within, Scope.of(name))
        ]
        assert lake.tables.ids_like("", within, 1000) == found[::-1]
    assert lake.tables.ids_like("01", EVERYWHERE, 1000) == [
        one for one in lake.tables.ids_like("", EVERYWHERE, 1000) if one.startswith("plan-01") or one.endswith("01")
    ]


def test_t2_who_may_read_nothing_gets_empty_lists(lake: Lake) -> None:
    assert lake.tables.records(limit=9, within=()) == []
    assert lake.tables.waiting(limit=9, within=()) == []
    assert lake.tasks.listed(TaskFilter(within=()), limit=9) == []
    assert lake.deletions.with_held(limit=9, within=()) == []
    lake.deletions.approve(Approval("of-before", "Ada", 1))
    assert lake.deletions.approvals(limit=9, within=()) == []
    assert "of-before" not in [one.plan_hash for one in lake.deletions.approvals(limit=99, within=SCOPES)]
    assert lake.tables.event_figures(limit=9, within=()).channels == ()
    assert lake.tables.received(EventFilter(within=()), limit=9) == []
    assert set(lake.tasks.counts(()).values()) == {0}
