"""Partitions that a merged file could not be put into, found before anything is merged.

A job tells Iceberg the partition of its output in the spec's JSON form (Appendix D, "JSON single-value serialization"),
read against the current schema. That form has no NaN, no infinities and, as Iceberg's Java reads it, no instants beyond
the years 1 to 9999; and a value whose column was dropped has no type to be read as.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from icewright.core import wording
from icewright.model.iceberg.column_types import all_fields
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.tables import PartitionField, TableMetadata
from icewright.model.plans.plans import Reason

_VOID = "void"
_FLOATS = frozenset({"float", "double"})
_INSTANTS = frozenset({"date", "time", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"})
_KEEPS_TYPE = "identity"


def column_types(metadata: TableMetadata) -> Mapping[int, Any]:
    """The types of all columns of the current schema by field id, nested ones included."""
    return {field["id"]: field["type"] for _, field in all_fields(metadata.schema.fields)}


def placement_obstacle(metadata: TableMetadata, types: Mapping[int, Any], partition: Partition) -> Reason | None:
    """Why no file can be written to a partition, or None; ``types`` as from :func:`column_types`.

    Raises KeyError for a spec that the table does not have.
    """
    spec = metadata.spec(partition.spec_id)
    if spec.is_unpartitioned:
        return None
    dropped = [field for field in spec.fields if field.transform != _VOID and field.source_id not in types]
    if dropped:
        text = f"it is partitioned by {wording.name(dropped[0].name)}, whose column was dropped, and cannot be written"
        return Reason("dropped-partition-column", text, {"spec_id": spec.spec_id})
    for field, value in zip(spec.fields, json.loads(partition.values), strict=True):
        if not _has_form(field, types.get(field.source_id), value):
            text = f"its value {wording.quoted(str(value))} of {wording.name(field.name)} cannot be handed to Spark yet"
            return Reason("partition-value", text)
    return None


def takes_delete_files(metadata: TableMetadata, types: Mapping[int, Any], partition: Partition) -> bool:
    """Whether Iceberg can be told of delete files in a partition; it has no JSON of files of specs of void alone."""
    spec = next((each for each in metadata.specs if each.spec_id == partition.spec_id), None)
    if spec is None or (spec.is_unpartitioned and spec.fields):
        return False
    return placement_obstacle(metadata, types, partition) is None


def _has_form(field: PartitionField, source_type: Any, value: Any) -> bool:
    """Whether a value stands in the spec's form; where that has none, the inventory keeps a form of its own."""
    result_type = "date" if field.transform == "day" else source_type if field.transform == _KEEPS_TYPE else None
    if result_type in _FLOATS:
        return not isinstance(value, str)
    if result_type in _INSTANTS:
        return not isinstance(value, int)
    return True
