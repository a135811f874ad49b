"""What looks write: records, inventories and plans; those of one look together, as far as nothing comes between them.

A look moves the inventory, keeps a plan and ends with the record. Each of these waits for the next within
:meth:`SqlLookWrites.gathered`, and they are written in one transaction: with the record, or before whatever else the
thread reads or writes (:func:`~icewright.store.transactions.written_before`), which so finds what was said to be there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Connection,
    Delete,
    Engine,
    Insert,
    Table,
    Update,
    and_,
    bindparam,
    delete,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError

from icewright.audit.acting import acting
from icewright.core.errors import Conflict, IcewrightError, LookLost
from icewright.model.iceberg.names import TableId
from icewright.model.plans.plans import Plan
from icewright.model.work.figures import SeriesPoint
from icewright.ports.store import InventoryUpdate, TableRecord
from icewright.store.documents import digest, dump, pack, unpack
from icewright.store.locks import Lock, LockKind, lock, table_lock
from icewright.store.schema import manifests, partitions, plans, runs, tables
from icewright.store.table_rows import (
    id_columns,
    is_table,
    manifest_row,
    partition_columns,
    partition_row,
    record_row,
    replacing,
    run_row,
)
from icewright.store.transactions import writing, written_before
from icewright.work.store.looks import PRESENT_POLICIES
from icewright.work.store.table_lists import list_table, put_series, unlist_namesakes

# Made once: to put such a statement together takes longer than to execute it.
_IS_IT: Final = and_(tables.c.catalog == bindparam("of_catalog"), tables.c.table_uuid == bindparam("of_table_uuid"))
_HAS_NAME: Final = and_(tables.c.name_digest == bindparam("of_digest"), tables.c.dropped_at.is_(None))
_READ: Final = update(tables).where(_IS_IT, tables.c.revision == bindparam("of_revision"))
_AS_READ: Final = (_READ, _READ.where(bindparam("of_policies", type_=BigInteger) == PRESENT_POLICIES))
"""The record that was read is replaced; the second one asks for the policies as well."""
_AS_BEFORE: Final = tuple(one.where(_HAS_NAME) for one in _AS_READ)
"""The same of a table that had this name already."""
_BY_POLICIES: Final = select(*(bindparam(column.name, type_=column.type) for column in tables.c)).where(
    bindparam("of_policies", type_=BigInteger) == PRESENT_POLICIES
)
_NEW: Final = tuple(
    one.on_conflict_do_nothing().execution_options(preserve_rowcount=True)
    for one in (insert(tables), insert(tables).from_select(tables.c.keys(), _BY_POLICIES, include_defaults=False))
)
"""A table that is not stored, nor is another one of its name; the second one asks for the policies as well."""
_ID: Final = (tables.c.catalog, tables.c.table_uuid)
_NAMESAKES: Final = select(*_ID).where(or_(_HAS_NAME, _IS_IT)).order_by(*_ID).with_for_update()
"""A table and those of its name, in the order of their ids, as whoever changes several locks them."""
_CHANGED: Final = update(tables).values(revision=tables.c.revision + 1)
_DROP_NAMESAKES: Final = _CHANGED.where(_HAS_NAME, ~_IS_IT)
_GIVE_PLAN: Final = _CHANGED.where(_IS_IT)
_KEEP_PLAN: Final = insert(plans)


@dataclass(slots=True)
class _Gathered:
    """What a look has yet to write. ``lost`` is why it could not: nothing of that look is written any more."""

    update: InventoryUpdate | None = None
    plan: Plan | None = None
    lost: Exception | None = None

    def take(self) -> tuple[InventoryUpdate | None, Plan | None]:
        """What is to be written by whoever asks; whatever it does not get written is lost."""
        if self.lost is not None:
            raise self.lost
        found = self.update, self.plan
        self.update, self.plan = None, None
        return found


_GATHERED: ContextVar[_Gathered | None] = ContextVar("icewright_gathered", default=None)


class SqlLookWrites:
    """The port over an engine of :func:`icewright.store.engine.open_store`."""

    _engine: Engine

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """See the port."""
        gathered = _Gathered()
        token = _GATHERED.set(gathered)
        try:
            with written_before(lambda: self._write(gathered)):
                try:
                    yield
                except Exception as error:
                    try:
                        self._write(gathered)
                    except IcewrightError as another:  # what happened first is told
                        error.add_note(f"what the look had gathered is not written: {another.message}")
                    raise
                self._write(gathered)
        finally:
            _GATHERED.reset(token)

    def save_record(
        self, record: TableRecord, *, policies: int | None = None, series: Sequence[SeriesPoint] | None = None
    ) -> None:
        """See the port."""
        gathered, moved, plan = _GATHERED.get(), None, None
        if gathered is not None and _is_of(gathered, record.table_id):
            moved, plan = gathered.take()
        with _noting_loss(gathered), writing(self._engine, _of_record(record)) as connection:
            # Each write of what was gathered would have been a revision of its own, and has been counted as such.
            _save_record(connection, record, record.revision - (moved is not None) - (plan is not None), policies)
            _write_beside(connection, moved, plan)
            if series is not None:
                put_series(connection, record.table_id, series)

    def apply_inventory(self, update: InventoryUpdate) -> None:
        """See the port."""
        gathered = _GATHERED.get()
        if gathered is not None:
            self._write(gathered)
            gathered.update = update
            return
        self._move(update, None)

    def save_plan(self, plan: Plan, *, is_present: bool = True) -> None:
        """See the port."""
        gathered = _GATHERED.get()
        if gathered is not None and is_present and not _is_asked(plan):
            if gathered.plan is not None or not _is_of(gathered, plan.table_id):
                self._write(gathered)
            gathered.plan = plan
            return
        self._keep_plan(plan, is_present=is_present)

    def update_to_come(self, table_id: TableId) -> InventoryUpdate | None:
        """How the inventory of a table moves by what this thread has yet to write."""
        gathered = _GATHERED.get()
        if gathered is None or gathered.update is None or gathered.update.record.table_id != table_id:
            return None
        return gathered.update

    def _write(self, gathered: _Gathered) -> None:
        moved, plan = gathered.take()
        with _noting_loss(gathered):
            if moved is not None:
                self._move(moved, plan)
            elif plan is not None:
                self._keep_plan(plan, is_present=True)

    def _move(self, update: InventoryUpdate, plan: Plan | None) -> None:
        record, read = update.record, update.record.revision
        if plan is not None:
            record = replace(record, plan_id=plan.plan_id, revision=read + 1)
        with writing(self._engine, _of_record(record)) as connection:
            _save_record(connection, record, read)
            _write_beside(connection, update, plan)

    def _keep_plan(self, plan: Plan, *, is_present: bool) -> None:
        try:
            with writing(self._engine, ()) as connection:
                connection.execute(_KEEP_PLAN, _plan_row(plan))
                _mark_present(connection, plan, is_present=is_present)
        except IntegrityError as error:
            with writing(self._engine, ()) as connection:
                if plan_of(connection, plan.plan_id) != plan:
                    raise Conflict(f"there is another plan {plan.plan_id} already") from error
                _mark_present(connection, plan, is_present=is_present)


@contextmanager
def _noting_loss(gathered: _Gathered | None) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if gathered is not None:
            gathered.lost = error
        raise


def _is_of(gathered: _Gathered, table_id: TableId) -> bool:
    """Whether nothing is gathered of other tables. What was lost is told to whoever takes it."""
    update, plan = gathered.update, gathered.plan
    return (update is None or update.record.table_id == table_id) and (plan is None or plan.table_id == table_id)


def _is_asked(plan: Plan) -> bool:
    return plan.asked or plan.migration is not None


def _of_record(record: TableRecord) -> tuple[Lock, Lock]:
    """What whoever writes a record has alone: the table, also one that is not stored yet, and its name."""
    return lock(LockKind.NAME, digest(record.name)), table_lock(record.table_id)


def _key(table_id: TableId) -> dict[str, Any]:
    return {f"of_{name}": value for name, value in id_columns(table_id).items()}


def _save_record(connection: Connection, record: TableRecord, read: int, policies: int | None = None) -> None:
    """Write a record where the stored one is of the revision that was ``read``."""
    of_policies = {} if policies is None else {"of_policies": policies}
    row, key = record_row(record), {**_key(record.table_id), "of_revision": read, **of_policies}
    if record.dropped_at is None:
        # Under its name as before there is no other table: that would have been written here as well.
        at_once = (_AS_BEFORE if read else _NEW)[policies is not None]
        if _changes_one(connection, at_once, {**row, **key, "of_digest": row["name_digest"]}):
            list_table(connection, record)
            return
        named = {**_key(record.table_id), "of_digest": row["name_digest"]}
        stored = {TableId(*one) for one in connection.execute(_NAMESAKES, named)}
        is_stored = record.table_id in stored
        if stored - {record.table_id}:
            connection.execute(_DROP_NAMESAKES, {**named, "dropped_at": record.observed_at})
            unlist_namesakes(connection, record)
    else:
        asked = select(tables.c.revision).where(*is_table(tables, record.table_id))
        is_stored = not read and connection.execute(asked).first() is not None
    is_ours = bool(read) or not is_stored
    if not (is_ours and _changes_one(connection, (_AS_READ if read else _NEW)[policies is not None], {**row, **key})):
        raise LookLost(f"another look at {record.name} was written first")
    list_table(connection, record)


def _changes_one(connection: Connection, statement: Insert | Update, values: Mapping[str, Any]) -> bool:
    return connection.execute(statement, values).rowcount == 1


def _write_beside(connection: Connection, update: InventoryUpdate | None, plan: Plan | None) -> None:
    """Write what goes with the record, which these rows refer to."""
    if update is not None:
        table_id = update.record.table_id
        added = {summary.key: manifest_row(table_id, summary) for summary in update.added_manifests}
        changed = {stats.partition: partition_row(table_id, stats) for stats in update.changed_partitions}
        _delete_each(connection, manifests, table_id, [{"key_digest": digest(key)} for key in update.removed_manifests])
        _replace_each(connection, manifests, list(added.values()))
        _delete_each(connection, partitions, table_id, [partition_columns(one) for one in update.removed_partitions])
        _replace_each(connection, partitions, list(changed.values()))
        _delete_each(connection, runs, table_id, [{"snapshot_id": one} for one in update.removed_runs])
        _replace_each(connection, runs, [run_row(table_id, *one) for one in update.added_runs.items()])
    if plan is not None:
        connection.execute(_KEEP_PLAN, _plan_row(plan))


@cache
def _deleting(table: Table, *names: str) -> Delete:
    same = (table.c[name] == bindparam(f"of_{name}") for name in ("catalog", "table_uuid", *names))
    return delete(table).where(*same)


def _delete_each(connection: Connection, table: Table, table_id: TableId, keys: Sequence[Mapping[str, Any]]) -> None:
    """Delete the rows of a table that have one of the keys, in one round trip."""
    if keys:
        of = [{**_key(table_id), **{f"of_{name}": value for name, value in key.items()}} for key in keys]
        connection.execute(_deleting(table, *keys[0]), of)


def _replace_each(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Put rows in the place of those that have the same keys, in one round trip."""
    if rows:
        connection.execute(replacing(table), rows)


def _plan_row(plan: Plan) -> dict[str, Any]:
    return {
        "plan_id": plan.plan_id,
        **id_columns(plan.table_id),
        "planned_at": plan.planned_at,
        "plan": pack(plan),
        "asked_by": dump(acting()) if _is_asked(plan) else None,
    }


def _mark_present(connection: Connection, plan: Plan, *, is_present: bool) -> None:
    if is_present:
        connection.execute(_GIVE_PLAN, {**_key(plan.table_id), "plan_id": plan.plan_id})


def plan_of(connection: Connection, plan_id: str) -> Plan | None:
    """A plan, if it is kept."""
    blob = connection.scalar(select(plans.c.plan).where(plans.c.plan_id == plan_id))
    return None if blob is None else unpack(Plan, blob)
