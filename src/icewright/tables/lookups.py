"""Tables as the API shows them: by uuid, from the store. Lists ask no catalog, and the store a fixed number of times.

A page asks for all tables each second. What looks worked out is kept with the record; the dates of our rewrites of each
partition are worked out once per metadata file, for the page of one table.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Final, TypeVar, cast

from fastapi import Depends, Request

from icewright.core.clock import Clock
from icewright.core.times import Instant
from icewright.maintenance.planner import Planner
from icewright.model.access.permissions import Scope
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.names import TableId
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.observation import WorkerAccess
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import Mode, Policy
from icewright.model.work.figures import SeriesPoint, TableHealth
from icewright.observation.executor_exclusions import ExecutorExclusions
from icewright.observation.health import series_point
from icewright.observation.lookups import TablesByUuid
from icewright.observation.observer import Observer
from icewright.observation.rewritten_partitions import optimized_at
from icewright.ownership.location_redaction import place_shown
from icewright.ownership.location_views import PlaceView, place_view
from icewright.ownership.registry import Registry
from icewright.policy.effective import policy_of
from icewright.ports.store import TableRecord, TableStore, TaskStore
from icewright.tables.api_views import HealthSummary, HealthView, ObservationView, TableDocument, TableSummary
from icewright.tables.views import id_text, table_view

K = TypeVar("K")
V = TypeVar("V")

_REMEMBERED_MAX: Final = 10_000


class Lookups(TablesByUuid):
    """Reads tables for display. Safe for use by several threads."""

    def __init__(
        self,
        tables: TableStore,
        tasks: TaskStore,
        observer: Observer,
        planner: Planner,
        clock: Clock,
        registry: Callable[[], Registry],
    ) -> None:
        """``registry`` knows whose place is whose: that of the loop, where it turns in this server."""
        super().__init__(tables, observer)
        self._tasks, self._planner = tasks, planner
        self._registry = registry
        self._exclusions = ExecutorExclusions(tables, clock)
        self._lock = threading.Lock()
        self._modes: dict[TableId, tuple[tuple[str, int], Mode]] = {}
        self._optimized: dict[TableId, tuple[str, Mapping[Partition, Instant]]] = {}

    def metadata(self, record: TableRecord) -> TableMetadata:
        """See :meth:`icewright.observation.observer.Observer.present`."""
        return self._observer.present(record)

    def policy(self, record: TableRecord) -> Policy:
        """The table's effective policy by what is known of it. Raises as :meth:`metadata` where too little is."""
        rules = self._planner.policies.present().rules
        properties = self.metadata(record).properties if record.properties is None else record.properties
        return policy_of(record.name, properties, rules)

    def optimized_at(self, record: TableRecord) -> Mapping[Partition, Instant]:
        """When each partition was last rewritten by icewright. Raises as :meth:`metadata` does."""
        remembered = self._optimized.get(record.table_id)
        if remembered is not None and remembered[0] == record.metadata_location:
            return remembered[1]
        metadata = self.metadata(record)
        found = optimized_at(self._observer.catalog(record.name.catalog), metadata)
        with self._lock:
            _remember(self._optimized, record.table_id, (metadata.metadata_location, found))
        return found

    def summaries(self, records: Sequence[TableRecord]) -> Sequence[TableSummary]:
        """Tables in a list, by one revision of the policies."""
        with self._planner.policies.held():
            return [self.summary(record) for record in records]

    def summary(self, record: TableRecord) -> TableSummary:
        """One table in a list, with what the store knows: no catalog is asked, and nothing else of the store."""
        known = record.listed
        return TableSummary(
            name=str(record.name),
            catalog=record.table_id.catalog,
            namespace=str(Scope.of(record.name)),
            uuid=record.table_id.uuid,
            format_version=record.format_version,
            snapshot_id=id_text(record.snapshot_id),
            observed_at=record.observed_at,
            changed_at=record.changed_at,
            optimized_at=None if known is None else known.optimized_at,
            next_look_at=max(record.next_look_at, record.observed_at),
            commit_interval_ms=record.commit_interval_ms,
            mode=self._mode(record),
            figures=None if known is None else known.figures,
            plan=None if known is None or known.plan.plan_id != record.plan_id else known.plan,
            problem=record.problem,
            health=None if known is None or known.health is None else _summary_of(known.health),
            last_task_at=None if known is None else known.last_task_at,
            failures=0 if known is None else known.failures,
        )

    def health(self, record: TableRecord) -> HealthView:
        """The health of a table as of its last look, part by part."""
        known, name = record.listed, str(record.name)
        health, change = (None, None) if known is None else (known.health, known.health_change)
        return HealthView(name, record.table_id.catalog, record.table_id.uuid, record.observed_at, health, change)

    def series(self, record: TableRecord) -> Sequence[SeriesPoint]:
        """What looks saw of a table, oldest first; the last point is that of its last look."""
        points = self._tables.lists.series(record.table_id)
        if record.listed is None:
            return points
        latest = series_point(record.listed, record.observed_at)
        return [*(point for point in points if point.at < latest.at), latest]

    def observation(self, record: TableRecord) -> ObservationView:
        """What the last look at a table saw."""
        summary, tables, table_id = self.summary(record), self._tables, record.table_id
        root = record.storage_root
        found = None if root is None else tables.access(table_id.catalog, root)
        unknown = WorkerAccess.PROVED if root is None else WorkerAccess.UNKNOWN  # a local file system needs no proof
        return ObservationView(
            table=summary.name,
            catalog=summary.catalog,
            uuid=summary.uuid,
            snapshot_id=summary.snapshot_id,
            metadata_location=record.metadata_location,
            format_version=record.format_version,
            observed_at=record.observed_at,
            changed_at=record.changed_at,
            next_look_at=summary.next_look_at,
            commit_interval_ms=record.commit_interval_ms,
            manifests=len(tables.manifest_keys(table_id)),
            figures=summary.figures,
            storage_root=root,
            worker_access=unknown if found is None else found.access,
            exclusions=tuple(Reason(code, text) for code, text in sorted(self._exclusions.why(table_id).items())),
            first_seen=record.marks,
            considered=record.considered,
            reporting=record.reporting,
            problem=summary.problem,
            plan_at=None if record.plan_id is None else f"/api/v1/plans/{record.plan_id}",
        )

    def document(self, record: TableRecord, may_read: Callable[[Scope], bool]) -> TableDocument:
        """One table in full, for a caller who may read these scopes. Raises as :meth:`metadata` does."""
        metadata = self.metadata(record)
        view = table_view(
            metadata,
            self._planner.with_queries(self._planner.policy(metadata), metadata),
            self._tables.partitions(record.table_id),
            observed_at=record.observed_at,
            commit_interval_ms=record.commit_interval_ms,
            place=self.place(record, may_read),
        )
        attempts = self._tasks.attempt_counts(record.table_id)
        return TableDocument(self.summary(record), view, attempts, record.reporting)

    def place(self, record: TableRecord, may_read: Callable[[Scope], bool]) -> PlaceView:
        """What a table alone owns, as all tables were last seen, for a caller who may read these scopes.

        Asks no catalog.
        """
        return place_view(place_shown(self._registry().ownership(), record.name, may_read))

    def _mode(self, record: TableRecord) -> Mode | None:
        """What mode the table has by the policies of now; by its last look where its properties are too long."""
        if record.properties is None:
            return None if record.listed is None else record.listed.mode
        made_from = (record.metadata_location, self._planner.policies.present().revision)
        known = self._modes.get(record.table_id)
        if known is None or known[0] != made_from:
            known = (made_from, self.policy(record).mode)
            with self._lock:
                _remember(self._modes, record.table_id, known)
        return known[1]


def _summary_of(health: TableHealth) -> HealthSummary:
    return HealthSummary(health.score, health.grade, health.worst)


def _remember(entries: dict[K, V], key: K, value: V) -> None:
    entries.pop(key, None)
    entries[key] = value
    while len(entries) > _REMEMBERED_MAX:
        entries.pop(next(iter(entries)))


def _lookups(request: Request) -> Lookups:
    return cast("Lookups", request.app.state.lookups)


Looked = Annotated[Lookups, Depends(_lookups)]
