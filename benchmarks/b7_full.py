"""B7 in full: the inventory of 100,000 tables while commits arrive, by three servers and then by one.

Real ``icewright serve`` processes over one PostgreSQL that keeps what it answered, catalogs in mode ``observe``. The
phases come after each other, and what each has found is kept before the next one begins:

- First look: all servers start at tables that nobody has seen. Their CPU counts from their start.
- Nothing to do: all tables are known and no commit arrives; what is left is the sweep.
- Half of the commits with all servers, over tables of all kinds by their number, told to the servers in turn. A lag is
  from the swap of a pointer until the commit is in the inventory (:mod:`benchmarks.stream` says how exactly). What the
  servers cost includes taking in events, moving inventories forward, planning and sweeping.
- The peer, while no commit arrives: PyIceberg is told for nothing which table changed, loads it and inspects it; a
  sample of the commits of each kind. Its CPU a commit of all is the mean over kinds by their number.
- All servers but the first, which leads, end; their buckets move. What a server noted of tables to pass them over goes
  with it: each of them gets a full look when it is due, within an hour, and many of these are in the other half.
- The other half of the commits with one server.

``cpu_ratio`` is the peer's CPU over that of the servers and the database together, which has our own looks into the
store in it. Memory is sampled every :data:`SAMPLE_S`. Commits are written when they are due, by this process, whose
CPU is not counted; all share the machine's cores. At the end every commit must be in the inventory, and inventories of
some tables of each kind must be what PyIceberg counts.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import quantiles
from typing import Final

from benchmarks import b7, machine
from benchmarks.cluster import Cluster, await_answer, lasting_postgres, moved
from benchmarks.contest import hold
from benchmarks.lake import Mismatch
from benchmarks.many_tables import Commit, Kind, ManyTables, Pointers
from benchmarks.measure import ProcessTree
from benchmarks.results import Case, Figure, Result, amount
from benchmarks.stream import Stream, lost
from benchmarks.watchers import Poller, told_partitions
from tests.e2e.processes import Processes, led_by

NAME: Final = "B7-full"
SAMPLE_S: Final = 5.0
_SERVERS: Final = "servers"
_DATABASE: Final = "database"
_TELL_S: Final = 60.0
_STALLED_S: Final = 300.0
_LOOK_S_MIN: Final = 0.2
_LOOK_REST: Final = 20
_PACKAGES: Final = (*b7.PACKAGES, "psycopg")

Say = Callable[[str], None]
Keep = Callable[[Result], object]


@dataclass(frozen=True, slots=True)
class Options:
    """How much to measure.

    With ``servers`` and then with one there are ``parts`` of ``commits`` commits, ``per_s`` a second. The peer inspects
    ``inspected`` of each kind in each of ``warmups`` and ``rounds`` rounds. ``compared`` tables of each kind are
    compared at the end. ``idle_s``: how long the servers are watched with nothing to do.
    """

    kinds: Sequence[Kind]
    tables: int
    seed: int
    servers: int
    parts: int
    commits: int
    per_s: float
    warmups: int
    rounds: int
    inspected: int
    compared: int
    idle_s: float


KINDS: Final = tuple(replace(kind, share=share) for kind, share in zip(b7.KINDS, (980, 19, 1), strict=True))
"""As of B7, but most are small: 16 million files. With B7's shares there are 266 million; first looks take hours."""


def short(seed: int) -> Options:
    """The options that only show that everything works."""
    return Options(b7.SHORT_KINDS, 6, seed, 2, 2, 12, 40.0, 1, 1, 2, 3, 0.1)


def full(seed: int) -> Options:
    """The options of the published result: half an hour with three servers, and half an hour with one."""
    return Options(KINDS, 100_000, seed, 3, 5, 7_920, 22.0, 1, 5, 12, 10, 120.0)


