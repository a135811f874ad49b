"""The audit as values: entries that are chained by their hashes, so that one that was changed or left out is found.

Each entry's hash is SHA-256 over its canonical JSON (sorted keys, no spaces, ASCII), in which the hash of the entry
before it is. What was cut off at the end is found by a head that somebody took with them. Old entries go with a
checkpoint, which is itself said in the chain.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from icewright.core.times import Instant
from icewright.model.access.permissions import Act, Detail
from icewright.model.actions.deletion import DeletionRun, Intent, IntentState, Step
from icewright.model.plans.approvals import Approval, Refusal
from icewright.model.policy.policies import PolicyRevision
from icewright.model.work.halts import Halt, Part
from icewright.model.work.tasks import TERMINAL_STATES, ListedTask, Task, TaskState

SERVER: Final = "icewright"
"""Who acts where nobody asked: the server by itself."""
POLICY: Final = "policy"
"""Who acts where the policy of a table decides in place of a person. People and tokens have names with a prefix."""
PRUNED: Final = "audit.pruned"


@dataclass(frozen=True, slots=True)
class Head:
    """An entry by its number and hash: up to there the chain can be no other one."""

    number: int
    hash: str


GENESIS: Final = Head(0, "0" * 64)
"""What comes before the first entry."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One entry, numbered from 1 without gaps. ``hash`` is over everything else in it."""

    number: int
    at: Instant
    principal: str
    action: str
    resource: str
    detail: Detail
    previous: str
    hash: str = ""

    @property
    def head(self) -> Head:
        """This entry as the end of a chain."""
        return Head(self.number, self.hash)


def link(before: Head, at: Instant, principal: str, act: Act) -> AuditEntry:
    """The entry that comes behind ``before``."""
    entry = AuditEntry(before.number + 1, at, principal, act.action, act.resource, dict(act.detail), before.hash)
    return replace(entry, hash=hash_of(entry))


def hash_of(entry: AuditEntry) -> str:
    """What an entry's hash has to be, in hexadecimal."""
    said = {
        "number": entry.number,
        "at": entry.at,
        "principal": entry.principal,
        "action": entry.action,
        "resource": entry.resource,
        "detail": dict(entry.detail),
        "previous": entry.previous,
    }
    text = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


