"""B9: orphan files among many, and the expiry of many snapshots, against Iceberg's own procedures on Spark.

*Orphans.* A table on this machine's disk has true metadata and empty files, and it is known which of them are garbage
(:mod:`benchmarks.garbage`). Ours is one pass of the service over listing and metadata, with its store in SQLite, in a
process without Spark: the second one, since the first sees everything for the first time and lets nothing go. Both are
under clocks that are set, eight days apart. It includes the plan and the check of the plan by other code. It is told
whose place it is, which a server asks its registry. The first pass is our CPU, too: no file goes without it, and the
peer needs none. It is in no ratio, since whoever passes over a table again and again pays one pass each time; what it
took stands beside them. The peer is ``remove_orphan_files`` with ``dry_run``, listing as it does by default, and with
the listing given to it as ``file_list_view``, made beforehand at nobody's cost: its least work, as where a store lists
for itself, beside ours with the listing in it. ``prefix_listing`` is not among them: on a local disk Hadoop's client
starts an ``ls`` for each file that it lists in this way, a hundred times the work. Each answer is compared with what is
known, file by file, and a wrong one ends the run without a result: there is no figure of wrong files, which could only
be zero.
Files whose times tell nothing (zero, before Iceberg, before the table) have to stay with us; the peer has no such rule,
and how many of them it gives is shown.

*Expiry.* A table that Spark wrote, with a long history (:mod:`benchmarks.history`). Ours is everything from a first
look at the table to the verified commit, with stores in memory, and changes metadata alone: files go another way, in a
pass like the one above. ``expire_snapshots`` deletes files as well, here one manifest list of each snapshot and nothing
else. So that like is compared with like, the peer's metadata-only form stands beside it: the Java API with
``cleanExpiredFiles(false)``, in the JVM that is running, without a Spark job. The snapshots that stay are compared with
what the rule says, and the oldest and the latest of them are read by Spark; their number is as counted in the tables.

Start-up, of Spark as of our process, counts nowhere. The peers' CPU is that of JVM and driver; their memory is in a
session that has done other things before, and stands there for information.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from benchmarks import machine
from benchmarks.contest import Contestant, Run, hold
from benchmarks.garbage import DAY_MS, Garbage, write_garbage, write_listing
from benchmarks.history import AGE_MS, RETAIN_LAST, Histories, History
from benchmarks.lake import Mismatch, make_lake
from benchmarks.measure import Meter, ProcessTree, measure
from benchmarks.results import AT_LEAST, AT_MOST, Case, Figure, Result, Target, amount, ratio
from benchmarks.rewriters import ICEWRIGHT, PEER
from benchmarks.watchers import UpkeepProcess
from icewright.core.times import Instant
from icewright.model.actions.remove_files import AGE_MIN_MS
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName
from icewright_spark.iceberg.java_api import SparkTable
from icewright_spark.session.session import java_gateway

NAME: Final = "B9"
TITLE: Final = "orphan files and expiry of snapshots, against Iceberg's procedures"
LIST_GIVEN: Final = "peer, file_list_view"
METADATA_ONLY: Final = "peer, metadata only"

CPU_TARGET: Final = Target(AT_LEAST, 5)
MEMORY_TARGET: Final = Target(AT_MOST, 1)

_VIEW: Final = "b9_listing"
_LISTINGS: Final[Mapping[str, str]] = {
    PEER: "",
    LIST_GIVEN: f", file_list_view => '{_VIEW}', location => 'file:{{root}}'",
}
"""What the peers' calls end with."""
_CATALOG: Final = "b9"
_NAMESPACE: Final = "bench"
_PACKAGES: Final = ("icewright", "pyspark", "pyiceberg", "pyarrow", "sqlalchemy")
_GIB: Final = 1 << 30
_BETWEEN_PASSES_MS: Final = 8 * DAY_MS
_OLDER_THAN: Final = f"P{AGE_MS // DAY_MS}D"


@dataclass(frozen=True, slots=True)
class Options:
    """How much to measure: ``files`` data files that a table needs, so many a manifest; ``snapshots`` of a table.

    ``peers`` are those that look for orphans. ``warmups`` are rounds that do not count.
    """

    name: str
    peers: Sequence[str]
    files: int
    per_manifest: int
    snapshots: int
    seed: int
    warmups: int
    rounds: int


