"""The Spark ``CALL``s that come nearest to computing statistics, see :mod:`icewright.plans.procedure_call`."""

from __future__ import annotations

from icewright.model.actions.compute_statistics import ComputeStatistics
from icewright.model.iceberg.tables import TableMetadata
from icewright.plans.procedure_call import literal, procedure_call


def statistics_call(metadata: TableMetadata, action: ComputeStatistics) -> str:
    """One SQL statement, or two with a semicolon between them."""
    snapshot, said = f"snapshot_id => {action.base_snapshot_id}", []
    if action.columns:
        names = ", ".join(literal(column.name) for column in action.columns)
        said.append(procedure_call(metadata.name, "compute_table_stats", snapshot, f"columns => array({names})"))
    if action.partition_totals is not None:
        said.append(procedure_call(metadata.name, "compute_partition_stats", snapshot))
    return "; ".join(said)
