"""Table metadata from its raw JSON.

Read as the spec has it rather than through PyIceberg's models, which invent a uuid for v1 tables without one,
refuse whole tables for a type or a blob they do not know, and take ten times as long.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from icewright.core.errors import Unreadable, Unsupported
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.tables import (
    MAIN_BRANCH,
    Json,
    LoggedMetadata,
    LoggedSnapshot,
    Operation,
    PartitionField,
    PartitionSpec,
    PartitionStatisticsFile,
    Ref,
    RefKind,
    Schema,
    Snapshot,
    SortField,
    SortOrder,
    StatisticsBlob,
    StatisticsFile,
    TableMetadata,
)

FORMAT_VERSION_MAX = 3
_PARTITION_FIELD_ID_START = 1000
_NO_SNAPSHOT = -1
_STAND_IN_DIGITS = 28
"""So that the stand-in is as long as a uuid."""
_OPERATIONS = {operation.value: operation for operation in Operation}


def parse_metadata(raw: Any, *, name: TableName, metadata_location: str) -> TableMetadata:
    """The table that the JSON of a metadata file describes.

    Raises :class:`Unsupported` for a newer format version, and for a location with ``#`` or ``?``: PyIceberg cuts it
    there, as Iceberg's S3 does, while Hadoop takes it as it is. Anything missing or of the wrong type comes out as the
    KeyError, TypeError or ValueError that it causes.
    """
    if not isinstance(raw, dict):
        raise Unreadable(f"{metadata_location} holds no JSON object")
    version = _int(raw["format-version"])
    if not 1 <= version <= FORMAT_VERSION_MAX:
        raise Unsupported(
            f"table {name} has format version {version}; icewright reads versions 1 to {FORMAT_VERSION_MAX}"
        )
    location = _str(raw["location"])
    for place in (location, metadata_location):
        if "#" in place or "?" in place:
            raise Unsupported(
                f"table {name} is at {place!r}: where a location has # or ?, libraries read it as different files",
                hint="move the table to a location without them",
            )
    uuid = raw.get("table-uuid")
    current = raw.get("current-snapshot-id")
    current_snapshot_id = None if current is None or current == _NO_SNAPSHOT else _int(current)
    schemas = _schemas(raw)
    specs = _specs(raw)
    table = TableMetadata(
        table_id=TableId(name.catalog, _stand_in(name, location) if uuid is None else _str(uuid).lower()),
        name=name,
        metadata_location=metadata_location,
        location=location,
        format_version=version,
        updated_at=_int(raw["last-updated-ms"]),
        current_snapshot_id=current_snapshot_id,
        snapshots=tuple(_snapshot(item) for item in raw.get("snapshots") or ()),
        refs=_refs(raw.get("refs") or {}, current_snapshot_id),
        schemas=schemas,
        current_schema_id=_int(raw.get("current-schema-id", schemas[-1].schema_id)),
        specs=specs,
        default_spec_id=_int(raw.get("default-spec-id", specs[-1].spec_id)),
        sort_order=_sort_order(raw),
        properties={_str(key): _str(value) for key, value in (raw.get("properties") or {}).items()},
        has_uuid=uuid is not None,
        snapshot_log=tuple(
            LoggedSnapshot(_int(item["timestamp-ms"]), _int(item["snapshot-id"]))
            for item in raw.get("snapshot-log") or ()
        ),
        metadata_log=tuple(
            LoggedMetadata(_int(item["timestamp-ms"]), _str(item["metadata-file"]))
            for item in raw.get("metadata-log") or ()
        ),
        **_all_statistics(raw),
    )
    _check_references(table)
    return table


def _stand_in(name: TableName, location: str) -> str:
    """What stands for the uuid of a table that has none (v1 before 2020): the same as long as name and location are.

    It says by its look that it is no uuid.
    """
    where = json.dumps([name.catalog, *name.path, location])
    return f"no-uuid-{hashlib.sha256(where.encode()).hexdigest()[:_STAND_IN_DIGITS]}"


def _check_references(table: TableMetadata) -> None:
    """What is current must be there: a table without its current snapshot would look like an empty one."""
    if table.current_snapshot_id is not None and table.current_snapshot is None:
        raise KeyError(f"snapshot {table.current_snapshot_id}")
    if all(schema.schema_id != table.current_schema_id for schema in table.schemas):
        raise KeyError(f"schema {table.current_schema_id}")
    table.spec(table.default_spec_id)


def _schemas(raw: Json) -> tuple[Schema, ...]:
    """All schemas; v1 may have the current one alone, under ``schema``."""
    items: Sequence[Json] = raw.get("schemas") or [raw["schema"]]
    for item in items:
        _check_fields(item["fields"])
    return tuple(Schema(_int(item.get("schema-id", 0)), tuple(item["fields"])) for item in items)


def _check_fields(fields: Sequence[Json]) -> None:
    """Whoever reads a schema later takes for granted that each field has an id and a type."""
    for field in fields:
        _int(field["id"])
        _str(field["name"])
        _check_type(field["type"])


def _check_type(kind: Any) -> None:
    if isinstance(kind, str):
        return
    match _str(kind["type"]):  # of others nobody reads anything
        case "struct":
            _check_fields(kind["fields"])
        case "list":
            _check_type(kind["element"])
        case "map":
            _check_type(kind["key"])
            _check_type(kind["value"])


def _specs(raw: Json) -> tuple[PartitionSpec, ...]:
    """All partition specs; v1 may have the current one's fields alone, under ``partition-spec``."""
    items: Sequence[Json] = raw.get("partition-specs") or [{"spec-id": 0, "fields": raw["partition-spec"]}]
    return tuple(
        PartitionSpec(
            _int(item["spec-id"]),
            tuple(
                PartitionField(
                    source_id=_source_id(field),
                    # v1 writers may leave ids out; they then count up from 1000 (spec, "Partition Evolution").
                    field_id=_int(field.get("field-id", _PARTITION_FIELD_ID_START + position)),
                    name=_str(field["name"]),
                    transform=_str(field["transform"]),
                )
                for position, field in enumerate(item["fields"])
            ),
        )
        for item in items
    )


