"""What is known of tables as rows, and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, RowMapping, Table, and_, false, or_, select
from sqlalchemy.dialects.postgresql import Insert, insert

from icewright.core import wording
from icewright.core.errors import Conflict
from icewright.model.events.events import Reporting
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.inventory import ManifestKey, ManifestSummary, PartitionStatistics
from icewright.model.iceberg.layouts import Level, Run
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.snapshot_sightings import Mark
from icewright.model.plans.approvals import Refusal
from icewright.model.plans.plans import Reason
from icewright.model.work.figures import Listed
from icewright.model.work.why import Considered
from icewright.ports.store import TableRecord
from icewright.store.documents import digest, dump, dump_optional, load, load_optional, pack, unpack
from icewright.store.schema import refused_plans

_MARKS: Final = tuple[Mark, ...]
_CONSIDERED: Final = tuple[Considered, ...]
_PROPERTIES: Final = dict[str, str]


def id_columns(table_id: TableId) -> dict[str, str]:
    """The columns that say which table a row is about."""
    return {"catalog": table_id.catalog, "table_uuid": table_id.uuid}


def is_table(table: Table, table_id: TableId) -> tuple[ColumnElement[bool], ...]:
    """The condition that a row is about a table."""
    return table.c.catalog == table_id.catalog, table.c.table_uuid == table_id.uuid


def is_one_of(columns: Sequence[ColumnElement[Any]], rows: Iterable[Sequence[Any]]) -> ColumnElement[bool]:
    """The condition that these columns together have the values of one of ``rows``, 400 at most.

    Not by ``IN`` over tuples: SQLite reads the whole table for that where there are two rows or more, while each of
    these is looked up in an index. SQLite allows conditions a thousand deep, and takes ``OR`` for depth.
    """
    alike = (and_(*(column == value for column, value in zip(columns, row, strict=True))) for row in rows)
    return or_(false(), *alike)


@cache
def replacing(table: Table) -> Insert:
    """What inserts rows in the place of those with the same primary key, on either database."""
    made = insert(table)
    key = table.primary_key.columns.keys()
    rest = {column.name: made.excluded[column.name] for column in table.columns if column.name not in key}
    return made.on_conflict_do_update(index_elements=key, set_=rest)


def record_row(record: TableRecord) -> dict[str, Any]:
    """A record as the columns of ``tables``."""
    return {
        **id_columns(record.table_id),
        "name_digest": digest(record.name),
        "name": dump(record.name),
        "metadata_location": record.metadata_location,
        "snapshot_id": record.snapshot_id,
        "format_version": record.format_version,
        "observed_at": record.observed_at,
        "changed_at": record.changed_at,
        "commit_interval_ms": record.commit_interval_ms,
        "next_look_at": record.next_look_at,
        "plan_id": record.plan_id,
        "problem": dump_optional(record.problem),
        "dropped_at": record.dropped_at,
        "marks": dump(record.marks) if record.marks else None,
        "reporting": dump_optional(record.reporting),
        "commits_told": 0 if record.reporting is None else sum(record.reporting.told.values()),
        "commits_sweep_only": 0 if record.reporting is None else record.reporting.sweep_only,
        "properties": None if record.properties is None else pack(record.properties),
        "storage_root": record.storage_root,
        "considered": dump(record.considered) if record.considered else None,
        "unparked_at": record.unparked_at,
        "listed": dump_optional(record.listed),
        "revision": record.revision + 1,
    }


def record_of(row: RowMapping) -> TableRecord:
    """A row of ``tables`` as a record."""
    return TableRecord(
        table_id=TableId(row["catalog"], row["table_uuid"]),
        name=load(TableName, row["name"]),
        metadata_location=row["metadata_location"],
        snapshot_id=row["snapshot_id"],
        format_version=row["format_version"],
        observed_at=row["observed_at"],
        changed_at=row["changed_at"],
        commit_interval_ms=row["commit_interval_ms"],
        next_look_at=row["next_look_at"],
        plan_id=row["plan_id"],
        problem=load_optional(Reason, row["problem"]),
        dropped_at=row["dropped_at"],
        marks=() if row["marks"] is None else load(_MARKS, row["marks"]),
        reporting=load_optional(Reporting, row["reporting"]),
        properties=None if row["properties"] is None else unpack(_PROPERTIES, row["properties"]),
        storage_root=row["storage_root"],
        considered=() if row["considered"] is None else load(_CONSIDERED, row["considered"]),
        unparked_at=row["unparked_at"],
        listed=load_optional(Listed, row["listed"]),
        revision=row["revision"],
    )


def manifest_row(table_id: TableId, summary: ManifestSummary) -> dict[str, Any]:
    """A manifest's summary as the columns of ``manifests``."""
    return {
        **id_columns(table_id),
        "key_digest": digest(summary.key),
        "path": summary.key.path,
        "length_bytes": summary.key.length_bytes,
        "added_snapshot_id": summary.key.added_snapshot_id,
        "content": summary.content.value,
        "summary": pack(summary),
    }


def manifest_key_of(row: RowMapping) -> ManifestKey:
    """The key in a row of ``manifests``."""
    return ManifestKey(row["path"], row["length_bytes"], row["added_snapshot_id"])


def partition_columns(partition: Partition) -> dict[str, Any]:
    """The columns of ``partitions`` that say which partition a row is about."""
    return {"spec_id": partition.spec_id, "values_digest": digest(partition.values)}


def partition_row(table_id: TableId, statistics: PartitionStatistics) -> dict[str, Any]:
    """A partition's statistics as the columns of ``partitions``."""
    return {
        **id_columns(table_id),
        **partition_columns(statistics.partition),
        "partition_values": statistics.partition.values,
        "statistics": dump(statistics),
    }


def run_row(table_id: TableId, snapshot_id: int, run: Run) -> dict[str, Any]:
    """A run as the columns of ``runs``."""
    return {
        **id_columns(table_id),
        "snapshot_id": snapshot_id,
        "level": run.level.value,
        "layout": run.layout,
        "committed_at": run.committed_at,
    }


def run_of(row: RowMapping) -> Run:
    """A row of ``runs`` as a run."""
    return Run(Level(row["level"]), row["layout"], row["committed_at"])


def refusal_of(connection: Connection, plan_id: str) -> Refusal | None:
    """Who refused a plan."""
    text = connection.scalar(select(refused_plans.c.refusal).where(refused_plans.c.plan_id == plan_id))
    return None if text is None else load(Refusal, text)


def require_not_refused(connection: Connection, plan_id: str) -> None:
    """Raises :class:`Conflict` for a plan that was refused: nothing may come of it, whoever says so."""
    refusal = refusal_of(connection, plan_id)
    if refusal is not None:
        text = f"plan {plan_id} was refused by {refusal.refused_by} at {wording.instant(refusal.refused_at)}"
        raise Conflict(f"{text}: {refusal.why}", hint="plan the table again for a plan that may be approved")
