"""B7: the inventory of many tables while commits arrive, against a process that inspects them with PyIceberg.

icewright is the real server with its SQLite store, told of each commit over HTTP; what it costs includes taking in
the event, moving the inventory forward, planning in mode ``observe`` and its sweeps. The peer is told for nothing
which table changed, loads it and inspects it; what finding that out by itself would cost it stands beside it.
The full form, with several servers, is :mod:`benchmarks.b7_full`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from typing import Any, Final

from pyiceberg.catalog.sql import SqlCatalog

from benchmarks import machine
from benchmarks.contest import Contestant, Run, hold
from benchmarks.lake import Mismatch
from benchmarks.many_tables import NAMESPACE, Commit, Kind, ManyTables
from benchmarks.measure import Meter
from benchmarks.results import AT_LEAST, AT_MOST, Case, Figure, Result, Target, amount, ratio
from benchmarks.watchers import Poller, Server
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import Json

NAME: Final = "B7"
TITLE: Final = "inventory of many tables while commits arrive, against PyIceberg's inspect"

ICEWRIGHT: Final = "icewright"
PEER: Final = "peer"
PARTITIONS: Final = "peer, inspect.partitions"
FILES: Final = "peer, inspect.files"
LOAD: Final = "peer, load_table"

CPU_TARGET: Final = Target(AT_LEAST, 100)
LAG_TARGET: Final = Target(AT_MOST, 5)
MEMORY_TARGET: Final = Target(AT_MOST, 4)

ALL: Final = "all"
HOW: Final[Mapping[str, str]] = {PARTITIONS: "partitions", FILES: "files", LOAD: "load"}
PACKAGES: Final = ("icewright", "pyiceberg", "pyarrow", "sqlalchemy", "fastapi")
GIB: Final = 1 << 30

KINDS: Final = (Kind("100 files", 6, 4, 25), Kind("2,000 files", 3, 40, 50), Kind("20,000 files", 1, 200, 100))
SHORT_KINDS: Final = (Kind("4 files", 1, 2, 2), Kind("12 files", 1, 4, 3))


@dataclass(frozen=True, slots=True)
class Options:
    """How much to measure.

    Each kind of table has ``warmups`` and ``rounds`` rounds of ``commits`` commits, ``per_s`` a second. The peer
    inspects ``inspected`` of them. ``compared`` tables of each kind are compared at the end. ``idle_s``: how long the
    server is watched with nothing to do.
    """

    kinds: Sequence[Kind]
    tables: int
    seed: int
    warmups: int
    rounds: int
    commits: int
    per_s: float
    inspected: int
    compared: int
    idle_s: float


def short(seed: int) -> Options:
    """The options that only show that everything works."""
    return Options(SHORT_KINDS, 6, seed, 1, 1, 6, 40.0, 2, 3, 0.1)


def usual(seed: int) -> Options:
    """2,000 tables and a minute of commits at the full rate, beside the rounds that do not count."""
    return Options(KINDS, 2_000, seed, 1, 5, 88, 22.0, 12, 10, 20.0)


def run(folder: Path, options: Options, say: Callable[[str], None]) -> Result:
    """Measure in ``folder``, which must be empty and is left with the lake in it.

    Raises :class:`~benchmarks.lake.Mismatch` when an inventory is not what PyIceberg counts.
    """
    where = machine.description()
    lake = ManyTables(folder, options.kinds, options.tables, options.seed)
    lake.write([ICEWRIGHT, PEER])
    say(f"{options.tables:,} tables")
    with (
        closing(Server(folder, lake.entry(ICEWRIGHT))) as server,
        closing(Poller(folder, lake.entry(PEER))) as poller,
    ):
        cases = _Watch(lake, server, poller, options, say).hold()
    return Result(
        benchmark=NAME,
        title=f"{TITLE}: {options.tables:,} tables, {options.per_s:g} commits a second",
        measured_at=machine.today(),
        versions=machine.versions(PACKAGES),
        cores=machine.cores(),
        machine=where,
        seed=options.seed,
        cases=tuple(cases),
    )


@dataclass(frozen=True, slots=True)
class _Watch:
    """Everything about one lake."""

    lake: ManyTables
    server: Server
    poller: Poller
    options: Options
    say: Callable[[str], None]

    def hold(self) -> list[Case]:
        options, chance = self.options, random.Random(self.options.seed)  # noqa: S311 - an order, no secret
        with Meter(self.server.tree) as first:
            self.server.wait_for_tables(options.tables)
        self.say(f" first look at all of them: {first.cost.cpu_s:.1f} CPU s, {first.cost.wall_s:.1f} s")
        lags_s: list[float] = []
        runs = {kind: self._contest(kind, chance, lags_s) for kind in options.kinds}
        with Meter(self.server.tree) as idle:
            time.sleep(options.idle_s)
        for kind in options.kinds:
            compare(self.lake, kind, options.compared, chance, self.server.partitions)
            self.say(f" {kind.name}: what the server tells of its tables is what PyIceberg counts")
        ours = [run for of_kind in runs.values() for run in of_kind if run.contestant == ICEWRIGHT]
        peaks = [Figure(r.contestant, r.round, r.position, r.cost.peak_memory_bytes / GIB) for r in ours]
        return [
            *self._cpu_cases({kind: self._per_commit_ms(of_kind) for kind, of_kind in runs.items()}),
            *lag_cases(ALL, lags_s),
            amount(ALL, "memory of our server, GiB", peaks, MEMORY_TARGET),
            single(ALL, "our CPU for the first look at a table, ms", first.cost.cpu_s * 1000 / options.tables),
            single(ALL, "our CPU with nothing to do, share of a core", idle.cost.cpu_s / idle.cost.wall_s),
        ]

    def _contest(self, kind: Kind, chance: random.Random, lags_s: list[float]) -> list[Run]:
        options = self.options
        self.say(f"{kind.name} a table, warm-up:")
        self._hold(kind, options.warmups, chance, [])
        self.say(f"{kind.name} a table:")
        return self._hold(kind, options.rounds, chance, lags_s)

    def _hold(self, kind: Kind, rounds: int, chance: random.Random, lags_s: list[float]) -> list[Run]:
        """The contest over new commits, of which each contestant has those of each round once."""
        commits = [self.lake.commits(kind, self.options.commits) for _ in range(rounds)]
        inspected = [chance.sample(of_round, self.options.inspected) for of_round in commits]
        contestants = [self._ours(commits, lags_s), *peers(self.poller, inspected)]
        return hold(contestants, rounds=rounds, chance=chance, tree=self.server.tree, say=self.say)

    def _ours(self, commits: Sequence[Sequence[Commit]], lags_s: list[float]) -> Contestant:
        rounds = iter(commits)

        def work(_meter: Meter) -> None:
            lags_s.extend(self.server.replay(next(rounds), self.options.per_s))

        return Contestant(ICEWRIGHT, _nothing, work, _nothing, self.server.tree)

    def _per_commit_ms(self, runs: Sequence[Run]) -> list[Figure]:
        commits = {ICEWRIGHT: self.options.commits}
        return [
            Figure(
                run.contestant,
                run.round,
                run.position,
                run.cost.cpu_s * 1000 / commits.get(run.contestant, self.options.inspected),
            )
            for run in runs
        ]

    def _cpu_cases(self, per_commit_ms: Mapping[Kind, list[Figure]]) -> list[Case]:
        cases = [
            *ratios(ALL, together(per_commit_ms), CPU_TARGET),
            *(case for kind, figures in per_commit_ms.items() for case in ratios(kind.name, figures)),
        ]
        for kind, figures in per_commit_ms.items():
            for who in (ICEWRIGHT, *HOW):
                own = [figure for figure in figures if figure.contestant == who]
                cases.append(amount(kind.name, f"CPU a commit, ms: {who}", own))
        return cases


def peers(poller: Poller, commits: Sequence[Sequence[Commit]]) -> list[Contestant]:
    """PyIceberg in each way that it is measured, over the commits of each round."""

    def contestant(name: str, how: str) -> Contestant:
        rounds = iter(commits)

        def work(_meter: Meter) -> None:
            poller.inspect(how, next(rounds))

        return Contestant(name, _nothing, work, _nothing, poller.tree)

    return [contestant(name, how) for name, how in HOW.items()]


def compare(
    lake: ManyTables, kind: Kind, count: int, chance: random.Random, told: Callable[[TableName], Sequence[Json]]
) -> None:
    """So many tables of a kind that have commits, by :func:`check_inventory`; ``told`` asks a server."""
    entry = lake.entry(ICEWRIGHT)
    catalog = SqlCatalog(entry.name, **entry.pyiceberg_properties())
    touched = lake.touched(kind)
    for name in chance.sample(touched, min(count, len(touched))):
        check_inventory(name, told(name), catalog.load_table((NAMESPACE, name.name)).inspect.partitions().to_pylist())


def check_inventory(name: TableName, told: Sequence[Json], counted: Sequence[Mapping[str, Any]]) -> None:
    """What the server tells of a table's partitions is what PyIceberg counts anew from all manifests.

    Raises :class:`Mismatch`.
    """
    have = {item["path"]: (item["data_files"], item["records"], item["size_bytes"]) for item in told}
    want = {
        f"day={row['partition']['day'].isoformat()}": (
            row["file_count"],
            row["record_count"],
            row["total_data_file_size_in_bytes"],
        )
        for row in counted
    }
    wrong = sorted(path for path in have.keys() | want.keys() if have.get(path) != want.get(path))
    if wrong:
        raise Mismatch(
            f"{name}: {len(wrong)} partitions differ from what PyIceberg counts, {wrong[0]} among them: "
            f"{have.get(wrong[0])} instead of {want.get(wrong[0])}"
        )


def ratios(case: str, figures: Sequence[Figure], target: Target | None = None) -> list[Case]:
    """The peer's CPU over ours, however it takes the inventory."""
    return [
        ratio(case, "cpu_ratio", figures, over=PARTITIONS, under=ICEWRIGHT, target=target),
        ratio(case, "cpu_ratio to inspect.files", figures, over=FILES, under=ICEWRIGHT),
    ]


