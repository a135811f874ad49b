"""Putting removed files back: the action, what lists show of it, and what it would bring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from icewright.model.access.permissions import Permission
from icewright.model.actions.traits import ActionTraits, RunsOn


@dataclass(frozen=True, slots=True)
class RestoreFilesFigures:
    """What lists show of the action. It goes by files, and by no snapshot."""

    kind: ClassVar[Literal["restore_files"]] = "restore_files"
    undone_task_id: str
    files: int
    size_bytes: int
    base_snapshot_id: int | None = None


@dataclass(frozen=True, slots=True)
class RestoreFiles:
    """Put back all that a task moved into quarantine and that is still there, each byte for byte to its own place.

    ``files`` and ``size_bytes`` are what was there when it was planned. What cannot come back, since something else is
    at its place by now, stays in quarantine.
    """

    kind: ClassVar[Literal["restore_files"]] = "restore_files"
    undone_task_id: str
    files: int
    size_bytes: int

    @property
    def figures(self) -> RestoreFilesFigures:
        """The action itself: it names no file."""
        return RestoreFilesFigures(self.undone_task_id, self.files, self.size_bytes)


@dataclass(frozen=True, slots=True)
class RestoreFilesPrediction:
    """What carrying out the action would bring. ``purged_files`` are gone for good; no Spark statement comes near."""

    kind: ClassVar[Literal["restore_files"]] = "restore_files"
    files: int
    size_bytes: int
    purged_files: int
    call: str = ""


TRAITS: Final = ActionTraits(
    RestoreFiles,
    RestoreFilesFigures,
    RestoreFilesPrediction,
    names=lambda _action: 0,
    permission=Permission.UNDO,
    runs_on=RunsOn.SERVER_FILES,
    in_mode_observe=True,
    settings=frozenset(),
)
