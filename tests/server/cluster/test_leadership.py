"""Of several servers one leads, with all that belongs to it; when it ends or loses the lead, another one does."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from sqlalchemy import Engine, create_engine
from structlog.testing import capture_logs

from icewright.core.errors import InvalidConfiguration, StoreTaken, StoreUnavailable, Unavailable
from icewright.core.servers import SaidConfiguration, Server, leader_of, process_name
from icewright.model.access.permissions import OWNER
from icewright.model.events.feed import FactKind, FeedFilter
from icewright.model.iceberg.names import TableName
from icewright.server.cluster import leadership
from icewright.server.cluster.coordinator import SqlCoordinator
from icewright.server.cluster.leadership import Leadership, Sharing
from icewright.server.cluster.leading import Question
from icewright.server.cluster.peers import ask
from icewright.server.cluster.servers_sql import SqlServers
from icewright.server.cluster.share import Part, Share
from icewright.server.control import ControlPlane
from icewright.server.loop import Loop
from icewright.store.scope_filters import bucket_of
from tests.builders.lakehouse import Lakehouse
from tests.lakes.stores import new_store
from tests.narrowing import not_none
from tests.waiting import until

WAIT_S = 30.0
NAMES = [TableName("lake", ("db",), f"t{number}") for number in range(1_000)]
ENGINE = create_engine("sqlite://")
"""Nothing here writes by it."""


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
    backend: int = 0
    engine: Engine = ENGINE

    def lead(self) -> Engine | None:
        with self.store.lock:
            if self.store.leader is not None:
                return None
            self.store.leader, self.store.epoch = self, self.store.epoch + 1
            self.epoch = self.store.epoch
            return self.engine

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
            lambda _engine, _part: self.house.restart(),
            self.book,
            Server(self.name, f"http://127.0.0.1:1/{self.name}", "0.1.0"),
            ask=lambda url, question: ask(url, "t" * 43, question),
            beside=(self.notify,),
            end=self.ended.set,
            poll_s=0.01,
            sharing=self.sharing(),
        )

    def sharing(self) -> Sharing | None:
        """It is the only server that looks at tables while it leads."""
        return None

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


@contextmanager
def leading(machine: Machine) -> Iterator[None]:
    """It has begun, and leads."""
    with machine.leadership:
        until(lambda: machine.leads)
        yield


@pytest.fixture
def machines() -> tuple[Machine, Machine]:
    store, book = Store(), SqlServers(new_store())
    return Machine("server-1", store, book, Lakehouse()), Machine("server-2", store, book, Lakehouse())


def test_one_leads_and_when_it_ends_in_order_the_other_one_does(machines: tuple[Machine, Machine]) -> None:
    first, second = machines
    with leading(first):
        led = not_none(first.leadership.led)
        until(lambda: led.loop.round_ended_at is not None)
        with second.leadership:
            until(lambda: len(first.book.present()) == 2)
            assert not second.leads
            until(lambda: leader_of(second.leadership.servers()))
            leader = not_none(leader_of(second.leadership.servers()))
            assert (leader.server.server_id, leader.server.epoch) == ("server-1", 1)
            first.leadership.__exit__()
            assert (first.beside, first.leads) == (["begun", "ended"], False)
            until(lambda: second.leads)
            until(lambda: [one.server.epoch for one in first.book.present()] == [2])
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
    with leading(first):
        remembered = first.leadership.led
        first.election.is_robbed()
        with leading(second):
            until(lambda: not first.leads)
            until(lambda: first.beside == ["begun", "ended"])
            until(lambda: first.election.epoch is None)
            assert not first.ended.is_set()
        until(lambda: first.leads)
        assert first.leadership.led is not remembered
        assert first.beside == ["begun", "ended", "begun"]
    assert first.leadership.failure is None


def test_a_leader_that_hangs_gives_the_lead_to_another_server_and_not_to_processes(
    machines: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Processes of a server never lead: nobody would."""
    first, book = machines[0], machines[0].book
    for server in ("server-1", "server-2"):
        book.beat(Server(process_name(server, 1), "http://127.0.0.1:1/", "0.1.0"))
    checks = 0

    def check() -> None:
        nonlocal checks
        checks += 1

    with leading(first):
        monkeypatch.setattr(Loop, "silent_s", 1e9)
        monkeypatch.setattr(first.election, "check", check)
        until(lambda: checks > 3 or not first.leads)
        assert first.leads
        book.beat(Server("server-2", "http://127.0.0.1:1/", "0.1.0"))
        until(lambda: not first.leads)


