"""The settings that say how long what is of the past is kept: those of ``[history]``, and some of ``[server]``."""

from __future__ import annotations

from icewright.config.setting import Kind, Setting, integer
from icewright.model.work.retention import (
    HISTORY_HOLD_DAYS,
    KEEP_AUDIT_DAYS_MIN,
    KEEP_DAYS_MAX,
    KEEP_DECISIONS_DAYS_MIN,
    KEEP_EVIDENCE_DAYS_MIN,
    KEEP_FINDINGS_DAYS_MIN,
    KEEP_PLANS_MAX,
    KEEP_PLANS_MIN,
    KEEP_QUERIES_DAYS_MIN,
    KEEP_TABLES_DAYS_MIN,
    KEEP_TASKS_DAYS_MIN,
    KEPT,
    SETTING_OF,
    RowKind,
)


def _days(kind: RowKind, about: str, least: int = 1) -> Setting:
    """A setting in days, at least so many."""
    return integer(SETTING_OF[kind], about, default=KEPT[kind], least=least, most=KEEP_DAYS_MAX)


HOLD = integer(
    "hold_days",
    "How much longer than server.keep_tasks_days tasks are kept that are not in that table yet, in days; then they are "
    "deleted anyway.",
    default=HISTORY_HOLD_DAYS,
    least=1,
    most=KEEP_DAYS_MAX,
)

HISTORY = (
    Setting(
        "catalog",
        Kind.TEXT,
        "The catalog in which tasks that have ended are kept as a table, for SQL; without one they are not.",
    ),
    Setting("table", Kind.TEXT, "That table, with its namespace; it is made when it is not there.", "icewright.tasks"),
    HOLD,
)

RETENTION = (
    _days(
        RowKind.TASKS,
        "How long tasks that have ended are kept, with their history and attempts, in days: longer than they can be "
        "undone.",
        KEEP_TASKS_DAYS_MIN,
    ),
    _days(
        RowKind.TASK_LOGS,
        "How long it is kept what attempts of tasks logged, in days since the last line; at most as long as the tasks.",
    ),
    _days(
        RowKind.EVENTS, "How long events are kept that were worked on, in days; by them one that comes again is known."
    ),
    _days(RowKind.FEED, "How long facts of the feed are kept, in days: for programs that were away, and for messages."),
    _days(RowKind.MESSAGES, "How long messages are kept that arrived, in days."),
    _days(
        RowKind.DEAD_LETTERS,
        "How long messages are kept that were given up, in days: until then they can be sent again.",
    ),
    integer(
        SETTING_OF[RowKind.PLANS],
        "How many plans of a table are kept, in addition to those in use.",
        default=KEPT[RowKind.PLANS],
        least=KEEP_PLANS_MIN,
        most=KEEP_PLANS_MAX,
    ),
    _days(
        RowKind.FINDINGS,
        "How long it is kept what optimizers found of storages, in days; each is probed again daily.",
        KEEP_FINDINGS_DAYS_MIN,
    ),
    _days(RowKind.OPTIMIZERS, "How long optimizers are kept that are not heard of any more, in days."),
    Setting(
        SETTING_OF[RowKind.AUDIT],
        Kind.INTEGER,
        "How long entries of the audit are kept, in days; 0 keeps them forever.",
        default=KEPT[RowKind.AUDIT],
        allowed=f"0, or {KEEP_AUDIT_DAYS_MIN} to {KEEP_DAYS_MAX}",
        accepts=lambda value: value == 0 or KEEP_AUDIT_DAYS_MIN <= value <= KEEP_DAYS_MAX,
    ),
    _days(
        RowKind.REMOVALS,
        "How long it is kept which files were removed, with the evidence, in days since a removal last changed; what "
        "is in quarantine stays.",
        KEEP_EVIDENCE_DAYS_MIN,
    ),
    _days(
        RowKind.APPROVALS,
        "How long approvals are kept of plans that are not there any more, in days.",
        KEEP_EVIDENCE_DAYS_MIN,
    ),
    _days(
        RowKind.POLICIES,
        "How long revisions of the policies are kept that were replaced, in days since then.",
        KEEP_EVIDENCE_DAYS_MIN,
    ),
    _days(
        RowKind.TABLES,
        "How long it is kept what is known of tables that were dropped, in days; longer where a task or a removal of "
        "theirs is kept.",
        KEEP_TABLES_DAYS_MIN,
    ),
    _days(RowKind.QUERIES, "How long sums of queries are kept, in days since their week began.", KEEP_QUERIES_DAYS_MIN),
    _days(
        RowKind.RECOMMENDATIONS,
        "How long recommendations are kept with what was decided, in days.",
        KEEP_EVIDENCE_DAYS_MIN,
    ),
    _days(
        RowKind.DECISIONS,
        "How long decisions of autotuning are kept, in days since they ended.",
        KEEP_DECISIONS_DAYS_MIN,
    ),
)
