"""What every store must count of the past, sentence by sentence of the port."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icewright.model.access.permissions import Act
from icewright.model.actions.undo import Kept
from icewright.model.events.events import CommitEvent
from icewright.model.events.notifications import Message
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.plans.observation import WorkerAccess
from icewright.model.policy.policies import NewRevision, Policies
from icewright.model.queries.templates import FilteredColumn, Sums, Template, TemplateWeek
from icewright.model.work.retention import Pruned, RowKind, Rows
from icewright.model.work.storage import AccessRecord
from icewright.model.work.tasks import AttemptState, TaskState
from icewright.ports.store import Change
from icewright.queries.sql import SqlQuerySums
from icewright.recommendations.sql import SqlRecommendations
from icewright.retention.prunings_sql import SqlPrunings
from icewright.work.autotune.model import DecisionState
from tests.builders.queries import JUDGED, measurement, recommendation
from tests.contracts.samples import OUTCOME, REASON, hello, keep_log, new_task, plan, record
from tests.contracts.stores import Stores
from tests.contracts.test_decisions_contract import decision
from tests.contracts.test_deletion_store_contract import a_run, approval, remove
from tests.contracts.test_messages_contract import message
from tests.doubles.clock import ManualClock

NAME = TableName("lake", ("db",), "t")


@pytest.fixture
def prunings(stores: Stores) -> SqlPrunings:
    return stores.prunings()


def test_nothing_is_there_at_first(prunings: SqlPrunings) -> None:
    assert prunings.rows() == dict.fromkeys(RowKind, Rows())
    assert prunings.pruned() == {}


def test_each_kind_is_counted_with_its_oldest(stores: Stores, prunings: SqlPrunings, clock: ManualClock) -> None:
    begun = clock.now()
    for number in range(2):
        fill(stores, clock, number)
        clock.advance(1_000)
    stores.audit().link()
    rows = prunings.rows()
    assert {kind: rows[kind].oldest_at for kind in RowKind} == {
        **dict.fromkeys(RowKind, begun),
        RowKind.PLANS: 0,
    }
    told, acts = stores.tasks().feed.last(), stores.audit().head().number
    counts = {**dict.fromkeys(RowKind, 2), RowKind.FEED: told, RowKind.AUDIT: acts}
    assert {kind: rows[kind].count for kind in RowKind} == counts


def fill(stores: Stores, clock: ManualClock, number: int) -> None:
    """One row of each kind that is of the past, and one of each that is not."""
    tables, tasks, messages = stores.tables(), stores.tasks(), stores.messages()
    logged = keep_log(tasks, f"task-{number}", number)
    tasks.change(Change(logged.task_id, logged.version, TaskState.FAILED, OUTCOME, AttemptState.FAILED))
    tasks.enqueue(new_task(f"task-waiting-{number}", table=number))
    tables.receive(CommitEvent(NAME, number))
    tables.done([tables.inbox(9)[-1].event_id])
    tables.receive(CommitEvent(NAME, 100 + number))
    tables.optimizer_seen(hello(f"optimizer-{number}"))
    tables.save_plan(plan(f"plan-{number}", planned_at=number))
    root = f"s3://bucket/{number}"
    tables.save_access(AccessRecord("lake", root, WorkerAccess.PROVED, "", "optimizer-1", clock.now()))
    stores.kept().keep(Kept(f"task-{number}", TableId("lake", "u"), clock.now(), b"x"))
    stores.audit().append(Act("a", "x"))
    made: list[Message] = [message(3 * number + each) for each in range(3)]
    messages.compose("team", None if number == 0 else number, number + 1, made)
    messages.sent(made[0].message_id)
    messages.failed(made[1].message_id, "away", None)
    remove(stores.deletions(), f"run-{number}", table=10 + number, files=1)
    stores.deletions().begin(a_run(stores.deletions(), f"run-open-{number}", table=20 + number), [])
    stores.deletions().approve(approval(number, at=clock.now()))
    for _ in range(1 if number else 2):
        stores.policies().apply(NewRevision(Policies(()), "ada"), stores.policies().present())
    week = TemplateWeek(TableId("lake", "u"), clock.now(), Template((FilteredColumn(f"c{number}", ()),)), Sums(1))
    SqlQuerySums(stores.engine).add(f"spool-{number}", 0, 1, [week])
    recommendations = SqlRecommendations(stores.engine)
    recommendations.keep(TableId("lake", "u"), f"task-{number}", clock.now(), replace(recommendation(), judged=JUDGED))
    measured = measurement(TableId("lake", "u"), f"recommendation-{number}", f"task-m{number}", clock.now())
    recommendations.measurements.keep(measured)
    stores.decisions().make(decision(number, clock))
    stores.decisions().end(f"tune-{number}", DecisionState.DONE, REASON)
    tables.save_record(record(30 + number, dropped_at=clock.now()))
    tables.save_record(record(40 + number, name=TableName("lake", ("db",), f"there-{number}")))


def test_what_went_is_added_up_and_what_is_left_is_as_it_was_noted_last(
    stores: Stores, prunings: SqlPrunings, clock: ManualClock
) -> None:
    begun = clock.now()
    prunings.note({RowKind.TASKS: 3, RowKind.FEED: 0}, {RowKind.TASKS: Rows(7, 5)})
    clock.advance(10)
    prunings.note({RowKind.TASKS: 2}, {})
    assert stores.prunings().pruned() == {
        RowKind.TASKS: Pruned(begun + 10, 5, Rows(7, 5)),
        RowKind.FEED: Pruned(begun, 0, Rows()),
    }
    prunings.note({RowKind.TASKS: 0}, {RowKind.TASKS: Rows()})
    assert prunings.pruned()[RowKind.TASKS] == Pruned(begun + 10, 5, Rows())
