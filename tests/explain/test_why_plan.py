"""What is told of a table, of what is known: each stance, what keeps it, and how honest the expectation is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from icewright.core import wording
from icewright.explain.inputs import Known, WaitingForAPerson
from icewright.explain.plan import why
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.rollback import RollbackPrediction
from icewright.model.plans.plans import PartitionVerdict, Plan, Reason, Verdict
from icewright.model.policy.policy import Mode, Policy
from icewright.model.work.tasks import Attempt, AttemptState, ListedTask, Outcome, TaskState
from icewright.model.work.why import Considered, Next, Stance, StartEstimate, Wait, Why, WhyKind
from icewright.policy.effective import policy_of
from tests.builders.lakehouse import NAME, Lakehouse
from tests.builders.observations import month
from tests.contracts.samples import plan as sample_plan
from tests.contracts.samples import table_id

NOW = 1_000_000_000
MINUTE_MS, HOUR_MS = 60_000, 3_600_000
IN_AN_HOUR = "1970-01-12 14:46:40 UTC, in 60.0 min"
REWRITE, EXPIRE = ActionKind.REWRITE_DATA_FILES, ActionKind.EXPIRE_SNAPSHOTS
SMALL = Reason("small-files", "merge 8 small files")


KEPT_UP = {"icewright.expire-snapshots.enabled": "true", "icewright.remove-orphan-files.enabled": "true"}


def policy(mode: Mode = Mode.AUTO, properties: Mapping[str, str] = MappingProxyType({})) -> Policy:
    return policy_of(NAME, {"icewright.mode": mode.value, **properties}, ())


def planned(**changes: Any) -> Plan:
    return replace(sample_plan("plan-1"), reason=SMALL, planned_at=NOW - HOUR_MS, **changes)


def known(**changes: Any) -> Known:
    values: dict[str, Any] = {
        "table_id": table_id(1),
        "name": NAME,
        "now": NOW,
        "snapshot_id": 7,
        "looked_at": NOW - MINUTE_MS,
        "changed_at": NOW - HOUR_MS,
        "next_look_at": NOW + MINUTE_MS,
        "policy": policy(),
        "away": None,
        "problem": None,
        "obstacle": None,
        "alarm": None,
        "plan": planned(),
        "interval_ms": HOUR_MS,
    }
    return Known(**{**values, **changes})


def nothing_planned(**changes: Any) -> Plan:
    return planned(actions=(), prediction=None, **changes)


def of(found: Why, kind: ActionKind = REWRITE) -> WhyKind:
    (one,) = [each for each in found.kinds if each.kind is kind]
    return one


@pytest.fixture(scope="module")
def queued() -> ListedTask:
    house = Lakehouse().with_ready_table()
    house.rounds(1)
    task = house.only_task().listed()
    return replace(task, plan_id="plan-1", created_at=NOW - HOUR_MS, not_before_at=NOW - HOUR_MS)


class TestTasks:
    def test_a_queued_task_that_nothing_keeps_starts_as_its_turn_comes(self, queued: ListedTask) -> None:
        told = of(why(known(tasks=(queued,), could_start={"default": 4})))
        assert (told.stance, told.waits, told.task_id) == (Stance.QUEUED, (), queued.task_id)
        assert (told.expected.what, told.expected.at) == (Next.STARTS, NOW)
        assert told.expected.basis.figures["others"] == 3
        assert "3 other tasks" in told.says[-1]

    def test_it_starts_when_the_last_of_what_it_waits_for_is_over(self, queued: ListedTask) -> None:
        waits = (Wait(Reason("a", "x"), NOW + 5), Wait(Reason("b", "y"), NOW + 9))
        told = of(why(known(tasks=(queued,), waits={queued.task_id: waits})))
        assert (told.expected.at, told.expected.basis.code) == (NOW + 9, "b")

    def test_one_wait_without_an_end_and_nobody_knows(self, queued: ListedTask) -> None:
        waits = (Wait(Reason("a", "x")), Wait(Reason("b", "y"), NOW + 9))
        found = why(known(tasks=(queued,), waits={queued.task_id: waits}))
        assert (of(found).expected.at, of(found).expected.basis.code) == (None, "a")
        assert "the time is not known" in of(found).says[-1]
        assert found.answer.endswith("(merge 8 small files): x")

    @pytest.mark.parametrize(
        ("start", "said"),
        [
            (
                StartEstimate(
                    NOW + HOUR_MS, NOW + HOUR_MS // 2, NOW + 2 * HOUR_MS, Reason("estimated", "so they took")
                ),
                f"Next: it starts about {IN_AN_HOUR}, perhaps in 30.0 min to 2.0 h. That is an estimate: so they took.",
            ),
            (
                StartEstimate(NOW + HOUR_MS, NOW + HOUR_MS, NOW + HOUR_MS, Reason("estimated", "so they took")),
                f"Next: it starts about {IN_AN_HOUR}. That is an estimate: so they took.",
            ),
            (
                StartEstimate(NOW, NOW, NOW, Reason("estimated", "nothing ranks before it")),
                "Next: it starts as soon as possible: nothing ranks before it.",
            ),
            (
                StartEstimate(None, NOW + HOUR_MS, None, Reason("not-measured", "too little ended")),
                f"Next: it is not known when it starts, and not before {IN_AN_HOUR}: too little ended.",
            ),
            (StartEstimate(None, None, None, Reason("a", "x")), "Next: it is not known when it starts."),
        ],
    )
    def test_about_when_a_task_starts_and_by_what(self, queued: ListedTask, start: StartEstimate, said: str) -> None:
        task_id = queued.task_id
        found = why(known(tasks=(queued,), waits={task_id: (Wait(Reason("a", "x")),)}, starts={task_id: start}))
        assert of(found).expected.start == start
        assert of(found).says[-1] == said

    def test_a_task_at_work_goes_on_and_says_how_far_it_is(self, queued: ListedTask) -> None:
        running = replace(queued, state=TaskState.RUNNING, attempt=2)
        told = of(why(known(tasks=(running,))))
        assert (told.stance, told.expected.what, told.expected.at) == (Stance.UNDER_WAY, Next.GOES_ON, None)
        assert "attempt 2 of 3" in told.expected.basis.text

    def test_the_breaker_does_not_hide_a_task_that_is_under_way(self, queued: ListedTask) -> None:
        running = replace(queued, state=TaskState.RUNNING, attempt=1)
        parked = {REWRITE: Reason("parked", "for a day", {"until": NOW + 5})}
        assert of(why(known(tasks=(running,), parked=parked))).stance is Stance.UNDER_WAY

    def test_the_last_try_is_told_by_its_attempt_and_not_by_the_task_that_waits_again(self, queued: ListedTask) -> None:
        again = replace(queued, attempt=1, outcome=Outcome(Reason("engine", "the executor was lost")))
        attempt = Attempt(again.task_id, 1, "o", 1, AttemptState.FAILED, NOW - 9, NOW - 3, None, None)
        last = of(why(known(tasks=(again,), last_attempts={again.task_id: attempt}))).last
        assert last is not None
        assert (last.state, last.at, last.reason) == (
            AttemptState.FAILED,
            NOW - 3,
            Reason("engine", "the executor was lost"),
        )

    @pytest.mark.parametrize("state", [TaskState.FAILED, TaskState.CANCELLED])
    def test_a_plan_whose_task_came_to_nothing_says_how_to_go_on(self, queued: ListedTask, state: TaskState) -> None:
        told = of(why(known(tasks=(replace(queued, state=state),))))
        assert (told.stance, told.waits[0].reason.code) == (Stance.KEPT_BACK, "task-ended")
        assert f"icewright tasks retry {queued.task_id}" in told.waits[0].reason.text


class TestPlans:
    def test_observed_alone(self) -> None:
        found = why(known(policy=policy(Mode.OBSERVE)))
        assert (of(found).stance, of(found).waits[0].reason.code) == (Stance.KEPT_BACK, "mode-observe")
        assert "merge 8 small files" in found.answer
        assert (found.mode, found.mode_origin) == (Mode.OBSERVE, "table property")

    def test_a_person_applies(self) -> None:
        told = of(why(known(policy=policy(Mode.APPROVE))))
        assert (told.stance, told.plan_id, told.expected.at) == (Stance.FOR_A_PERSON, "plan-1", None)
        assert "`icewright approve plan-1`" in told.waits[0].reason.text

    def test_the_mode_of_now_counts_and_not_that_of_the_plan(self) -> None:
        told = of(why(known(policy=policy(Mode.OBSERVE), plan=planned(mode=Mode.AUTO))))
        assert told.waits[0].reason.code == "mode-observe"

    def test_what_is_to_be_queued_waits_for_the_next_look(self) -> None:
        told = of(why(known()))
        assert (told.stance, told.expected.at) == (Stance.KEPT_BACK, NOW + MINUTE_MS)

    def test_never_planned(self) -> None:
        assert of(why(known(plan=None))).stance is Stance.NOT_KNOWN

    def test_nothing_to_do_has_no_instant_but_the_look_that_finds_the_next_commit(self) -> None:
        told = of(why(known(plan=nothing_planned(verdicts=(), verdict_counts={}, look_again_at=None))))
        assert (told.stance, told.expected.at, told.expected.basis.code) == (Stance.NOTHING_TO_DO, None, "next-commit")

    def test_partitions_that_wait_are_told_by_reason_with_the_first_that_ends(self) -> None:
        verdicts = [
            PartitionVerdict(month(1), "a", Verdict.WAIT, Reason("young-files", "too new"), 9, 9, NOW + 50),
            PartitionVerdict(month(2), "b", Verdict.WAIT, Reason("young-files", "too new"), 8, 8, NOW + 20),
            PartitionVerdict(month(3), "c", Verdict.REFUSE, Reason("no-row-ids", "no ids"), 7, 7),
            PartitionVerdict(month(4), "d", Verdict.LEAVE, Reason("no-gain", "well"), 1, 1),
        ]
        empty = nothing_planned(verdicts=tuple(verdicts), verdict_counts={}, look_again_at=NOW + 20)
        told = of(why(known(plan=empty)))
        assert [(wait.reason.code, wait.until) for wait in told.waits] == [
            ("young-files", NOW + 20),
            ("no-row-ids", None),
        ]
        assert (told.stance, told.expected.at) == (Stance.KEPT_BACK, NOW + 20)
        assert [detail.text for detail in told.details if "no ids" in detail.text] == ["c: refuse, no ids"]

    def test_an_obstacle_is_before_the_plan(self) -> None:
        obstacle = Reason("encryption", "the table is encrypted")
        found = why(known(obstacle=obstacle))
        assert of(found).waits == (Wait(obstacle),)
        assert found.obstacle == obstacle


class TestUpkeep:
    def told(self, **changes: Any) -> WhyKind:
        return of(why(known(**{"policy": policy(properties=KEPT_UP), **changes})), EXPIRE)

    def considered(self, code: str, at: int = NOW - MINUTE_MS, **figures: int) -> dict[ActionKind, Considered]:
        return {EXPIRE: Considered(EXPIRE, Reason(code, "said", figures), at)}

    def test_off(self) -> None:
        told = of(why(known()), EXPIRE)
        assert told.stance is Stance.OFF
        assert "icewright.expire-snapshots.enabled" in told.expected.basis.text

    def test_only_in_mode_auto(self) -> None:
        told = self.told(policy=policy(Mode.APPROVE, KEPT_UP), considered=self.considered("nothing-expires"))
        assert (told.stance, told.waits[0].reason.code) == (Stance.KEPT_BACK, "mode-approve")

    def test_a_plan_that_waits_for_approval(self) -> None:
        waiting = {
            EXPIRE: WaitingForAPerson("plan-9", Reason("p", "2 snapshots"), Reason("first-expiry", "look"), NOW - 5)
        }
        told = self.told(waiting=waiting)
        assert (told.stance, told.plan_id) == (Stance.FOR_A_PERSON, "plan-9")
        assert told.considered == Considered(EXPIRE, Reason("p", "2 snapshots"), NOW - 5)
        assert "icewright approve plan-9" in told.waits[0].reason.text

    def test_a_closed_window_says_when_it_opens(self) -> None:
        told = self.told(considered=self.considered("window-closed", opens_at=NOW + HOUR_MS))
        assert (told.stance, told.waits[0].until) == (Stance.KEPT_BACK, NOW + HOUR_MS)
        assert (told.expected.what, told.expected.at) == (Next.IS_DECIDED, NOW + HOUR_MS)

    def test_a_window_that_has_opened_since_is_no_date_any_more(self) -> None:
        told = self.told(considered=self.considered("window-closed", opens_at=NOW - 1))
        assert told.expected.at == NOW + MINUTE_MS

    def test_nothing_due_is_looked_into_once_an_hour_at_most(self) -> None:
        told = self.told(considered=self.considered("nothing-expires"))
        assert (told.stance, told.expected.at) == (Stance.NOTHING_TO_DO, NOW - MINUTE_MS + HOUR_MS)

    def test_a_reason_that_holds_for_longer_is_later(self) -> None:
        told = self.told(considered=self.considered("upkeep-lately", until=NOW + 2 * HOUR_MS))
        assert told.expected.at == NOW + 2 * HOUR_MS

    def test_a_clock_of_its_own_counts(self) -> None:
        due = {EXPIRE: (NOW + 7, Reason("next-pass", "then"))}
        assert self.told(considered=self.considered("orphans-seen"), due_at=due).expected.at == NOW + 7
        never = {EXPIRE: (None, Reason("next-pass", "then"))}
        assert self.told(due_at=never).expected.at is None

    def test_parked_for_a_day(self) -> None:
        parked = {EXPIRE: Reason("parked", "left alone", {"until": NOW + 5})}
        told = self.told(parked=parked)
        assert (told.stance, told.expected.at) == (Stance.KEPT_BACK, NOW + 5)


class TestTheWholeTable:
    def test_a_catalog_that_is_away_keeps_everything_and_says_so_first(self, queued: ListedTask) -> None:
        away = Reason("unavailable", "catalog lake does not answer")
        found = why(known(policy=None, away=away, tasks=(queued,)))
        assert found.answer == "catalog lake does not answer"
        assert (of(found).waits[0].reason, of(found).expected.at) == (away, None)
        assert (found.mode, found.mode_origin) == (planned().mode, None)
        assert {each.stance for each in found.kinds} == {Stance.QUEUED, Stance.KEPT_BACK}

    def test_a_problem_of_the_last_look_keeps_everything_that_is_not_queued(self) -> None:
        problem = Reason("unreadable", "a manifest is damaged")
        found = why(known(problem=problem))
        assert found.answer == "a manifest is damaged"
        lasting = why(known(problem=Reason("unreadable", "a manifest is damaged", {"since": NOW - HOUR_MS})))
        assert lasting.answer == f"a manifest is damaged (since {wording.instant(NOW - HOUR_MS)})"
        assert of(found).waits == (Wait(problem),)

    def test_what_the_breaker_said_at_the_last_look_is_over_when_it_is_over(self) -> None:
        problem = Reason("parked", "left alone for a day", {"until": NOW - 5})
        found = why(known(problem=problem))
        assert "left alone" not in found.answer
        assert of(found).waits[0].reason.code == "next-look"

    def test_a_refused_plan_of_one_kind_keeps_no_other(self) -> None:
        refused = Reason("plan-refused", "does not hold")
        considered = {EXPIRE: Considered(EXPIRE, refused, NOW)}
        given = policy(properties=KEPT_UP)
        found = why(known(policy=given, problem=refused, considered=considered))
        assert of(found).waits[0].reason.code == "next-look"
        assert of(found, EXPIRE).waits == (Wait(refused),)

    def test_a_look_that_is_overdue_is_due_and_not_in_the_past(self) -> None:
        found = why(known(next_look_at=0))
        assert "the next look is due" in found.says[0]
        assert found.next_look_at == NOW - MINUTE_MS
        assert of(found).expected.at == NOW

    @pytest.mark.parametrize("mode", list(Mode))
    @pytest.mark.parametrize("state", [TaskState.SUCCEEDED, TaskState.FAILED, TaskState.CANCELLED])
    def test_what_a_person_began_and_has_ended_waits_for_nothing(
        self, queued: ListedTask, mode: Mode, state: TaskState
    ) -> None:
        done = replace(
            queued,
            plan_id="plan-7",
            state=state,
            attempt=1,
            prediction=RollbackPrediction(NOW, 1, (), False, "call", "undo"),
        )
        attempt = Attempt(done.task_id, 1, "o", 1, AttemptState.COMMITTED, NOW - 9, NOW - 3, None, None)
        away = Reason("unavailable", "catalog lake does not answer")
        for changes in ({"policy": policy(mode)}, {"policy": None, "away": away}):
            found = why(known(tasks=(done,), last_attempts={done.task_id: attempt}, **changes))
            told = of(found, ActionKind.ROLLBACK_TO_SNAPSHOT)
            assert (told.stance, told.waits, told.plan_id) == (Stance.NOTHING_TO_DO, (), None)
            assert told.says[-1] == "Next: done when a person asks for it, and only then."
            assert "rollback" not in found.answer

    def test_what_a_person_began_has_its_own_paragraph(self, queued: ListedTask) -> None:
        assert ActionKind.ROLLBACK_TO_SNAPSHOT not in {each.kind for each in why(known()).kinds}
        assert [each.kind for each in why(known(tasks=(queued,))).kinds].count(REWRITE) == 1
