"""Which statistics of a table are computed: of which snapshot and columns, and why; or why none are.

Iceberg's actions compute them on Spark, from the rows and manifests of one snapshot. Nothing of the table changes but
its lists of statistics files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from icewright.actions.compute_statistics.columns import (
    ChosenColumns,
    default_columns,
    of_fields,
    share_of_bytes,
    wanted_columns,
)
from icewright.core import wording
from icewright.model.actions.compute_statistics import (
    COLUMNS_MAX,
    ComputeStatistics,
    ComputeStatisticsPrediction,
    PartitionFigures,
    PartitionTotals,
    StatisticsColumn,
    figures_digest,
)
from icewright.model.iceberg.column_types import first_not_kept, spark_keeps
from icewright.model.iceberg.inventory import PartitionStatistics
from icewright.model.iceberg.tables import Schema, Snapshot, StatisticsFile, TableMetadata
from icewright.model.plans.observation import Observation
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import Policy
from icewright.plans.eligibility import manifests_obstacle
from icewright.plans.procedure_call import literal, procedure_call
from icewright.plans.standalone_plan import Decided

_DEFAULT_FORMAT: Final = "write.format.default"
_READ_BACK: Final = "parquet"


StatisticsDecision: TypeAlias = Decided[ComputeStatistics, ComputeStatisticsPrediction]
"""``notes`` say what is left out, and why."""


def decide_statistics(
    observation: Observation,
    policy: Policy,
    columns: Sequence[str] | None = None,
    snapshot_id: int | None = None,
    because: Reason | None = None,
) -> StatisticsDecision:
    """What is computed of a table as it is now.

    ``columns`` and ``snapshot_id`` are what a person asks for, else it is what the policy says, of the current
    snapshot. ``because`` is why it is due, where nobody asked.
    """
    metadata = observation.metadata
    obstacle = manifests_obstacle(metadata, policy) or _damage(metadata)
    if obstacle is not None:
        return Decided(obstacle)
    snapshot = metadata.snapshot(metadata.current_snapshot_id if snapshot_id is None else snapshot_id)
    if snapshot is None:
        return _nothing("snapshot-missing", f"the table has no snapshot {snapshot_id}")
    totals = _totals(observation, snapshot)
    if totals is None:
        return _nothing("snapshot-uncounted", f"snapshot {snapshot.snapshot_id} does not say how much is in it")
    if not totals.data_files:
        return _nothing("no-files", f"snapshot {snapshot.snapshot_id} has no data files")
    schema = next((one for one in metadata.schemas if one.schema_id == snapshot.schema_id), None)
    chosen = _columns(metadata, policy, schema, columns)
    there = metadata.statistics_of(snapshot.snapshot_id)
    sketched = _sketched(chosen, schema, there)
    counted, notes = _of_partitions(metadata, snapshot, totals)
    notes = (*sketched.notes, *notes)
    if schema is None or not (sketched.columns or counted):
        return Decided(_all_there(metadata, snapshot, chosen, there, notes), notes=notes)
    action = ComputeStatistics(
        base_snapshot_id=snapshot.snapshot_id,
        base_metadata_location=metadata.metadata_location,
        schema_id=schema.schema_id,
        columns=sketched.columns,
        records=totals.records,
        partition_totals=totals if counted else None,
        statistics_before=None if there is None else there.path,
    )
    prediction = _prediction(observation, schema, action, totals, snapshot)
    return Decided(_reason(action, because), action, prediction, notes)


def _damage(metadata: TableMetadata) -> Reason | None:
    if not metadata.statistics_problem:
        return None
    return Reason("statistics-damaged", f"nothing to do: {metadata.statistics_problem}")


def _columns(
    metadata: TableMetadata, policy: Policy, schema: Schema | None, asked: Sequence[str] | None
) -> ChosenColumns:
    """The columns that are to have a sketch, whether they have one or not."""
    if schema is None:
        text = "no statistics at all: the snapshot does not say which schema it was written with"
        return ChosenColumns((), (Reason("schema-unknown", text),))
    problem = first_not_kept(schema.fields, spark_keeps)
    if problem is not None:
        path, kind = problem
        text = f"no statistics of columns: Spark cannot read {wording.name(path)}, of type {wording.cut(kind)}"
        return ChosenColumns((), (Reason("columns-unreadable", text),))
    names = policy.statistics_columns if asked is None else asked
    return default_columns(metadata, schema) if names is None else wanted_columns(schema, names)


def _sketched(chosen: ChosenColumns, schema: Schema | None, there: StatisticsFile | None) -> ChosenColumns:
    """The columns of the new file: those chosen, and those that the snapshot's present file has; none if all are there.

    A snapshot has one statistics file. What is in it and cannot be made anew, somebody else's blobs, keeps it as it is.
    """
    if schema is None or there is None:
        return chosen
    if all(column.field_id in there.sketched_fields for column in chosen.columns):
        return ChosenColumns((), chosen.notes)
    before = of_fields(schema, there.sketched_fields)
    if before is None or any(blob.sketched_field is None for blob in there.blobs):
        text = "no statistics of columns: the snapshot's statistics file has others, which would be lost"
        return ChosenColumns((), (*chosen.notes, Reason("statistics-of-others", text)))
    together = tuple(dict.fromkeys((*chosen.columns, *before)))
    if len(together) > COLUMNS_MAX:
        text = f"no statistics of columns: with those that there are they would be more than {COLUMNS_MAX}"
        return ChosenColumns((), (*chosen.notes, Reason("too-many-columns", text)))
    return ChosenColumns(together, chosen.notes)


def _of_partitions(
    metadata: TableMetadata, snapshot: Snapshot, totals: PartitionTotals
) -> tuple[bool, tuple[Reason, ...]]:
    """Whether statistics of partitions are computed, and what is to be said where they are not."""
    if metadata.partition_statistics_of(snapshot.snapshot_id) is not None or not totals.data_files:
        return False, ()
    if all(spec.is_unpartitioned for spec in metadata.specs):
        return False, ()
    written = metadata.properties.get(_DEFAULT_FORMAT, _READ_BACK)
    if written.lower() != _READ_BACK:
        text = f"no statistics of partitions: they would be written as {wording.name(written)}, which is not read back"
        return False, (Reason("partitions-unproved", text),)
    return True, ()


def _totals(observation: Observation, snapshot: Snapshot) -> PartitionTotals | None:
    """What is in a snapshot: by the inventory, which has the current one; of others by what their writers counted."""
    if snapshot.snapshot_id == observation.inventory.snapshot_id:
        counts = [statistics.counts for statistics in observation.inventory.partitions]
        return PartitionTotals(
            data_files=sum(each.data_files for each in counts),
            records=sum(each.records for each in counts),
            delete_files=sum(each.delete_files for each in counts),
            data_bytes=sum(each.data_bytes for each in counts),
            digest=figures_digest(_figures(statistics) for statistics in observation.inventory.partitions),
        )
    files, records = snapshot.number("total-data-files"), snapshot.number("total-records")
    deletes = snapshot.number("total-delete-files")
    if files is None or records is None or deletes is None:
        return None
    return PartitionTotals(files, records, deletes)


def _figures(statistics: PartitionStatistics) -> PartitionFigures:
    spec_id, counts = statistics.partition.spec_id, statistics.counts
    return PartitionFigures(spec_id, counts.data_files, counts.records, counts.delete_files, counts.data_bytes)


def _all_there(
    metadata: TableMetadata,
    snapshot: Snapshot,
    chosen: ChosenColumns,
    there: StatisticsFile | None,
    notes: Sequence[Reason],
) -> Reason:
    of_partitions = metadata.partition_statistics_of(snapshot.snapshot_id) is not None
    figures = {"columns": len(chosen.columns), "notes": len(notes)}
    if there is None and not of_partitions:
        why = notes[0].text if notes else "no column that could have any"
        return Reason("no-columns", f"nothing to do: there would be {why}", figures)
    text = f"nothing to do: snapshot {snapshot.snapshot_id} has all statistics that could be computed"
    return Reason("statistics-there", text, figures)


def _nothing(code: str, why: str) -> StatisticsDecision:
    return Decided(Reason(code, f"nothing to do: {why}"))


def _reason(action: ComputeStatistics, because: Reason | None) -> Reason:
    said = []
    if action.columns:
        said.append(f"distinct values of {wording.count(len(action.columns), 'column')}")
    if action.partition_totals is not None:
        said.append("figures of its partitions")
    text = f"{' and '.join(said)}, of snapshot {action.base_snapshot_id}"
    figures = {"columns": len(action.columns), "records": action.records}
    return Reason("compute-statistics", text if because is None else f"{text}: {because.text}", figures)


def _prediction(
    observation: Observation, schema: Schema, action: ComputeStatistics, totals: PartitionTotals, snapshot: Snapshot
) -> ComputeStatisticsPrediction:
    data_bytes = totals.data_bytes
    if data_bytes is None:
        data_bytes = snapshot.number("total-files-size") or 0
    share = share_of_bytes(schema, action.columns)
    is_current = snapshot.snapshot_id == observation.inventory.snapshot_id
    return ComputeStatisticsPrediction(
        columns=tuple(column.name for column in action.columns),
        of_partitions=action.partition_totals is not None,
        read_files=totals.data_files if action.columns else 0,
        read_records=totals.records if action.columns else 0,
        read_bytes=int(data_bytes * share),
        data_bytes=data_bytes,
        manifests=len(observation.inventory.manifests) if is_current else 0,
        gain=_gain(action.columns, of_partitions=action.partition_totals is not None),
        call=statistics_call(observation.metadata, action),
    )


def _gain(columns: Sequence[StatisticsColumn], *, of_partitions: bool) -> str:
    said = []
    if columns:
        said.append(
            "Trino and others plan joins by the distinct values, of this snapshot and those that follow; Spark does so "
            "with spark.sql.cbo.enabled, for queries of this very snapshot"
        )
    if of_partitions:
        said.append("tools learn what is in each partition from one small file in place of all manifests")
    return "; ".join(said)


def explain_statistics(said: ComputeStatisticsPrediction) -> tuple[str, ...]:
    """What statistics would bring, in sentences."""
    return (f"What for: {said.gain}.",)


def statistics_call(metadata: TableMetadata, action: ComputeStatistics) -> str:
    """One SQL statement, or two with a semicolon between them."""
    snapshot, said = f"snapshot_id => {action.base_snapshot_id}", []
    if action.columns:
        names = ", ".join(literal(column.name) for column in action.columns)
        said.append(procedure_call(metadata.name, "compute_table_stats", snapshot, f"columns => array({names})"))
    if action.partition_totals is not None:
        said.append(procedure_call(metadata.name, "compute_partition_stats", snapshot))
    return "; ".join(said)
