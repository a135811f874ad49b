"""What the attempts at a task took, from their reports."""

from __future__ import annotations

from dataclasses import replace

from icewright.core.codec import dumps
from icewright.model.work.jobs import (
    PROTOCOL_VERSION,
    Committed,
    CommitUnknown,
    Conflicted,
    Failed,
    GroupFigures,
    GroupLeft,
    Receipt,
    Result,
    TaskReport,
)
from icewright.model.work.tasks import Attempt, AttemptState
from icewright.plans.evidence.measures import committed_input_bytes, measured
from tests.narrowing import not_none

CONFLICT = GroupLeft(1, "conflict", "a delete", retryable=True)


def figures(group_id: int) -> GroupFigures:
    return GroupFigures(group_id, 4, 400, (f"out-{group_id}",), 100, 39, 7, 9, 5000 + group_id, 3)


def report(
    number: int, result: Result, *, left: tuple[GroupLeft, ...] = (), groups: tuple[int, ...] = (0, 1)
) -> Attempt:
    receipts = tuple(Receipt(group, "m", "d", "d", 39, 1) for group in groups)
    done = tuple(map(figures, groups))
    said = TaskReport(PROTOCOL_VERSION, "task-1", number, 1, result, receipts, done, 50, 20, left)
    return Attempt("task-1", number, "o", 1, AttemptState.COMMITTED, 0, 1, None, dumps(said))


def test_before_a_report_nothing_is_known() -> None:
    assert measured([]) is None
    silent = replace(report(1, Committed(1)), report_json=None)
    assert measured([silent]) is None
    assert measured([replace(silent, report_json='{"of": "another release"}')]) is None


def test_a_commit_of_all_groups() -> None:
    found = not_none(measured([report(1, Committed(1))]))
    assert (found.groups_committed, found.groups_conflicted, found.groups_failed) == (2, 0, 0)
    assert (found.input_files, found.input_bytes, found.output_files, found.output_bytes) == (8, 800, 2, 200)
    assert (found.records, found.deleted_records) == (78, 2)
    assert (found.read_bytes, found.written_bytes, found.wasted_bytes) == (800, 200, 0)
    assert (found.cpu_ms, found.wall_ms, found.peak_memory_bytes) == (20, 50, 5001)
    assert found.proof_cpu_ms == 6


def test_what_was_written_for_a_group_that_is_left_is_wasted() -> None:
    found = not_none(measured([report(1, Committed(1), left=(CONFLICT,))]))
    assert (found.groups_committed, found.groups_conflicted, found.groups_failed) == (1, 1, 0)
    assert (found.input_files, found.output_bytes, found.records) == (4, 100, 39)
    assert (found.read_bytes, found.written_bytes, found.wasted_bytes) == (800, 200, 100)


def test_a_group_that_failed_has_written_nothing_that_is_known() -> None:
    failed = GroupLeft(1, "file-unreadable", "in-7 is missing", retryable=True)
    found = not_none(measured([report(1, Committed(1), left=(failed,), groups=(0,))]))
    assert (found.groups_committed, found.groups_conflicted, found.groups_failed) == (1, 0, 1)
    assert found.wasted_bytes == 0


def test_the_work_of_all_attempts_counts_and_that_of_the_refused_ones_is_wasted() -> None:
    refused = report(1, Conflicted("a delete"), left=(CONFLICT, replace(CONFLICT, group_id=0)))
    ended = report(2, Failed("engine", "lost", retryable=True), groups=())
    found = not_none(measured([refused, ended, report(3, Committed(1))]))
    assert (found.attempts, found.groups_committed, found.groups_conflicted) == (3, 2, 2)
    assert (found.written_bytes, found.wasted_bytes, found.cpu_ms) == (400, 200, 60)
    assert found.proof_cpu_ms == 12


def test_of_a_commit_that_nobody_can_tell_of_nothing_is_said_to_be_wasted() -> None:
    found = not_none(measured([report(1, CommitUnknown("timeout"))]))
    assert (found.groups_committed, found.written_bytes, found.wasted_bytes) == (0, 200, 0)


def test_bytes_that_were_replaced_are_of_committed_groups_and_not_of_those_left_out() -> None:
    refused = report(1, Conflicted("a delete"), left=(CONFLICT,))
    done = report(2, Committed(1), left=(CONFLICT,), groups=(0, 1, 2))
    assert committed_input_bytes([], ()) == 0
    assert committed_input_bytes([refused], ()) == 0
    assert committed_input_bytes([refused, done], ()) == 800
    assert committed_input_bytes([refused, done], {2, 7}) == 400
