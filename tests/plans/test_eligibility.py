from __future__ import annotations

from dataclasses import replace
from typing import Any

from icewright.actions.rewrite_data_files.executors import table_obstacle
from icewright.model.iceberg.tables import Operation, Snapshot, TableMetadata
from icewright.model.plans.observation import WorkerAccess
from icewright.plans.eligibility import FOREIGN_REPLACE_WINDOW_MS, is_foreign_rewrite
from icewright.policy.effective import effective_policy
from tests.builders.observations import DAY_MS, NOW, policy, snapshot, table
from tests.cases import each_case
from tests.narrowing import not_none

REWROTE = {"added-data-files": "1", "deleted-data-files": "9", "engine-name": "spark"}


def code(metadata: TableMetadata) -> str | None:
    reason = table_obstacle(metadata, effective_policy(metadata, ()))
    return None if reason is None else reason.code


def column(kind: Any, **more: Any) -> dict[str, Any]:
    return {"id": 7, "name": "c", "type": kind, "required": False, **more}


def struct(*names: str, kind: Any = "int") -> dict[str, Any]:
    fields = [{"id": 10 + n, "name": name, "type": kind, "required": False} for n, name in enumerate(names)]
    return {"type": "struct", "fields": fields}


def list_of(kind: Any) -> dict[str, Any]:
    return {"type": "list", "element-id": 20, "element": kind, "element-required": False}


def map_of(key: Any, value: Any) -> dict[str, Any]:
    return {"type": "map", "key-id": 21, "key": key, "value-id": 22, "value": value, "value-required": False}


TABLES: list[tuple[str | None, dict[str, Any]]] = [
    (None, {}),
    (None, {"format_version": 1}),
    (None, {"properties": {"gc.enabled": "false", "icewright.mode": "observe", "write.format.default": "PARQUET"}}),
    (None, {"properties": {"write.format.default": "orc"}}),
    (None, {"properties": {"write.parquet.compression-codec": "lz4"}}),
    ("writer-property", {"properties": {"write.parquet.compression-level": "high"}}),
    ("writer-property", {"properties": {"write.parquet.row-group-size-bytes": "128MB"}}),
    (None, {"location": "/lake/t"}),
    (None, {"properties": {"write.parquet.bloom-filter-enabled.column.c": "false"}}),
    (None, {"properties": {"self-optimizing.enabled": "false"}}),
    ("policy-problem", {"properties": {"icewright.mode": "yes"}}),
    ("no-snapshots", {"snapshots": ()}),
    ("snapshot-missing", {"current_snapshot_id": 99}),
    ("schema-missing", {"current_schema_id": 99}),
    (None, {"format_version": 3}),
    ("format-version", {"format_version": 4}),
    (None, {"location": "s3://bucket/t"}),
    (None, {"properties": {"write.data.path": "s3://bucket/elsewhere"}}),
    (None, {"properties": {"write.parquet.bloom-filter-enabled.column.c": "TRUE"}}),
    ("encryption", {"properties": {"encryption.key-id": "k"}}),
    (None, {"properties": {"schema.name-mapping.default": "[]"}}),
    ("other-optimizer", {"properties": {"self-optimizing.enabled": "true"}}),
    ("no-uuid", {"has_uuid": False}),
    ("hadoop-table", {"metadata_location": "s3://bucket/t/metadata/v12.metadata.json"}),
    ("hadoop-table", {"metadata_location": "s3a://bucket/t/metadata/v1.gz.metadata.json"}),
    ("hadoop-table", {"metadata_location": "abfss://c@a/t/metadata/v3.metadata.json.gz"}),
    (None, {"metadata_location": "s3://bucket/t/metadata/00012-aaaa.metadata.json"}),
    (None, {"metadata_location": "s3://bucket/v1.metadata.json/metadata/00012-aaaa.metadata.json"}),
    (None, {"metadata_location": "file:/t/metadata/v12.metadata.json"}),
    (None, {"metadata_location": "/t/metadata/v12.metadata.json"}),
    (None, {"metadata_location": "hdfs://nn:8020/t/metadata/v12.metadata.json"}),
]


@each_case(("expected", "changes"), TABLES)
def test_tables(expected: str | None, changes: dict[str, Any]) -> None:
    assert code(table(**changes)) == expected


def test_what_one_executor_keeps_is_no_obstacle() -> None:
    for kind in ("time", "variant"):
        assert code(table(fields=(column(kind),))) is None
    assert table_obstacle(table(fields=(column("time"),)), policy(), WorkerAccess.UNKNOWN) is None


