"""The kinds of actions, with what is true of each: one value a kind.

A kind of action that is added has a line in :data:`ACTION_TRAITS`, and one in the registries of the floors above, each
in a module of this name; ``tests/test_action_types.py`` tells of one without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Generic, TypeVar

from icewright.model.access.permissions import Permission
from icewright.model.actions.actions import Action, ActionKind, RewriteDataFiles, RewriteFigures, UndoExpireData
from icewright.model.actions.compute_statistics import (
    ComputeStatistics,
    ComputeStatisticsFigures,
    ComputeStatisticsPrediction,
)
from icewright.model.actions.expire_data import ExpireData, ExpireDataFigures, ExpireDataPrediction
from icewright.model.actions.expire_snapshots import ExpireSnapshots, ExpireSnapshotsFigures, ExpireSnapshotsPrediction
from icewright.model.actions.remove_dangling_deletes import (
    RemoveDanglingDeletes,
    RemoveDanglingDeletesFigures,
    RemoveDanglingDeletesPrediction,
)
from icewright.model.actions.remove_expired_files import (
    RemoveExpiredFiles,
    RemoveExpiredFilesFigures,
    RemoveExpiredFilesPrediction,
)
from icewright.model.actions.remove_orphan_files import (
    RemoveOrphanFiles,
    RemoveOrphanFilesFigures,
    RemoveOrphanFilesPrediction,
)
from icewright.model.actions.restore_files import RestoreFiles, RestoreFilesFigures, RestoreFilesPrediction
from icewright.model.actions.rewrite_manifests import (
    RewriteManifests,
    RewriteManifestsFigures,
    RewriteManifestsPrediction,
)
from icewright.model.actions.rewrite_position_deletes import (
    RewritePositionDeletes,
    RewritePositionDeletesFigures,
    RewritePositionDeletesPrediction,
)
from icewright.model.actions.rollback import Rollback, RollbackFigures, RollbackPrediction
from icewright.model.actions.undo import UndoExpiry, UndoExpiryFigures, UndoExpiryPrediction
from icewright.model.actions.undo_data import UndoExpireDataFigures, UndoExpireDataPrediction
from icewright.model.plans.plans import RewritePrediction

A = TypeVar("A")


class RunsOn(StrEnum):
    """What carries an action out (decision 0027)."""

    OPTIMIZER = "optimizer"
    SERVER = "server"
    """The server itself: it reads and writes no rows."""
    SERVER_FILES = "server-files"
    """The server's thread that takes files away or puts them back, and commits nothing."""


def _alone(_action: Any) -> None:
    """No part of it shares a Spark job with other tasks."""


@dataclass(frozen=True, slots=True)
class ActionTraits(Generic[A]):
    """What is true of one kind of action.

    ``names`` counts the files, snapshots and partitions that an action names: what it weighs in memory.
    ``permission`` is what it needs to be queued. ``taken_back_by`` are the actions that undo it where a person has to
    begin it, and has to begin it again after one of them. ``in_mode_observe`` says that it is carried out whatever the
    owner lets be done to the table. ``shareable_bytes`` are read, where all of an action can be carried out in a Spark
    job shared with other tasks; else None.
    """

    action: type[A]
    figures: type[Any]
    prediction: type[Any]
    names: Callable[[A], int]
    permission: Permission = Permission.OPERATE
    runs_on: RunsOn = RunsOn.OPTIMIZER
    removes_files: bool = False
    taken_back_by: tuple[type[Any], ...] = ()
    in_mode_observe: bool = False
    shareable_bytes: Callable[[A], int | None] = _alone


_REWRITE_DATA_FILES: Final = ActionTraits(
    RewriteDataFiles,
    RewriteFigures,
    RewritePrediction,
    names=lambda action: action.input_files,
    shareable_bytes=lambda action: action.shareable_bytes,
)

_EXPIRE_SNAPSHOTS: Final = ActionTraits(
    ExpireSnapshots,
    ExpireSnapshotsFigures,
    ExpireSnapshotsPrediction,
    names=lambda action: len(action.snapshot_ids) + len(action.retained_snapshot_ids),
    permission=Permission.REMOVE,
    runs_on=RunsOn.SERVER,
    taken_back_by=(UndoExpiry,),
)

_REWRITE_MANIFESTS: Final = ActionTraits(
    RewriteManifests,
    RewriteManifestsFigures,
    RewriteManifestsPrediction,
    names=lambda action: len(action.manifests) + sum(len(output.shares) for output in action.outputs),
)

_REMOVE_DANGLING_DELETES: Final = ActionTraits(
    RemoveDanglingDeletes,
    RemoveDanglingDeletesFigures,
    RemoveDanglingDeletesPrediction,
    names=lambda action: action.names,
)

