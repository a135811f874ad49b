"""How many servers there should be: reasons and bounds, and weeks in which little is decided."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.work.optimizers import TuneMode
from icewright.work.autotune.model import DecisionState, Hold, Move, NewDecision, TuneDecision
from icewright.work.autotune.rules import DAY_MS, Ended, Verdict
from icewright.work.autotune.servers.decide import (
    SERVER_DECISIONS_A_DAY_MAX,
    ServerFacts,
    ServerLimits,
    ServerLoad,
    decide_servers,
    one_less_would_do,
)
from icewright.work.autotune.servers.tuning import ServerTuning
from tests.cases import each_case
from tests.doubles.ids import SequentialIds
from tests.narrowing import of_type

MINUTE_MS = 60_000
NOW = 100 * DAY_MS
LIMITS = ServerLimits()
IDLE, BUSY = ServerLoad("server-1", 100, 0.1), ServerLoad("server-2", 100, 0.95)
FULL = ServerLoad("server-3", 10_001, 0.3)
FIVE_MINUTES = 5 * MINUTE_MS


def kept(
    new: NewDecision, at: Instant, state: DecisionState = DecisionState.DONE, hold: Hold | None = None
) -> TuneDecision:
    ended_at = None if state in (DecisionState.OPEN, DecisionState.BEGUN) else at
    return TuneDecision(f"tune-{at}", new, TuneMode.ACT, "", at, state, ended_at, hold=hold)


def of(move: Move, before: int, after: int) -> NewDecision:
    return NewDecision("", None, move, before, after, Reason("busy-server", "it is busy"))


ADD, REMOVE = of(Move.ADD_SERVER, 2, 3), of(Move.REMOVE_SERVER, 2, 1)


def decided(facts: ServerFacts, *past: TuneDecision, limits: ServerLimits = LIMITS) -> Verdict | None:
    return decide_servers(facts, past, limits, NOW)


def said(facts: ServerFacts, *past: TuneDecision, limits: ServerLimits = LIMITS) -> tuple[str, int, int] | None:
    found = decided(facts, *past, limits=limits)
    return (found.reason.code, found.before, found.after) if isinstance(found, NewDecision) else None


BUSY_FACTS = ServerFacts((IDLE, BUSY), BUSY, FIVE_MINUTES, BUSY, 0)
QUIET_FACTS = ServerFacts((IDLE, IDLE), quiet_ms=LIMITS.idle_ms, calm_ms=LIMITS.idle_ms)


def test_a_server_that_is_busy_for_five_minutes_asks_for_another() -> None:
    assert said(BUSY_FACTS) == ("busy-server", 2, 3)
    assert said(replace(BUSY_FACTS, busy_ms=FIVE_MINUTES - 1)) is None
    found = of_type(NewDecision, decided(BUSY_FACTS))
    assert found.reason.figures == {
        "servers": 2, "tables_most": 100, "cpu_most": 0.95, "behind": 0, "server": "server-2", "busy_ms": FIVE_MINUTES
    }  # fmt: skip


def test_a_server_with_too_many_tables_asks_for_another() -> None:
    facts = ServerFacts((IDLE, FULL), BUSY, 0, FULL, FIVE_MINUTES)
    assert said(facts) == ("full-server", 2, 3)
    assert said(replace(facts, full_ms=FIVE_MINUTES - 1)) is None


def test_there_are_never_more_than_the_maximum_nor_fewer_than_the_minimum() -> None:
    assert said(BUSY_FACTS, limits=replace(LIMITS, most=2)) is None
    assert said(QUIET_FACTS) == ("idle-servers", 2, 1)
    assert said(QUIET_FACTS, limits=replace(LIMITS, least=2)) is None
    assert said(ServerFacts((IDLE,), short_ms=FIVE_MINUTES), limits=replace(LIMITS, least=2)) == (
        "too-few-servers", 1, 2
    )  # fmt: skip
    assert said(ServerFacts((IDLE,), short_ms=FIVE_MINUTES - 1), limits=replace(LIMITS, least=2)) is None
    assert said(ServerFacts((IDLE, BUSY, BUSY)), limits=replace(LIMITS, most=2)) == ("too-many-servers", 3, 2)


def test_no_number_beyond_the_bounds_is_asked_for_wherever_servers_are_that_are_not_seen() -> None:
    """A platform that has four, of which one is seen, would end two where it is asked for two."""
    three_to_four = replace(LIMITS, least=3)
    short = ServerFacts((BUSY,), BUSY, FIVE_MINUTES, short_ms=FIVE_MINUTES)
    assert said(short, limits=three_to_four) == ("too-few-servers", 1, 3)
    assert said(replace(short, short_ms=0), limits=three_to_four) == ("busy-server", 1, 3)
    assert said(ServerFacts((IDLE,) * 6)) == ("too-many-servers", 6, 4)


def test_what_is_held_or_under_way_stays_as_it_is() -> None:
    assert decided(BUSY_FACTS, kept(ADD, NOW - DAY_MS, hold=Hold("Ada", NOW, ""))) is None
    assert decided(BUSY_FACTS, kept(ADD, NOW - DAY_MS, DecisionState.BEGUN)) is None


def test_advice_ends_when_it_was_followed_or_its_reason_has_gone() -> None:
    advice = kept(ADD, NOW, DecisionState.OPEN)
    three = replace(BUSY_FACTS, servers=(IDLE, BUSY, IDLE))
    calm = ServerFacts((IDLE, IDLE), calm_ms=LIMITS.idle_ms)
    back = kept(REMOVE, NOW, DecisionState.OPEN)
    assert decided(BUSY_FACTS, advice) is None
    for facts, of_it, state in (
        (three, advice, DecisionState.DONE),
        (replace(calm, calm_ms=2 * LIMITS.idle_ms), advice, DecisionState.LAPSED),
        (ServerFacts((IDLE,)), back, DecisionState.DONE),
        (BUSY_FACTS, back, DecisionState.LAPSED),
    ):
        assert of_type(Ended, decided(facts, of_it)).state is state
    assert decided(QUIET_FACTS, back) is None


def test_decisions_are_apart_and_those_that_came_to_nothing_ever_more() -> None:
    rest = LIMITS.cool_down_ms
    assert decided(BUSY_FACTS, kept(ADD, NOW - rest + 1)) is None
    assert decided(BUSY_FACTS, kept(ADD, NOW - rest)) is not None
    failed = [kept(ADD, NOW - at * rest, DecisionState.FAILED) for at in (4, 8)]
    assert decided(BUSY_FACTS, *failed) is not None
    assert decided(BUSY_FACTS, *failed, kept(ADD, NOW - 12 * rest, DecisionState.FAILED)) is None


def test_each_that_was_given_back_makes_the_next_one_wait_twice_as_long() -> None:
    back = kept(REMOVE, NOW - DAY_MS // 2)
    assert decided(QUIET_FACTS, back) is None
    assert decided(replace(QUIET_FACTS, quiet_ms=2 * LIMITS.idle_ms), back) is not None
    assert decided(QUIET_FACTS, kept(REMOVE, NOW - DAY_MS)) is not None


@each_case(
    "servers",
    [
        (IDLE,),
        (IDLE, replace(IDLE, cpu=None)),
        (IDLE, replace(IDLE, cpu=0.31)),
        (IDLE, replace(IDLE, tables=7_901)),
        (IDLE, replace(IDLE, behind=3)),
    ],
)
def test_one_less_does_not_do_where_anything_speaks_against_it(servers: tuple[ServerLoad, ...]) -> None:
    assert one_less_would_do((IDLE, IDLE), LIMITS)
    assert one_less_would_do((IDLE, replace(IDLE, cpu=0.3, tables=7_900)), LIMITS)
    assert not one_less_would_do(servers, LIMITS)


def test_bounds_that_nothing_is_within_are_refused() -> None:
    with pytest.raises(ValueError, match="from 3 to 2 servers"):
        ServerLimits(least=3, most=2)


class World:
    """Servers of a store, minute by minute: CPU is shared by all, and what is asked for comes three minutes later."""

    COMES_AFTER = 3

    def __init__(self, most: int = 4) -> None:
        self.limits, self.minute, self.born = ServerLimits(most=most), 0, 2
        self.servers, self.coming = ["server-1"], list[int]()
        self.past: list[TuneDecision] = []
        self.work = 0.0
        self._tuning = ServerTuning(self._loads, SequentialIds(), self.limits)

    @property
    def now(self) -> Instant:
        return NOW + self.minute * MINUTE_MS

    def _loads(self) -> list[ServerLoad]:
        share = self.work / len(self.servers)
        return [ServerLoad(name, 100, min(1.0, share)) for name in self.servers]

    def turn(self, work: float, *, deaths: int = 0) -> None:
        """A minute in which all tables together need ``work`` cores."""
        self.minute, self.work = self.minute + 1, work
        self.servers = self.servers[min(deaths, len(self.servers) - 1) :]  # one at least leads
        for at in [at for at in self.coming if at <= self.minute]:
            self.coming.remove(at)
            self._born()
        recent = [one for one in self.past if one.made_at > self.now - 7 * DAY_MS]
        verdict = decide_servers(self._tuning.facts(self.now), recent, self.limits, self.now)
        if verdict is None:
            return
        assert isinstance(verdict, NewDecision)
        self.past.insert(0, kept(verdict, self.now))
        if verdict.move is Move.ADD_SERVER:
            self.coming.append(self.minute + self.COMES_AFTER)
        else:
            self.servers.pop()
        assert len(self.servers) >= self.limits.least

    def _born(self) -> None:
        self.servers.append(f"server-{self.born}")
        self.born += 1

    def most_a_day(self) -> int:
        """The most decisions within any 24 hours."""
        made = [one.made_at for one in self.past]
        return max((sum(at <= other < at + DAY_MS for other in made) for at in made), default=0)


BURSTS_A_DAY_MAX = 10
"""Within any 24 hours of a week, for one to four servers."""


@pytest.mark.parametrize(("apart", "lasting"), [(60, 20), (180, 20), (360, 60), (720, 60)])
def test_a_week_of_bursts_ends_with_few_decisions_a_day(apart: int, lasting: int) -> None:
    """Each burst is work for four servers, for so many minutes."""
    world = World()
    for minute in range(7 * 24 * 60):
        world.turn(3.9 if minute % apart < lasting else 0.05)
    assert 0 < world.most_a_day() <= BURSTS_A_DAY_MAX


def test_silence_gives_back_all_servers_but_the_minimum() -> None:
    world = World()
    for minute in range(2 * 24 * 60):
        world.turn(3.5 if minute < 120 else 0.05)
    assert len(world.servers) == 1
    assert [one.new.move for one in world.past].count(Move.ADD_SERVER) == 3


def test_load_around_the_limit_changes_nothing_to_and_fro() -> None:
    """Just too much for one server: two need half of what is too much, and one less would not do."""
    world = World()
    for _ in range(7 * 24 * 60):
        world.turn(0.81)
    assert [one.new.move for one in world.past] == [Move.ADD_SERVER]


@settings(max_examples=15)
@given(st.lists(st.tuples(st.integers(1, 600), st.floats(0, 4), st.integers(0, 2)), min_size=1, max_size=10))
def test_whatever_comes_there_are_few_decisions_within_any_day(spans: list[tuple[int, float, int]]) -> None:
    world = World()
    for minutes, work, deaths in spans:
        for minute in range(minutes):
            world.turn(work, deaths=deaths if minute == minutes - 1 else 0)
    assert world.most_a_day() <= SERVER_DECISIONS_A_DAY_MAX
    assert len(world.servers) <= world.limits.most


def test_the_worst_that_is_known_stays_within_a_day() -> None:
    """Work for four servers as soon as one is left, and none as soon as there are four."""
    world, work = World(), 3.9
    for _ in range(3 * 24 * 60):
        count = len(world.servers)
        work = 0.0 if count == world.limits.most else 3.9 if count == 1 else work
        world.turn(work)
    assert BURSTS_A_DAY_MAX < world.most_a_day() <= SERVER_DECISIONS_A_DAY_MAX
