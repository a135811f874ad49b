"""The kinds of actions as the command line shows them: one value a kind.

What is defined here is composed of what several actions share; an action that is all in its folder is found there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from icewright.actions.compute_statistics import cli as statistics
from icewright.actions.expire_data import cli as data
from icewright.actions.expire_snapshots import cli as expiries
from icewright.actions.rewrite_data_files import cli as rewrites
from icewright.actions.rewrite_delete_files import cli as deletes
from icewright.maintenance.registry.folders import in_folders
from icewright.model.actions.actions import RewriteFigures
from icewright.model.actions.compute_statistics import ComputeStatisticsFigures, ComputeStatisticsPrediction
from icewright.model.actions.expire_data import ExpireDataFigures, ExpireDataPrediction
from icewright.model.actions.expire_snapshots import ExpireSnapshotsFigures, ExpireSnapshotsPrediction
from icewright.model.actions.remove_files import (
    RemoveExpiredFilesFigures,
    RemoveExpiredFilesPrediction,
    RemoveOrphanFilesFigures,
    RemoveOrphanFilesPrediction,
)
from icewright.model.actions.rewrite_delete_files import (
    RemoveDanglingDeletesFigures,
    RemoveDanglingDeletesPrediction,
    RewritePositionDeletesFigures,
    RewritePositionDeletesPrediction,
)
from icewright.model.actions.rewrite_manifests import RewriteManifestsFigures, RewriteManifestsPrediction
from icewright.model.actions.rollback import RollbackFigures, RollbackPrediction
from icewright.model.actions.undo import (
    RestoreFilesFigures,
    RestoreFilesPrediction,
    UndoExpireDataFigures,
    UndoExpireDataPrediction,
    UndoExpiryFigures,
    UndoExpiryPrediction,
)
from icewright.model.plans.plans import RewritePrediction
from icewright.plans.action_types import ActionWords
from icewright.plans.evidence.measures import Measured
from icewright.plans.views import PlanView, TaskView
from icewright.terminal import figures as text


def _said_beforehand(said: ExpireDataPrediction | RollbackPrediction, task: TaskView) -> str:
    return said.undo.replace("TASK_ID", task.task_id)


_REWRITE_DATA_FILES: Final = ActionWords(
    RewritePrediction,
    RewriteFigures,
    predicted=rewrites.rewrite_pairs,
    work=rewrites.rewrite_work,
    read=lambda action: (text.number(action.input_files), text.size(action.input_bytes)),
    measured=rewrites.rewrite_cells,
)

_EXPIRE_SNAPSHOTS: Final = ActionWords(
    ExpireSnapshotsPrediction,
    ExpireSnapshotsFigures,
    predicted=expiries.expiry_pairs,
    work=lambda said: f"{said.snapshots_before:,} snapshots become {said.snapshots_after:,}",
    undo=expiries.expiry_undo,
)

_REWRITE_MANIFESTS: Final = ActionWords(
    RewriteManifestsPrediction,
    RewriteManifestsFigures,
    predicted=rewrites.manifests_pairs,
    work=lambda said: f"{said.manifests_before:,} manifests become {said.manifests_after:,}",
    read=lambda action: (text.number(action.manifests_replaced), text.size(action.input_bytes)),
)

_REMOVE_DANGLING_DELETES: Final = ActionWords(
    RemoveDanglingDeletesPrediction,
    RemoveDanglingDeletesFigures,
    predicted=deletes.deletes_pairs,
    work=deletes.deletes_work,
    measured=deletes.deletes_cells,
)

_REWRITE_POSITION_DELETES: Final = ActionWords(
    RewritePositionDeletesPrediction,
    RewritePositionDeletesFigures,
    predicted=deletes.deletes_pairs,
    work=deletes.deletes_work,
    read=lambda action: (text.number(action.input_files), text.size(action.input_bytes)),
    measured=deletes.deletes_cells,
)

_COMPUTE_STATISTICS: Final = ActionWords(
    ComputeStatisticsPrediction,
    ComputeStatisticsFigures,
    predicted=lambda said, view: statistics.statistics_pairs(said, view.rules),
    work=statistics.statistics_work,
)

_EXPIRE_DATA: Final = ActionWords(
    ExpireDataPrediction,
    ExpireDataFigures,
    predicted=lambda said, view: data.data_pairs(said, view.rules),
    work=lambda said: f"{said.records:,} of {said.records_before:,} rows expire",
    undo=_said_beforehand,
    read=lambda action: (text.number(action.files), text.size(action.size_bytes)),
)

_UNDO_EXPIRE_DATA: Final = ActionWords(
    UndoExpireDataPrediction,
    UndoExpireDataFigures,
    predicted=lambda said, view: data.data_undo_pairs(said, view.rules),
    work=lambda said: f"rows of {text.count(said.files, 'file')} ({text.size(said.size_bytes)}) inserted again",
    read=lambda action: (text.number(action.files), text.size(action.size_bytes)),
)

_UNDO_EXPIRY: Final = ActionWords(
    UndoExpiryPrediction,
    UndoExpiryFigures,
    predicted=expiries.expiry_undo_pairs,
    work=expiries.expiry_undo_work,
)

_ROLLBACK: Final = ActionWords(
    RollbackPrediction,
    RollbackFigures,
    predicted=expiries.rollback_pairs,
    work=lambda said: f"{text.count(said.snapshots, 'commit')} {'back' if said.is_forward else 'lost'}",
    undo=_said_beforehand,
)

_REMOVE_ORPHAN_FILES: Final = ActionWords(
    RemoveOrphanFilesPrediction,
    RemoveOrphanFilesFigures,
    predicted=deletes.orphans_pairs,
    work=deletes.removal_work,
)

_REMOVE_EXPIRED_FILES: Final = ActionWords(
    RemoveExpiredFilesPrediction,
    RemoveExpiredFilesFigures,
    predicted=deletes.expired_files_pairs,
    work=deletes.removal_work,
)

_RESTORE_FILES: Final = ActionWords(
    RestoreFilesPrediction,
    RestoreFilesFigures,
    predicted=deletes.restore_pairs,
    work=lambda said: f"{text.count(said.files, 'file')} ({text.size(said.size_bytes)}) are restored",
)

_HERE: Final = tuple(words for words in globals().values() if isinstance(words, ActionWords))

ACTION_WORDS: Final = (*_HERE, *in_folders("cli", ActionWords, {words.prediction.kind for words in _HERE}))
"""All of them."""

_BY_KIND: Final[Mapping[str, ActionWords[Any, Any]]] = {words.prediction.kind: words for words in ACTION_WORDS}


def predicted(view: PlanView) -> list[tuple[str, str]]:
    """What carrying out a plan would bring; of a plan to do nothing, what is said of data that stays."""
    said = view.prediction
    return data.data_pairs(None, view.rules) if said is None else _BY_KIND[said.kind].predicted(said, view)


def work(task: TaskView) -> str:
    """What is to be done, in a few words."""
    return _BY_KIND[task.prediction.kind].work(task.prediction)


def undo(task: TaskView) -> str:
    """Whether and how what the task does, or did, can be taken back, and until when."""
    return _BY_KIND[task.prediction.kind].undo(task.prediction, task)


def read(task: TaskView) -> tuple[str, str]:
    """How many files are read, and bytes."""
    return _BY_KIND[task.action.kind].read(task.action)


def measured_cells(task: TaskView, measured: Measured) -> list[tuple[str, str, str]]:
    """What the plan predicted and what the attempts measured, side by side; nothing where neither says a figure."""
    return _BY_KIND[task.prediction.kind].measured(task, task.prediction, task.action, measured)
