"""The kinds of actions, with what is decided of each: one value a kind, and no other place that lists them here.

A kind of action that is added has a value here and a line in :data:`ACTION_RULES`; ``tests/test_action_types.py`` tells
of one without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from icewright.actions.compute_statistics import plan as compute_statistics
from icewright.actions.compute_statistics.commit import statistics_conflict
from icewright.actions.compute_statistics.settings import COMPUTES_KEY
from icewright.actions.expire_data import plan as expire_data
from icewright.actions.expire_data.column import expire_data_obstacle
from icewright.actions.expire_data.settings import DATA_EXPIRES_KEY
from icewright.actions.expire_snapshots import plan as expire_snapshots
from icewright.actions.expire_snapshots.settings import EXPIRES_KEY, REMOVES_FILES_KEY
from icewright.actions.remove_files.orphans import plan as orphan_plan
from icewright.actions.remove_files.orphans.settings import REMOVES_KEY
from icewright.actions.rewrite_data_files import estimates
from icewright.actions.rewrite_data_files.executors import rewrite_obstacle
from icewright.actions.rewrite_manifests import plan as rewrite_manifests
from icewright.actions.rewrite_manifests.settings import REWRITES_KEY
from icewright.actions.rollback.plan import rollback_conflict
from icewright.actions.undo.data_undo_plan import data_undo_conflict
from icewright.core.times import Instant
from icewright.inventory import delete_cost_sums as delete_costs
from icewright.maintenance.registry import applies, effects
from icewright.maintenance.registry.effects import Effect
from icewright.model.actions.actions import Action, ActionKind, RewriteDataFiles, UndoExpireData
from icewright.model.actions.compute_statistics import ComputeStatistics
from icewright.model.actions.expire_data import ExpireData
from icewright.model.actions.expire_snapshots import ExpireSnapshots
from icewright.model.actions.remove_dangling_deletes import RemoveDanglingDeletes
from icewright.model.actions.remove_expired_files import RemoveExpiredFiles
from icewright.model.actions.remove_orphan_files import RemoveOrphanFiles
from icewright.model.actions.restore_files import RestoreFiles
from icewright.model.actions.rewrite_manifests import RewriteManifests
from icewright.model.actions.rewrite_position_deletes import RewritePositionDeletes
from icewright.model.actions.rollback import Rollback
from icewright.model.actions.undo import UndoExpiry
from icewright.model.iceberg.names import TableId
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.plans import Plan, Prediction, Reason
from icewright.model.policy.policy import Policy
from icewright.model.work.tasks import Task
from icewright.plans import eligibility

A = TypeVar("A")


def _as_planned(_action: Any, _policy: Policy) -> None:
    """Nothing in the policy makes a plan stale that was made by itself."""


def _within_budget(_action: Any) -> None:
    """Nobody has to approve it."""


def _nothing_more(_prediction: Any) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Upkeep(Generic[A]):
    """How a kind of action happens by itself, beside work on data files.

    ``key`` is the property that lets it, ``off`` what is said where the owner lets it no more. ``changed`` says why
    the owner wants less by now than what an action does.
    """

    key: str
    is_wanted: Callable[[Policy], bool]
    off: str
    changed: Callable[[A, Policy], Reason | None] = _as_planned


@dataclass(frozen=True, slots=True)
class ActionRules(Generic[A]):
    """What is decided of one kind of action, by pure functions.

    ``obstacle`` says why it must not be carried out on a table as it is now, ``conflict`` why a plan does not hold any
    more, ``effect`` what a table has of a task. ``done_by_others`` is why nothing is left to do where the effect is
    there before anybody tried; None where it can be our own alone. ``explain`` says in sentences what a prediction of
    this kind would bring. ``upkeep`` is None where it does not happen by itself. ``over_budget`` says
    why somebody has to approve it.
    """

    action: type[A]
    obstacle: Callable[[A, TableMetadata, Policy, Instant], Reason | None]
    conflict: Callable[[A, TableMetadata], Reason | None]
    effect: Callable[[A, Task, TableMetadata], Effect | None]
    done_by_others: Reason | None = None
    explain: Callable[[Any], Sequence[str]] = _nothing_more
    upkeep: Upkeep[A] | None = None
    over_budget: Callable[[A], Reason | None] = _within_budget


_REWRITE_DATA_FILES: Final = ActionRules(
    RewriteDataFiles,
    obstacle=rewrite_obstacle,
    conflict=applies.rewrite_conflict,
    effect=effects.snapshot_effect,
    explain=estimates.explain_rewrite,
)

_EXPIRE_SNAPSHOTS: Final = ActionRules(
    ExpireSnapshots,
    obstacle=eligibility.metadata_action_obstacle,
    conflict=applies.no_conflict,
    effect=effects.expiry_effect,
    done_by_others=Reason("gone-already", "somebody else removed all that was to expire"),
    upkeep=Upkeep(
        EXPIRES_KEY,
        lambda policy: policy.expires_snapshots,
        "the owner does not let snapshots expire by themselves any more",
        expire_snapshots.wanted_less,
    ),
)

_REWRITE_MANIFESTS: Final = ActionRules(
    RewriteManifests,
    obstacle=eligibility.manifests_action_obstacle,
    conflict=applies.manifests_conflict,
    effect=effects.snapshot_effect,
    explain=rewrite_manifests.explain_manifests,
    upkeep=Upkeep(
        REWRITES_KEY,
        lambda policy: policy.rewrites_manifests,
        "the owner does not let manifests be rewritten by themselves any more",
    ),
)

_REMOVE_DANGLING_DELETES: Final = ActionRules(
    RemoveDanglingDeletes,
    obstacle=eligibility.manifests_action_obstacle,
    conflict=applies.deletes_conflict,
    effect=effects.snapshot_effect,
    explain=delete_costs.explain_deletes,
)

_REWRITE_POSITION_DELETES: Final = ActionRules(
    RewritePositionDeletes,
    obstacle=eligibility.manifests_action_obstacle,
    conflict=applies.deletes_conflict,
    effect=effects.snapshot_effect,
    explain=delete_costs.explain_deletes,
)

_COMPUTE_STATISTICS: Final = ActionRules(
    ComputeStatistics,
    obstacle=eligibility.statistics_obstacle,
    conflict=statistics_conflict,
    effect=effects.statistics_effect,
    done_by_others=Reason("there-already", "somebody else computed all these statistics"),
    explain=compute_statistics.explain_statistics,
    upkeep=Upkeep(
        COMPUTES_KEY,
        lambda policy: policy.computes_statistics,
        "the owner does not let statistics be computed by themselves any more",
    ),
)

_EXPIRE_DATA: Final = ActionRules(
    ExpireData,
    obstacle=expire_data_obstacle,
    conflict=applies.expire_data_conflict,
    effect=effects.snapshot_effect,
    explain=expire_data.explain_data,
    upkeep=Upkeep(
        DATA_EXPIRES_KEY,
        lambda policy: policy.expires_data,
        "the owner does not let data expire by itself any more",
        expire_data.wanted_less,
    ),
    over_budget=expire_data.over_budget,
)

_UNDO_EXPIRE_DATA: Final = ActionRules(
    UndoExpireData,
    obstacle=eligibility.insert_obstacle,
    conflict=data_undo_conflict,
    effect=effects.snapshot_effect,
)

_UNDO_EXPIRY: Final = ActionRules(
    UndoExpiry,
    obstacle=eligibility.recovery_action_obstacle,
    conflict=applies.no_conflict,
    effect=effects.expiry_undo_effect,
    done_by_others=Reason("there-already", "somebody else put all of it back"),
)

_ROLLBACK: Final = ActionRules(
    Rollback,
    obstacle=eligibility.recovery_action_obstacle,
    conflict=rollback_conflict,
    effect=effects.rollback_effect,
)

_REMOVE_ORPHAN_FILES: Final = ActionRules(
    RemoveOrphanFiles,
    obstacle=eligibility.metadata_action_obstacle,
    conflict=applies.no_conflict,
    effect=effects.no_effect,
    upkeep=Upkeep(
        REMOVES_KEY,
        lambda policy: policy.removes_orphan_files,
        "the owner does not let orphan files be removed by themselves any more",
        orphan_plan.wanted_less,
    ),
    over_budget=orphan_plan.over_budget,
)

_REMOVE_EXPIRED_FILES: Final = ActionRules(
    RemoveExpiredFiles,
    obstacle=eligibility.metadata_action_obstacle,
    conflict=applies.no_conflict,
    effect=effects.no_effect,
    upkeep=Upkeep(
        REMOVES_FILES_KEY,
        lambda policy: policy.removes_expired_files,
        "the owner does not let files of expired snapshots be removed any more",
    ),
)

_RESTORE_FILES: Final = ActionRules(
    RestoreFiles,
    obstacle=eligibility.no_obstacle,
    conflict=applies.no_conflict,
    effect=effects.no_effect,
)

ACTION_RULES: Final[tuple[ActionRules[Any], ...]] = (
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
"""Each kind once. What happens by itself is told of in this order."""

_BY_KIND: Final[Mapping[str, ActionRules[Any]]] = {rules.action.kind: rules for rules in ACTION_RULES}

UPKEEP_KEYS: Final[Mapping[ActionKind, str]] = {
    ActionKind(kind): rules.upkeep.key for kind, rules in _BY_KIND.items() if rules.upkeep is not None
}
"""The properties that let each kind happen by itself."""


def obstacle_of(action: Action, metadata: TableMetadata, policy: Policy, now: Instant) -> Reason | None:
    """Why an action that was planned must not be carried out on its table as it is now, or None."""
    return _BY_KIND[action.kind].obstacle(action, metadata, policy, now)


def still_applies(action: Action, table_id: TableId, metadata: TableMetadata) -> Reason | None:
    """Why an action cannot be carried out on the table as it is now, or None when it still applies.

    ``table_id`` is that of the table it was planned for. This is asked before a task is queued; the commit itself
    validates from the same snapshot once more.
    """
    if table_id != metadata.table_id:
        text = f"{metadata.name} is now another table (uuid {metadata.table_id.uuid}, planned {table_id.uuid})"
        return Reason("table-replaced", text)
    return _BY_KIND[action.kind].conflict(action, metadata)


def effect_of(task: Task, metadata: TableMetadata) -> Effect | None:
    """What the table has of a task, None where it has not taken effect. The table is the task's own."""
    return _BY_KIND[task.action.kind].effect(task.action, task, metadata)