def test_a_leader_whose_store_is_away_leads_on_until_it_can_be_told(machines: tuple[Machine, Machine]) -> None:
    first, _ = machines
    with leading(first):
        first.election.trouble = StoreUnavailable("for a while")
        until(lambda: first.leads)
        first.election.trouble = None
        until(lambda: first.leads)
    assert first.beside == ["begun", "ended"]


def test_a_store_that_is_away_is_told_of_once_in_each_outage(
    machines: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And once a minute: whoever leads or follows asks it twice a second."""
    first, _ = machines
    asked = list[int]()
    check = first.election.check

    def counted() -> None:
        asked.append(1)
        check()

    monkeypatch.setattr(first.election, "check", counted)

    def is_asked(times: int) -> None:
        in_all = len(asked) + times
        until(lambda: len(asked) >= in_all)

    with capture_logs() as logs, first.leadership:
        for _ in range(2):
            first.election.trouble = StoreUnavailable("for a while")
            is_asked(5)
            first.election.trouble = None
            is_asked(3)
    assert [one["times"] for one in logs if one["event"] == "store away"] == [1, 1]


def test_a_server_that_may_be_none_any_more_ends(machines: tuple[Machine, Machine]) -> None:
    first, second = machines
    gone = RuntimeError("the schema is a newer one")
    with leading(first):
        first.election.trouble = gone
        assert first.ended.wait(WAIT_S)
    assert first.leadership.failure is gone
    assert first.beside == ["begun", "ended"]
    with leading(second):
        pass


def test_a_server_whose_loop_ends_by_itself_ends_as_well(machines: tuple[Machine, Machine]) -> None:
    first, _ = machines
    with leading(first):
        led = not_none(first.leadership.led)
        led.loop.stop()
        assert first.ended.wait(WAIT_S)
    assert "ended unexpectedly" in str(first.leadership.failure)


def test_what_cannot_be_begun_is_tried_again(machines: tuple[Machine, Machine]) -> None:
    first, _ = machines
    tries: list[int] = []
    build = first.leadership._build

    def fails_once(engine: Engine, part: Part) -> ControlPlane:
        tries.append(1)
        if len(tries) == 1:
            raise StoreUnavailable("while it was about to lead")
        return build(engine, part)

    first.leadership._build = fails_once
    with leading(first):
        pass
    assert len(tries) == 2


def test_a_question_for_nobody_is_answered_so(machines: tuple[Machine, Machine]) -> None:
    question = Question("GET", "/api/v1/status", {}, b"", OWNER)
    with pytest.raises(Unavailable, match="no server leads"):
        machines[0].leadership.ask_leader(question)
    machines[0].book.beat(Server("server-2", "http://127.0.0.1:1", "0.1.0", epoch=1))
    with pytest.raises(Unavailable, match="the leading server does not answer"):
        machines[0].leadership.ask_leader(question)


@dataclass
class Sharer(Machine):
    """One of the servers that share the looks; ``parts`` are those that it looked by as one that follows."""

    shared: Engine = field(default_factory=new_store)
    parts: list[Part] = field(default_factory=list)
    kind: str = "store"
    said: SaidConfiguration | None = None

    def sharing(self) -> Sharing:
        def looking(part: Part) -> ControlPlane:
            self.parts.append(part)
            return self.house.restart()

        self.election.engine = self.shared
        self.share = Share(SqlCoordinator(self.shared, kind=self.kind, said=self.said), self.name, lambda: 0)
        return Sharing(self.share, looking)


@pytest.fixture
def sharers() -> tuple[Sharer, Sharer]:
    store, engine = Store(), new_store()
    book = SqlServers(engine)
    first, second = (Sharer(f"server-{n}", store, book, Lakehouse(), shared=engine) for n in (1, 2))
    return first, second


def test_each_server_looks_at_its_share_and_who_is_left_at_all_of_it(sharers: tuple[Sharer, Sharer]) -> None:
    first, second = sharers
    with leading(first):
        assert len(first.share.buckets) == 128, "it assigns before its loop turns"
        with second.leadership:
            until(lambda: (len(first.share.buckets), len(second.share.buckets)) == (64, 64))
            until(lambda: second.parts)
            assert ([part.leads for part in second.parts], first.parts) == ([False], [])
            assigned = not_none(second.leadership.assigned())
            assert [one.server_id for one in assigned.sessions] == ["server-1", "server-2"]
            looking = not_none(second.leadership._looking)
            until(lambda: looking.control.loop.round_ended_at is not None)
            second.leadership.wake()
            session = second.share.session
            first.leadership.__exit__()
            until(lambda: second.leads and len(second.share.buckets) == 128)
            until(lambda: not looking.thread.is_alive())
            assert (second.parts[0].is_present, second.share.session) == (False, session)
    assert SqlCoordinator(first.shared).assigned().sessions == ()
    assert second.leadership._looking is None


def test_a_server_with_another_coordinator_ends_with_the_reason_and_never_leads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, engine = Store(), new_store()
    SqlCoordinator(engine).join("server-1", 0)
    second = Sharer("server-2", store, SqlServers(engine), Lakehouse(), shared=engine, kind="zookeeper at /icewright")
    asked: list[str] = []
    monkeypatch.setattr(second.election, "lead", lambda: asked.append("to lead"))
    with second.leadership:
        until(second.ended.is_set)
    assert isinstance(second.leadership.failure, InvalidConfiguration)
    assert "server-1 of this store has the coordinator store" in second.leadership.failure.message
    assert (second.beside, second.parts, asked) == ([], [], [])
    assert [one.server_id for one in SqlCoordinator(engine).assigned().sessions] == ["server-1"]


def test_the_leader_says_once_which_servers_have_another_configuration() -> None:
    store, engine = Store(), new_store()
    book = SqlServers(engine)
    first, second = (
        Sharer(f"server-{n}", store, book, Lakehouse(), shared=engine, said=SaidConfiguration("1", {"groups": n}, {}))
        for n in "12"
    )
    with capture_logs() as logs, first.leadership:
        until(lambda: first.leads)
        assert first.leadership.differing == 0
        with second.leadership:
            until(lambda: first.leadership.differing == 1)
            assert second.leadership.differing is None
            until(lambda: len(second.share.buckets) == 64)
            second.leadership.__exit__()
            until(lambda: first.leadership.differing == 0)
    said = [one for one in logs if one["event"] == "a server has another configuration than the leader"]
    assert [(one["server"], one["sections"]) for one in said] == [("server-2", ("groups",))]


def test_a_server_that_was_declared_dead_begins_anew(sharers: tuple[Sharer, Sharer]) -> None:
    first, second = sharers
    with leading(first), second.leadership:
        until(lambda: second.parts)
        before = not_none(second.leadership._looking)
        first.share.coordinator.leave(before.session)
        second.share._told = None  # its next heartbeat is now
        until(lambda: len(second.parts) == 2 and len(second.share.buckets) == 64)
        assert second.share.session != before.session
        until(lambda: not before.thread.is_alive())


def test_a_leader_that_was_declared_dead_leads_anew(sharers: tuple[Sharer, Sharer]) -> None:
    first, _ = sharers
    with leading(first):
        led, session = first.leadership.led, first.share.session
        first.share.coordinator.leave(session or 0)
        first.share._told = None
        until(lambda: first.leadership.led not in (None, led))
        until(lambda: len(first.share.buckets) == 128)
        assert first.share.session != session


def test_a_table_at_which_a_loop_hangs_is_looked_at_by_the_leader_that_its_server_becomes(
    sharers: tuple[Sharer, Sharer], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = sharers
    monkeypatch.setattr(leadership, "LOOK_END_S", 0.01)
    hangs, goes_on = threading.Event(), threading.Event()
    with leading(first), second.leadership:
        until(lambda: second.parts and len(second.share.buckets) == 64)
        looking, session = second.leadership._looking, second.share.session
        assert looking is not None
        name = next(one for one in NAMES if bucket_of(one) in second.share.buckets)

        def hang() -> None:
            with second.parts[0].working(name) as is_ours:
                assert is_ours
                hangs.set()
                goes_on.wait(WAIT_S)

        monkeypatch.setattr(looking.control.loop, "turn", hang)
        assert hangs.wait(WAIT_S)
        first.leadership.__exit__()
        until(lambda: second.leads and len(second.share.buckets) == 128)
        part = not_none(second.share._present)
        with part.working(name) as is_ours:
            assert is_ours
        assert second.share.session != session
        goes_on.set()


def test_a_loop_that_hangs_gives_its_tables_away(
    sharers: tuple[Sharer, Sharer], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = sharers
    with leading(first), second.leadership:
        until(lambda: second.parts and len(second.share.buckets) == 64)
        looking = not_none(second.leadership._looking)
        hangs, goes_on = threading.Event(), threading.Event()

        def hang() -> None:
            hangs.set()
            goes_on.wait(WAIT_S)

        monkeypatch.setattr(looking.control.loop, "turn", hang)
        assert hangs.wait(WAIT_S)
        monkeypatch.setattr(Loop, "silent_s", property(lambda loop: 1e9 * (loop is looking.control.loop)))
        until(lambda: second.leadership.is_stuck and len(first.share.buckets) == 128)
        assert len(second.parts) == 1
        goes_on.set()
        looking.control.loop.stop()
        until(lambda: len(second.parts) == 2 and len(second.share.buckets) == 64)
