"""The last looks before a commit, with results that no merge should give."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark import TaskContext

from icewright.model.actions.actions import Executor
from icewright.model.iceberg.files import DeleteFile, FileContent, FileFormat, Partition
from icewright.model.work.jobs import Receipt
from icewright_spark.actions.groups import _own_output
from icewright_spark.actions.rewrite_data_files import check_outputs, check_receipts, proof_of
from icewright_spark.actions.spark_tasks import TASK_BYTES_MAX, spark_tasks
from icewright_spark.executors.merge.merge import MergeJob
from icewright_spark.iceberg.commits.commit import Rewritten
from icewright_spark.parquet.errors import ProofFailed
from tests.builders.specs import group, spec_of
from tests.cases import each_case

ACTION = spec_of(groups=2).rewrite
RECEIPTS = [Receipt(number, "m", f"d{number}", f"d{number}", 20) for number in (0, 1)]


def output(number: int, path: str, records: int = 20) -> Rewritten:
    return Rewritten(number, path, records, data_file=None)


def test_a_receipt_for_every_group_will_do() -> None:
    check_receipts(ACTION, RECEIPTS)
    check_outputs(ACTION, RECEIPTS, [output(0, "a"), output(1, "b")])


@each_case(
    "receipts",
    [
        RECEIPTS[:1],
        [],
        [RECEIPTS[0], replace(RECEIPTS[1], output_digest="other")],
        [RECEIPTS[0], replace(RECEIPTS[1], records=19)],
        [RECEIPTS[0], replace(RECEIPTS[1], group_id=5)],
        [RECEIPTS[0], replace(RECEIPTS[1], records=19, deleted_records=1)],  # no delete file applies
    ],
)
def test_anything_less_will_not(receipts: list[Receipt]) -> None:
    with pytest.raises(ProofFailed):
        check_receipts(ACTION, receipts)


def test_rows_that_delete_files_remove_are_accounted_for() -> None:
    delete = DeleteFile("d", FileContent.POSITION_DELETES, FileFormat.PARQUET, Partition(0, "[]"), 1, 3, 1, 1)
    action = replace(ACTION, groups=(ACTION.groups[0], replace(ACTION.groups[1], delete_files=(delete,))))
    check_receipts(action, [RECEIPTS[0], replace(RECEIPTS[1], records=17, deleted_records=3)])
    with pytest.raises(ProofFailed):
        check_receipts(action, [RECEIPTS[0], replace(RECEIPTS[1], records=17, deleted_records=2)])


def test_files_are_those_of_their_receipts_and_each_another_one() -> None:
    for outputs in ([output(0, "a"), output(1, "b", records=19)], [output(0, "a")], [output(0, "a"), output(5, "b")]):
        with pytest.raises(ProofFailed, match=r"have (?:19|0) rows|its files"):
            check_outputs(ACTION, RECEIPTS, outputs)
    with pytest.raises(ProofFailed, match="same file"):
        check_outputs(ACTION, RECEIPTS, [output(0, "a"), output(1, "a")])
    with pytest.raises(ProofFailed, match="no group"):
        check_outputs(ACTION, RECEIPTS, [output(0, "a"), output(1, "b"), output(5, "c")])


def test_there_are_as_many_files_as_planned_but_for_empty_ones_of_a_shuffle() -> None:
    merged, shuffled = ACTION.groups[0], replace(ACTION.groups[1], executor=Executor.SHUFFLE, output_files=3)
    action = replace(ACTION, groups=(merged, shuffled))
    for files in (1, 2, 3):
        parts = [output(1, f"b{number}", 20 // files + (number < 20 % files)) for number in range(files)]
        check_outputs(action, RECEIPTS, [output(0, "a"), *parts])
    too_many = [output(1, f"b{number}", 5) for number in range(4)]
    with pytest.raises(ProofFailed, match="4 files, and 3"):
        check_outputs(action, RECEIPTS, [output(0, "a"), *too_many])
    with pytest.raises(ProofFailed, match="2 files, and 1"):
        check_outputs(action, RECEIPTS, [output(0, "a", 10), output(0, "c", 10), output(1, "b")])


def test_the_proof_tells_apart_groups_digests_and_rows_and_knows_no_order() -> None:
    proofs = {
        proof_of(RECEIPTS),
        proof_of(RECEIPTS[:1]),
        proof_of([RECEIPTS[0], replace(RECEIPTS[1], output_digest="x")]),
        proof_of([RECEIPTS[0], replace(RECEIPTS[1], records=21)]),
        proof_of([RECEIPTS[0], replace(RECEIPTS[1], method="other")]),
        proof_of([RECEIPTS[0], replace(RECEIPTS[1], deleted_records=1)]),
    }
    assert len(proofs) == 6
    assert proof_of(RECEIPTS) == proof_of(RECEIPTS[::-1])


class _Running(TaskContext):
    """A Spark task as its worker sees it."""

    def __init__(self, attempt: int, identity: int) -> None:
        self._attempt_of_task, self._identity = attempt, identity

    def __new__(cls, *_arguments: int) -> _Running:  # noqa: PYI034 - PySpark's own __new__ keeps one for the process
        return object.__new__(cls)

    def attemptNumber(self) -> int:  # noqa: N802 - PySpark's name
        return self._attempt_of_task

    def taskAttemptId(self) -> int:  # noqa: N802 - PySpark's name
        return self._identity


def test_a_group_that_spark_runs_again_writes_a_file_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first run may not be dead, only out of sight, and still be writing."""
    job = MergeJob(group(), (), ("file:/t/00000-task-1-1.parquet",))
    assert _own_output(job) is job
    paths = set()
    for attempt, identity in [(0, 11), (1, 12), (2, 13)]:
        monkeypatch.setattr(TaskContext, "_taskContext", _Running(attempt, identity))
        paths.add(_own_output(job).output_paths[0])
    again = {f"file:/t/00000-task-1-1-try{identity}.parquet" for identity in (12, 13)}
    assert paths == {job.output_paths[0], *again}


@given(st.lists(st.integers(0, 3 * TASK_BYTES_MAX), min_size=1, max_size=40), st.integers(1, 16))
def test_small_groups_share_spark_tasks_in_their_order(sizes: list[int], cores: int) -> None:
    tasks = spark_tasks(list(enumerate(sizes)), lambda group: group[1], cores)
    assert [group for task in tasks for group in task] == list(enumerate(sizes))
    assert all(tasks)
    assert all(sum(size for _, size in task) <= TASK_BYTES_MAX for task in tasks if len(task) > 1)
    assert all(sum(size for _, size in task[:-1]) < max(1, sum(sizes) / (2 * cores)) for task in tasks)
    assert sum(sizes) > TASK_BYTES_MAX or len(tasks) <= 2 * cores


def test_a_hundred_small_groups_of_one_size_are_two_tasks_for_each_core() -> None:
    sizes = [200] * 100
    assert [len(task) for task in spark_tasks(sizes, int, 2)] == [25, 25, 25, 25]
    assert [len(task) for task in spark_tasks(sizes[:5], int, 2)] == [2, 2, 1]
    assert [len(task) for task in spark_tasks(sizes, int, 500)] == [1] * 100
