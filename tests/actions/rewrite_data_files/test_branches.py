"""When main is left alone for a branch or a staged snapshot, by metadata alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icewright.actions.rewrite_data_files.check.plan import check_plan
from icewright.actions.rewrite_data_files.plan import plan_table
from icewright.actions.rewrite_data_files.shortlist import shortlist
from icewright.model.actions.actions import RewriteDataFiles
from icewright.model.iceberg.tables import Operation, Ref, RefKind, Snapshot, TableMetadata
from icewright.model.plans.plans import Verdict
from icewright.plans.branches import BRANCH_AHEAD, main_hold
from tests.builders.observations import DAY_MS, HOUR_MS, NOW, data_files, month, observe, policy, snapshot, table
from tests.cases import each_case

MAIN = Ref("main", RefKind.BRANCH, 2)
LONG_AGO = NOW - 10 * DAY_MS
WAP = {"wap.id": "night-7"}


def until(metadata: TableMetadata, window_ms: int = DAY_MS) -> int | None:
    hold = main_hold(metadata, policy(branch_window_ms=window_ms), NOW)
    assert hold is None or hold.reason.code == BRANCH_AHEAD
    return None if hold is None else hold.until


def branched(
    written_at: int, *later_at: int, head: int | None = None, updated_at: int = LONG_AGO, kind: RefKind = RefKind.BRANCH
) -> TableMetadata:
    """Main is at 2; a ref is at the last of the snapshots that came after it, or where it is said to be."""
    others = [snapshot(3 + place, at) for place, at in enumerate((written_at, *later_at))]
    metadata = table([*others, snapshot(1), snapshot(2)], updated_at=updated_at)
    at = 2 + len(others) if head is None else head
    return replace(metadata, refs=(MAIN, Ref("audit", kind, at)))


def test_a_branch_is_ahead_from_its_first_snapshot_on_for_the_window_of_its_owner() -> None:
    metadata = branched(NOW - 3 * HOUR_MS, NOW - HOUR_MS)
    assert until(metadata) == NOW - 3 * HOUR_MS + DAY_MS
    assert until(metadata, 3 * HOUR_MS + 1) == NOW + 1
    assert until(metadata, 3 * HOUR_MS) is None
    assert until(metadata, 0) is None


def test_a_branch_at_the_head_of_main_counts_from_the_last_change_of_the_metadata() -> None:
    assert until(branched(LONG_AGO, head=2, updated_at=NOW - HOUR_MS)) == NOW - HOUR_MS + DAY_MS
    assert until(branched(LONG_AGO, head=2, updated_at=NOW - DAY_MS)) is None


def test_tags_and_branches_that_main_has_left_behind_hold_nothing() -> None:
    assert until(branched(NOW - HOUR_MS, kind=RefKind.TAG)) is None
    assert until(branched(NOW - HOUR_MS, head=1, updated_at=NOW)) is None
    fork = replace(snapshot(9, NOW - HOUR_MS), parent_id=1)
    left = table([fork, snapshot(1), snapshot(2)])
    assert until(replace(left, refs=(MAIN, Ref("audit", RefKind.BRANCH, 9)))) is None
    cut = replace(branched(NOW - HOUR_MS), refs=(MAIN, Ref("audit", RefKind.BRANCH, 77)))
    assert until(cut) is None


@each_case(("ahead_ms", "held"), [(5 * 60_000, True), (DAY_MS, True), (DAY_MS + 1, False)])
def test_a_clock_that_is_a_little_ahead_protects_and_one_of_another_century_holds_nothing(
    ahead_ms: int, *, held: bool
) -> None:
    assert (until(branched(NOW + ahead_ms)) is not None) == held


def test_a_ring_of_parents_ends() -> None:
    ring = [replace(snapshot(3, NOW), parent_id=4), replace(snapshot(4, NOW), parent_id=3)]
    metadata = table([*ring, snapshot(1), snapshot(2)])
    assert until(replace(metadata, refs=(MAIN, Ref("audit", RefKind.BRANCH, 4)))) is None


def staged(parent_id: int, operation: Operation, *later: Snapshot, **summary: str) -> TableMetadata:
    one = replace(snapshot(9, NOW - HOUR_MS, operation, {**WAP, **summary}), parent_id=parent_id)
    metadata = table([one, snapshot(1), snapshot(2), *later])
    return replace(metadata, refs=(replace(MAIN, snapshot_id=metadata.current_snapshot_id or 0),))


@each_case(
    ("metadata", "held"),
    [
        (staged(2, Operation.APPEND), False),
        (staged(2, Operation.OVERWRITE), True),
        (staged(2, Operation.DELETE), True),
        (staged(1, Operation.OVERWRITE), False),
        (staged(1, Operation.OVERWRITE, **{"replace-partitions": "true"}), True),
        (staged(2, Operation.DELETE, snapshot(3, NOW, summary={"published-wap-id": "night-7"})), False),
        (staged(2, Operation.DELETE, snapshot(3, NOW, summary={"source-snapshot-id": "9"})), False),
    ],
)
def test_what_is_staged_holds_main_where_cherry_picking_would_fail(metadata: TableMetadata, *, held: bool) -> None:
    assert (until(metadata) is not None) == held


@pytest.mark.parametrize("metadata", [branched(NOW - HOUR_MS), branched(LONG_AGO, head=2, updated_at=NOW - HOUR_MS)])
def test_the_plan_waits_and_its_checker_would_not_let_another_one_pass(metadata: TableMetadata) -> None:
    observation = observe(data_files(month(1), 8), metadata=metadata)
    for rules, held in ((policy(), True), (policy(branch_window_ms=0), False)):
        verdicts = shortlist(observation, rules, NOW)
        plan = plan_table(observation, rules, verdicts, data_files(month(1), 8), plan_id="plan-1", now=NOW)
        assert bool(plan.actions) != held
        if held:
            assert [one.verdict for one in plan.verdicts] == [Verdict.WAIT]
            assert plan.look_again_at == until(metadata)
            continue
        assert isinstance(plan.actions[0], RewriteDataFiles)
        codes = {code for code, _ in check_plan(plan, observation, policy(), None)}
        assert codes == {"branch-ahead"}
        assert not check_plan(plan, observation, rules, None)
