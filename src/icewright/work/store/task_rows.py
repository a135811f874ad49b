"""Tasks, attempts and history as rows, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from sqlalchemy import RowMapping

from icewright.model.actions.actions import ActionFigures, ActionKind, shareable_bytes
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.plans.plans import Prediction, Reason
from icewright.model.policy.resource_groups import Queue
from icewright.model.work.admission import Holding, Lane, Urgency
from icewright.model.work.tasks import (
    Attempt,
    AttemptState,
    HistoryEntry,
    Lease,
    ListedTask,
    Outcome,
    Progress,
    Task,
    TaskState,
)
from icewright.ports.store import AttemptOfTask
from icewright.store.documents import dump, dump_optional, load, load_optional, pack
from icewright.work.groups.rank import ranked_at
from icewright.work.store.actions import KeptActions, digest_of

_actions = KeptActions()
_FIGURES: Final = cast("Any", ActionFigures)
_PREDICTION: Final = cast("Any", Prediction)


def task_row(task: Task) -> dict[str, Any]:
    """A task as the columns of ``tasks``; :func:`action_row` has the rest."""
    return {
        **task_columns(task),
        "figures": dump(task.figures),
        "shareable_bytes": shareable_bytes(task.action),
    }


def action_row(task: Task) -> dict[str, Any]:
    """The action of a task as the columns of ``task_actions``: it does not change while a task is worked on."""
    packed = pack(task.action)
    return {"task_id": task.task_id, "digest": digest_of(packed), "action": packed}


def task_columns(task: Task) -> dict[str, Any]:
    """As :func:`task_row`, without what is told by the action."""
    return {
        **_standing_columns(task),
        "task_id": task.task_id,
        "catalog": task.table_id.catalog,
        "table_uuid": task.table_id.uuid,
        "kind": task.action.kind,
        "table_slot": task.kind.traits.slot.value,
        "table_name": dump(task.table_name),
        "plan_id": task.plan_id,
        "resource_group": task.resource_group,
        "lane": lane_text(task.lane),
        "priority": task.priority,
        "ranked_at": ranked_at(task.priority, task.created_at),
        "attempts_max": task.attempts_max,
        "created_at": task.created_at,
        "not_before_at": task.not_before_at,
        "cancel_requested": task.cancel_requested,
        "reason": dump(task.reason),
        "prediction": dump(task.prediction),
        "progress": dump_optional(task.progress),
        "outcome": dump_optional(task.outcome),
    }


def claimed_columns(task: Task) -> dict[str, Any]:
    """Those of :func:`task_columns` that a claim changes."""
    return {**_standing_columns(task), "progress": None}


def _standing_columns(task: Task) -> dict[str, Any]:
    lease = task.lease
    return {
        "state": task.state.value,
        "version": task.version,
        "attempt": task.attempt,
        "updated_at": task.updated_at,
        "lease_optimizer_id": None if lease is None else lease.optimizer_id,
        "lease_fencing_token": None if lease is None else lease.fencing_token,
        "lease_expires_at": None if lease is None else lease.expires_at,
        "held_cores": None if lease is None else lease.holding.cores,
        "held_memory_bytes": None if lease is None else lease.holding.memory_bytes,
        "held_resident": None if lease is None else lease.holding.is_resident,
    }


def task_of(row: RowMapping, read: Callable[[], bytes]) -> Task:
    """A row of ``tasks`` with the ``digest`` of its action as a task; ``read`` is asked for an action not seen yet."""
    return Task(**_head(row), action=_actions.get(row["digest"], read))


def is_action_kept(row: RowMapping) -> bool:
    """Whether :func:`task_of` would not ask for the action."""
    return _actions.has(row["digest"])


def listed_of(row: RowMapping) -> ListedTask:
    """A row of ``tasks`` as a task for lists; ``figures`` is there."""
    return ListedTask(**_head(row), figures=load(_FIGURES, row["figures"]))


def _head(row: RowMapping) -> dict[str, Any]:
    return {
        "task_id": row["task_id"],
        "table_id": TableId(row["catalog"], row["table_uuid"]),
        "table_name": load(TableName, row["table_name"]),
        "plan_id": row["plan_id"],
        "reason": load(Reason, row["reason"]),
        "prediction": load(_PREDICTION, row["prediction"]),
        "priority": row["priority"],
        "resource_group": row["resource_group"],
        "lane": lane_of(row["lane"]),
        "attempts_max": row["attempts_max"],
        "state": TaskState(row["state"]),
        "version": row["version"],
        "attempt": row["attempt"],
        "created_at": row["created_at"],
        "updated_at": row["updated_at"],
        "not_before_at": row["not_before_at"],
        "lease": _lease(row),
        "progress": load_optional(Progress, row["progress"]),
        "cancel_requested": row["cancel_requested"],
        "outcome": load_optional(Outcome, row["outcome"]),
    }


def _lease(row: RowMapping) -> Lease | None:
    if row["lease_fencing_token"] is None:
        return None
    holding = Holding(row["held_cores"], row["held_memory_bytes"], row["held_resident"])
    return Lease(row["lease_optimizer_id"], row["lease_fencing_token"], row["lease_expires_at"], holding)


def lane_text(lane: Lane) -> str:
    """A lane as a column: one, so that an index can be walked from lane to lane."""
    return f"{lane.queue.value}/{lane.urgency.value}/{lane.tenant}"


def lane_of(text: str) -> Lane:
    """A lane from its column."""
    queue, urgency, tenant = text.split("/", 2)
    return Lane(Queue(queue), Urgency(urgency), tenant)


def history_row(entry: HistoryEntry) -> dict[str, Any]:
    """A history entry as the columns of ``task_history``."""
    return {
        "task_id": entry.task_id,
        "version": entry.version,
        "state": entry.state.value,
        "attempt": entry.attempt,
        "at": entry.at,
        "reason": dump(entry.reason),
    }


def history_of(row: RowMapping) -> HistoryEntry:
    """A row of ``task_history`` as a history entry."""
    return HistoryEntry(
        row["task_id"], row["version"], TaskState(row["state"]), row["attempt"], row["at"], load(Reason, row["reason"])
    )


def attempt_row(attempt: Attempt) -> dict[str, Any]:
    """An attempt as the columns of ``attempts``."""
    return {
        "task_id": attempt.task_id,
        "attempt": attempt.attempt,
        "optimizer_id": attempt.optimizer_id,
        "fencing_token": attempt.fencing_token,
        "state": attempt.state.value,
        "started_at": attempt.started_at,
        "ended_at": attempt.ended_at,
        "progress": dump_optional(attempt.progress),
        "report": attempt.report_json,
    }


def attempt_of(row: RowMapping) -> Attempt:
    """A row of ``attempts`` as an attempt."""
    return Attempt(
        task_id=row["task_id"],
        attempt=row["attempt"],
        optimizer_id=row["optimizer_id"],
        fencing_token=row["fencing_token"],
        state=AttemptState(row["state"]),
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        progress=load_optional(Progress, row["progress"]),
        report_json=row["report"],
    )


def attempt_of_task(row: RowMapping) -> AttemptOfTask:
    """A row of attempts joined with their tasks."""
    return AttemptOfTask(
        attempt=attempt_of(row),
        table_name=load(TableName, row["table_name"]),
        table_id=TableId(row["catalog"], row["table_uuid"]),
        kind=ActionKind(row["kind"]),
        resource_group=row["resource_group"],
        queued_at=row["created_at"],
    )
