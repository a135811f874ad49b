"""The circuit breaker of a table: work that keeps failing or losing against its writers is parked for a while.

One for each table and kind of action; it counts by cause. A commit that did not keep the rows is parked at once:
whatever went wrong must not be repeated before a person looked. Behind its time the breaker is half open: the next task
has one try, and closes it or opens it again. A person closes it at any time by unparking the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from icewright.core.errors import Cause
from icewright.core.times import Instant
from icewright.model.actions.actions import ActionKind
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import Policy
from icewright.model.policy.setting_values import DurationWithin, Setting, whole_number
from icewright.model.work.tasks import TaskHead, TaskState

FAILURES_MAX: Final = 5
"""So many tasks without a success in a row open the breaker, by default."""
THRESHOLD_MAX: Final = 10
"""The most that anybody may set."""
TASKS_LOOKED_AT: Final = 2 * THRESHOLD_MAX
"""So many of a table's last tasks of one kind tell what the breaker thinks: some of them do not count."""
PARKED_MS: Final = 24 * 60 * 60 * 1000

PARKED: Final = "parked"
"""The code of a reason that says: nothing is queued for a table for a while."""

VERIFICATION_FAILED = "verification-failed"
"""The code of an outcome that says: committed, and the table is not what it was to become."""

UNVERIFIED = "unverified"
"""The code of an outcome that says: committed, and nobody can compare it with the table before any more."""

TRIES_CARRIED_OUT = "tries_carried_out"
"""The figure of an outcome that says how many tries did any work, where that is not the number of claims."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When the breaker of a table opens, and for how long.

    ``conflicts`` and ``failures`` (of one cause) are counted since the last success; and since a person unparked the
    table, at ``unparked_at``.
    """

    conflicts: int = FAILURES_MAX
    failures: int = FAILURES_MAX
    parked_ms: int = PARKED_MS
    unparked_at: Instant | None = None

    @classmethod
    def of(cls, policy: Policy, unparked_at: Instant | None) -> Thresholds:
        """As the owner wants them."""
        return cls(policy.breaker_conflicts, policy.breaker_failures, policy.parked_ms, unparked_at)


DEFAULT_THRESHOLDS: Final = Thresholds()

_WASTED: Final = frozenset({TaskState.FAILED, TaskState.SUPERSEDED})


def alarmed(latest: Sequence[TaskHead], now: Instant, thresholds: Thresholds = DEFAULT_THRESHOLDS) -> Reason | None:
    """Why nothing at all is queued for a table: its last task of some kind harmed it. None when none did.

    ``latest`` are its last tasks of all kinds, newest first. What tasks of another kind did since makes nothing good.
    """
    counted = _counted(latest, thresholds)
    newest = [next((task for task in counted if task.kind is kind), None) for kind in ActionKind]
    found = (_alarm(task, now, thresholds) for task in newest if task is not None)
    return next((reason for reason in found if reason is not None), None)


def parked(latest: Sequence[TaskHead], now: Instant, thresholds: Thresholds = DEFAULT_THRESHOLDS) -> Reason | None:
    """Why nothing more of one kind of action is queued for a table, None when the breaker is closed, or half open.

    ``latest`` are the table's last tasks of that kind, newest first, at least :data:`TASKS_LOOKED_AT` of them if there
    are so many. Tasks that ended before anybody worked on them cost nothing, and of those that cannot be verified
    nobody knows whether they came to nothing: neither kind counts.
    """
    ended = _counted(latest, thresholds)
    if not ended or now >= ended[0].updated_at + thresholds.parked_ms:
        return None
    return _alarm(ended[0], now, thresholds) or _opened(ended, thresholds)


def is_half_open(latest: Sequence[TaskHead], now: Instant, thresholds: Thresholds = DEFAULT_THRESHOLDS) -> bool:
    """Whether the time of an open breaker is over, so that the next task has one try alone."""
    ended = _counted(latest, thresholds)
    if not ended or now < ended[0].updated_at + thresholds.parked_ms:
        return False
    return _alarm(ended[0], ended[0].updated_at, thresholds) is not None or _opened(ended, thresholds) is not None


def failures_in_a_row(latest: Sequence[TaskHead], thresholds: Thresholds = DEFAULT_THRESHOLDS) -> int:
    """The most tasks of one kind that came to nothing since the last success of that kind, as :func:`parked` counts."""
    ended = _counted(latest, thresholds)
    of_kinds = ([task for task in ended if task.kind is kind] for kind in ActionKind)
    return max(sum(1 for _ in takewhile(lambda task: task.state in _WASTED, of_kind)) for of_kind in of_kinds)


