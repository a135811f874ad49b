"""What is known of tables, in memory, for the simulation and what shares its lakehouse.

SQLite makes the simulation sixteen times slower. The simulation over a database shows that the same happens there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from icewright.audit.acting import acting
from icewright.core.clock import Clock
from icewright.core.errors import Conflict, LookLost, NotFound
from icewright.core.reasons import Reason
from icewright.core.servers import TableShare
from icewright.core.times import Instant
from icewright.feed.task_events import fact_of_refusal
from icewright.model.access.permissions import EVERYWHERE, Scope, Scopes, covers
from icewright.model.actions.actions import ActionKind
from icewright.model.events.events import Channel, CommitEvent, EventFigures, ReportedCommits, StoredEvent
from icewright.model.events.messages import SHARE_MAX, WAITING_MAX
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.inventory import ManifestKey, ManifestSummary, PartitionStatistics
from icewright.model.iceberg.layouts import Run
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.plans.approvals import REFUSED_MS, Refusal
from icewright.model.plans.plans import Plan
from icewright.model.work.breaker import TASKS_LOOKED_AT
from icewright.model.work.figures import SeriesPoint
from icewright.model.work.jobs import OptimizerHello
from icewright.model.work.retention import RETENTION, Retention, RowKind
from icewright.ports.inbox import EventFilter
from icewright.ports.store import (
    AT_ONCE,
    ROWS_AT_ONCE_MAX,
    InventoryUpdate,
    OptimizerRecord,
    PlanPlace,
    TableRecord,
    TaskFilter,
    WaitingPlan,
)
from icewright.ports.table_records import BeforeLook, LaterLook, SinceLooks, StoredTable
from icewright.store.scope_filters import bucket_of
from icewright.work.launch.submitters import SqlSubmitters
from tests.doubles.findings import MemoryFindings
from tests.doubles.inbox import MemoryInbox
from tests.doubles.table_lists import MemoryTableLists
from tests.doubles.task_store import MemoryTaskStore
from tests.lakes.stores import new_store


@dataclass(slots=True)
class _StoredInventory:
    manifests: dict[ManifestKey, ManifestSummary] = field(default_factory=dict)
    partitions: dict[Partition, PartitionStatistics] = field(default_factory=dict)
    runs: dict[int, Run] = field(default_factory=dict)


class MemoryTableStore(MemoryFindings):
    """What the services need of a :class:`~icewright.ports.store.TableStore`; one lock makes it thread-safe.

    ``tasks`` is the queue whose tasks' plans are kept; without one no task is taken to need a plan.
    """

    def __init__(self, clock: Clock, tasks: MemoryTaskStore | None = None) -> None:
        super().__init__()
        self._clock = clock
        self._tasks = tasks
        self._records: dict[TableId, TableRecord] = {}
        self._inventories: dict[TableId, _StoredInventory] = {}
        self._plans: dict[str, Plan] = {}
        self._asked_by: dict[str, str] = {}
        self._waiting: dict[tuple[TableId, ActionKind], WaitingPlan] = {}
        self._refused: dict[str, Refusal] = {}
        self._inbox = MemoryInbox()
        self._optimizers: dict[str, OptimizerRecord] = {}
        self.submitters = SqlSubmitters(new_store(), clock)
        self.lists = MemoryTableLists(lambda: list(self._records.values()))

    def record(self, table_id: TableId) -> TableRecord | None:
        with self._lock:
            return self._records.get(table_id)

    def record_by_name(self, name: TableName) -> TableRecord | None:
        with self._lock:
            return next((r for r in self._records.values() if r.name == name and r.dropped_at is None), None)

    def unknown(self, catalog: str, names: Collection[TableName]) -> frozenset[TableName]:
        with self._lock:
            present = (r for r in self._records.values() if r.dropped_at is None)
            return frozenset(names) - {r.name for r in present if r.table_id.catalog == catalog}

    def records(
        self, *, catalog: str | None = None, limit: int, after: TableId | None = None, within: Scopes = EVERYWHERE
    ) -> Sequence[TableRecord]:
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

    def before_look(self, name: TableName, *, is_new: bool = False) -> BeforeLook:
        """See the port. The policies are kept elsewhere."""
        del is_new
        return self._before_look(self.record_by_name(name))

    def before_look_at(self, table_id: TableId) -> BeforeLook:
        return self._before_look(self.record(table_id))

    def since_looks(self, table_ids: Collection[TableId], roots: Collection[tuple[str, str]]) -> SinceLooks:
        """See the port. The policies are kept elsewhere."""
        tasks = self._tasks
        versions = {one: frozenset[tuple[str, int]]() if tasks is None else tasks.versions(one) for one in table_ids}
        with self._lock:
            known = {root: self.access(*root) for root in roots if self.probe(*root) is None}
        access = {root: one.decided_at for root, one in known.items() if one is not None}
        remarked = {one for one in table_ids if self.exclusions(one) or self.refusals(one)}
        return SinceLooks(self._clock.now(), None, versions, access, remarked)

    def look_later(self, looks: Sequence[LaterLook], *, policies: int | None = None) -> None:
        """See the port. The policies are kept elsewhere."""
        del policies
        with self._lock:
            for one in looks:
                record = self._records.get(one.table_id)
                if record is not None and record.revision == one.revision and record.dropped_at is None:
                    self._records[one.table_id] = replace(record, next_look_at=one.at)

    def _before_look(self, record: TableRecord | None) -> BeforeLook:
        tasks, now = self._tasks, self._clock.now()
        restored_at = None if tasks is None else tasks.restored_at()
        if record is None:
            return BeforeLook(StoredTable(), now, restored_at=restored_at)
        with self._lock:
            table_id, root = record.table_id, record.storage_root
            inventory, only = self._inventory(table_id), TaskFilter(table_id=table_id)
            stored = StoredTable(
                record,
                tuple(sorted(inventory.manifests)),
                tuple(self.partitions(table_id)),
                dict(inventory.runs),
                self.exclusions(table_id),
                None if root is None else self.access(table_id.catalog, root),
                root is not None and self.probe(table_id.catalog, root) is not None,
            )
            return BeforeLook(
                stored=stored,
                now=now,
                plan=None if record.plan_id is None else self._plans.get(record.plan_id),
                tasks=() if tasks is None else tasks.listed(only, limit=TASKS_LOOKED_AT),
                waits=self.waits(table_id),
                refusals=self.refusals(table_id),
                restored_at=restored_at,
            )

    def gathered(self) -> AbstractContextManager[None]:
        """See the port. Each is written at once."""
        return nullcontext()

    def save_record(
        self, record: TableRecord, *, policies: int | None = None, series: Sequence[SeriesPoint] | None = None
    ) -> None:
        """See the port. The policies are kept elsewhere."""
        del policies
        with self._lock:
            stored = self._records.get(record.table_id)
            if record.revision != (0 if stored is None else stored.revision):
                raise LookLost(f"another look at {record.name} was written first")
            former = self.record_by_name(record.name)
            if former is not None and former.table_id != record.table_id and record.dropped_at is None:
                self._change(former, dropped_at=record.observed_at)
            self._change(record)
            if series is not None:
                self.lists.save_series(record.table_id, series)

    def due(self, now: Instant, limit: int, share: TableShare | None = None) -> Sequence[TableRecord]:
        with self._lock:
            found = [r for r in self._records.values() if r.dropped_at is None and r.next_look_at <= now]
            found = [r for r in found if share is None or bucket_of(r.name) in share.buckets]
            return sorted(found, key=lambda record: (record.next_look_at, record.table_id))[:limit]

    def look_by(self, table_ids: Sequence[TableId], at: Instant) -> None:
        with self._lock:
            for table_id in table_ids:
                record = self._records.get(table_id)
                if record is not None and record.next_look_at > at:
                    self._change(record, next_look_at=at)

    def apply_inventory(self, update: InventoryUpdate) -> None:
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
        with self._lock:
            record = self.record_by_name(name)
            if record is not None:
                self._change(record, next_look_at=min(AT_ONCE, record.next_look_at - 1))

    def _change(self, record: TableRecord, **changes: Any) -> None:
        changed = self._records[record.table_id] = replace(record, revision=record.revision + 1, **changes)
        self.lists.note(changed)

    def manifest_keys(self, table_id: TableId) -> Sequence[ManifestKey]:
        with self._lock:
            return sorted(self._inventory(table_id).manifests)

    def manifest_summaries(
        self, table_id: TableId, partitions: frozenset[Partition] | None = None
    ) -> Iterable[ManifestSummary]:
        with self._lock:
            summaries = list(self._inventory(table_id).manifests.values())
        return (s for s in summaries if partitions is None or not partitions.isdisjoint(s.partitions))

    def partitions(
        self, table_id: TableId, *, limit: int | None = None, after: Partition | None = None
    ) -> Sequence[PartitionStatistics]:
        with self._lock:
            stored = sorted(self._inventory(table_id).partitions.items())
            return [statistics for partition, statistics in stored if after is None or partition > after][:limit]

    def runs(self, table_id: TableId) -> Mapping[int, Run]:
        with self._lock:
            return dict(self._inventory(table_id).runs)

    def save_plan(self, plan: Plan, *, is_present: bool = True) -> None:
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
        with self._lock:
            plan = self._plans.get(plan_id)
            if plan is None:
                raise NotFound(f"no plan {plan_id}")
            return plan

    def ids_like(self, part: str, within: Scopes, limit: int) -> Sequence[str]:
        theirs = {record.table_id for record in self.records(limit=10**9, within=within)}
        with self._lock:
            found = [
                plan.plan_id
                for plan in self._plans.values()
                if (within == EVERYWHERE or plan.table_id in theirs)
                and (plan.plan_id.startswith(f"plan-{part}") or plan.plan_id.endswith(part))
            ]
        return sorted(found, reverse=True)[:limit]

    def asked_by(self, plan_id: str) -> str | None:
        with self._lock:
            return self._asked_by.get(plan_id)

    def plans(self, table_id: TableId, *, limit: int, before: PlanPlace | None = None) -> Sequence[Plan]:
        with self._lock:
            end = None if before is None else (before.planned_at, before.plan_id)
            own = [plan for plan in self._plans.values() if plan.table_id == table_id]
            found = [plan for plan in own if end is None or (plan.planned_at, plan.plan_id) < end]
            return sorted(found, key=lambda plan: (plan.planned_at, plan.plan_id), reverse=True)[:limit]

    def wait(self, waiting: WaitingPlan) -> None:
        with self._lock:
            self._refused.pop(waiting.plan_id, None)
            self._waiting[waiting.table_id, waiting.kind] = waiting

    def waits(self, table_id: TableId) -> Mapping[ActionKind, WaitingPlan]:
        with self._lock:
            return {kind: one for (of, kind), one in self._waiting.items() if of == table_id}

    def waits_no_more(self, table_id: TableId, kind: ActionKind) -> None:
        with self._lock:
            self._waiting.pop((table_id, kind), None)

    def waiting(self, *, limit: int, after: str | None = None, within: Scopes = EVERYWHERE) -> Sequence[WaitingPlan]:
        with self._lock:
            present = (one for one in self._waiting.values() if self._is_there(one.table_id))
            there = (one for one in present if one.plan_id not in self._refused)
            found = sorted(
                (one for one in there if covers(within, Scope.of(one.table_name))), key=lambda one: one.plan_id
            )
            return [one for one in found if after is None or one.plan_id > after][:limit]

    def refuse(self, refusal: Refusal) -> Refusal:
        """See the port. Approvals and tasks are in other stores: of these it knows nothing."""
        with self._lock:
            waits = {one.plan_id for one in self._waiting.values() if self._is_there(one.table_id)}
            if refusal.plan_id not in waits:
                raise Conflict(f"plan {refusal.plan_id} does not wait for a person, or not any more")
            if refusal.plan_id not in self._refused and self._tasks is not None:
                self._tasks.feed.append(fact_of_refusal(refusal))
            return self._refused.setdefault(refusal.plan_id, refusal)

    def refusal(self, plan_id: str) -> Refusal | None:
        with self._lock:
            return self._refused.get(plan_id)

    def refusals(self, table_id: TableId) -> Mapping[ActionKind, Refusal]:
        with self._lock:
            found = [one for one in self._refused.values() if one.table_id == table_id]
            return {one.kind: one for one in sorted(found, key=lambda one: one.refused_at)}

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
        with self._lock:
            now = self._clock.now()
            self._inbox.require_room(events, reporter, waiting_max, share_max)
            return sum(self._inbox.receive(event, channel, reporter, now) for event in events)

    def inbox(self, limit: int) -> Sequence[StoredEvent]:
        with self._lock:
            return self._inbox.waiting[:limit]

    def reported_tables(
        self,
        limit: int,
        *,
        known: bool | None = None,
        tried: bool = False,
        without: Collection[str] = (),
        share: TableShare | None = None,
    ) -> Sequence[TableName]:
        with self._lock:
            names = {record.name for record in self._records.values() if record.dropped_at is None}
            told = self._inbox.reported_tables(self._clock.now(), tried=tried)
            found = [name for name in told if known is None or (name in names) is known]
            found = [name for name in found if share is None or bucket_of(name) in share.buckets]
            return [name for name in found if name.catalog not in without][:limit]

    def reported_by_name(self, name: TableName) -> Mapping[int, int | None]:
        with self._lock:
            return self._inbox.reported_by_name(name)

    def received(self, only: EventFilter, *, limit: int, before: int | None = None) -> Sequence[StoredEvent]:
        with self._lock:
            records = self.records(limit=len(self._records), within=only.within)
            names = None if only.within == EVERYWHERE else {record.name for record in records}
            return self._inbox.received(only, names, before)[:limit]

    def done(self, event_ids: Sequence[int], committed_at: Mapping[int, Instant] = MappingProxyType({})) -> None:
        with self._lock:
            self._inbox.done(event_ids, committed_at, self._clock.now())

    def tried(self, event_ids: Sequence[int], trouble: Reason, *, counts: bool = True) -> None:
        with self._lock:
            self._inbox.tried(event_ids, trouble, self._clock.now(), counts=counts)

    def reported_commits(self, name: TableName, snapshot_ids: Sequence[int], since: Instant) -> ReportedCommits:
        with self._lock:
            return self._inbox.reported_commits(name, snapshot_ids, since)

    def event_figures(self, *, limit: int, within: Scopes = EVERYWHERE) -> EventFigures:
        with self._lock:
            records = self.records(limit=len(self._records), within=within)
            return self._inbox.figures(records, limit, of_all=within == EVERYWHERE)

    def prune(self, now: Instant, keep: Retention = RETENTION, limit: int = ROWS_AT_ONCE_MAX) -> Mapping[RowKind, int]:
        with self._lock:
            old = now - keep.spans_ms[RowKind.OPTIMIZERS]
            silent = [one for one in reversed(self.optimizers()) if one.seen_at < old][:limit]
            for one in silent:
                del self._optimizers[one.hello.optimizer_id]
            return {
                RowKind.EVENTS: self._inbox.forget(now - keep.spans_ms[RowKind.EVENTS], limit),
                RowKind.OPTIMIZERS: len(silent),
                RowKind.FINDINGS: self._prune_findings(now, keep.spans_ms[RowKind.FINDINGS], limit),
            }

    def prune_plans(self, keep: int, limit: int) -> int:
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
            since = self._clock.now() - REFUSED_MS
            self._refused = {
                key: one for key, one in self._refused.items() if key in self._plans or one.refused_at > since
            }
            return len(unneeded)

    def prune_dropped(self, dropped_before: Instant, limit: int) -> int:
        with self._lock:
            dropped = sorted(
                (record.dropped_at, table_id)
                for table_id, record in self._records.items()
                if record.dropped_at is not None and record.dropped_at < dropped_before
            )
            old = [table_id for _, table_id in dropped if self._tasks is None or not self._tasks.has_tasks(table_id)][
                :limit
            ]
            for table_id in old:
                del self._records[table_id]
                self._inventories.pop(table_id, None)
                self.forget_exclusions(table_id)
                self.lists.forget(table_id)
                self._plans = {key: plan for key, plan in self._plans.items() if plan.table_id != table_id}
                self._waiting = {key: one for key, one in self._waiting.items() if one.table_id != table_id}
                self._refused = {key: one for key, one in self._refused.items() if one.table_id != table_id}
            return len(old)

    def optimizer_seen(self, hello: OptimizerHello) -> None:
        with self._lock:
            self._optimizers[hello.optimizer_id] = OptimizerRecord(hello, self._clock.now())

    def optimizers(self) -> Sequence[OptimizerRecord]:
        with self._lock:
            return sorted(self._optimizers.values(), key=lambda seen: (-seen.seen_at, seen.hello.optimizer_id))

    def _inventory(self, table_id: TableId) -> _StoredInventory:
        return self._inventories.get(table_id, _StoredInventory())
