"""Whether an expiry may still be committed after all that happened since, and what it must not have taken away."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from icewright.actions.expire_snapshots.commit import expiry_conflict, is_expired, problem_of_expiry, trimmed
from icewright.model.actions.expire_snapshots import ExpireSnapshots, ExpiryRule, Hold, RefAt
from icewright.model.iceberg.names import TableId
from icewright.model.iceberg.tables import LoggedSnapshot, Ref, RefKind, TableMetadata
from tests.builders.expiring import AGED, DAYS, decided, histories, of, rules
from tests.builders.observations import DAY_MS, HOUR_MS, NOW
from tests.cases import each_case
from tests.narrowing import not_none

OLD = Ref("old", RefKind.TAG, 2, max_ref_age_ms=DAY_MS)
V1 = Ref("v1", RefKind.TAG, 8)
TABLE = replace(DAYS, refs=(*DAYS.refs, OLD, V1))


def planned(metadata: TableMetadata = TABLE, rule: ExpiryRule = AGED) -> ExpireSnapshots:
    return not_none(decided(metadata, rule).action)


ACTION = planned()


def expired(metadata: TableMetadata, action: ExpireSnapshots) -> TableMetadata:
    """As a catalog should make it."""
    gone = set(action.snapshot_ids)
    return replace(
        metadata,
        snapshots=tuple(one for one in metadata.snapshots if one.snapshot_id not in gone),
        refs=tuple(ref for ref in metadata.refs if RefAt.of(ref) not in action.refs_removed),
        snapshot_log=tuple(trimmed(metadata.snapshot_log, lambda entry: entry.snapshot_id, gone)),
    )


def at(*refs: Ref, **changes: Any) -> TableMetadata:
    return replace(TABLE, refs=refs, **changes)


(MAIN,) = DAYS.refs
APPENDED = replace(
    TABLE,
    snapshots=(*TABLE.snapshots, of(9, 0)),
    refs=(replace(MAIN, snapshot_id=9), OLD, V1),
    current_snapshot_id=9,
)


def code(metadata: TableMetadata, action: ExpireSnapshots = ACTION, *holds: Hold) -> str | None:
    reason = expiry_conflict(action, metadata, holds)
    return None if reason is None else reason.code


def test_the_action_is_what_the_tests_think() -> None:
    assert ACTION.snapshot_ids == (1, 2, 3, 4, 5)
    assert ACTION.refs_removed == (RefAt.of(OLD),)


@each_case(
    ("metadata", "expected"),
    [
        (TABLE, None),
        (APPENDED, None),
        (at(MAIN, OLD, V1, Ref("new", RefKind.TAG, 7)), None),
        (at(MAIN, OLD, V1, Ref("new", RefKind.TAG, 3)), "snapshot-needed"),
        (at(MAIN, OLD, V1, Ref("new", RefKind.BRANCH, 5)), "snapshot-needed"),
        (at(replace(MAIN, snapshot_id=4), OLD, V1, current_snapshot_id=4), "snapshot-needed"),
        (at(MAIN, OLD, replace(V1, snapshot_id=1)), "snapshot-needed"),
        (at(MAIN, OLD, V1, current_snapshot_id=3, snapshot_log=()), "snapshot-needed"),
        (at(replace(MAIN, min_snapshots_to_keep=4), OLD, V1), "snapshot-needed"),
        (at(replace(MAIN, max_snapshot_age_ms=7 * DAY_MS), OLD, V1), "snapshot-needed"),
        (at(MAIN, OLD, V1, properties={"icewright.consumer.new": "5"}), "snapshot-needed"),
        (at(MAIN, OLD), "ref-gone"),
        (at(MAIN, V1), "ref-gone"),
        (at(MAIN, replace(OLD, snapshot_id=1), V1), "ref-moved"),
        (at(MAIN, replace(OLD, kind=RefKind.BRANCH), V1), "ref-moved"),
        (at(MAIN, replace(OLD, max_ref_age_ms=None), V1), "snapshot-needed"),
        (replace(TABLE, snapshots=TABLE.snapshots[1:], snapshot_log=()), "snapshot-gone"),
        (replace(TABLE, properties={"gc.enabled": "false"}), "gc-disabled"),
    ],
)
def test_e6_what_happens_meanwhile_is_harmless_or_refused(metadata: TableMetadata, expected: str | None) -> None:
    assert code(metadata) == expected


def test_e13_a_task_that_came_meanwhile_is_not_robbed() -> None:
    assert code(TABLE, ACTION, Hold("task T", 6)) is None
    assert code(TABLE, ACTION, Hold("task T", 5)) == "snapshot-needed"


def test_a_ref_alone_that_is_to_be_kept_by_now_is_kept() -> None:
    at_8 = replace(OLD, snapshot_id=8, max_ref_age_ms=DAY_MS // 2)
    metadata = at(MAIN, at_8, V1)
    action = planned(metadata)
    assert action.refs_removed == (RefAt.of(at_8),)
    assert code(metadata, action) is None
    assert code(at(MAIN, replace(at_8, max_ref_age_ms=None), V1), action) == "ref-needed"


def test_e5_what_was_current_again_meanwhile_is_kept() -> None:
    log = (*TABLE.snapshot_log, LoggedSnapshot(NOW - HOUR_MS, 5), LoggedSnapshot(NOW - HOUR_MS, 8))
    assert code(replace(TABLE, snapshot_log=log)) == "snapshot-needed"


@given(histories(), rules)
def test_what_is_committed_is_seen_and_no_problem(metadata: TableMetadata, rule: ExpiryRule) -> None:
    action = decided(metadata, rule).action
    if action is None:
        return
    assert expiry_conflict(action, metadata) is None
    assert not is_expired(action, metadata)
    after = expired(metadata, action)
    assert is_expired(action, after)
    assert problem_of_expiry(metadata, after, action) is None
    again = decided(after, rule).action
    assert again is None or set(again.snapshot_ids).isdisjoint(action.snapshot_ids)


AFTER = expired(TABLE, ACTION)


@each_case(
    ("before", "after", "expected"),
    [
        (TABLE, AFTER, None),
        (APPENDED, expired(APPENDED, ACTION), None),
        (None, AFTER, "expiry-unseen"),
        (TABLE, replace(AFTER, table_id=TableId("lake", "another")), "other-table"),
        (at(MAIN, OLD, V1, Ref("new", RefKind.TAG, 3)), AFTER, "refs-lost"),
        (TABLE, replace(AFTER, refs=(MAIN,)), "refs-lost"),
        (TABLE, replace(AFTER, refs=(MAIN, replace(V1, snapshot_id=7))), "refs-lost"),
        (TABLE, replace(AFTER, refs=(MAIN, replace(V1, max_ref_age_ms=1))), "refs-lost"),
        (TABLE, replace(AFTER, refs=(V1,), current_snapshot_id=None), "refs-lost"),
        (TABLE, replace(AFTER, snapshots=AFTER.snapshots[1:]), "snapshots-lost"),
        (
            TABLE,
            replace(AFTER, snapshots=(replace(AFTER.snapshots[0], parent_id=None), *AFTER.snapshots[1:])),
            "snapshots-changed",
        ),
        (TABLE, replace(AFTER, current_snapshot_id=7), "current-moved"),
    ],
)
def test_e6_what_a_commit_took_away_besides_is_seen(
    before: TableMetadata | None, after: TableMetadata, expected: str | None
) -> None:
    reason = problem_of_expiry(before, after, ACTION)
    assert (None if reason is None else reason.code) == expected


def test_e2_a_parent_that_was_made_none_is_seen() -> None:
    """As one client does when it removes a parent: the line of ancestors would end there for good."""
    orphaned = replace(AFTER.snapshots[0], parent_id=None)
    reason = not_none(problem_of_expiry(TABLE, replace(AFTER, snapshots=(orphaned, *AFTER.snapshots[1:])), ACTION))
    assert str(orphaned.snapshot_id) in reason.text


@given(st.lists(st.integers(0, 6)), st.sets(st.integers(0, 6)))
def test_the_log_has_no_gaps(log: list[int], gone: set[int]) -> None:
    """As Iceberg does it: whatever comes before an entry that goes is forgotten with it."""
    expected: list[int] = []
    for entry in log:
        if entry in gone:
            expected.clear()
        else:
            expected.append(entry)
    assert trimmed(log, lambda entry: entry, gone) == expected


def test_s2_who_says_after_the_plan_that_it_reads_on_is_heard_at_the_commit() -> None:
    hold = {"icewright.expire-snapshots.max-hold": "P7D"}
    action = planned(replace(TABLE, properties=hold))
    assert 3 in action.snapshot_ids
    said = {
        **hold,
        "icewright.consumer.backfill": f"3@{datetime.fromtimestamp(NOW / 1000 + 3600, UTC):%Y-%m-%dT%H:%M:%SZ}",
    }
    assert code(replace(TABLE, properties=said, updated_at=NOW + HOUR_MS), action) == "snapshot-needed"
    assert code(replace(TABLE, properties=said, updated_at=NOW), action) is None  # a heartbeat that is yet to come