_REWRITE_POSITION_DELETES: Final = ActionTraits(
    RewritePositionDeletes,
    RewritePositionDeletesFigures,
    RewritePositionDeletesPrediction,
    names=lambda action: action.names,
)

_COMPUTE_STATISTICS: Final = ActionTraits(
    ComputeStatistics,
    ComputeStatisticsFigures,
    ComputeStatisticsPrediction,
    names=lambda action: len(action.columns),
)

_EXPIRE_DATA: Final = ActionTraits(
    ExpireData,
    ExpireDataFigures,
    ExpireDataPrediction,
    names=lambda action: len(action.partitions) + sum(len(partition.files) for partition in action.partitions),
    permission=Permission.REMOVE,
    taken_back_by=(UndoExpireData, Rollback),
)

_UNDO_EXPIRE_DATA: Final = ActionTraits(
    UndoExpireData,
    UndoExpireDataFigures,
    UndoExpireDataPrediction,
    names=lambda action: sum(len(group.files) + len(group.delete_files) for group in action.groups),
    permission=Permission.UNDO,
)

_UNDO_EXPIRY: Final = ActionTraits(
    UndoExpiry,
    UndoExpiryFigures,
    UndoExpiryPrediction,
    names=lambda action: len(action.snapshot_ids),
    permission=Permission.UNDO,
    runs_on=RunsOn.SERVER,
)

_ROLLBACK: Final = ActionTraits(
    Rollback,
    RollbackFigures,
    RollbackPrediction,
    names=lambda _action: 0,
    permission=Permission.REMOVE,
    runs_on=RunsOn.SERVER,
)

_REMOVE_ORPHAN_FILES: Final = ActionTraits(
    RemoveOrphanFiles,
    RemoveOrphanFilesFigures,
    RemoveOrphanFilesPrediction,
    names=lambda action: len(action.files),
    permission=Permission.REMOVE,
    runs_on=RunsOn.SERVER_FILES,
    removes_files=True,
)

_REMOVE_EXPIRED_FILES: Final = ActionTraits(
    RemoveExpiredFiles,
    RemoveExpiredFilesFigures,
    RemoveExpiredFilesPrediction,
    names=lambda action: len(action.files),
    permission=Permission.REMOVE,
    runs_on=RunsOn.SERVER_FILES,
    removes_files=True,
)

_RESTORE_FILES: Final = ActionTraits(
    RestoreFiles,
    RestoreFilesFigures,
    RestoreFilesPrediction,
    names=lambda _action: 0,
    permission=Permission.UNDO,
    runs_on=RunsOn.SERVER_FILES,
    in_mode_observe=True,
)

ACTION_TRAITS: Final[tuple[ActionTraits[Any], ...]] = (
    _REWRITE_DATA_FILES,
    _EXPIRE_SNAPSHOTS,
    _REWRITE_MANIFESTS,
    _REMOVE_DANGLING_DELETES,
    _REWRITE_POSITION_DELETES,
    _COMPUTE_STATISTICS,
    _EXPIRE_DATA,
    _UNDO_EXPIRE_DATA,
    _UNDO_EXPIRY,
    _ROLLBACK,
    _REMOVE_ORPHAN_FILES,
    _REMOVE_EXPIRED_FILES,
    _RESTORE_FILES,
)
"""Each kind once."""

_BY_KIND: Final[Mapping[str, ActionTraits[Any]]] = {traits.action.kind: traits for traits in ACTION_TRAITS}

FILE_MOVES: Final = frozenset(
    ActionKind(kind) for kind, traits in _BY_KIND.items() if traits.runs_on is RunsOn.SERVER_FILES
)
"""What takes files away or puts them back, and commits nothing."""

TAKE_BACK: Final[Mapping[ActionKind, tuple[ActionKind, ...]]] = {
    ActionKind(kind): tuple(ActionKind(undo.kind) for undo in traits.taken_back_by)
    for kind, traits in _BY_KIND.items()
    if traits.taken_back_by
}
"""What a person begins, and the kinds of tasks that take it back."""


def traits_of(kind: str) -> ActionTraits[Any]:
    """What is true of a kind of action; figures and predictions have the same kinds."""
    return _BY_KIND[kind]


def names_in(action: Action) -> int:
    """How many files, snapshots and partitions an action names: what it weighs in memory."""
    return _BY_KIND[action.kind].names(action)


def shareable_bytes(action: Action) -> int | None:
    """Bytes read, where all of an action can be carried out in a Spark job shared with other tasks; else None."""
    return _BY_KIND[action.kind].shareable_bytes(action)
