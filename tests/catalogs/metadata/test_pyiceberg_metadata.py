"""Table metadata from raw JSON: what older and newer writers leave out or add."""

from __future__ import annotations

from typing import Any

import pytest

from icewright.catalogs.metadata.metadata import parse_metadata
from icewright.core.errors import Unreadable, Unsupported
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.tables import PartitionField, Ref, RefKind, SortField, TableMetadata
from tests.cases import each_case

NAME = TableName("lake", ("db",), "events")
UUID = "9C12D441-03FE-4693-9A96-A0705DDF69C1"
FIELDS = [{"id": 1, "name": "x", "required": True, "type": "long"}]


def v1(**changes: Any) -> dict[str, Any]:
    """The least that the spec asks of v1 (and a uuid)."""
    return {
        "format-version": 1,
        "table-uuid": UUID,
        "location": "file:///lake/db/events",
        "last-updated-ms": 1_602_638_573_874,
        "last-column-id": 1,
        "schema": {"type": "struct", "fields": FIELDS},
        "partition-spec": [{"name": "x_day", "transform": "day", "source-id": 1}],
        **changes,
    }


def v2(**changes: Any) -> dict[str, Any]:
    return {
        "format-version": 2,
        "table-uuid": UUID,
        "location": "file:///lake/db/events",
        "last-sequence-number": 1,
        "last-updated-ms": 1_602_638_573_874,
        "last-column-id": 1,
        "current-schema-id": 1,
        "schemas": [
            {"type": "struct", "schema-id": 1, "fields": FIELDS},
            {"type": "struct", "schema-id": 0, "fields": []},
        ],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-sort-order-id": 3,
        "sort-orders": [
            {"order-id": 0, "fields": []},
            {
                "order-id": 3,
                "fields": [{"transform": "identity", "source-id": 1, "direction": "desc", "null-order": "nulls-last"}],
            },
        ],
        **changes,
    }


def snapshot(**changes: Any) -> dict[str, Any]:
    return {"snapshot-id": 7, "timestamp-ms": 5, "sequence-number": 1, "manifest-list": "file:///l.avro", **changes}


def parsed(raw: Any) -> TableMetadata:
    return parse_metadata(raw, name=NAME, metadata_location="file:///m.json")


def test_the_least_v1_table() -> None:
    table = parsed(v1())
    assert table.table_id == TableId("lake", UUID.lower())
    assert (table.format_version, table.current_schema_id, table.default_spec_id) == (1, 0, 0)
    assert table.specs[0].fields == (PartitionField(1, 1000, "x_day", "day"),)
    assert table.sort_order.fields == ()
    assert (table.current_snapshot_id, table.snapshots, table.refs, table.properties) == (None, (), (), {})


def test_a_v2_table_has_a_current_schema_and_order() -> None:
    table = parsed(v2())
    assert [field["name"] for field in table.schema.fields] == ["x"]
    assert table.sort_order.order_id == 3
    assert table.sort_order.fields == (SortField(1, "identity", "desc", "nulls-last"),)


def test_a_current_snapshot_of_minus_one_is_none() -> None:
    assert parsed(v2(**{"current-snapshot-id": -1})).current_snapshot_id is None


def test_snapshots_and_refs() -> None:
    summary = {"operation": "append", "icewright.task-id": "task-1"}
    ref = {"type": "tag", "snapshot-id": 7, "max-ref-age-ms": 9}
    table = parsed(v2(**{"snapshots": [snapshot(summary=summary)], "current-snapshot-id": 7, "refs": {"release": ref}}))
    assert table.current_snapshot is not None
    assert table.current_snapshot.task_id == "task-1"
    # main is implied by the current snapshot where the writer left it out.
    assert table.refs == (Ref("main", RefKind.BRANCH, 7), Ref("release", RefKind.TAG, 7, max_ref_age_ms=9))


def test_snapshots_of_v1_may_lack_almost_everything() -> None:
    (only,) = parsed(v1(snapshots=[{"snapshot-id": 7, "timestamp-ms": 5, "manifests": ["a"]}])).snapshots
    assert (only.sequence_number, only.operation, only.manifest_list, only.schema_id) == (0, None, "", None)


def test_an_unknown_operation_is_none() -> None:
    table = parsed(v2(snapshots=[snapshot(summary={"operation": "compact"})]))
    assert table.snapshots[0].operation is None


def test_types_nobody_knows_yet_do_not_hide_a_table() -> None:
    fields = [{"id": 1, "name": "v", "required": False, "type": "variant"}]
    table = parsed(v2(**{"format-version": 3, "schemas": [{"schema-id": 1, "fields": fields}]}))
    assert table.schema.fields[0]["type"] == "variant"


def test_transforms_of_one_column_may_be_written_as_of_several() -> None:
    field = {"name": "b", "field-id": 1000, "transform": "bucket[4]", "source-ids": [1]}
    assert parsed(v2(**{"partition-specs": [{"spec-id": 0, "fields": [field]}]})).specs[0].fields[0].source_id == 1
    field["source-ids"] = [1, 2]
    with pytest.raises(Unsupported, match="2 columns"):
        parsed(v2(**{"partition-specs": [{"spec-id": 0, "fields": [field]}]}))


def test_a_newer_format_version_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="format version 4"):
        parsed(v2(**{"format-version": 4}))


def test_a_table_without_a_uuid_gets_a_stand_in_that_is_none() -> None:
    raw = v1()
    del raw["table-uuid"]
    table = parsed(raw)
    assert not table.has_uuid
    assert table.table_id.uuid.startswith("no-uuid-")
    assert len(table.table_id.uuid) == len(UUID)
    assert parsed({**raw, "last-updated-ms": 1}).table_id == table.table_id
    assert parsed({**raw, "location": "file:///elsewhere"}).table_id != table.table_id
    assert parsed(v1()).has_uuid


@each_case(
    "raw",
    [
        v2(location=None),
        v2(**{"format-version": "2"}),
        v2(**{"last-updated-ms": True}),
        v2(schemas=[{"schema-id": 1}]),
        v2(schemas=[{"schema-id": 1, "fields": [{"name": "a", "required": False, "type": "int"}]}]),
        v2(schemas=[{"schema-id": 1, "fields": [{"id": 1, "name": "a", "required": False}]}]),
        v2(schemas=[{"schema-id": 1, "fields": [{"id": 1, "name": "a", "required": False, "type": 7}]}]),
        v2(schemas=[{"schema-id": 1, "fields": [{"id": 1, "name": "a", "type": {"type": "struct", "fields": [{}]}}]}]),
        v2(schemas=[{"schema-id": 1, "fields": [{"id": 1, "name": "a", "type": {"type": "list"}}]}]),
        v2(snapshots=[{"snapshot-id": 1}]),
        v2(refs={"main": {"type": "trunk", "snapshot-id": 1}}),
        v2(refs={"main": {"type": "branch", "snapshot-id": 1, "max-snapshot-age-ms": "9"}}),
        v2(**{"default-sort-order-id": 9}),
        v2(**{"default-spec-id": 9}),
        v2(**{"current-schema-id": 9}),
        v2(**{"current-snapshot-id": 9}),
        {},
    ],
)
def test_damage_is_never_guessed_away(raw: Any) -> None:
    with pytest.raises((ValueError, KeyError, TypeError, OSError, EOFError)):
        parsed(raw)


def test_something_else_than_an_object_is_unreadable() -> None:
    with pytest.raises(Unreadable):
        parsed([])
