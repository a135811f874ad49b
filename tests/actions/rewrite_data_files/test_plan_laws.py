"""Laws that every Level 0 plan obeys, over generated tables, and the independent checker as the first of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from icewright.actions.rewrite_data_files.check.plan import check_plan
from icewright.actions.rewrite_data_files.plan import plan_table
from icewright.actions.rewrite_data_files.shortlist import shortlist
from icewright.core import codec
from icewright.model.actions.actions import FileGroup, InputFile
from icewright.model.iceberg.files import DataFile, DeleteFile, FileContent, FileFormat
from icewright.model.plans.plans import Plan, Verdict
from tests.builders.observations import MINUTE_MS, Case, cases, observe
from tests.conftest import CAMPAIGN
from tests.predictions import predicted

many = settings(max_examples=1_000 if CAMPAIGN else 30, deadline=None)


def plan_of(case: Case, files: tuple[DataFile, ...] | None = None) -> Plan:
    verdicts = shortlist(case.observation, case.policy, case.now)
    chosen = case.files if files is None else files
    return plan_table(
        case.observation, case.policy, verdicts, iter(chosen), iter(case.deletes), plan_id="plan-1", now=case.now
    )


def groups_of(plan: Plan) -> list[FileGroup]:
    return [group for action in plan.rewrites for group in action.groups]


@many
@given(cases())
def test_the_checker_accepts_every_plan(case: Case) -> None:
    by_path = {file.path: file for file in case.files}
    assert check_plan(plan_of(case), case.observation, case.policy, by_path, case.deletes) == ()


@many
@given(cases())
def test_inputs_are_small_or_full_of_deletes_old_and_in_partitions_that_may_be_touched(case: Case) -> None:
    plan = plan_of(case)
    committed_at = {one.snapshot_id: one.committed_at for one in case.observation.metadata.snapshots}
    interval_ms = case.observation.commit_interval_ms
    young_ms = min(MINUTE_MS, interval_ms) if interval_ms is not None else MINUTE_MS
    by_path = {file.path: file for file in case.files}
    verdicts = {verdict.partition: verdict for verdict in plan.verdicts}
    for group in groups_of(plan):
        assert verdicts[group.partition].verdict is Verdict.REWRITE
        for planned in group.files:
            file = by_path[planned.path]
            assert file.partition == group.partition
            assert file.size_bytes < case.policy.small_file_size_bytes or is_burdened(case, group, planned)
            assert committed_at.get(file.snapshot_id, 0) <= case.now - young_ms


@many
@given(cases())
def test_every_group_is_worth_it(case: Case) -> None:
    """It has two files at least, and enough of them or enough bytes; or every file of it has too many deletes."""
    for group in groups_of(plan_of(case)):
        if all(is_burdened(case, group, file) for file in group.files):
            continue
        assert len(group.files) > 1
        fills = group.size_bytes >= case.policy.small_file_size_bytes
        assert fills or len(group.files) >= case.policy.min_input_files


@many
@given(cases())
def test_no_file_is_planned_without_its_deletes_nor_a_group_without_rows(case: Case) -> None:
    by_path = {file.path: file for file in case.files}
    for group in groups_of(plan_of(case)):
        left = 0
        for planned in group.files:
            its = {group.delete_files[position] for position in planned.deletes}
            assert its == applying(case, by_path[planned.path])
            left += planned.record_count - known(planned, its)
        assert left > 0 or not group.delete_files


@many
@given(cases())
def test_verdicts_and_prediction_agree_with_the_action(case: Case) -> None:
    plan = plan_of(case)
    fewer = Counter[str]()
    for group in groups_of(plan):
        fewer[group.partition_path] += len(group.files) - 1
    touched = {group.partition_path for group in groups_of(plan)}
    assert sum(plan.verdict_counts.values()) == len(plan.verdicts) == len(case.observation.inventory.partitions)
    for verdict in plan.verdicts:
        assert verdict.files_before - verdict.files_after == fewer[verdict.path]
        assert (verdict.verdict is Verdict.REWRITE) == (verdict.path in touched)
        assert verdict.wait_until is None or verdict.wait_until > case.now
    if plan.prediction is not None:
        assert predicted(plan).data_files_before - predicted(plan).data_files_after == sum(fewer.values())
        others = [f for g in groups_of(plan) for f in g.files if f.file_format is not FileFormat.PARQUET]
        gained = bool(others) and case.policy.migrate_formats
        assert sum(fewer.values()) > 0 or gained or any(group.delete_files for group in groups_of(plan))
    assert plan.look_again_at is None or plan.look_again_at > case.now
    assert codec.loads(Plan, codec.dumps(plan)) == plan


@many
@given(cases(), st.randoms(use_true_random=False))
def test_neither_order_nor_files_of_no_concern_change_the_plan(case: Case, random: Random) -> None:
    shuffled = list(case.files)
    random.shuffle(shuffled)
    assert plan_of(case, tuple(shuffled)) == plan_of(case)
    shortlisted = {
        verdict.partition
        for verdict in shortlist(case.observation, case.policy, case.now)
        if verdict.verdict is Verdict.REWRITE
    }
    assert plan_of(case, tuple(file for file in case.files if file.partition in shortlisted)) == plan_of(case)


@many
@given(cases())
def test_groups_of_a_partition_do_not_interleave(case: Case) -> None:
    """In the order that all its files can follow: that of the table, or age."""
    by_path = {file.path: file for file in case.files}
    by_partition: dict[object, list[list[DataFile]]] = {}
    for group in groups_of(plan_of(case)):
        by_partition.setdefault(group.partition, []).append([by_path[file.path] for file in group.files])
    for runs in by_partition.values():
        files = [file for run in runs for file in run]
        keys = [file.sort_key for file in files if file.sort_key is not None]
        # Where a file outside of the groups has no key, age rules although all in the groups have one.
        in_sort_order = len(keys) == len(files) and all(one <= other for one, other in pairwise(keys))
        ages = [file.data_sequence_number for file in files]
        assert in_sort_order or all(one <= other for one, other in pairwise(ages))


@many
@given(cases(), st.integers(1, 10))
def test_a_larger_task_takes_the_same_files_and_more(case: Case, factor: int) -> None:
    larger = replace(case, policy=replace(case.policy, max_task_files=case.policy.max_task_files + 8 * factor))
    fewer, more = ({f.path for g in groups_of(plan_of(c)) for f in g.files} for c in (case, larger))
    # The files of a group are bounded by those of a task, so compare only where a group stays what it was.
    if case.policy.max_file_group_files <= case.policy.max_task_files:
        assert fewer <= more


@many
@given(cases())
def test_planning_again_and_again_comes_to_an_end(case: Case) -> None:
    """Carried out as predicted, plan after plan, until one says that there is nothing to do.

    Position and equality deletes stay listed when nothing is left that they apply to; new files get the sequence
    number of the commit that brought them, which is above those of all the deletes that were folded in.
    """
    for _ in range(2 * len(case.files) + 1):
        plan = plan_of(case)
        if plan.is_empty:
            return
        case = carried_out(case, plan)
    raise AssertionError("it never ends")


def carried_out(case: Case, plan: Plan) -> Case:
    """The table after the action of a plan, each group of which becomes a file."""
    by_path = {file.path: file for file in case.files}
    merged = []
    for group in groups_of(plan):
        first = by_path[group.files[0].path]
        merged.append(replace(first, path=first.path + "+", size_bytes=group.size_bytes))
    return committed(case, plan, merged)


def committed(case: Case, plan: Plan, made: Sequence[DataFile]) -> Case:
    """The table after a commit of what the action of a plan ``made``."""
    gone = {file.path for group in groups_of(plan) for file in group.files}
    metadata = case.observation.metadata
    (base,) = (one for one in metadata.snapshots if one.snapshot_id == metadata.current_snapshot_id)
    # Our commits are no part of the history that tells how long to wait: only the number of the base goes up.
    after = replace(base, sequence_number=base.sequence_number + 1)
    new = (replace(file, data_sequence_number=after.sequence_number, file_format=FileFormat.PARQUET) for file in made)
    files = (*(file for file in case.files if file.path not in gone), *new)
    deletes = tuple(
        one for one in case.deletes if one.file_format is not FileFormat.PUFFIN or one.referenced_data_file not in gone
    )
    snapshots = tuple(after if one == base else one for one in metadata.snapshots)
    before = case.observation
    observation = observe(
        files,
        replace(metadata, snapshots=snapshots),
        removals=before.removals,
        interval_ms=before.commit_interval_ms,
        deletes=deletes,
    )
    observation = replace(observation, rewritten_at=before.rewritten_at)
    return replace(case, files=files, deletes=deletes, observation=observation)


def applying(case: Case, file: DataFile) -> set[DeleteFile]:
    """The delete files that apply to a file, by the sentences of the spec ("Scan Planning"), one after the other."""
    unpartitioned = {spec.spec_id for spec in case.observation.metadata.specs if not spec.fields}
    found: set[DeleteFile] = set()
    for one in case.deletes:
        same_partition = one.partition == file.partition
        older = file.data_sequence_number <= one.data_sequence_number
        if one.content is FileContent.EQUALITY_DELETES:
            strictly = file.data_sequence_number < one.data_sequence_number
            if strictly and (same_partition or one.partition.spec_id in unpartitioned):
                found.add(one)
        elif older and same_partition and one.referenced_data_file in (None, file.path):
            found.add(one)
    vectors = {one for one in found if one.file_format is FileFormat.PUFFIN}
    return {o for o in found if not vectors or o in vectors or o.content is FileContent.EQUALITY_DELETES}


def known(file: InputFile, deletes: Iterable[DeleteFile]) -> int:
    """Rows that are surely deleted."""
    return min(file.record_count, sum(one.record_count for one in deletes if one.referenced_data_file == file.path))


def is_burdened(case: Case, group: FileGroup, file: InputFile) -> bool:
    """Whether a file has too many deletes by the policy, or another format than the table's own (Parquet here)."""
    if case.policy.migrate_formats and file.file_format is not FileFormat.PARQUET:
        return True
    its = [group.delete_files[position] for position in file.deletes]
    share = known(file, its) / file.record_count if file.record_count else 0
    return len(its) >= case.policy.delete_file_threshold or share >= case.policy.delete_ratio_threshold
