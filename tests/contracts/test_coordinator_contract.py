"""What servers agree on: sessions that end once, buckets with one owner each, and epochs by which writes are fenced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial

import pytest
from sqlalchemy import Connection, Engine, text, update

from icewright.core.errors import BucketLost, CoordinatorUnavailable, InvalidConfiguration, NameTaken, StoreTaken
from icewright.core.reasons import Reason
from icewright.core.servers import (
    BUCKETS,
    CLUSTER_DEAD_MS,
    FILES,
    SERVERS_KEPT_MS,
    TABLES,
    LinkState,
    SaidConfiguration,
    TableShare,
)
from icewright.model.events.events import CommitEvent
from icewright.model.iceberg.names import TableName
from icewright.server.cluster.coordinator import DIED, FIRST, GONE_S, JOINED, LEFT, SILENT, Bucket, SqlCoordinator
from icewright.server.cluster.differences import ANYWHERE, catalogs_elsewhere, differences
from icewright.server.cluster.port import Coordinator
from icewright.server.cluster.zookeeper import ZooKeeper
from icewright.server.cluster.zookeeper_coordinator import ZooKeeperCoordinator
from icewright.server.cluster.zookeeper_settings import ZooKeeperSettings
from icewright.store.schema import LISTED_CHANGED, counters
from icewright.store.scope_filters import bucket_of
from icewright.store.transactions import EPOCH, SHARES, Held, holding, reading, writing
from tests.contracts.samples import record
from tests.contracts.stores import Stores, stores_on
from tests.contracts.test_table_lists_contract import listed
from tests.doubles.clock import ManualClock
from tests.servers.zookeeper import ZooKeeperServer

NAMES = [TableName("lake", ("db",), f"t{number}") for number in range(20)]


@dataclass
class Servers:
    """The coordinator as the leader has it, and a way to be one more server.

    With a ``zookeeper``, each server has a session of its own.
    """

    stores: Stores
    clock: ManualClock
    backends: Callable[[], int]
    zookeeper: Callable[[], ZooKeeper] | None = None
    seconds: list[float] = field(default_factory=lambda: [0.0])
    processes: dict[str, Coordinator] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.engine = self.stores.engine
        self.coordinator: Coordinator = self.one_more()

    def one_more(self, said: SaidConfiguration | None = None, balance: str = TABLES) -> Coordinator:
        engine, clock, monotonic_s = self.engine, self.clock, lambda: self.seconds[0]
        if self.zookeeper is None:
            return SqlCoordinator(engine, clock, monotonic_s=monotonic_s, said=said, balance=balance)
        zookeeper = self.zookeeper()
        return ZooKeeperCoordinator(engine, zookeeper, clock, monotonic_s=monotonic_s, said=said, balance=balance)

    def of_another_kind(self) -> Coordinator:
        """One that hears of others as none of these does."""
        return SqlCoordinator(self.engine, self.clock, monotonic_s=lambda: self.seconds[0], kind="zookeeper at /other")

    def join(self, name: str, backend: int | None = None) -> int:
        its = self.processes.get(name) or self.one_more()
        self.processes[name] = its
        return its.join(name, self.backends() if backend is None else backend)

    def assign(self, own: int | None = None, since: int | None = None) -> dict[str, int]:
        return dict(self.coordinator.assign(self.engine, own, since=since))

    def owners(self) -> Counter[int | None]:
        return Counter(one.session for one in self.buckets)

    @property
    def buckets(self) -> tuple[Bucket, ...]:
        return self.coordinator.assigned().buckets

    def hand_over(self, session: int) -> None:
        self.coordinator.hand_over(session, [one for one in self.buckets if one.session == session])


@pytest.fixture(params=[("sqlite", "store"), ("postgresql", "store"), ("postgresql", "zookeeper")], ids="-".join)
def servers(request: pytest.FixtureRequest, clock: ManualClock) -> Iterator[Servers]:
    """Each server has a connection of its own, where the database knows connections."""
    database, kind = request.param
    stores = stores_on(database, request, clock)
    opened: list[Connection] = []
    seconds, ending = [0.0], ExitStack()
    server: ZooKeeperServer | None = request.getfixturevalue("zookeeper") if kind == "zookeeper" else None
    root = "" if server is None else server.new_root()

    def session() -> ZooKeeper:
        assert server is not None
        settings = ZooKeeperSettings(server.hosts, root, session_s=2.0)
        return ending.enter_context(ZooKeeper(settings, clock, store="1", monotonic_s=lambda: seconds[0]))

    def backend() -> int:
        if stores.engine.dialect.name == "sqlite":
            return 0
        opened.append(stores.engine.connect())
        return int(opened[-1].scalar(text("SELECT pg_backend_pid()")) or 0)

    with ending:
        yield Servers(stores, clock, backend, session if kind == "zookeeper" else None, seconds)
    for one in opened:
        one.close()


def test_a_server_says_which_coordinator_it_has_and_that_it_is_connected(servers: Servers) -> None:
    link = servers.coordinator.link
    assert link.coordinator == ("store" if servers.zookeeper is None else "zookeeper")
    assert link.state is LinkState.CONNECTED


def test_the_name_of_a_server_that_lives_is_no_other_servers(servers: Servers) -> None:
    twin = servers.one_more()
    first = servers.join("server-1", backend := servers.backends())
    servers.assign()
    with pytest.raises(NameTaken):
        twin.join("server-1", servers.backends() or 1)
    assert servers.coordinator.beat(first, backend)
    assert servers.owners() == {first: BUCKETS}


def test_a_server_with_another_coordinator_than_one_that_lives_does_not_join(servers: Servers) -> None:
    other = servers.of_another_kind()
    first = servers.join("server-1")
    servers.assign()
    with pytest.raises(
        InvalidConfiguration, match=r"server-1 .* has the coordinator .*, and this server zookeeper at /"
    ):
        other.join("server-2", servers.backends())
    assert [one.server_id for one in servers.coordinator.assigned().sessions] == ["server-1"]
    assert servers.owners() == {first: BUCKETS}
    servers.coordinator.leave(first)
    second = other.join("server-2", servers.backends())
    with pytest.raises(InvalidConfiguration, match=r"server-2 of this store has the coordinator zookeeper at /other"):
        servers.join("server-1")
    assert [one.session for one in servers.coordinator.assigned().sessions] == [second]


def test_a_server_with_another_coordinator_that_is_silent_has_died(servers: Servers) -> None:
    other = servers.of_another_kind()
    first = servers.join("server-1")
    servers.assign()
    servers.clock.advance(CLUSTER_DEAD_MS + 1)
    second = other.join("server-2", servers.backends())
    assert [one.session for one in servers.coordinator.assigned().sessions] == [second]
    assert not servers.coordinator.beat(first, 0)
    assert servers.owners() == {None: BUCKETS}


@pytest.mark.parametrize("servers", [("postgresql", "store"), ("postgresql", "zookeeper")], indirect=True, ids="-".join)
def test_whether_a_server_without_a_connection_lives_is_waited_for(servers: Servers) -> None:
    other = servers.of_another_kind()
    servers.join("server-1", 999_999_999)
    with pytest.raises(CoordinatorUnavailable, match=r"server-1, which has the coordinator .* may live"):
        other.join("server-2", own := servers.backends())
    for _ in range(int(GONE_S * 2)):
        servers.seconds[0] += 0.5
        with suppress(CoordinatorUnavailable):
            other.join("server-2", own)
    assert [one.server_id for one in servers.coordinator.assigned().sessions] == ["server-2"]


def test_a_server_of_an_older_release_says_nothing_and_is_not_refused(servers: Servers) -> None:
    other = servers.of_another_kind()
    servers.join("server-1")
    with writing(servers.engine) as connection:
        connection.execute(text("UPDATE server_sessions SET coordinator = NULL, configuration = NULL"))
    other.join("server-2", servers.backends())
    (old, _) = servers.coordinator.assigned().sessions
    assert (old.coordinator, old.said) == (None, None)


def test_what_a_server_says_of_its_configuration_is_kept_for_a_day(servers: Servers) -> None:
    said = SaidConfiguration("0.1.0", {"catalogs": "a"}, {"lake": "b"})
    coordinator = servers.one_more(said)
    session = coordinator.join("server-1", servers.backends())
    assert [one.said for one in servers.coordinator.assigned().sessions] == [said]
    coordinator.leave(session)
    assert [one.said for one in coordinator.latest_sessions()] == [said]  # type: ignore[attr-defined]  # of the store
    servers.clock.advance(SERVERS_KEPT_MS + 1)
    assert not coordinator.latest_sessions()  # type: ignore[attr-defined]  # of the store


def test_who_says_something_that_this_release_does_not_understand_may_have_any_catalog(servers: Servers) -> None:
    """A newer release beside this one: the leader assigns as before, and takes nothing for known."""
    own = SaidConfiguration("0.1.0", {"catalogs": "a"}, {"lake": "b"})
    coordinator = servers.one_more(own)
    coordinator.join("server-1", servers.backends())
    servers.join("server-2")
    with writing(servers.engine) as connection:
        said = text("UPDATE server_sessions SET configuration = '{\"kinds\":[]}' WHERE server_id = 'server-2'")
        connection.execute(said)
    sessions = coordinator.assigned().sessions
    assert [one.said for one in sessions] == [own, None]
    assert differences(sessions, "server-1") == differences(sessions, "server-2") == {}
    (missing,) = catalogs_elsewhere(sessions, own)
    assert (missing.catalog, missing.what, missing.reason.code) == (
        ANYWHERE,
        "catalog of server server-2",
        "catalog-elsewhere",
    )


def write(engine: Engine) -> None:
    with writing(engine) as connection:
        connection.execute(update(counters).where(counters.c.name == LISTED_CHANGED).values(value=counters.c.value + 1))


def written(engine: Engine) -> int:
    with reading(engine) as connection:
        return int(connection.scalar(text("SELECT value FROM counters WHERE name = :name"), {"name": LISTED_CHANGED}))


def held(one: Bucket) -> Held:
    return Held(one.session or 0, one.bucket, one.epoch)


def test_the_only_server_has_all_buckets_and_a_second_one_gets_half_of_them_handed_over(servers: Servers) -> None:
    first = servers.join("server-1")
    assert servers.assign() == {FIRST: BUCKETS}
    assert servers.owners() == {first: BUCKETS}
    assert servers.assign() == {}
    second = servers.join("server-2")
    assert servers.assign() == {JOINED: 64}
    assert servers.owners() == {first: BUCKETS}, "the owner gives them away itself, when it has ended what it is at"
    assert servers.assign() == {}
    servers.hand_over(first)
    assert servers.owners() == {first: 64, second: 64}
    assert servers.assign() == {}
    assert {one.target for one in servers.buckets} == {None}
    assert {one.bucket for one in servers.coordinator.held(second)} == {
        one.bucket for one in servers.buckets if one.session == second
    }


def test_a_handed_over_bucket_has_a_new_epoch_and_is_handed_over_once(servers: Servers) -> None:
    first = servers.join("server-1")
    servers.assign()
    second = servers.join("server-2")
    servers.assign()
    before = [one for one in servers.buckets if one.target is not None]
    servers.coordinator.hand_over(first, before)
    after = servers.buckets
    servers.coordinator.hand_over(first, before)
    assert servers.buckets == after
    moved = {one.bucket: one.epoch for one in after if one.session == second}
    assert all(moved[one.bucket] > one.epoch for one in before)


def test_what_is_not_to_go_anywhere_is_not_handed_over(servers: Servers) -> None:
    first = servers.join("server-1")
    servers.assign()
    servers.hand_over(first)
    assert servers.owners() == {first: BUCKETS}


def test_a_silent_server_is_dead_and_its_session_does_not_come_back(servers: Servers, clock: ManualClock) -> None:
    first, second = servers.join("server-1"), servers.join("server-2")
    servers.assign(second)
    clock.advance(CLUSTER_DEAD_MS)
    assert servers.coordinator.beat(second, servers.backends())
    assert servers.assign(second) == {}, "not silent for longer than that"
    clock.advance(1)
    assert servers.assign(second) == {SILENT: 64}
    assert servers.owners() == {second: BUCKETS}
    assert not servers.coordinator.beat(first, servers.backends())
    again = servers.join("server-1")
    assert again > second
    assert servers.assign(second) == {JOINED: 64}


def test_the_leader_is_not_dead_for_itself(servers: Servers, clock: ManualClock) -> None:
    first = servers.join("server-1")
    servers.assign(first)
    clock.advance(2 * CLUSTER_DEAD_MS)
    assert servers.assign(first) == {}


def test_what_was_while_the_store_was_away_tells_of_nobodys_death(servers: Servers, clock: ManualClock) -> None:
    first, second = servers.join("server-1"), servers.join("server-2")
    servers.assign(first)
    clock.advance(10 * CLUSTER_DEAD_MS)
    assert servers.assign(first, since=clock.now()) == {}
    back_at = clock.now()
    clock.advance(CLUSTER_DEAD_MS + 1)
    assert servers.assign(first, since=back_at) == {SILENT: 64}
    assert not servers.coordinator.beat(second, servers.backends())


def test_a_server_whose_connection_is_gone_for_some_seconds_has_died(servers: Servers) -> None:
    first = servers.join("server-1")
    second = servers.coordinator.join("server-2", 2**22 + 1)  # more than any system has processes
    servers.assign(first)
    assert servers.owners() == {first: 64, second: 64}
    if servers.engine.dialect.name == "sqlite":  # it has no connections that others could look at
        for _ in range(4):
            servers.seconds[0] += GONE_S / 2
            assert servers.assign(first) == {}
        return
    servers.seconds[0] += GONE_S / 2
    assert servers.assign(first) == {}
    assert servers.coordinator.beat(second, servers.backends())  # it has a new connection
    servers.seconds[0] += GONE_S / 2
    assert servers.assign(first) == {}
    assert servers.coordinator.beat(second, 2**22 + 1)
    assert servers.assign(first) == {}
    servers.seconds[0] += 2 * GONE_S
    assert servers.assign(first) == {}, "nobody looked meanwhile: the database may have been away"
    for _ in range(2):
        assert servers.assign(first) == {}
        servers.seconds[0] += GONE_S / 2
    assert servers.assign(first) == {DIED: 64}
    assert servers.owners() == {first: BUCKETS}


def test_who_leaves_in_order_is_replaced_at_once(servers: Servers) -> None:
    first, second = servers.join("server-1"), servers.join("server-2")
    servers.assign(first)
    servers.coordinator.leave(second)
    servers.coordinator.leave(second)
    assert servers.owners() == {first: 64, None: 64}
    assert servers.assign(first) == {LEFT: 64}
    assert servers.owners() == {first: BUCKETS}


def test_a_bucket_on_its_way_to_a_server_that_dies_stays_where_it_is(servers: Servers) -> None:
    first = servers.join("server-1")
    servers.assign(first)
    second = servers.join("server-2")
    servers.assign(first)
    servers.coordinator.leave(second)
    servers.hand_over(first)
    assert servers.owners() == {first: BUCKETS}
    assert servers.assign(first) == {}


def test_without_any_server_nothing_is_assigned_and_nobody_has_what_the_last_one_had(servers: Servers) -> None:
    assert servers.assign() == {}
    first = servers.join("server-1")
    servers.assign()
    servers.coordinator.leave(first)
    assert servers.assign() == {}
    assert servers.owners() == {None: BUCKETS}


def test_sessions_that_ended_are_forgotten_after_a_day(servers: Servers, clock: ManualClock) -> None:
    first = servers.join("server-1")
    servers.coordinator.leave(first)
    clock.advance(SERVERS_KEPT_MS + 1)
    servers.coordinator.leave(servers.join("server-2"))
    with reading(servers.engine) as connection:
        assert connection.scalar(text("SELECT COUNT(*) FROM server_sessions")) == 1


def test_a_bucket_that_was_lost_writes_nothing(servers: Servers) -> None:
    first = servers.join("server-1")
    servers.assign(first)
    own = servers.buckets[0]
    with holding(held(own)):
        write(servers.engine)
    second = servers.join("server-2")
    servers.assign(first)
    kept = next(one for one in servers.buckets if one.target is None)
    given = next(one for one in servers.buckets if one.target == second)
    with holding(held(given)):
        write(servers.engine)  # it ends what it is at
    servers.hand_over(first)
    before = written(servers.engine)
    with holding(held(given)), pytest.raises(BucketLost):
        write(servers.engine)
    assert written(servers.engine) == before
    with holding(held(kept)):
        write(servers.engine)
    now = next(one for one in servers.buckets if one.bucket == given.bucket)
    with holding(held(now)):
        write(servers.engine)
    assert written(servers.engine) == before + 2


def test_a_bucket_that_came_back_is_not_written_by_what_was_begun_before(servers: Servers) -> None:
    """Asleep while another server had it, and lost it again."""
    first, second = servers.join("server-1"), servers.join("server-2")
    servers.assign(first)
    before = next(one for one in servers.buckets if one.session == first)
    servers.coordinator.leave(second)
    servers.assign(first)
    third = servers.join("server-3")
    servers.coordinator.assign(servers.engine)
    with writing(servers.engine) as connection:  # there and back
        connection.execute(
            text("UPDATE buckets SET target = :to WHERE bucket = :bucket"),
            {
                "to": third,
                "bucket": before.bucket,
            },
        )
    servers.coordinator.hand_over(first, [before])
    with writing(servers.engine) as connection:
        connection.execute(
            text("UPDATE buckets SET target = :to WHERE bucket = :bucket"),
            {
                "to": first,
                "bucket": before.bucket,
            },
        )
    servers.hand_over(third)
    now = next(one for one in servers.buckets if one.bucket == before.bucket)
    assert now.session == first
    with holding(held(before)), pytest.raises(BucketLost):
        write(servers.engine)
    with holding(held(now)):
        write(servers.engine)


def test_a_server_whose_session_has_ended_writes_nothing(servers: Servers) -> None:
    first = servers.join("server-1")
    servers.assign(first)
    with holding(Held(first)):
        write(servers.engine)
    own = servers.buckets[0]
    servers.coordinator.leave(first)
    for lease in (Held(first), held(own)):
        with holding(lease), pytest.raises(BucketLost):
            write(servers.engine)


def test_a_server_that_follows_writes_nothing_that_it_does_not_hold(servers: Servers) -> None:
    engine = servers.engine.execution_options(**{SHARES: True})
    with pytest.raises(RuntimeError, match="for nothing that it holds"):
        write(engine)
    first = servers.join("server-1")
    with holding(Held(first)):
        write(engine)


def test_i15_a_leader_of_before_assigns_nothing(servers: Servers) -> None:
    servers.join("server-1")
    led = servers.engine.execution_options(**{EPOCH: -1})
    with pytest.raises(StoreTaken):
        servers.coordinator.assign(led)
    assert servers.buckets == ()


def test_the_server_with_most_tables_gives_the_bucket_with_most_away(servers: Servers) -> None:
    tables = servers.stores.tables()
    for number, name in enumerate(NAMES):
        tables.save_record(record(number, name=name))
    first = servers.join("server-1")
    servers.assign(first)
    assigned = servers.coordinator.assigned()
    assert assigned.tables == Counter(map(bucket_of, NAMES))
    assert (assigned.now, [one.server_id for one in assigned.sessions]) == (servers.clock.now(), ["server-1"])
    second = servers.join("server-2")
    servers.assign(first)
    servers.hand_over(first)
    found = Counter(one.session for name in NAMES for one in servers.buckets if one.bucket == bucket_of(name))
    assert abs(found[first] - found[second]) <= max(assigned.tables.values())


@pytest.mark.parametrize("balance", [TABLES, FILES])
def test_shares_are_balanced_by_tables_or_by_their_files(servers: Servers, balance: str) -> None:
    """One bucket has a table of many files, another one two small tables: who has both gives the heavier one away."""
    names = [TableName("lake", ("db",), f"n{number}") for number in range(200)]
    of_buckets = {bucket: [name for name in names if bucket_of(name) == bucket] for bucket in map(bucket_of, names)}
    two = next(bucket for bucket, its in of_buckets.items() if len(its) > 1)
    one = next(bucket for bucket in of_buckets if bucket != two)
    files = {of_buckets[one][0]: 10_000, of_buckets[two][0]: 1, of_buckets[two][1]: 1}
    for number, (name, count) in enumerate(files.items()):
        like = listed(90)
        found = replace(like, figures=replace(like.figures, data_files=count))
        servers.stores.tables().save_record(record(number, name=name, listed=found))
    servers.coordinator = servers.one_more(balance=balance)
    first = servers.join("server-1")
    servers.assign(first)
    second = servers.join("server-2")
    servers.assign(first)
    servers.hand_over(first)
    owners = {found.bucket: found.session for found in servers.buckets}
    assert (owners[one], owners[two]) == ((first, second) if balance == TABLES else (second, first))


class TestShares:
    """Which tables are whose, asked of the store."""

    @pytest.fixture
    def known(self, stores: Stores) -> Stores:
        tables = stores.tables()
        for number, name in enumerate(NAMES):
            tables.save_record(record(number, name=name, listed=listed(90) if number >= 5 else None))
        return stores

    def test_each_table_is_due_in_its_bucket_alone_from_its_first_look_on(self, known: Stores) -> None:
        due = partial(known.tables().due, 2**60, 99)
        for bucket in range(BUCKETS):
            expected = {name for name in NAMES if bucket_of(name) == bucket}
            assert {one.name for one in due(share=TableShare(frozenset({bucket})))} == expected
        assert {one.name for one in due(share=TableShare(frozenset(range(BUCKETS))))} == set(NAMES)
        assert due(share=TableShare(frozenset())) == []

    @pytest.mark.parametrize("tried", [False, True])
    def test_each_event_is_of_the_owner_of_its_bucket_whether_the_table_is_known_or_not(
        self, known: Stores, clock: ManualClock, *, tried: bool
    ) -> None:
        tables, strange = known.tables(), TableName("lake", ("db",), "strange")
        tables.receive(*(CommitEvent(name, 1) for name in (*NAMES, strange)))
        if tried:
            tables.tried([one.event_id for one in tables.inbox(99)], Reason("any", "any"))
            clock.advance(10**9)
        whole = frozenset(range(BUCKETS))
        told = partial(tables.reported_tables, 99, tried=tried)
        assert set(told(share=TableShare(whole))) == {*NAMES, strange}
        assert set(told(share=TableShare(whole), known=True)) == set(NAMES)
        assert told(share=TableShare(frozenset())) == []
        home = TableShare(frozenset({bucket_of(strange)}))
        assert told(share=home, known=False) == [strange]
        assert told(share=TableShare(whole - home.buckets), known=False) == []
        for bucket in sorted({bucket_of(name) for name in NAMES}):
            mine = {name for name in NAMES if bucket_of(name) == bucket}
            assert set(told(share=TableShare(frozenset({bucket})), known=True)) == mine
