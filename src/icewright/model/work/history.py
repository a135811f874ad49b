"""What is kept of tasks that have ended, for whoever asks by SQL long after the store has forgotten them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final, Self

from icewright.core.errors import Unreadable
from icewright.core.times import Instant
from icewright.model.work.tasks import ListedTask

END_KEY: Final = "icewright.history.end"
"""The property in which the table says where it ends."""
FIELDS_KEY: Final = "icewright.history.fields"
"""The property in which the table says which of its columns is which of ours, by ids: names may be changed."""


@dataclass(frozen=True, slots=True, order=True)
class Ending:
    """How far the history is: behind the task that ended at that instant, and those of the same instant before it."""

    ended_at: Instant
    task_id: str

    def __str__(self) -> str:
        """As a table keeps it: ``1700000000000/task-1``."""
        return f"{self.ended_at}/{self.task_id}"

    @classmethod
    def read(cls, text: str) -> Self:
        """What :meth:`__str__` wrote. Raises :class:`Unreadable`."""
        ended_at, slash, task_id = text.partition("/")
        if not (ended_at.isascii() and ended_at.isdecimal() and slash and task_id):
            raise Unreadable(
                f"the history says that it ends at {text[:80]!r}, which is no place in it",
                hint="another program wrote this property; give the history another table",
            )
        return cls(int(ended_at), task_id)


@dataclass(frozen=True, slots=True)
class EndedTask:
    """One end of a task. One that was tried again by a person, or of which more turned up, ends once more.

    ``figures`` are what was measured, as JSON; instants are in ms since the epoch.
    """

    task_id: str
    catalog: str
    table: str
    table_uuid: str
    kind: str
    state: str
    attempts: int
    resource_group: str
    plan_id: str
    reason_code: str
    reason: str
    figures: str
    snapshot_id: int | None
    created_at: Instant
    ended_at: Instant

    @property
    def ending(self) -> Ending:
        """Where it is in the history."""
        return Ending(self.ended_at, self.task_id)


def ended(task: ListedTask) -> EndedTask:
    """What is kept of a task that has ended: the reason is that of its end, where it has one."""
    reason = task.reason if task.outcome is None else task.outcome.reason
    return EndedTask(
        task_id=task.task_id,
        catalog=task.table_id.catalog,
        table=str(task.table_name),
        table_uuid=task.table_id.uuid,
        kind=task.kind.value,
        state=task.state.value,
        attempts=task.attempt,
        resource_group=task.resource_group,
        plan_id=task.plan_id,
        reason_code=reason.code,
        reason=reason.text,
        figures=json.dumps(dict(reason.figures), sort_keys=True),
        snapshot_id=None if task.outcome is None else task.outcome.snapshot_id,
        created_at=task.created_at,
        ended_at=task.updated_at,
    )
