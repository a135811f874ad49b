"""Laws of plans that move files to the current partition spec, over generated tables."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import example, given, settings
from hypothesis import strategies as st

from icewright.actions.rewrite_data_files.check.plan import check_plan
from icewright.inventory.specs import PARTITIONS_MAX
from icewright.model.iceberg.files import DataFile, Partition
from icewright.model.iceberg.tables import PartitionField, PartitionSpec
from icewright.model.plans.plans import Plan, Verdict
from icewright.model.policy.policy import MigrateSpec
from tests.actions.rewrite_data_files.test_plan_laws import committed, groups_of, plan_of
from tests.builders.observations import BY_MONTH, NO_FIELDS, WHOLE, Case, cases, data_files, observe, policy, table
from tests.conftest import CAMPAIGN
from tests.predictions import predicted

CURRENT = PartitionSpec(2, (PartitionField(1, 1001, "month_bucket", "bucket[3]"),))
"""Of an older partition by month it makes one, of the unpartitioned spec's four."""


@st.composite
def moved_cases(draw: st.DrawFn, asked: tuple[MigrateSpec, ...] = tuple(MigrateSpec)) -> Case:
    """Tables whose files are of two older specs, and some of the current one."""
    case = draw(cases())
    before = case.observation
    metadata = replace(before.metadata, specs=(*before.metadata.specs, CURRENT), default_spec_id=2)
    moved = {
        file.path: replace(file, partition=Partition(2, "[1]")) for file in case.files if file.partition.values == "[3]"
    }
    files = tuple(moved.get(file.path, file) for file in case.files)
    policy = replace(case.policy, migrate_spec=draw(st.sampled_from(asked)))
    after = observe(
        files, metadata, removals=before.removals, interval_ms=before.commit_interval_ms, deletes=case.deletes
    )
    return replace(case, files=files, policy=policy, observation=replace(after, rewritten_at=before.rewritten_at))


many = settings(max_examples=1_000 if CAMPAIGN else 30, deadline=None)


def two_files(size_bytes: int, rows: int) -> Case:
    """All rows move, over four partitions at most, and a file is to have 100 bytes."""
    files = tuple(replace(file, record_count=rows) for file in data_files(WHOLE, 2, size_bytes))
    metadata = table(specs=(BY_MONTH, NO_FIELDS, CURRENT), default_spec_id=2)
    asked = policy(migrate_spec=MigrateSpec.ALL, target_file_size_bytes=100)
    return Case(observe(files, metadata), files, asked)


FEWER_ROWS_THAN_PARTITIONS = two_files(150, rows=1)


def test_a_group_has_no_more_bytes_than_fill_the_files_that_its_rows_become() -> None:
    def groups(case: Case) -> list[tuple[int, int]]:
        return [(len(group.files), group.output_files) for group in groups_of(plan_of(case))]

    assert groups(FEWER_ROWS_THAN_PARTITIONS) == [(1, 1), (1, 1)]
    assert groups(two_files(100, rows=1)) == [(2, 2)]
    assert groups(two_files(150, rows=2)) == [(2, 4)]


@many
@given(moved_cases())
@example(FEWER_ROWS_THAN_PARTITIONS)
def test_the_checker_accepts_every_plan(case: Case) -> None:
    by_path = {file.path: file for file in case.files}
    assert check_plan(plan_of(case), case.observation, case.policy, by_path, case.deletes) == ()


@many
@given(moved_cases())
def test_only_files_of_older_specs_move_and_only_as_far_as_is_asked(case: Case) -> None:
    for group in groups_of(plan_of(case)):
        if group.output_spec_id is None:
            continue
        assert case.policy.migrate_spec is not MigrateSpec.NEVER
        assert group.partition.spec_id != group.output_spec_id == 2
        assert 1 <= group.output_files <= min(PARTITIONS_MAX, 1 if group.partition.spec_id == 0 else 4)
        if case.policy.migrate_spec is MigrateSpec.TOUCHED:
            assert group.output_files == 1 or group.output_files < len(group.files)


@many
@given(moved_cases())
def test_verdicts_and_prediction_agree_with_the_action(case: Case) -> None:
    plan = plan_of(case)
    fewer = Counter[tuple[int, str]]()
    for group in groups_of(plan):
        stay = group.output_files if group.output_spec_id is None else 0
        fewer[group.partition.spec_id, group.partition_path] += len(group.files) - stay
    for verdict in plan.verdicts:
        assert verdict.files_before - verdict.files_after == fewer[verdict.partition.spec_id, verdict.path]
    if plan.prediction is not None:
        made = sum(group.output_files for group in groups_of(plan))
        inputs = sum(len(group.files) for group in groups_of(plan))
        assert predicted(plan).data_files_after == predicted(plan).data_files_before - inputs + made


@many
@given(moved_cases())
def test_planning_again_and_again_comes_to_an_end(case: Case) -> None:
    """Carried out as predicted, plan after plan; where all is to be moved, nothing is left that could be."""
    for _ in range(3 * len(case.files) + 1):
        plan = plan_of(case)
        if plan.is_empty:
            assert_all_moved(case, plan)
            return
        case = carried_out(case, plan)
    raise AssertionError("it never ends")


def assert_all_moved(case: Case, plan: Plan) -> None:
    if case.policy.migrate_spec is not MigrateSpec.ALL:
        return
    why = {verdict.partition: verdict for verdict in plan.verdicts}
    for file in case.files:
        if file.partition.spec_id != 2 and not plan.reason.code.startswith(("policy", "no-snapshots")):
            verdict = why[file.partition]
            waits = verdict.verdict in (Verdict.WAIT, Verdict.REFUSE)
            assert waits or verdict.reason.code == "all-deleted", verdict


def carried_out(case: Case, plan: Plan) -> Case:
    """The table after the action of a plan; rows that move are spread over as many partitions as planned."""
    by_path = {file.path: file for file in case.files}
    made: list[DataFile] = []
    for group in groups_of(plan):
        first = by_path[group.files[0].path]
        for number in range(group.output_files):
            partition = group.partition if group.output_spec_id is None else Partition(2, f"[{number}]")
            made.append(
                replace(
                    first,
                    path=f"{first.path}+{number}",
                    partition=partition,
                    size_bytes=max(1, group.size_bytes // group.output_files),
                    record_count=max(1, group.record_count // group.output_files),
                )
            )
    return committed(case, plan, made)
