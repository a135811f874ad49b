"""The Spark ``CALL``s that come nearest to computing statistics, see :mod:`icewright.planning.call`."""

from __future__ import annotations

from icewright.domain.compute_statistics import ComputeStatistics
from icewright.domain.names import identifier
from icewright.domain.tables import TableMetadata
from icewright.planning.call import literal


def statistics_call(metadata: TableMetadata, action: ComputeStatistics) -> str:
    """One SQL statement, or two with a semicolon between them."""
    table = f"table => {literal('.'.join(identifier(part) for part in metadata.name.path))}"
    system = f"CALL {identifier(metadata.name.catalog)}.system"
    said = []
    if action.columns:
        names = ", ".join(literal(column.name) for column in action.columns)
        arguments = f"{table}, snapshot_id => {action.base_snapshot_id}, columns => array({names})"
        said.append(f"{system}.compute_table_stats({arguments})")
    if action.partition_totals is not None:
        said.append(f"{system}.compute_partition_stats({table}, snapshot_id => {action.base_snapshot_id})")
    return "; ".join(said)
