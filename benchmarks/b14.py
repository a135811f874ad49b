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
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil
from sqlalchemy import Engine, func, make_url, select

from benchmarks import machine
from benchmarks.lake import Mismatch
from benchmarks.many_tables import Kind, ManyTables
from benchmarks.measure import ProcessTree
from benchmarks.results import AT_LEAST, AT_MOST, Case, Figure, Result, Target, amount
from icewright.api_client.client import Client
from icewright.core.errors import IcewrightError
from icewright.core.servers import BUCKETS
from icewright.core.system_clock import SystemClock
from icewright.events.schema import inbox
from icewright.model.events.events import CommitEvent
from icewright.model.iceberg.tables import Json
from icewright.store.engine import open_store
from icewright.store.schema import tables
from icewright.store.scope_filters import bucket_of
from icewright.work.store.table_store import SqlTableStore
from tests.e2e.processes import Processes, several_servers
from tests.servers.postgres import PostgresServer, find_programs, postgres_server
from tests.servers.relay import Relay

NAME: Final = "B14"
TITLE: Final = "servers that share the looks of one store"
LINEAR: Final = Target(AT_LEAST, 0.85)
FEWEST: Final = Target(AT_MOST, 1.0)
FIRST_PASS: Final = Target(AT_MOST, 15)
_CPU_SHARE_MAX: Final = 0.15
_DELAY_MS_MAX: Final = 64.0
_FIRST_PASS_DELAY_MS: Final = 5.0
_FIRST_PASS_SERVERS: Final = 4
_FLEET: Final = 100_000
_FAST_MS: Final = (1_000, 3_000)
_DEFAULT_MS: Final = (30_000, 90_000)
_POLL_S: Final = 0.1
_WAIT_S: Final = 1_200.0
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
    return Options(600, 3, (1, 2, 4), (_FAST_MS, _DEFAULT_MS), seed)


class Cluster:
    """Servers over one store, the longer way to it, and a look into it that goes straight."""

    def __init__(self, folder: Path, lake: ManyTables, server: PostgresServer, heartbeats: tuple[int, int]) -> None:
        self._folder, self._lake, self._postgres, self._heartbeats = folder, lake, server, heartbeats
        self.names = [lake.name(number) for number in range(lake.tables)]
        self._stack, self._database = ExitStack(), server.new_database()
        self.relay = Relay(server.port)
        self._engine: Engine = open_store(self._database)
        away = make_url(self._database).set(port=self.relay.port).render_as_string(hide_password=False)
        self._make = self._stack.enter_context(several_servers(folder, lake.entry("icewright"), away))
        self.machines: list[Processes] = []
        self._database_tree = ProcessTree(_postmaster(server.port))
        self._store = SqlTableStore(self._engine, SystemClock())

    def close(self) -> None:
        """End all servers."""
        self._stack.close()
        self._engine.dispose()
        self.relay.cut()
        self._postgres.drop(self._database)

    def begin(self, count: int) -> None:
        """Start further servers, until there are so many."""
        heartbeat_ms, dead_ms = self._heartbeats
        while len(self.machines) < count:
            made = self._make(f"server-{len(self.machines)}")
            cluster = f"\n[cluster]\nheartbeat_ms = {heartbeat_ms}\ndead_ms = {dead_ms}\n"
            made.configuration.write_text(made.configuration.read_text() + cluster)
            made.start("serve")
            self.machines.append(made)

    def client(self) -> Client:
        """Of the first server."""
        return self.machines[0].client()

    def await_shares(self, count: int) -> Json:
        """The cluster once so many servers have all buckets, as even as can be, and none is on its way."""

        def settled() -> Json | None:
            try:
                found = self.client().cluster()
            except IcewrightError:
                return None
            live = [one["buckets"] for one in found["servers"] if one["session"] is not None]
            moves = any(one["coming"] for one in found["servers"])
            even = len(live) == count and sum(live) == BUCKETS and not moves and max(live) - min(live) <= 1
            return found if even else None

        found: Json = _await(settled, f"{count} servers have all buckets")
        return found

    def known(self) -> int:
        """Tables that were looked at."""
        with self._engine.connect() as connection:
            return connection.execute(select(func.count()).where(tables.c.listed.is_not(None))).scalar_one()

    def report(self) -> None:
        """An event for each table, past the servers."""
        self._store.receive(*[CommitEvent(name) for name in self.names], share_max=10**6)

    def waiting(self, buckets: frozenset[int] | None = None) -> int:
        """Events that are not done; of the tables of some buckets, where that is asked."""
        if buckets is None:
            with self._engine.connect() as connection:
                return connection.execute(select(func.count()).where(inbox.c.done_at.is_(None))).scalar_one()
        return sum(bucket_of(one.event.table_name) in buckets for one in self._store.inbox(len(self.names)))

    def cpu_s(self) -> float:
        """Of all servers, and of the database."""
        found = [ProcessTree(psutil.Process(one.running["serve"].pid)) for one in self.machines]
        return sum(tree.cpu_s() for tree in found) + self._database_tree.cpu_s()


