"""What a look at a table goes by, read at once: four statements, however much there is of the table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    CompoundSelect,
    Connection,
    Engine,
    RowMapping,
    Select,
    Table,
    Text,
    bindparam,
    case,
    cast,
    exists,
    func,
    literal,
    null,
    or_,
    select,
    true,
    union_all,
    update,
)

from icewright.core.clock import Clock
from icewright.core.servers import TableShare
from icewright.core.times import Instant
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.orphans import FinishedPass
from icewright.model.iceberg.inventory import ManifestKey, PartitionStatistics
from icewright.model.iceberg.layouts import Level, Run
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.plans.approvals import Refusal
from icewright.model.plans.plans import Plan
from icewright.model.policy.policies import NO_REVISION
from icewright.model.queries.decisions import KeptRecommendation
from icewright.model.work.breaker import TASKS_LOOKED_AT
from icewright.model.work.lifecycle import LIVE_STATES
from icewright.model.work.storage import AccessRecord
from icewright.model.work.tasks import ListedTask
from icewright.policy.rules.schema import policy_revisions
from icewright.ports.findings import ExecutorExclusion
from icewright.ports.store import TableRecord, WaitingPlan
from icewright.ports.table_records import BeforeLook, DueLook, LaterLook, SinceLooks, StoredTable
from icewright.queries.schema import query_templates
from icewright.recommendations.schema import recommendations
from icewright.recommendations.sql import kept_recommendation
from icewright.store import transactions
from icewright.store.documents import digest, load, load_optional, unpack
from icewright.store.schema import (
    RESTORED_AT,
    counters,
    manifests,
    orphan_passes,
    partitions,
    plans,
    refused_plans,
    runs,
    state_is,
    tables,
    tasks,
    waiting_plans,
    worker_access,
)
from icewright.store.scope_filters import in_buckets, share_values
from icewright.store.table_rows import record_of
from icewright.store.transactions import asking, reading, writing
from icewright.work.optimizers.findings_schema import exclusion_rows, probes
from icewright.work.store import task_queries as queries

PRESENT_POLICIES: Final[ColumnElement[int]] = select(
    func.coalesce(func.max(policy_revisions.c.number), NO_REVISION.number)
).scalar_subquery()
"""The number of the present revision of the policies."""
_RESTORED_AT: Final = select(counters.c.value).where(counters.c.name == RESTORED_AT).scalar_subquery()
_OF_ALL: Final = (PRESENT_POLICIES.label("present_policies"), _RESTORED_AT.label("restored_at"))
_ALONE: Final = select(*_OF_ALL)


def _record(*is_it: ColumnElement[bool]) -> Select[Any]:
    """A record with its plan, and what is the same for all tables, which is there without a record as well."""
    found = select(tables, plans.c.plan)
    found = found.select_from(tables.outerjoin(plans, plans.c.plan_id == tables.c.plan_id)).where(*is_it)
    of_it, of_all = found.subquery(), _ALONE.subquery()
    counted = query_templates.c.catalog == of_it.c.catalog, query_templates.c.table_uuid == of_it.c.table_uuid
    is_queried = case(
        (of_it.c.table_uuid.is_(None), exists().select_from(query_templates)),  # its id is not known: any may be
        else_=exists().select_from(query_templates).where(*counted),
    )
    return select(of_it, of_all, is_queried.label("is_queried")).select_from(of_all.outerjoin(of_it, true()))


_BY_NAME: Final = _record(tables.c.name_digest == bindparam("name_digest"), tables.c.dropped_at.is_(None))


def _of(table: Table) -> tuple[ColumnElement[bool], ...]:
    return table.c.catalog == bindparam("of_catalog"), table.c.table_uuid == bindparam("of_uuid")


def _note(what: str, of: Table, code: Any, document: Any, at: Any) -> Any:
    """One kind of note about a table, as a part of the statement that reads them all."""
    columns = (cast(code, Text).label("code"), cast(document, Text).label("document"), cast(at, BigInteger).label("at"))
    return select(literal(what, Text, literal_execute=True).label("what"), *columns).select_from(of)


_BY_ID: Final = _record(*_of(tables))
_AT_ROOT: Final[ColumnElement[Any]] = bindparam("of_root")
_NEWEST: Final = (
    select(recommendations.c.recommendation_id, recommendations.c.made_at)
    .where(*_of(recommendations))
    .order_by(recommendations.c.made_at.desc(), recommendations.c.recommendation_id.desc())
    .limit(1)
    .subquery()
)
_EXCLUSION, _ACCESS, _QUESTION, _WAITS, _REFUSED, _PASSED, _ANALYZED = "eaqwrpn"
_NOTES: Final[CompoundSelect[Any]] = union_all(
    _note(_EXCLUSION, exclusion_rows, exclusion_rows.c.code, exclusion_rows.c.detail, exclusion_rows.c.found_at).where(
        *_of(exclusion_rows)
    ),
    _note(_ACCESS, worker_access, null(), worker_access.c.record, null()).where(
        worker_access.c.catalog == bindparam("of_catalog"), worker_access.c.root_digest == _AT_ROOT
    ),
    _note(_QUESTION, probes, null(), null(), null()).where(
        probes.c.catalog == bindparam("of_catalog"), probes.c.root_digest == _AT_ROOT
    ),
    _note(_WAITS, waiting_plans, null(), waiting_plans.c.waiting, null()).where(*_of(waiting_plans)),
    _note(_REFUSED, refused_plans, null(), refused_plans.c.refusal, refused_plans.c.refused_at).where(
        *_of(refused_plans)
    ),
    _note(_PASSED, orphan_passes, null(), orphan_passes.c.finished, null()).where(*_of(orphan_passes)),
    select(
        literal(_ANALYZED, Text, literal_execute=True),
        cast(_NEWEST.c.recommendation_id, Text),
        cast(null(), Text),
        cast(null(), BigInteger),
    ).select_from(_NEWEST),
)


def _part(what: str, of: Table, document: Any, text: Any, number: Any, snapshot_id: Any) -> Any:
    """One kind of rows of an inventory, as a part of the statement that reads them all."""
    columns = (cast(document, Text), cast(text, Text), cast(number, BigInteger), cast(snapshot_id, BigInteger))
    return select(literal(what, Text, literal_execute=True), *columns).select_from(of).where(*_of(of))


_MANIFEST, _PARTITION, _RUN = "mpr"
_INVENTORY: Final[CompoundSelect[Any]] = union_all(
    _part(_MANIFEST, manifests, manifests.c.path, null(), manifests.c.length_bytes, manifests.c.added_snapshot_id),
    _part(_PARTITION, partitions, partitions.c.statistics, null(), null(), null()),
    _part(_RUN, runs, runs.c.layout, runs.c.level, runs.c.committed_at, runs.c.snapshot_id),
)
_TASKS: Final = select(tasks).where(*_of(tasks)).order_by(tasks.c.task_id.desc()).limit(TASKS_LOOKED_AT)


_DUE: Final = (
    select(*(tables.c[field.name] for field in fields(DueLook) if field.name != "table_id"), *tables.primary_key)
    .where(tables.c.dropped_at.is_(None), tables.c.next_look_at <= bindparam("until"))
    .order_by(tables.c.next_look_at, tables.c.catalog, tables.c.table_uuid)
    .limit(bindparam("most", type_=BigInteger))
)
_DUE_IN_SHARE: Final = _DUE.where(in_buckets(tables.c.name_digest))
_NUMBERED: Final = (
    select(
        tasks.c.table_uuid,
        tasks.c.task_id,
        tasks.c.version,
        tasks.c.state,
        func.row_number().over(partition_by=tasks.c.table_uuid, order_by=tasks.c.task_id.desc()).label("number"),
    )
    .where(tasks.c.catalog == bindparam("of_catalog"), tasks.c.table_uuid.in_(bindparam("uuids", expanding=True)))
    .subquery()
)
_VERSIONS: Final = select(_NUMBERED.c.table_uuid, _NUMBERED.c.task_id, _NUMBERED.c.version).where(
    or_(_NUMBERED.c.number <= TASKS_LOOKED_AT, state_is(*LIVE_STATES, of=_NUMBERED))
)
_REMARKED: Final[CompoundSelect[Any]] = union_all(
    *(
        select(of.c.table_uuid).where(
            of.c.catalog == bindparam("of_catalog"), of.c.table_uuid.in_(bindparam("uuids", expanding=True))
        )
        for of in (exclusion_rows, refused_plans, recommendations)
    )
)
_DECIDED: Final = select(worker_access.c.root_digest, worker_access.c.decided_at).where(
    worker_access.c.catalog == bindparam("of_catalog"),
    worker_access.c.root_digest.in_(bindparam("roots", expanding=True)),
    ~exists().where(probes.c.catalog == worker_access.c.catalog, probes.c.root_digest == worker_access.c.root_digest),
)
_LATER_AT: Final = update(tables).where(
    *_of(tables), tables.c.revision == bindparam("of_revision"), tables.c.dropped_at.is_(None)
)
_LATER: Final = (_LATER_AT, _LATER_AT.where(bindparam("of_policies", type_=BigInteger) == PRESENT_POLICIES))
"""The second one asks for the policies as well."""


@dataclass(frozen=True, slots=True)
class _Note:
    code: str
    document: str
    at: Instant


class SqlLooks:
    """The port over an engine of :func:`icewright.store.engine.open_store`."""

    _engine: Engine
    _clock: Clock | None

    def before_look(self, name: TableName, *, is_new: bool = False) -> BeforeLook:
        """See the port."""
        key = {"name_digest": digest(name)}
        if is_new:
            with asking(self._engine) as connection:
                row = self._row(connection, _BY_NAME, key)
            if row["table_uuid"] is None:
                return self._of_all(_nothing(row), row)
        return self._before_look(_BY_NAME, key)

    def before_look_at(self, table_id: TableId) -> BeforeLook:
        """See the port."""
        return self._before_look(_BY_ID, _key(table_id))

    def due(self, now: Instant, limit: int, share: TableShare | None = None) -> Sequence[DueLook]:
        """See the port."""
        with asking(self._engine) as connection:
            values = share_values(share)
            query = _DUE_IN_SHARE if values else _DUE
            rows = connection.execute(query, {"until": now, "most": limit, **values}).mappings()
            return [
                DueLook(
                    TableId(row["catalog"], row["table_uuid"]),
                    load(TableName, row["name"]),
                    row["revision"],
                    row["next_look_at"],
                    row["changed_at"],
                    row["commit_interval_ms"],
                )
                for row in rows
            ]

    def since_looks(self, table_ids: Collection[TableId], roots: Collection[tuple[str, str]]) -> SinceLooks:
        """See the port."""
        with reading(self._engine) as connection:
            dialect = "" if self._clock is not None else connection.dialect.name
            row = connection.execute(_with_clock(_ALONE, dialect)).mappings().one()
            versions: defaultdict[TableId, set[tuple[str, int]]] = defaultdict(set)
            access: dict[tuple[str, str], Instant] = {}
            remarked: set[TableId] = set()
            for catalog in sorted({table_id.catalog for table_id in table_ids}):
                uuids = [table_id.uuid for table_id in table_ids if table_id.catalog == catalog]
                for uuid, task_id, version in connection.execute(_VERSIONS, {"of_catalog": catalog, "uuids": uuids}):
                    versions[TableId(catalog, uuid)].add((task_id, version))
                found = connection.scalars(_REMARKED, {"of_catalog": catalog, "uuids": uuids})
                remarked.update(TableId(catalog, uuid) for uuid in found)
            for catalog in sorted({catalog for catalog, _ in roots}):
                of_root = {digest(root): root for of, root in roots if of == catalog}
                key = {"of_catalog": catalog, "roots": list(of_root)}
                for root_digest, decided_at in connection.execute(_DECIDED, key):
                    access[catalog, of_root[root_digest]] = decided_at
            now = int(row[transactions.NOW]) if self._clock is None else self._clock.now()
        of_each = {table_id: frozenset(versions[table_id]) for table_id in table_ids}
        return SinceLooks(now, row["present_policies"], of_each, access, remarked)

    def look_later(self, looks: Sequence[LaterLook], *, policies: int | None = None) -> None:
        """See the port."""
        if not looks:
            return
        of_all = {} if policies is None else {"of_policies": policies}
        in_order = sorted(looks, key=lambda one: one.table_id)  # whoever locks several tables does so in this order
        rows = [
            {**_key(one.table_id), "of_revision": one.revision, "next_look_at": one.at, **of_all} for one in in_order
        ]
        with writing(self._engine, ()) as connection:
            connection.execute(_LATER[policies is not None], rows)

    def _before_look(self, query: Select[Any], key: Mapping[str, Any]) -> BeforeLook:
        with reading(self._engine) as connection:
            row = self._row(connection, query, key)
            if row["table_uuid"] is None:
                return self._of_all(_nothing(row), row)
            record = record_of(row)
            notes = _notes(connection, record)
            found = BeforeLook(
                stored=_stored(connection, record, notes, is_queried=bool(row["is_queried"])),
                now=0,
                plan=None if row["plan"] is None else unpack(Plan, row["plan"]),
                tasks=_tasks(connection, record.table_id),
                waits={one.kind: one for one in (load(WaitingPlan, note.document) for note in notes[_WAITS])},
                refusals=_refusals(notes[_REFUSED]),
                analyzed=_analyzed(connection, notes[_ANALYZED]),
                passed=next((load_optional(FinishedPass, note.document) for note in notes[_PASSED]), None),
            )
            return self._of_all(found, row)

    def _row(self, connection: Connection, query: Select[Any], key: Mapping[str, Any]) -> RowMapping:
        dialect = "" if self._clock is not None else connection.dialect.name
        return connection.execute(_with_clock(query, dialect), key).mappings().one()

    def _of_all(self, found: BeforeLook, row: RowMapping) -> BeforeLook:
        """With what is the same for all tables."""
        now = int(row[transactions.NOW]) if self._clock is None else self._clock.now()
        return replace(found, now=now, policies=row["present_policies"], restored_at=row["restored_at"])


@cache
def _with_clock(query: Select[Any], dialect: str) -> Select[Any]:
    """A query that also tells the database's clock. Made once: putting it together takes longer than executing it."""
    return query.add_columns(transactions.now_column(dialect)) if dialect else query


