"""The kinds of actions, with how each is asked for, verified and taken back: one value a kind.

A kind of action that is added has a line in :data:`ACTION_SERVICES`; ``tests/test_action_types.py`` tells of one
without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from icewright.catalogs.port import Catalog
from icewright.maintenance.dispatch.server_tasks import Carrier
from icewright.maintenance.dispatch.verification import Verification
from icewright.maintenance.planner import Planned, Planner, Rest
from icewright.maintenance.registry.undo import UndoPlanner, never
from icewright.model.actions.actions import ActionKind, RewriteDataFiles, UndoExpireData
from icewright.model.actions.compute_statistics import ComputeStatistics
from icewright.model.actions.expire_data import ExpireData
from icewright.model.actions.expire_snapshots import ExpireSnapshots, Hold
from icewright.model.actions.remove_dangling_deletes import RemoveDanglingDeletes
from icewright.model.actions.remove_expired_files import RemoveExpiredFiles
from icewright.model.actions.remove_orphan_files import RemoveOrphanFiles
from icewright.model.actions.restore_files import RestoreFiles
from icewright.model.actions.rewrite_manifests import RewriteManifests
from icewright.model.actions.rewrite_position_deletes import RewritePositionDeletes
from icewright.model.actions.rollback import Rollback
from icewright.model.actions.undo import UndoExpiry
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.observation import Observation
from icewright.model.plans.plans import Plan
from icewright.model.plans.requests import (
    Asked,
    AskedComputeStatistics,
    AskedExpireData,
    AskedExpireSnapshots,
    AskedRemoveDanglingDeletes,
    AskedRemoveOrphanFiles,
    AskedRewriteDataFiles,
    AskedRewriteManifests,
    AskedRewritePositionDeletes,
    AskedRollback,
)
from icewright.model.work.tasks import Outcome, Task
from icewright.plans.due import Due

A = TypeVar("A")
Q = TypeVar("Q")


@dataclass(frozen=True, slots=True)
class AskedPlan(Generic[Q]):
    """How what a person asks for is planned, of a table that was just observed.

    ``plan`` is told the snapshots that tasks of the table go on from.
    """

    asked: type[Q]
    plan: Callable[[Planner, Observation, Q, Sequence[Hold]], Planned]


@dataclass(frozen=True, slots=True)
class DueRule:
    """How a kind is kept up by itself: what is said of it, and what finds out whether it is due."""

    said: str
    due: Callable[[Planner, Observation, Rest], Due]


def _asked(asked: type[Q], plan: Callable[[Planner, Observation, Q, Sequence[Hold]], Planned]) -> AskedPlan[Any]:
    """An :class:`AskedPlan` whose types are compared before the registry forgets them."""
    return AskedPlan(asked, plan)


@dataclass(frozen=True, slots=True)
class ActionServices(Generic[A]):
    """What the server does about one kind of action.

    ``verify`` says what the table has of a committed task, ``plan_undo`` plans to take it back, or refuses.
    ``plan_asked`` plans what a person asks for; None where a kind cannot be asked for.
    ``due`` is how it is looked into, with a look at its table, whether it is due; None where it is not.
    ``carrier`` makes what carries it out over the catalogs, by name; None where Spark does, or where that needs more
    and is wired by the server (:mod:`icewright.server.control`).
    """

    action: type[A]
    verify: Callable[[Verification, Task, A, TableMetadata], Outcome]
    plan_undo: Callable[[UndoPlanner, Task, A], Plan]
    plan_asked: AskedPlan[Any] | None = None
    due: DueRule | None = None
    carrier: Callable[[Mapping[str, Catalog]], Carrier] | None = None


_NO_ROW: Final = never("it changed no row", "`icewright rollback` sets a table back to an earlier snapshot")

_REWRITE_DATA_FILES: Final = ActionServices(
    RewriteDataFiles, Verification.rewrite, _NO_ROW, _asked(AskedRewriteDataFiles, Planner.rewrite_asked)
)
_EXPIRE_SNAPSHOTS: Final = ActionServices(
    ExpireSnapshots,
    Verification.expiry,
    UndoPlanner.expiry,
    _asked(AskedExpireSnapshots, Planner.expiry_asked),
    DueRule("Snapshots expire by themselves", Planner.expiry_due),
)
_REWRITE_MANIFESTS: Final = ActionServices(
    RewriteManifests,
    Verification.manifests,
    _NO_ROW,
    _asked(AskedRewriteManifests, Planner.manifests_asked),
    DueRule("Manifests are rewritten by themselves", Planner.manifests_due),
)
_REMOVE_DANGLING_DELETES: Final = ActionServices(
    RemoveDanglingDeletes, Verification.deletes, _NO_ROW, _asked(AskedRemoveDanglingDeletes, Planner.deletes_asked)
)
_REWRITE_POSITION_DELETES: Final = ActionServices(
    RewritePositionDeletes, Verification.deletes, _NO_ROW, _asked(AskedRewritePositionDeletes, Planner.deletes_asked)
)
_COMPUTE_STATISTICS: Final = ActionServices(
    ComputeStatistics,
    Verification.statistics,
    never("it changed no row", "readers may ignore statistics, and expiry takes them away"),
    _asked(AskedComputeStatistics, Planner.statistics_asked),
    DueRule("Statistics are computed by themselves", Planner.statistics_due),
)
_EXPIRE_DATA: Final = ActionServices(
    ExpireData,
    Verification.data,
    UndoPlanner.data,
    _asked(AskedExpireData, Planner.data_asked),
    DueRule("Data expires by itself", Planner.data_due),
)
_UNDO_EXPIRE_DATA: Final = ActionServices(
    UndoExpireData,
    Verification.data_undo,
    never("it was an undo", "let the data expire again: `icewright plan --action expire-data`"),
)
_UNDO_EXPIRY: Final = ActionServices(UndoExpiry, Verification.expiry_undo, UndoPlanner.expiry_undo)
_ROLLBACK: Final = ActionServices(
    Rollback, Verification.rollback, UndoPlanner.rollback, _asked(AskedRollback, Planner.rollback_asked)
)
_REMOVE_ORPHAN_FILES: Final = ActionServices(
    RemoveOrphanFiles, Verification.files, UndoPlanner.removal, _asked(AskedRemoveOrphanFiles, Planner.orphans_asked)
)
_REMOVE_EXPIRED_FILES: Final = ActionServices(RemoveExpiredFiles, Verification.files, UndoPlanner.removal)
_RESTORE_FILES: Final = ActionServices(
    RestoreFiles,
    Verification.files,
    never("it was an undo", "remove the files again: `icewright remove-orphan-files`"),
)

ACTION_SERVICES: Final[tuple[ActionServices[Any], ...]] = (
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

_BY_KIND: Final[Mapping[str, ActionServices[Any]]] = {services.action.kind: services for services in ACTION_SERVICES}

DUE_RULES: Final[Mapping[ActionKind, DueRule]] = {
    ActionKind(kind): services.due for kind, services in _BY_KIND.items() if services.due is not None
}
"""What is looked into with each look at a table, in this order."""


def build_carriers(catalogs: Mapping[str, Catalog]) -> dict[ActionKind, Carrier]:
    """What carries out actions that need no more than the catalogs."""
    return {
        ActionKind(kind): services.carrier(catalogs)
        for kind, services in _BY_KIND.items()
        if services.carrier is not None
    }


def verify(verification: Verification, task: Task, metadata: TableMetadata) -> Outcome:
    """What the table says of a committed task."""
    return _BY_KIND[task.action.kind].verify(verification, task, task.action, metadata)


def plan_undo(plans: UndoPlanner, task: Task) -> Plan:
    """The plan that takes a task back. Raises :class:`~icewright.core.errors.NotAllowed` where nothing does."""
    return _BY_KIND[task.action.kind].plan_undo(plans, task, task.action)


def plan_asked(planner: Planner, observation: Observation, asked: Asked, holds: Sequence[Hold] = ()) -> Planned:
    """Say what that takes which a person asks for, of a table just observed.

    ``holds`` are the snapshots that tasks of the table go on from. Raises ``PlanRefused``, and ``Rejected`` for what
    cannot be asked for.
    """
    found = _BY_KIND[asked.kind].plan_asked
    if found is None:
        raise TypeError(f"no plan is asked for of kind {asked.kind}")
    return found.plan(planner, observation, asked, holds)
