"""Decisions of autotuning in the store: one of a subject stands, each is carried out once, a held one is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icewright.core.errors import Conflict, InvalidMessage, NotFound
from icewright.core.reasons import Reason
from icewright.model.events.feed import FactKind, FeedFilter
from icewright.model.policy.resource_groups import Queue
from icewright.model.work.optimizers import TuneMode
from icewright.work.autotune.model import DecisionState, Hold, Move, NewDecision, TuneDecision
from tests.contracts.stores import Stores
from tests.doubles.clock import ManualClock

DAY_MS = 24 * 3_600_000
EFFECT = Reason("carried-out", "it has started")


def decision(
    number: int, clock: ManualClock, move: Move = Move.START, group: str = "etl", queue: Queue = Queue.NORMAL
) -> TuneDecision:
    reason = Reason("backlog", "5 tasks have waited for 3 min", {"backlog": 5})
    new = NewDecision(group, queue, move, number, number + 1, reason)
    return TuneDecision(f"tune-{number}", new, TuneMode.ACT, "icewright optimizer", clock.now())


def made(stores: Stores, clock: ManualClock, number: int, move: Move = Move.START) -> TuneDecision:
    found = decision(number, clock, move)
    assert stores.decisions().make(found)
    return found


def said(stores: Stores) -> list[str]:
    found = stores.tasks().feed.after(0, 100, FeedFilter(frozenset({FactKind.TUNED}))).told
    assert all(entry.fact.reason.figures["decision"] for entry in found)
    return [entry.fact.reason.code for entry in found]


def test_a_decision_is_kept_with_its_evidence_and_its_end(stores: Stores, clock: ManualClock) -> None:
    first = made(stores, clock, 1)
    assert stores.decisions().get("tune-1") == first
    clock.advance(1)
    begun = stores.decisions().begin("tune-1", "optimizer-9")
    assert begun is not None
    assert (begun.state, begun.new.optimizer_id) == (DecisionState.BEGUN, "optimizer-9")
    ended = stores.decisions().end("tune-1", DecisionState.DONE, EFFECT)
    assert ended == replace(begun, state=DecisionState.DONE, ended_at=clock.now(), effect=EFFECT)
    assert stores.decisions().get("tune-1") == ended
    assert stores.decisions().counts() == {(Move.START, DecisionState.DONE): 1}
    assert said(stores) == ["backlog", "carried-out"]


def test_one_decision_of_a_subject_stands(stores: Stores, clock: ManualClock) -> None:
    made(stores, clock, 1)
    assert not stores.decisions().make(decision(2, clock, Move.END))
    made(stores, clock, 3, Move.MORE_MEMORY)
    assert stores.decisions().make(decision(4, clock, queue=Queue.LARGE))
    assert stores.decisions().make(decision(5, clock, group="other"))
    stores.decisions().end("tune-1", DecisionState.LAPSED, EFFECT)
    made(stores, clock, 6)


def test_one_decision_about_servers_stands_beside_those_of_queues(stores: Stores, clock: ManualClock) -> None:
    def about_servers(number: int, move: Move) -> TuneDecision:
        found = decision(number, clock, move)
        return replace(found, new=replace(found.new, group="", queue=None))

    made(stores, clock, 1)
    first = about_servers(2, Move.ADD_SERVER)
    assert stores.decisions().make(first)
    assert stores.decisions().get("tune-2") == first
    assert not stores.decisions().make(about_servers(3, Move.REMOVE_SERVER))
    assert str(stores.decisions().hold("tune-2", "").subject) == "number of servers"
    stores.decisions().end("tune-1", DecisionState.DONE, EFFECT)
    assert not stores.decisions().make(about_servers(4, Move.ADD_SERVER))
    assert [one.decision_id for one in stores.decisions().past(clock.now() + 1)] == ["tune-2"]


def test_each_is_begun_once_and_ends_once(stores: Stores, clock: ManualClock) -> None:
    made(stores, clock, 1)
    assert stores.decisions().begin("tune-1") is not None
    assert stores.decisions().begin("tune-1") is None
    assert stores.decisions().end("tune-1", DecisionState.FAILED, EFFECT) is not None
    assert stores.decisions().end("tune-1", DecisionState.DONE, EFFECT) is None
    assert stores.decisions().begin("tune-1") is None
    assert stores.decisions().get("tune-1").state is DecisionState.FAILED


def test_what_is_held_is_not_begun_and_nothing_follows_on_it(stores: Stores, clock: ManualClock) -> None:
    made(stores, clock, 1)
    held = stores.decisions().hold("tune-1", "not today")
    assert held.hold == Hold("icewright", clock.now(), "not today")
    assert stores.decisions().begin("tune-1") is None
    assert stores.decisions().end("tune-1", DecisionState.LAPSED, EFFECT) is None
    assert stores.decisions().held() == 1
    with pytest.raises(Conflict, match="held already"):
        stores.decisions().hold("tune-1", "")
    assert stores.decisions().release("tune-1", "go on").hold is None
    with pytest.raises(Conflict, match="not held"):
        stores.decisions().release("tune-1", "")
    assert stores.decisions().begin("tune-1") is not None
    assert said(stores) == ["backlog", "held", "released"]
    acts = [(entry.action, entry.resource) for entry in stores.audit().entries(limit=9, after=0)]
    assert sorted(acts) == [("autotune.hold", "autotune/tune-1"), ("autotune.release", "autotune/tune-1")]


def test_an_effect_can_be_held_too_so_that_nothing_changes_it(stores: Stores, clock: ManualClock) -> None:
    made(stores, clock, 1)
    stores.decisions().end("tune-1", DecisionState.DONE, EFFECT)
    clock.advance(1)
    made(stores, clock, 2)
    with pytest.raises(Conflict, match="not the latest"):
        stores.decisions().hold("tune-1", "")
    stores.decisions().end("tune-2", DecisionState.DONE, EFFECT)
    stores.decisions().hold("tune-2", "")
    clock.advance(1)
    assert not stores.decisions().make(decision(3, clock))
    assert stores.decisions().make(decision(4, clock, Move.MORE_MEMORY))
    stores.decisions().release("tune-2", "")
    assert stores.decisions().make(decision(3, clock))


def test_what_is_under_way_cannot_be_held(stores: Stores, clock: ManualClock) -> None:
    made(stores, clock, 1)
    stores.decisions().begin("tune-1")
    with pytest.raises(Conflict, match="is being carried out"):
        stores.decisions().hold("tune-1", "")


def test_reasons_are_no_books_and_names_must_be_known(stores: Stores, clock: ManualClock) -> None:
    made(stores, clock, 1)
    with pytest.raises(InvalidMessage):
        stores.decisions().hold("tune-1", "x" * 1_001)
    with pytest.raises(NotFound):
        stores.decisions().hold("tune-2", "")
    held = stores.decisions().hold("tune-1", "x" * 1_000)
    with pytest.raises(InvalidMessage):
        stores.decisions().release("tune-1", "x" * 1_001)
    with pytest.raises(NotFound):
        stores.decisions().release("tune-2", "")
    assert stores.decisions().get("tune-1") == held


def test_lists_come_in_pages_the_newest_first(stores: Stores, clock: ManualClock) -> None:
    for number in range(5):
        made(stores, clock, number)
        stores.decisions().end(f"tune-{number}", DecisionState.DONE, EFFECT)
        clock.advance(number % 2)
    made(stores, clock, 5, Move.MORE_MEMORY)
    stores.decisions().hold("tune-4", "")
    found, before = [], None
    while page := stores.decisions().list(limit=2, before=before):
        found += [one.decision_id for one in page]
        before = page[-1].made_at, page[-1].decision_id
    assert found == [f"tune-{number}" for number in (5, 4, 3, 2, 1, 0)]
    standing = stores.decisions().list(limit=9, only_standing=True)
    assert [one.decision_id for one in standing] == ["tune-5", "tune-4"]


def test_the_past_is_what_counts_for_the_next_decisions(stores: Stores, clock: ManualClock) -> None:
    for number in (1, 2):  # of memory: the present one stays known
        made(stores, clock, number, Move.MORE_MEMORY)
        stores.decisions().end(f"tune-{number}", DecisionState.DONE, EFFECT)
    made(stores, clock, 3)
    stores.decisions().end("tune-3", DecisionState.DONE, EFFECT)
    clock.advance(8 * DAY_MS)
    made(stores, clock, 4)
    assert [one.decision_id for one in stores.decisions().past(clock.now() - 7 * DAY_MS)] == ["tune-4", "tune-2"]
    assert len(stores.decisions().past(clock.now() - 9 * DAY_MS)) == 4


def test_old_decisions_go_but_not_those_that_count(stores: Stores, clock: ManualClock) -> None:
    for number in (1, 2):
        made(stores, clock, number, Move.MORE_MEMORY)
        stores.decisions().end(f"tune-{number}", DecisionState.DONE, EFFECT)
        clock.advance(1)
    for number in (3, 4):
        made(stores, clock, number)
        stores.decisions().end(f"tune-{number}", DecisionState.LAPSED, EFFECT)
        clock.advance(1)
    stores.decisions().hold("tune-4", "")
    assert stores.decisions().prune(clock.now(), 1) == 1
    assert stores.decisions().prune(clock.now(), 9) == 1
    assert [one.decision_id for one in stores.decisions().list(limit=9)] == ["tune-4", "tune-2"]
    stores.decisions().release("tune-4", "")
    made(stores, clock, 5)
    clock.advance(1)
    assert stores.decisions().prune(clock.now(), 9) == 1
    assert [one.decision_id for one in stores.decisions().list(limit=9)] == ["tune-5", "tune-2"]
