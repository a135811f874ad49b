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
from typing import Any, Final

from icewright.model.iceberg.files import Partition
from icewright_spark.executors.stitch.metrics import file_metrics
from icewright_spark.iceberg.java_api import REFUSALS, SparkTable
from icewright_spark.parquet.errors import UnsupportedColumn
from icewright_spark.parquet.metrics import ColumnMetrics
from icewright_spark.parquet.partition_values import partition_scalars, without_columns, without_others
from icewright_spark.parquet.schema import leaves

_LAYOUTS: Final = {"float": "<f", "double": "<d"}
_FIELDS: Final = {
    "value-counts": "value_counts",
    "null-value-counts": "null_counts",
    "nan-value-counts": "nan_counts",
    "lower-bounds": "lower_bounds",
    "upper-bounds": "upper_bounds",
}


def with_careful_metrics(table: SparkTable, data_file: Any) -> Any:
    """Java's ``DataFile`` with metrics that readers lose no rows by: itself where they are such already."""
    spec = table.java.specs().get(data_file.specId())
    try:
        described = json.loads(table.jvm.org.apache.iceberg.ContentFileParser.toJson(data_file, spec))
    except REFUSALS:  # a partition without JSON; rows that would move to one are refused as they are read back
        return data_file
    said = file_metrics(described)
    metrics = ColumnMetrics(
        dict(said.value_counts),
        dict(said.null_counts),
        dict(said.nan_counts),
        dict(said.lower_bounds),
        dict(said.upper_bounds),
    )
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
    described |= {name: _in_json(getattr(careful, field)) for name, field in _FIELDS.items()}
    size_bytes, rows = described.pop("file-size-in-bytes"), described.pop("record-count")
    path = described.pop("file-path")
    return table.data_file(partition, path=path, size_bytes=size_bytes, record_count=rows, described=described)


def careful_with_floats(metrics: ColumnMetrics, kinds: Mapping[int, str]) -> ColumnMetrics:
    """The metrics of a file, ``kinds`` being the types of its columns by field id."""
    with_nan = {field_id for field_id, count in metrics.nan_counts.items() if count}
    only = {field_id for field_id in with_nan if metrics.nan_counts[field_id] == metrics.value_counts.get(field_id)}
    return ColumnMetrics(
        metrics.value_counts,
        metrics.null_counts,
        {field_id: count for field_id, count in metrics.nan_counts.items() if field_id not in only},
        {field_id: _of_zero(kinds.get(field_id), bound, -0.0) for field_id, bound in metrics.lower_bounds.items()},
        {
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


def _in_json(said: Mapping[int, Any]) -> dict[str, list[Any]]:
    values = [value.hex().upper() if isinstance(value, bytes) else value for value in said.values()]
    return {"keys": list(said), "values": values}
