"""What the entry of a new file says of its columns where Iceberg's Java wrote it, without what makes readers lose rows.

Java leaves NaN out of bounds, while Spark holds NaN to be greater than all numbers, and it skips files without any
other value. Java orders -0.0 before 0.0, which are equal in SQL. As in a merge (:mod:`.metrics`),
there is no upper bound where there is NaN, no count of NaN where there is nothing else, and bounds of zero cover both.
Nothing is said of an identity partition column that is not true of the partition.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from icewright.model.iceberg.files import Partition
from icewright_spark.iceberg.java_api import REFUSALS, SparkTable
from icewright_spark.parquet.errors import UnsupportedColumn
from icewright_spark.parquet.metrics import ColumnMetrics, metrics_from_json, metrics_in_json
from icewright_spark.parquet.partition_values import partition_scalars, without_columns, without_others
from icewright_spark.parquet.schema import leaves

_LAYOUTS: Final = {"float": "<f", "double": "<d"}


def with_careful_metrics(table: SparkTable, data_file: Any) -> Any:
    """Java's ``DataFile`` with metrics that readers lose no rows by: itself where they are such already."""
    spec = table.java.specs().get(data_file.specId())
    try:
        described = json.loads(table.jvm.org.apache.iceberg.ContentFileParser.toJson(data_file, spec))
    except REFUSALS:  # a partition without JSON; rows that would move to one are refused as they are read back
        return data_file
    metrics = metrics_from_json(described)
    fields = table.schema_fields()
    kinds = {leaf.field_id: leaf.type for leaf in leaves(fields)}
    partition = Partition(int(data_file.specId()), json.dumps(described["partition"]))
    careful, values = careful_with_floats(metrics, kinds), table.identity_values(partition)
    try:
        scalars = partition_scalars(values, fields)
    except UnsupportedColumn:  # beyond the years that Arrow reads
        scalars, careful = {}, without_columns(careful, values)
    careful = without_others(careful, fields, table.metrics_modes(), int(data_file.recordCount()), scalars)
    if careful == metrics:
        return data_file
    described |= metrics_in_json(careful)
    size_bytes, rows = described.pop("file-size-in-bytes"), described.pop("record-count")
    path = described.pop("file-path")
    return table.data_file(partition, path=path, size_bytes=size_bytes, record_count=rows, described=described)


def careful_with_floats(metrics: ColumnMetrics, kinds: Mapping[int, str]) -> ColumnMetrics:
    """The metrics of a file, ``kinds`` being the types of its columns by field id."""
    with_nan = {field_id for field_id, count in metrics.nan_counts.items() if count}
    only = {field_id for field_id in with_nan if metrics.nan_counts[field_id] == metrics.value_counts.get(field_id)}
    return replace(
        metrics,
        nan_counts={field_id: count for field_id, count in metrics.nan_counts.items() if field_id not in only},
        lower_bounds={
            field_id: _of_zero(kinds.get(field_id), bound, -0.0) for field_id, bound in metrics.lower_bounds.items()
        },
        upper_bounds={
            field_id: _of_zero(kinds.get(field_id), bound, 0.0)
            for field_id, bound in metrics.upper_bounds.items()
            if field_id not in with_nan
        },
    )


def _of_zero(kind: str | None, bound: bytes, zero: float) -> bytes:
    layout = _LAYOUTS.get(kind or "")
    if layout is None or len(bound) != struct.calcsize(layout) or struct.unpack(layout, bound)[0] != 0:
        return bound
    return struct.pack(layout, zero)
