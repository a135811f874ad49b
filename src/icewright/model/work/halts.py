"""Halts: what a person has said of a part of the queue, so that nothing is started there until it is resumed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from icewright.core.errors import InvalidMessage
from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.iceberg.names import TableId

HALTS_MAX: Final = 1_000
"""More tables than that are not halted one by one: each claim has to look at all halts."""
WHY_LENGTH_MAX: Final = 1_000


class HaltState(StrEnum):
    """How much a halt lets go on. Nothing is given out under any of them."""

    PAUSED = "paused"
    """What runs goes on; files are left alone between two batches."""
    DRAINING = "draining"
    """As paused; said where somebody waits for that which runs to end."""
    STOPPED = "stopped"
    """As paused, and what runs is ended before its commit, and waits again."""


class PartKind(StrEnum):
    """What a halt is of."""

    EVERYTHING = "all"
    GROUP = "group"
    CATALOG = "catalog"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the queue. ``name`` is that of a group or a catalog, or what a table was called when it was halted."""

    kind: PartKind
    name: str = ""
    table_id: TableId | None = None

    def __post_init__(self) -> None:
        """Refuse what is no part."""
        if (self.kind is PartKind.TABLE) != (self.table_id is not None):
            raise InvalidMessage("a table, and nothing else, has a table id")
        if (self.kind is PartKind.EVERYTHING) != (not self.name):
            raise InvalidMessage("all but everything has a name")

    def __str__(self) -> str:
        return "everything" if self.kind is PartKind.EVERYTHING else f"{self.kind} {self.name}"

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from others, as texts: the kind, and the two names that it goes by."""
        if self.table_id is not None:
            return self.kind.value, self.table_id.catalog, self.table_id.uuid
        return self.kind.value, self.name, ""

    def covers(self, resource_group: str, table_id: TableId) -> bool:
        """Whether the work of a resource group on a table is in it."""
        match self.kind:
            case PartKind.EVERYTHING:
                return True
            case PartKind.GROUP:
                return self.name == resource_group
            case PartKind.CATALOG:
                return self.name == table_id.catalog
            case PartKind.TABLE:
                return self.table_id == table_id


EVERYTHING: Final = Part(PartKind.EVERYTHING)


@dataclass(frozen=True, slots=True)
class Halt:
    """A part of the queue that somebody has paused, is draining or has stopped, since when and why."""

    part: Part
    state: HaltState
    why: str
    by: str
    since: Instant

    def reason(self) -> Reason:
        """Why something waits that is in this part."""
        said = f": {self.why}" if self.why else ""
        text = f"{self.part} is {self.state}, by {self.by}{said}"
        return Reason(self.state.value, text, {"since": self.since, "part": str(self.part), "by": self.by})


@dataclass(frozen=True, slots=True)
class NewHalt:
    """What somebody wants of a part of the queue."""

    part: Part
    state: HaltState
    why: str = ""

    def __post_init__(self) -> None:
        """Refuse a reason that is none."""
        require_why(self.why)


def require_why(why: str) -> None:
    """Raise :class:`~icewright.core.errors.InvalidMessage` for a reason that is too long to be one."""
    if len(why) > WHY_LENGTH_MAX:
        raise InvalidMessage(f"a reason has at most {WHY_LENGTH_MAX:,} characters, this one has {len(why):,}")


def halts_over(halts: Iterable[Halt], resource_group: str, table_id: TableId) -> list[Halt]:
    """The halts of the work of a group on a table, the one that lets least go on first: all have to end."""
    order = tuple(HaltState)
    found = (halt for halt in halts if halt.part.covers(resource_group, table_id))
    return sorted(found, key=lambda halt: order.index(halt.state), reverse=True)


def halt_over(halts: Iterable[Halt], resource_group: str, table_id: TableId) -> Halt | None:
    """The halt that counts for the work of a group on a table: of several the one that lets least go on, or None."""
    return next(iter(halts_over(halts, resource_group, table_id)), None)
