"""Named places where a process may die, so that tests can make it die there, one after the other.

In production a call of :func:`fault` looks at one variable and returns. There is nothing here, and nothing in any
configuration or environment, that could make it do more: only a test's own code calls :func:`arm`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum


class Fault(StrEnum):
    """The places, by process and in the order in which a task comes by. Each is called at exactly one place.

    ``before`` and ``after`` are of the store's transaction (or of the table's commit): before it the process has
    decided and said nothing, after it nobody has heard of what is already so.
    """

    EVENT_STORED = "server.event.stored"
    EVENT_WORKED = "server.event.worked"
    OBSERVE_BEFORE = "server.observe.before"
    OBSERVE_AFTER = "server.observe.after"
    PLAN_BEFORE = "server.plan.before"
    PLAN_AFTER = "server.plan.after"
    EXPIRY_PLAN_BEFORE = "housekeeper.plan.before"
    EXPIRY_PLAN_AFTER = "housekeeper.plan.after"
    ENQUEUE_BEFORE = "server.enqueue.before"
    ENQUEUE_AFTER = "server.enqueue.after"
    CLAIM_BEFORE = "server.claim.before"
    CLAIM_AFTER = "server.claim.after"
    CLAIM_CHECKED = "server.claim.checked"
    HEARTBEAT_BEFORE = "server.heartbeat.before"
    HEARTBEAT_AFTER = "server.heartbeat.after"
    LEAVE_GIVEN = "server.leave.given"
    REPORT_BEFORE = "server.report.before"
    REPORT_AFTER = "server.report.after"
    HOUSEKEEPING_CLAIMED = "housekeeper.claimed"
    HOUSEKEEPING_DONE = "housekeeper.done"
    EXPIRY_KEPT = "housekeeper.kept"
    EXPIRE_BEFORE = "server.expire.before"
    EXPIRE_AFTER = "server.expire.after"
    SETTLE_BEFORE = "server.settle.before"
    SETTLE_AFTER = "server.settle.after"
    VERIFY_BEFORE = "server.verify.before"
    VERIFY_AFTER = "server.verify.after"
    PRUNE_BEFORE = "server.prune.before"
    PRUNE_AFTER = "server.prune.after"

    DELETION_BEGIN_BEFORE = "deleter.begin.before"
    DELETION_BEGIN_AFTER = "deleter.begin.after"
    DELETION_SETTLE_BEFORE = "deleter.settle.before"
    DELETION_SETTLE_AFTER = "deleter.settle.after"
    DELETION_CHECKED = "deleter.checked"
    DELETION_STEP_BEFORE = "deleter.step.before"
    DELETION_STEP_BEGUN = "deleter.step.begun"
    DELETION_FILE_DONE = "deleter.file.done"
    DELETION_RECORD_BEFORE = "deleter.record.before"
    DELETION_RECORD_AFTER = "deleter.record.after"
    DELETION_LEFT = "deleter.left"
    DELETION_CLOSED = "deleter.closed"

    SUPERVISOR_STARTED = "supervisor.started"
    SUPERVISOR_BURIED = "supervisor.buried"

    TASK_CLAIMED = "optimizer.task.claimed"
    TABLE_CHECKED = "optimizer.table.checked"
    MERGE_BEFORE = "optimizer.merge.before"
    WORKER_WRITTEN = "worker.output.written"
    MERGE_AFTER = "optimizer.merge.after"
    MANIFESTS_BEFORE = "manifests.before"
    MANIFESTS_AFTER = "manifests.after"
    DATA_CHECKED = "expire-data.checked"
    DATA_TAG_BEFORE = "expire-data.tag.before"
    DATA_TAG_AFTER = "expire-data.tag.after"
    COMMIT_PREPARED = "optimizer.commit.prepared"
    COMMIT_BEFORE = "optimizer.commit.before"
    COMMIT_AFTER = "optimizer.commit.after"
    REPORT_READY = "optimizer.report.ready"
    REPORT_SENT = "optimizer.report.sent"


Hook = Callable[[Fault], None]

_armed: Hook | None = None


def fault(point: Fault) -> None:
    """Come by a place; nothing happens unless a test has armed this process."""
    if _armed is not None:
        _armed(point)


def arm(hook: Hook | None) -> None:
    """Have ``hook`` called at every place from now on, in all threads; None disarms. For tests alone."""
    global _armed  # noqa: PLW0603 - one per process, as a process dies as one
    _armed = hook
