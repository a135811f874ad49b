"""What is known of tables, in memory: for a first look, for simulations, and as the plainest statement of the port."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from icewright.adapters.memory.task_store import MemoryTaskStore
from icewright.domain.actions import ActionKind
from icewright.domain.errors import Conflict, NotFound
from icewright.domain.events import CommitEvent, StoredEvent
from icewright.domain.files import Partition
from icewright.domain.inventory import ManifestKey, ManifestSummary, PartitionStatistics
from icewright.domain.jobs import OptimizerHello
from icewright.domain.layouts import Run
from icewright.domain.names import TableId, TableName
from icewright.domain.plans import Plan
from icewright.domain.storage import AccessRecord
from icewright.domain.tables import Instant
from icewright.ports.clock import Clock
from icewright.ports.store import (
    ACCESS_KEPT_MS,
    EVENTS_KEPT_MS,
    OPTIMIZERS_KEPT_MS,
    PLANS_KEPT,
    InventoryUpdate,
    OptimizerRecord,
    TableRecord,
    WaitingPlan,
)


@dataclass(slots=True)
class _StoredInventory:
    manifests: dict[ManifestKey, ManifestSummary] = field(default_factory=dict)
    partitions: dict[Partition, PartitionStatistics] = field(default_factory=dict)
    runs: dict[int, Run] = field(default_factory=dict)


class MemoryTableStore:
    """A :class:`~icewright.ports.store.TableStore` that is gone with the process. One lock makes it thread-safe.

    ``tasks`` is the queue whose tasks' plans are kept; without one no task is taken to need a plan.
    """

    def __init__(self, clock: Clock, tasks: MemoryTaskStore | None = None) -> None:
        self._clock = clock
        self._tasks = tasks
        self._lock = threading.RLock()
        self._records: dict[TableId, TableRecord] = {}
        self._inventories: dict[TableId, _StoredInventory] = {}
        self._plans: dict[str, Plan] = {}
        self._waiting: dict[tuple[TableId, ActionKind], WaitingPlan] = {}
        self._events_received = 0
        self._events: dict[tuple[TableName, int], StoredEvent] = {}
        self._accesses: dict[tuple[str, str], AccessRecord] = {}
        self._optimizers: dict[str, OptimizerRecord] = {}

    def record(self, table_id: TableId) -> TableRecord | None:
        """See the port."""
        with self._lock:
            return self._records.get(table_id)

    def record_by_name(self, name: TableName) -> TableRecord | None:
        """See the port."""
        with self._lock:
            return next((r for r in self._records.values() if r.name == name and r.dropped_at is None), None)

    def records(self, *, catalog: str | None = None, limit: int, after: TableId | None = None) -> Sequence[TableRecord]:
        """See the port."""
        with self._lock:
            found = [
                record
                for table_id, record in sorted(self._records.items())
                if record.dropped_at is None
                and (catalog is None or table_id.catalog == catalog)
                and (after is None or table_id > after)
            ]
            return found[:limit]

    def save_record(self, record: TableRecord) -> None:
        """See the port."""
        with self._lock:
            former = self.record_by_name(record.name)
            if former is not None and former.table_id != record.table_id and record.dropped_at is None:
                self._records[former.table_id] = replace(former, dropped_at=record.observed_at)
            self._records[record.table_id] = record

    def due(self, now: Instant, limit: int) -> Sequence[TableRecord]:
        """See the port."""
        with self._lock:
            found = [r for r in self._records.values() if r.dropped_at is None and r.next_look_at <= now]
            return sorted(found, key=lambda record: (record.next_look_at, record.table_id))[:limit]

    def apply_inventory(self, update: InventoryUpdate) -> None:
        """See the port."""
        with self._lock:
            self.save_record(update.record)
            stored = self._inventories.setdefault(update.record.table_id, _StoredInventory())
            for key in update.removed_manifests:
                stored.manifests.pop(key, None)
            for summary in update.added_manifests:
                stored.manifests[summary.key] = summary
            for partition in update.removed_partitions:
                stored.partitions.pop(partition, None)
            for statistics in update.changed_partitions:
                stored.partitions[statistics.partition] = statistics
            for snapshot_id in update.removed_runs:
                stored.runs.pop(snapshot_id, None)
            stored.runs.update(update.added_runs)

    def manifest_keys(self, table_id: TableId) -> Sequence[ManifestKey]:
        """See the port."""
        with self._lock:
            return sorted(self._inventory(table_id).manifests)

    def manifest_summaries(
        self, table_id: TableId, partitions: frozenset[Partition] | None = None
    ) -> Iterable[ManifestSummary]:
        """See the port."""
        with self._lock:
            summaries = list(self._inventory(table_id).manifests.values())
        return (s for s in summaries if partitions is None or not partitions.isdisjoint(s.partitions))

    def partitions(
        self, table_id: TableId, *, limit: int | None = None, after: Partition | None = None
    ) -> Sequence[PartitionStatistics]:
        """See the port."""
        with self._lock:
            stored = sorted(self._inventory(table_id).partitions.items())
            return [statistics for partition, statistics in stored if after is None or partition > after][:limit]

    def runs(self, table_id: TableId) -> Mapping[int, Run]:
        """See the port."""
        with self._lock:
            return dict(self._inventory(table_id).runs)

    def save_plan(self, plan: Plan, *, is_present: bool = True) -> None:
        """See the port."""
        with self._lock:
            if self._plans.get(plan.plan_id, plan) != plan:
                raise Conflict(f"there is another plan {plan.plan_id} already")
            self._plans[plan.plan_id] = plan
            record = self._records.get(plan.table_id)
            if record is not None and is_present:
                self._records[plan.table_id] = replace(record, plan_id=plan.plan_id)

    def plan(self, plan_id: str) -> Plan:
        """See the port."""
        with self._lock:
            plan = self._plans.get(plan_id)
            if plan is None:
                raise NotFound(f"no plan {plan_id}")
            return plan

    def plans(self, table_id: TableId, *, limit: int) -> Sequence[Plan]:
        """See the port."""
        with self._lock:
            found = [plan for plan in self._plans.values() if plan.table_id == table_id]
            return sorted(found, key=lambda plan: (plan.planned_at, plan.plan_id), reverse=True)[:limit]

    def wait(self, waiting: WaitingPlan) -> None:
        """See the port."""
        with self._lock:
            self._waiting[waiting.table_id, waiting.kind] = waiting

    def waits(self, table_id: TableId, kind: ActionKind) -> WaitingPlan | None:
        """See the port."""
        with self._lock:
            return self._waiting.get((table_id, kind))

    def waits_no_more(self, table_id: TableId, kind: ActionKind) -> None:
        """See the port."""
        with self._lock:
            self._waiting.pop((table_id, kind), None)

    def waiting(self, *, limit: int, after: str | None = None) -> Sequence[WaitingPlan]:
        """See the port."""
        with self._lock:
            found = sorted(
                (one for one in self._waiting.values() if self._is_there(one.table_id)), key=lambda one: one.plan_id
            )
            return [one for one in found if after is None or one.plan_id > after][:limit]

    def _is_there(self, table_id: TableId) -> bool:
        record = self._records.get(table_id)
        return record is not None and record.dropped_at is None

    def receive(self, event: CommitEvent) -> bool:
        """See the port."""
        with self._lock:
            key = (event.table_name, event.snapshot_id)
            if key in self._events:
                return False
            self._events_received += 1
            self._events[key] = StoredEvent(self._events_received, event, self._clock.now(), None)
            return True

    def inbox(self, limit: int) -> Sequence[StoredEvent]:
        """See the port."""
        with self._lock:
            return [event for event in self._events.values() if event.done_at is None][:limit]

    def done(self, event_ids: Sequence[int]) -> None:
        """See the port."""
        with self._lock:
            ids, now = set(event_ids), self._clock.now()
            for key, event in self._events.items():
                if event.event_id in ids and event.done_at is None:
                    self._events[key] = replace(event, done_at=now)

    def prune(self, now: Instant) -> None:
        """See the port."""
        with self._lock:
            worked_on = [
                key
                for key, event in self._events.items()
                if event.done_at is not None and event.done_at < now - EVENTS_KEPT_MS
            ]
            for key in worked_on:
                del self._events[key]
            old = [key for key, access in self._accesses.items() if access.decided_at < now - ACCESS_KEPT_MS]
            for key_of_access in old:
                del self._accesses[key_of_access]
            self._optimizers = {
                optimizer_id: seen
                for optimizer_id, seen in self._optimizers.items()
                if seen.seen_at >= now - OPTIMIZERS_KEPT_MS
            }
            self._waiting = {key: one for key, one in self._waiting.items() if self._is_there(one.table_id)}
            needed = {record.plan_id for record in self._records.values()}
            needed |= {one.plan_id for one in self._waiting.values()}
            if self._tasks is not None:
                needed |= self._tasks.plan_ids()
            for table_id in {plan.table_id for plan in self._plans.values()}:
                needed |= {plan.plan_id for plan in self.plans(table_id, limit=PLANS_KEPT)}
            self._plans = {plan_id: plan for plan_id, plan in self._plans.items() if plan_id in needed}

    def save_access(self, record: AccessRecord) -> None:
        """See the port."""
        with self._lock:
            self._accesses[record.catalog, record.root] = record

    def access(self, catalog: str, root: str) -> AccessRecord | None:
        """See the port."""
        with self._lock:
            return self._accesses.get((catalog, root))

    def optimizer_seen(self, hello: OptimizerHello) -> None:
        """See the port."""
        with self._lock:
            self._optimizers[hello.optimizer_id] = OptimizerRecord(hello, self._clock.now())

    def optimizers(self) -> Sequence[OptimizerRecord]:
        """See the port."""
        with self._lock:
            return sorted(self._optimizers.values(), key=lambda seen: (-seen.seen_at, seen.hello.optimizer_id))

    def _inventory(self, table_id: TableId) -> _StoredInventory:
        return self._inventories.get(table_id, _StoredInventory())
