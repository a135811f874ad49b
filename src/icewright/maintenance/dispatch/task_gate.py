"""Whether a task may still run: what its owner allows, and what its table is by now.

Asked when a task is kept waiting, when it is given out, and right before its commit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from icewright.actions.rewrite_data_files.executors import executor_obstacle
from icewright.core.errors import NotFound
from icewright.core.times import Instant
from icewright.maintenance.registry.planning import obstacle_of, still_applies
from icewright.maintenance.registry.services import ACTION_TYPES
from icewright.model.actions.actions import RewriteDataFiles, traits_of
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import Mode, Policy
from icewright.model.policy.time_windows import window_of
from icewright.model.work.tasks import Task
from icewright.observation.observer import Observer
from icewright.plans.action_types import upkeep_obstacle
from icewright.plans.policy_digest import SETTINGS_DIGEST, policy_changed
from icewright.plans.window import closed
from icewright.policy.effective import policy_of
from icewright.policy.source import PolicySource
from icewright.ports.store import TableStore

APPROVED: Final = "approved"
"""The figure in a task's reason that says: a person applied exactly this plan."""

NOT_OBSERVE: Final = "set the table property icewright.mode to approve or auto, then plan again"


class TaskGate:
    """Answers for all tasks, by the tables as they are now."""

    def __init__(
        self, tables: TableStore, observer: Observer, policies: PolicySource, now: Callable[[], Instant]
    ) -> None:
        """``now`` is by the store's clock."""
        self._tables, self._observer, self._policies, self._now = tables, observer, policies, now

    def obstacle(self, task: Task, metadata: TableMetadata) -> Reason | None:
        """Why a task that has not committed must not run on its table as it is now, None when it may."""
        if task.table_name != metadata.name:
            return Reason("table-renamed", f"{task.table_name} is called {metadata.name} now")
        policy = self._policies.policy(metadata)
        return (
            self._mode_obstacle(task, policy.mode)
            or _upkeep_obstacle(task, policy)
            or self._window_obstacle(task, policy)
            or still_applies(task.action, task.table_id, metadata)
            or obstacle_of(task.action, metadata, policy, self._now())
            or self._policy_obstacle(task, policy)
        )

    def _policy_obstacle(self, task: Task, policy: Policy) -> Reason | None:
        """Whether the task was planned by other settings. Not asked before a commit: what began under them may end."""
        return policy_changed(task.action.kind, task.reason.figures.get(SETTINGS_DIGEST), policy)

    def _mode_obstacle(self, task: Task, mode: Mode) -> Reason | None:
        if traits_of(task.action.kind).in_mode_observe:
            return None  # files come back whatever the owner lets be done to the table
        if mode is Mode.OBSERVE:
            return Reason("mode-observe", "the policy now only observes the table")
        if mode is Mode.APPROVE and APPROVED not in task.reason.figures:
            return Reason("mode-approve", "the owner now approves plans, and this one is not approved")
        return None

    def _window_obstacle(self, task: Task, policy: Policy) -> Reason | None:
        """Whether its maintenance window is closed. Not asked before a commit: what began in it may end after it."""
        window = window_of(policy) if _is_upkeep(task) else None
        shut = None if window is None else closed(window, self._now())
        return None if shut is None else shut.reason()

    def known_obstacle(self, task: Task) -> Reason | None:
        """As :meth:`obstacle`, of a table that cannot be asked: what its last plan knows counts, and its properties."""
        record = self._tables.record(task.table_id)
        known = None if record is None or record.plan_id is None else self._tables.plan(record.plan_id)
        if known is not None and known.mode is Mode.OBSERVE:
            return Reason("mode-observe", "the policy now only observes the table")
        if record is None or record.properties is None:
            return None
        policy = policy_of(record.name, record.properties, self._policies.present().rules)
        return self._policy_obstacle(task, policy)

    def veto(self, task: Task) -> Reason | None:
        """Why the owner does not want a task to commit any more.

        Whether the table still fits is not asked here: the commit itself is validated against it.
        """
        try:
            metadata = self._observer.catalog(task.table_name.catalog).load(task.table_name)
        except NotFound:
            return None
        if metadata.table_id != task.table_id:
            return None
        found = metadata.snapshot_of_task(task.task_id)
        if found is not None and found in metadata.ancestors():
            return None  # an earlier attempt, or this one already: there is nothing left to commit
        if found is not None:
            text = f"the owner rolled snapshot {found.snapshot_id} back, which an earlier attempt committed"
            return Reason("rolled-back", text)
        policy = self._policies.policy(metadata)
        return (
            self._mode_obstacle(task, policy.mode)
            or _upkeep_obstacle(task, policy)
            or obstacle_of(task.action, metadata, policy, self._now())
            or (executor_obstacle(task.action, metadata) if isinstance(task.action, RewriteDataFiles) else None)
        )


def _is_upkeep(task: Task) -> bool:
    """Whether it happens by itself beside work on data files."""
    return not isinstance(task.action, RewriteDataFiles) and APPROVED not in task.reason.figures


def _upkeep_obstacle(task: Task, policy: Policy) -> Reason | None:
    """Why the owner does not want any more what was planned by itself; that a person approved it does not matter."""
    return None if task.was_asked_for else upkeep_obstacle(ACTION_TYPES, task.action, policy)
