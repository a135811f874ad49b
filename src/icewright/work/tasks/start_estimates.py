"""About when a queued task starts: known instants, its place in the queue, and what tasks of its group took lately."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from icewright.core import wording
from icewright.core.reasons import Reason
from icewright.model.policy.resource_groups import OWN
from icewright.model.work.admission import Line, RefusalKind, Terms
from icewright.model.work.lifecycle import LEASED_STATES
from icewright.model.work.tasks import ListedTask, Task, TaskState
from icewright.model.work.why import StartEstimate, Wait
from icewright.policy.groups.definitions import Groups
from icewright.ports.store import TableStore, TaskFilter, TaskStore
from icewright.work.groups.queue_waits import (
    HOLDERS_LOOKED_AT,
    LINE,
    TABLE_BUSY,
    TO_BE_SUBMITTED,
    asking,
    submitting,
    terms_of_submitter,
)
from icewright.work.groups.rank import is_aged
from icewright.work.tasks.expected_start import MEASURED_MIN, NO_TIME, Spans, before, left, spans, turn_in

_OF_SUMS: Final = frozenset({RefusalKind.CAP.value, RefusalKind.TENANT_CAP.value, RefusalKind.SHARE.value})
_UNTIL_ONE_ENDS: Final = frozenset({*_OF_SUMS, LINE, TABLE_BUSY, TO_BE_SUBMITTED})
"""What ends with tasks that run, so that it can be told by how long tasks take."""


class StartEstimates:
    """Answers for one task. Changes nothing."""

    def __init__(self, tasks: TaskStore, tables: TableStore, groups: Groups) -> None:
        self._tasks, self._tables, self._groups = tasks, tables, groups

    def of(self, task: Task | ListedTask, waits: Sequence[Wait]) -> StartEstimate | None:
        """When a queued task starts that waits for these; None of one that is not queued."""
        if task.state is not TaskState.QUEUED:
            return None
        endless = next((wait for wait in waits if not _ends(wait)), None)
        if endless is not None:
            return StartEstimate(None, None, None, endless.reason)
        return _Estimate(self._tasks, self._tables, self._groups, task, waits).made()


class _Estimate:
    """One estimate, of one moment."""

    def __init__(
        self, tasks: TaskStore, tables: TableStore, groups: Groups, task: Task | ListedTask, waits: Sequence[Wait]
    ) -> None:
        self._tasks, self._tables, self._groups, self._task, self._waits = tasks, tables, groups, task, waits
        self._now = tasks.now()
        self._codes = frozenset(wait.reason.code for wait in waits)
        line = tasks.line(task.task_id)
        if RefusalKind.TENANT_CAP in self._codes:
            own = tuple(other for other in line.others if other.lane.tenant == task.lane.tenant)
            line = Line(line.ahead, own, line.whole)
        self._before = before(task.lane, line, is_aged=is_aged(task, self._now))
        self._is_whole = line.whole
        self._took = tasks.took(task.resource_group)

    def made(self) -> StartEstimate:
        opens_at = max((wait.until or 0 for wait in self._waits if _is_of_group(wait)), default=0)
        known_at = max((wait.until or 0 for wait in self._waits), default=0)
        at_work = () if opens_at > self._now else self._at_work()
        slots = self._slots(len(at_work))
        turn, busy = self._spans(at_work, slots)
        if turn is None or busy is None:
            return StartEstimate(None, max(known_at, self._now), None, self._not_measured())
        begins = max(opens_at, self._now)
        soonest, about, latest = (
            max(begins + of_turn, self._now + of_busy, known_at)
            for of_turn, of_busy in (
                (turn.soonest_ms, busy.soonest_ms),
                (turn.about_ms, busy.about_ms),
                (turn.latest_ms, busy.latest_ms),
            )
        )
        reason = self._reason(at_work, slots, busy, is_measured=turn != NO_TIME)
        if not self._is_whole:
            return StartEstimate(None, soonest, None, reason)
        return StartEstimate(about, soonest, latest, reason)

    def _spans(self, at_work: Sequence[int], slots: int) -> tuple[Spans | None, Spans | None]:
        """Until its turn comes, and until its table is free; None where that is not known."""
        took = [one.took_ms for one in self._took]
        turn: Spans | None = None
        if self._before + len(at_work) < slots or len(took) >= MEASURED_MIN:
            turn = turn_in(self._before, at_work, slots, took)
        if TABLE_BUSY not in self._codes:
            return turn, NO_TIME
        return turn, self._until_free()

    def _until_free(self) -> Spans | None:
        """Until all tasks have ended that keep it from its table; None where that is not known of one of them."""
        found = []
        for busy_id in [wait.reason.figures["task_id"] for wait in self._waits if wait.reason.code == TABLE_BUSY]:
            busy = self._tasks.head(str(busy_id))
            took = [one.took_ms for one in self._tasks.took(busy.resource_group)]
            if len(took) < MEASURED_MIN:
                return None
            found.append(left(took, self._since(busy)))
        return max(found, key=lambda spans: spans.about_ms)

    def _since(self, task: ListedTask) -> int:
        return max(0, self._now - task.updated_at)

    def _at_work(self) -> Sequence[int]:
        """How long those are at work, in ms, that the task shares slots with."""
        running = self._tasks.listed(TaskFilter(LEASED_STATES), limit=HOLDERS_LOOKED_AT)
        of_group = [one for one in running if one.resource_group == self._task.resource_group]
        own = [one for one in of_group if one.lane.queue is self._task.lane.queue]
        if RefusalKind.TENANT_CAP in self._codes:
            own = [one for one in of_group if one.lane.tenant == self._task.lane.tenant]
        return [self._since(one) for one in own or (of_group if self._codes & _OF_SUMS else ())]

    def _slots(self, at_work: int) -> int:
        """How many tasks run at once: as many as do where a cap is reached, else as many as optimizers take."""
        if self._task.resource_group in OWN:
            return 1
        if self._codes & _OF_SUMS:
            return max(1, at_work)
        found = asking(self._tables, self._task, self._now)
        submitters = [one.submitter for one in submitting(self._tables, self._task, self._now)]
        slots = sum(one.hello.slots for one in found) + sum(one.submitting.applications_max for one in submitters)
        terms = [self._groups.terms_of(one.hello, lambda: self._now) for one in found[:1]]
        terms += [terms_of_submitter(self._groups, one, self._now) for one in submitters[:1]]
        for one in terms[:1]:
            slots = min([slots, *_fitting(one)])
        return max(1, slots, at_work)

    def _reason(self, at_work: Sequence[int], slots: int, busy: Spans, *, is_measured: bool) -> Reason:
        ahead = wording.count(self._before, "task") + ("" if self._is_whole else " or more")
        ranks = "ranks" if self._before == 1 and self._is_whole else "rank"
        text = f"{ahead} {ranks} before it" if self._before else "nothing ranks before it"
        figures: dict[str, int | str] = {"before": self._before, "at_work": len(at_work), "slots": slots}
        text += f", and {len(at_work):,} of {slots:,} that may run at once do"
        if is_measured:
            text += self._measured(figures)
        if TO_BE_SUBMITTED in self._codes:
            text += "; how long it takes until its application is up was not measured, and is not in it"
        if busy != NO_TIME:
            figures["busy_ms"] = busy.about_ms
            text += f"; the task of its table that is at work may take {wording.about(busy.about_ms)} more"
        return Reason("estimated", text, figures)

    def _measured(self, figures: dict[str, int | str]) -> str:
        """What was measured, in words; put into the figures as well."""
        took, since = spans([one.took_ms for one in self._took]), min(one.ended_at for one in self._took)
        figures |= {
            "measured": len(self._took),
            "since": since,
            "took_ms": took.about_ms,
            "took_low_ms": took.soonest_ms,
            "took_high_ms": took.latest_ms,
        }
        which = f"the last {len(self._took):,} of group {self._task.resource_group}, since {wording.instant(since)},"
        between = f"{wording.about(took.soonest_ms)} to {wording.about(took.latest_ms)}"
        return f"; {which} took {wording.about(took.about_ms)} in the middle, and half of them {between}"

    def _not_measured(self) -> Reason:
        group, found = self._task.resource_group, len(self._took)
        text = (
            f"{wording.count(self._before, 'task')} before it, and how long tasks of group {group} take is not known "
            f"yet: {wording.count(found, 'one', 'ones')} ended lately, and {MEASURED_MIN} are needed"
        )
        return Reason("not-measured", text, {"before": self._before, "measured": found})


def _ends(wait: Wait) -> bool:
    """Whether it is known, or can be told by what tasks take, when a wait is over."""
    if wait.until is not None:
        return True
    if wait.reason.code in _OF_SUMS:
        return "needs" in wait.reason.figures or wait.reason.figures.get("of") in ("applications", "optimizers")
    return wait.reason.code in _UNTIL_ONE_ENDS


def _is_of_group(wait: Wait) -> bool:
    """Whether nothing at all of the group starts before that is over, so that the queue does not get shorter either."""
    return wait.reason.code == RefusalKind.WINDOW.value and "group" in wait.reason.figures


def _fitting(terms: Terms) -> Sequence[int]:
    """How many tasks fit each cap of a group, one alone always."""
    group, holding = terms.group, terms.holding
    if group is None:
        return ()
    applications = (group.applications_max, 0 if holding.is_resident else 1)  # each for one task
    caps = (
        (group.tasks_max, 1),
        applications,
        (group.cores, holding.cores),
        (group.memory_bytes, holding.memory_bytes),
    )
    return [max(1, cap // needs) for cap, needs in caps if cap is not None and needs]
