"""What a table keeps plans and executors from, stated a second time, for the other ``check_`` modules.

Nothing is imported that the planner chooses executors or refuses partitions by: lists and rules stand here again, in
another way of putting them, as a mistake has to be made twice to reach a table.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, TypeAlias

from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.policy.policy import Policy

Wrong: TypeAlias = tuple[str, str]
"""A stable code, and a sentence with what was found."""

_BOTH = {"boolean", "int", "long", "float", "double", "date", "timestamp", "timestamptz", "string", "uuid", "binary"}
_MERGE_ONLY = {"time", "timestamp_ns", "timestamptz_ns"}
_STAGE_ONLY = {"variant"}
_SIZED = ("decimal", "fixed")
_INSTANTS = {"date", "time", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"}
_CODECS = {"zstd", "gzip", "brotli", "snappy", "uncompressed", "none"}
_DECIMAL_DIGITS_MAX = 38
_WITHOUT_ROW_IDS_MAX = 2


def table_violations(metadata: TableMetadata, policy: Policy, formats: Collection[int]) -> Iterator[Wrong]:
    """Why nothing may be done to a table's manifests, whatever it is: it must be of one of these format versions."""
    if not metadata.has_uuid:
        yield "no-uuid", "the table has no uuid"
    if metadata.format_version not in formats:
        yield "format-version", f"the table has format version {metadata.format_version}"
    if any(key.startswith("encryption.") for key in metadata.properties):
        yield "encryption", "the table is encrypted, and so are its manifests"
    if policy.problems:
        yield "policy-problem", "a setting of the table cannot be used"


def base_violations(base_snapshot_id: int, metadata: TableMetadata) -> Iterator[Wrong]:
    """A plan is made from the table's current snapshot."""
    if base_snapshot_id != metadata.current_snapshot_id:
        yield "wrong-base", f"it is planned from {base_snapshot_id}, not from {metadata.current_snapshot_id}"


def not_mergeable(metadata: TableMetadata) -> str | None:
    """Why no group of a table may be merged, None when groups may be."""
    found = [*_schema_against_merging(metadata), *_properties_against_merging(metadata.properties)]
    return found[0] if found else None


def not_stageable(metadata: TableMetadata) -> str | None:
    """Why no group of a table may be staged for Spark, None when groups may be."""
    wrong = [kind for kind in _leaves(_current(metadata)) if not _known(kind, _BOTH | _STAGE_ONLY)]
    return f"Spark has no type {wrong[0]}" if wrong else None


def not_stitchable(metadata: TableMetadata) -> str | None:
    """Why no row group of a table may be copied into another file, None when they may be."""
    if metadata.format_version > _WITHOUT_ROW_IDS_MAX:
        return "its rows have ids that follow from their place in a file"
    if metadata.properties.get("write.format.default", "parquet").lower() != "parquet":
        return "it is written in another format"
    wrong = [kind for kind in _leaves(_current(metadata)) if not _known(kind, _BOTH | _MERGE_ONLY)]
    return f"a column of type {wrong[0]} could not be read back" if wrong else None


def not_writable(metadata: TableMetadata, partition: Partition) -> str | None:
    """Why a file cannot be put into a partition, None when it can; a spec that is not there is none of this."""
    specs = [spec for spec in metadata.specs if spec.spec_id == partition.spec_id]
    kinds = dict(_types_by_id(_current(metadata)))
    for spec in specs:
        fields = [field for field in spec.fields if field.transform != "void"]
        if any(field.source_id not in kinds for field in fields):
            return "a column that it is partitioned by was dropped"
        values = json.loads(partition.values)
        for field, value in zip(spec.fields, values, strict=False):
            kind = "date" if field.transform == "day" else kinds.get(field.source_id)
            if field.transform not in ("identity", "day") or value is None:
                continue
            if kind in ("float", "double") and isinstance(value, str):
                return f"{value} has no form in JSON"
            if kind in _INSTANTS and isinstance(value, int):
                return f"{value} is an instant that has no form in JSON"
    return None


def _schema_against_merging(metadata: TableMetadata) -> Iterator[str]:
    current = _current(metadata)
    for kind in _leaves(current):
        if not _known(kind, _BOTH | _MERGE_ONLY):
            yield f"a merge has no type {kind}"
    for field in _all_fields(current):
        if field.get("initial-default") is not None:
            yield f"field {field['id']} has an initial default"
    now = {field["id"]: field["type"] for field in current}
    for schema in metadata.schemas:
        for field in schema.fields:
            is_nested = isinstance(now.get(field["id"]), Mapping)
            if is_nested and _skeleton(now[field["id"]]) != _skeleton(field["type"]):
                yield f"field {field['id']} was of another shape"


def _properties_against_merging(properties: Mapping[str, str]) -> Iterator[str]:
    if "schema.name-mapping.default" in properties:
        yield "it has a name mapping"
    if properties.get("write.format.default", "parquet").lower() != "parquet":
        yield "it is written in another format"
    if properties.get("write.parquet.compression-codec", "zstd").lower() not in _CODECS:
        yield "it is written with another codec"
    for key, value in properties.items():
        if key.startswith("write.parquet.bloom-filter-enabled.column.") and value.strip().lower() == "true":
            yield "it wants bloom filters"


def _current(metadata: TableMetadata) -> tuple[Mapping[str, Any], ...]:
    for schema in metadata.schemas:
        if schema.schema_id == metadata.current_schema_id:
            return schema.fields
    return ()


def _below(kind: Any) -> list[Mapping[str, Any]]:
    """The fields right below a nested type of the spec's JSON."""
    if isinstance(kind, str):
        return []
    if "fields" in kind:
        return list(kind["fields"])
    return [
        {"id": kind[f"{part}-id"], "name": part, "type": kind[part]}
        for part in ("element", "key", "value")
        if part in kind
    ]


def _all_fields(fields: Any) -> Iterator[Mapping[str, Any]]:
    pending = list(fields)
    while pending:
        field = pending.pop()
        yield field
        pending.extend(_below(field["type"]))


def _leaves(fields: Any) -> Iterator[str]:
    """The names of all types that nothing is below; a nested type without fields among them."""
    for field in _all_fields(fields):
        if not _below(field["type"]):
            yield field["type"] if isinstance(field["type"], str) else str(field["type"].get("type"))


def _types_by_id(fields: Any) -> Iterator[tuple[int, Any]]:
    return ((field["id"], field["type"]) for field in _all_fields(fields))


def _known(kind: str, names: set[str]) -> bool:
    if kind in names:
        return True
    name, _, sizes = kind.partition("(" if kind.startswith("decimal") else "[")
    digits = sizes.rstrip(")]").split(",")[0].strip()
    if name not in _SIZED or not digits.isdecimal():
        return False
    return name == "fixed" or 0 < int(digits) <= _DECIMAL_DIGITS_MAX


def _skeleton(kind: Any) -> Any:
    """A type without documentation and whether fields are required: ids, names and types of all levels."""
    if isinstance(kind, str):
        return kind
    return [(field["id"], field["name"], _skeleton(field["type"])) for field in _below(kind)]
