"""What a queued task waits for, as whoever claims would be told: by the same facts, and the same functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from icewright.core import wording
from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.actions.actions import understood
from icewright.model.actions.traits import TableSlot
from icewright.model.policy.resource_groups import OWN
from icewright.model.work.admission import Holding, Lane, Refusal, RefusalKind, Terms
from icewright.model.work.halts import halts_over
from icewright.model.work.lifecycle import LEASED_STATES
from icewright.model.work.optimizers import SeenSubmitter, Submitter
from icewright.model.work.tasks import ListedTask, Task, TaskState
from icewright.model.work.why import Wait
from icewright.policy.groups.definitions import Groups
from icewright.ports.admissions import AHEAD_MAX
from icewright.ports.store import OptimizerRecord, TableStore, TaskFilter, TaskStore
from icewright.work.groups.admission import Admission
from icewright.work.optimizers.backlog import SEEN_MS, submitters_of, understood_in

_HOLDERS_SHOWN: Final = 5
HOLDERS_LOOKED_AT: Final = 200
LINE: Final = "line"
"""The code of others of its lane that go first."""
TABLE_BUSY: Final = "table-busy"
"""The code of another task of its table that is at work, beside which it may not run."""
TABLE_RESERVED: Final = "table-reserved"
"""The code of another task of its table that waits for longer, and goes first since it needs the table alone."""
NOT_UNDERSTOOD: Final = "not-understood"
"""The code of optimizers that are there, of which none understands its action."""
TO_BE_SUBMITTED: Final = "to-be-submitted"
"""The code of an application that a submitter has yet to start for it."""
_OF_SUMS: Final = frozenset({RefusalKind.CAP, RefusalKind.TENANT_CAP, RefusalKind.SHARE})


class QueueWaits:
    """Answers for one task. Changes nothing."""

    def __init__(self, tasks: TaskStore, tables: TableStore, groups: Groups) -> None:
        self._tasks, self._tables, self._groups = tasks, tables, groups

    def of(self, task: Task | ListedTask) -> tuple[Wait, ...]:
        """Everything that keeps a task from being started now; nothing of one that is not queued.

        That others of its lane go first is there alone where nothing else keeps it, and so is that an application has
        to be started for it, where no optimizer stays that could take it.
        """
        if task.state is not TaskState.QUEUED:
            return ()
        now = self._tasks.now()
        found = [*self._halted(task), *_back_off(task, now), *self._busy(task), *self._of_its_group(task, now)]
        return tuple(found or (*self._in_line(task), *self._to_be_submitted(task, now)))

    def _halted(self, task: Task | ListedTask) -> Iterator[Wait]:
        for halt in halts_over(self._tasks.halts.present(), task.resource_group, task.table_id):
            yield Wait(halt.reason())

    def _busy(self, task: Task | ListedTask) -> Iterator[Wait]:
        """The tasks of its table for which it may not start: more than one where it wants both slots."""
        for one in self._tasks.blockers(task.task_id):
            other, figures = f"task {one.task_id} ({one.kind}) of the same table", {"task_id": one.task_id}
            if not one.is_active:
                text = f"{other} waits for longer and runs alone: it starts first"
                yield Wait(Reason(TABLE_RESERVED, text, {**figures}))
                continue
            alone = one.kind if one.slot is TableSlot.TABLE else task.kind.value
            why = "one at a time" if one.slot is one.wanted else f"{alone} runs alone with its table"
            yield Wait(Reason(TABLE_BUSY, f"{other} is at work: {why}", {**figures}))

    def _of_its_group(self, task: Task | ListedTask, now: Instant) -> Iterator[Wait]:
        """What whoever could take it is told, if all of them are told to wait."""
        if task.resource_group in OWN:
            return
        found = [
            (one.hello.optimizer_id, self._groups.terms_of(one.hello, lambda: now))
            for one in asking(self._tables, task, now)
        ]
        found += [
            (one.submitter.submitting.submitter_id, terms_of_submitter(self._groups, one.submitter, now))
            for one in submitting(self._tables, task, now)
        ]
        if not found:
            yield self._without_optimizer(task, now)
        known = understood_in(self._tables, task.resource_group, lambda: now)
        facts = self._tasks.facts(task.resource_group, known)
        refusals: list[Refusal] = []
        for who, terms in found:
            refusal = Admission(terms, who, facts).obstacle(task.lane)
            if refusal is None:
                return
            refusals.append(refusal)
        # A cap tells more than that some optimizer takes no tasks of its queue.
        refusals.sort(key=lambda refusal: refusal.kind is RefusalKind.QUEUE)
        for refusal in refusals[:1] or self._without_anybody(task, now):
            yield self._wait(refusal, task)

    def _without_optimizer(self, task: Task | ListedTask, now: Instant) -> Wait:
        """Nobody was heard of who could take it, or nobody who understands its action."""
        there = {
            one.hello.optimizer_id: one.hello.actions
            for one in self._tables.optimizers()
            if one.seen_at > now - SEEN_MS and _reaches(one, task)
        }
        there |= {
            one.submitter.submitting.submitter_id: one.submitter.actions
            for one in submitters_of(self._tables, task.resource_group, now)
            if task.table_id.catalog in one.submitter.catalogs
        }
        return _not_understood(task, there) if there else _nobody(task)

    def _without_anybody(self, task: Task | ListedTask, now: Instant) -> Iterator[Refusal]:
        refused = self._groups.refused(task.resource_group, lambda: now)
        if refused is not None:
            yield refused

    def _wait(self, refusal: Refusal, task: Task | ListedTask) -> Wait:
        if refusal.kind not in _OF_SUMS:
            return Wait(refusal.reason, refusal.until)
        holders = self._holders(task.resource_group, refusal.kind, task.lane)
        shown = ", ".join(holders[:_HOLDERS_SHOWN]) + (", ..." if len(holders) > _HOLDERS_SHOWN else "")
        text = f"{refusal.reason.text}; held by {shown}" if holders else refusal.reason.text
        return Wait(Reason(refusal.reason.code, text, {**refusal.reason.figures, "held_by": shown}), refusal.until)

    def _holders(self, resource_group: str, kind: RefusalKind, lane: Lane) -> Sequence[str]:
        running = self._tasks.listed(TaskFilter(LEASED_STATES), limit=HOLDERS_LOOKED_AT)
        return [
            one.task_id
            for one in running
            if one.resource_group == resource_group
            and (kind is not RefusalKind.TENANT_CAP or one.lane.tenant == lane.tenant)
        ]

    def _in_line(self, task: Task | ListedTask) -> Iterator[Wait]:
        ahead = self._tasks.line(task.task_id).ahead
        if ahead:
            more = " or more" if ahead >= AHEAD_MAX else ""
            text = f"{wording.count(ahead, 'task')}{more} of the same owner, as urgent as it, rank before it"
            yield Wait(Reason(LINE, text, {"place": ahead + 1, "urgency": task.lane.urgency.value}))

    def _to_be_submitted(self, task: Task | ListedTask, now: Instant) -> Iterator[Wait]:
        if task.resource_group in OWN or asking(self._tables, task, now):
            return
        for seen in submitting(self._tables, task, now)[:1]:
            one, asked_ms = seen.submitter.submitting, max(0, now - seen.asked_at)
            figures: dict[str, int | str] = {
                "submitter_id": one.submitter_id,
                "host": one.host,
                "asked_at": seen.asked_at,
                "applications": one.applications,
                "applications_max": one.applications_max,
            }
            when = "" if one.applications < one.applications_max else " when one of these has ended"
            text = (
                f"submitter {one.submitter_id} on {wording.safe(one.host)}, which asked what waits "
                f"{wording.about(asked_ms)} ago and has {one.applications:,} of at most {one.applications_max:,} "
                f"applications, starts one for it{when}"
            )
            yield Wait(Reason(TO_BE_SUBMITTED, text, figures))


def asking(tables: TableStore, task: Task | ListedTask, now: Instant) -> Sequence[OptimizerRecord]:
    """The optimizers that could take a task, and were heard of lately.

    Where a submitter starts an application for each task, only those that stay: the others have theirs, or have ended.
    """
    is_submitted = bool(submitting(tables, task, now))
    return [
        one
        for one in tables.optimizers()
        if one.seen_at > now - SEEN_MS and _could_take(one, task) and (one.hello.is_resident or not is_submitted)
    ]


def submitting(tables: TableStore, task: Task | ListedTask, now: Instant) -> Sequence[SeenSubmitter]:
    """The submitters that would start an application for a task, and asked lately, the latest first."""
    found = submitters_of(tables, task.resource_group, now)
    return [
        one
        for one in found
        if task.table_id.catalog in one.submitter.catalogs and task.kind in understood(one.submitter.actions)
    ]


def terms_of_submitter(groups: Groups, submitter: Submitter, now: Instant) -> Terms:
    """On which terms an application would claim that a submitter starts."""
    holding, queues = Holding(submitter.cores, submitter.memory_bytes, is_resident=False), frozenset(submitter.queues)
    return groups.terms(submitter.resource_group, holding, queues, lambda: now)


def _could_take(one: OptimizerRecord, task: Task | ListedTask) -> bool:
    return _reaches(one, task) and task.kind in understood(one.hello.actions)


def _reaches(one: OptimizerRecord, task: Task | ListedTask) -> bool:
    return one.hello.resource_group == task.resource_group and task.table_id.catalog in one.hello.catalogs


def _not_understood(task: Task | ListedTask, there: Mapping[str, Mapping[str, int]]) -> Wait:
    kind, version = task.kind.value, task.kind.traits.protocol_version
    knows = sorted(
        f"{name} understands version {actions[kind]}" if kind in actions else f"{name} does not know it"
        for name, actions in there.items()
    )
    shown = "; ".join(knows[:_HOLDERS_SHOWN]) + ("; ..." if len(knows) > _HOLDERS_SHOWN else "")
    text = (
        f"no optimizer of group {task.resource_group} understands version {version} of {kind}: {shown}. Run one of the "
        "server's release"
    )
    figures: dict[str, int | str] = {"resource_group": task.resource_group, "kind": kind, "version": version}
    return Wait(Reason(NOT_UNDERSTOOD, text, figures))


def _nobody(task: Task | ListedTask) -> Wait:
    text = (
        f"no optimizer of group {task.resource_group} that reaches catalog {task.table_id.catalog} was heard of in the "
        f"last {wording.duration(SEEN_MS)}, nor a submitter that would start one; `icewright optimizer` does"
    )
    return Wait(Reason("no-optimizer", text, {"resource_group": task.resource_group}))


def _back_off(task: Task | ListedTask, now: Instant) -> Iterator[Wait]:
    if task.not_before_at > now:
        because = "" if task.outcome is None else f": {task.outcome.reason.text}"
        text = f"try {task.attempt + 1} of {task.attempts_max} starts after a pause{because}"
        yield Wait(Reason("back-off", text, {"attempt": task.attempt}), task.not_before_at)
