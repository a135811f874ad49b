"""What is decided of an action, whatever its kind: asked of the registry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from icewright.core.times import Instant
from icewright.maintenance.registry.services import ACTION_TYPES
from icewright.model.actions.actions import Action, ActionKind
from icewright.model.iceberg.names import TableId
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.plans import Prediction, Reason
from icewright.model.policy.policy import Policy
from icewright.model.work.tasks import Task
from icewright.plans.action_types import ActionRules, Effect

UPKEEP_KEYS: Final[Mapping[ActionKind, str]] = {
    ActionKind(kind): its.rules.upkeep.key for kind, its in ACTION_TYPES.items() if its.rules.upkeep is not None
}
"""The properties that let each kind happen by itself."""


def _rules(kind: str) -> ActionRules[Any]:
    return ACTION_TYPES[kind].rules


def obstacle_of(action: Action, metadata: TableMetadata, policy: Policy, now: Instant) -> Reason | None:
    """Why an action that was planned must not be carried out on its table as it is now, or None."""
    return _rules(action.kind).obstacle(action, metadata, policy, now)


def still_applies(action: Action, table_id: TableId, metadata: TableMetadata) -> Reason | None:
    """Why an action cannot be carried out on the table as it is now, or None when it still applies.

    ``table_id`` is that of the table it was planned for. This is asked before a task is queued; the commit itself
    validates from the same snapshot once more.
    """
    if table_id != metadata.table_id:
        text = f"{metadata.name} is now another table (uuid {metadata.table_id.uuid}, planned {table_id.uuid})"
        return Reason("table-replaced", text)
    return _rules(action.kind).conflict(action, metadata)


def effect_of(task: Task, metadata: TableMetadata) -> Effect | None:
    """What the table has of a task, None where it has not taken effect. The table is the task's own."""
    return _rules(task.action.kind).effect(task.action, task, metadata)


def done_by_others(task: Task) -> Reason | None:
    """Why nothing is left to do where the effect is there before anybody tried; None where it can be our own alone."""
    return _rules(task.action.kind).done_by_others


def explain_prediction(prediction: Prediction | None) -> Sequence[str]:
    """What carrying out a plan would bring, in sentences."""
    return () if prediction is None else _rules(prediction.kind).explain(prediction)


def automatic_kinds(policy: Policy) -> frozenset[ActionKind]:
    """What the owner wants automatically, work on data files apart."""
    upkeep = ((kind, its.rules.upkeep) for kind, its in ACTION_TYPES.items() if its.rules.upkeep is not None)
    return frozenset(ActionKind(kind) for kind, its in upkeep if its.is_wanted(policy))
