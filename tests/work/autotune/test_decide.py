"""What is decided about the optimizers of a queue, from facts alone."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.policy.resource_groups import Queue
from icewright.model.work.optimizers import TuneMode
from icewright.work.autotune.decide import (
    DECISIONS_A_DAY_MAX,
    SPOILED_MS,
    Cycle,
    LiveOptimizer,
    QueueFacts,
    TuneLimits,
    decide,
)
from icewright.work.autotune.model import DecisionState, Hold, Move, NewDecision, TuneDecision
from icewright.work.autotune.rules import DAY_MS, Ended
from tests.cases import each_case
from tests.narrowing import of_type

MINUTE_MS = 60_000
GIB = 1 << 30
NOW = 100 * DAY_MS
LIMITS = TuneLimits()
FACTS = QueueFacts("etl", Queue.NORMAL, least=1, most=3, memory_bytes=4 * GIB, default_bytes=2 * GIB)
BUSY = (LiveOptimizer("optimizer-1", 2, 2),)
IDLE = (LiveOptimizer("optimizer-1", 2, 0, idle_ms=DAY_MS), LiveOptimizer("optimizer-2", 2, 0, idle_ms=2 * DAY_MS))


def kept(
    verdict: NewDecision, at: Instant, state: DecisionState = DecisionState.DONE, hold: Hold | None = None
) -> TuneDecision:
    ended_at = None if state in (DecisionState.OPEN, DecisionState.BEGUN) else at
    return TuneDecision(f"tune-{at}", verdict, TuneMode.ACT, "by hand", at, state, ended_at, None, hold)


def one(
    facts: QueueFacts, *past: TuneDecision, limits: TuneLimits = LIMITS, now: Instant = NOW
) -> NewDecision | Ended | None:
    found = decide(facts, sorted(past, key=lambda each: -each.made_at), limits, now)
    assert len(found) <= 1
    return found[0] if found else None


def move(facts: QueueFacts, *past: TuneDecision, limits: TuneLimits = LIMITS, now: Instant = NOW) -> Move | None:
    found = one(facts, *past, limits=limits, now=now)
    assert not isinstance(found, Ended)
    return None if found is None else found.move


START = NewDecision("etl", Queue.NORMAL, Move.START, 1, 2, Reason("backlog", "tasks wait"))
END = NewDecision("etl", Queue.NORMAL, Move.END, 2, 1, Reason("idle", "idle"), "optimizer-1")
MORE = NewDecision("etl", Queue.NORMAL, Move.MORE_MEMORY, 2 * GIB, 4 * GIB, Reason("out-of-memory", "thrice"))


@each_case(
    ("changes", "expected"),
    [
        ({}, None),
        ({"backlog": 5, "waited_ms": 119_999}, None),
        ({"backlog": 5, "waited_ms": 120_000}, Move.START),
        ({"backlog": 5, "waited_ms": 120_000, "most": 1}, None),
        ({"backlog": 5, "waited_ms": 120_000, "most": 2, "ending": 1}, None),
        ({"backlog": 5, "waited_ms": 120_000, "optimizers": (LiveOptimizer("optimizer-1", 2, 1),)}, None),
        ({"optimizers": (), "short_ms": 119_999}, None),
        ({"optimizers": (), "short_ms": 120_000}, Move.START),
        ({"optimizers": (), "short_ms": 120_000, "least": 0}, None),
        ({"optimizers": (), "short_ms": 120_000, "ending": 1}, None),
        ({"optimizers": (), "least": 0, "backlog": 1, "waited_ms": 120_000}, Move.START),
        ({"optimizers": IDLE, "calm_ms": DAY_MS}, Move.END),
        ({"optimizers": IDLE, "calm_ms": 899_999}, None),
        ({"optimizers": IDLE, "calm_ms": DAY_MS, "backlog": 1}, None),
        ({"optimizers": IDLE, "calm_ms": DAY_MS, "least": 2}, None),
        ({"optimizers": IDLE, "most": 1}, Move.END),
        ({"optimizers": (*BUSY, LiveOptimizer("optimizer-2", 2, 1)), "calm_ms": DAY_MS}, None),
    ],
)
def test_how_many_optimizers_there_should_be(changes: dict[str, object], expected: Move | None) -> None:
    assert move(replace(FACTS, **{"optimizers": BUSY, **changes})) is expected  # type: ignore[arg-type]  # by name


def test_the_one_that_ends_is_idle_longest_and_if_possible_our_own() -> None:
    facts = replace(FACTS, optimizers=IDLE, calm_ms=DAY_MS)
    found = of_type(NewDecision, one(facts))
    assert (found.optimizer_id, found.before, found.after) == ("optimizer-2", 2, 1)
    own = (replace(IDLE[0], is_own=True), IDLE[1])
    found = of_type(NewDecision, one(replace(facts, optimizers=own)))
    assert found.optimizer_id == "optimizer-1"


@each_case(("rested_ms", "expected"), [(599_999, None), (600_000, Move.START)])
def test_decisions_of_a_queue_are_a_cool_down_apart(rested_ms: int, expected: Move | None) -> None:
    facts = replace(FACTS, optimizers=BUSY, backlog=9, waited_ms=DAY_MS)
    assert move(facts, kept(START, NOW - rested_ms)) is expected


@each_case(("cap_gib", "expected_gib"), [(None, 6), (5, 5), (4, None), (3, None)])
def test_memory_grows_no_further_than_tasks_of_the_group_can_be_started(
    cap_gib: int | None, expected_gib: int | None
) -> None:
    """Behind a cap of its group an optimizer that has grown could claim nothing more, for ever."""
    cycles = tuple(Cycle("lake.db.t rewrite_data_files", NOW - 10, NOW - 9 + number, True) for number in range(3))
    cap_bytes = None if cap_gib is None else cap_gib * GIB
    found = one(replace(FACTS, optimizers=BUSY, cycles=cycles, memory_cap_bytes=cap_bytes))
    assert not isinstance(found, Ended)
    assert (None if found is None else found.after) == (None if expected_gib is None else expected_gib * GIB)


def test_each_end_within_a_day_doubles_how_long_the_next_one_has_to_be_idle() -> None:
    def needed(ends: int) -> int:
        past = [kept(END, NOW - (number + 1) * 60 * MINUTE_MS) for number in range(ends)]
        for minutes in range(15, 24 * 60, 15):
            idle = (replace(IDLE[0], idle_ms=minutes * MINUTE_MS), BUSY[0])
            facts = replace(FACTS, optimizers=idle, calm_ms=minutes * MINUTE_MS)
            if move(facts, *past) is Move.END:
                return minutes
        raise AssertionError("never")

    assert [needed(ends) for ends in range(5)] == [15, 30, 60, 120, 240]


def test_optimizers_that_die_over_and_over_are_started_ever_more_rarely() -> None:
    facts = replace(FACTS, optimizers=(), short_ms=DAY_MS)
    failed = [kept(START, NOW - 20 * MINUTE_MS - number, DecisionState.FAILED) for number in range(6)]
    assert move(facts, *failed[:4]) is Move.START
    assert move(facts, *failed[:5]) is None
    assert move(facts, *failed, now=NOW + 60 * MINUTE_MS) is Move.START


@each_case(("state", "is_held"), [(DecisionState.BEGUN, False), (DecisionState.OPEN, True), (DecisionState.DONE, True)])
def test_nothing_is_decided_while_a_decision_is_held_or_under_way(state: DecisionState, *, is_held: bool) -> None:
    facts = replace(FACTS, optimizers=BUSY, backlog=9, waited_ms=DAY_MS)
    hold = Hold("user:ann", NOW, "not today") if is_held else None
    assert one(facts, kept(START, NOW - 5 * DAY_MS, state, hold)) is None
    assert move(facts, kept(MORE, NOW - 5 * DAY_MS, DecisionState.DONE, hold)) is Move.START  # of another subject


def test_advice_that_was_followed_is_done_and_advice_without_a_reason_lapses_slowly() -> None:
    standing = kept(START, NOW - 60 * MINUTE_MS, DecisionState.OPEN)
    waiting = replace(FACTS, optimizers=BUSY, backlog=9, waited_ms=DAY_MS)
    assert one(waiting, standing) is None
    followed = of_type(Ended, one(replace(waiting, optimizers=(*BUSY, LiveOptimizer("optimizer-2", 2))), standing))
    assert followed.state is DecisionState.DONE
    assert one(replace(waiting, backlog=0, calm_ms=14 * MINUTE_MS), standing) is None
    lapsed = of_type(Ended, one(replace(waiting, backlog=0, calm_ms=15 * MINUTE_MS), standing))
    assert lapsed.state is DecisionState.LAPSED


def test_advice_to_end_an_optimizer_is_done_with_it_and_lapses_when_it_has_work() -> None:
    standing = kept(END, NOW - 60 * MINUTE_MS, DecisionState.OPEN)
    facts = replace(FACTS, optimizers=IDLE, calm_ms=DAY_MS)
    assert one(facts, standing) is None
    assert of_type(Ended, one(replace(facts, optimizers=IDLE[1:]), standing)).state is DecisionState.DONE
    for busy in (replace(facts, backlog=1), replace(facts, optimizers=(replace(IDLE[0], tasks=1), IDLE[1]))):
        assert of_type(Ended, one(busy, standing)).state is DecisionState.LAPSED


def cycles(ends: str, *, tables: str = "", since: Instant = NOW - DAY_MS) -> tuple[Cycle, ...]:
    """Attempts, the oldest first: ``o`` ran out of memory, ``.`` did not."""
    names = tables or "a" * len(ends)
    return tuple(
        Cycle(name, since + number, since + number + 1, end == "o")
        for number, (end, name) in enumerate(zip(ends, names, strict=True))
    )


@each_case(
    ("ends", "tables", "expected"),
    [
        ("oo", "", None),
        ("ooo", "", Move.MORE_MEMORY),
        ("oo.o", "", None),
        (".ooo", "", Move.MORE_MEMORY),
        ("ooo.", "", None),
        ("ooo", "abc", Move.MORE_MEMORY),  # of the queue
        ("o.o.o", "ababa", Move.MORE_MEMORY),  # of one table, among others that have enough
        ("o.oo.", "abaca", None),
    ],
)
def test_memory_grows_after_three_attempts_in_a_row_that_ran_out(ends: str, tables: str, expected: Move | None) -> None:
    assert move(replace(FACTS, optimizers=BUSY, cycles=cycles(ends, tables=tables))) is expected


@each_case(
    ("limits", "more", "less"),
    [
        (TuneLimits(quiet_cycles=5), 6, 2),
        (TuneLimits(quiet_cycles=5, step_bytes=1 << 30), 5, 3),
        (TuneLimits(quiet_cycles=5, step_bytes=0, step_factor=1.25), 5, 3),
        (TuneLimits(quiet_cycles=5, step_bytes=1 << 30, at_once=True), 5, 2),
        (TuneLimits(quiet_cycles=5, memory_max_bytes=5 << 30), 5, 2),
        (TuneLimits(quiet_cycles=5, memory_max_bytes=4 << 30), None, 2),
        (TuneLimits(quiet_cycles=5, step_bytes=8 << 30), 12, 2),
    ],
)
def test_memory_changes_by_steps_within_its_bounds(limits: TuneLimits, more: float | None, less: float) -> None:
    grown = one(replace(FACTS, optimizers=BUSY, cycles=cycles("ooo")), limits=limits)
    shrunk = one(replace(FACTS, optimizers=BUSY, cycles=cycles(".....")), limits=limits)
    if more is None:
        assert grown is None
    else:
        assert isinstance(grown, NewDecision)
        assert (grown.before, grown.after) == (4 * GIB, int(more * GIB))
    assert isinstance(shrunk, NewDecision)
    assert (shrunk.before, shrunk.after) == (4 * GIB, int(less * GIB))


def test_steps_by_a_factor_lead_to_memory_that_can_be_written_and_so_be_followed() -> None:
    grown = of_type(
        NewDecision, one(replace(FACTS, optimizers=BUSY, cycles=cycles("ooo")), limits=TuneLimits(step_bytes=0))
    )
    assert (grown.after >> 20) << 20 == grown.after
    standing = kept(grown, NOW, DecisionState.OPEN)
    followed = of_type(Ended, one(replace(FACTS, optimizers=BUSY, memory_bytes=(grown.after >> 20) << 20), standing))
    assert followed.state is DecisionState.DONE


def test_attempts_with_the_memory_of_before_say_nothing_of_that_of_now() -> None:
    facts = replace(FACTS, optimizers=BUSY, cycles=cycles("ooo"))
    assert move(facts, kept(MORE, NOW - 2 * DAY_MS)) is Move.MORE_MEMORY
    assert move(facts, kept(MORE, NOW - DAY_MS + 1)) is None


def test_memory_that_was_too_little_is_not_tried_again_for_a_week() -> None:
    limits = TuneLimits(quiet_cycles=5)
    facts = replace(FACTS, optimizers=BUSY, cycles=cycles("....."))
    more = kept(MORE, NOW - 3 * DAY_MS)
    assert move(facts, more, limits=limits) is None
    assert move(replace(facts, memory_bytes=8 * GIB), more, limits=limits) is Move.LESS_MEMORY
    assert move(facts, more, limits=limits, now=more.made_at + SPOILED_MS) is Move.LESS_MEMORY


def test_memory_that_nobody_knows_is_left_alone() -> None:
    assert move(replace(FACTS, optimizers=BUSY, memory_bytes=None, cycles=cycles("ooo"))) is None


@given(
    memory=st.integers(1, 64 * GIB),
    default=st.integers(1, 64 * GIB),
    most=st.integers(1, 64 * GIB),
    step=st.sampled_from([0, 1 << 30, 2 << 30]),
    factor=st.floats(1.01, 1.99),
    at_once=st.booleans(),
)
def test_steps_never_leave_their_bounds(
    memory: int, default: int, most: int, step: int, factor: float, *, at_once: bool
) -> None:
    limits = TuneLimits(memory_max_bytes=most, step_bytes=step, step_factor=factor, at_once=at_once)
    assert memory <= limits.more(memory) <= max(memory, most)
    assert min(memory, default) <= limits.less(memory, default) <= memory


class World:
    """One queue, minute by minute: tasks come, each takes ten minutes; what is decided happens in the next minute."""

    def __init__(self, most: int = 4) -> None:
        self.most, self.minute = most, 0
        self.waiting, self.running = 0, dict[str, list[int]]()
        self.since = {"waits": 0, "calm": 0, "short": 0}
        self.idle_since: dict[str, int] = {}
        self.past: list[TuneDecision] = []

    @property
    def now(self) -> Instant:
        return NOW + self.minute * MINUTE_MS

    def turn(self, *, came: int, deaths: int = 0) -> None:
        self.minute += 1
        for name in list(self.running)[:deaths]:
            self.waiting += len(self.running.pop(name))
        self.waiting += came
        for name, tasks in self.running.items():
            tasks[:] = [until for until in tasks if until > self.minute]
            while self.waiting and len(tasks) < 2:
                tasks.append(self.minute + 10)
                self.waiting -= 1
            if tasks:
                self.idle_since[name] = self.minute
        for key, is_so in (("waits", self.waiting > 0), ("calm", not self.waiting), ("short", not self.running)):
            self.since[key] = self.since[key] if is_so else self.minute
        recent = [one for one in self.past if one.made_at > self.now - SPOILED_MS]
        for verdict in decide(self.facts(), recent, LIMITS, self.now):
            assert isinstance(verdict, NewDecision)
            self.past.insert(0, kept(verdict, self.now))
            if verdict.move is Move.START:
                name = f"optimizer-{self.minute}"
                self.running[name], self.idle_since[name] = [], self.minute
            else:
                assert not self.running.pop(verdict.optimizer_id or "")  # nothing is ended at work

    def facts(self) -> QueueFacts:
        spans = {key: (self.minute - since) * MINUTE_MS for key, since in self.since.items()}
        optimizers = tuple(
            LiveOptimizer(name, 2, len(tasks), (self.minute - self.idle_since[name]) * MINUTE_MS)
            for name, tasks in self.running.items()
        )
        found = QueueFacts("etl", Queue.NORMAL, 1, self.most, self.waiting, optimizers=optimizers)
        return replace(found, waited_ms=spans["waits"], calm_ms=spans["calm"], short_ms=spans["short"])

    def most_a_day(self) -> int:
        """The most decisions within any 24 hours."""
        made = [one.made_at for one in self.past]
        return max((sum(at <= other < at + DAY_MS for other in made) for at in made), default=0)


BURSTS_A_DAY_MAX = 14
"""Within any 24 hours of a week, for one queue with one to four optimizers."""


@each_case("apart", [60, 240, 720])
def test_a_week_of_bursts_ends_with_few_decisions_a_day(apart: int) -> None:
    world = World()
    for minute in range(7 * 24 * 60):
        world.turn(came=30 if minute % apart == 0 else 0)
    assert 0 < world.most_a_day() <= BURSTS_A_DAY_MAX
    assert world.waiting == 0


def test_silence_ends_all_optimizers_but_the_minimum() -> None:
    world = World()
    for minute in range(24 * 60):
        world.turn(came=10 if minute < 60 else 0)
    assert len(world.running) == 1
    assert [one.new.move for one in world.past if one.new.move is Move.START] == [Move.START] * 4


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(1, 600), st.integers(0, 60), st.integers(0, 4)), min_size=1, max_size=12))
def test_whatever_comes_there_are_few_decisions_within_any_day(spans: list[tuple[int, int, int]]) -> None:
    world = World()
    for minutes, came, deaths in spans:
        for minute in range(minutes):
            world.turn(came=came if minute == 0 else 0, deaths=deaths if minute == minutes - 1 else 0)
    assert world.most_a_day() <= DECISIONS_A_DAY_MAX
    assert len(world.running) <= world.most


def test_the_worst_that_is_known_stays_within_a_day() -> None:
    """A burst as soon as an optimizer has ended, and the death of all whenever there are four."""
    world = World()
    for minute in range(2 * 24 * 60):
        moved = bool(world.past) and world.past[0].made_at == world.now
        ended = moved and world.past[0].new.move is Move.END
        world.turn(came=40 if ended or not minute else 0, deaths=4 if len(world.running) == 4 else 0)
    assert world.most_a_day() <= DECISIONS_A_DAY_MAX
    assert world.most_a_day() > BURSTS_A_DAY_MAX  # it is worse than bursts