def short(seed: int) -> Options:
    """The options that only show that everything works."""
    return Options(NAME, tuple(_LISTINGS), 2_000, 250, 300, seed, 0, 1)


def usual(seed: int) -> Options:
    """200,000 files and 500 snapshots."""
    return Options(NAME, tuple(_LISTINGS), 200_000, 10_000, 500, seed, 1, 5)


def full(seed: int) -> Options:
    """5,000,000 files and 10,000 snapshots, each measured once; its result stands beside the other."""
    return replace(usual(seed), name=f"{NAME}-full", files=5_000_000, snapshots=10_000, warmups=0, rounds=1)


def run(spark: SparkSession, folder: Path, options: Options, say: Callable[[str], None]) -> Result:
    """Measure in ``folder``, which must be empty and is left with the tables in it.

    Raises :class:`~benchmarks.lake.Mismatch` when an answer is wrong, or snapshots went that should have stayed.
    """
    where = machine.description()
    entry = make_lake(spark, folder, _CATALOG)
    chance = random.Random(options.seed)  # noqa: S311 - an order, no secret
    with closing(UpkeepProcess(folder, entry)) as ours:
        contests = _Orphans(spark, entry, ours, options, say), _Expiry(spark, entry, ours, options, say)
        cases = [case for contest in contests for case in contest.hold(chance)]
    return Result(
        benchmark=options.name,
        title=f"{TITLE}: {options.files:,} needed files, {options.snapshots:,} snapshots",
        measured_at=machine.today(),
        versions=machine.versions(_PACKAGES, spark),
        cores=machine.cores(),
        machine=where,
        seed=options.seed,
        cases=tuple(cases),
    )


@dataclass(frozen=True, slots=True)
class _Contest:
    """What both contests have."""

    spark: SparkSession
    entry: CatalogEntry
    ours: UpkeepProcess
    options: Options
    say: Callable[[str], None]

    def measured(self, contestants: Sequence[Contestant], chance: random.Random) -> list[Run]:
        """The runs that count."""
        tree = ProcessTree()
        if self.options.warmups:
            self.say(" warm-up:")
            hold(contestants, rounds=self.options.warmups, chance=chance, tree=tree, say=self.say)
        self.say(" measured:")
        return hold(contestants, rounds=self.options.rounds, chance=chance, tree=tree, say=self.say)

    def call(self, procedure: str, name: TableName, arguments: str) -> list[Any]:
        """The rows of a procedure."""
        table = ".".join(name.path)
        return self.spark.sql(f"CALL {name.catalog}.system.{procedure}(table => '{table}', {arguments})").collect()

    def collect_garbage(self) -> None:
        """Nobody pays for the garbage of the one before."""
        java_gateway(self.spark).System.gc()


