"""Decisions about servers as rows, and what is asked of a platform: once each, whatever becomes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from icewright.core.errors import Conflict, IcewrightError, OutcomeUnknown, Rejected, Unavailable
from icewright.work.autotune.decide import SPOILED_MS
from icewright.work.autotune.model import DecisionState, Move, TuneDecision
from icewright.work.autotune.past import Past
from icewright.work.autotune.servers.decide import ServerLimits, ServerLoad
from icewright.work.autotune.servers.platform import Platform, Resize
from icewright.work.autotune.servers.tuning import COME_MS, LOOK_MS, ServerTuning
from icewright.work.autotune.sql import SqlDecisions
from tests.doubles.clock import ManualClock
from tests.doubles.ids import SequentialIds
from tests.lakes.stores import open_without_sync, sqlite_store

MINUTE_MS = 60_000
IDS = SequentialIds()


@dataclass
class Asked:
    """A platform that does what it is told to: servers come when the test says so."""

    trouble: IcewrightError | None = None
    wanted: list[Resize] = field(default_factory=list)

    def resize(self, wanted: Resize) -> str:
        self.wanted.append(wanted)
        if self.trouble is not None:
            raise self.trouble
        return f"it was asked for {wanted.after}"


class Fleet:
    """Servers of a store with tuning, minute by minute."""

    def __init__(self, store: SqlDecisions, clock: ManualClock, platform: Platform | None) -> None:
        self.store, self.clock, self.platform = store, clock, platform
        self.servers = [ServerLoad("server-1", 100, 0.9)]
        self.lead()

    def lead(self) -> None:
        """A server comes to lead, which remembers nothing."""
        limits = ServerLimits(busy_ms=5 * MINUTE_MS, idle_ms=60 * MINUTE_MS)
        self.tuning = ServerTuning(lambda: self.servers, IDS, limits, self.platform)

    def after(self, turns: int, minutes: int = 1) -> None:
        """So many minutes pass before each of these turns."""
        for _ in range(turns):
            self.clock.advance(minutes * MINUTE_MS)
            self.tuning.turn(Past(self.store, self.clock.now() - SPOILED_MS), self.clock.now())

    def count(self, number: int, cpu: float = 0.9) -> None:
        """From now on so many servers are there."""
        self.servers = [ServerLoad(f"server-{each}", 100, cpu) for each in range(1, number + 1)]

    @property
    def decisions(self) -> list[TuneDecision]:
        """The oldest first."""
        return list(reversed(self.store.list(limit=100)))

    def said(self) -> list[tuple[Move, DecisionState]]:
        return [(one.new.move, one.state) for one in self.decisions]


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Callable[[Platform | None], Fleet]]:
    engine, clock = open_without_sync(sqlite_store(tmp_path / "store.db")), ManualClock()
    yield lambda platform: Fleet(SqlDecisions(engine, clock), clock, platform)
    engine.dispose()


Make = Callable[[Platform | None], Fleet]
ADD, REMOVE = Move.ADD_SERVER, Move.REMOVE_SERVER
OPEN, BEGUN, DONE, FAILED = DecisionState.OPEN, DecisionState.BEGUN, DecisionState.DONE, DecisionState.FAILED


def test_in_mode_advise_a_decision_is_a_row_alone(fleet: Make) -> None:
    advised = fleet(None)
    advised.after(6)
    assert advised.said() == [(ADD, OPEN)]
    (row,) = advised.decisions
    assert (row.new.group, row.new.queue, row.new.before, row.new.after) == ("", None, 1, 2)
    assert row.new.reason.text == "server-1 has needed more than 80% of its CPU for 5.0 min, now 90 %"
    assert "icewright serve" in row.by_hand
    advised.count(2, cpu=0.5)
    advised.after(1)
    assert advised.said() == [(ADD, DONE)]


def test_in_mode_act_the_platform_is_asked_once_and_what_comes_is_seen(fleet: Make) -> None:
    platform = Asked()
    acting = fleet(platform)
    acting.after(10)
    assert acting.said() == [(ADD, BEGUN)]
    ((wanted,),) = [platform.wanted]
    assert (wanted.before, wanted.after, wanted.decision_id) == (1, 2, acting.decisions[0].decision_id)
    acting.count(2, cpu=0.45)
    acting.after(1)
    assert acting.said() == [(ADD, DONE)]
    assert acting.decisions[0].effect is not None
    assert acting.decisions[0].effect.text == "2 servers are there (it was asked for 2)"
    acting.count(2, cpu=0.01)
    acting.after(62)
    assert acting.said() == [(ADD, DONE), (REMOVE, BEGUN)]
    assert [one.after for one in platform.wanted] == [2, 1]


def test_an_outcome_that_nobody_knows_is_looked_for_and_not_asked_for_again(fleet: Make) -> None:
    platform = Asked(OutcomeUnknown("no answer"))
    acting = fleet(platform)
    acting.after(6 + COME_MS // MINUTE_MS - 1)
    assert acting.said() == [(ADD, BEGUN)]
    assert len(platform.wanted) == 1
    acting.count(2)  # it had come through
    acting.after(1)
    assert acting.said() == [(ADD, DONE)]
    assert len(platform.wanted) == 1


def test_what_does_not_come_fails_and_the_next_decision_begins_from_what_is_seen(fleet: Make) -> None:
    platform = Asked(OutcomeUnknown("no answer"))
    acting = fleet(platform)
    acting.after(6 + COME_MS // MINUTE_MS)
    assert acting.said() == [(ADD, FAILED)]
    assert acting.decisions[0].effect is not None
    assert acting.decisions[0].effect.code == "not-seen"
    assert "no answer" in acting.decisions[0].effect.text
    acting.count(3)
    acting.after(31)
    assert acting.said()[:2] == [(ADD, FAILED), (ADD, BEGUN)]
    assert [(one.before, one.after) for one in platform.wanted] == [(1, 2), (3, 4)]


@pytest.mark.parametrize("trouble", [Rejected("no"), Conflict("changed"), Unavailable("away")])
def test_what_was_not_done_fails_with_why_and_is_asked_for_ever_more_rarely(
    fleet: Make, trouble: IcewrightError
) -> None:
    platform = Asked(trouble)
    acting = fleet(platform)
    acting.after(24 * 12, minutes=5)
    assert {(move, state) for move, state in acting.said()} == {(ADD, FAILED)}
    assert 4 <= len(platform.wanted) <= 7
    assert {one.effect.text for one in acting.decisions if one.effect is not None} == {trouble.message}


def test_a_held_decision_is_not_asked_for_until_it_is_released(fleet: Make) -> None:
    advised, platform = fleet(None), Asked()
    advised.after(6)
    held = advised.store.hold(advised.decisions[0].decision_id, "not today")
    advised.platform = platform
    advised.lead()
    advised.after(6, minutes=10)
    assert platform.wanted == []
    assert advised.said() == [(ADD, OPEN)]
    advised.store.release(held.decision_id, "")
    advised.after(1)
    assert [one.after for one in platform.wanted] == [2]


@pytest.mark.parametrize(
    ("before", "after", "there", "limits"), [(2, 1, 4, ServerLimits()), (6, 4, 6, ServerLimits(least=5, most=5))]
)
def test_advice_for_another_number_or_other_bounds_is_never_asked_for(
    fleet: Make, before: int, after: int, there: int, limits: ServerLimits
) -> None:
    """Else four servers would become one, or fewer would be asked for than the minimum by now."""
    advised, platform = fleet(None), Asked()
    advised.count(before, cpu=0.01)
    advised.after(61)
    (advice,) = advised.decisions
    assert (advice.new.move, advice.new.after, advice.state) == (REMOVE, after, OPEN)
    held = advised.store.hold(advice.decision_id, "not today")
    advised.count(there, cpu=0.01)
    advised.tuning = ServerTuning(lambda: advised.servers, IDS, limits, platform)
    advised.after(2)
    advised.store.release(held.decision_id, "")
    advised.after(1)
    assert platform.wanted == []
    assert advised.said() == [(REMOVE, DecisionState.LAPSED)]


def test_another_leader_does_not_ask_again_and_sees_what_came(fleet: Make) -> None:
    platform = Asked()
    acting = fleet(platform)
    acting.after(6)
    acting.lead()
    acting.after(10)
    assert (acting.said(), len(platform.wanted)) == ([(ADD, BEGUN)], 1)
    acting.count(2)
    acting.after(1)
    assert acting.said() == [(ADD, DONE)]


def test_a_leader_that_was_killed_before_it_asked_costs_time_alone(fleet: Make) -> None:
    acting = fleet(None)
    acting.after(6)
    acting.store.begin(acting.decisions[0].decision_id)  # and then it was killed
    acting.platform = Asked()
    acting.lead()
    acting.after(1 + COME_MS // MINUTE_MS)
    assert acting.said() == [(ADD, FAILED)]
    acting.after(31)
    assert acting.said()[1] == (ADD, BEGUN)
    assert [one.after for one in acting.platform.wanted] == [2]


def test_servers_are_looked_at_twice_a_minute_at_most(fleet: Make) -> None:
    advised, looks = fleet(None), list[int]()

    def seen() -> list[ServerLoad]:
        looks.append(advised.clock.now())
        return advised.servers

    advised.tuning = ServerTuning(seen, IDS, ServerLimits())
    for _ in range(6):
        advised.tuning.turn(Past(advised.store, 0), advised.clock.now())
        advised.clock.advance(LOOK_MS // 3)
    assert len(looks) == 2