def done_by_others(task: Task) -> Reason | None:
    """Why nothing is left to do where the effect is there before anybody tried; None where it can be our own alone."""
    return _BY_KIND[task.action.kind].done_by_others


def explain_prediction(prediction: Prediction | None) -> Sequence[str]:
    """What carrying out a plan would bring, in sentences."""
    return () if prediction is None else _BY_KIND[prediction.kind].explain(prediction)


def by_itself(policy: Policy) -> frozenset[ActionKind]:
    """What the owner lets happen by itself, beside work on data files."""
    upkeep = ((kind, rules.upkeep) for kind, rules in _BY_KIND.items() if rules.upkeep is not None)
    return frozenset(ActionKind(kind) for kind, its in upkeep if its.is_wanted(policy))


def upkeep_obstacle(action: Action, policy: Policy) -> Reason | None:
    """Why the owner does not let happen by itself any more what was planned by itself."""
    upkeep = _BY_KIND[action.kind].upkeep
    if upkeep is None:
        return None
    return upkeep.changed(action, policy) if upkeep.is_wanted(policy) else Reason("upkeep-off", upkeep.off)


def beyond_budget(plan: Plan) -> Reason | None:
    """Why somebody has to approve a plan, None when nobody has to."""
    found = (_BY_KIND[action.kind].over_budget(action) for action in plan.actions)
    return next((reason for reason in found if reason is not None), None)
