"""B14: servers that share the looks of one store: looks a second, take-over, moves, and the first pass.

Real ``icewright serve`` processes over one PostgreSQL, which keeps what it answered; tables are metadata alone, in an
SQL catalog on this machine. All way to the database goes through a relay that makes each round trip longer. Nobody is
compared: what is measured is one server against several of the same.

- Looks a second: each table gets an event that says nothing new, written past the servers; the time until all are
  done. The way to the database is made longer until one server, its database included, uses 15 % of a core at most: so
  what several servers can gain is not what two cores can do. Figures without any delay stand beside it.
- Take-over: the time from kill -9 of one of three servers until another one has done an event of its tables.
- Moves: buckets that change their server when a fourth joins, and when it is ended, against the fewest possible.
- First pass: tables that nobody has seen, four servers, the database 5 ms away; the later half of the tables counts,
  when all servers have started. To 100,000 tables it is a rule of three.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks import machine
from benchmarks.cluster import DEFAULT_HEARTBEATS_MS, Cluster, await_answer, lasting_postgres, moved
from benchmarks.many_tables import Kind, ManyTables
from benchmarks.results import AT_LEAST, AT_MOST, Case, Figure, Result, Target, amount
from icewright.core.servers import BUCKETS
from icewright.core.system_clock import SystemClock
from icewright.model.events.events import CommitEvent
from icewright.store.scope_filters import bucket_of
from icewright.work.store.table_store import SqlTableStore
from tests.servers.postgres import PostgresServer
from tests.servers.relay import Relay

NAME: Final = "B14"
TITLE: Final = "servers that share the looks of one store"
LINEAR: Final = Target(AT_LEAST, 0.85)
FEWEST: Final = Target(AT_MOST, 1.0)
FIRST_PASS: Final = Target(AT_MOST, 15)
_CPU_SHARE_MAX: Final = 0.15
_DELAY_MS_MAX: Final = 256.0
_FIRST_PASS_DELAY_MS: Final = 5.0
_FIRST_PASS_SERVERS: Final = 4
_FLEET: Final = 100_000
_FAST_MS: Final = (1_000, 3_000)
_KIND: Final = Kind("12 files", 1, 4, 3)

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Options:
    """``tables`` of the lake; ``rounds`` of events for each number of ``servers``; heartbeats as they are killed by.

    ``heartbeats`` are pairs: of heartbeats and of the silence that makes a server dead, ms.
    """

    tables: int
    rounds: int
    servers: tuple[int, ...]
    heartbeats: tuple[tuple[int, int], ...]
    seed: int


def short(seed: int) -> Options:
    """The options that only show that everything works."""
    return Options(12, 1, (1, 2), (_FAST_MS,), seed)


def usual(seed: int) -> Options:
    """The options of the published result."""
    return Options(200, 3, (1, 2, 4), (_FAST_MS, DEFAULT_HEARTBEATS_MS), seed)


class _DistantCluster(Cluster):
    """Servers whose way to the database is longer."""

    def __init__(self, folder: Path, lake: ManyTables, server: PostgresServer, heartbeats_ms: tuple[int, int]) -> None:
        self.relay = Relay(server.port)
        super().__init__(folder, lake, server, heartbeats_ms=heartbeats_ms, port=self.relay.port)
        self.names = [lake.name(number) for number in range(lake.tables)]
        self._store = SqlTableStore(self.engine, SystemClock())

    def close(self) -> None:
        """See the base."""
        super().close()
        self.relay.cut()

    def report(self) -> None:
        """An event for each table, past the servers."""
        self._store.receive(*[CommitEvent(name) for name in self.names], share_max=10**6)

    def waiting_in(self, buckets: frozenset[int]) -> int:
        """Events that are not done, of the tables of some buckets."""
        return sum(bucket_of(one.event.table_name) in buckets for one in self._store.inbox(len(self.names)))


def run(folder: Path, options: Options, say: Say) -> Result:
    """Measure all four. Raises :class:`Mismatch` where servers do not do what they should."""
    before, cases = machine.description(), list[Case]()
    lake = ManyTables(folder, [_KIND], options.tables, options.seed)
    lake.write(["icewright"])
    with lasting_postgres() as server:

        @contextmanager
        def cluster(name: str, heartbeats: tuple[int, int] = _FAST_MS) -> Iterator[_DistantCluster]:
            (folder / name).mkdir()
            made = _DistantCluster(folder / name, lake, server, heartbeats)
            try:
                yield made
            finally:
                made.close()

        with cluster("first-pass") as found:
            cases.append(_first_pass(found, options, say))
        with cluster("looks") as found:
            cases += _looks(found, options, say)
        for heartbeats in options.heartbeats:
            with cluster(f"take-over-{heartbeats[0]}", heartbeats) as found:
                cases.append(_take_over(found, heartbeats, say))
                if heartbeats == _FAST_MS:
                    cases += _moves(found, say)
    return Result(
        benchmark=NAME,
        title=f"{TITLE}: {options.tables:,} tables",
        measured_at=machine.today(),
        versions=machine.versions(["icewright", "pyiceberg", "sqlalchemy", "psycopg"]),
        cores=machine.cores(),
        machine=before,
        seed=options.seed,
        cases=tuple(cases),
    )


def _first_pass(found: _DistantCluster, options: Options, say: Say) -> Case:
    """How long the later half of the tables takes: all servers have started by then."""
    found.relay.delay_s = _FIRST_PASS_DELAY_MS / 1000
    found.begin(_FIRST_PASS_SERVERS)
    half = await_answer(
        lambda: (count := found.known()) >= options.tables // 2 and count, "half of the tables are looked at"
    )
    began_s = time.monotonic()
    await_answer(lambda: found.known() == options.tables, "all tables are looked at")
    rate = (options.tables - half) / (time.monotonic() - began_s)
    say(f"first pass over {options.tables:,} tables by {_FIRST_PASS_SERVERS} servers: {rate:.1f} a second")
    figure = Figure(f"{_FIRST_PASS_SERVERS} servers", 1, 1, _FLEET / rate / 60)
    return amount("first pass, 5 ms to the database", f"minutes for {_FLEET:,} tables", [figure], FIRST_PASS)


def _looks(found: _DistantCluster, options: Options, say: Say) -> list[Case]:
    near, far = dict[int, list[Figure]](), dict[int, list[Figure]]()
    delay_ms = 0.0
    for servers in options.servers:
        found.relay.delay_s = 0.0
        found.begin(servers)
        found.await_shares(servers)
        await_answer(lambda: found.known() == options.tables, "all tables are looked at")
        near[servers] = [_round(found, servers, number, say) for number in range(1, options.rounds + 1)]
        if servers == options.servers[0]:
            delay_ms = _far_enough(found, say)
        found.relay.delay_s = delay_ms / 1000
        far[servers] = [_round(found, servers, number, say) for number in range(1, options.rounds + 1)]
    one = options.servers[0]
    cases = []
    for case, rates, target in ((f"{delay_ms:g} ms to the database", far, LINEAR), ("no delay", near, None)):
        for servers, figures in rates.items():
            cases.append(amount(f"{servers} servers, {case}", "looks a second", figures))
            if servers > one:
                shares = [
                    Figure(one_of.contestant, one_of.round, 1, one_of.value / base.value / servers)
                    for one_of, base in zip(figures, rates[one], strict=True)
                ]
                cases.append(amount(f"{servers} servers, {case}", "share of linear", shares, target))
    return cases


def _far_enough(found: _DistantCluster, say: Say) -> float:
    """The delay at which a server and its database use a small share of one core, ms."""
    delay_ms = 1.0
    while True:
        found.relay.delay_s = delay_ms / 1000
        cpu_s, began_s = found.cpu_s(), time.monotonic()
        _round(found, 1, 0, say)
        share = (found.cpu_s() - cpu_s) / (time.monotonic() - began_s)
        say(f"{delay_ms:g} ms: {share:.0%} of a core")
        if share <= _CPU_SHARE_MAX or delay_ms >= _DELAY_MS_MAX:
            return delay_ms
        delay_ms *= 2


def _round(found: _DistantCluster, servers: int, number: int, say: Say) -> Figure:
    """Looks a second while each table is looked at once."""
    found.report()
    began_s = time.monotonic()
    await_answer(lambda: found.waiting() == 0, "all events are done")
    rate = len(found.names) / (time.monotonic() - began_s)
    say(f"{servers} servers, {found.relay.delay_s * 1000:g} ms: {rate:.1f} looks a second")
    return Figure(f"{servers} servers", number, 1, rate)


def _take_over(found: _DistantCluster, heartbeats: tuple[int, int], say: Say) -> Case:
    """Seconds from kill -9 of one of three servers to the first event of its tables that another one has done."""
    found.begin(3)
    shared = found.await_shares(3)
    await_answer(lambda: found.known() == len(found.names), "all tables are looked at")
    victim, url = found.machines[2], found.machines[2].client().url
    server_id = next(one["server_id"] for one in shared["servers"] if one["url"] == url)
    lost = frozenset(one["bucket"] for one in shared["buckets"] if one["server_id"] == server_id)
    victim.running["serve"].send_signal(signal.SIGKILL)
    victim.running.pop("serve").wait()
    killed_s = time.monotonic()
    found.report()
    expected = sum(bucket_of(name) in lost for name in found.names)
    await_answer(lambda: found.waiting_in(lost) < expected, "another server looks at a table of the killed one")
    took_s = time.monotonic() - killed_s
    say(f"taken over after {took_s:.1f} s with heartbeats of {heartbeats[0]} ms, dead after {heartbeats[1]} ms")
    await_answer(lambda: found.waiting() == 0, "all events are done")
    case = f"take-over, heartbeat {heartbeats[0] / 1000:g} s, dead after {heartbeats[1] / 1000:g} s"
    return amount(case, "seconds to the first look", [Figure("3 servers", 1, 1, took_s)])


def _moves(found: _DistantCluster, say: Say) -> list[Case]:
    """A third server comes and goes: two are left of the take-over."""
    before = found.await_shares(2)
    found.begin(len(found.machines) + 1)
    joined = found.await_shares(3)
    found.end(found.machines[-1])
    left = found.await_shares(2)
    third = {one["server_id"] for one in joined["buckets"]} - {one["server_id"] for one in before["buckets"]}
    held = sum(one["server_id"] in third for one in joined["buckets"])
    cases = []
    steps = (("a third server joins", before, joined, BUCKETS // 3), ("it leaves", joined, left, held))
    for what, earlier, later, fewest in steps:
        count = moved(earlier, later)
        say(f"{what}: {count} buckets moved, {fewest} at least")
        cases.append(amount(what, "moves to the fewest possible", [Figure("moves", 1, 1, count / fewest)], FEWEST))
    return cases
