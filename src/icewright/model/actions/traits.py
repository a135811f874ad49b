"""What is true of a kind of action: a value that stands beside its words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Generic, TypeVar

from icewright.model.access.permissions import Permission

A = TypeVar("A")


class RunsOn(StrEnum):
    """What carries an action out (decision 0027)."""

    OPTIMIZER = "optimizer"
    SERVER = "server"
    """The server itself: it reads and writes no rows."""
    SERVER_FILES = "server-files"
    """The server's thread that takes files away or puts them back, and commits nothing."""


class TableSlot(StrEnum):
    """What of its table a task holds while it is at work (decision 0069): of one slot there is one such task at a time.

    :data:`BESIDE` says which may be at work at once.
    """

    DATA = "data"
    """It commits snapshots, and takes away no snapshot, no ref and no file."""
    METADATA = "metadata"
    """It changes neither data nor refs nor snapshots: what it commits stands beside them in the metadata."""
    TABLE = "table"
    """Both slots: it takes something away or puts it back, and is alone with its table."""


BESIDE: Final[Mapping[TableSlot, frozenset[TableSlot]]] = {
    TableSlot.DATA: frozenset({TableSlot.METADATA}),
    TableSlot.METADATA: frozenset({TableSlot.DATA}),
    TableSlot.TABLE: frozenset(),
}
"""What other tasks of a table may hold while one is at work. The database has it as a unique index for each slot."""


def _alone(_action: Any) -> None:
    """No part of it shares a Spark job with other tasks."""


@dataclass(frozen=True, slots=True)
class ActionTraits(Generic[A]):
    """What is true of one kind of action.

    ``names`` counts the files, snapshots and partitions that an action names: what it weighs in memory.
    ``permission`` is what it needs to be queued. ``taken_back_by`` are the kinds of the actions that undo it where a
    person has to begin it, and has to begin it again after one of them. ``in_mode_observe`` says that it is carried out
    whatever the owner lets be done to the table. ``shareable_bytes`` are read, where all of an action can be carried
    out in a Spark job shared with other tasks; else None. ``asked`` is how a person asks for a plan of it; None where
    nobody does. ``slot`` is what of its table a task of the kind holds; alone with its table unless said otherwise.
    ``protocol_version`` is raised by a change of the action that an older optimizer would misread: those that know
    another version get no such task.
    """

    action: type[A]
    figures: type[Any]
    prediction: type[Any]
    names: Callable[[A], int]
    permission: Permission = Permission.OPERATE
    runs_on: RunsOn = RunsOn.OPTIMIZER
    removes_files: bool = False
    taken_back_by: tuple[str, ...] = ()
    in_mode_observe: bool = False
    shareable_bytes: Callable[[A], int | None] = _alone
    asked: type[Any] | None = None
    slot: TableSlot = TableSlot.TABLE
    protocol_version: int = 1

    @property
    def kind(self) -> str:
        """The tag that the action carries where it is stored or sent, and its figures, prediction and request too."""
        return str(self.action.kind)  # type: ignore[attr-defined] # a class constant of every action
