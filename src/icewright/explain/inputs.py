"""What the answer to "why does nothing happen to my table?" is put together from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.actions.actions import ActionKind
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.plans.plans import Plan
from icewright.model.policy.policy import Mode, Policy
from icewright.model.work.tasks import TERMINAL_STATES, Attempt, ListedTask
from icewright.model.work.why import Considered, StartEstimate, Wait


@dataclass(frozen=True, slots=True)
class WaitingForAPerson:
    """A plan that a person has to approve, since when and why (``reason``), and what is ``planned``."""

    plan_id: str
    planned: Reason
    reason: Reason
    since: Instant


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a table at ``now``, by the store's clock.

    ``policy`` is None while the catalog does not answer, and ``away`` says why. ``problem`` is what the last look came
    to if it went wrong, ``alarm`` why nothing at all is queued, ``parked`` why nothing of one kind is. ``tasks`` are
    the latest ones of all kinds, the newest first; ``waits`` is what those that are queued wait for, by their ids, and
    ``starts`` about when they start.
    ``last_attempts`` are the latest tries at some of the tasks. ``due_at`` is when a kind is looked into again by a
    clock of its own, as far as that is known, and the reason that says so. ``could_start`` is how many tasks of a
    resource group could start now.
    """

    table_id: TableId
    name: TableName
    now: Instant
    snapshot_id: int | None
    looked_at: Instant
    changed_at: Instant
    next_look_at: Instant
    policy: Policy | None
    away: Reason | None
    problem: Reason | None
    obstacle: Reason | None
    alarm: Reason | None
    plan: Plan | None
    considered: Mapping[ActionKind, Considered] = field(default_factory=dict)
    tasks: tuple[ListedTask, ...] = ()
    parked: Mapping[ActionKind, Reason] = field(default_factory=dict)
    waiting: Mapping[ActionKind, WaitingForAPerson] = field(default_factory=dict)
    refused: Mapping[ActionKind, Considered] = field(default_factory=dict)
    """Plans that a person refused, of kinds that are not planned again for now."""
    waits: Mapping[str, tuple[Wait, ...]] = field(default_factory=dict)
    starts: Mapping[str, StartEstimate | None] = field(default_factory=dict)
    last_attempts: Mapping[str, Attempt] = field(default_factory=dict)
    due_at: Mapping[ActionKind, tuple[Instant | None, Reason]] = field(default_factory=dict)
    could_start: Mapping[str, int] = field(default_factory=dict)
    never: frozenset[ActionKind] = frozenset()
    """What this server does not do without a request, whatever the policy says."""
    interval_ms: int = 0
    """How often upkeep is looked into at most."""

    @property
    def mode(self) -> Mode | None:
        """How far we may go by ourselves, as far as that is known: of the plan while the catalog does not answer."""
        if self.policy is not None:
            return self.policy.mode
        return None if self.plan is None else self.plan.mode

    def live(self, kind: ActionKind) -> ListedTask | None:
        """The task of that kind that has not ended; there is one at most."""
        return next((task for task in self.tasks if task.kind is kind and task.state not in TERMINAL_STATES), None)


def last_tried(tasks: Sequence[ListedTask], kind: ActionKind) -> ListedTask | None:
    """The newest task of that kind that an optimizer worked at."""
    return next((task for task in tasks if task.kind is kind and task.attempt > 0), None)
