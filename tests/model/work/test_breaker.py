"""The breaker opens on what wastes work or harms a table, and closes by itself after a day."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icewright.core.errors import Cause
from icewright.model.actions.expire_snapshots import ExpireSnapshotsPrediction
from icewright.model.plans.plans import Reason
from icewright.model.work import lifecycle
from icewright.model.work.breaker import (
    BREAKER_SETTINGS,
    FAILURES_MAX,
    PARKED_MS,
    TASKS_LOOKED_AT,
    THRESHOLD_MAX,
    TRIES_CARRIED_OUT,
    UNVERIFIED,
    VERIFICATION_FAILED,
    Thresholds,
    alarmed,
    failures_in_a_row,
    is_half_open,
    parked,
)
from icewright.model.work.tasks import Outcome, Task, TaskState
from tests.cases import each_case
from tests.contracts.samples import new_task
from tests.narrowing import not_none

NOW = 1_700_000_000_000


def ended(state: TaskState, *, ago_ms: int = 0, attempt: int = 1, code: str = "engine") -> Task:
    task = lifecycle.create(new_task("task-1"), NOW).task
    outcome = Outcome(Reason(code, "the executor was lost"))
    return replace(task, state=state, attempt=attempt, updated_at=NOW - ago_ms, outcome=outcome)


EXPIRY = ExpireSnapshotsPrediction(3, 1, (), 2, "", can_be_undone=False, undo="")
EXPIRED = replace(ended(TaskState.SUCCEEDED), prediction=EXPIRY)
WASTED = [ended(TaskState.FAILED), *[ended(TaskState.SUPERSEDED, ago_ms=1000)] * (FAILURES_MAX - 1)]


def test_nothing_has_happened_yet() -> None:
    assert parked([], NOW) is None


def test_w9_so_many_failures_in_a_row_open_it_and_the_reason_says_until_when() -> None:
    reason = not_none(parked(WASTED, NOW))
    assert (reason.code, reason.figures["until"]) == ("parked", NOW + PARKED_MS)
    assert "the executor was lost" in reason.text


def test_one_less_does_not() -> None:
    assert parked(WASTED[:-1], NOW) is None


@each_case("state", sorted(set(TaskState) - {TaskState.FAILED, TaskState.SUPERSEDED}))
def test_anything_better_among_them_closes_it(state: TaskState) -> None:
    assert parked([*WASTED[:2], ended(state), *WASTED[2:]], NOW) is None


def test_what_was_never_tried_does_not_count() -> None:
    untried = ended(TaskState.SUPERSEDED, attempt=0)
    assert parked([untried, *WASTED[:-1], untried], NOW) is None
    assert parked([untried, *WASTED, untried], NOW) is not None


def test_what_was_claimed_and_not_begun_does_not_count() -> None:
    unbegun, begun = (
        replace(
            ended(TaskState.SUPERSEDED),
            attempt=tries + 1,
            outcome=Outcome(Reason("files-changed", "they did", {TRIES_CARRIED_OUT: tries})),
        )
        for tries in (0, 1)
    )
    assert parked([unbegun] * FAILURES_MAX, NOW) is None
    assert parked([unbegun, *WASTED, unbegun], NOW) is not None
    assert parked([begun] * FAILURES_MAX, NOW) is not None


def test_what_cannot_be_verified_does_not_count() -> None:
    unverified = ended(TaskState.FAILED, code=UNVERIFIED)
    assert parked([unverified] * FAILURES_MAX, NOW) is None
    assert parked([unverified, *WASTED, unverified], NOW) is not None


@each_case(
    ("latest", "failures"),
    [
        ([], 0),
        (WASTED, FAILURES_MAX),
        ([*WASTED[:3], ended(TaskState.SUCCEEDED), *WASTED[:4]], 3),
        ([ended(TaskState.FAILED, code=UNVERIFIED)] * FAILURES_MAX, 0),
        ([EXPIRED, *WASTED[:2], EXPIRED, *WASTED[2:]], FAILURES_MAX),
    ],
)
def test_a_row_of_failures_is_that_of_one_kind(latest: list[Task], failures: int) -> None:
    """Another kind's success ends none: what parks that kind is told, however much of another does well."""
    assert failures_in_a_row(latest) == failures
    of_one_kind = [task for task in latest if task is not EXPIRED]
    assert (parked(of_one_kind, NOW) is not None) == (failures >= FAILURES_MAX)


def test_after_a_day_one_more_try_is_let_through_and_its_failure_parks_again() -> None:
    assert parked(WASTED, NOW + PARKED_MS - 1) is not None
    assert parked(WASTED, NOW + PARKED_MS) is None
    later = replace(ended(TaskState.FAILED), updated_at=NOW + PARKED_MS)
    assert parked([later, *WASTED], NOW + PARKED_MS) is not None