def test_what_none_keeps_is() -> None:
    for kind in ("geometry", "geography(srid:4326)", "unknown", "new\ntype", "decimal(0,0)", "decimal(39,2)"):
        reason = not_none(table_obstacle(table(fields=(column(kind),)), policy()))
        assert reason.code == "unsupported-type"
        assert "\n" not in reason.text
    assert code(table(fields=(column("time"), {**column("variant"), "id": 8}))) == "unsupported-type"
    reason = not_none(table_obstacle(table(fields=(column("time"),)), policy(), WorkerAccess.REFUSED))
    assert reason.text == (
        "the optimizers' Python workers cannot read and write where it keeps its files, which a merge "
        "needs, and Spark cannot keep the type time of column c"
    )


def test_the_policy_comes_first_and_names_every_problem() -> None:
    metadata = table(properties={"icewright.mode": "yes", "icewright.zzzzzzzzzz": "1"}, format_version=3)
    reason = not_none(table_obstacle(metadata, effective_policy(metadata, ())))
    assert reason.text == (
        "a setting cannot be used: icewright.mode (table property): 'yes' is not observe, approve or "
        "auto; icewright.zzzzzzzzzz (table property): there is no setting 'icewright.zzzzzzzzzz'"
    )


def test_a_table_with_very_many_problems_still_has_a_short_reason() -> None:
    metadata = table(properties={f"icewright.{number}": "1" for number in range(10_000)})
    reason = not_none(table_obstacle(metadata, effective_policy(metadata, ())))
    assert len(reason.text) < 1_000
    assert reason.text.endswith("and 9,995 more")


def test_of_very_many_misspelt_settings_the_first_get_a_hint() -> None:
    """A hint takes a millisecond, each time that a table is looked at."""
    properties = {f"icewright.mod{number:05}": "1" for number in range(1_000)}
    problems = effective_policy(table(properties=properties), ()).problems
    assert len(problems) == 1_000
    assert [problem.problem.endswith("perhaps icewright.mode is meant") for problem in problems].count(True) == 20


def lineage(rewrite: Snapshot, commits_after: int = 1, **changes: Any) -> TableMetadata:
    later = [snapshot(rewrite.snapshot_id + n, NOW) for n in range(1, commits_after + 1)]
    return table([snapshot(1, NOW - 30 * DAY_MS), rewrite, *later], **changes)


def test_l8_a_table_that_somebody_else_rewrote_lately_is_left_alone() -> None:
    rewrite = snapshot(2, NOW - DAY_MS, Operation.REPLACE, REWROTE)
    assert code(lineage(rewrite)) == "other-optimizer"
    reason = not_none(table_obstacle(lineage(rewrite), policy()))
    assert "spark rewrote its files at 2012-12-31" in reason.text
    assert "icewright.ignore-other-optimizers=true" in reason.text


def test_its_owner_can_say_that_it_does_not_matter() -> None:
    rewrite = snapshot(2, NOW - DAY_MS, Operation.REPLACE, REWROTE)
    said = {"icewright.ignore-other-optimizers": "true", "self-optimizing.enabled": "true"}
    assert code(lineage(rewrite, properties=said)) is None
    assert code(lineage(rewrite, properties={"icewright.mode": "auto"})) == "other-optimizer"


def test_old_foreign_rewrites_do_not_count() -> None:
    age = FOREIGN_REPLACE_WINDOW_MS
    assert code(lineage(snapshot(2, NOW - age, Operation.REPLACE, REWROTE))) == "other-optimizer"
    assert code(lineage(snapshot(2, NOW - age - 1, Operation.REPLACE, REWROTE))) is None


def test_rewrites_off_the_lineage_do_not_count() -> None:
    rolled_back = replace(snapshot(9, NOW, Operation.REPLACE, REWROTE), parent_id=1)
    metadata = table([rolled_back, snapshot(1, NOW)])
    assert code(metadata) is None


REWRITES = [
    (True, Operation.REPLACE, REWROTE),
    (True, Operation.REPLACE, {}),
    (True, Operation.REPLACE, {"manifests-replaced": "3", "removed-delete-files": "2"}),
    (False, Operation.REPLACE, {"manifests-replaced": "3", "deleted-data-files": "0"}),
    (False, Operation.REPLACE, {**REWROTE, "icewright.task-id": "task-1"}),
    (False, Operation.OVERWRITE, REWROTE),
    (False, None, {}),
]


@each_case(("expected", "operation", "summary"), REWRITES)
def test_l8_what_counts_as_a_foreign_rewrite(
    operation: Operation | None, summary: dict[str, str], *, expected: bool
) -> None:
    assert is_foreign_rewrite(snapshot(2, NOW, operation, summary)) is expected
