"""Why a table is as it is with us: of each kind of action what was considered, what it waits for, and what is next."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.actions.actions import ActionKind
from icewright.model.policy.policy import Mode
from icewright.model.work.tasks import AttemptState


@dataclass(frozen=True, slots=True)
class Considered:
    """What was decided of one kind of action when it was last looked into, by which rule and with which figures."""

    kind: ActionKind
    reason: Reason
    at: Instant


class Stance(StrEnum):
    """How it stands with one kind of action of a table."""

    UNDER_WAY = "under-way"
    """A task is at work, or its commit is looked for or verified."""
    QUEUED = "queued"
    """A task waits for its turn."""
    FOR_A_PERSON = "for-a-person"
    """There is a plan, and a person has to approve it."""
    KEPT_BACK = "kept-back"
    """Something keeps it from being queued."""
    NOTHING_TO_DO = "nothing-to-do"
    """As of when it was looked into last; what was considered says why."""
    OFF = "off"
    """The owner does not let it happen by itself."""
    NOT_KNOWN = "not-known"
    """Nobody has looked into it yet."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Something that work waits for; ``until`` is None where nobody knows."""

    reason: Reason
    until: Instant | None = None


class Next(StrEnum):
    """What happens next of one kind of action."""

    GOES_ON = "goes-on"
    STARTS = "starts"
    IS_DECIDED = "is-decided"
    """Whether there is something to be done is found out anew."""


@dataclass(frozen=True, slots=True)
class StartEstimate:
    """About when a waiting task starts, and by which figures that is told: an estimate, and no promise.

    ``soonest_at`` and ``latest_at`` are what it comes to if all tasks before it were as quick as the quicker quarter of
    those that were measured, and as slow as the slower quarter. ``at`` and ``latest_at`` are None where they are not
    known; ``soonest_at`` may be known all the same. ``reason`` says what is missing then.
    """

    at: Instant | None
    soonest_at: Instant | None
    latest_at: Instant | None
    reason: Reason


@dataclass(frozen=True, slots=True)
class Expected:
    """What happens next, at the earliest ``at``, and what that is told by; ``at`` is None where it is not known.

    ``start`` is there for a task that waits: about when its turn comes.
    """

    what: Next
    at: Instant | None
    basis: Reason
    start: StartEstimate | None = None


@dataclass(frozen=True, slots=True)
class LastTry:
    """What became of the last try at a kind of action: of the ``attempt`` of a task, which ended ``at``, or began."""

    task_id: str
    attempt: int
    state: AttemptState
    at: Instant
    reason: Reason | None


@dataclass(frozen=True, slots=True)
class WhyKind:
    """How it stands with one kind of action, and why.

    ``plan_id`` is of the plan that waits or is being carried out, ``task_id`` of the task that has not ended.
    ``details`` are the rules and the verdicts behind what was considered. ``says`` is all of it but these, in
    sentences.
    """

    kind: ActionKind
    stance: Stance
    considered: Considered | None
    details: tuple[Reason, ...]
    waits: tuple[Wait, ...]
    plan_id: str | None
    task_id: str | None
    last: LastTry | None
    expected: Expected
    says: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Why:
    """The answer to "why does nothing happen to my table?", as of ``asked_at`` by the store's clock.

    ``mode`` and ``mode_origin`` are null while the catalog does not answer and nothing was planned yet. ``obstacle`` is
    why the whole table is left alone, ``answer`` all of it in one sentence, ``says`` what holds for every kind.
    """

    table: str
    catalog: str
    uuid: str
    asked_at: Instant
    snapshot_id: int | None
    looked_at: Instant
    changed_at: Instant
    next_look_at: Instant
    mode: Mode | None
    mode_origin: str | None
    obstacle: Reason | None
    answer: str
    says: tuple[str, ...]
    kinds: tuple[WhyKind, ...]