def run(folder: Path, options: Options, say: Say, keep: Keep) -> Result:
    """Measure in ``folder``, which must be empty and is left with the lake in it.

    ``keep`` is given all that is there after each phase. Raises :class:`~benchmarks.lake.Mismatch` when a commit is
    lost, or an inventory is not what PyIceberg counts.
    """
    half_s = options.parts * options.commits / options.per_s
    title = (
        f"{b7.TITLE}: {options.tables:,} tables, {options.per_s:g} commits a second, "
        f"{half_s / 60:.3g} minutes with {_named(options.servers)} and as long with one"
    )
    before, began_s, cases = machine.description(), time.monotonic(), list[Case]()
    result = Result(
        benchmark=NAME,
        title=title,
        measured_at=machine.today(),
        versions=machine.versions(_PACKAGES),
        cores=machine.cores(),
        machine=before,
        seed=options.seed,
        cases=(),
    )
    lake = ManyTables(folder, options.kinds, options.tables, options.seed)
    lake.write([b7.ICEWRIGHT, b7.PEER])
    say(f"{options.tables:,} tables written, {time.monotonic() - began_s:.0f} s")
    with (
        lasting_postgres() as postgres,
        closing(Cluster(folder, lake, postgres, mode="observe")) as cluster,
        closing(Pointers(lake.entry(b7.ICEWRIGHT))) as pointers,
    ):
        watch = _Watch(folder, lake, cluster, pointers, options, say)
        for phase in watch.phases:
            what = phase.__name__.strip("_").replace("_", " ")
            since_s = time.monotonic()
            cases += phase()
            say(f"{what}: over after {(time.monotonic() - since_s) / 60:.1f} minutes")
            keep(replace(result, title=f"{title}; broken off after {what}", cases=tuple(cases)))
    return replace(result, cases=tuple(cases))


class _Gauge:
    """A process and all below it from now on: its CPU, and the most memory of any sample."""

    def __init__(self, tree: ProcessTree) -> None:
        self._tree, self._before_s, self.peak_bytes = tree, tree.cpu_s(), 0

    @property
    def cpu_s(self) -> float:
        return self._tree.cpu_s() - self._before_s

    def sample(self) -> None:
        self.peak_bytes = max(self.peak_bytes, sum(one.memory_bytes for one in self._tree.look().values()))