def _opened(ended: Sequence[TaskHead], thresholds: Thresholds) -> Reason | None:
    """Why tasks since the last success open the breaker: too many for one cause, or too many in all."""
    wasted = list(takewhile(lambda task: task.state in _WASTED, ended))
    causes = Counter(_cause(task) for task in wasted)
    for cause, tasks in causes.items():
        most = thresholds.conflicts if cause is Cause.CONFLICT else thresholds.failures
        if tasks >= most:
            return _reason(wasted, tasks, cause.value, thresholds)
    if len(wasted) >= max(thresholds.conflicts, thresholds.failures):
        return _reason(wasted, len(wasted), "", thresholds)
    return None


def _reason(wasted: Sequence[TaskHead], tasks: int, cause: str, thresholds: Thresholds) -> Reason:
    newest, until = wasted[0], wasted[0].updated_at + thresholds.parked_ms
    last = None if newest.outcome is None else newest.outcome.reason
    said = "" if last is None else f"; the last: {last.text}"
    how = f" ({cause})" if cause else ""
    text = f"the last {tasks} tasks of the table failed{how}, so it is parked for {_span(thresholds)}"
    figures: dict[str, int | float | str] = {"until": until, "tasks": tasks, "cause": cause, "kind": newest.kind.value}
    return Reason(PARKED, f"{text} (`icewright table unpark` ends that){said}", figures)


def _cause(task: TaskHead) -> Cause:
    """Why a task came to nothing; those of before causes were kept tell it by how they ended."""
    known = None if task.outcome is None else task.outcome.cause
    if known in (None, Cause.UNKNOWN) and task.state is TaskState.SUPERSEDED:
        return Cause.CONFLICT
    return known or Cause.DEFECT


def _alarm(task: TaskHead, now: Instant, thresholds: Thresholds) -> Reason | None:
    """What is said of a task that did not leave the table as it should have, for a while."""
    last, until = None if task.outcome is None else task.outcome.reason, task.updated_at + thresholds.parked_ms
    if task.state is not TaskState.FAILED or last is None or last.code != VERIFICATION_FAILED or now >= until:
        return None
    kept = "the rows" if task.kind is ActionKind.REWRITE_DATA_FILES else "the table as it should have"
    span = _span(thresholds)
    text = f"task {task.task_id} did not keep {kept}, so the table is left alone for {span}: {last.text}"
    text += " (look at it first; `icewright table unpark` ends that)"
    return Reason(PARKED, text, {"until": until, "tasks": 1, "cause": last.code, "kind": task.kind.value})


def _counted(latest: Sequence[TaskHead], thresholds: Thresholds) -> Sequence[TaskHead]:
    """Those that say something, and ended since a person closed the breaker."""
    since = thresholds.unparked_at
    return [task for task in latest if _counts(task) and (since is None or task.updated_at > since)]


def _span(thresholds: Thresholds) -> str:
    return "a day" if thresholds.parked_ms == PARKED_MS else f"{thresholds.parked_ms // 60_000:,} minutes"


def _counts(task: TaskHead) -> bool:
    said = None if task.outcome is None else task.outcome.reason
    if said is None or task.state not in _WASTED:
        return task.attempt > 0
    return said.code != UNVERIFIED and int(said.figures.get(TRIES_CARRIED_OUT, task.attempt)) > 0


_AT_LEAST_ONE: Final = f"a whole number, 1 to {THRESHOLD_MAX}"

BREAKER_SETTINGS: Final = (
    Setting(
        "icewright.breaker.conflicts",
        "breaker_conflicts",
        whole_number(1, THRESHOLD_MAX),
        5,
        "So many tasks of one kind that met other commits, none in between that succeeded, park that kind of work on "
        "the table. [More](operations.md#parked).",
        _AT_LEAST_ONE,
    ),
    Setting(
        "icewright.breaker.failures",
        "breaker_failures",
        whole_number(1, THRESHOLD_MAX),
        5,
        "The same of tasks that failed from one [cause](operations.md#what-is-tried-again). As many as the greater of "
        "both from several causes do so as well.",
        _AT_LEAST_ONE,
    ),
    Setting(
        "icewright.breaker.park-for",
        "parked_ms",
        DurationWithin(60_000, 30 * 86_400_000),
        86_400_000,
        "For how long. The next task then has one try, which closes the breaker or opens it again.",
        "an ISO-8601 duration, PT1M to P30D",
    ),
)
