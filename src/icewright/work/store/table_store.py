"""What is known of tables, in an SQL database shared by any number of server processes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Connection,
    Engine,
    Table,
    and_,
    bindparam,
    case,
    delete,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from icewright.audit.acting import acting
from icewright.core.clock import Clock
from icewright.core.errors import Conflict, LookLost, NotFound
from icewright.core.times import Instant
from icewright.events.inbox_store import SqlInbox
from icewright.model.access.permissions import EVERYWHERE, Scopes
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.inventory import ManifestKey, ManifestSummary, PartitionStatistics
from icewright.model.iceberg.layouts import Run
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.plans.plans import Plan
from icewright.model.work.figures import SeriesPoint
from icewright.model.work.jobs import OptimizerHello
from icewright.model.work.retention import RETENTION, Retention, RowKind
from icewright.ports.census import TableCensus
from icewright.ports.store import (
    AT_ONCE,
    ROWS_AT_ONCE_MAX,
    InventoryUpdate,
    OptimizerRecord,
    PlanPlace,
    TableRecord,
)
from icewright.store import transactions
from icewright.store.documents import digest, dump, load, pack, text_of, unpack
from icewright.store.locks import Lock, LockKind, lock, table_lock
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
    id_columns,
    is_table,
    manifest_key_of,
    manifest_row,
    partition_columns,
    partition_row,
    record_of,
    record_row,
    run_of,
    run_row,
)
from icewright.store.transactions import reading, writing
from icewright.work.launch.submitters import SqlSubmitters
from icewright.work.optimizers.findings import SqlFindings
from icewright.work.store import table_pruning
from icewright.work.store.census import table_census
from icewright.work.store.looks import PRESENT_POLICIES, SqlLooks
from icewright.work.store.table_lists import SqlTableLists, list_table, put_series, unlist_namesakes
from icewright.work.store.waiting_plans import SqlWaitingPlans

# Made once: to put such a statement together takes longer than to execute it.
_IS_IT: Final = and_(tables.c.catalog == bindparam("of_catalog"), tables.c.table_uuid == bindparam("of_table_uuid"))
_HAS_NAME: Final = and_(tables.c.name_digest == bindparam("of_digest"), tables.c.dropped_at.is_(None))
_READ: Final = update(tables).where(_IS_IT, tables.c.revision == bindparam("of_revision"))
_AS_READ: Final = (_READ, _READ.where(bindparam("of_policies", type_=BigInteger) == PRESENT_POLICIES))
"""The record that was read is replaced; the second one asks for the policies as well."""
_AS_BEFORE: Final = tuple(one.where(_HAS_NAME) for one in _AS_READ)
"""The same of a table that had this name already."""
_ID: Final = (tables.c.catalog, tables.c.table_uuid)
_NAMESAKES: Final = select(*_ID).where(or_(_HAS_NAME, _IS_IT)).order_by(*_ID).with_for_update()
"""A table and those of its name, in the order of their ids, as whoever changes several locks them."""
_CHANGED: Final = update(tables).values(revision=tables.c.revision + 1)
_DROP_NAMESAKES: Final = _CHANGED.where(_HAS_NAME, ~_IS_IT)
_GIVE_PLAN: Final = _CHANGED.where(_IS_IT)
FETCH_ROWS = 16
"""Rows read at a time where each may be large: one summary can describe tens of thousands of partitions."""


class SqlTableStore(SqlInbox, SqlFindings, SqlWaitingPlans, SqlLooks):
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
        with reading(self._engine) as connection:
            row = connection.execute(select(tables).where(*is_table(tables, table_id))).mappings().one_or_none()
            return None if row is None else record_of(row)

    def record_by_name(self, name: TableName) -> TableRecord | None:
        """See the port."""
        query = select(tables).where(tables.c.name_digest == digest(name), tables.c.dropped_at.is_(None))
        with reading(self._engine) as connection:
            row = connection.execute(query).mappings().one_or_none()
            return None if row is None else record_of(row)

    def records_by_name(self, names: Collection[TableName]) -> Mapping[TableName, TableRecord]:
        """See the port."""
        digests = [digest(name) for name in names]
        query = select(tables).where(tables.c.name_digest.in_(digests), tables.c.dropped_at.is_(None))
        with reading(self._engine) as connection:
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
            query = query.where(
                or_(
                    tables.c.catalog > after.catalog,
                    and_(tables.c.catalog == after.catalog, tables.c.table_uuid > after.uuid),
                )
            )
        with reading(self._engine) as connection:
            return [record_of(row) for row in connection.execute(query).mappings()]

    def save_record(
        self, record: TableRecord, *, policies: int | None = None, series: Sequence[SeriesPoint] | None = None
    ) -> None:
        """See the port."""
        with writing(self._engine, _of_record(record)) as connection:
            _save_record(connection, record, policies)
            if series is not None:
                put_series(connection, record.table_id, series)

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

    def apply_inventory(self, update: InventoryUpdate) -> None:
        """See the port."""
        table_id = update.record.table_id
        removed_manifests = [{"key_digest": digest(key)} for key in update.removed_manifests]
        removed_partitions = [partition_columns(partition) for partition in update.removed_partitions]
        added = {summary.key: manifest_row(table_id, summary) for summary in update.added_manifests}
        changed = {stats.partition: partition_row(table_id, stats) for stats in update.changed_partitions}
        added_runs = [run_row(table_id, snapshot_id, run) for snapshot_id, run in update.added_runs.items()]
        removed_runs = [{"snapshot_id": snapshot_id} for snapshot_id in update.removed_runs]
        with writing(self._engine, _of_record(update.record)) as connection:
            _save_record(connection, update.record)
            if not update.record.revision:  # these rows refer to its record, which was not there
                _insert_each(connection, manifests, list(added.values()))
                _insert_each(connection, partitions, list(changed.values()))
                _insert_each(connection, runs, added_runs)
                return
            _delete_each(connection, manifests, table_id, removed_manifests)
            _replace_each(connection, manifests, table_id, ("key_digest",), list(added.values()))
            _delete_each(connection, partitions, table_id, removed_partitions)
            _replace_each(connection, partitions, table_id, ("spec_id", "values_digest"), list(changed.values()))
            _delete_each(connection, runs, table_id, removed_runs)
            _replace_each(connection, runs, table_id, ("snapshot_id",), added_runs)

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
        query = select(manifests.c.summary).where(*is_table(manifests, table_id))
        with reading(self._engine) as connection:
            for blob in connection.execution_options(yield_per=FETCH_ROWS).scalars(query):
                summary = unpack(ManifestSummary, blob)
                if wanted is None or not wanted.isdisjoint(summary.partitions):
                    yield summary

    def partitions(
        self, table_id: TableId, *, limit: int | None = None, after: Partition | None = None
    ) -> Sequence[PartitionStatistics]:
        """See the port."""
        spec_id, values = partitions.c.spec_id, partitions.c.partition_values
        query = select(partitions.c.statistics).where(*is_table(partitions, table_id)).order_by(spec_id, values)
        if after is not None:
            query = query.where(
                or_(spec_id > after.spec_id, and_(spec_id == after.spec_id, values > after.values)),
            )
        with reading(self._engine) as connection:
            return [load(PartitionStatistics, text) for text in connection.scalars(query.limit(limit))]

    def runs(self, table_id: TableId) -> Mapping[int, Run]:
        """See the port."""
        with reading(self._engine) as connection:
            rows = connection.execute(select(runs).where(*is_table(runs, table_id))).mappings()
            return {row["snapshot_id"]: run_of(row) for row in rows}

    def save_plan(self, plan: Plan, *, is_present: bool = True) -> None:
        """See the port."""
        row = {
            "plan_id": plan.plan_id,
            **id_columns(plan.table_id),
            "planned_at": plan.planned_at,
            "plan": pack(plan),
            "asked_by": dump(acting()) if plan.asked or plan.migration is not None else None,
        }
        try:
            with writing(self._engine, ()) as connection:
                connection.execute(insert(plans), row)
                _mark_present(connection, plan, is_present=is_present)
        except IntegrityError as error:
            with writing(self._engine, ()) as connection:
                if _plan(connection, plan.plan_id) != plan:
                    raise Conflict(f"there is another plan {plan.plan_id} already") from error
                _mark_present(connection, plan, is_present=is_present)

    def plan(self, plan_id: str) -> Plan:
        """See the port."""
        with reading(self._engine) as connection:
            plan = _plan(connection, plan_id)
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
            query = query.where(or_(at < before.planned_at, and_(at == before.planned_at, plan_id < before.plan_id)))
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
            _put(connection, optimizers, (optimizers.c.optimizer_id == hello.optimizer_id,), row)

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


def _of_record(record: TableRecord) -> tuple[Lock, Lock]:
    """What whoever writes a record has alone: the table, also one that is not stored yet, and its name."""
    return lock(LockKind.NAME, digest(record.name)), table_lock(record.table_id)


def _key(table_id: TableId) -> dict[str, Any]:
    return {f"of_{name}": value for name, value in id_columns(table_id).items()}


def _read_as(record: TableRecord, policies: int | None) -> dict[str, Any]:
    of_policies = {} if policies is None else {"of_policies": policies}
    return {**_key(record.table_id), "of_revision": record.revision, **of_policies}


def _save_record(connection: Connection, record: TableRecord, policies: int | None = None) -> None:
    row, key = record_row(record), _read_as(record, policies)
    if record.revision and record.dropped_at is None:
        # Under its name as before there is no other table: that would have been written here as well.
        as_before = _AS_BEFORE[policies is not None]
        if connection.execute(as_before, {**row, **key, "of_digest": row["name_digest"]}).rowcount == 1:
            list_table(connection, record)
            return
    if record.dropped_at is None:
        named = {**_key(record.table_id), "of_digest": row["name_digest"]}
        stored = {TableId(*one) for one in connection.execute(_NAMESAKES, named)}
        is_stored = record.table_id in stored
        if stored - {record.table_id}:
            connection.execute(_DROP_NAMESAKES, {**named, "dropped_at": record.observed_at})
            unlist_namesakes(connection, record)
    else:
        asked = select(tables.c.revision).where(*is_table(tables, record.table_id))
        is_stored = not record.revision and connection.execute(asked).first() is not None
    if record.revision:
        is_ours = connection.execute(_AS_READ[policies is not None], {**row, **key}).rowcount == 1
    else:
        is_ours = not is_stored
        if is_ours:
            connection.execute(insert(tables), row)
    if not is_ours:
        raise LookLost(f"another look at {record.name} was written first")
    list_table(connection, record)


def _put(connection: Connection, table: Table, where: Sequence[Any], row: Mapping[str, Any]) -> None:
    """Replace the row, or insert it."""
    if connection.execute(update(table).where(*where).values(**row)).rowcount == 0:
        connection.execute(insert(table).values(**row))


def _delete_each(connection: Connection, table: Table, table_id: TableId, keys: Sequence[Mapping[str, Any]]) -> None:
    """Delete the rows of a table that have one of the keys, in one round trip."""
    if not keys:
        return
    same = [table.c[name] == bindparam(f"key_{name}") for name in keys[0]]
    connection.execute(
        delete(table).where(*is_table(table, table_id), *same),
        [{f"key_{name}": value for name, value in key.items()} for key in keys],
    )


def _insert_each(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    if rows:
        connection.execute(insert(table), list(rows))


def _replace_each(
    connection: Connection, table: Table, table_id: TableId, key: Sequence[str], rows: Sequence[Mapping[str, Any]]
) -> None:
    """Put rows in the place of those that have the same keys."""
    if not rows:
        return
    _delete_each(connection, table, table_id, [{name: row[name] for name in key} for row in rows])
    _insert_each(connection, table, rows)


def _mark_present(connection: Connection, plan: Plan, *, is_present: bool) -> None:
    if is_present:
        connection.execute(_GIVE_PLAN, {**_key(plan.table_id), "plan_id": plan.plan_id})


def _plan(connection: Connection, plan_id: str) -> Plan | None:
    blob = connection.scalar(select(plans.c.plan).where(plans.c.plan_id == plan_id))
    return None if blob is None else unpack(Plan, blob)
