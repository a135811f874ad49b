"""The answer to "why does nothing happen to my table?", put together from what is known, in sentences for its owner."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from icewright.core import wording
from icewright.core.reasons import SINCE, Reason
from icewright.core.times import Instant
from icewright.explain.inputs import Known
from icewright.explain.kinds import PARKED, KindAnswer, answer_kind, considered_of, last_try, rule_details
from icewright.maintenance.registry.planning import UPKEEP_KEYS
from icewright.model.actions.actions import ActionKind
from icewright.model.policy.policy import MODE_KEY, Mode
from icewright.model.work.tasks import ACTIVE_STATES
from icewright.model.work.why import Considered, LastTry, Next, Stance, StartEstimate, Why, WhyKind

VERDICTS_SHOWN_MAX: Final = 50
"""Verdicts on partitions that an answer carries; the plan itself has more of them."""

_LOUDEST: Final = (
    Stance.UNDER_WAY,
    Stance.QUEUED,
    Stance.FOR_A_PERSON,
    Stance.KEPT_BACK,
    Stance.NOT_KNOWN,
    Stance.NOTHING_TO_DO,
)
_SAID_OF_MODES: Final = {
    Mode.OBSERVE: "only observed: nothing is done",
    Mode.APPROVE: "plans wait for approval",
    Mode.AUTO: "plans are queued",
}
_SAID_OF_NEXT: Final = {
    Next.GOES_ON: "it continues",
    Next.STARTS: "it starts",
    Next.IS_DECIDED: "it is looked into again",
}


def why(known: Known) -> Why:
    """All that is known of a table, as an answer: what holds for all of it first, then each kind of action."""
    kinds = tuple(_kind(kind, known) for kind in _kinds(known))
    return Why(
        table=str(known.name),
        catalog=known.table_id.catalog,
        uuid=known.table_id.uuid,
        asked_at=known.now,
        snapshot_id=known.snapshot_id,
        looked_at=known.looked_at,
        changed_at=known.changed_at,
        next_look_at=max(known.next_look_at, known.looked_at),
        mode=known.mode,
        mode_origin=None if known.policy is None else known.policy.origins[MODE_KEY],
        obstacle=known.obstacle,
        answer=_answer(known, kinds),
        says=tuple(_says(known)),
        kinds=kinds,
    )


def _kinds(known: Known) -> tuple[ActionKind, ...]:
    """Work on data files, upkeep, and whatever else was lately begun by a person."""
    always = (ActionKind.REWRITE_DATA_FILES, *(kind for kind in UPKEEP_KEYS if kind not in known.never))
    begun = {task.kind for task in known.tasks}
    return (*always, *(kind for kind in ActionKind if kind in begun and kind not in always))


def _kind(kind: ActionKind, known: Known) -> WhyKind:
    found, considered, last, task = (
        answer_kind(kind, known),
        considered_of(kind, known),
        last_try(kind, known),
        known.live(kind),
    )
    return WhyKind(
        kind=kind,
        stance=found.stance,
        considered=considered,
        details=rule_details(kind, known, VERDICTS_SHOWN_MAX),
        waits=found.waits,
        plan_id=found.plan_id,
        task_id=None if task is None else task.task_id,
        last=last,
        expected=found.expected,
        says=tuple(_lines(kind, known, found, considered, last)),
    )


def _lines(
    kind: ActionKind, known: Known, found: KindAnswer, considered: Considered | None, last: LastTry | None
) -> Iterator[str]:
    """One kind in sentences: what was considered, what it waits for, what became of the last try, what is next."""
    task = known.live(kind)
    if considered is not None and all(wait.reason != considered.reason for wait in found.waits):
        yield f"Considered at {wording.instant(considered.at)}: {considered.reason.text}."
    if task is not None and task.state in ACTIVE_STATES:
        yield f"Task {task.task_id}: {found.expected.basis.text}."
        return
    if task is not None:
        said = f"group {task.resource_group}, priority {task.priority}"
        yield f"Task {task.task_id} is queued since {wording.instant(task.created_at)} ({said})."
    for wait in found.waits:
        until = "" if wait.until is None or wait.until <= known.now else f", until {wording.instant(wait.until)}"
        yield f"Waits: {wait.reason.text}{until}."
    if last is not None:
        because = "" if last.reason is None else f", {last.reason.text}"
        tried = f"Last try: number {last.attempt} of task {last.task_id}, {last.state.value}"
        yield f"{tried} at {wording.instant(last.at)}{because}."
    start = found.expected.start
    yield _next_said(found, known.now) if start is None else _start_said(found, start, known.now)


def _start_said(found: KindAnswer, start: StartEstimate, now: Instant) -> str:
    """About when a task starts, and from what that is estimated."""
    is_said = any(wait.reason == start.reason for wait in found.waits)
    if start.at is None:
        soonest = "" if start.soonest_at is None else f", and not before {_when(start.soonest_at, now)}"
        return f"Next: it is not known when it starts{soonest}" + ("." if is_said else f": {start.reason.text}.")
    if start.at <= now:
        return f"Next: it starts as soon as possible: {start.reason.text}."
    said = f"Next: it starts about {_when(start.at, now)}"
    if start.soonest_at is not None and start.latest_at is not None and start.soonest_at < start.latest_at:
        said += (
            f", perhaps in {wording.about(max(0, start.soonest_at - now))} to {wording.about(start.latest_at - now)}"
        )
    return f"{said}. That is an estimate: {start.reason.text}."


def _when(at: Instant, now: Instant) -> str:
    return f"{wording.instant(at)}, in {wording.about(max(0, at - now))}"


def _next_said(found: KindAnswer, now: Instant) -> str:
    """What is expected next; what that waits for was said already, and is not said twice."""
    expected = found.expected
    is_said = any(wait.reason == expected.basis for wait in found.waits)
    because = "" if is_said else f": {expected.basis.text}"
    if expected.what is Next.IS_DECIDED and expected.at is None:
        return f"Next: {expected.basis.text}."
    what = _SAID_OF_NEXT[expected.what]
    if expected.at is None:
        after = "approval" if found.stance is Stance.FOR_A_PERSON else "that; the time is not known"
        return f"Next: {what} after {after}{because}."
    if expected.at <= now:
        return f"Next: {what} as soon as possible{because}."
    when = f"at {wording.instant(expected.at)}, in {wording.about(expected.at - now)}, at the earliest"
    return f"Next: {what} {when}{because}."


def _says(known: Known) -> Iterator[str]:
    """When the table was looked at, how far we may go, and what is wrong with all of it."""
    now = known.now
    ago = wording.about(max(0, now - known.looked_at))
    look = f"Last observed at {wording.instant(known.looked_at)}, {ago} ago; "
    if known.next_look_at <= now:
        look += "the next look is due"
    else:
        look += (
            f"looked at again at {wording.instant(known.next_look_at)}, in {wording.about(known.next_look_at - now)}"
        )
    yield f"{look}, or when a commit is reported."
    if known.mode is not None:
        origin = "as of its last plan" if known.policy is None else f"from {known.policy.origins[MODE_KEY]}"
        yield f"Mode {known.mode.value} ({origin}): {_SAID_OF_MODES[known.mode]}."
    if known.away is not None:
        yield f"It cannot be asked now: {_lasting(known.away)}."
    if known.obstacle is not None:
        yield f"Its rows are left alone: {known.obstacle.text}."
    problem = _problem(known)
    if problem is not None:
        yield f"The last look came to: {_lasting(problem)}."


def _problem(known: Known) -> Reason | None:
    """What is wrong with all of the table, as of now: what the breaker parked at the last look may be free again."""
    if known.problem is not None and known.problem.code == PARKED:
        return known.alarm or next(iter(known.parked.values()), None)
    return known.alarm or known.problem


def _lasting(reason: Reason) -> str:
    """A reason with since when it holds, as far as that is known."""
    since = reason.figures.get(SINCE)
    return f"{reason.text} (since {wording.instant(since)})" if isinstance(since, int) else reason.text


def _answer(known: Known, kinds: tuple[WhyKind, ...]) -> str:
    """All of it in one sentence: the most important fact."""
    problem = known.away or _problem(known)
    if problem is not None:
        return _lasting(problem)
    counted = [each for stance in _LOUDEST for each in kinds if each.stance is stance]
    loudest = next((each for each in counted if _is_of_note(each)), counted[0])
    return f"{loudest.kind.value} {_answer_of(loudest)}"


def _is_of_note(each: WhyKind) -> bool:
    """Whether one kind says more than that nothing is to be done of it; of data files that is said, too."""
    return each.kind is ActionKind.REWRITE_DATA_FILES or each.stance not in (Stance.NOTHING_TO_DO, Stance.NOT_KNOWN)


def _answer_of(each: WhyKind) -> str:
    because = (each.waits[0].reason if each.waits else each.expected.basis).text
    is_said = each.considered is None or any(wait.reason == each.considered.reason for wait in each.waits)
    what = "" if each.considered is None or is_said else f" ({each.considered.reason.text})"
    match each.stance:
        case Stance.UNDER_WAY:
            return f"is under way{what}: {each.expected.basis.text}"
        case Stance.QUEUED:
            return f"is queued{what}: {because}"
        case Stance.FOR_A_PERSON:
            return f"waits for a person{what}: {because}"
        case Stance.KEPT_BACK:
            return f"is kept back{what}: {because}"
        case Stance.NOT_KNOWN:
            return "has not been looked into yet"
        case Stance.NOTHING_TO_DO | Stance.OFF:
            because = "" if each.considered is None else each.considered.reason.text
            said = because if because.startswith("nothing to ") else f"nothing to do: {because}"
            return f"has {said.removesuffix(': ')}"
