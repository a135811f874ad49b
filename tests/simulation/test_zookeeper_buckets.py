"""With ZooKeeper as coordinator: away for all, away for one, sessions that expire; the store's epochs are the fence.

In CI 2 seeds run, and more until each kind of event has come up; ``ICEWRIGHT_CAMPAIGN=1`` runs 1,000;
``ICEWRIGHT_SIMULATION_SEED=N`` one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import Final, cast

import pytest
from sqlalchemy import Engine, select

from icewright.server.cluster.coordinator import Session, SqlCoordinator
from icewright.server.cluster.zookeeper import ZooKeeper
from icewright.server.cluster.zookeeper_coordinator import EXPIRED, ZooKeeperCoordinator
from icewright.server.cluster.zookeeper_election import DEPOSE_S
from icewright.store import transactions
from icewright.store.servers_schema import server_sessions
from icewright.store.transactions import reading
from tests.doubles.zookeeper import FakeEnsemble, FakeZooKeeper
from tests.simulation.buckets_world import DEAD_MS, LATE_MS, POLL_MS, AwayNowAndThen, BucketsWorld, Server
from tests.simulation.test_buckets import is_broken_by, simulate
from tests.simulation.test_simulation import CAMPAIGN, SEED
from tests.simulation.writers import Broken

SESSION_MS: Final = 2_500
RECONNECT_MS: Final = 1_500
DEPOSED_MS: Final = SESSION_MS + int(1_000 * DEPOSE_S)
"""How long a server leads at most that ZooKeeper does not hear of."""
SEEDS = range(1_000 if CAMPAIGN else 2) if SEED is None else range(int(SEED), int(SEED) + 1)
SPARE_SEEDS = range(SEEDS.stop, SEEDS.stop + 50)
MUST_HAPPEN = ("all away", "all forgotten", "cut off", "expired", "fenced", "killed", "written")


class Coordinators(ZooKeeperCoordinator, AwayNowAndThen):
    """That of the store, which is away now and then, and of ZooKeeper."""


class ZooKeeperWorld(BucketsWorld):
    """Servers that ZooKeeper knows, and loses."""

    of_zookeeper: type[Coordinators] = Coordinators
    late_ms = LATE_MS + 2 * SESSION_MS + RECONNECT_MS + int(1_000 * DEPOSE_S)

    def __init__(self, seed: int) -> None:
        self.cut_until: dict[str, int] = {}
        self.cut_since: dict[str, int] = {}
        self.zookeepers: dict[str, FakeZooKeeper] = {}
        self.back_at, self.forgets = 0, False
        self.unwell_at: dict[str, int] = {}
        self.judged: set[int] = set()
        self.ensemble: FakeEnsemble | None = None
        super().__init__(seed)

    def coordinator(self, name: str, monotonic_s: Callable[[], float]) -> AwayNowAndThen:
        if self.ensemble is None:
            self.ensemble = FakeEnsemble(self.clock, SESSION_MS)
        found = FakeZooKeeper(
            self.ensemble, lambda: self.reaches(name), monotonic_s, lambda: self.chance.randrange(RECONNECT_MS)
        )
        self.zookeepers[name] = found
        zookeeper = cast(ZooKeeper, found)
        return self.of_zookeeper(self.engine, zookeeper, self.clock, dead_ms=DEAD_MS, monotonic_s=monotonic_s)

    def reaches(self, name: str) -> bool:
        server = next((one for one in self.servers if one.name == name), None)
        return server is not None and self.runs(server) and self.clock.now() >= self.cut_until.get(name, 0)

    def may_lead(self, server: Server) -> bool:
        """While all are away, who leads goes on; else one that is cut off is deposed."""
        assert self.ensemble is not None
        if self.ensemble.is_away:
            return server is self.leader
        since = self.cut_since.get(server.name)
        return since is None or (server is self.leader and self.clock.now() - since <= DEPOSED_MS)

    def trouble(self) -> None:
        assert self.ensemble is not None
        super().trouble()
        now, happens = self.clock.now(), self.chance.random()
        if self.ensemble.is_away and now >= self.back_at:
            self.ensemble.come_back(forgets=self.forgets)
        elif happens < 0.02 and not self.ensemble.is_away:
            self.ensemble.is_away, self.forgets = True, self.chance.random() < 0.5
            self.back_at = now + self.chance.randrange(POLL_MS, 6 * SESSION_MS)
            self.counted["all forgotten" if self.forgets else "all away"] += 1
        elif happens < 0.05:
            victim = self.chance.choice(self.servers)
            self.cut_until[victim.name] = now + self.chance.randrange(POLL_MS, 6 * SESSION_MS)
            self.counted["cut off"] += 1
        self.ensemble.tick()
        for server in self.ever:
            if self.reaches(server.name):
                self.cut_since.pop(server.name, None)
            else:
                self.cut_since.setdefault(server.name, now)
                self.unwell_at[server.name] = now

    def judge_owners(self) -> None:
        """Nobody is expired who was there, and nothing moves while ZooKeeper is away."""
        assert self.ensemble is not None
        with reading(self.engine) as connection:
            ended = connection.execute(select(server_sessions).where(server_sessions.c.ended_by == EXPIRED)).mappings()
            new = [row for row in ended if row["session"] not in self.judged]
        for row in new:
            self.judged.add(row["session"])
            self.counted["expired"] += 1
            was_well_ms = self.clock.now() - self.unwell_at.get(row["server_id"], -(10**9))
            if was_well_ms > RECONNECT_MS + 2 * POLL_MS:
                raise Broken(f"{row['server_id']} was there, and is taken for dead")
            if self.ensemble.is_away:
                raise Broken(f"{row['server_id']} is taken for dead while ZooKeeper is away")
        if self.ensemble.is_away:
            self.idle_since.clear()
        else:
            super().judge_owners()


@pytest.mark.timeout(2 * 3600 if CAMPAIGN else 900)
def test_i14_i15_i18_whatever_zookeeper_says_each_table_has_one_owners_effects_and_none_is_left_alone() -> None:
    happened: Counter[str] = Counter()
    for seed in SEEDS if SEED is not None else chain(SEEDS, SPARE_SEEDS):
        if SEED is None and seed in SPARE_SEEDS and all(happened[what] for what in MUST_HAPPEN):
            break
        try:
            happened += simulate(seed, ZooKeeperWorld)
        except Exception as error:
            error.add_note(f"seed {seed}; ICEWRIGHT_SIMULATION_SEED={seed} runs it alone")
            raise
    if SEED is None:
        assert [what for what in MUST_HAPPEN if not happened[what]] == []


def test_a_session_of_zookeeper_is_no_fence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "_require_held", lambda _connection: None)
    is_broken_by(ZooKeeperWorld, "wrote for")


class BelievesAtOnce(Coordinators):
    """A leader that is back before the others, and takes them for dead."""

    def _over(self, sessions: Iterable[Session], own: int | None) -> Mapping[int, str]:
        present = self._zookeeper.present()
        return {one.session: EXPIRED for one in sessions if one.server_id not in present and one.session != own}


class AtOnce(ZooKeeperWorld):
    of_zookeeper = BelievesAtOnce


def test_a_leader_that_believes_at_once_that_all_others_are_gone_is_noticed() -> None:
    is_broken_by(AtOnce, "was there")


class AssignsBlindly(Coordinators):
    """A leader for which nobody is there whom it does not hear of."""

    def assign(self, engine: Engine, own: int | None = None, *, since: int | None = None) -> Mapping[str, int]:
        return SqlCoordinator.assign(self, engine, own, since=since)

    def _over(self, sessions: Iterable[Session], own: int | None) -> Mapping[int, str]:
        zookeeper = self._zookeeper
        present = zookeeper.present() if zookeeper.steady_s else frozenset[str]()
        return {one.session: EXPIRED for one in sessions if one.server_id not in present and one.session != own}


class Blindly(ZooKeeperWorld):
    of_zookeeper = AssignsBlindly


def test_a_leader_that_assigns_without_zookeeper_is_noticed() -> None:
    is_broken_by(Blindly, "while ZooKeeper is away|was there")