@dataclass(frozen=True, slots=True)
class _Orphans(_Contest):
    """Who finds the orphans of one table."""

    answers: dict[str, dict[str, Any]] = field(default_factory=dict)

    def hold(self, chance: random.Random) -> list[Case]:
        options = self.options
        name = TableName(self.entry.name, (_NAMESPACE,), "garbage")
        now = time.time_ns() // 1_000_000
        table = write_garbage(self.entry, name, options.files, options.per_manifest, now, options.seed)
        case = f"{table.listed:,} listed files"
        self.say(f"{case}, {len(table.orphans):,} of them orphans")
        listing = Path(self.entry.warehouse, f"{_VIEW}.parquet")
        write_listing(table, listing)
        self.spark.read.parquet(str(listing)).createOrReplaceTempView(_VIEW)
        first = measure(self.ours.tree, lambda _meter: self._first_look(table, now - _BETWEEN_PASSES_MS))
        contestants = [
            self._contestant(ICEWRIGHT, table, lambda: self._look(table, now), self.ours.tree),
            *(self._contestant(peer, table, partial(self._peer, table, _LISTINGS[peer])) for peer in options.peers),
        ]
        runs = self.measured(contestants, chance)
        undated = [
            Figure(who, 0, 0, sum(path in table.undated for path in self.answers[who]["paths"]))
            for who in options.peers
        ]
        return [
            *_ratios(case, runs, options.peers),
            amount(case, "memory of ours, GiB", _figures(runs, ICEWRIGHT, _peak_gib), MEMORY_TARGET),
            amount(case, "files whose times tell nothing, given by the peer", undated),
            *_amounts(case, runs),
            amount(case, "CPU, s: first pass of ours, in no ratio", [Figure(ICEWRIGHT, 0, 0, first.cpu_s)]),
        ]

    def _first_look(self, table: Garbage, at: Instant) -> None:
        if found := self._look(table, at)["paths"]:
            raise Mismatch(f"{len(found)} files were to go in the first pass over a table")

    def _contestant(
        self, name: str, table: Garbage, work: Callable[[], dict[str, Any]], tree: ProcessTree | None = None
    ) -> Contestant:
        def measured(_meter: Meter) -> None:
            self.answers[name] = work()

        def check() -> None:
            check_orphans(name, table, self.answers[name])

        return Contestant(name, self.collect_garbage, measured, check, tree)

    def _look(self, table: Garbage, at: Instant) -> dict[str, Any]:
        found = self.ours.ask("look", table=table.name.path, uuid=table.uuid, root=table.root, at=at)
        return {**found, "paths": [_plain(path) for path in found["paths"]]}

    def _peer(self, table: Garbage, more: str) -> dict[str, Any]:
        arguments = f"dry_run => true, older_than => {_timestamp(table.now - AGE_MIN_MS)}{more.format(root=table.root)}"
        return {"paths": [_plain(row[0]) for row in self.call("remove_orphan_files", table.name, arguments)]}


def check_orphans(who: str, table: Garbage, answer: Mapping[str, Any]) -> None:
    """An answer has all orphans: ours those of jobs too, the peer's the files without a time; and nothing else.

    Raises :class:`Mismatch`.
    """
    expected = table.orphans | (table.temporary if who == ICEWRIGHT else table.undated)
    found = set(answer["paths"])
    if found != expected or len(found) != len(answer["paths"]):
        wrong = sorted(found ^ expected)
        raise Mismatch(
            f"{who}: {len(found - expected)} files too many and {len(expected - found)} missing: {wrong[:3]}"
        )
    if who != ICEWRIGHT:
        return
    counted = {"listed": answer["listed"], "orphans": answer["orphans"], "kept": answer["kept"]}
    known = {"listed": table.listed, "orphans": len(expected), "kept": table.kept}
    if counted != known:
        raise Mismatch(f"{who} counted {counted} instead of {known}")


