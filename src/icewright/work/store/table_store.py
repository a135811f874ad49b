"""What is known of tables, in an SQL database shared by any number of server processes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from sqlalchemy import (
    Connection,
    Engine,
    bindparam,
    case,
    select,
    tuple_,
    update,
)

from icewright.core.clock import Clock
from icewright.core.errors import NotFound
from icewright.core.times import Instant
from icewright.events.inbox_store import SqlInbox
from icewright.model.access.permissions import EVERYWHERE, Scopes
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.inventory import ManifestKey, ManifestSummary, PartitionStatistics
from icewright.model.iceberg.layouts import Run
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.plans.plans import Plan
from icewright.model.work.jobs import OptimizerHello
from icewright.model.work.retention import RETENTION, Retention, RowKind
from icewright.ports.census import TableCensus
from icewright.ports.store import (
    AT_ONCE,
    ROWS_AT_ONCE_MAX,
    OptimizerRecord,
    PlanPlace,
    TableRecord,
)
from icewright.store import transactions
from icewright.store.documents import digest, dump, load, text_of, unpack
from icewright.store.locks import LockKind, lock
from icewright.store.schema import (
    manifests,
    optimizers,
    partitions,
    plans,
    runs,
    tables,
)
from icewright.store.scope_filters import ids_like, records_in
from icewright.store.table_rows import (
    is_table,
    manifest_key_of,
    record_of,
    replacing,
    run_of,
)
from icewright.store.transactions import asking, reading, writing
from icewright.work.launch.submitters import SqlSubmitters
from icewright.work.optimizers.findings import SqlFindings
from icewright.work.store import table_pruning
from icewright.work.store.census import table_census
from icewright.work.store.look_writes import SqlLookWrites, plan_of
from icewright.work.store.looks import SqlLooks
from icewright.work.store.table_lists import SqlTableLists
from icewright.work.store.waiting_plans import SqlWaitingPlans

FETCH_ROWS = 16
"""Rows read at a time where each may be large: one summary can describe tens of thousands of partitions."""


class SqlTableStore(SqlInbox, SqlFindings, SqlWaitingPlans, SqlLooks, SqlLookWrites):
    """A :class:`~icewright.ports.store.TableStore` over an engine of :func:`icewright.store.engine.open_store`.

    What it stamps with the time takes the database's clock unless ``clock`` is given.
    """

    def __init__(self, engine: Engine, clock: Clock | None = None) -> None:
        super().__init__(engine)
        self._clock = clock
        self.submitters = SqlSubmitters(engine, clock)
        self.lists = SqlTableLists(engine)

    def record(self, table_id: TableId) -> TableRecord | None:
        """See the port."""
        with asking(self._engine) as connection:
            row = connection.execute(select(tables).where(*is_table(tables, table_id))).mappings().one_or_none()
            return None if row is None else record_of(row)

    def record_by_name(self, name: TableName) -> TableRecord | None:
        """See the port."""
        query = select(tables).where(tables.c.name_digest == digest(name), tables.c.dropped_at.is_(None))
        with asking(self._engine) as connection:
            row = connection.execute(query).mappings().one_or_none()
            return None if row is None else record_of(row)

    def records_by_name(self, names: Collection[TableName]) -> Mapping[TableName, TableRecord]:
        """See the port."""
        digests = [digest(name) for name in names]
        query = select(tables).where(tables.c.name_digest.in_(digests), tables.c.dropped_at.is_(None))
        with asking(self._engine) as connection:
            found = [record_of(row) for row in connection.execute(query).mappings()]
        return {record.name: record for record in found}

    def unknown(self, catalog: str, names: Collection[TableName]) -> frozenset[TableName]:
        """See the port."""
        query = select(tables.c.name_digest).where(tables.c.catalog == catalog, tables.c.dropped_at.is_(None))
        with reading(self._engine) as connection:
            known = frozenset(connection.scalars(query))
        return frozenset(name for name in names if digest(name) not in known)

    def records(
        self, *, catalog: str | None = None, limit: int, after: TableId | None = None, within: Scopes = EVERYWHERE
    ) -> Sequence[TableRecord]:
        """See the port."""
        id_of = tables.c.catalog, tables.c.table_uuid
        present = select(tables).where(tables.c.dropped_at.is_(None), *records_in(within))
        query = present.order_by(*id_of).limit(limit)
        if catalog is not None:
            query = query.where(tables.c.catalog == catalog)
        if after is not None:
            query = query.where(tuple_(*id_of) > tuple_(after.catalog, after.uuid))
        with reading(self._engine) as connection:
            return [record_of(row) for row in connection.execute(query).mappings()]

    def look_by(self, table_ids: Sequence[TableId], at: Instant) -> None:
        """See the port."""
        if not table_ids:
            return
        query = update(tables).where(
            tables.c.catalog == bindparam("of_catalog"),
            tables.c.table_uuid == bindparam("of_uuid"),
            tables.c.next_look_at > at,
        )
        found = [{"of_catalog": table_id.catalog, "of_uuid": table_id.uuid} for table_id in table_ids]
        with writing(self._engine) as connection:
            connection.execute(query.values(next_look_at=at, revision=tables.c.revision + 1), found)

    def look_at_once(self, name: TableName) -> None:
        """See the port."""
        named = (tables.c.name_digest == digest(name), tables.c.dropped_at.is_(None))
        with writing(self._engine, ()) as connection:
            lower = case((tables.c.next_look_at > AT_ONCE, AT_ONCE), else_=tables.c.next_look_at - 1)
            wanted = {"next_look_at": lower, "revision": tables.c.revision + 1}
            connection.execute(update(tables).where(*named).values(wanted))

    def manifest_keys(self, table_id: TableId) -> Sequence[ManifestKey]:
        """See the port."""
        query = select(manifests.c.path, manifests.c.length_bytes, manifests.c.added_snapshot_id)
        with reading(self._engine) as connection:
            rows = connection.execute(query.where(*is_table(manifests, table_id))).mappings()
            return sorted(manifest_key_of(row) for row in rows)

    def manifest_summaries(
        self, table_id: TableId, partitions: frozenset[Partition] | None = None
    ) -> Iterable[ManifestSummary]:
        """See the port. The read transaction is open until the last one is taken."""
        return self._summaries(table_id, partitions)

    def _summaries(self, table_id: TableId, wanted: frozenset[Partition] | None) -> Iterator[ManifestSummary]:
        update = self.update_to_come(table_id)
        gone = frozenset[ManifestKey]() if update is None else frozenset(update.removed_manifests)
        came = {} if update is None else {summary.key: summary for summary in update.added_manifests}
        for summary in came.values():
            if wanted is None or not wanted.isdisjoint(summary.partitions):
                yield summary
        if update is not None and not update.record.revision:
            return  # of a table that is not stored
        with reading(self._engine, beside=True) as connection:
            for blob in _summaries_of(connection, table_id):
                summary = unpack(ManifestSummary, blob)
                if summary.key in gone or summary.key in came:
                    continue
                if wanted is None or not wanted.isdisjoint(summary.partitions):
                    yield summary

    def partitions(
        self, table_id: TableId, *, limit: int | None = None, after: Partition | None = None
    ) -> Sequence[PartitionStatistics]:
        """See the port."""
        spec_id, values = partitions.c.spec_id, partitions.c.partition_values
        query = select(partitions.c.statistics).where(*is_table(partitions, table_id)).order_by(spec_id, values)
        if after is not None:
            query = query.where(tuple_(spec_id, values) > tuple_(after.spec_id, after.values))
        with reading(self._engine) as connection:
            return [load(PartitionStatistics, text) for text in connection.scalars(query.limit(limit))]

    def runs(self, table_id: TableId) -> Mapping[int, Run]:
        """See the port."""
        with reading(self._engine) as connection:
            rows = connection.execute(select(runs).where(*is_table(runs, table_id))).mappings()
            return {row["snapshot_id"]: run_of(row) for row in rows}

    def plan(self, plan_id: str) -> Plan:
        """See the port."""
        with reading(self._engine) as connection:
            plan = plan_of(connection, plan_id)
        if plan is None:
            raise NotFound(f"no plan {plan_id}")
        return plan

    def ids_like(self, part: str, within: Scopes, limit: int) -> Sequence[str]:
        """See the port."""
        with reading(self._engine) as connection:
            return list(connection.scalars(ids_like(plans.c.plan_id, "plan", part, within, limit)))

    def asked_by(self, plan_id: str) -> str | None:
        """See the port."""
        with reading(self._engine) as connection:
            stored = connection.scalar(select(plans.c.asked_by).where(plans.c.plan_id == plan_id))
        return None if stored is None else text_of(stored)

    def plans(self, table_id: TableId, *, limit: int, before: PlanPlace | None = None) -> Sequence[Plan]:
        """See the port."""
        at, plan_id = plans.c.planned_at, plans.c.plan_id
        query = select(plans.c.plan).where(*is_table(plans, table_id)).order_by(at.desc(), plan_id.desc()).limit(limit)
        if before is not None:
            query = query.where(tuple_(at, plan_id) < tuple_(before.planned_at, before.plan_id))
        with reading(self._engine) as connection:
            return [unpack(Plan, blob) for blob in connection.scalars(query)]

    def prune(self, now: Instant, keep: Retention = RETENTION, limit: int = ROWS_AT_ONCE_MAX) -> Mapping[RowKind, int]:
        """See the port."""
        with writing(self._engine) as connection:
            return table_pruning.prune(connection, now, keep, limit)

    def prune_plans(self, keep: int, limit: int) -> int:
        """See the port."""
        return table_pruning.prune_plans(self._engine, self._clock, keep, limit)

    def prune_dropped(self, dropped_before: Instant, limit: int) -> int:
        """See the port."""
        return table_pruning.prune_dropped(self._engine, dropped_before, limit)

    def optimizer_seen(self, hello: OptimizerHello) -> None:
        """See the port."""
        with writing(self._engine, (lock(LockKind.ROW, "optimizers", hello.optimizer_id),)) as connection:
            row = {"optimizer_id": hello.optimizer_id, "hello": dump(hello), "seen_at": self._now(connection)}
            connection.execute(replacing(optimizers), row)

    def optimizers(self) -> Sequence[OptimizerRecord]:
        """See the port."""
        query = select(optimizers).order_by(optimizers.c.seen_at.desc(), optimizers.c.optimizer_id)
        with reading(self._engine) as connection:
            rows = connection.execute(query).mappings()
            return [OptimizerRecord(load(OptimizerHello, row["hello"]), row["seen_at"]) for row in rows]

    def census(self) -> TableCensus:
        """See the port."""
        with reading(self._engine) as connection:
            return table_census(connection)

    def _now(self, connection: Connection) -> Instant:
        return transactions.now(connection, self._clock)


def _summaries_of(connection: Connection, table_id: TableId) -> Iterator[bytes]:
    """All of a table: those of most are few, which a cursor in the database would cost more than they do."""
    key = manifests.c.key_digest
    query = select(key, manifests.c.summary).where(*is_table(manifests, table_id)).order_by(key)
    first = connection.execute(query.limit(FETCH_ROWS)).all()
    yield from (blob for _, blob in first)
    if len(first) == FETCH_ROWS:
        rest = query.where(key > first[-1][0])
        yield from (blob for _, blob in connection.execution_options(yield_per=FETCH_ROWS).execute(rest))
