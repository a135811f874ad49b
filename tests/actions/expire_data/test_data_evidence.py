"""Whether a snapshot did what its action of expiring data says: every fault is noticed by one of the guards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from icewright.actions.expire_data.evidence import DataChanged, problem_of_data, verified_data
from icewright.actions.rewrite_manifests.evidence import live_entries
from icewright.model.actions.expire_data import TAG_AGE_MS, ExpireData, ExpiringFile, ExpiringPartition, tag_of
from icewright.model.iceberg.tables import PROOF_KEY, Operation, Ref, RefKind
from tests.builders.observations import DAY_MS, NOW, data_file, month, position_deletes, snapshot, table
from tests.cases import each_case

GONE = [data_file(month(1), 0), data_file(month(1), 1)]
STAYS = [data_file(month(2), 0), data_file(month(2), 1, first_row_id=500)]
FILES = tuple(ExpiringFile(file.path, file.size_bytes, file.record_count, 1) for file in GONE)
ROWS = sum(file.record_count for file in GONE)
ACTION = ExpireData(
    3, "month", 1, None, 30 * DAY_MS, "UTC", NOW, (ExpiringPartition(month(1), "month=1", FILES),), ROWS, 100 * ROWS
)
PARENT = snapshot(8, summary={"total-data-files": "4", "total-records": str(2 * ROWS)})
SUMMARY = {"total-data-files": "2", "total-records": str(ROWS), PROOF_KEY: "digest"}
MADE = replace(snapshot(9, operation=Operation.DELETE, summary=SUMMARY), parent_id=8)
TAG = Ref(tag_of("task-1"), RefKind.TAG, 3, max_ref_age_ms=TAG_AGE_MS)
CHANGED = DataChanged(
    frozenset(file.path for file in GONE), frozenset(), live_entries(STAYS, ()), live_entries(reversed(STAYS), ())
)


def problem(changed: DataChanged = CHANGED, tag: Ref | None = TAG, **made: Any) -> str:
    refs = () if tag is None else (tag,)
    found = problem_of_data(
        "task-1", ACTION, table((snapshot(3), PARENT), refs=refs), PARENT, replace(MADE, **made), changed
    )
    return found or ""


def test_a_commit_that_is_as_it_should_be() -> None:
    assert problem() == ""
    reason = verified_data("task-1", ACTION, CHANGED)
    assert reason.figures["records_removed"] == ROWS


@each_case(
    ("changes", "said"),
    [
        ({"kept": frozenset([GONE[0].path])}, "1 planned file still listed"),
        ({"expired": frozenset([GONE[0].path])}, "1 planned file not removed as planned"),
        ({"after": live_entries(STAYS[:1], ())}, "2 data and 0 delete files were live in them, and 1 and 0 are"),
        ({"after": live_entries([*STAYS, GONE[0]], ())}, "and 3 and 0 are"),
        ({"after": live_entries([replace(STAYS[0], data_sequence_number=7), STAYS[1]], ())}, "entries changed"),
        ({"after": live_entries([STAYS[0], replace(STAYS[1], first_row_id=7)], ())}, "entries changed"),
        ({"added_deletes": (position_deletes(month(2), 0),)}, "1 delete file was added"),
        ({"lost_deletes": (position_deletes(month(2), 0),)}, "1 delete file removed that would still apply"),
    ],
)
def test_x4_w2_what_changed_beyond_the_plan(changes: dict[str, Any], said: str) -> None:
    assert said in problem(replace(CHANGED, **changes))


@each_case(
    ("made", "said"),
    [
        ({"operation": Operation.OVERWRITE}, "it is a snapshot of operation overwrite"),
        ({"summary": {**SUMMARY, PROOF_KEY: ""}}, "its summary has no proof"),
        ({"summary": {**SUMMARY, "total-records": "0"}}, "its summary has total-records=0 after "),
        ({"summary": {**SUMMARY, "total-data-files": "3"}}, "its summary has total-data-files=3 after 4"),
    ],
)
def test_x4_what_the_commit_says_of_itself(made: dict[str, Any], said: str) -> None:
    assert said in problem(**made)


@each_case(
    ("tag", "said"),
    [
        (None, "is not there"),
        (replace(TAG, kind=RefKind.BRANCH), "is not there"),
        (replace(TAG, snapshot_id=8), "is at snapshot 8, not at 3"),
        (replace(TAG, max_ref_age_ms=DAY_MS), "d after the commit"),
    ],
)
def test_i12_without_the_tag_it_could_not_be_undone(tag: Ref | None, said: str) -> None:
    assert said in problem(tag=tag)


def test_i12_a_tag_that_never_goes_is_as_good() -> None:
    assert problem(tag=replace(TAG, max_ref_age_ms=None)) == ""
