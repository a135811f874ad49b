"""Where a new task waits: told by its table's policy and properties as they were last seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from icewright.model.actions.actions import Action, ActionKind
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.plans.plans import Plan, Reason
from icewright.model.policy.resource_groups import OWN, resource_group
from icewright.model.work.lifecycle import TASKS_LOOKED_AT, queue_after
from icewright.model.work.tasks import NewTask
from icewright.plans.policy_digest import SETTINGS_DIGEST
from icewright.policy.effective import policy_of
from icewright.policy.groups.queue_place import QueuePlace, queue_place
from icewright.policy.owners import owner_of
from icewright.policy.source import PolicySource
from icewright.ports.store import TableStore, TaskFilter, TaskStore


class QueuePlaces:
    """Asks the record of a table; of one that was never looked at, nothing is known."""

    def __init__(self, tasks: TaskStore, tables: TableStore, policies: PolicySource) -> None:
        self._tasks, self._tables, self._policies = tasks, tables, policies

    def new_task(self, task_id: str, plan: Plan, *, priority: int, attempts_max: int) -> NewTask:
        """A task for the one action of a plan, with the points that its table has beside ``priority``."""
        (action,) = plan.actions
        if plan.prediction is None:
            raise TypeError(f"plan {plan.plan_id} has an action and no prediction")
        place = self.of(plan.table_id, plan.table_name, action)
        return NewTask(
            task_id=task_id,
            table_id=plan.table_id,
            table_name=plan.table_name,
            plan_id=plan.plan_id,
            action=action,
            reason=_reason(plan),
            prediction=plan.prediction,
            priority=priority + place.priority,
            resource_group=place.resource_group,
            attempts_max=attempts_max,
            lane=place.lane,
        )

    def of(self, table_id: TableId, name: TableName, action: Action) -> QueuePlace:
        """Where an action on a table waits; what the server does itself, in its own groups."""
        record = self._tables.record(table_id)
        properties: Mapping[str, str] = {} if record is None or record.properties is None else record.properties
        interval_ms = None if record is None else record.commit_interval_ms
        rules = self._policies.present().rules
        policy, owner = policy_of(name, properties, rules), owner_of(name, properties, rules)
        own = resource_group(action)
        if own in OWN:
            return replace(queue_place(policy, owner or "", interval_ms), resource_group=own)
        only = TaskFilter(table_id=table_id, kind=ActionKind(action.kind))
        latest = self._tasks.listed(only, limit=policy.large_successes + TASKS_LOOKED_AT)
        return queue_place(policy, owner or "", interval_ms, queue_after(latest, policy.large_successes))


def _reason(plan: Plan) -> Reason:
    """Why there is a task, with the digest of what its plan was made from: it goes where the plan's action goes."""
    if plan.settings_digest is None:
        return plan.reason
    return replace(plan.reason, figures={**plan.reason.figures, SETTINGS_DIGEST: plan.settings_digest})