@dataclass(frozen=True, slots=True)
class Verified:
    """What is true of a chain: its end, and what is wrong with it first, if anything is. ``entries`` were looked at.

    ``unproven`` are heads that were taken from entries that are gone by now: whether this is that chain, they cannot
    tell.
    """

    entries: int
    head: Head
    broken_at: int | None = None
    why: str = ""
    unproven: tuple[Head, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether the chain is in order, and each head that was taken is in it."""
        return self.broken_at is None and not self.unproven


def verify(entries: Iterable[AuditEntry], start: Head = GENESIS, taken: Sequence[Head] = ()) -> Verified:
    """Follow a chain from ``start``, and look for heads that were ``taken`` from it before.

    Entries come by their numbers. A chain that begins behind a checkpoint has to say so itself; anybody can write such
    a chain, so that heads from before its beginning prove nothing.
    """
    last, count, said = start, 0, start == GENESIS
    wanted = {head.number: head.hash for head in taken}
    for entry in entries:
        why = _wrong(entry, last)
        if not why and wanted.get(entry.number, entry.hash) != entry.hash:
            why = "it is another one than the head that was taken"
        if why:
            return Verified(count, last, entry.number, why)
        said = said or (entry.action == PRUNED and _pruned_to(entry) == start)
        last, count = entry.head, count + 1
    if not said:
        return Verified(
            count, last, start.number, "entries are missing up to there, and no entry says that they were pruned"
        )
    for head in sorted(taken, key=lambda one: one.number):
        if head.number > last.number:
            return Verified(count, last, last.number + 1, f"it is cut off: entry {head.number} was there")
        if head.number == start.number and head.hash != start.hash:
            return Verified(count, last, head.number, "it is another one than the head that was taken")
    gone = tuple(sorted((head for head in taken if head.number < start.number), key=lambda one: one.number))
    return Verified(count, last, unproven=gone)


def pruned(start: Head) -> Act:
    """That entries up to one were forgotten."""
    return Act(PRUNED, "audit", {"through": start.number, "hash": start.hash})


def _pruned_to(entry: AuditEntry) -> Head:
    return Head(int(entry.detail.get("through", 0)), str(entry.detail.get("hash", "")))


def _wrong(entry: AuditEntry, last: Head) -> str:
    if entry.number != last.number + 1:
        return f"it follows entry {last.number}: one is missing, or there twice"
    if entry.previous != last.hash:
        return "it does not follow from the entry before it"
    return "" if entry.hash == hash_of(entry) else "it was changed"


def of_task(task: Task | ListedTask, *, before: TaskState | None = None, cancelled: bool = False) -> Act | None:
    """What queuing, cancelling or retrying a task is in the audit; None of changes that are only its life.

    ``before`` is the state that it had, None for a new one.
    """
    detail: dict[str, int | str] = {"table": str(task.table_name), "kind": task.kind.value, "plan": task.plan_id}
    detail |= {"table_id": str(task.table_id), "because": task.reason.code}
    if cancelled:
        return Act("task.cancelled", f"task {task.task_id}", detail)
    if before is None:
        return Act("task.queued", f"task {task.task_id}", detail)
    if before is TaskState.QUEUED and task.attempt == 0 and task.state is TaskState.QUEUED:
        return Act("task.replanned", f"task {task.task_id}", detail)
    if before in TERMINAL_STATES and task.state not in TERMINAL_STATES:
        return Act("task.retried", f"task {task.task_id}", detail)
    return None


def of_expedited(task: Task | ListedTask) -> Act:
    """That somebody wants a task to be started before all others of its group."""
    return Act("task.expedited", f"task {task.task_id}", {"table": str(task.table_name), "kind": task.kind.value})


def of_run(run: DeletionRun, files: int) -> Act:
    """That files are about to go: the intents are written in the same transaction."""
    detail: dict[str, int | str] = {"table": str(run.table_name), "table_id": str(run.table_id), "files": files}
    detail |= {"plan": run.plan_id, "plan_hash": run.plan_hash, "cause": run.cause.value}
    return Act("deletion.begun", f"run {run.run_id}", detail)


def of_approval(approval: Approval) -> Act:
    """That somebody let a plan go beyond its budget, or for the first time."""
    detail: Detail = {"approved_by": approval.approved_by}
    if approval.plan is not None:
        detail = {**detail, "plan_id": approval.plan.plan_id, "kind": approval.plan.kind.value}
    return Act("plan.approved", f"plan {approval.plan_hash}", detail)


def of_refusal(refusal: Refusal) -> Act:
    """That somebody refused a plan that waited for a person."""
    detail: Detail = {"refused_by": refusal.refused_by, "plan_id": refusal.plan_id, "kind": refusal.kind.value}
    return Act("plan.refused", f"plan {refusal.plan_hash}", {**detail, "why": refusal.why})


def of_policies(revision: PolicyRevision) -> Act:
    """That somebody applied policies in place of those before."""
    rules = len(revision.policies.rules)
    detail: Detail = {"rules": rules, "applied_by": revision.applied_by, "note": revision.note}
    return Act("policies.applied", f"revision {revision.number}", detail)


def of_halt(halt: Halt) -> Act:
    """That somebody paused, drains or stopped a part of the queue."""
    return Act(f"queue.{halt.state.value}", str(halt.part), {"why": halt.why, **_table_of(halt.part)})


def of_resume(halt: Halt, why: str) -> Act:
    """That somebody let a part of the queue go on."""
    detail: Detail = {"was": halt.state.value, "since": halt.since, "why": why, **_table_of(halt.part)}
    return Act("queue.resumed", str(halt.part), detail)


def _table_of(part: Part) -> Detail:
    return {} if part.table_id is None else {"table_id": str(part.table_id)}


def of_files(intents: Sequence[Intent]) -> tuple[Act, ...]:
    """What steps with files are in the audit: that they are about to be taken, and that they were.

    One entry for all files of a run that do the same, with how many there are and a digest of their paths, by which
    the intents can be compared with it. Files that stay where they are have none.
    """
    groups: dict[tuple[str, str], list[Intent]] = {}
    for intent in intents:
        action = _step_of(intent)
        if action is not None:
            groups.setdefault((intent.run_id, action), []).append(intent)
    return tuple(
        Act(
            action,
            f"run {run_id}",
            {
                "files": len(found),
                "bytes": sum(one.object.size_bytes for one in found),
                "paths": digest_of(one.object.path for one in found),
            },
        )
        for (run_id, action), found in groups.items()
    )


def digest_of(paths: Iterable[str]) -> str:
    """SHA-256 over the sorted paths as a JSON array of ASCII, in hexadecimal."""
    return hashlib.sha256(json.dumps(sorted(paths)).encode("ascii")).hexdigest()


def _step_of(intent: Intent) -> str | None:
    match intent.state, intent.step:
        case IntentState.UNKNOWN, step if step is not None and intent.why is None:
            return f"files.{step.value}-begun"
        case IntentState.QUARANTINED, Step.QUARANTINE:
            return "files.quarantined"
        case ((IntentState.PURGED | IntentState.RESTORED), _):
            return f"files.{intent.state.value}"
        case _:
            return None
