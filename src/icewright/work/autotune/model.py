"""The words of autotuning: what is decided about optimizers and servers, from which evidence, and its effect."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from icewright.core.errors import InvalidMessage
from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.policy.resource_groups import Queue
from icewright.model.work.optimizers import TuneMode

DECISION: Final = "tune"
"""How ids of decisions begin."""
WHY_LENGTH_MAX: Final = 1_000

BACKLOG: Final = "backlog"
"""Tasks wait, and every optimizer of their queue is busy."""
TOO_FEW: Final = "too-few-optimizers"
"""There are fewer optimizers than the minimum of the group."""
TOO_MANY: Final = "too-many-optimizers"
"""There are more optimizers than the maximum of the group."""
IDLE: Final = "idle"
"""An optimizer has had nothing to do."""
OUT_OF_MEMORY: Final = "out-of-memory"
"""Attempts in a row ran out of memory."""
QUIET: Final = "quiet"
"""No attempt has run out of memory for long."""
BUSY_SERVER: Final = "busy-server"
"""A server has needed most of the CPU that it can use, for long."""
FULL_SERVER: Final = "full-server"
"""A server looks at more tables than one should."""
TOO_FEW_SERVERS: Final = "too-few-servers"
"""There are fewer servers than the minimum."""
TOO_MANY_SERVERS: Final = "too-many-servers"
"""There are more servers than the maximum."""
IDLE_SERVERS: Final = "idle-servers"
"""One server less would do for all tables."""


class About(StrEnum):
    """What a decision changes."""

    OPTIMIZERS = "optimizers"
    """How many there are."""
    MEMORY = "memory"
    """How much memory each has."""
    SERVERS = "servers"
    """How many servers there are."""


class Move(StrEnum):
    """What is decided."""

    START = "start-optimizer"
    END = "end-optimizer"
    MORE_MEMORY = "more-memory"
    LESS_MEMORY = "less-memory"
    ADD_SERVER = "add-server"
    REMOVE_SERVER = "remove-server"

    @property
    def about(self) -> About:
        """What it changes."""
        if self in (Move.ADD_SERVER, Move.REMOVE_SERVER):
            return About.SERVERS
        return About.OPTIMIZERS if self in (Move.START, Move.END) else About.MEMORY


class DecisionState(StrEnum):
    """What became of a decision."""

    OPEN = "open"
    """It stands: it is advice, or it is carried out next."""
    BEGUN = "begun"
    """It is being carried out."""
    DONE = "done"
    """It has taken effect."""
    FAILED = "failed"
    """It could not be carried out."""
    LAPSED = "lapsed"
    """It was not carried out, and its reason has gone."""


STANDING: Final = frozenset({DecisionState.OPEN, DecisionState.BEGUN})
"""States of decisions that have not ended: at most one decision of a subject is in them."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is tuned: the optimizers of one queue of a resource group, by number or memory; or the number of servers.

    Servers are of no ``group``, which is empty then, and of no ``queue``.
    """

    group: str
    queue: Queue | None
    about: About

    def __str__(self) -> str:
        if self.queue is None:
            return "number of servers"
        return f"{self.about} of the {self.queue} queue of group {self.group}"


@dataclass(frozen=True, slots=True)
class Hold:
    """A person keeps a decision, and all later ones of its subject, from being carried out."""

    by: str
    at: Instant
    why: str

    def __post_init__(self) -> None:
        """Refuse a reason that is too long."""
        if len(self.why) > WHY_LENGTH_MAX:
            raise InvalidMessage(f"a reason has at most {WHY_LENGTH_MAX:,} characters, this one has {len(self.why):,}")


@dataclass(frozen=True, slots=True)
class NewDecision:
    """What is decided, and why.

    ``before`` and ``after`` are numbers of optimizers or servers, or the bytes of memory of each optimizer.
    ``optimizer_id`` is the one that is to end, and later the one that was started. ``group`` and ``queue`` as in
    :class:`Subject`.
    """

    group: str
    queue: Queue | None
    move: Move
    before: int
    after: int
    reason: Reason
    optimizer_id: str | None = None

    @property
    def subject(self) -> Subject:
        """What it changes."""
        return Subject(self.group, self.queue, self.move.about)


@dataclass(frozen=True, slots=True)
class TuneDecision:
    """A decision as it is kept.

    ``mode`` is the one in which it was made, ``by_hand`` how a person does the same. ``effect`` says what became of it,
    None while it stands.
    """

    decision_id: str
    new: NewDecision
    mode: TuneMode
    by_hand: str
    made_at: Instant
    state: DecisionState = DecisionState.OPEN
    ended_at: Instant | None = None
    effect: Reason | None = None
    hold: Hold | None = None

    @property
    def subject(self) -> Subject:
        """What it changes."""
        return self.new.subject
