"""The breaker opens on what wastes work or harms a table, and closes by itself after a day."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icewright.domain.expire_snapshots import ExpireSnapshotsPrediction
from icewright.domain.plans import Reason
from icewright.domain.tasks import Outcome, Task, TaskState
from icewright.scheduling import lifecycle
from icewright.scheduling.breaker import (
    FAILURES_MAX,
    PARKED_MS,
    TRIES_CARRIED_OUT,
    UNVERIFIED,
    VERIFICATION_FAILED,
    alarmed,
    parked,
)
from tests.contracts.samples import new_task

NOW = 1_700_000_000_000


def ended(state: TaskState, *, ago_ms: int = 0, attempt: int = 1, code: str = "engine") -> Task:
    task = lifecycle.create(new_task("task-1"), NOW).task
    outcome = Outcome(Reason(code, "the executor was lost"))
    return replace(task, state=state, attempt=attempt, updated_at=NOW - ago_ms, outcome=outcome)


WASTED = [ended(TaskState.FAILED), *[ended(TaskState.SUPERSEDED, ago_ms=1000)] * (FAILURES_MAX - 1)]


def test_nothing_has_happened_yet() -> None:
    assert parked([], NOW) is None


def test_w9_so_many_failures_in_a_row_open_it_and_the_reason_says_until_when() -> None:
    reason = parked(WASTED, NOW)
    assert reason is not None
    assert (reason.code, reason.figures["until"]) == ("parked", NOW + PARKED_MS)
    assert "the executor was lost" in reason.text


def test_one_less_does_not() -> None:
    assert parked(WASTED[:-1], NOW) is None


@pytest.mark.parametrize("state", sorted(set(TaskState) - {TaskState.FAILED, TaskState.SUPERSEDED}))
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


def test_after_a_day_one_more_try_is_let_through_and_its_failure_parks_again() -> None:
    assert parked(WASTED, NOW + PARKED_MS - 1) is not None
    assert parked(WASTED, NOW + PARKED_MS) is None
    later = replace(ended(TaskState.FAILED), updated_at=NOW + PARKED_MS)
    assert parked([later, *WASTED], NOW + PARKED_MS) is not None


def test_rows_that_were_not_kept_open_it_at_once() -> None:
    alarm = ended(TaskState.FAILED, code=VERIFICATION_FAILED)
    reason = parked([alarm], NOW)
    assert reason is not None
    assert "did not keep the rows" in reason.text
    prediction = ExpireSnapshotsPrediction(3, 1, (), 2, "", can_be_undone=False, undo="")
    of_an_expiry = parked([replace(alarm, prediction=prediction)], NOW)
    assert of_an_expiry is not None
    assert "did not keep the table as it should have" in of_an_expiry.text
    assert parked([alarm], NOW + PARKED_MS) is None
    assert parked([ended(TaskState.SUCCEEDED), alarm], NOW) is None


def test_an_alarm_of_one_kind_of_action_stops_all_whatever_others_did_since() -> None:
    alarm = ended(TaskState.FAILED, code=VERIFICATION_FAILED, ago_ms=1000)
    prediction = ExpireSnapshotsPrediction(3, 1, (), 2, "", can_be_undone=False, undo="")
    fine = replace(ended(TaskState.SUCCEEDED), prediction=prediction)
    assert alarmed([fine, alarm], NOW) == parked([alarm], NOW)
    assert alarmed([ended(TaskState.SUCCEEDED), fine, alarm], NOW) is None
    assert alarmed([fine, alarm], NOW - 1000 + PARKED_MS) is None
    assert alarmed([fine, *WASTED], NOW) is None