def test_rows_that_were_not_kept_open_it_at_once() -> None:
    alarm = ended(TaskState.FAILED, code=VERIFICATION_FAILED)
    assert "did not keep the rows" in not_none(parked([alarm], NOW)).text
    of_an_expiry = not_none(parked([replace(alarm, prediction=EXPIRY)], NOW))
    assert "did not keep the table as it should have" in of_an_expiry.text
    assert parked([alarm], NOW + PARKED_MS) is None
    assert parked([ended(TaskState.SUCCEEDED), alarm], NOW) is None


def test_an_alarm_of_one_kind_of_action_stops_all_whatever_others_did_since() -> None:
    alarm = ended(TaskState.FAILED, code=VERIFICATION_FAILED, ago_ms=1000)
    assert alarmed([EXPIRED, alarm], NOW) == parked([alarm], NOW)
    assert alarmed([ended(TaskState.SUCCEEDED), EXPIRED, alarm], NOW) is None
    assert alarmed([EXPIRED, alarm], NOW - 1000 + PARKED_MS) is None
    assert alarmed([EXPIRED, *WASTED], NOW) is None


def of(cause: Cause) -> Task:
    task = ended(TaskState.SUPERSEDED if cause is Cause.CONFLICT else TaskState.FAILED)
    return replace(task, outcome=Outcome(Reason("x", "so it was"), cause=cause))


def test_it_counts_by_cause_and_says_which() -> None:
    limits = Thresholds(conflicts=4, failures=2)
    assert parked([of(Cause.AWAY), of(Cause.UNREADABLE), of(Cause.CONFLICT)], NOW, limits) is None
    for tasks, cause in (
        ([of(Cause.AWAY), of(Cause.CONFLICT), of(Cause.AWAY)], "away"),
        ([of(Cause.CONFLICT)] * 4, "conflict"),
    ):
        reason = not_none(parked(tasks, NOW, limits))
        assert (reason.figures["cause"], reason.figures["kind"]) == (cause, "rewrite_data_files")
        assert "`icewright table unpark`" in reason.text
    assert parked([of(Cause.CONFLICT)] * 3, NOW, limits) is None


def test_of_many_causes_as_many_as_the_greater_of_both_open_it() -> None:
    causes = [Cause.CONFLICT, Cause.AWAY, Cause.UNREADABLE, Cause.LOST, Cause.DEFECT]
    assert parked([of(cause) for cause in causes], NOW) is not None
    assert parked([of(cause) for cause in causes[1:]], NOW) is None


def test_it_is_parked_for_as_long_as_the_owner_says() -> None:
    limits = Thresholds(parked_ms=60_000)
    reason = not_none(parked(WASTED, NOW, limits))
    assert (reason.figures["until"], "1 minutes" in reason.text) == (NOW + 60_000, True)
    assert parked(WASTED, NOW + 60_000, limits) is None


def test_unparking_forgets_what_was_before_it_and_alarms_too() -> None:
    alarm = ended(TaskState.FAILED, code=VERIFICATION_FAILED)
    for tasks in (WASTED, [alarm]):
        assert parked(tasks, NOW) is not None
        assert parked(tasks, NOW, Thresholds(unparked_at=NOW)) is None
        assert not is_half_open(tasks, NOW + PARKED_MS, Thresholds(unparked_at=NOW))
    assert alarmed([alarm], NOW, Thresholds(unparked_at=NOW)) is None
    later = [replace(task, updated_at=NOW + 1) for task in WASTED]
    assert parked([*later, *WASTED], NOW + 1, Thresholds(unparked_at=NOW)) is not None


def test_behind_its_time_it_is_half_open_until_something_succeeds() -> None:
    assert not is_half_open(WASTED, NOW + PARKED_MS - 1)
    assert is_half_open(WASTED, NOW + PARKED_MS)
    assert not is_half_open([ended(TaskState.SUCCEEDED), *WASTED], NOW + PARKED_MS)
    assert not is_half_open(WASTED[1:], NOW + PARKED_MS)
    assert not is_half_open([], NOW)


def test_thresholds_are_the_owners_and_no_more_than_the_tasks_that_are_looked_at() -> None:
    by_field = {setting.field: setting for setting in BREAKER_SETTINGS}
    assert {setting.default for setting in BREAKER_SETTINGS[:2]} == {FAILURES_MAX}
    assert by_field["parked_ms"].default == PARKED_MS
    for field in ("breaker_conflicts", "breaker_failures"):
        assert by_field[field].parse(str(THRESHOLD_MAX)) == THRESHOLD_MAX <= TASKS_LOOKED_AT
        with pytest.raises(ValueError, match="11"):
            by_field[field].parse(str(THRESHOLD_MAX + 1))
