"""Where ``main`` may go back to, what that would lose, and what depends on it."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from icewright.actions.rollback.plan import (
    RollbackDecision,
    commits_of,
    decide_forward,
    decide_rollback,
    rollback_conflict,
)
from icewright.model.actions.expire_snapshots import Hold
from icewright.model.actions.rollback import Commits, Rollback
from icewright.model.iceberg.tables import Operation, Ref, RefKind, TableMetadata
from tests.builders.expiring import DAYS, histories, line, of, policy
from tests.builders.observations import DAY_MS, NOW
from tests.cases import each_case
from tests.narrowing import not_none


def decided(metadata: TableMetadata, **to: int) -> RollbackDecision:
    return decide_rollback(metadata, policy(metadata), **to)  # type: ignore[arg-type] # numbers


@given(histories(), st.integers(0, 11))
def test_only_to_ancestors_and_only_what_is_after_them_is_lost(metadata: TableMetadata, to: int) -> None:
    lineage = [one.snapshot_id for one in metadata.ancestors()]
    found = decided(metadata, to_snapshot=to)
    if to not in lineage[1:]:
        assert found.action is None
        return
    assert found.action == Rollback(lineage[0], to)
    assert rollback_conflict(found.action, metadata) is None
    assert found.prediction is not None
    assert found.prediction.snapshots == lineage.index(to) == sum(one.commits for one in found.prediction.commits)


@given(histories(), st.integers(0, 41 * DAY_MS))
def test_e11_to_the_latest_ancestor_before_an_instant(metadata: TableMetadata, age_ms: int) -> None:
    at = NOW - age_ms
    earlier = [one for one in metadata.ancestors() if one.committed_at < at]
    found = decided(metadata, to_time=at)
    if found.action is None:
        assert not earlier or max(one.committed_at for one in earlier) == metadata.ancestors()[0].committed_at
        return
    target = not_none(metadata.snapshot(found.action.snapshot_id))
    assert target.committed_at == max(one.committed_at for one in earlier) < at


@given(histories())
def test_back_and_forward_is_where_it_was(metadata: TableMetadata) -> None:
    found = decided(metadata, to_snapshot=metadata.ancestors()[-1].snapshot_id)
    if found.action is None:
        return
    to = found.action.snapshot_id
    refs = tuple(replace(ref, snapshot_id=to) if ref.name == "main" else ref for ref in metadata.refs)
    after = replace(metadata, current_snapshot_id=to, refs=refs)
    forward = decide_forward("task-1", found.action, after, policy(after))
    assert forward.action == Rollback(to, found.action.base_snapshot_id, "task-1")
    assert not_none(forward.prediction).commits == not_none(found.prediction).commits
    assert decide_forward("task-1", found.action, metadata, policy(metadata)).reason.code == "main-moved"


@each_case(("to", "code"), [(8, "there-already"), (99, "snapshot-gone"), (9, "no-ancestor")])
def test_there_is_a_reason_when_it_is_not_done(to: int, code: str) -> None:
    staged = replace(DAYS, snapshots=(*DAYS.snapshots, replace(of(9, 0), parent_id=7)))
    assert decided(staged, to_snapshot=to).reason.code == code


def test_what_another_optimizer_did_is_no_obstacle() -> None:
    """It may be the very thing that is to be taken back."""
    theirs = {"operation": "replace", "deleted-data-files": "3", "added-data-files": "1", "engine-name": "other"}
    metadata = line(3 * DAY_MS, 2 * DAY_MS)
    newest = replace(metadata.snapshots[1], operation=Operation.REPLACE, summary=theirs)
    metadata = replace(metadata, snapshots=(metadata.snapshots[0], newest))
    assert decided(metadata, to_snapshot=1).action == Rollback(2, 1)


def test_what_is_lost_is_counted_by_what_did_it() -> None:
    ours = {"added-records": "5", "deleted-records": "5", "icewright.task-id": "task-1"}
    summaries = [{"added-records": "10", "engine-name": "spark"}] * 2 + [ours, {"flink.job-id": "j"}, {}]
    snapshots = [of(number, 0, summary=said) for number, said in enumerate(summaries, start=1)]
    appended = Operation.APPEND.value
    assert set(commits_of([replace(one, operation=Operation.APPEND) for one in snapshots])) == {
        Commits(appended, "spark", 2, 20, 0),
        Commits(appended, "icewright", 1, 5, 5),
        Commits(appended, "flink", 1, 0, 0),
        Commits(appended, "unknown", 1, 0, 0),
    }


def test_summaries_of_strangers_are_of_bounded_length_and_number() -> None:
    hostile = [{"added-records": "9" * 5_000, "engine-name": f"e{number}\n" * 100} for number in range(50)]
    found = commits_of([of(number, 0, summary=said) for number, said in enumerate(hostile, start=1)])
    assert (len(found), found[-1].writer, found[-1].commits) == (21, "others", 30)
    assert all(one.added_records == 0 and len(one.writer) < 200 and "\n" not in one.writer for one in found)


def test_what_depends_on_it_is_said() -> None:
    refs = [Ref("v1", RefKind.TAG, 8), Ref("side", RefKind.BRANCH, 7), Ref("old", RefKind.TAG, 2)]
    metadata = replace(DAYS, refs=(*DAYS.refs, *refs), properties={"icewright.consumer.nightly": "7"})
    holds = [Hold("task T", 8), Hold("task U", 2)]
    found = decide_rollback(metadata, policy(metadata), to_snapshot=5, holds=holds)
    assert [note.code for note in found.notes] == ["ref-ahead", "ref-ahead", "consumer-ahead", "task-ahead"]
    many = [Ref(f"t{number}", RefKind.TAG, 8) for number in range(30)]
    metadata = replace(DAYS, refs=(*DAYS.refs, *many))
    notes = decide_rollback(metadata, policy(metadata), to_snapshot=5).notes
    assert (len(notes), notes[-1].text) == (11, "20 more refs")


def test_the_call_is_one_statement_whatever_the_name_is() -> None:
    name = replace(DAYS.name, name="t', snapshot_id => 1) --")
    found = decided(replace(DAYS, name=name), to_snapshot=5)
    assert found.prediction is not None
    assert found.prediction.call.count("snapshot_id => ") == 2
    assert found.prediction.call.endswith("', snapshot_id => 5)")