def _source_id(field: Json) -> int:
    if "source-id" in field:
        return _int(field["source-id"])
    sources = field["source-ids"]
    if len(sources) != 1:
        raise Unsupported(f"the transform {field.get('transform')!r} takes {len(sources)} columns")
    return _int(sources[0])


def _sort_order(raw: Json) -> SortOrder:
    order_id = raw.get("default-sort-order-id", 0)
    for item in raw.get("sort-orders") or ():
        if item["order-id"] == order_id:
            return SortOrder(
                _int(order_id),
                tuple(
                    SortField(
                        _source_id(field), _str(field["transform"]), _str(field["direction"]), _str(field["null-order"])
                    )
                    for field in item["fields"]
                ),
            )
    if order_id == 0:
        return SortOrder(0, ())
    raise KeyError(f"sort order {order_id}")


def _snapshot(item: Json) -> Snapshot:
    """One snapshot. v1 ones may list their manifests in place of a manifest list, which is then empty."""
    summary = item.get("summary") or {}
    parent = item.get("parent-snapshot-id")
    schema_id = item.get("schema-id")
    return Snapshot(
        snapshot_id=_int(item["snapshot-id"]),
        parent_id=None if parent is None or parent == _NO_SNAPSHOT else _int(parent),
        sequence_number=_int(item.get("sequence-number", 0)),
        committed_at=_int(item["timestamp-ms"]),
        operation=_OPERATIONS.get(summary.get("operation", "")),
        manifest_list=_str(item.get("manifest-list", "")),
        schema_id=None if schema_id is None else _int(schema_id),
        summary={_str(key): _str(value) for key, value in summary.items()},
    )


def _all_statistics(raw: Json) -> dict[str, Any]:
    """The statistics files; entries that are damaged keep nobody from reading the table, who may well ignore them."""
    try:
        return {
            "statistics": tuple(_statistics(item) for item in raw.get("statistics") or ()),
            "partition_statistics": tuple(
                PartitionStatisticsFile(
                    _int(item["snapshot-id"]), _str(item["statistics-path"]), _int(item["file-size-in-bytes"])
                )
                for item in raw.get("partition-statistics") or ()
            ),
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return {"statistics_problem": f"its entries of statistics files are damaged ({error!r:.100})"}


def _statistics(item: Json) -> StatisticsFile:
    """One statistics file; a blob of any type is described, known or not."""
    return StatisticsFile(
        snapshot_id=_int(item["snapshot-id"]),
        path=_str(item["statistics-path"]),
        size_bytes=_int(item["file-size-in-bytes"]),
        footer_size_bytes=_int(item["file-footer-size-in-bytes"]),
        blobs=tuple(
            StatisticsBlob(
                type=_str(blob["type"]),
                snapshot_id=_int(blob["snapshot-id"]),
                sequence_number=_int(blob["sequence-number"]),
                field_ids=tuple(_int(field) for field in blob["fields"]),
                properties={_str(key): _str(value) for key, value in (blob.get("properties") or {}).items()},
            )
            for blob in item.get("blob-metadata") or ()
        ),
    )


def _refs(items: Json, current_snapshot_id: int | None) -> tuple[Ref, ...]:
    refs = [
        Ref(
            name=_str(name),
            kind=RefKind(item["type"]),
            snapshot_id=_int(item["snapshot-id"]),
            max_ref_age_ms=_int_or_none(item.get("max-ref-age-ms")),
            max_snapshot_age_ms=_int_or_none(item.get("max-snapshot-age-ms")),
            min_snapshots_to_keep=_int_or_none(item.get("min-snapshots-to-keep")),
        )
        for name, item in items.items()
    ]
    if current_snapshot_id is not None and MAIN_BRANCH not in items:
        refs.append(Ref(MAIN_BRANCH, RefKind.BRANCH, current_snapshot_id))
    return tuple(sorted(refs, key=lambda ref: ref.name))


def _int(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"expected an integer, found {value!r:.100}")
    return value


def _int_or_none(value: Any) -> int | None:
    return None if value is None else _int(value)


def _str(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a string, found {value!r:.100}")
    return value
