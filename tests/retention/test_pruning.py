"""What is old is forgotten by its own span, in batches, and it is counted what went."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from icewright.actions.remove_files.adapters.deletion_store import SqlDeletionStore
from icewright.actions.undo.undo_records_sql import SqlUndoRecordStore
from icewright.audit.model import verify
from icewright.audit.sql import SqlAudit
from icewright.model.access.permissions import Act
from icewright.model.actions.undo import UNDO_KEPT_MS, Kept
from icewright.model.iceberg.names import TableId
from icewright.model.policy.policies import NewRevision, Policies
from icewright.model.work.retention import DAY_MS, RETENTION, Retention, RowKind
from icewright.notifications.message_store import SqlMessages
from icewright.policy.rules.sql import SqlPolicies
from icewright.ports.store import ROWS_AT_ONCE_MAX
from icewright.retention import pruning
from icewright.retention.history import SETTLED_MS, HistoryProgress, HistoryWriter
from icewright.retention.pruning import PRUNING_INTERVAL_MS, Keeping, Past, Pruner
from icewright.retention.prunings_sql import SqlPrunings
from icewright.work.store.table_store import SqlTableStore
from icewright.work.store.task_store import SqlTaskStore
from tests.contracts.samples import REASON, keep_log, new_task, plan, record
from tests.contracts.test_deletion_store_contract import approval, remove
from tests.contracts.test_messages_contract import message
from tests.doubles.clock import ManualClock
from tests.doubles.history import MemoryHistory
from tests.lakes.stores import new_store


class World:
    """All stores, and what prunes them."""

    def __init__(self, retention: Retention = RETENTION, history: HistoryProgress | None = None) -> None:
        self.clock = ManualClock()
        store = new_store()
        self.audit, self.kept, self.messages = (
            SqlAudit(store, self.clock),
            SqlUndoRecordStore(store),
            SqlMessages(store, self.clock),
        )
        self.tasks, self.tables = SqlTaskStore(store, self.clock), SqlTableStore(store, self.clock)
        self.deletions, self.policies = SqlDeletionStore(store, self.clock), SqlPolicies(store, self.clock)
        self.prunings = SqlPrunings(store, self.clock)
        self.retention, self.history = retention, history
        self.pruner = self.restarted()

    def restarted(self) -> Pruner:
        keeping = Keeping(self.retention, self.audit, self.prunings, self.history)
        past = Past(self.tasks, self.tables, self.kept, self.messages, self.deletions, self.policies)
        return Pruner(past, self.clock, keeping)

    def end(self, count: int) -> None:
        for number in range(count):
            self.tasks.enqueue(new_task(f"task-{number}", table=number))
            self.tasks.request_cancel(f"task-{number}", REASON)

    def count(self, kind: RowKind) -> int:
        return self.prunings.rows()[kind].count


def kept_for(spans_ms: Mapping[RowKind, int]) -> Retention:
    return replace(RETENTION, spans_ms={**RETENTION.spans_ms, **spans_ms})


def test_each_kind_goes_when_its_own_span_is_over() -> None:
    spans_ms = RETENTION.spans_ms
    keep = kept_for(
        {
            RowKind.AUDIT: 9_000 * DAY_MS,
            RowKind.TABLES: 91 * DAY_MS,
            RowKind.TASK_LOGS: spans_ms[RowKind.FEED] - DAY_MS,
            RowKind.APPROVALS: spans_ms[RowKind.REMOVALS] + DAY_MS,
            RowKind.POLICIES: spans_ms[RowKind.REMOVALS] + 2 * DAY_MS,
        }
    )
    world = World(keep)
    begun = world.clock.now()
    world.end(1)
    keep_log(world.tasks, "task-logged", 2)
    world.kept.keep(Kept("task-0", TableId("lake", "u"), begun, b"x"))
    made = [message(1), message(2)]
    world.messages.compose("team", None, 1, made)
    world.messages.sent(made[0].message_id)
    world.messages.failed(made[1].message_id, "away", None)
    world.audit.append(Act("a", "x"))
    remove(world.deletions, "run-1")
    world.deletions.approve(approval(1, at=begun))
    for number in range(2):
        world.policies.apply(NewRevision(Policies(()), "ada"), number)
    world.tables.save_record(record(7, dropped_at=begun))
    aged = [RowKind.TABLES, RowKind.REMOVALS, RowKind.APPROVALS, RowKind.POLICIES, RowKind.MESSAGES]
    aged += (RowKind.FEED, RowKind.DEAD_LETTERS, RowKind.TASKS, RowKind.TASK_LOGS)
    there = {**{kind: keep.spans_ms[kind] for kind in aged}, RowKind.KEPT: UNDO_KEPT_MS}
    world.audit.link()
    audited = world.count(RowKind.AUDIT)
    for kind, span_ms in sorted(there.items(), key=lambda one: one[1]):
        world.clock.advance(begun + span_ms - world.clock.now())
        world.restarted().prune()
        assert world.count(kind) > 0, kind
        world.clock.advance(1)
        world.restarted().prune()
        assert world.count(kind) == 0, kind
    assert world.count(RowKind.AUDIT) == audited


def test_t12_the_audit_is_kept_for_good_unless_somebody_says_otherwise() -> None:
    world = World()
    for _ in range(3):
        world.audit.append(Act("a", "x"))
    world.audit.link()
    world.clock.advance(10_000 * DAY_MS)
    world.pruner.prune()
    assert world.count(RowKind.AUDIT) == 3
    assert RowKind.AUDIT not in world.prunings.pruned() or world.prunings.pruned()[RowKind.AUDIT].removed == 0


def test_t12_old_entries_of_the_audit_go_a_batch_at_a_time_and_the_rest_verifies() -> None:
    world = World(kept_for({RowKind.AUDIT: 1_000}))
    log = world.audit
    for _ in range(ROWS_AT_ONCE_MAX + 10):
        log.append(Act("a", "x"))
    world.clock.advance(1_000)
    log.append(Act("b", "x"))
    world.pruner.prune()
    assert world.count(RowKind.AUDIT) == ROWS_AT_ONCE_MAX + 11
    world.clock.advance(1)
    pruner = world.restarted()
    pruner.prune()
    assert world.count(RowKind.AUDIT) == 12
    pruner.prune()
    entries = log.entries(limit=100, after=0)
    assert [entry.action for entry in entries] == ["b", "audit.pruned", "audit.pruned"]
    assert verify(entries, log.start()).broken_at is None
    assert world.prunings.pruned()[RowKind.AUDIT].removed == ROWS_AT_ONCE_MAX + 10


def test_what_went_and_what_is_left_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "TASKS_AT_ONCE", 2)
    monkeypatch.setattr(pruning, "BATCHES_MAX", 2)
    world = World()
    world.end(5)
    world.clock.advance(RETENTION.spans_ms[RowKind.TASKS] + 1)
    young = world.clock.now()
    world.tasks.enqueue(new_task("task-young", table=9))
    world.tasks.request_cancel("task-young", REASON)
    world.pruner.prune()
    assert world.prunings.pruned()[RowKind.TASKS].removed == 4
    world.pruner.prune()  # there was more than a round takes
    noted = world.prunings.pruned()
    assert noted.keys() == set(RowKind)
    assert (noted[RowKind.TASKS].removed, noted[RowKind.TASKS].left.count) == (5, 1)
    assert noted[RowKind.TASKS].left.oldest_at == noted[RowKind.TASKS].pruned_at == young


def test_it_is_done_once_an_hour_and_also_when_the_clock_went_back() -> None:
    world = World()
    world.pruner.prune()
    begun = world.clock.now()
    world.clock.advance(PRUNING_INTERVAL_MS - 1)
    world.pruner.prune()
    assert world.prunings.pruned()[RowKind.TASKS].pruned_at == begun
    world.clock.advance(1)
    world.pruner.prune()
    assert world.prunings.pruned()[RowKind.TASKS].pruned_at == begun + PRUNING_INTERVAL_MS
    world.clock.advance(-10)
    world.pruner.prune()
    assert world.prunings.pruned()[RowKind.TASKS].pruned_at == begun + PRUNING_INTERVAL_MS - 10


def test_a_task_that_is_not_in_the_history_waits_for_it() -> None:
    history = HistoryProgress(hold_ms=DAY_MS)
    world, table = World(history=history), MemoryHistory()
    world.end(2)
    world.clock.advance(RETENTION.spans_ms[RowKind.TASKS] + 1)
    with capture_logs() as logs:
        world.pruner.prune()  # by a server that has not asked yet
        assert world.count(RowKind.TASKS) == 2
        HistoryWriter(world.tasks, table, history).copy()
        world.clock.advance(PRUNING_INTERVAL_MS)
        world.pruner.prune()
    assert (world.count(RowKind.TASKS), len(table.rows)) == (0, 2)
    assert not [entry for entry in logs if entry["log_level"] == "warning"]


def test_it_is_said_whether_old_tasks_wait_for_the_history() -> None:
    history, now, kept_ms = HistoryProgress(hold_ms=DAY_MS), 100 * DAY_MS, 90 * DAY_MS
    history.begun(now - 1_000)
    found = history.status(now, kept_ms)
    assert (found.through, found.lag_ms, found.is_late, found.is_waited_for) == (None, 1_000, False, True)
    history.copied(now - kept_ms - 1)  # far behind, and what is old enough to go is not in it
    found = history.status(now, kept_ms)
    assert (found.is_late, found.is_waited_for, found.hold_ms) == (True, True, DAY_MS)
    history.copied(now - kept_ms)
    found = history.status(now, kept_ms)
    assert (found.is_late, found.is_waited_for) == (True, False)


def test_what_the_history_does_not_have_is_held_so_long_and_then_told_of() -> None:
    world = World(history=HistoryProgress(hold_ms=DAY_MS))
    world.end(2)
    world.clock.advance(RETENTION.spans_ms[RowKind.TASKS] + DAY_MS)
    world.restarted().prune()
    assert world.count(RowKind.TASKS) == 2
    world.clock.advance(1)
    with capture_logs() as logs:
        world.restarted().prune()
    assert world.count(RowKind.TASKS) == 0
    (told,) = [entry for entry in logs if entry["log_level"] == "warning"]
    assert (told["event"], told["tasks"]) == ("tasks forgotten that may not be in the history", 2)


def test_of_what_ended_since_the_last_copy_nothing_goes() -> None:
    history = HistoryProgress(hold_ms=DAY_MS)
    world = World(kept_for({RowKind.TASKS: 1_000}), history)
    writer = HistoryWriter(world.tasks, MemoryHistory(), history)
    world.end(1)
    world.clock.advance(SETTLED_MS + 1)
    writer.copy()
    world.tasks.enqueue(new_task("task-late", table=9))
    world.tasks.request_cancel("task-late", REASON)
    world.clock.advance(SETTLED_MS)
    world.pruner.prune()
    assert [task.task_id for task in world.tasks.ended(None, world.clock.now(), 9)] == ["task-late"]


def test_plans_are_looked_through_once_their_tasks_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "TASKS_AT_ONCE", 2)
    monkeypatch.setattr(pruning, "BATCHES_MAX", 1)
    world = World(replace(RETENTION, plans=0))
    world.end(3)
    world.tables.save_plan(plan("plan-1"))  # that of all these tasks
    world.clock.advance(RETENTION.spans_ms[RowKind.TASKS] + 1)
    world.pruner.prune()
    assert (world.count(RowKind.TASKS), world.count(RowKind.PLANS)) == (1, 1)
    world.pruner.prune()
    assert (world.count(RowKind.TASKS), world.count(RowKind.PLANS)) == (0, 0)


def test_a_table_goes_behind_the_removals_of_its_files() -> None:
    world = World()
    world.tables.save_record(record(dropped_at=world.clock.now()))
    remove(world.deletions, "run-1")
    world.clock.advance(RETENTION.spans_ms[RowKind.TABLES] + 1)
    world.pruner.prune()
    assert world.tables.record(record().table_id) is not None
    world.clock.advance(RETENTION.spans_ms[RowKind.REMOVALS])
    world.pruner.prune()
    assert world.tables.record(record().table_id) is None