def together(per_commit_ms: Mapping[Kind, Sequence[Figure]]) -> list[Figure]:
    """The mean over kinds, by their share of the tables, round by round."""
    sums: dict[tuple[str, int], float] = {}
    for kind, figures in per_commit_ms.items():
        for figure in figures:
            key = figure.contestant, figure.round
            sums[key] = sums.get(key, 0.0) + figure.value * kind.share
    tenths = sum(kind.share for kind in per_commit_ms)
    return [Figure(who, number, 0, value / tenths) for (who, number), value in sums.items()]


def lag_cases(case: str, lags_s: Sequence[float]) -> list[Case]:
    """From the swap of a pointer until the commit is in the inventory; the range is that of all."""
    cuts = quantiles(lags_s, n=100)
    low, high = min(lags_s), max(lags_s)
    return [
        Case(case, "lag p50, s", cuts[49], low, high, None, None, ()),
        Case(case, "lag p99, s", cuts[98], low, high, LAG_TARGET.text, LAG_TARGET.met(cuts[98]), ()),
    ]


def single(case: str, metric: str, value: float) -> Case:
    """A figure for information that was measured once."""
    return Case(case, metric, value, value, value, None, None, ())


def _nothing() -> None:
    """Neither preparation nor check: each commit is there already, and waiting for it is part of the work."""
