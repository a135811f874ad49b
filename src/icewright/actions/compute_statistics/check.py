"""What a plan to compute statistics must fulfil, stated a second time; nothing of the planner is imported.

Statistics cannot harm rows. What could go wrong is that somebody else's statistics are lost, that a name is read as
something else than one column, and that wrong totals let wrong statistics pass.
"""

from __future__ import annotations

import string
from collections.abc import Iterator
from hashlib import sha256
from typing import Final

from icewright.model.actions.compute_statistics import ComputeStatistics, ComputeStatisticsPrediction
from icewright.model.plans.observation import Observation
from icewright.model.policy.policy import Policy
from icewright.plans.check_table import Wrong, table_violations

_FORMATS: Final = (1, 2, 3)
_MOST_COLUMNS: Final = 100
_NAMED_BY: Final = frozenset(string.ascii_letters + string.digits + "_")


def statistics_violations(
    action: ComputeStatistics, prediction: ComputeStatisticsPrediction, observation: Observation, policy: Policy
) -> Iterator[Wrong]:
    """What is wrong with a plan to compute statistics."""
    metadata = observation.metadata
    yield from table_violations(metadata, policy, _FORMATS)
    if action.base_metadata_location != metadata.metadata_location:
        yield "wrong-base", f"it is planned from {action.base_metadata_location}"
    if not action.columns and action.partition_totals is None:
        yield "empty", "it computes nothing"
    if prediction.columns != tuple(column.name for column in action.columns):
        yield "wrong-figures", "the prediction is of other columns"
    if prediction.of_partitions is not (action.partition_totals is not None):
        yield "wrong-figures", "the prediction is of other statistics"
    yield from _columns(action, observation)
    yield from _present(action, observation)
    yield from _counts(action, observation)


def _columns(action: ComputeStatistics, observation: Observation) -> Iterator[Wrong]:
    metadata = observation.metadata
    snapshot = metadata.snapshot(action.base_snapshot_id)
    if snapshot is None:
        yield "snapshot-missing", f"the table has no snapshot {action.base_snapshot_id}"
        return
    schemas = {schema.schema_id: schema for schema in metadata.schemas}
    if snapshot.schema_id != action.schema_id or action.schema_id not in schemas:
        yield "wrong-schema", f"the snapshot is of schema {snapshot.schema_id}, not {action.schema_id}"
        return
    if len({column.field_id for column in action.columns}) < len(action.columns):
        yield "twice", "a column is named twice"
    if len(action.columns) > _MOST_COLUMNS:
        yield "too-many-columns", f"{len(action.columns)} columns"
    fields = schemas[action.schema_id].fields
    for column in action.columns:
        alike = [field for field in fields if str(field["name"]).casefold() == column.name.casefold()]
        if [(field["id"], field["name"]) for field in alike] != [(column.field_id, column.name)]:
            yield "wrong-column", f"{column.name!r} is not the one column {column.field_id} of its schema"
        elif not isinstance(alike[0]["type"], str) or set(column.name) - _NAMED_BY or column.name[:1].isdigit():
            yield "wrong-column", f"{column.name!r} cannot be named to Spark, or is nested"


def _present(action: ComputeStatistics, observation: Observation) -> Iterator[Wrong]:
    """Nothing that the snapshot has is lost."""
    metadata = observation.metadata
    files = [one for one in metadata.statistics if one.snapshot_id == action.base_snapshot_id]
    if [one.path for one in files] != ([] if action.statistics_before is None else [action.statistics_before]):
        yield "statistics-changed", "the snapshot has other statistics than the plan says"
    ours = {column.field_id for column in action.columns}
    for blob in (blob for one in files for blob in one.blobs if action.columns):
        if blob.type != "apache-datasketches-theta-v1" or not ours.issuperset(blob.field_ids):
            yield "statistics-lost", f"a blob of type {blob.type} would be lost"
    if action.partition_totals is not None and any(
        one.snapshot_id == action.base_snapshot_id for one in metadata.partition_statistics
    ):
        yield "statistics-changed", "the snapshot has statistics of partitions, which Iceberg does not compute again"


def _counts(action: ComputeStatistics, observation: Observation) -> Iterator[Wrong]:
    """Of the current snapshot everything is counted by the inventory."""
    totals, inventory = action.partition_totals, observation.inventory
    if totals is not None and totals.records != action.records:
        yield "wrong-count", f"{totals.records} rows of partitions, {action.records} of the table"
    if action.base_snapshot_id != inventory.snapshot_id:
        return
    files = records = deletes = size = 0
    for partition in inventory.partitions:
        counts = partition.counts
        files, records, size = files + counts.data_files, records + counts.records, size + counts.data_bytes
        deletes += counts.position_delete_files + counts.deletion_vectors + counts.equality_delete_files
    if records != action.records:
        yield "wrong-count", f"the table has {records} rows, not {action.records}"
    if totals is None:
        return
    said = (totals.data_files, totals.delete_files, totals.data_bytes)
    if said != (files, deletes, size):
        yield "wrong-count", f"the table has {files} files, {deletes} delete files and {size} bytes, not {said}"
    if totals.digest != _digest(observation):
        yield "wrong-count", "the figures of single partitions are others than those of the table"


def _digest(observation: Observation) -> str:
    """The figures of all partitions with files, one a line and in order, as they are compared after reading back."""
    figures = []
    for partition in observation.inventory.partitions:
        counts = partition.counts
        deletes = counts.position_delete_files + counts.deletion_vectors + counts.equality_delete_files
        if counts.data_files + deletes > 0:
            spec_id = partition.partition.spec_id
            figures.append((spec_id, counts.data_files, counts.records, deletes, counts.data_bytes))
    return sha256("".join(",".join(map(str, each)) + "\n" for each in sorted(figures)).encode()).hexdigest()
