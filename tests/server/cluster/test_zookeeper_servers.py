"""Servers on a real ZooKeeper and a real store: ZooKeeper elects, and the store's epochs fence."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from sqlalchemy import Engine, update

from icewright.config.model import ClusterConfig, Config
from icewright.configuration.load import load_config
from icewright.core.errors import BucketLost, CoordinatorUnavailable, InvalidConfiguration, StoreTaken
from icewright.core.servers import BUCKETS, LinkState
from icewright.core.system_clock import SystemClock
from icewright.server.cluster.coordinator import FIRST, LEFT
from icewright.server.cluster.store_identity import STORE_IDENTITY
from icewright.server.cluster.zookeeper import ZooKeeper
from icewright.server.cluster.zookeeper_coordinator import EXPIRED, ZooKeeperCoordinator
from icewright.server.cluster.zookeeper_election import DEPOSE_S, StoreElection, ZooKeeperElection
from icewright.server.cluster.zookeeper_settings import ZooKeeperSettings
from icewright.server.control_wiring import open_control_plane
from icewright.server.coordination import open_coordination
from icewright.store.engine import store_engine
from icewright.store.schema import counters
from icewright.store.session_lock import PostgresLeaderElection
from icewright.store.transactions import Held, holding, writing
from tests.lakes.sqlite import make_lake
from tests.lakes.stores import new_store
from tests.narrowing import not_none
from tests.servers.zookeeper import PASSWORD, USER, ZooKeeperServer
from tests.waiting import until

SESSION_S = 2.0


class OwnTime:
    """A clock of the test's."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@dataclass
class Server:
    """A server's part in the election and the assignment."""

    zookeeper: ZooKeeper
    election: ZooKeeperElection
    coordinator: ZooKeeperCoordinator


class Town:
    """Servers of one store and one root of ZooKeeper."""

    def __init__(self, server: ZooKeeperServer, engine: Engine, ending: ExitStack) -> None:
        self.server, self.engine, self._ending, self.time_s = server, engine, ending, OwnTime()
        self.settings = ZooKeeperSettings(server.hosts, server.new_root(), session_s=SESSION_S)

    def start(self) -> Server:
        zookeeper = self._ending.enter_context(
            ZooKeeper(self.settings, SystemClock(), store="1", monotonic_s=self.time_s, patience_s=10**6)
        )
        store: StoreElection = AnyElection()
        if self.engine.dialect.name == "postgresql":
            store = self._ending.enter_context(closing(PostgresLeaderElection(self.engine)))
        election = ZooKeeperElection(store, zookeeper, monotonic_s=self.time_s)
        return Server(zookeeper, election, ZooKeeperCoordinator(self.engine, zookeeper, monotonic_s=self.time_s))


class AnyElection:
    """Of a test that elects nobody."""

    epoch: int | None = None
    backend = 0

    def lead(self, *, deposes: bool = False) -> Engine | None:
        raise NotImplementedError(deposes)

    def check(self) -> None:
        raise NotImplementedError

    def resign(self) -> None:
        raise NotImplementedError


@pytest.fixture
def ending(zookeeper: ZooKeeperServer) -> Iterator[ExitStack]:
    zookeeper.start()
    with ExitStack() as stack:
        yield stack
        zookeeper.start()


@pytest.fixture
def town(zookeeper: ZooKeeperServer, ending: ExitStack) -> Town:
    return Town(zookeeper, new_store(), ending)


@pytest.fixture
def led(zookeeper: ZooKeeperServer, postgres_store_url: str, ending: ExitStack) -> Town:
    engine = store_engine(postgres_store_url)
    ending.callback(engine.dispose)
    return Town(zookeeper, engine, ending)


def owners(coordinator: ZooKeeperCoordinator) -> Counter[int | None]:
    return Counter(one.session for one in coordinator.assigned().buckets)


