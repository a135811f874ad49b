"""The kinds of actions, with how each is decided of, asked for, verified and taken back: one value a kind.

What is defined here is composed of what several actions share; an action that is all in its folder is found there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from icewright.actions.compute_statistics import service as compute_statistics
from icewright.actions.expire_data import service as expire_data
from icewright.actions.expire_snapshots import service as expire_snapshots
from icewright.actions.rewrite_delete_files import service as rewrite_delete_files
from icewright.actions.rewrite_manifests import service as rewrite_manifests
from icewright.actions.rollback import service as rollback
from icewright.catalogs.port import Catalog
from icewright.maintenance.dispatch.verification import Verification
from icewright.maintenance.planner import Planner
from icewright.maintenance.registry import rules
from icewright.maintenance.registry.folders import in_folders
from icewright.maintenance.registry.undo import UndoPlanner
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.compute_statistics import ComputeStatisticsRequest
from icewright.model.actions.expire_data import ExpireDataRequest
from icewright.model.actions.expire_snapshots import ExpireSnapshotsRequest, Hold
from icewright.model.actions.remove_files import RemoveOrphanFilesRequest
from icewright.model.actions.rewrite_data_files import RewriteDataFilesRequest
from icewright.model.actions.rewrite_delete_files import RemoveDanglingDeletesRequest, RewritePositionDeletesRequest
from icewright.model.actions.rewrite_manifests import RewriteManifestsRequest
from icewright.model.actions.rollback import RollbackRequest
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.observation import Observation
from icewright.model.plans.plans import Plan
from icewright.model.plans.requests import PlanRequest
from icewright.model.work.tasks import Outcome, Task
from icewright.plans.action_types import ActionType, DueRule, Planned, RequestedPlan, never

if TYPE_CHECKING:
    from icewright.ports.carriers import Carrier

Q = TypeVar("Q")


def _asked(asked: type[Q], plan: Callable[[Planner, Observation, Q, Sequence[Hold]], Planned]) -> RequestedPlan[Any]:
    """An :class:`RequestedPlan` whose types are compared before the registry forgets them."""
    return RequestedPlan(asked, plan)


_NO_ROW: Final = never("it changed no row", "`icewright rollback` sets a table back to an earlier snapshot")

_REWRITE_DATA_FILES: Final = ActionType(
    rules.REWRITE_DATA_FILES, Verification.rewrite, _NO_ROW, _asked(RewriteDataFilesRequest, Planner.rewrite_asked)
)
_EXPIRE_SNAPSHOTS: Final = ActionType(
    rules.EXPIRE_SNAPSHOTS,
    Verification.expiry,
    UndoPlanner.expiry,
    _asked(ExpireSnapshotsRequest, expire_snapshots.plan_asked),
    DueRule("Automatic expiry of snapshots", expire_snapshots.expiry_due),
)
_REWRITE_MANIFESTS: Final = ActionType(
    rules.REWRITE_MANIFESTS,
    Verification.manifests,
    _NO_ROW,
    _asked(RewriteManifestsRequest, rewrite_manifests.plan_asked),
    DueRule("Automatic rewrite of manifests", rewrite_manifests.manifests_due),
)
_REMOVE_DANGLING_DELETES: Final = ActionType(
    rules.REMOVE_DANGLING_DELETES,
    Verification.deletes,
    _NO_ROW,
    _asked(RemoveDanglingDeletesRequest, rewrite_delete_files.plan_asked),
)
_REWRITE_POSITION_DELETES: Final = ActionType(
    rules.REWRITE_POSITION_DELETES,
    Verification.deletes,
    _NO_ROW,
    _asked(RewritePositionDeletesRequest, rewrite_delete_files.plan_asked),
)
_COMPUTE_STATISTICS: Final = ActionType(
    rules.COMPUTE_STATISTICS,
    Verification.statistics,
    never("it changed no row", "readers may ignore statistics, and expiry takes them away"),
    _asked(ComputeStatisticsRequest, compute_statistics.plan_asked),
    DueRule("Automatic statistics", compute_statistics.statistics_due),
)
_EXPIRE_DATA: Final = ActionType(
    rules.EXPIRE_DATA,
    Verification.data,
    UndoPlanner.data,
    _asked(ExpireDataRequest, expire_data.plan_asked),
    DueRule("Automatic expiry of data", expire_data.data_due),
)
_UNDO_EXPIRE_DATA: Final = ActionType(
    rules.UNDO_EXPIRE_DATA,
    Verification.data_undo,
    never("it was an undo", "expire the data again: `icewright plan --action expire-data`"),
)
_UNDO_EXPIRY: Final = ActionType(rules.UNDO_EXPIRY, Verification.expiry_undo, UndoPlanner.expiry_undo)
_ROLLBACK: Final = ActionType(
    rules.ROLLBACK, Verification.rollback, UndoPlanner.rollback, _asked(RollbackRequest, rollback.plan_asked)
)
_REMOVE_ORPHAN_FILES: Final = ActionType(
    rules.REMOVE_ORPHAN_FILES,
    Verification.files,
    UndoPlanner.removal,
    _asked(RemoveOrphanFilesRequest, Planner.orphans_asked),
)
_REMOVE_EXPIRED_FILES: Final = ActionType(rules.REMOVE_EXPIRED_FILES, Verification.files, UndoPlanner.removal)
_RESTORE_FILES: Final = ActionType(
    rules.RESTORE_FILES,
    Verification.files,
    never("it was an undo", "remove the files again: `icewright remove-orphan-files`"),
)

_HERE: Final = {its.action.kind: its for its in tuple(globals().values()) if isinstance(its, ActionType)}

ACTION_TYPES: Final[Mapping[str, ActionType[Any]]] = {
    **_HERE,
    **{its.action.kind: its for its in in_folders("service", ActionType, _HERE)},
}
"""All of them, by kind. Automatic upkeep is told of in this order."""

DUE_RULES: Final[Mapping[ActionKind, DueRule]] = {
    ActionKind(kind): its.due for kind, its in ACTION_TYPES.items() if its.due is not None
}
"""What is looked into with each look at a table, in this order."""


def build_carriers(catalogs: Mapping[str, Catalog]) -> dict[ActionKind, Carrier]:
    """What carries out actions that need no more than the catalogs."""
    return {ActionKind(kind): its.carrier(catalogs) for kind, its in ACTION_TYPES.items() if its.carrier is not None}


def verify(verification: Verification, task: Task, metadata: TableMetadata) -> Outcome:
    """What the table says of a committed task."""
    return ACTION_TYPES[task.action.kind].verify(verification, task, task.action, metadata)


def plan_undo(plans: UndoPlanner, task: Task) -> Plan:
    """The plan that takes a task back. Raises :class:`~icewright.core.errors.NotAllowed` where nothing does."""
    return ACTION_TYPES[task.action.kind].plan_undo(plans, task, task.action)


def plan_asked(planner: Planner, observation: Observation, asked: PlanRequest, holds: Sequence[Hold] = ()) -> Planned:
    """Say what that takes which a person asks for, of a table just observed.

    ``holds`` are the snapshots that tasks of the table go on from. Raises ``PlanRejected``, and ``Rejected`` for what
    cannot be asked for.
    """
    found = ACTION_TYPES[asked.kind].plan_asked
    if found is None:
        raise TypeError(f"no plan is asked for of kind {asked.kind}")
    return found.plan(planner, observation, asked, holds)
