"""Removing the files of expired snapshots: the action, what lists show of it, and what it would bring.

They are what snapshots needed that expiries of ours took, and nothing needs any more; no listing is asked for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from icewright.core.times import Instant
from icewright.model.access.permissions import Permission
from icewright.model.actions.deletion import Candidate
from icewright.model.actions.traits import ActionTraits, RunsOn


@dataclass(frozen=True, slots=True)
class RemoveExpiredFilesFigures:
    """What lists show of the action: everything but its files, which may be many thousands."""

    kind: ClassVar[Literal["remove_expired_files"]] = "remove_expired_files"
    base_snapshot_id: int | None
    expiry_task_ids: tuple[str, ...]
    files: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class RemoveExpiredFiles:
    """Remove these files, each only while it is still what it was and nothing needs it.

    ``expiry_task_ids`` are the verified expiries whose snapshots needed them. Each file was without use since the
    verification of its expiry, which is when it was first seen so. ``base_metadata_location`` is the metadata file that
    nothing of them was reachable from, ``as_of`` when that was seen.
    """

    kind: ClassVar[Literal["remove_expired_files"]] = "remove_expired_files"
    base_metadata_location: str
    base_snapshot_id: int | None
    expiry_task_ids: tuple[str, ...]
    files: tuple[Candidate, ...]
    as_of: Instant

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """Its files as the Deleter takes them."""
        return self.files

    @property
    def size_bytes(self) -> int:
        """Bytes of the files of this action."""
        return sum(file.object.size_bytes for file in self.files)

    @property
    def figures(self) -> RemoveExpiredFilesFigures:
        """The action without its files."""
        return RemoveExpiredFilesFigures(self.base_snapshot_id, self.expiry_task_ids, len(self.files), self.size_bytes)


@dataclass(frozen=True, slots=True)
class RemoveExpiredFilesPrediction:
    """What carrying out the action would bring.

    ``needed_files`` of the expired snapshots stay, since others need them; ``gone_files`` are not there any more, or
    are other files by now. ``left_for_later`` are beyond the size of one action. No Spark statement comes near:
    Iceberg's own deletes such files at once, and for good.
    """

    kind: ClassVar[Literal["remove_expired_files"]] = "remove_expired_files"
    files: int
    size_bytes: int
    needed_files: int
    gone_files: int
    left_for_later: int
    call: str = ""


TRAITS: Final = ActionTraits(
    RemoveExpiredFiles,
    RemoveExpiredFilesFigures,
    RemoveExpiredFilesPrediction,
    names=lambda action: len(action.files),
    permission=Permission.REMOVE,
    runs_on=RunsOn.SERVER_FILES,
    removes_files=True,
    settings=frozenset(),
)