@dataclass(frozen=True, slots=True)
class _Expiry(_Contest):
    """Who has the snapshots of a table expire; each run has a table of its own, all of them alike."""

    tables: list[History] = field(default_factory=list)
    left: dict[str, int] = field(default_factory=dict)
    """How many snapshots the last table of each contestant has."""

    def hold(self, chance: random.Random) -> list[Case]:
        case = f"{self.options.snapshots:,} snapshots"
        histories = Histories(self.spark, self.entry, _NAMESPACE)
        rows = self._rows(self.spark.table(f"{self.entry.name}.{_NAMESPACE}.source"))
        self.say(case)
        works = {ICEWRIGHT: self._expire, PEER: self._procedure, METADATA_ONLY: self._java}
        contestants = [self._contestant(who, work, histories, rows) for who, work in works.items()]
        runs = self.measured(contestants, chance)
        left = [Figure(who, 0, 0, count) for who, count in self.left.items()]
        return [
            ratio(
                case,
                "cpu_ratio to the peer's metadata alone",
                _figures(runs, None, _cpu_s),
                over=METADATA_ONLY,
                under=ICEWRIGHT,
                target=CPU_TARGET,
            ),
            *(
                replace(one, metric=f"{one.metric} to the peer, which deletes files as well", target=None, met=None)
                for one in _ratios(case, runs, (PEER,))
            ),
            amount(case, "memory of ours, GiB", _figures(runs, ICEWRIGHT, _peak_gib), MEMORY_TARGET),
            amount(case, "snapshots that stay", left),
            *_amounts(case, runs),
        ]

    def _contestant(
        self, who: str, work: Callable[[History], None], histories: Histories, rows: tuple[Any, ...]
    ) -> Contestant:
        def prepare() -> None:
            self.tables.append(histories.write(f"history{len(self.tables)}", self.options.snapshots))
            self.collect_garbage()

        def check() -> None:
            self._check(who, self.tables[-1], rows)

        tree = self.ours.tree if who == ICEWRIGHT else None
        return Contestant(who, prepare, lambda _meter: work(self.tables[-1]), check, tree)

    def _expire(self, table: History) -> None:
        self.ours.ask("expire", table=table.name.path, older_than=_OLDER_THAN, retain_last=RETAIN_LAST)

    def _procedure(self, table: History) -> None:
        older_than = _timestamp(table.now - AGE_MS)
        self.call("expire_snapshots", table.name, f"older_than => {older_than}, retain_last => {RETAIN_LAST}")

    def _java(self, table: History) -> None:
        expiry = SparkTable(self.spark, table.name).java.expireSnapshots()
        expiry.expireOlderThan(table.now - AGE_MS).retainLast(RETAIN_LAST).cleanExpiredFiles(False).commit()

    def _check(self, who: str, table: History, rows: tuple[Any, ...]) -> None:
        """Exactly the snapshots of the rule are left, and what is left can be read. Raises :class:`Mismatch`."""
        self.spark.sql(f"REFRESH TABLE {table.name}")
        found = {row[0] for row in self.spark.table(f"{table.name}.snapshots").select("snapshot_id").collect()}
        self.left[who] = len(found)
        stay = table.snapshot_ids[-table.retained :]
        if found != set(stay):
            raise Mismatch(f"{who}: {len(found - set(stay))} snapshots too many, {len(set(stay) - found)} missing")
        for snapshot_id in (stay[0], stay[-1]):
            read = self._rows(self.spark.read.option("versionAsOf", snapshot_id).table(str(table.name)))
            if read != rows:
                raise Mismatch(f"{who}: snapshot {snapshot_id} reads {read} instead of {rows}")
        expected = table.manifest_lists[-table.retained :] if who == PEER else table.manifest_lists
        there = {path for path in table.manifest_lists if Path(path).exists()}
        if there != set(expected):
            raise Mismatch(f"{who}: {len(there)} manifest lists are left instead of {len(expected)}")

    def _rows(self, frame: Any) -> tuple[Any, ...]:
        (row,) = frame.selectExpr("sum(1)", "sum(hash(*))").collect()
        return tuple(row)


def _timestamp(at: Instant) -> str:
    told = datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"TIMESTAMP '{told} UTC'"


def _plain(path: str) -> str:
    """``/a/b`` of ``file:///a/b`` and ``file:/a/b``."""
    return path.removeprefix("file://").removeprefix("file:")


def _ratios(case: str, runs: Sequence[Run], peers: Sequence[str]) -> list[Case]:
    cpu, wall = _figures(runs, None, _cpu_s), _figures(runs, None, _wall_s)
    names = {PEER: ""} | {peer: f" to {peer}" for peer in peers if peer != PEER}
    return [
        *(
            ratio(case, f"cpu_ratio{name}", cpu, over=peer, under=ICEWRIGHT, target=CPU_TARGET)
            for peer, name in names.items()
        ),
        *(ratio(case, f"wall_ratio{name}", wall, over=peer, under=ICEWRIGHT) for peer, name in names.items()),
    ]


def _amounts(case: str, runs: Sequence[Run]) -> list[Case]:
    who = dict.fromkeys(run.contestant for run in runs)
    return [
        *(amount(case, f"CPU, s: {one}", _figures(runs, one, _cpu_s)) for one in sorted(who)),
        *(amount(case, f"peak memory, GiB: {one}", _figures(runs, one, _peak_gib)) for one in sorted(who)),
    ]


def _figures(runs: Sequence[Run], who: str | None, value: Callable[[Run], float]) -> list[Figure]:
    """Of one contestant, or of all."""
    chosen = [run for run in runs if who in (None, run.contestant)]
    return [Figure(run.contestant, run.round, run.position, value(run)) for run in chosen]


def _cpu_s(run: Run) -> float:
    return run.cost.cpu_s


def _wall_s(run: Run) -> float:
    return run.cost.wall_s


def _peak_gib(run: Run) -> float:
    return run.cost.peak_memory_bytes / _GIB
