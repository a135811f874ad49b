"""How it stands with one kind of action of a table: what keeps it, and what is expected of it next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from icewright.core import wording
from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.explain.inputs import Known, last_tried
from icewright.maintenance.registry.planning import UPKEEP_KEYS, automatic_kinds
from icewright.model.actions.actions import ActionKind, traits_of
from icewright.model.plans.plans import Plan, Verdict
from icewright.model.policy.policy import MODE_KEY, Mode
from icewright.model.policy.time_windows import WINDOW_CLOSED
from icewright.model.work.tasks import ACTIVE_STATES, AttemptState, ListedTask, TaskState
from icewright.model.work.why import Considered, Expected, LastTry, Next, Stance, Wait

PARKED: Final = "parked"
"""The code of what the breaker keeps back."""
_HOLDING: Final = frozenset({WINDOW_CLOSED, PARKED, "taken-back", "after-data-files", "plan-refused", "queue-full"})
"""Codes of what was considered that say: there may be something to do, and it is not done."""
_UNTIL: Final = ("until", "opens_at")
_MODE: Final = {
    Mode.OBSERVE: Reason("mode-observe", f"the table is only observed; {MODE_KEY} set to approve or auto changes that"),
    Mode.APPROVE: Reason(
        "mode-approve", f"in mode approve nothing runs without approval; {MODE_KEY} set to auto changes that"
    ),
}


_ON_DEMAND: Final = Reason("on-demand", "done when a person asks for it, and only then")


_ASKED: Final = Reason("asked-again", "a plan waits for a person again then, or when what it follows from has changed")


@dataclass(frozen=True, slots=True)
class KindAnswer:
    """The facts about one kind, before they become sentences."""

    stance: Stance
    waits: tuple[Wait, ...]
    expected: Expected
    plan_id: str | None = None


def until(reason: Reason) -> Instant | None:
    """The instant that a reason says it holds until."""
    found = next((reason.figures[key] for key in _UNTIL if key in reason.figures), None)
    return found if isinstance(found, int) else None


def considered_of(kind: ActionKind, known: Known) -> Considered | None:
    """What was decided of one kind last: by the present plan, or when upkeep was looked into."""
    if kind is ActionKind.REWRITE_DATA_FILES:
        return None if known.plan is None else Considered(kind, known.plan.reason, known.plan.planned_at)
    task, waiting = known.live(kind), known.waiting.get(kind)
    if task is not None:
        return Considered(kind, task.reason, task.created_at)
    if waiting is not None:
        return Considered(kind, waiting.planned, waiting.since)
    return known.refused.get(kind) or known.considered.get(kind)


def last_try(kind: ActionKind, known: Known) -> LastTry | None:
    """What became of the last try at one kind."""
    task = last_tried(known.tasks, kind)
    last = None if task is None else known.last_attempts.get(task.task_id)
    if task is None or last is None:
        return None
    at = last.started_at if last.ended_at is None else last.ended_at
    said = None if task.outcome is None or last.state is AttemptState.RUNNING else task.outcome.reason
    return LastTry(task.task_id, last.attempt, last.state, at, said)


def answer_kind(kind: ActionKind, known: Known) -> KindAnswer:
    """How it stands with one kind."""
    task = known.live(kind)
    if task is not None:
        return _of_task(task, known)
    if kind is not ActionKind.REWRITE_DATA_FILES and (kind not in UPKEEP_KEYS or kind in known.never):
        return KindAnswer(Stance.NOTHING_TO_DO, (), Expected(Next.IS_DECIDED, None, _ON_DEMAND))
    kept = _kept_from_all(kind, known)
    if kept is not None:
        return kept
    return _of_rewrite(known) if kind is ActionKind.REWRITE_DATA_FILES else _of_upkeep(kind, known)


def _of_task(task: ListedTask, known: Known) -> KindAnswer:
    if task.state in ACTIVE_STATES:
        return KindAnswer(Stance.UNDER_WAY, (), Expected(Next.GOES_ON, None, _at_work(task)), task.plan_id)
    waits = (*_away(known), *known.waits.get(task.task_id, ()))
    unknown, start = next((wait for wait in waits if wait.until is None), None), known.starts.get(task.task_id)
    if not waits:
        expected = Expected(Next.STARTS, known.now, _its_turn(task, known), start)
    elif unknown is not None:
        expected = Expected(Next.STARTS, None, unknown.reason, start)
    else:
        last = max(waits, key=lambda wait: wait.until or 0)
        expected = Expected(Next.STARTS, last.until, last.reason, start)
    return KindAnswer(Stance.QUEUED, waits, expected, task.plan_id)


def _its_turn(task: ListedTask, known: Known) -> Reason:
    others = known.could_start.get(task.resource_group, 0) - 1
    text = "nothing keeps it, and nothing of its group is before it"
    if others > 0:
        text = f"nothing keeps it but its turn: {wording.count(others, 'other task')} of its group could start as well"
    return Reason("its-turn", text, {"others": max(0, others), "resource_group": task.resource_group})


def _at_work(task: ListedTask) -> Reason:
    if task.state is TaskState.COMMITTED:
        return Reason("to-be-verified", "it has committed, and is verified next")
    if task.state is TaskState.IN_DOUBT:
        return Reason("in-doubt", "it is unknown whether its attempt committed: the server checks the table next")
    text = f"attempt {task.attempt} of {task.attempts_max} is at work since {wording.instant(task.updated_at)}"
    done = task.progress
    if done is not None and done.groups_total:
        text += f": {done.phase}, {done.groups_done:,} of {wording.count(done.groups_total, 'group')} done"
    elif done is not None:
        text += f": {done.phase}"
    text += "; it was asked to stop" if task.cancel_requested else ""
    return Reason("at-work", text, {"attempt": task.attempt, "attempts_max": task.attempts_max})


def _kept_from_all(kind: ActionKind, known: Known) -> KindAnswer | None:
    """What keeps every kind of action of a table, or this one, from being queued."""
    if kind in UPKEEP_KEYS and known.policy is not None and kind not in automatic_kinds(known.policy):
        basis = Reason("upkeep-off", f"disabled by policy: {UPKEEP_KEYS[kind]} is not true")
        return KindAnswer(Stance.OFF, (), Expected(Next.IS_DECIDED, None, basis))
    if known.away is not None:
        return KindAnswer(Stance.KEPT_BACK, _away(known), _next_look(known))
    blocked = known.alarm or known.parked.get(kind) or _problem_of_all(known)
    if blocked is not None:
        at = until(blocked)
        expected = _next_look(known) if at is None else Expected(Next.IS_DECIDED, at, blocked)
        return KindAnswer(Stance.KEPT_BACK, (Wait(blocked, at),), expected)
    return None


def _problem_of_all(known: Known) -> Reason | None:
    """Why the last look failed; what the breaker or a checker says of one kind stands with that kind."""
    problem = known.problem
    if problem is None or problem.code == PARKED or any(each.reason == problem for each in known.considered.values()):
        return None
    return problem


def _away(known: Known) -> tuple[Wait, ...]:
    return () if known.away is None else (Wait(known.away),)


def _next_look(known: Known, at_least: Instant = 0, said: str = "") -> Expected:
    at = max(known.next_look_at, at_least, known.now)
    text = said or "the next look at the table tells"
    return Expected(Next.IS_DECIDED, at, Reason("next-look", text))


def _of_rewrite(known: Known) -> KindAnswer:
    plan = known.plan
    if known.obstacle is not None:
        said = "the next look at the table tells whether that still holds"
        return KindAnswer(Stance.KEPT_BACK, (Wait(known.obstacle),), _next_look(known, 0, said))
    if plan is None:
        return KindAnswer(Stance.NOT_KNOWN, (), _next_look(known))
    return _of_empty(plan, known) if plan.is_empty else _of_plan(plan, known)


def _of_plan(plan: Plan, known: Known) -> KindAnswer:
    """A plan to do something, of which no task is queued."""
    if known.mode is Mode.OBSERVE:
        reason = _MODE[Mode.OBSERVE]
        return KindAnswer(Stance.KEPT_BACK, (Wait(reason),), _person(reason), plan.plan_id)
    refused = known.refused.get(ActionKind.REWRITE_DATA_FILES)
    if known.mode is Mode.APPROVE and refused is not None:
        return _of_refused(refused)
    if known.mode is Mode.APPROVE:
        text = f"in mode approve each plan waits for approval: `icewright approve {plan.plan_id}`"
        reason = Reason("mode-approve", text)
        return KindAnswer(Stance.FOR_A_PERSON, (Wait(reason),), _person(reason), plan.plan_id)
    ended = next((task for task in known.tasks if task.plan_id == plan.plan_id), None)
    if ended is not None and ended.state in (TaskState.FAILED, TaskState.CANCELLED):
        reason = _ended(ended)
        return KindAnswer(Stance.KEPT_BACK, (Wait(reason),), _person(reason), plan.plan_id)
    said = "the next look at the table queues it or plans again"
    waits = (Wait(Reason("next-look", said), max(known.next_look_at, known.now)),)
    return KindAnswer(Stance.KEPT_BACK, waits, _next_look(known, 0, said), plan.plan_id)


def _of_refused(refused: Considered) -> KindAnswer:
    """A person refused a plan: no other one is proposed before a time, or a change."""
    at, plan_id = until(refused.reason), str(refused.reason.figures["plan_id"])
    return KindAnswer(Stance.KEPT_BACK, (Wait(refused.reason, at),), Expected(Next.IS_DECIDED, at, _ASKED), plan_id)


def _ended(task: ListedTask) -> Reason:
    """What is said of a plan whose task has failed finally, as long as the plan stands."""
    how = "failed" if task.state is TaskState.FAILED else "was cancelled"
    because = "" if task.outcome is None else f": {task.outcome.reason.text}"
    way = f"`icewright tasks retry {task.task_id}` queues it again; a change of the table also leads to a new plan"
    return Reason("task-ended", f"its task {task.task_id} {how}{because}; {way}", {"task_id": task.task_id})


def _of_empty(plan: Plan, known: Known) -> KindAnswer:
    """A plan to do nothing: since partitions have to wait, or since all is well."""
    waits = _partitions_waiting(plan)
    again = plan.look_again_at
    if again is not None:
        text = "planned again then, or after a commit before"
        expected = Expected(Next.IS_DECIDED, max(again, known.now), Reason("look-again", text))
    else:
        look_at = wording.instant(max(known.next_look_at, known.now))
        text = f"planned again after the next commit or change of policy, found by the look at {look_at} at the latest"
        expected = Expected(Next.IS_DECIDED, None, Reason("next-commit", text))
    return KindAnswer(Stance.KEPT_BACK if waits else Stance.NOTHING_TO_DO, waits, expected)


def _partitions_waiting(plan: Plan) -> tuple[Wait, ...]:
    """What partitions of a plan wait for, those of one reason together; by the verdicts that the plan lists."""
    found: dict[tuple[Verdict, str], list[tuple[Reason, Instant | None]]] = {}
    for item in plan.verdicts:
        if item.verdict in (Verdict.WAIT, Verdict.REFUSE):
            found.setdefault((item.verdict, item.reason.code), []).append((item.reason, item.wait_until))
    waits = []
    for each in found.values():
        (first, _), *others = each
        times = [at for _, at in each if at is not None]
        said = wording.count(len(each), "partition") if others else "a partition"
        text = f"{said}: {first.text}" + (f" (and so, or alike, the other {len(others):,})" if others else "")
        waits.append(Wait(Reason(first.code, text, {"partitions": len(each)}), min(times, default=None)))
    return tuple(waits)


def _person(reason: Reason) -> Expected:
    return Expected(Next.STARTS, None, reason)


def _of_upkeep(kind: ActionKind, known: Known) -> KindAnswer:
    """Automatic upkeep of which no task is queued."""
    waiting = known.waiting.get(kind)
    if waiting is not None:
        text = f"{waiting.reason.text}; approve it: `icewright approve {waiting.plan_id}`"
        reason = Reason(waiting.reason.code, text, {**waiting.reason.figures, "since": waiting.since})
        return KindAnswer(Stance.FOR_A_PERSON, (Wait(reason),), _person(reason), waiting.plan_id)
    if known.mode in _MODE and not traits_of(kind).in_mode_observe:
        reason = _MODE[known.mode]
        return KindAnswer(Stance.KEPT_BACK, (Wait(reason),), _person(reason))
    refused = known.refused.get(kind)
    if refused is not None:
        return _of_refused(refused)
    due = known.due_at.get(kind)
    considered = known.considered.get(kind)
    expected = _next_look(known) if due is None else Expected(Next.IS_DECIDED, *due)
    if considered is None:
        return KindAnswer(Stance.NOT_KNOWN, (), expected)
    at = until(considered.reason)
    if considered.reason.code in _HOLDING:
        basis = considered.reason if at is not None and at > known.now else None
        expected = Expected(Next.IS_DECIDED, at, basis) if basis is not None else expected
        return KindAnswer(Stance.KEPT_BACK, (Wait(considered.reason, at),), expected)
    if due is None:
        soonest = max(at or 0, considered.at + known.interval_ms)
        every = wording.duration(known.interval_ms)
        expected = _next_look(known, soonest, f"looked into at most once in {every}, with a look at the table")
    return KindAnswer(Stance.NOTHING_TO_DO, (), expected)


def rule_details(kind: ActionKind, known: Known, verdicts_max: int) -> tuple[Reason, ...]:
    """The rules by which data files are looked after, and what the plan says of partitions, most asked for first."""
    if kind is not ActionKind.REWRITE_DATA_FILES or known.plan is None:
        return ()
    order: Sequence[Verdict] = (Verdict.REWRITE, Verdict.WAIT, Verdict.REFUSE, Verdict.LEAVE)
    found = sorted(known.plan.verdicts, key=lambda item: order.index(item.verdict))[:verdicts_max]
    said = [
        Reason(
            item.reason.code,
            f"{wording.place(item.path)}: {item.verdict.value}, {item.reason.text}",
            {**item.reason.figures, "files_before": item.files_before, "files_after": item.files_after},
        )
        for item in found
    ]
    return (*known.plan.rules, *said)