class TestLeader:
    """Who is elected leads, as the store says; who is not any more, does not."""

    def test_who_is_elected_leads_and_gives_the_lead_away_when_another_one_is(self, led: Town) -> None:
        first, second = led.start(), led.start()
        session = first.coordinator.join("server-1", first.election.backend)
        old = not_none(first.election.lead())
        assert second.election.lead() is None
        first.election.check()
        epoch = first.election.epoch
        assert first.coordinator.assign(old, session) == {FIRST: BUCKETS}
        first.zookeeper.withdraw()
        assert second.election.lead() is None, "the last leader has not heard of it yet"
        with pytest.raises(StoreTaken):
            first.election.check()
        new = not_none(second.election.lead())
        assert (second.election.epoch or 0) > (epoch or 0)
        assert first.election.epoch is None
        first.coordinator.leave(session)
        other = second.coordinator.join("server-2", second.election.backend)
        with pytest.raises(StoreTaken):  # it believes that it leads, and moves nothing
            first.coordinator.assign(old, session)
        assert owners(first.coordinator) == {None: BUCKETS}
        assert second.coordinator.assign(new, other) == {LEFT: BUCKETS}

    def test_a_leader_that_does_not_hear_of_it_is_deposed(self, led: Town) -> None:
        """Cut off from ZooKeeper alone: its lease in the store goes on."""
        first, second = led.start(), led.start()
        old = not_none(first.election.lead())
        first.zookeeper.__exit__()
        assert second.election.lead() is None
        led.time_s.now_s += DEPOSE_S - 0.1
        first.election.check()
        assert second.election.lead() is None
        led.time_s.now_s += 0.2
        first.election.check()
        new = not_none(second.election.lead())
        with pytest.raises(StoreTaken), writing(old):
            pass
        with pytest.raises(StoreTaken):
            first.election.check()
        assert first.election.lead() is None
        second.election.check()
        with writing(new):
            pass

    def test_while_zookeeper_is_gone_the_leader_goes_on_and_nobody_else_comes_to_lead(self, led: Town) -> None:
        first, second = led.start(), led.start()
        old = not_none(first.election.lead())
        assert second.election.lead() is None
        led.server.kill()
        until(lambda: first.zookeeper.link.state is not LinkState.CONNECTED)
        until(lambda: second.zookeeper.link.state is not LinkState.CONNECTED)
        for _ in range(3):
            led.time_s.now_s += 2 * DEPOSE_S
            first.election.check()
            assert second.election.lead() is None
        with writing(old):
            pass
        first.election.resign()
        assert second.election.lead() is None
        led.server.start()
        led.time_s.now_s += 1.0
        until(second.election.lead)
        second.election.check()
        assert first.election.lead() is None