@dataclass(slots=True)
class _Watch:
    """Everything about one lake."""

    folder: Path
    lake: ManyTables
    cluster: Cluster
    pointers: Pointers
    options: Options
    say: Say
    last: dict[str, Commit] = field(default_factory=dict)
    """The last commit of each table that has some, by its uuid."""
    seen: dict[Kind, list[Commit]] = field(default_factory=dict)
    """All commits of each kind."""
    peer_ms: list[Figure] = field(default_factory=list)
    """The peer's CPU a commit, over all kinds."""
    ours_ms: dict[str, list[Figure]] = field(default_factory=dict)
    """CPU a commit with all servers: of the servers, and of the database."""

    @property
    def phases(self) -> tuple[Callable[[], list[Case]], ...]:
        """In their order; each gives its cases."""
        return (
            self._first_look,
            self._nothing_to_do,
            self._commits_with_all_servers,
            self._peer,
            self._moves,
            self._commits_with_one_server,
        )

    def _first_look(self) -> list[Case]:
        options, began_s = self.options, time.monotonic()
        database = _Gauge(self.cluster.database_tree)
        self.cluster.begin(1)
        client = self.cluster.client()
        led_by(self.cluster.machines[0], client, client.url)
        self.cluster.begin(options.servers)
        found, changed_s, tell_s = 0, time.monotonic(), time.monotonic() + _TELL_S
        while found < options.tables:
            asked_s = time.monotonic()
            known = self.cluster.known()
            now_s = time.monotonic()
            if known > found:
                found, changed_s = known, now_s
            if now_s - changed_s > _STALLED_S:
                raise Mismatch(f"{found} of {options.tables} tables were looked at")
            if now_s >= tell_s:
                tell_s += _TELL_S
                minutes = (now_s - began_s) / 60
                self.say(f"  {found:,} tables after {minutes:.0f} minutes, {found / minutes / 60:.1f} a second")
            time.sleep(max(_LOOK_S_MIN, _LOOK_REST * (now_s - asked_s)))
        wall_s = time.monotonic() - began_s
        servers_s = [tree.cpu_s() for tree in self.cluster.trees()]
        shares = ", ".join(f"{cpu_s:.0f}" for cpu_s in servers_s)
        self.say(f"  first look at {found:,} tables: {shares} CPU s of servers, {database.cpu_s:.0f} of the database")
        metric = "CPU for the first look at a table, ms"
        return [
            b7.single(b7.ALL, "first look at all tables, minutes", wall_s / 60),
            b7.single(b7.ALL, f"{metric}: {_SERVERS}", sum(servers_s) * 1000 / options.tables),
            b7.single(b7.ALL, f"{metric}: {_DATABASE}", database.cpu_s * 1000 / options.tables),
        ]

    def _nothing_to_do(self) -> list[Case]:
        self.cluster.await_shares(self.options.servers)
        began_s = time.monotonic()
        servers, database = [_Gauge(tree) for tree in self.cluster.trees()], _Gauge(self.cluster.database_tree)
        time.sleep(self.options.idle_s)
        used_s = {_SERVERS: sum(one.cpu_s for one in servers), _DATABASE: database.cpu_s}
        wall_s = time.monotonic() - began_s
        metric = "CPU with nothing to do, share of a core"
        return [b7.single(b7.ALL, f"{metric}: {who}", cpu_s / wall_s) for who, cpu_s in used_s.items()]

    def _commits_with_all_servers(self) -> list[Case]:
        cases, self.ours_ms = self._half(self.cluster.machines)
        return cases

    def _commits_with_one_server(self) -> list[Case]:
        name = _named(1)
        cases, ours_ms = self._half(self.cluster.machines[:1])
        gone = lost(self.cluster.database, list(self.last.values()))
        if gone:
            raise Mismatch(f"{len(gone)} commits are not in the inventory, {gone[0].name} among their tables")
        told = partial(told_partitions, self.cluster.client())
        chance = random.Random(self.options.seed)  # noqa: S311 - an order, no secret
        for kind in self.options.kinds:
            b7.compare(self.lake, kind, self.options.compared, chance, told)
            self.say(f"  {kind.name}: what the server tells of its tables is what PyIceberg counts")
        return [*cases, *self._ratios(name, ours_ms)]

    def _half(self, machines: Sequence[Processes]) -> tuple[list[Case], dict[str, list[Figure]]]:
        """Commits while these servers run; its cases, and CPU a commit by whose it is."""
        options, name = self.options, _named(len(machines))
        gauges = [_Gauge(tree) for tree in self.cluster.trees()]
        database = _Gauge(self.cluster.database_tree)
        began_s = time.monotonic()
        ours_ms: dict[str, list[Figure]] = {_SERVERS: [], _DATABASE: []}
        clients = [one.client() for one in machines]
        with Stream(self.cluster.database, self.pointers, clients) as stream:
            meanwhile = _Meanwhile((*gauges, database), stream, self.say)
            sent_s = 0.0
            for part in range(1, options.parts + 1):
                before = {_SERVERS: sum(one.cpu_s for one in gauges), _DATABASE: database.cpu_s}
                stream.send(self._commits(), options.per_s, meanwhile)
                if part == options.parts:
                    sent_s = time.monotonic() - began_s
                    stream.drain(meanwhile)
                after = {_SERVERS: sum(one.cpu_s for one in gauges), _DATABASE: database.cpu_s}
                for who, figures in ours_ms.items():
                    used_ms = (after[who] - before[who]) * 1000 / options.commits
                    figures.append(Figure(b7.ICEWRIGHT, part, 1, used_ms))
            meanwhile.sample()
        await_answer(lambda: self.cluster.waiting() == 0, "no event waits")
        wall_s = time.monotonic() - began_s
        if len(stream.lags_s) != options.parts * options.commits:
            raise Mismatch(f"{len(stream.lags_s)} of {options.parts * options.commits} commits were seen")
        cases = [
            *b7.lag_cases(name, stream.lags_s),
            b7.single(name, "lag max, s", max(stream.lags_s)),
            b7.single(name, "commits a second", options.parts * options.commits / sent_s),
            b7.single(name, "events that a server did not take at once", stream.told_again),
            *(amount(name, f"CPU a commit, ms: {who}", figures) for who, figures in ours_ms.items()),
            *self._of_each(name, gauges, wall_s),
            b7.single(name, "CPU of the database, share of a core", database.cpu_s / wall_s),
            b7.single(name, "memory of the database, GiB", database.peak_bytes / b7.GIB),
        ]
        return cases, ours_ms

    def _of_each(self, name: str, gauges: Sequence[_Gauge], wall_s: float) -> Iterator[Case]:
        for number, gauge in enumerate(gauges, start=1):
            who = f"server {number}" + (", which leads" if number == 1 and len(gauges) > 1 else "")
            peak = Figure(b7.ICEWRIGHT, 1, number, gauge.peak_bytes / b7.GIB)
            yield b7.single(name, f"CPU of {who}, share of a core", gauge.cpu_s / wall_s)
            yield amount(name, f"memory of {who}, GiB", [peak], b7.MEMORY_TARGET)

    def _commits(self) -> Iterator[Commit]:
        for commit in self.lake.mixed(self.options.commits):
            self.last[commit.table_uuid] = commit
            self.seen.setdefault(self.lake.kind_of(commit.name), []).append(commit)
            yield commit

    def _peer(self) -> list[Case]:
        options = self.options
        chance = random.Random(options.seed)  # noqa: S311 - an order, no secret
        per_commit_ms: dict[Kind, list[Figure]] = {}
        with closing(Poller(self.folder, self.lake.entry(b7.PEER))) as poller:
            for kind in options.kinds:
                self.say(f"{kind.name} a table, {options.warmups} of the rounds to warm up:")
                count = options.warmups + options.rounds
                samples = [chance.sample(self.seen[kind], options.inspected) for _ in range(count)]
                peers = b7.peers(poller, samples)
                runs = hold(peers, rounds=count, chance=chance, tree=poller.tree, say=self.say)
                per_commit_ms[kind] = [
                    Figure(one.contestant, one.round, one.position, one.cost.cpu_s * 1000 / options.inspected)
                    for one in runs
                    if one.round > options.warmups
                ]
        self.peer_ms = b7.together(per_commit_ms)
        cases = [
            amount(kind.name, f"CPU a commit, ms: {who}", [one for one in figures if one.contestant == who])
            for kind, figures in per_commit_ms.items()
            for who in b7.HOW
        ]
        return [*cases, *self._ratios(_named(options.servers), self.ours_ms)]

    def _ratios(self, name: str, ours_ms: dict[str, list[Figure]]) -> list[Case]:
        pairs = zip(ours_ms[_SERVERS], ours_ms[_DATABASE], strict=True)
        together = [replace(one, value=one.value + other.value) for one, other in pairs]
        alone = b7.ratios(name, [*self.peer_ms, *ours_ms[_SERVERS]])
        return [
            *b7.ratios(name, [*self.peer_ms, *together], b7.CPU_TARGET),
            *(replace(case, metric=f"{case.metric}, without our database") for case in alone),
        ]

    def _moves(self) -> list[Case]:
        """All servers but the first end, as people end them."""
        before = self.cluster.await_shares(self.options.servers)
        began_s = time.monotonic()
        for one in self.cluster.machines[1:]:
            self.cluster.end(one)
        after = self.cluster.await_shares(1)
        took_s = time.monotonic() - began_s
        first = {one["server_id"] for one in after["buckets"]}
        fewest = sum(one["server_id"] not in first for one in before["buckets"])
        count = moved(before, after)
        self.say(f"  {count} buckets moved, {fewest} at least, in {took_s:.1f} s")
        name = f"all servers but one of {self.options.servers} end"
        return [
            b7.single(name, "buckets moved", count),
            b7.single(name, "moves to the fewest possible", count / fewest),
            b7.single(name, "seconds until the other one has all", took_s),
        ]


