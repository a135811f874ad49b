from __future__ import annotations

from dataclasses import replace
from typing import Any

from icewright.maintenance.registry.planning import still_applies
from icewright.model.actions.actions import FileGroup, InputFile, RewriteDataFiles
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.tables import Operation, Schema, TableMetadata
from tests.builders.observations import BY_MONTH, FIELDS, NO_FIELDS, NOW, month, snapshot, table
from tests.cases import each_case

FILE = InputFile("file:/lake/t/data/1.parquet", 10, 1, 1)
ACTION = RewriteDataFiles(2, 0, (FileGroup(0, month(1), "month=1", (FILE,)),), 100)
PLANNED = table([snapshot(1), snapshot(2)])


def code(metadata: TableMetadata) -> str | None:
    reason = still_applies(ACTION, PLANNED.table_id, metadata)
    return None if reason is None else reason.code


def since(operation: Operation | None, **summary: str) -> TableMetadata:
    """The table after such a commit, and an append on top of it."""
    done = {key.replace("_", "-"): value for key, value in summary.items()}
    return table([snapshot(1), snapshot(2), snapshot(3, NOW, operation, done), snapshot(4)])


COMMITS: list[tuple[str | None, Operation | None, dict[str, str]]] = [
    (None, Operation.APPEND, {"added_data_files": "5"}),
    ("files-changed", Operation.APPEND, {"added_data_files": "5", "added_delete_files": "1"}),
    (None, Operation.REPLACE, {"manifests_replaced": "5"}),
    (None, Operation.REPLACE, {"manifests_replaced": "5", "deleted_data_files": "0"}),
    ("files-changed", Operation.REPLACE, {}),
    ("files-changed", Operation.REPLACE, {"manifests_replaced": "5", "deleted_data_files": "1"}),
    ("files-changed", Operation.REPLACE, {"manifests_replaced": "5", "added_delete_files": "1"}),
    ("files-changed", Operation.OVERWRITE, {}),
    ("files-changed", Operation.DELETE, {}),
    ("files-changed", None, {}),
]


@each_case(("expected", "operation", "summary"), COMMITS)
def test_commits_since(expected: str | None, operation: Operation | None, summary: dict[str, str]) -> None:
    assert code(since(operation, **summary)) == expected


def test_nothing_came_since() -> None:
    assert code(PLANNED) is None


CHANGES: list[tuple[str | None, dict[str, Any]]] = [
    ("table-replaced", {"table_id": TableId("lake", "another")}),
    (None, {"name": TableName("lake", ("sales",), "renamed")}),
    ("schema-changed", {"schemas": (Schema(0, FIELDS), Schema(1, FIELDS)), "current_schema_id": 1}),
    ("format-changed", {"format_version": 3}),
    ("format-changed", {"format_version": 4}),
    (None, {"format_version": 1}),
    ("spec-removed", {"specs": (NO_FIELDS,)}),
    (None, {"specs": (BY_MONTH,)}),
    ("base-gone", {"current_snapshot_id": 1}),
    ("base-gone", {"current_snapshot_id": None}),
    ("base-gone", {"snapshots": (snapshot(1),), "current_snapshot_id": 1}),
]


@each_case(("expected", "changes"), CHANGES)
def test_changes_since(expected: str | None, changes: dict[str, Any]) -> None:
    assert code(replace(PLANNED, **changes)) == expected


def test_a_plan_with_row_ids_holds_in_a_table_with_row_ids() -> None:
    group = replace(ACTION.groups[0], files=(replace(FILE, first_row_id=0),))
    action, metadata = replace(ACTION, groups=(group,)), replace(PLANNED, format_version=3)
    assert still_applies(action, PLANNED.table_id, metadata) is None


def test_a_base_behind_expired_snapshots_is_gone() -> None:
    assert code(table([snapshot(2), snapshot(4)])) == "base-gone"
