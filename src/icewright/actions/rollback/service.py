"""Rollbacks of ``main``: planned because a person asks, and carried out by the server itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final

from icewright.actions.rollback.plan import decide_rollback
from icewright.actions.rollback.port import Rollbacks
from icewright.core import wording
from icewright.core.errors import InvalidMessage, NotFound
from icewright.core.times import Instant
from icewright.model.actions.expire_snapshots import Hold
from icewright.model.actions.rollback import Rollback, RollbackRequest
from icewright.model.plans.observation import Observation
from icewright.model.work.jobs import Committed, Result
from icewright.model.work.tasks import Task
from icewright.plans.action_types import Planned, Planning
from icewright.plans.standalone_plan import keep_decided

_INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_HINT: Final = "either a snapshot id, or an instant with its zone: 2026-11-22T10:00:00Z"


def plan_asked(planner: Planning, observation: Observation, asked: RollbackRequest, holds: Sequence[Hold]) -> Planned:
    """The plan of a rollback. ``holds`` are of tasks that have not ended.

    Raises :class:`InvalidMessage` for what says no place to go back to.
    """
    if (asked.to_snapshot is None) == (asked.to_time is None):
        raise InvalidMessage("a rollback is to a snapshot or to an instant", hint=_HINT)
    metadata, policy = observation.metadata, planner.policy(observation.metadata)
    to_time = None if asked.to_time is None else _instant(asked.to_time)
    decision = decide_rollback(metadata, policy, to_snapshot=asked.to_snapshot, to_time=to_time, holds=holds)
    return Planned(keep_decided(planner, metadata, policy, decision, asked=True), observation, policy)


class Rollbacker:
    """Carries out rollbacks on the tables of all catalogs that can be written to."""

    def __init__(self, rollbacks: Mapping[str, Rollbacks]) -> None:
        self._rollbacks = dict(rollbacks)

    def carry_out(self, task: Task, may_commit: Callable[[], None]) -> Result:
        """Set ``main`` as the action says. Raises as :meth:`Rollbacks.roll_back`."""
        if not isinstance(task.action, Rollback):
            raise TypeError(f"task {task.task_id} rolls nothing back")
        rollbacks = self._rollbacks.get(task.table_name.catalog)
        if rollbacks is None:
            raise NotFound(f"no catalog {task.table_name.catalog!r} is configured")
        rollbacks.roll_back(task.table_name, task.table_id, task.action, task_id=task.task_id, may_commit=may_commit)
        return Committed(None)


def _instant(text: str) -> Instant:
    if not _INSTANT.fullmatch(text):
        raise InvalidMessage(f"{wording.quoted(text)} is no instant with a zone", hint=_HINT)
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        raise InvalidMessage(f"{wording.quoted(text)} is no instant", hint=_HINT) from error
