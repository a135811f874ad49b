"""Of several servers one leads, with all that belongs to it; when it ends or loses the lead, another one does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from sqlalchemy import Engine, create_engine

from icewright.core.errors import StoreTaken, StoreUnavailable, Unavailable
from icewright.core.servers import Server, leader_of
from icewright.model.access.permissions import OWNER
from icewright.model.events.feed import FactKind, FeedFilter
from icewright.server.cluster.leadership import Leadership
from icewright.server.cluster.leading import Question
from icewright.server.cluster.peers import ask
from icewright.server.cluster.servers_sql import SqlServers
from icewright.server.control import ControlPlane
from tests.builders.lakehouse import Lakehouse
from tests.lakes.stores import new_store

WAIT_S = 30.0
ENGINE = create_engine("sqlite://")
"""Nothing here writes by it."""


def soon(holds: Callable[[], object]) -> None:
    until_s = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < until_s
        time.sleep(0.005)


@dataclass
class Store:
    """What the elections of one store share."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    epoch: int = 0
    leader: FakeLeaderElection | None = None


@dataclass(eq=False)
class FakeLeaderElection:
    """An election as the database's are, whose trouble a test makes."""

    store: Store
    epoch: int | None = None
    trouble: Exception | None = None

    def lead(self) -> Engine | None:
        with self.store.lock:
            if self.store.leader is not None:
                return None
            self.store.leader, self.store.epoch = self, self.store.epoch + 1
            self.epoch = self.store.epoch
            return ENGINE

    def check(self) -> None:
        if self.trouble is not None:
            raise self.trouble
        if self.epoch is not None and self.epoch != self.store.epoch:
            self.epoch = None
            raise StoreTaken("another server leads now")

    def resign(self) -> None:
        with self.store.lock:
            self.epoch = None
            if self.store.leader is self:
                self.store.leader = None

    def is_robbed(self) -> None:
        """Its session ends, and nobody tells it."""
        with self.store.lock:
            self.store.leader = None


@dataclass
class Machine:
    """A server's part, without its web server."""

    name: str
    store: Store
    book: SqlServers
    house: Lakehouse
    beside: list[str] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.election = FakeLeaderElection(self.store)
        self.leadership = Leadership(
            self.election,
            lambda _engine: self.house.restart(),
            self.book,
            Server(self.name, f"http://127.0.0.1:1/{self.name}", "0.1.0"),
            ask=lambda url, question: ask(url, "t" * 43, question),
            beside=(self.notify,),
            end=self.ended.set,
            poll_s=0.01,
        )

    @contextmanager
    def notify(self, led: ControlPlane, _engine: Engine) -> Iterator[None]:
        self.beside.append("begun")
        assert led.loop is not None
        try:
            yield
        finally:
            self.beside.append("ended")

    @property
    def leads(self) -> bool:
        return self.leadership.led is not None


@pytest.fixture
def machines() -> tuple[Machine, Machine]:
    store, book = Store(), SqlServers(new_store())
    return Machine("server-1", store, book, Lakehouse()), Machine("server-2", store, book, Lakehouse())


def test_one_leads_and_when_it_ends_in_order_the_other_one_does(machines: tuple[Machine, Machine]) -> None:
    first, second = machines
    with first.leadership:
        soon(lambda: first.leads)
        led = first.leadership.led
        assert led is not None
        soon(lambda: led.loop.round_ended_at is not None)
        with second.leadership:
            soon(lambda: len(first.book.present()) == 2)
            assert not second.leads
            soon(lambda: leader_of(second.leadership.servers()))
            leader = leader_of(second.leadership.servers())
            assert leader is not None
            assert (leader.server.server_id, leader.server.epoch) == ("server-1", 1)
            first.leadership.__exit__()
            assert (first.beside, first.leads) == (["begun", "ended"], False)
            soon(lambda: second.leads)
            soon(lambda: [one.server.epoch for one in first.book.present()] == [2])
            told = second.house.tasks.feed.after(0, 10, FeedFilter()).told
            assert [one.fact.fact for one in told] == [FactKind.LEADER_CHANGED]
            assert told[0].fact.reason.figures == {"epoch": 2}
    assert second.beside == ["begun", "ended"]
    assert list(first.book.present()) == []


def test_the_only_server_leads_before_it_is_asked_for_anything(machines: tuple[Machine, Machine]) -> None:
    with machines[0].leadership:
        assert machines[0].leads


def test_who_loses_the_lead_follows_and_may_lead_again_with_nothing_remembered(
    machines: tuple[Machine, Machine],
) -> None:
    first, second = machines
    with first.leadership:
        soon(lambda: first.leads)
        remembered = first.leadership.led
        first.election.is_robbed()
        with second.leadership:
            soon(lambda: second.leads)
            soon(lambda: not first.leads)
            soon(lambda: first.beside == ["begun", "ended"])
            soon(lambda: first.election.epoch is None)
            assert not first.ended.is_set()
        soon(lambda: first.leads)
        assert first.leadership.led is not remembered
        assert first.beside == ["begun", "ended", "begun"]
    assert first.leadership.failure is None


def test_a_leader_whose_store_is_away_leads_on_until_it_can_be_told(machines: tuple[Machine, Machine]) -> None:
    first, _ = machines
    with first.leadership:
        soon(lambda: first.leads)
        first.election.trouble = StoreUnavailable("for a while")
        soon(lambda: first.leads)
        first.election.trouble = None
        soon(lambda: first.leads)
    assert first.beside == ["begun", "ended"]


def test_a_server_that_may_be_none_any_more_ends(machines: tuple[Machine, Machine]) -> None:
    first, second = machines
    gone = RuntimeError("the schema is a newer one")
    with first.leadership:
        soon(lambda: first.leads)
        first.election.trouble = gone
        assert first.ended.wait(WAIT_S)
    assert first.leadership.failure is gone
    assert first.beside == ["begun", "ended"]
    with second.leadership:
        soon(lambda: second.leads)


def test_a_server_whose_loop_ends_by_itself_ends_as_well(machines: tuple[Machine, Machine]) -> None:
    first, _ = machines
    with first.leadership:
        soon(lambda: first.leads)
        led = first.leadership.led
        assert led is not None
        led.loop.stop()
        assert first.ended.wait(WAIT_S)
    assert "ended unexpectedly" in str(first.leadership.failure)


def test_what_cannot_be_begun_is_tried_again(machines: tuple[Machine, Machine]) -> None:
    first, _ = machines
    tries: list[int] = []
    build = first.leadership._build

    def fails_once(engine: Engine) -> ControlPlane:
        tries.append(1)
        if len(tries) == 1:
            raise StoreUnavailable("while it was about to lead")
        return build(engine)

    first.leadership._build = fails_once
    with first.leadership:
        soon(lambda: first.leads)
    assert len(tries) == 2


def test_a_question_for_nobody_is_answered_so(machines: tuple[Machine, Machine]) -> None:
    question = Question("GET", "/api/v1/status", {}, b"", OWNER)
    with pytest.raises(Unavailable, match="no server leads"):
        machines[0].leadership.ask_leader(question)
    machines[0].book.beat(Server("server-2", "http://127.0.0.1:1", "0.1.0", epoch=1))
    with pytest.raises(Unavailable, match="the leading server does not answer"):
        machines[0].leadership.ask_leader(question)