def _key(table_id: TableId) -> dict[str, Any]:
    return {"of_catalog": table_id.catalog, "of_uuid": table_id.uuid}


def _notes(connection: Connection, record: TableRecord) -> Mapping[str, Sequence[_Note]]:
    root = "" if record.storage_root is None else digest(record.storage_root)
    found: defaultdict[str, list[_Note]] = defaultdict(list)
    for what, code, document, at in connection.execute(_NOTES, {**_key(record.table_id), "of_root": root}):
        found[what].append(_Note(code, document, at))
    return found


def _nothing(row: RowMapping) -> BeforeLook:
    return BeforeLook(StoredTable(is_queried=bool(row["is_queried"])), 0)


def _stored(
    connection: Connection, record: TableRecord, notes: Mapping[str, Sequence[_Note]], *, is_queried: bool
) -> StoredTable:
    keys: list[ManifestKey] = []
    statistics: list[PartitionStatistics] = []
    known: dict[int, Run] = {}
    for what, document, text, number, snapshot_id in connection.execute(_INVENTORY, _key(record.table_id)):
        match what:
            case "m":  # _MANIFEST
                keys.append(ManifestKey(document, number, snapshot_id))
            case "p":  # _PARTITION
                statistics.append(load(PartitionStatistics, document))
            case _:
                known[snapshot_id] = Run(Level(text), document, number)
    return StoredTable(
        record,
        tuple(sorted(keys)),
        tuple(sorted(statistics, key=lambda one: one.partition)),
        known,
        {note.code: ExecutorExclusion(note.at, note.document) for note in notes[_EXCLUSION]},
        next((load(AccessRecord, note.document) for note in notes[_ACCESS]), None),
        bool(notes[_QUESTION]),
        is_queried,
    )


def _tasks(connection: Connection, table_id: TableId) -> Sequence[ListedTask]:
    rows = connection.execute(_TASKS, _key(table_id)).mappings().all()
    return [queries.listed(connection, row) for row in rows]


def _refusals(notes: Sequence[_Note]) -> Mapping[ActionKind, Refusal]:
    found = [load(Refusal, note.document) for note in sorted(notes, key=lambda note: note.at)]
    return {one.kind: one for one in found}


def _analyzed(connection: Connection, notes: Sequence[_Note]) -> KeptRecommendation | None:
    for note in notes:
        query = select(recommendations).where(recommendations.c.recommendation_id == note.code)
        return kept_recommendation(connection.execute(query).mappings().one())
    return None
