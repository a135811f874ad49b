"""What goes of what is known of tables, in an SQL database: found while others write, removed by short transactions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Connection, Engine, delete, exists, func, not_, select

from icewright.actions.remove_files.adapters.deletions_schema import deletion_runs
from icewright.core.clock import Clock
from icewright.core.times import Instant
from icewright.events.schema import inbox
from icewright.model.iceberg.names import TableId
from icewright.model.plans.approvals import REFUSED_MS
from icewright.model.work.retention import Retention, RowKind
from icewright.queries.schema import query_templates
from icewright.recommendations.schema import judged_queries, measurements, recommendations
from icewright.store import transactions
from icewright.store.schema import (
    listed_tables,
    manifests,
    optimizers,
    orphan_passes,
    orphan_sightings,
    partitions,
    plans,
    refused_plans,
    runs,
    table_series,
    tables,
    tasks,
    waiting_plans,
)
from icewright.store.table_rows import is_table
from icewright.store.transactions import reading, writing
from icewright.work.optimizers.findings import prune_findings
from icewright.work.optimizers.findings_schema import exclusion_rows

PLANS_AT_ONCE: Final = 500
"""Plans that go in one transaction: each may be megabytes."""

OF_TABLES: Final = (
    waiting_plans,
    refused_plans,
    plans,
    manifests,
    partitions,
    runs,
    exclusion_rows,
    orphan_sightings,
    orphan_passes,
    listed_tables,
    table_series,
    query_templates,
    judged_queries,
    measurements,
    recommendations,
    tables,
)
"""What goes with a table that was dropped, in the order that constraints ask for."""


def prune(connection: Connection, now: Instant, keep: Retention, limit: int) -> Mapping[RowKind, int]:
    """See :meth:`icewright.ports.store.TableStore.prune`."""
    worked_on = (func.coalesce(inbox.c.done_at, inbox.c.parked_at) < now - keep.spans_ms[RowKind.EVENTS],)
    silent = (optimizers.c.seen_at < now - keep.spans_ms[RowKind.OPTIMIZERS],)
    return {
        RowKind.EVENTS: _delete_oldest(connection, inbox.c.event_id, inbox.c.event_id, worked_on, limit),
        RowKind.OPTIMIZERS: _delete_oldest(connection, optimizers.c.optimizer_id, optimizers.c.seen_at, silent, limit),
        RowKind.FINDINGS: prune_findings(connection, now, keep.spans_ms[RowKind.FINDINGS], limit),
    }


def prune_plans(engine: Engine, clock: Clock | None, keep: int, limit: int) -> int:
    """See :meth:`icewright.ports.store.TableStore.prune_plans`.

    Which are too many takes a look at all plans, and no turn of the writers; whether something needs one is asked
    again by the transaction that removes it. That it is not among the newest stays so.
    """
    age = func.row_number().over(
        partition_by=(plans.c.catalog, plans.c.table_uuid),
        order_by=(plans.c.planned_at.desc(), plans.c.plan_id.desc()),
    )
    ranked = select(plans.c.plan_id, age.label("age")).subquery()
    too_many = plans.c.plan_id.in_(select(ranked.c.plan_id).where(ranked.c.age > keep))
    with writing(engine) as connection:
        connection.execute(delete(waiting_plans).where(not_(of_no_dropped_table())))
        is_over = refused_plans.c.refused_at <= transactions.now(connection, clock) - REFUSED_MS
        gone = ~exists().where(plans.c.plan_id == refused_plans.c.plan_id).correlate(refused_plans)
        connection.execute(delete(refused_plans).where(is_over, gone))
    with reading(engine) as connection:
        query = select(plans.c.plan_id).where(too_many, *_unneeded())
        found = connection.scalars(query.order_by(plans.c.planned_at, plans.c.plan_id).limit(limit)).all()
    removed = 0
    for first in range(0, len(found), PLANS_AT_ONCE):
        these = plans.c.plan_id.in_(found[first : first + PLANS_AT_ONCE])
        with writing(engine) as connection:
            removed += connection.execute(delete(plans).where(these, *_unneeded())).rowcount
    return removed


def prune_dropped(engine: Engine, dropped_before: Instant, limit: int) -> int:
    """See :meth:`icewright.ports.store.TableStore.prune_dropped`."""
    query = select(tables.c.catalog, tables.c.table_uuid).where(*_forgettable(dropped_before))
    with reading(engine) as connection:
        found = [TableId(*row) for row in connection.execute(query.order_by(tables.c.dropped_at).limit(limit))]
    removed = 0
    for table_id in found:
        with writing(engine) as connection:
            still = select(tables.c.catalog).where(*is_table(tables, table_id), *_forgettable(dropped_before))
            if connection.scalar(still) is None:
                continue  # it came back, or something was begun on it
            for table in OF_TABLES:
                connection.execute(delete(table).where(*is_table(table, table_id)))
            removed += 1
    return removed


def of_no_dropped_table() -> ColumnElement[bool]:
    """Whether the table of a plan that waits is known, and not known to be dropped."""
    same = (tables.c.catalog == waiting_plans.c.catalog, tables.c.table_uuid == waiting_plans.c.table_uuid)
    return exists().where(*same, tables.c.dropped_at.is_(None)).correlate(waiting_plans)


def _unneeded() -> tuple[ColumnElement[bool], ...]:
    """That no table, task or person needs a plan: each is found by an index."""
    of_it = (tables.c.catalog == plans.c.catalog, tables.c.table_uuid == plans.c.table_uuid)
    return (
        ~exists().where(*of_it, tables.c.plan_id == plans.c.plan_id).correlate(plans),
        ~exists().where(tasks.c.plan_id == plans.c.plan_id).correlate(plans),
        ~exists().where(waiting_plans.c.plan_id == plans.c.plan_id).correlate(plans),
    )


def _forgettable(dropped_before: Instant) -> tuple[ColumnElement[bool], ...]:
    """That a table was dropped long ago, and that no task and no removal is left whose table it is."""
    of_task = (tasks.c.catalog == tables.c.catalog, tasks.c.table_uuid == tables.c.table_uuid)
    of_run = (deletion_runs.c.catalog == tables.c.catalog, deletion_runs.c.table_uuid == tables.c.table_uuid)
    return (
        tables.c.dropped_at < dropped_before,
        ~exists().where(*of_task).correlate(tables),
        ~exists().where(*of_run).correlate(tables),
    )


def _delete_oldest(
    connection: Connection, key: Column[Any], age: Column[Any], old: Sequence[ColumnElement[bool]], limit: int
) -> int:
    """Delete at most so many of the rows that are ``old``; how many."""
    found = select(key).where(*old).order_by(age, key).limit(limit)
    return connection.execute(delete(key.table).where(key.in_(found))).rowcount
