"""What is known of tables, in memory: for a first look, for simulations, and as the plainest statement of the port."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from icewright.audit.port import acting
from icewright.core.clock import Clock
from icewright.core.errors import Conflict, LookLost, NotFound
from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.access.permissions import EVERYWHERE, Scope, Scopes, covers
from icewright.model.actions.actions import ActionKind
from icewright.model.events.events import Channel, CommitEvent, EventFigures, StoredEvent, Told
from icewright.model.events.messages import SHARE_MAX, WAITING_MAX
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.inventory import ManifestKey, ManifestSummary, PartitionStatistics
from icewright.model.iceberg.layouts import Run
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.plans.plans import Plan
from icewright.model.work.jobs import OptimizerHello
from icewright.model.work.lifecycle import LIVE_STATES
from icewright.model.work.retention import RETENTION, Retention, RowKind
from icewright.ports.census import TableCensus
from icewright.ports.inbox import EventFilter
from icewright.ports.store import (
    AT_ONCE,
    ROWS_AT_ONCE_MAX,
    InventoryUpdate,
    OptimizerRecord,
    PlanPlace,
    TableRecord,
    WaitingPlan,
)
from tests.doubles.findings import MemoryFindings
from tests.doubles.inbox import MemoryInbox
from tests.doubles.names import MemoryNames
from tests.doubles.submitters import MemorySubmitters
from tests.doubles.table_lists import MemoryTableLists
from tests.doubles.task_store import MemoryTaskStore


@dataclass(slots=True)
class _StoredInventory:
    manifests: dict[ManifestKey, ManifestSummary] = field(default_factory=dict)
    partitions: dict[Partition, PartitionStatistics] = field(default_factory=dict)
    runs: dict[int, Run] = field(default_factory=dict)


class MemoryTableStore(MemoryFindings):
    """A :class:`~icewright.ports.store.TableStore` that is gone with the process. One lock makes it thread-safe.

    ``tasks`` is the queue whose tasks' plans are kept; without one no task is taken to need a plan. It is told of
    the tables' names, as whoever else takes ``names``.
    """

    def __init__(self, clock: Clock, tasks: MemoryTaskStore | None = None) -> None:
        super().__init__()
        self._clock = clock
        self._tasks = tasks
        self.names = MemoryNames() if tasks is None else tasks.names
        self._records: dict[TableId, TableRecord] = {}
        self._inventories: dict[TableId, _StoredInventory] = {}
        self._plans: dict[str, Plan] = {}
        self._asked_by: dict[str, str] = {}
        self._waiting: dict[tuple[TableId, ActionKind], WaitingPlan] = {}
        self._inbox = MemoryInbox()
        self._optimizers: dict[str, OptimizerRecord] = {}
        self.submitters = MemorySubmitters(clock)
        self.lists = MemoryTableLists(lambda: list(self._records.values()))
        self.has_removals: Callable[[TableId], bool] = lambda _: False
        """Whether a removal is there of a table; the store of removals beside this one says so."""

    def record(self, table_id: TableId) -> TableRecord | None:
        """See the port."""
        with self._lock:
            return self._records.get(table_id)

    def record_by_name(self, name: TableName) -> TableRecord | None:
        """See the port."""
        with self._lock:
            return next((r for r in self._records.values() if r.name == name and r.dropped_at is None), None)

    def records_by_name(self, names: Collection[TableName]) -> Mapping[TableName, TableRecord]:
        """See the port."""
        with self._lock:
            return {r.name: r for r in self._records.values() if r.name in frozenset(names) and r.dropped_at is None}

    def unknown(self, catalog: str, names: Collection[TableName]) -> frozenset[TableName]:
        """See the port."""
        with self._lock:
            present = (r for r in self._records.values() if r.dropped_at is None)
            return frozenset(names) - {r.name for r in present if r.table_id.catalog == catalog}

    def records(
        self, *, catalog: str | None = None, limit: int, after: TableId | None = None, within: Scopes = EVERYWHERE
    ) -> Sequence[TableRecord]:
        """See the port."""
        with self._lock:
            found = [
                record
                for table_id, record in sorted(self._records.items())
                if record.dropped_at is None
                and (catalog is None or table_id.catalog == catalog)
                and (after is None or table_id > after)
                and covers(within, Scope.of(record.name))
            ]
            return found[:limit]

    def save_record(self, record: TableRecord) -> None:
        """See the port."""
        with self._lock:
            stored = self._records.get(record.table_id)
            if record.revision != (0 if stored is None else stored.revision):
                raise LookLost(f"another look at {record.name} was written first")
            former = self.record_by_name(record.name)
            if former is not None and former.table_id != record.table_id and record.dropped_at is None:
                self._change(former, dropped_at=record.observed_at)
            self._change(record)

    def due(self, now: Instant, limit: int) -> Sequence[TableRecord]:
        """See the port."""
        with self._lock:
            found = [r for r in self._records.values() if r.dropped_at is None and r.next_look_at <= now]
            return sorted(found, key=lambda record: (record.next_look_at, record.table_id))[:limit]

    def look_by(self, table_ids: Sequence[TableId], at: Instant) -> None:
        """See the port."""
        with self._lock:
            for table_id in table_ids:
                record = self._records.get(table_id)
                if record is not None and record.next_look_at > at:
                    self._change(record, next_look_at=at)

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

    def look_at_once(self, name: TableName) -> None:
        """See the port."""
        with self._lock:
            record = self.record_by_name(name)
            if record is not None:
                self._change(record, next_look_at=min(AT_ONCE, record.next_look_at - 1))

    def _change(self, record: TableRecord, **changes: Any) -> None:
        self.names[record.table_id] = record.name
        changed = self._records[record.table_id] = replace(record, revision=record.revision + 1, **changes)
        self.lists.note(changed)

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
            if plan.asked or plan.migration is not None:
                self._asked_by.setdefault(plan.plan_id, acting())
            self._plans[plan.plan_id] = plan
            record = self._records.get(plan.table_id)
            if record is not None and is_present:
                self._change(record, plan_id=plan.plan_id)

    def plan(self, plan_id: str) -> Plan:
        """See the port."""
        with self._lock:
            plan = self._plans.get(plan_id)
            if plan is None:
                raise NotFound(f"no plan {plan_id}")
            return plan

    def asked_by(self, plan_id: str) -> str | None:
        """See the port."""
        with self._lock:
            return self._asked_by.get(plan_id)

    def plans(self, table_id: TableId, *, limit: int, before: PlanPlace | None = None) -> Sequence[Plan]:
        """See the port."""
        with self._lock:
            end = None if before is None else (before.planned_at, before.plan_id)
            own = [plan for plan in self._plans.values() if plan.table_id == table_id]
            found = [plan for plan in own if end is None or (plan.planned_at, plan.plan_id) < end]
            return sorted(found, key=lambda plan: (plan.planned_at, plan.plan_id), reverse=True)[:limit]

    def wait(self, waiting: WaitingPlan) -> None:
        """See the port."""
        with self._lock:
            self._waiting[waiting.table_id, waiting.kind] = waiting

    def waits(self, table_id: TableId) -> Mapping[ActionKind, WaitingPlan]:
        """See the port."""
        with self._lock:
            return {kind: one for (of, kind), one in self._waiting.items() if of == table_id}

    def waits_no_more(self, table_id: TableId, kind: ActionKind) -> None:
        """See the port."""
        with self._lock:
            self._waiting.pop((table_id, kind), None)

    def waiting(self, *, limit: int, after: str | None = None, within: Scopes = EVERYWHERE) -> Sequence[WaitingPlan]:
        """See the port."""
        with self._lock:
            there = (one for one in self._waiting.values() if self._is_there(one.table_id))
            found = sorted(
                (one for one in there if self.names.is_in(one.table_id, within)), key=lambda one: one.plan_id
            )
            return [one for one in found if after is None or one.plan_id > after][:limit]

    def _is_there(self, table_id: TableId) -> bool:
        record = self._records.get(table_id)
        return record is not None and record.dropped_at is None

    def receive(
        self,
        *events: CommitEvent,
        channel: Channel = Channel.HTTP,
        reporter: str = "",
        waiting_max: int = WAITING_MAX,
        share_max: int = SHARE_MAX,
    ) -> int:
        """See the port."""
        with self._lock:
            now = self._clock.now()
            self._inbox.require_room(events, reporter, waiting_max, share_max)
            return sum(self._inbox.receive(event, channel, reporter, now) for event in events)

    def inbox(self, limit: int) -> Sequence[StoredEvent]:
        """See the port."""
        with self._lock:
            return self._inbox.waiting[:limit]

    def told_tables(
        self, limit: int, *, known: bool | None = None, tried: bool = False, without: Collection[str] = ()
    ) -> Sequence[TableName]:
        """See the port."""
        with self._lock:
            names = {record.name for record in self._records.values() if record.dropped_at is None}
            told = self._inbox.told_tables(self._clock.now(), tried=tried)
            found = [name for name in told if known is None or (name in names) is known]
            return [name for name in found if name.catalog not in without][:limit]

    def told_of(self, name: TableName) -> Mapping[int, int | None]:
        """See the port."""
        with self._lock:
            return self._inbox.told_of(name)

    def event(self, event_id: int) -> StoredEvent:
        """See the port."""
        with self._lock:
            return self._inbox.event(event_id)

    def remove_event(self, event_id: int) -> None:
        """See the port."""
        with self._lock:
            self._inbox.remove(event_id)

    def received(self, only: EventFilter, *, limit: int, before: int | None = None) -> Sequence[StoredEvent]:
        """See the port."""
        with self._lock:
            records = self.records(limit=len(self._records), within=only.within)
            names = None if only.within == EVERYWHERE else {record.name for record in records}
            return self._inbox.received(only, names, before)[:limit]

    def done(self, event_ids: Sequence[int], committed_at: Mapping[int, Instant] = MappingProxyType({})) -> None:
        """See the port."""
        with self._lock:
            self._inbox.done(event_ids, committed_at, self._clock.now())

    def tried(self, event_ids: Sequence[int], trouble: Reason, *, counts: bool = True) -> None:
        """See the port."""
        with self._lock:
            self._inbox.tried(event_ids, trouble, self._clock.now(), counts=counts)

    def told(self, name: TableName, snapshot_ids: Sequence[int], since: Instant) -> Told:
        """See the port."""
        with self._lock:
            return self._inbox.told(name, snapshot_ids, since)

    def event_figures(self, *, limit: int, within: Scopes = EVERYWHERE) -> EventFigures:
        """See the port."""
        with self._lock:
            records = self.records(limit=len(self._records), within=within)
            return self._inbox.figures(records, limit, of_all=within == EVERYWHERE)

    def prune(self, now: Instant, keep: Retention = RETENTION, limit: int = ROWS_AT_ONCE_MAX) -> Mapping[RowKind, int]:
        """See the port."""
        with self._lock:
            silent = [one for one in reversed(self.optimizers()) if one.seen_at < now - keep.optimizers_ms][:limit]
            for one in silent:
                del self._optimizers[one.hello.optimizer_id]
            return {
                RowKind.EVENTS: self._inbox.forget(now - keep.events_ms, limit),
                RowKind.OPTIMIZERS: len(silent),
                RowKind.FINDINGS: self._prune_findings(now, keep.findings_ms, limit),
            }

    def prune_plans(self, keep: int, limit: int) -> int:
        """See the port."""
        with self._lock:
            self._waiting = {key: one for key, one in self._waiting.items() if self._is_there(one.table_id)}
            needed = {record.plan_id for record in self._records.values()}
            needed |= {one.plan_id for one in self._waiting.values()}
            if self._tasks is not None:
                needed |= self._tasks.plan_ids()
            for table_id in {plan.table_id for plan in self._plans.values()}:
                needed |= {plan.plan_id for plan in self.plans(table_id, limit=keep)}
            unneeded = sorted((plan.planned_at, plan_id) for plan_id, plan in self._plans.items())
            unneeded = [one for one in unneeded if one[1] not in needed][:limit]
            for _, plan_id in unneeded:
                del self._plans[plan_id]
            return len(unneeded)

    def prune_dropped(self, dropped_before: Instant, limit: int) -> int:
        """See the port."""
        with self._lock:
            dropped = sorted(
                (record.dropped_at, table_id)
                for table_id, record in self._records.items()
                if record.dropped_at is not None and record.dropped_at < dropped_before
            )
            old = [table_id for _, table_id in dropped if not self._is_referred_to(table_id)][:limit]
            for table_id in old:
                del self._records[table_id]
                self.names.pop(table_id, None)
                self._inventories.pop(table_id, None)
                self.forget_unfit(table_id)
                self.lists.forget(table_id)
                self._plans = {key: plan for key, plan in self._plans.items() if plan.table_id != table_id}
                self._waiting = {key: one for key, one in self._waiting.items() if one.table_id != table_id}
            return len(old)

    def _is_referred_to(self, table_id: TableId) -> bool:
        has_tasks = self._tasks is not None and bool(self._tasks.states_of(table_id))
        return has_tasks or self.has_removals(table_id)

    def has_plan(self, plan_id: str) -> bool:
        """Whether a plan is there."""
        with self._lock:
            return plan_id in self._plans

    def has_task(self, task_id: str) -> bool:
        """Whether a task is there, of the queue beside this store."""
        return self._tasks is not None and self._tasks.has_task(task_id)

    def is_worked_on(self, table_id: TableId) -> bool:
        """Whether a table has a task that has not ended, in the queue beside this store."""
        return self._tasks is not None and bool(self._tasks.states_of(table_id) & LIVE_STATES)

    def ages(self) -> Mapping[RowKind, Sequence[Instant]]:
        """When events were worked on, optimizers heard of, plans made, storages found out, and tables dropped."""
        with self._lock:
            return {
                RowKind.EVENTS: [one.done_at for one in self._inbox.events if one.done_at is not None],
                RowKind.OPTIMIZERS: [one.seen_at for one in self._optimizers.values()],
                RowKind.PLANS: [plan.planned_at for plan in self._plans.values()],
                RowKind.FINDINGS: [one.decided_at for one in self._accesses.values()],
                RowKind.TABLES: [one.dropped_at for one in self._records.values() if one.dropped_at is not None],
            }

    def optimizer_seen(self, hello: OptimizerHello) -> None:
        """See the port."""
        with self._lock:
            self._optimizers[hello.optimizer_id] = OptimizerRecord(hello, self._clock.now())

    def optimizers(self) -> Sequence[OptimizerRecord]:
        """See the port."""
        with self._lock:
            return sorted(self._optimizers.values(), key=lambda seen: (-seen.seen_at, seen.hello.optimizer_id))

    def census(self) -> TableCensus:
        """See the port."""
        with self._lock:
            present = [record for record in self._records.values() if record.dropped_at is None]
            waiting = self._inbox.waiting
            seen: dict[str, list[Instant]] = {}
            asked: dict[str, list[Instant]] = {}
            for one in self.submitters.noted():
                asked.setdefault(one.submitter.resource_group, []).append(one.asked_at)
            for optimizer in self._optimizers.values():
                seen.setdefault(optimizer.hello.resource_group, []).append(optimizer.seen_at)
            return TableCensus(
                tables=len(present),
                put_aside=sum(record.problem is not None for record in present),
                next_look_at=min((record.next_look_at for record in present), default=None),
                events_waiting=len(waiting),
                oldest_event_at=min((stored.received_at for stored in waiting), default=None),
                seen_at={group: sorted(times) for group, times in sorted(seen.items())},
                asked_at={group: sorted(times) for group, times in sorted(asked.items())},
            )

    def _inventory(self, table_id: TableId) -> _StoredInventory:
        return self._inventories.get(table_id, _StoredInventory())