class _Meanwhile:
    """What is done now and then while commits arrive: samples of memory, and a line of how it goes."""

    def __init__(self, gauges: Sequence[_Gauge], stream: Stream, say: Say) -> None:
        self._gauges, self._stream, self._say = tuple(gauges), stream, say
        self._sample_at_s, self._tell_at_s = time.monotonic(), time.monotonic() + _TELL_S

    def __call__(self) -> None:
        now_s = time.monotonic()
        if now_s >= self._sample_at_s:
            self._sample_at_s = now_s + SAMPLE_S
            self.sample()
        if now_s >= self._tell_at_s:
            self._tell_at_s = now_s + _TELL_S
            self._tell()

    def sample(self) -> None:
        """Note how much memory there is in use."""
        for gauge in self._gauges:
            gauge.sample()

    def _tell(self) -> None:
        lags_s = self._stream.lags_s
        p99 = f"{quantiles(lags_s, n=100)[98]:.2f} s" if len(lags_s) > 1 else "not known"
        used = ", ".join(f"{gauge.cpu_s:.0f}" for gauge in self._gauges)
        self._say(
            f"  {len(lags_s):,} commits are in the inventory, {self._stream.behind:,} are not; lag p99 {p99}; "
            f"{used} CPU s of servers and database"
        )


def _named(count: int) -> str:
    return "1 server" if count == 1 else f"{count} servers"
