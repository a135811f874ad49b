"""Requests of tasks, and of the queue that they wait in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from icewright.api_client.connection import (
    Connection,
    Page,
    part,
)
from icewright.core.codec import to_json
from icewright.model.iceberg.tables import Json
from icewright.model.work.optimizers import BacklogRequest
from icewright.model.work.tasks import TaskState


class QueueCalls(Connection):
    """Tasks with their attempts, resource groups, halts, and what waits for optimizers."""

    def backlog(self, asked: BacklogRequest, catalogs: Sequence[str]) -> Json:
        """What waits for optimizers of a group that reach these catalogs: a ``Backlog``."""
        body: dict[str, Any] = {"cores": asked.cores, "memory_bytes": asked.memory_bytes}
        body |= {} if asked.submitting is None else to_json(asked.submitting)
        said = {key: value for key, value in body.items() if value is not None}
        queues = [queue.value for queue in asked.queues]
        actions = [f"{kind}:{version}" for kind, version in asked.actions.items()]
        lists = {"catalog": list(catalogs), "queue": queues, "action": actions}
        return self.ask("GET", "/backlog", {"resource_group": asked.resource_group, **lists, **said})

    def tasks(
        self,
        *,
        states: tuple[TaskState, ...] = (),
        table: Json | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page:
        """Tasks, newest first; ``table`` is a summary that :meth:`table` gave."""
        of_table = {} if table is None else {"table": table["uuid"], "catalog": table["catalog"]}
        wanted = [state.value for state in states]
        return self.page("/tasks", {"state": wanted, **of_table, "limit": limit, "cursor": cursor})

    def task(self, task_id: str) -> Json:
        """One task with its history and attempts."""
        return self.ask("GET", f"/tasks/{part(task_id)}")

    def attempts(self, task_id: str, *, limit: int = 100, cursor: str | None = None) -> Page:
        """All tries of a task, oldest first: a ``ListedAttempt`` each."""
        return self.page(f"/tasks/{part(task_id)}/attempts", {"limit": limit, "cursor": cursor})

    def attempt(self, task_id: str, number: int) -> Json:
        """One try of a task with its report: an ``AttemptDocument``. Raises ``NotFound``."""
        return self.ask("GET", f"/tasks/{part(task_id)}/attempts/{number}")

    def log(self, task_id: str, attempt: int | None = None) -> Json:
        """What a try of a task logged last, the last one where None is said: an ``AttemptLog``. Raises ``NotFound``."""
        return self.ask("GET", f"/tasks/{part(task_id)}/logs", {"attempt": attempt})

    def cancel(self, task_id: str) -> Json:
        """Cancel a task; the task."""
        return self.ask("POST", f"/tasks/{part(task_id)}/cancel")

    def expedite(self, task_id: str) -> Json:
        """Have a waiting task started before all others of its group; the task."""
        return self.ask("POST", f"/tasks/{part(task_id)}/expedite")

    def retry(self, task_id: str) -> Json:
        """Queue a failed or cancelled task again; the task."""
        return self.ask("POST", f"/tasks/{part(task_id)}/retry")

    def undo(self, task_id: str) -> Json:
        """Have it planned to take a task back, to be applied: a ``PlanView``."""
        return self.ask("POST", f"/tasks/{part(task_id)}/undo")

    def queue(self) -> Json:
        """What of the queue is halted: a ``QueueView``."""
        return self.ask("GET", "/queue")

    def groups(self, *, limit: int = 100, cursor: str | None = None) -> Page:
        """Resource groups by name: a ``GroupView`` each."""
        return self.page("/groups", {"limit": limit, "cursor": cursor})

    def group(self, name: str) -> Json:
        """One resource group in full: a ``GroupDocument``. Raises ``NotFound``."""
        return self.ask("GET", f"/groups/{part(name)}")

    def decisions(self, *, only_standing: bool = False, limit: int = 100, cursor: str | None = None) -> Page:
        """Decisions of autotuning, the newest first: a ``DecisionView`` each."""
        only = {"standing": "true" if only_standing else None}
        return self.page("/autotune", {**only, "limit": limit, "cursor": cursor})

    def decision(self, decision_id: str) -> Json:
        """One decision of autotuning: a ``DecisionView``. Raises ``NotFound``."""
        return self.ask("GET", f"/autotune/{part(decision_id)}")

    def change_decision(self, verb: str, decision_id: str, why: str) -> Json:
        """``hold`` or ``release`` a decision of autotuning: a ``DecisionView``. Raises ``NotFound``, ``Conflict``."""
        return self.ask("POST", f"/autotune/{part(decision_id)}/{verb}", body={"why": why})

    def change_queue(self, verb: str, asked: Json) -> Json:
        """Pause, drain, stop or resume a part of the queue: a ``HaltView``, or a ``Resumed``."""
        return self.ask("POST", f"/queue/{verb}", body=asked)
