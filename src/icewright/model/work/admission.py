"""What is said where tasks wait to be started: in which lane one is, what it takes when it runs, why not now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.actions.actions import EVERY_KIND, ActionKind
from icewright.model.actions.traits import TableSlot
from icewright.model.policy.resource_groups import EVERY_QUEUE, Queue, ResourceGroup


class Urgency(StrEnum):
    """How soon a task is to be started, before all questions of fairness and age."""

    EXPEDITED = "expedited"
    """A person wants it before all others of its resource group."""
    REAL_TIME = "real-time"
    """Its table is committed to all the time, or is said to be read by people who wait."""
    NORMAL = "normal"


@dataclass(frozen=True, slots=True)
class Lane:
    """Tasks among which priority and age alone decide. ``tenant`` is the owner of their tables, empty for nobody."""

    queue: Queue = Queue.NORMAL
    urgency: Urgency = Urgency.NORMAL
    tenant: str = ""


NO_LANE: Final = Lane()


@dataclass(frozen=True, slots=True)
class Holding:
    """What a task that runs takes of its group; None where the optimizer does not say."""

    cores: int | None = 0
    memory_bytes: int | None = 0
    is_resident: bool = True
    """Whether the application stays, or is there for this task alone."""


NOTHING: Final = Holding()


@dataclass(frozen=True, slots=True)
class Use:
    """What running tasks of one application, tenant and queue hold together."""

    optimizer_id: str
    tenant: str
    queue: Queue
    tasks: int
    cores: int
    memory_bytes: int
    is_resident: bool = True


@dataclass(frozen=True, slots=True)
class Facts:
    """What is true of a resource group, all at the same moment.

    ``waiting`` are the lanes in which tasks wait; of the large queue those in which an optimizer of the group
    understands one of them. ``last`` has for each tenant a number that grows with each task that is started, that of
    the last one of theirs.
    """

    uses: tuple[Use, ...] = ()
    waiting: frozenset[Lane] = frozenset()
    last: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InLane:
    """How many tasks wait in a lane, and how many of them are aged: as urgent as those of a real-time table."""

    lane: Lane
    waiting: int
    aged: int


@dataclass(frozen=True, slots=True)
class Line:
    """What waits beside one task: ``ahead`` in its own lane before it, and ``others``, the other lanes of its queue.

    Not all was counted where it is not ``whole``: then there are more.
    """

    ahead: int
    others: tuple[InLane, ...] = ()
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Took:
    """How long the last attempt at a task took, of one that has ended at ``ended_at``."""

    ended_at: Instant
    took_ms: int


@dataclass(frozen=True, slots=True)
class Blocker:
    """Another task of its table for which a waiting task may not start.

    It holds ``slot``, where the waiting one wants ``wanted``; or, where it is not ``is_active``, it waits itself, and
    goes first since it needs the table alone and is older.
    """

    task_id: str
    kind: str
    slot: TableSlot
    wanted: TableSlot
    is_active: bool


class RefusalKind(StrEnum):
    """Why a resource group takes no task now."""

    NO_GROUP = "no-group"
    """Nobody says what the group is."""
    WINDOW = "window-closed"
    """No window of the group is open."""
    QUEUE = "queue"
    """Who asks takes no tasks of that queue."""
    CAP = "cap"
    """The group has as much as it may hold."""
    TENANT_CAP = "tenant-cap"
    """The owner of the table has as much of the group as they may hold."""
    SHARE = "large-share"
    """The queue has its share of the group."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a group takes no task now. ``until`` is when that ends by itself at the latest, None where nobody knows."""

    kind: RefusalKind
    reason: Reason
    until: Instant | None = None


@dataclass(frozen=True, slots=True)
class Terms:
    """On which terms somebody claims tasks of a group. ``holding`` is what one more task would take.

    Without a ``group`` there are no caps: the server's own threads claim so. ``joins`` tells that the task is to share
    the Spark job of others: it takes nothing beside them where its optimizer has a task already. ``refused`` is why
    the group as a whole gives out no task at this moment. ``understood`` are the kinds of actions that an optimizer of
    the group understands: the share of the large queue is kept free for those alone.
    """

    group: ResourceGroup | None = None
    holding: Holding = NOTHING
    queues: frozenset[Queue] = field(default=EVERY_QUEUE)
    joins: bool = False
    refused: Refusal | None = None
    understood: frozenset[ActionKind] = EVERY_KIND


FREE: Final = Terms()
"""The terms of whoever may take what there is."""