class TestAssignment:
    """Who is there for ZooKeeper has buckets, which are the store's."""

    def test_a_server_that_is_gone_for_zookeeper_loses_its_buckets_and_writes_nothing_for_them(
        self, town: Town
    ) -> None:
        first, second = town.start(), town.start()
        own = first.coordinator.join("server-1", 0)
        other = second.coordinator.join("server-2", 0)
        assert first.coordinator.assign(town.engine, own) == {FIRST: BUCKETS}
        lost = next(one for one in first.coordinator.assigned().buckets if one.session == other)
        town.time_s.now_s += SESSION_S + 0.1
        assert first.coordinator.assign(town.engine, own) == {}
        second.zookeeper.__exit__()  # its process goes on, and its connection to the store
        assert second.coordinator.beat(other, 0)
        assert first.coordinator.assign(town.engine, own) == {EXPIRED: BUCKETS // 2}
        assert owners(first.coordinator) == {own: BUCKETS}
        assert not second.coordinator.beat(other, 0)
        with holding(Held(other, lost.bucket, lost.epoch)), pytest.raises(BucketLost), writing(town.engine):
            pass
        with pytest.raises(CoordinatorUnavailable):
            second.coordinator.join("server-2", 0)
        assert [one.session for one in first.coordinator.assigned().sessions] == [own]

    def test_a_leader_that_is_just_back_takes_nobody_for_dead(self, town: Town) -> None:
        first, second = town.start(), town.start()
        own, other = first.coordinator.join("server-1", 0), second.coordinator.join("server-2", 0)
        first.coordinator.assign(town.engine, own)
        second.zookeeper.__exit__()
        town.time_s.now_s += SESSION_S
        assert first.coordinator.assign(town.engine, own) == {}
        assert owners(first.coordinator) == {own: 64, other: 64}
        town.time_s.now_s += 0.1
        assert first.coordinator.assign(town.engine, own) == {EXPIRED: 64}

    def test_while_zookeeper_is_gone_nothing_is_assigned_and_all_goes_on_when_it_is_back(self, town: Town) -> None:
        first, second = town.start(), town.start()
        own, other = first.coordinator.join("server-1", 0), second.coordinator.join("server-2", 0)
        first.coordinator.assign(town.engine, own)
        held = second.coordinator.held(other)[0]
        town.time_s.now_s += SESSION_S + 0.1
        town.server.kill()
        until(lambda: first.coordinator.link.state is not LinkState.CONNECTED)
        assert first.coordinator.assign(town.engine, own) == {}
        assert second.coordinator.beat(other, 0)
        with holding(Held(other, held.bucket, held.epoch)), writing(town.engine):
            pass
        second.coordinator.leave(other)
        assert first.coordinator.assign(town.engine, own) == {}
        assert owners(first.coordinator) == {own: 64, None: 64}
        town.server.start()
        until(lambda: first.coordinator.assign(town.engine, own) == {LEFT: 64})
        assert owners(first.coordinator) == {own: BUCKETS}

    def test_people_read_who_has_which_buckets(self, town: Town) -> None:
        first = town.start()
        own = first.coordinator.join("server-1", 0)
        first.coordinator.assign(town.engine, own)
        read = town._ending.enter_context(ZooKeeper(town.settings, SystemClock(), store="1"))
        data, _ = read._client.get(f"{town.settings.root}/bucket-assignment")
        found = json.loads(data)
        assert found["version"] == first.coordinator.version()
        assert found["buckets"] == {str(bucket): "server-1" for bucket in range(BUCKETS)}


class TestWiring:
    """What is configured is what a server has."""

    @pytest.fixture
    def config(self, town: Town, postgres_store_url: str, tmp_path: Path) -> Config:
        entry = make_lake(tmp_path)
        (tmp_path / "icewright.toml").write_text(
            f'[[catalogs]]\nname = "lake"\ntype = "sql"\nuri = "{entry.uri}"\nwarehouse = "{entry.warehouse}"\n'
        )
        config = load_config(None, {"HOME": str(tmp_path)}, tmp_path)
        cluster = ClusterConfig(
            coordinator="zookeeper",
            zookeeper_hosts=town.server.hosts,
            zookeeper_root=town.settings.root,
            zookeeper_session_ms=2_000,
            zookeeper_user=USER,
            zookeeper_password="env:ZOOKEEPER_PASSWORD",  # noqa: S106 - a reference
        )
        return replace(config, cluster=cluster, server=replace(config.server, store_url=postgres_store_url))

    def test_a_server_leads_and_has_all_buckets(self, config: Config) -> None:
        environ = {"ZOOKEEPER_PASSWORD": PASSWORD}
        with open_control_plane(config, environ) as opened, open_coordination(config, environ, opened) as found:
            assert isinstance(found.election, ZooKeeperElection)
            sharing = not_none(found.sharing("server-1"))
            sharing.share.keep()
            engine = not_none(found.election.lead())
            sharing.share.assign(engine)
            sharing.share.keep()
            assert len(sharing.share.buckets) == BUCKETS
            assert sharing.share.coordinator.link.coordinator == "zookeeper"

    def test_a_server_of_another_store_does_not_start_in_its_root(self, config: Config) -> None:
        environ = {"ZOOKEEPER_PASSWORD": PASSWORD}
        with open_control_plane(config, environ) as opened:
            for _ in range(2):  # the same store, again
                with open_coordination(config, environ, opened):
                    pass
            with writing(opened.engine) as connection:
                connection.execute(update(counters).where(counters.c.name == STORE_IDENTITY).values(value=1))
            with pytest.raises(InvalidConfiguration, match="the root of another store") as refused:
                open_coordination(config, environ, opened).__enter__()
        hint = refused.value.hint or ""
        before, _, _ = hint.partition("remove /")
        for check in ("check server.store_url first", "stop all servers of the other store", "/nodes is empty"):
            assert check in before

    def test_what_is_missing_is_told(
        self, config: Config, zookeeper: ZooKeeperServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        authorities = zookeeper.authority.certificate
        with open_control_plane(config, {}) as opened:
            with pytest.raises(InvalidConfiguration, match=r"cluster\.zookeeper_password: the environment has no"):
                open_coordination(config, {}, opened).__enter__()
            environ, here = {"ZOOKEEPER_PASSWORD": PASSWORD}, Path(__file__)
            for ca, certificate in ((here.with_name("nothing"), None), (here, None), (None, here)):
                own = config.cluster if certificate is None else replace(config.cluster, zookeeper_certificate=here)
                authority = ca or authorities
                unusable = replace(config, cluster=replace(own, zookeeper_ca=authority, zookeeper_key=certificate))
                with pytest.raises(InvalidConfiguration, match="by TLS cannot be used"):
                    open_coordination(unusable, environ, opened).__enter__()
            monkeypatch.setattr("icewright.core.extras.find_spec", lambda _package: None)
            with pytest.raises(InvalidConfiguration, match="kazoo") as caught:
                open_coordination(config, {}, opened).__enter__()
            assert "icewright[zookeeper]" in caught.value.hint