def run(folder: Path, options: Options, say: Say) -> Result:
    """Measure all four. Raises :class:`Mismatch` where servers do not do what they should."""
    programs = find_programs()
    if programs is None:
        raise RuntimeError("PostgreSQL's programs are not installed: scripts/install_programs.py says how")
    before, cases = machine.description(), list[Case]()
    lake = ManyTables(folder, [_KIND], options.tables, options.seed)
    lake.write(["icewright"])
    with postgres_server(programs, settings=("shared_buffers=128MB", "max_connections=300")) as server:

        @contextmanager
        def cluster(name: str, heartbeats: tuple[int, int] = _FAST_MS) -> Iterator[Cluster]:
            (folder / name).mkdir()
            made = Cluster(folder / name, lake, server, heartbeats)
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


def _first_pass(found: Cluster, options: Options, say: Say) -> Case:
    """How long the later half of the tables takes: all servers have started by then."""
    found.relay.delay_s = _FIRST_PASS_DELAY_MS / 1000
    found.begin(_FIRST_PASS_SERVERS)
    half = _await(lambda: (count := found.known()) >= options.tables // 2 and count, "half of the tables are looked at")
    began_s = time.monotonic()
    _await(lambda: found.known() == options.tables, "all tables are looked at")
    rate = (options.tables - half) / (time.monotonic() - began_s)
    say(f"first pass over {options.tables:,} tables by {_FIRST_PASS_SERVERS} servers: {rate:.1f} a second")
    figure = Figure(f"{_FIRST_PASS_SERVERS} servers", 1, 1, _FLEET / rate / 60)
    return amount("first pass, 5 ms to the database", f"minutes for {_FLEET:,} tables", [figure], FIRST_PASS)


def _looks(found: Cluster, options: Options, say: Say) -> list[Case]:
    near, far = dict[int, list[Figure]](), dict[int, list[Figure]]()
    delay_ms = 0.0
    for servers in options.servers:
        found.relay.delay_s = 0.0
        found.begin(servers)
        found.await_shares(servers)
        _await(lambda: found.known() == options.tables, "all tables are looked at")
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


def _far_enough(found: Cluster, say: Say) -> float:
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


def _round(found: Cluster, servers: int, number: int, say: Say) -> Figure:
    """Looks a second while each table is looked at once."""
    found.report()
    began_s = time.monotonic()
    _await(lambda: found.waiting() == 0, "all events are done")
    rate = len(found.names) / (time.monotonic() - began_s)
    say(f"{servers} servers, {found.relay.delay_s * 1000:g} ms: {rate:.1f} looks a second")
    return Figure(f"{servers} servers", number, 1, rate)


def _take_over(found: Cluster, heartbeats: tuple[int, int], say: Say) -> Case:
    """Seconds from kill -9 of one of three servers to the first event of its tables that another one has done."""
    found.begin(3)
    shared = found.await_shares(3)
    _await(lambda: found.known() == len(found.names), "all tables are looked at")
    victim, url = found.machines[2], found.machines[2].client().url
    server_id = next(one["server_id"] for one in shared["servers"] if one["url"] == url)
    lost = frozenset(one["bucket"] for one in shared["buckets"] if one["server_id"] == server_id)
    victim.running["serve"].send_signal(signal.SIGKILL)
    victim.running.pop("serve").wait()
    killed_s = time.monotonic()
    found.report()
    expected = sum(bucket_of(name) in lost for name in found.names)
    _await(lambda: found.waiting(lost) < expected, "another server looks at a table of the killed one")
    took_s = time.monotonic() - killed_s
    say(f"taken over after {took_s:.1f} s with heartbeats of {heartbeats[0]} ms, dead after {heartbeats[1]} ms")
    _await(lambda: found.waiting() == 0, "all events are done")
    case = f"take-over, heartbeat {heartbeats[0] / 1000:g} s, dead after {heartbeats[1] / 1000:g} s"
    return amount(case, "seconds to the first look", [Figure("3 servers", 1, 1, took_s)])


def _moves(found: Cluster, say: Say) -> list[Case]:
    """A third server comes and goes: two are left of the take-over."""
    before = found.await_shares(2)
    found.begin(len(found.machines) + 1)
    joined = found.await_shares(3)
    found.machines[-1].running["serve"].terminate()
    found.machines[-1].running.pop("serve").wait()
    left = found.await_shares(2)
    third = {one["server_id"] for one in joined["buckets"]} - {one["server_id"] for one in before["buckets"]}
    held = sum(one["server_id"] in third for one in joined["buckets"])
    cases = []
    steps = (("a third server joins", before, joined, BUCKETS // 3), ("it leaves", joined, left, held))
    for what, earlier, later, fewest in steps:
        pairs = zip(earlier["buckets"], later["buckets"], strict=True)
        moved = sum(one["server_id"] != other["server_id"] for one, other in pairs)
        say(f"{what}: {moved} buckets moved, {fewest} at least")
        cases.append(amount(what, "moves to the fewest possible", [Figure("moves", 1, 1, moved / fewest)], FEWEST))
    return cases


def _postmaster(port: int) -> psutil.Process:
    """The server's first process. Raises :class:`Mismatch` where there is none."""
    for process in psutil.process_iter(["name", "cmdline"]):
        words = process.info["cmdline"] or ()
        if process.info["name"] == "postgres" and "-p" in words and str(port) in words:
            return process
    raise Mismatch(f"no PostgreSQL listens at port {port}")


def _await(look: Callable[[], Any], what: str) -> Any:
    until_s = time.monotonic() + _WAIT_S
    while time.monotonic() < until_s:
        found = look()
        if found:
            return found
        time.sleep(_POLL_S)
    raise Mismatch(f"waited {_WAIT_S:g} s in vain: {what}")
