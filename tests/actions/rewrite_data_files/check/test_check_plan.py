"""Each thing that a plan must not be is built into a sound plan, and found: removing a check is noticed here."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from icewright.actions.rewrite_data_files.check.moves import move_violations
from icewright.actions.rewrite_data_files.check.order import order_violations
from icewright.actions.rewrite_data_files.check.plan import check_plan
from icewright.actions.rewrite_data_files.check.waits import wait_violations
from icewright.actions.rewrite_data_files.executors import table_executors
from icewright.actions.rewrite_data_files.plan import plan_table
from icewright.actions.rewrite_data_files.shortlist import shortlist
from icewright.inventory.placement import column_types, placement_obstacle
from icewright.model.actions.actions import Executor, FileGroup, InputFile, RewriteDataFiles
from icewright.model.iceberg.files import DataFile, DeleteFile, FileContent, FileFormat, Partition
from icewright.model.iceberg.layouts import Curve, Layout
from icewright.model.iceberg.names import TableId
from icewright.model.iceberg.tables import PartitionField, PartitionSpec, Schema, SortField, TableMetadata
from icewright.model.plans.observation import Observation, Removal, Removals, WorkerAccess
from icewright.model.plans.plans import Plan, Reason, RewritePrediction, Verdict
from icewright.model.policy.policy import Mode, Policy, PolicyProblem
from icewright.plans.check_table import not_mergeable, not_stageable, not_stitchable, not_writable
from tests.builders.observations import (
    DAY_MS,
    FIELDS,
    HOUR_MS,
    MIB,
    MINUTE_MS,
    NOW,
    WHOLE,
    data_file,
    data_files,
    deletion_vector,
    equality_deletes,
    month,
    observe,
    policy,
    position_deletes,
    snapshot,
    table,
)
from tests.cases import each_case
from tests.plans.test_eligibility import column, list_of, map_of, struct

FILES = [*data_files(month(1), 6), *data_files(month(2), 7), *data_files(month(3), 2, 300 * MIB)]
BY_PATH = {file.path: file for file in FILES}
POLICY = policy()
OBSERVATION = observe(FILES)
PLAN = plan_table(OBSERVATION, POLICY, shortlist(OBSERVATION, POLICY, NOW), FILES, plan_id="plan-1", now=NOW)
(ACTION,) = PLAN.rewrites
PREDICTION = PLAN.prediction


def codes(plan: Plan = PLAN, observation: Observation = OBSERVATION, rules: Policy = POLICY) -> set[str]:
    """What is wrong, with and without the files at hand (which may only add to it)."""
    without = {code for code, _ in check_plan(plan, observation, rules, None)}
    with_files = {code for code, _ in check_plan(plan, observation, rules, BY_PATH)}
    assert without <= with_files
    return with_files


def test_the_sound_plan_is_sound() -> None:
    assert len(ACTION.groups) == 2
    assert codes() == set()


def acting(action: RewriteDataFiles) -> Plan:
    """The plan with another action, and with figures that fit to it."""
    assert isinstance(PREDICTION, RewritePrediction)
    files = [file for group in action.groups for file in group.files]
    before = PREDICTION.data_files_before
    figures = RewritePrediction(
        data_files_before=before,
        data_files_after=before - len(files) + len(action.groups),
        input_files=len(files),
        output_files=len(action.groups),
        input_bytes=sum(file.size_bytes for file in files),
        records=sum(file.record_count for file in files),
    )
    return replace(PLAN, actions=(action,), prediction=figures)


def with_group(change: Callable[[FileGroup], FileGroup]) -> Plan:
    first, *others = ACTION.groups
    return acting(replace(ACTION, groups=(change(first), *others)))


def with_input(**changes: Any) -> Plan:
    def change(group: FileGroup) -> FileGroup:
        first, *others = group.files
        return replace(group, files=(replace(first, **changes), *others))

    return with_group(change)


def with_files(files: tuple[InputFile, ...]) -> Plan:
    return with_group(lambda group: replace(group, files=files))


LARGE = InputFile(FILES[-1].path, FILES[-1].size_bytes, FILES[-1].record_count, 1)
first_group, second_group = ACTION.groups

CORRUPTED: list[tuple[set[str], Plan]] = [
    ({"other-table"}, replace(PLAN, table_id=TableId("lake", "another"))),
    ({"other-table"}, replace(PLAN, table_name=replace(PLAN.table_name, name="another"))),
    ({"other-mode"}, replace(PLAN, mode=Mode.AUTO)),
    ({"other-snapshot"}, replace(PLAN, snapshot_id=7)),
    ({"no-reason"}, replace(PLAN, reason=Reason("", ""))),
    ({"no-reason"}, replace(PLAN, reason=Reason("code", ""))),
    ({"several-actions"}, replace(PLAN, actions=(ACTION, ACTION))),
    ({"wrong-prediction"}, replace(PLAN, actions=())),
    ({"wrong-base"}, acting(replace(ACTION, base_snapshot_id=7))),
    ({"wrong-schema"}, acting(replace(ACTION, schema_id=7))),
    ({"wrong-target"}, acting(replace(ACTION, target_file_size_bytes=7))),
    ({"no-groups", "no-gain"}, acting(replace(ACTION, groups=()))),
    ({"group-id-twice"}, with_group(lambda group: replace(group, group_id=1))),
    ({"file-twice"}, with_files((first_group.files[0], *first_group.files[:-1]))),
    ({"file-twice", "wrong-partition"}, with_files((*first_group.files[:-1], second_group.files[0]))),
    ({"group-too-few"}, with_files(first_group.files[:1])),
    ({"group-too-few"}, with_files(())),
    (
        {"not-small", "wrong-partition", "group-too-large", "more-than-there-is"},
        with_files((LARGE, *first_group.files[1:])),
    ),
    ({"negative", "wrong-figures"}, with_input(size_bytes=-1)),
    ({"negative", "wrong-figures"}, with_input(record_count=-1)),
    ({"wrong-figures"}, with_input(size_bytes=5)),
    ({"wrong-figures"}, with_input(record_count=5)),
    ({"wrong-figures"}, with_input(data_sequence_number=0)),
    ({"newer-than-base", "wrong-figures"}, with_input(data_sequence_number=2)),
    ({"unknown-file"}, with_input(path="file:/lake/t/data/nowhere.parquet")),
    ({"wrong-path"}, with_group(lambda group: replace(group, partition_path="month=3"))),
    (
        {"unknown-spec", "unknown-partition", "wrong-partition"},
        with_group(lambda g: replace(g, partition=Partition(9, "[1]"))),
    ),
    ({"unknown-partition", "wrong-partition"}, with_group(lambda group: replace(group, partition=month(8)))),
    (
        {"wrong-partition", "wrong-path", "verdict-says-no", "more-than-there-is"},
        with_group(lambda group: replace(group, partition=month(3))),
    ),
]


@each_case(("expected", "plan"), CORRUPTED)
def test_corrupted_plans_are_refused(expected: set[str], plan: Plan) -> None:
    assert codes(plan) == expected


FOR_PEOPLE = {"layout", "call", "estimate"}
"""Of a prediction: nothing goes by these."""


@each_case("field", [name for name in RewritePrediction.__slots__ if name not in FOR_PEOPLE])
def test_every_figure_of_the_prediction_is_checked(field: str) -> None:
    assert isinstance(PREDICTION, RewritePrediction)
    wrong = replace(PREDICTION, **{field: getattr(PREDICTION, field) + 1})
    assert codes(replace(PLAN, prediction=wrong)) == {"wrong-prediction"}
    assert codes(replace(PLAN, prediction=None)) == {"wrong-prediction"}


def test_a_verdict_against_a_planned_partition_is_found() -> None:
    for kind in (Verdict.LEAVE, Verdict.WAIT, Verdict.REFUSE):
        verdicts = tuple(replace(v, verdict=kind) if v.partition == month(1) else v for v in PLAN.verdicts)
        assert codes(replace(PLAN, verdicts=verdicts)) == {"verdict-says-no"}


def other(**kinds: Any) -> Observation:
    return observe(kinds.pop("files", FILES), kinds.pop("metadata", None), **kinds)


def removed(age_ms: int, **kinds: Any) -> Removals:
    return Removals({month(2): NOW - age_ms}, **kinds)


def rewritten(ago_ms: int) -> Removals:
    """Rows were removed twice, and our last rewrite was so long ago."""
    latest = tuple(Removal(NOW - hours * HOUR_MS, frozenset({month(2)})) for hours in (2, 4))
    return replace(removed(2 * HOUR_MS), latest=latest, rewritten_at={month(2): NOW - ago_ms})


OBSERVED: list[tuple[set[str], Observation]] = [
    ({"torn-observation"}, replace(OBSERVATION, inventory=replace(OBSERVATION.inventory, snapshot_id=7))),
    ({"format-version", "no-row-ids"}, other(metadata=table(format_version=4))),
    ({"no-row-ids"}, other(metadata=table(format_version=3))),
    ({"no-uuid"}, other(metadata=table(has_uuid=False))),
    ({"hadoop-table"}, other(metadata=table(metadata_location="s3://bucket/t/metadata/v2.metadata.json"))),
    (set(), other(metadata=table(metadata_location="s3://bucket/t/metadata/00002-aaaa.metadata.json"))),
    (set(), other(metadata=table(metadata_location="hdfs://nn/t/metadata/v2.metadata.json"))),
    ({"wrong-schema", "not-writable"}, other(metadata=table(current_schema_id=1))),
    ({"other-snapshot", "wrong-base"}, other(metadata=table([snapshot(1), snapshot(2)]))),
    ({"wrong-base"}, other(metadata=table(snapshots=(), current_snapshot_id=1))),
    ({"unknown-spec"}, other(metadata=table(specs=()))),
    ({"encrypted"}, other(metadata=table(properties={"encryption.key-id": "k"}))),
    ({"not-mergeable"}, other(metadata=table(properties={"schema.name-mapping.default": "[]"}))),
    ({"not-mergeable"}, other(metadata=table(fields=(*FIELDS, column("variant"))))),
    ({"not-mergeable"}, other(metadata=table(fields=(*FIELDS, column("int", **{"initial-default": 1}))))),
    (set(), other(metadata=table(fields=(*FIELDS, column("time"))))),
    ({"not-writable"}, other(metadata=table(fields=FIELDS[1:]))),
    ({"no-access"}, other(access=WorkerAccess.REFUSED)),
    ({"no-access"}, other(access=WorkerAccess.UNKNOWN)),
    ({"too-soon"}, other(removals=removed(3 * MINUTE_MS - 1))),
    (set(), other(removals=removed(3 * MINUTE_MS))),
    ({"too-soon"}, other(removals=removed(HOUR_MS, writer_run_ms_max=HOUR_MS + 1))),
    ({"too-soon"}, other(removals=removed(HOUR_MS - 1), interval_ms=None)),
    (set(), other(removals=removed(HOUR_MS), interval_ms=None)),
    ({"too-soon"}, other(removals=Removals(everywhere_at=NOW))),
    ({"too-soon"}, other(removals=removed(DAY_MS - 1, writer_run_ms_max=40 * 365 * DAY_MS))),
    (set(), other(removals=removed(DAY_MS, writer_run_ms_max=40 * 365 * DAY_MS))),
    ({"too-soon"}, other(removals=removed(-MINUTE_MS))),
    (set(), other(removals=removed(-MINUTE_MS - 1))),
    ({"too-often"}, other(removals=rewritten(50 * MINUTE_MS - 1))),
    (set(), other(removals=rewritten(50 * MINUTE_MS))),
    (set(), other(removals=Removals({month(3): NOW}))),
    ({"wrong-prediction"}, other(files=[*FILES, *data_files(month(4), 1)])),
    ({"more-than-there-is", "wrong-prediction"}, other(files=FILES[1:])),
    ({"unknown-partition", "wrong-prediction"}, other(files=FILES[6:])),
]


@each_case(("expected", "observation"), OBSERVED)
def test_plans_that_do_not_fit_the_table_are_refused(expected: set[str], observation: Observation) -> None:
    assert codes(observation=observation) == expected


POLICIES: list[tuple[set[str], Policy]] = [
    ({"policy-problems"}, policy(problems=(PolicyProblem("k", "v", "o", "p"),))),
    ({"other-mode"}, policy(mode=Mode.AUTO)),
    ({"wrong-target"}, policy(target_file_size_bytes=256 * MIB)),
    ({"task-too-large"}, policy(max_task_files=12)),
    (set(), policy(max_task_files=13)),
    ({"task-too-large"}, policy(max_task_size_bytes=13 * MIB - 1)),
    (set(), policy(max_task_size_bytes=13 * MIB)),
    ({"group-too-large"}, policy(max_file_group_files=6)),
    ({"group-too-large"}, policy(max_file_group_size_bytes=7 * MIB - 1)),
    (set(), policy(max_file_group_size_bytes=7 * MIB)),
    ({"not-small"}, policy(min_file_size_ratio=0.001)),
    (set(), policy(write_window_ms=HOUR_MS)),
]


@each_case(("expected", "rules"), POLICIES)
def test_plans_that_do_not_fit_the_policy_are_refused(expected: set[str], rules: Policy) -> None:
    assert codes(rules=rules) == expected


STAGED = replace(ACTION, groups=tuple(replace(group, executor=Executor.STAGED) for group in ACTION.groups))


def test_what_is_staged_need_not_be_mergeable_but_stageable() -> None:
    for metadata in (
        table(properties={"schema.name-mapping.default": "[]"}),
        table(fields=(*FIELDS, column("variant"))),
    ):
        assert codes(acting(STAGED), other(metadata=metadata)) == set()
    assert codes(acting(STAGED), other(access=WorkerAccess.REFUSED)) == set()
    assert codes(acting(STAGED), other(metadata=table(fields=(*FIELDS, column("time"))))) == {"not-stageable"}


COARSE = data_files(month(1), 6, 5 * MIB, row_groups=1)
COARSE_BY_PATH = {file.path: file for file in COARSE}
COARSE_SEEN = observe(COARSE)
STITCH = plan_table(COARSE_SEEN, POLICY, shortlist(COARSE_SEEN, POLICY, NOW), COARSE, plan_id="plan-1", now=NOW)


def stitch_codes(
    observation: Observation = COARSE_SEEN, plan: Plan = STITCH, files: dict[str, DataFile] = COARSE_BY_PATH
) -> set[str]:
    return {code for code, _ in check_plan(plan, observation, POLICY, files)}


def test_what_is_stitched_has_large_row_groups() -> None:
    (action,) = STITCH.rewrites
    assert [group.executor for group in action.groups] == [Executor.STITCH]
    assert stitch_codes() == set()
    for wrong in (2, None):
        files = {path: replace(file, row_groups=wrong) for path, file in COARSE_BY_PATH.items()}
        assert stitch_codes(files=files) == {"small-row-groups"}


def test_what_is_stitched_can_be() -> None:
    assert stitch_codes(replace(COARSE_SEEN, not_stitched="two writers")) == {"not-stitchable"}
    asking = table(properties={"write.format.default": "orc"})
    assert stitch_codes(replace(COARSE_SEEN, metadata=asking)) == {"not-stitchable"}
    assert stitch_codes(replace(COARSE_SEEN, metadata=table(format_version=3))) == {"not-stitchable", "no-row-ids"}
    assert stitch_codes(replace(COARSE_SEEN, worker_access=WorkerAccess.UNKNOWN)) == {"no-access"}
    (action,) = STITCH.rewrites
    (group,) = action.groups
    first, *rest = group.files
    avro = replace(group, files=(replace(first, file_format=FileFormat.AVRO), *rest))
    assert "not-parquet" in stitch_codes(plan=replace(STITCH, actions=(replace(action, groups=(avro,)),)))
    deleted = replace(group, files=(replace(first, deletes=(0,)), *rest), delete_files=(position_deletes(month(1), 0),))
    ordered = replace(action, layout=Layout(Curve.SORT, (SortField(1, "identity", "asc", "nulls-first"),)))
    assert "layout-stitched" in stitch_codes(plan=replace(STITCH, actions=(ordered,)))
    assert "deletes-stitched" in stitch_codes(plan=replace(STITCH, actions=(replace(action, groups=(deleted,)),)))


OBSTACLES: list[TableMetadata] = [
    *(table(fields=(*FIELDS, column(kind))) for kind in ("int", "variant", "unknown", "timestamp_ns", "fixed[3]")),
    *(table(fields=(*FIELDS, column(kind))) for kind in ("decimal(38, 2)", "decimal(39,2)", "decimal(0,0)", "new")),
    *(table(fields=(*FIELDS, column(kind))) for kind in (struct(), struct("a", kind="time"), list_of("variant"))),
    table(fields=(*FIELDS, column(struct("a")), {**column(map_of("string", "geometry")), "id": 8})),
    table(fields=(*FIELDS, column(struct("a")))),
    table(fields=(*FIELDS, column({**list_of("int"), "element-required": True}))),
    table(schemas=(Schema(0, (*FIELDS, column(struct("a")))), Schema(1, (*FIELDS, column(struct("a", "b")))))),
    table(schemas=(Schema(0, (*FIELDS, column(struct("a")))), Schema(1, (*FIELDS, column("int"))))),
    table(schemas=(Schema(0, (*FIELDS, column("int"))), Schema(1, (*FIELDS, column("long")))), current_schema_id=1),
    *(table(properties={"write.parquet.compression-codec": codec}) for codec in ("ZSTD", "lz4", "none", "brotli")),
    *(table(properties={"write.format.default": form}) for form in ("avro", "Parquet")),
    table(properties={"write.parquet.bloom-filter-enabled.column.c": " True"}),
    *(table(format_version=version) for version in (1, 2, 3)),
]


@each_case("metadata", OBSTACLES)
def test_planner_and_checker_say_the_same_of_executors(metadata: TableMetadata) -> None:
    """Two ways of putting one thing; where they part, plans are refused that nobody can mend."""
    executors = table_executors(metadata, WorkerAccess.PROVED)
    assert (not_mergeable(metadata) is None) == (executors.not_merged is None)
    assert (not_stageable(metadata) is None) == (executors.not_staged is None)
    assert (not_stitchable(metadata) is None) == (executors.not_stitched is None)


PLACES = [
    ("identity", "int", 1),
    ("identity", "double", "NaN"),
    ("identity", "double", 0.5),
    ("identity", "date", 9**9),
    ("day", "timestamp", 9**9),
    ("day", "timestamp", "2013-01-01"),
    ("month", "date", 516),
    ("void", "int", None),
    ("bucket[4]", "timestamp", 3),
    ("identity", "string", "NaN"),
    ("identity", "timestamptz_ns", 1),
]


@each_case(("transform", "kind", "value"), PLACES)
def test_planner_and_checker_say_the_same_of_partitions(transform: str, kind: str, value: Any) -> None:
    spec = PartitionSpec(0, (PartitionField(7, 1000, "p", transform),))
    metadata = table(fields=(column(kind),), specs=(spec,))
    partition = Partition(0, json.dumps([value]))
    for known in (metadata, replace(metadata, schemas=(Schema(0, ()),))):
        planners = placement_obstacle(known, column_types(known), partition)
        assert (not_writable(known, partition) is None) == (planners is None)


# Deletes.

WITH_DELETES = [
    position_deletes(month(1), 0, of=FILES[0]),
    position_deletes(month(1), 1),
    deletion_vector(FILES[1], 4),
    position_deletes(month(2), 0, sequence_number=0),
]
DELETES_OBSERVED = observe(FILES, deletes=WITH_DELETES)
PLAN_WITH_DELETES = plan_table(
    DELETES_OBSERVED,
    POLICY,
    shortlist(DELETES_OBSERVED, POLICY, NOW),
    FILES,
    WITH_DELETES,
    plan_id="plan-1",
    now=NOW,
)


def delete_codes(change: Callable[[FileGroup], FileGroup], deletes: Sequence[DeleteFile] = WITH_DELETES) -> set[str]:
    (action,) = PLAN_WITH_DELETES.rewrites
    first, *others = action.groups
    groups = (first, change(*others)) if first.partition == month(2) else (change(first), *others)
    plan = replace(PLAN_WITH_DELETES, actions=(replace(action, groups=groups),))
    return {code for code, _ in check_plan(plan, DELETES_OBSERVED, POLICY, BY_PATH, deletes)}


def without_deletes_of_one_file(group: FileGroup) -> FileGroup:
    first, *others = group.files
    return replace(group, files=(replace(first, deletes=first.deletes[1:]), *others))


def test_each_file_has_its_deletes_no_more_and_no_less() -> None:
    assert delete_codes(lambda group: group) == set()
    assert delete_codes(without_deletes_of_one_file) == {"wrong-deletes"}
    assert delete_codes(lambda g: replace(g, files=tuple(replace(f, deletes=()) for f in g.files))) == {"wrong-deletes"}
    assert delete_codes(lambda g: replace(g, delete_files=(*g.delete_files, WITH_DELETES[3]))) == {"wrong-deletes"}
    assert delete_codes(lambda g: replace(g, delete_files=g.delete_files[:-1])) == {"wrong-deletes"}
    assert delete_codes(lambda group: group, WITH_DELETES[:2]) == {"wrong-deletes"}
    younger = [equality_deletes(WHOLE, 0)]
    assert delete_codes(lambda group: group, [*WITH_DELETES, *younger]) == {"wrong-deletes"}


def test_deletes_that_a_merge_cannot_fold_in_are_found() -> None:
    def with_first_delete(**changes: Any) -> Callable[[FileGroup], FileGroup]:
        return lambda g: replace(g, delete_files=(replace(g.delete_files[0], **changes), *g.delete_files[1:]))

    assert "equality-deletes" in delete_codes(with_first_delete(content=FileContent.EQUALITY_DELETES))
    assert "not-parquet" in delete_codes(with_first_delete(file_format=FileFormat.ORC))


def test_a_file_alone_or_large_has_to_have_many_deletes() -> None:
    large = data_file(month(1), 0, 150 * MIB)
    for records, expected in ((large.record_count // 2, set()), (5, {"not-small", "group-too-few"})):
        deletes = [deletion_vector(large, records)]
        observation = observe([large], deletes=deletes)
        eager = policy(delete_ratio_threshold=0.000001)
        plan = plan_table(
            observation, eager, shortlist(observation, eager, NOW), [large], deletes, plan_id="plan-1", now=NOW
        )
        assert len(plan.rewrites) == 1
        found = check_plan(plan, observation, POLICY, {large.path: large}, deletes)
        assert {code for code, _ in found} == expected


def test_the_write_window_of_the_owner_is_kept() -> None:
    observation = other(removals=removed(HOUR_MS))
    assert codes(observation=observation, rules=policy(write_window_ms=HOUR_MS + 1)) == {"too-soon"}


@pytest.mark.parametrize(("until", "expected"), [(NOW + 1, {"put-off"}), (NOW, set())])
def test_a_file_that_failed_lately_is_left_alone(until: int, expected: set[str]) -> None:
    assert codes(observation=replace(other(), put_off={first_group.files[0].path: until})) == expected


def test_a_file_of_another_format_is_found_by_looking_at_it() -> None:
    path = first_group.files[0].path
    files = {**BY_PATH, path: replace(BY_PATH[path], file_format=FileFormat.ORC)}
    assert [code for code, _ in check_plan(PLAN, OBSERVATION, POLICY, files)] == ["wrong-figures"]
    assert codes(with_input(file_format=FileFormat.ORC)) == {"wrong-figures", "not-parquet"}


def test_the_checker_shares_nothing_with_the_planner() -> None:
    checkers = (check_plan, not_mergeable, order_violations, move_violations, wait_violations)
    own = {checker.__module__ for checker in checkers}
    names = {
        value.__module__ for name in own for value in vars(sys.modules[name]).values() if hasattr(value, "__module__")
    }
    assert not {name for name in names if re.match(r"icewright\.(?!core\.|model\.)", name)} - own
    assert not {name for name in names if name.endswith(("column_types", "writer_settings"))}
