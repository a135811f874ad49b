"""The store forgets what is old: each kind of row by its own span, in batches, and it is kept how much went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import structlog

from icewright.audit.sql import SqlAudit
from icewright.core.clock import Clock
from icewright.core.fault_points import Fault, fault
from icewright.core.times import Instant
from icewright.model.actions.undo import UNDO_KEPT_MS
from icewright.model.work.retention import RETENTION, Retention, RowKind
from icewright.notifications.message_store import SqlMessages
from icewright.policy.rules.port import PolicyStore
from icewright.ports.deletions import DeletionStore
from icewright.ports.store import ROWS_AT_ONCE_MAX, TableStore, TaskStore
from icewright.ports.undo_records import UndoRecordStore
from icewright.queries.sql import SqlQuerySums
from icewright.recommendations.sql import SqlRecommendations
from icewright.retention.history import HistoryProgress
from icewright.retention.prunings_sql import SqlPrunings
from icewright.work.autotune.sql import SqlDecisions

_log = structlog.get_logger("icewright.pruning")

Forget = Callable[[int], int]
"""Forgets at most so many; how many there were."""

PRUNING_INTERVAL_MS: Final = 3_600_000
"""How often the store is asked to forget what nothing needs any more."""
TASKS_AT_ONCE: Final = 200
"""Tasks, or what they took, that are forgotten in one transaction: each may be megabytes."""
FACTS_AT_ONCE: Final = 2_000
"""Facts of the feed, or messages, that are forgotten in one transaction."""
PLANS_AT_ONCE: Final = 20_000
"""Plans that are looked for at once, for which all of them are looked through; they go by shorter transactions."""
TABLES_AT_ONCE: Final = 10
"""Dropped tables that are looked for at once; each goes in a transaction of its own, with all that is known of it."""
BATCHES_MAX: Final = 10
"""Transactions for one kind of row that a round of the loop takes; what is left over is for the next round."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """How long what is kept; None where there is no audit, where nobody counts what went, and without a history."""

    retention: Retention = RETENTION
    audit: SqlAudit | None = None
    prunings: SqlPrunings | None = None
    history: HistoryProgress | None = None


@dataclass(frozen=True, slots=True)
class Past:
    """All stores that have rows of the past; the last four are None where none are kept."""

    tasks: TaskStore
    tables: TableStore
    kept: UndoRecordStore
    messages: SqlMessages
    deletions: DeletionStore
    policies: PolicyStore | None = None
    queries: SqlQuerySums | None = None
    recommendations: SqlRecommendations | None = None
    decisions: SqlDecisions | None = None


class Pruner:
    """Forgets what is old, once an hour; by the server that leads."""

    def __init__(self, past: Past, clock: Clock, keeping: Keeping) -> None:
        self._past, self._clock, self._keeping = past, clock, keeping
        self._pruned_at: Instant | None = None
        self._removed: Counter[RowKind] = Counter()
        """Since it was last noted."""

    def prune(self) -> None:
        """Forget what is old, if that is due. What is more than a round takes is due again at once.

        What went is counted behind it: what a server removed in the round in which it dies is not.
        """
        now = self._clock.now()
        if self._pruned_at is not None and self._pruned_at <= now < self._pruned_at + PRUNING_INTERVAL_MS:
            return
        fault(Fault.PRUNE_BEFORE)
        try:
            more = self._prune_all(now)
        finally:
            self._note(is_done=False)
        fault(Fault.PRUNE_AFTER)
        if not more:
            self._note(is_done=True)
        self._pruned_at = None if more else now

    def _prune_all(self, now: Instant) -> bool:
        """Whether there may be more of anything."""
        keep, stored_now = self._keeping.retention, self._past.tasks.now()
        tasks_left = self._prune_tasks(stored_now - keep.spans_ms[RowKind.TASKS])
        more = [tasks_left, self._prune_audit(now)]
        more += [self._batches(*one) for one in self._in_batches(now, stored_now)]
        if not tasks_left:  # plans go behind their tasks, and to find them all of them are looked through
            plans = self._past.tables.prune_plans(keep.plans, PLANS_AT_ONCE)
            more.append(self._at_once(RowKind.PLANS, PLANS_AT_ONCE, plans))
        removed = self._past.tables.prune(now, keep)
        self._removed.update(removed)
        return any(more) or ROWS_AT_ONCE_MAX in removed.values()

    def _in_batches(self, now: Instant, stored_now: Instant) -> Iterator[tuple[RowKind, int, Forget]]:
        """What goes in batches of a size. ``stored_now`` is the store's clock, for what is stamped by it."""
        spans_ms, past = self._keeping.retention.spans_ms, self._past
        feed, deletions = past.tasks.feed, past.deletions
        kept, told = stored_now - UNDO_KEPT_MS, stored_now - spans_ms[RowKind.FEED]
        sent, dead = now - spans_ms[RowKind.MESSAGES], now - spans_ms[RowKind.DEAD_LETTERS]
        changed, logged = stored_now - spans_ms[RowKind.REMOVALS], stored_now - spans_ms[RowKind.TASK_LOGS]
        approved, dropped = now - spans_ms[RowKind.APPROVALS], now - spans_ms[RowKind.TABLES]
        yield RowKind.KEPT, TASKS_AT_ONCE, lambda limit: past.kept.forget(kept, limit)
        yield RowKind.TASK_LOGS, FACTS_AT_ONCE, lambda limit: past.tasks.prune_logs(logged, limit)
        yield RowKind.FEED, FACTS_AT_ONCE, lambda limit: feed.forget(told, limit)
        yield RowKind.MESSAGES, FACTS_AT_ONCE, lambda limit: past.messages.prune(sent, 0, limit)
        yield RowKind.DEAD_LETTERS, FACTS_AT_ONCE, lambda limit: past.messages.prune(0, dead, limit)
        yield RowKind.REMOVALS, FACTS_AT_ONCE, lambda limit: deletions.prune(changed, limit)
        yield RowKind.APPROVALS, FACTS_AT_ONCE, lambda limit: deletions.prune_approvals(approved, limit)
        yield RowKind.TABLES, TABLES_AT_ONCE, lambda limit: past.tables.prune_dropped(dropped, limit)
        if (policies := past.policies) is not None:
            replaced = stored_now - spans_ms[RowKind.POLICIES]
            yield RowKind.POLICIES, FACTS_AT_ONCE, lambda limit: policies.prune(replaced, limit)
        if (queries := past.queries) is not None:
            began = now - spans_ms[RowKind.QUERIES]
            yield RowKind.QUERIES, FACTS_AT_ONCE, lambda limit: queries.prune(began, limit)
        if (recommendations := past.recommendations) is not None:
            made = now - spans_ms[RowKind.RECOMMENDATIONS]
            yield RowKind.RECOMMENDATIONS, FACTS_AT_ONCE, lambda limit: recommendations.prune(made, limit)
        if (decisions := past.decisions) is not None:
            ended = stored_now - spans_ms[RowKind.DECISIONS]
            yield RowKind.DECISIONS, FACTS_AT_ONCE, lambda limit: decisions.prune(ended, limit)

    def _prune_tasks(self, old: Instant) -> bool:
        """Those that are in the history already; all of them where nobody wants one, or it has been held for long."""
        history = self._keeping.history
        before = old if history is None else history.may_go(old)
        was = self._removed[RowKind.TASKS]
        more = self._batches(RowKind.TASKS, TASKS_AT_ONCE, lambda limit: self._past.tasks.prune(before, limit))
        removed = self._removed[RowKind.TASKS] - was
        if history is not None and removed and before > (history.through or 0):
            _log.warning("tasks forgotten that may not be in the history", tasks=removed, through=history.through)
        return more

    def _prune_audit(self, now: Instant) -> bool:
        """One batch alone: each writes an entry that says so."""
        log, kept_ms = self._keeping.audit, self._keeping.retention.spans_ms.get(RowKind.AUDIT)
        if log is None or kept_ms is None:
            return False
        removed = log.prune(now - kept_ms, ROWS_AT_ONCE_MAX)
        self._removed[RowKind.AUDIT] += removed
        return removed == ROWS_AT_ONCE_MAX

    def _batches(self, kind: RowKind, at_once: int, forget: Forget) -> bool:
        """Whether there may be more."""
        return all(self._at_once(kind, at_once, forget(at_once)) for _ in range(BATCHES_MAX))

    def _at_once(self, kind: RowKind, at_once: int, removed: int) -> bool:
        """Count a batch; whether it was a whole one."""
        self._removed[kind] += removed
        return removed >= at_once

    def _note(self, *, is_done: bool) -> None:
        """Count what went; where a pass is done, also what is left, of all kinds."""
        prunings = self._keeping.prunings
        if prunings is None:
            return
        if is_done:
            prunings.note(dict.fromkeys(RowKind, 0), prunings.rows())
        elif self._removed.total():
            prunings.note(+self._removed, {})
            self._removed.clear()
