"""How long the store keeps what is of the past: one span for each kind of row, and how much of each there is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from icewright.core.times import Instant
from icewright.model.actions.undo import UNDO_KEPT_MS

DAY_MS: Final = 24 * 3_600_000


class RowKind(StrEnum):
    """Rows that are of the past, by what they are counted and removed as."""

    TASKS = "tasks"
    """Tasks that have ended, with their history and attempts; aged by their end."""
    TASK_LOGS = "task-logs"
    """What attempts logged; aged by the last line."""
    EVENTS = "events"
    """Events that were worked on; aged by that."""
    FEED = "feed"
    """Facts of the feed, aged by when they were told."""
    MESSAGES = "messages"
    """Messages that arrived; aged by that."""
    DEAD_LETTERS = "dead-letters"
    """Messages that were given up; aged by that."""
    PLANS = "plans"
    """Plans, kept by their number for each table and not by their age."""
    FINDINGS = "findings"
    """What optimizers found of storages; aged by that."""
    OPTIMIZERS = "optimizers"
    """Optimizers, aged by when they were last heard of."""
    KEPT = "kept"
    """What tasks took from the metadata of tables, aged by when it was written down."""
    AUDIT = "audit"
    """Entries of the audit."""
    REMOVALS = "removals"
    """Files that removals were about and nothing more becomes of, with their runs; aged by the last of their run."""
    APPROVALS = "approvals"
    """Approvals of plans, aged by when they were given."""
    POLICIES = "policies"
    """Revisions of the policies that are not present any more; aged by when the next one was applied."""
    TABLES = "tables"
    """Tables that were dropped, with all that is known of them; aged by when that was seen."""
    QUERIES = "queries"
    """What queries of tables took, summed by weeks; aged by when the week began."""
    RECOMMENDATIONS = "recommendations"
    """Recommendations with what was decided; aged by when they were made."""
    DECISIONS = "decisions"
    """Decisions of autotuning that have ended; aged by that."""


KEEP_DAYS_MAX: Final = 36_500
"""A hundred years: with more, instants would be none that a database knows."""
HISTORY_HOLD_DAYS: Final = 30
"""How much longer than their time tasks are kept that are not in the history yet, where nobody says otherwise."""
KEEP_TASKS_DAYS_MIN: Final = UNDO_KEPT_MS // DAY_MS
"""A task that is forgotten cannot be undone, nor does one that undid an expiry keep others from following it."""
KEEP_AUDIT_DAYS_MIN: Final = 90
"""Shorter than that, what was done would be forgotten before anybody asks."""
KEEP_EVIDENCE_DAYS_MIN: Final = 90
"""Of what tells why something was done: as the audit."""
KEEP_DECISIONS_DAYS_MIN: Final = 14
"""The last week of them says which memory was too little."""
KEEP_TABLES_DAYS_MIN: Final = UNDO_KEPT_MS // DAY_MS
"""A catalog may not show a table for a while."""
KEEP_FINDINGS_DAYS_MIN: Final = 2
"""Tables that are looked after have their storages found out anew once a day."""
KEEP_QUERIES_DAYS_MIN: Final = 28
"""What layouts are judged by are the queries of some weeks."""
KEEP_PLANS_MIN: Final = 5
"""Fewer than that, and nobody could see by what the plan of a table has changed."""
KEEP_PLANS_MAX: Final = 10_000
"""Of each table, with all its files."""


KEPT: Final[Mapping[RowKind, int]] = {
    RowKind.TASKS: 90,
    RowKind.TASK_LOGS: 14,
    RowKind.EVENTS: 1,
    RowKind.FEED: 14,
    RowKind.MESSAGES: 7,
    RowKind.DEAD_LETTERS: 30,
    RowKind.PLANS: 20,
    RowKind.FINDINGS: 30,
    RowKind.OPTIMIZERS: 30,
    RowKind.AUDIT: 0,
    RowKind.REMOVALS: 1_095,
    RowKind.APPROVALS: 1_095,
    RowKind.POLICIES: 1_095,
    RowKind.TABLES: 90,
    RowKind.QUERIES: 182,
    RowKind.RECOMMENDATIONS: 1_095,
    RowKind.DECISIONS: 90,
}
"""Days, 0 for good, and of plans how many, where nobody says otherwise; what is not in it has no setting."""


@dataclass(frozen=True, slots=True)
class Retention:
    """How long each kind of row is kept, in ms; of ``plans``, how many of each table whatever became of them.

    What has no span does not go by its age: plans, and the audit where it is kept for good.
    """

    spans_ms: Mapping[RowKind, int]
    plans: int

    @classmethod
    def of(cls, kept: Mapping[RowKind, int]) -> Retention:
        """By the settings, as :data:`KEPT` has them. What tasks took is of use as long as they can be undone."""
        aged: dict[RowKind, int] = {
            kind: days * DAY_MS for kind, days in kept.items() if days and kind != RowKind.PLANS
        }
        return cls({**aged, RowKind.KEPT: UNDO_KEPT_MS}, kept[RowKind.PLANS])


RETENTION: Final = Retention.of(KEPT)
"""What holds where nobody says otherwise."""

SETTING_OF: Final[Mapping[RowKind, str]] = {
    RowKind.TASKS: "keep_tasks_days",
    RowKind.TASK_LOGS: "keep_task_logs_days",
    RowKind.EVENTS: "keep_events_days",
    RowKind.FEED: "keep_feed_days",
    RowKind.MESSAGES: "keep_messages_days",
    RowKind.DEAD_LETTERS: "keep_dead_letters_days",
    RowKind.PLANS: "keep_plans",
    RowKind.FINDINGS: "keep_findings_days",
    RowKind.OPTIMIZERS: "keep_optimizers_days",
    RowKind.AUDIT: "keep_audit_days",
    RowKind.REMOVALS: "keep_removals_days",
    RowKind.APPROVALS: "keep_approvals_days",
    RowKind.POLICIES: "keep_policies_days",
    RowKind.TABLES: "keep_dropped_tables_days",
    RowKind.QUERIES: "keep_queries_days",
    RowKind.RECOMMENDATIONS: "keep_recommendations_days",
    RowKind.DECISIONS: "keep_decisions_days",
}
"""By which setting of ``[server]``; what is not in it has none."""


@dataclass(frozen=True, slots=True)
class Rows:
    """How many rows of a kind there are, and of when the oldest is; None where none is there."""

    count: int = 0
    oldest_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class Pruned:
    """When rows of a kind were last looked through, how many went since the store was made, and what was left then."""

    pruned_at: Instant
    removed: int
    left: Rows
