"""B1: rewriting many small data files without re-ordering them, against Iceberg's own ``rewrite_data_files``.

Both work in one Spark session on the very same input files, which the table is set back to before each run. Some
tables have 5 % of the rows of each file deleted, which both fold in. The outputs are read back by Spark, since a cheap
rewrite that is dear to read is none. Memory is measured apart, in sessions that have done nothing before.

"CPU of proof" is what our workers spend to prove what they do, as they count it themselves. Of a merge: digests of the
rows that are read, a sample of the inputs decoded by the other library, the outputs read back by it, and what they
state of their rows compared with them, which gives the metrics for Iceberg at once. Of a stitch: digests of the bytes
that are copied, footers parsed by the other parser, the output read back, and a column of each row group decoded. Not
in it: whether merged inputs are in the order that is said of them, the driver's own checks, the commit's, and the
verification, which has a share of its own.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from benchmarks import machine
from benchmarks.alone import rewrite_alone
from benchmarks.contest import Contestant, Run, hold, of
from benchmarks.lake import TARGET_FILE_SIZE_BYTES, BenchTable, Deletes, Mismatch, make_lake
from benchmarks.measure import Meter, ProcessTree
from benchmarks.results import AT_LEAST, AT_MOST, Case, Figure, Result, Target, amount, ratio
from benchmarks.rewriters import ICEWRIGHT, PEER, PHASES, PROOF, IcewrightRewriter, ProcedureRewriter
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright_spark.session.session import java_gateway

NAME: Final = "B1"
TITLE: Final = "rewrite_data_files without re-ordering, against Iceberg's procedure"

_GIB: Final = 1 << 30
_PACKAGES: Final = ("icewright", "pyspark", "pyiceberg", "pyarrow", "arro3-io", "xxhash")

CPU_TARGET: Final = Target(AT_LEAST, 2.5)
STITCH_TARGET: Final = Target(AT_LEAST, 10, "where row groups are stitched")
READER_TARGET: Final = Target(AT_MOST, 1.05)
MEMORY_TARGET: Final = Target(AT_MOST, 0.5)


@dataclass(frozen=True, slots=True)
class Shape:
    """A table's files. ``stitchable``: row groups large enough to be copied as they are."""

    size: str
    files: int
    rows_per_file: int
    stitchable: bool = False
    deletes: Deletes = Deletes.NONE

    @property
    def name(self) -> str:
        """The case of the results."""
        return self.size if self.deletes is Deletes.NONE else f"{self.size}, 5 % deleted by {self.deletes.value}"


SHAPES: Final = (
    Shape("400x0.26MB", 400, 3_000),
    Shape("64x5MB", 64, 61_000, stitchable=True),
    *(Shape("400x0.26MB", 400, 3_000, deletes=deletes) for deletes in (Deletes.POSITIONS, Deletes.VECTORS)),
    *(Shape("64x5MB", 64, 61_000, deletes=deletes) for deletes in (Deletes.POSITIONS, Deletes.VECTORS)),
)
SHORT_SHAPES: Final = tuple(
    Shape("short", 8, 1_000, deletes=deletes) for deletes in (Deletes.POSITIONS, Deletes.VECTORS)
)


@dataclass(frozen=True, slots=True)
class Options:
    """How long to measure. ``warmups`` are rounds that do not count; the first proves the results, so one at least."""

    shapes: Sequence[Shape]
    seed: int
    warmups: int
    rounds: int
    alone: int
    """Rewrites of each contestant in a session of its own; without any, memory is not measured."""


def full(seed: int) -> Options:
    """The options whose results are published."""
    return Options(SHAPES, seed, warmups=2, rounds=5, alone=2)


def short(seed: int) -> Options:
    """The options that only show that everything works."""
    return Options(SHORT_SHAPES, seed, warmups=1, rounds=1, alone=1)


def run(spark: SparkSession, folder: Path, options: Options, say: Callable[[str], None]) -> Result:
    """Measure all shapes in ``folder``, which must be empty and is left with the tables in it.

    Raises :class:`~benchmarks.lake.Mismatch` when the outputs are not equal, or not all of the work was done.
    """
    entry, tree, chance = make_lake(spark, folder, "b1"), ProcessTree(), random.Random(options.seed)  # noqa: S311 - an order, no secret
    where = machine.description()
    cases: list[Case] = []
    for number, shape in enumerate(options.shapes):
        table = BenchTable(spark, entry, f"events{number}")
        table.write(shape.files, shape.rows_per_file, options.seed, TARGET_FILE_SIZE_BYTES, shape.deletes)
        say(f"{shape.name}: {table.base.count} files of {table.base.size_bytes / table.base.count / 1e6:.2f} MB")
        cases += _ShapeContest(spark, entry, table, shape, tree, say).hold(options, chance)
    return Result(
        benchmark=NAME,
        title=TITLE,
        measured_at=machine.today(),
        versions=machine.versions(_PACKAGES, spark),
        cores=machine.cores(),
        machine=where,
        seed=options.seed,
        cases=tuple(cases),
    )


@dataclass(frozen=True, slots=True)
class _ShapeContest:
    """Everything about one table."""

    spark: SparkSession
    entry: CatalogEntry
    table: BenchTable
    shape: Shape
    tree: ProcessTree
    say: Callable[[str], None]

    def hold(self, options: Options, chance: random.Random) -> list[Case]:
        ours = IcewrightRewriter(self.spark, self.entry, self.table.name)
        peer = ProcedureRewriter(self.spark, self.table, TARGET_FILE_SIZE_BYTES)
        rewriters = [
            Contestant(PEER, self._set_back, peer.rewrite, self._check),
            Contestant(ICEWRIGHT, self._set_back, ours.rewrite, self._check),
        ]
        outputs = {rewriter.name: self._prove(rewriter) for rewriter in rewriters}
        if options.warmups > 1:
            self._hold("warm-up", rewriters, options.warmups - 1, chance)
        rewrites = self._hold("rewrite", rewriters, options.rounds, chance)
        readers = [self._reader(name, snapshot_id) for name, snapshot_id in outputs.items()]
        self._set_back()
        self._hold("warm-up of reading", readers, 1, chance)
        reads = self._hold("reading", readers, options.rounds, chance)
        memory = self._memory_cases(self._alone(options.alone, chance)) if options.alone else []
        return [*self._rewrite_cases(rewrites), *memory, *self._output_cases(reads, outputs)]

    def _hold(self, what: str, contestants: Sequence[Contestant], rounds: int, chance: random.Random) -> list[Run]:
        self.say(f" {what}:")
        return hold(contestants, rounds=rounds, chance=chance, tree=self.tree, say=self.say)

    def _alone(self, rounds: int, chance: random.Random) -> list[Run]:
        """Each rewrite in a session of its own, for its memory."""
        self.say(" alone:")
        runs = []
        for number in range(1, rounds + 1):
            for position, name in enumerate(chance.sample((PEER, ICEWRIGHT), 2), start=1):
                self._set_back()
                cost = rewrite_alone(name, self.entry, self.table.name.name, TARGET_FILE_SIZE_BYTES)
                self._check()
                runs.append(Run(name, number, position, cost))
                self.say(f"  round {number}.{position} {name}: peak {cost.peak_memory_bytes / 2**20:.0f} MiB")
        self._set_back()
        return runs

    def _prove(self, rewriter: Contestant) -> int:
        """A first rewrite, whose output is kept for reading. Raises :class:`Mismatch` unless it has the same rows."""
        expected = self.table.fingerprint(self.table.base_snapshot_id)
        rewriter.prepare()
        with Meter(self.tree) as meter:
            rewriter.work(meter)
        rewriter.check()
        snapshot_id = self.table.keep()
        found = self.table.fingerprint(snapshot_id)
        if found != expected:
            raise Mismatch(f"{rewriter.name} did not keep the rows: {expected} before, {found} after")
        self.say(f" {rewriter.name}: the same {found[0]:,} rows, {self.table.files(snapshot_id)}")
        return snapshot_id

    def _set_back(self) -> None:
        self.table.set_back()
        self._collect_garbage()

    def _collect_garbage(self) -> None:
        """Nobody pays for the garbage of the one before, nor finds the heap as large as that one left it."""
        java_gateway(self.spark).System.gc()

    def _check(self) -> None:
        """All input files were replaced, no row is missing and none has come back. Raises :class:`Mismatch`."""
        found = (self.table.summary("deleted-data-files"), self.table.summary("total-records"))
        if found != (self.table.base.count, self.table.live_rows):
            raise Mismatch(f"{found} files replaced and rows left, not {self.table.base.count, self.table.live_rows}")

    def _reader(self, name: str, snapshot_id: int) -> Contestant:
        return Contestant(name, self._collect_garbage, lambda _: self.table.scan(snapshot_id), lambda: None)

    def _rewrite_cases(self, runs: Sequence[Run]) -> list[Case]:
        name = self.shape.name
        cpu = _figures(runs, lambda run: run.cost.cpu_s)
        cases = [ratio(name, "cpu_ratio", cpu, over=PEER, under=ICEWRIGHT, target=CPU_TARGET)]
        if self.shape.stitchable:
            cases.append(ratio(name, "cpu_ratio", cpu, over=PEER, under=ICEWRIGHT, target=STITCH_TARGET))
        wall = _figures(runs, lambda run: run.cost.wall_s)
        ours = of(runs, ICEWRIGHT)
        return [
            *cases,
            ratio(name, "wall_ratio", wall, over=PEER, under=ICEWRIGHT),
            amount(name, "CPU of proof, s", _figures(ours, lambda run: run.cost.phases[PROOF])),
            *(amount(name, f"share of our CPU, {phase}", _figures(ours, _share_of(phase))) for phase in PHASES),
        ]

    def _memory_cases(self, runs: Sequence[Run]) -> list[Case]:
        name = self.shape.name
        memory = _figures(runs, lambda run: run.cost.peak_memory_bytes)
        return [
            ratio(name, "peak_memory_ratio", memory, over=ICEWRIGHT, under=PEER, target=MEMORY_TARGET),
            *(
                amount(
                    name,
                    f"peak memory of the JVM, GiB: {who}",
                    _figures(of(runs, who), lambda run: run.cost.peak_jvm_bytes / _GIB),
                )
                for who in (PEER, ICEWRIGHT)
            ),
            amount(name, "our peak beyond the JVM's, GiB", _figures(of(runs, ICEWRIGHT), _beyond_the_jvm)),
        ]

    def _output_cases(self, reads: Sequence[Run], outputs: dict[str, int]) -> list[Case]:
        name = self.shape.name
        sizes = [Figure(who, 0, 0, self.table.files(snapshot_id).size_bytes) for who, snapshot_id in outputs.items()]
        cpu = _figures(reads, lambda run: run.cost.cpu_s)
        return [
            ratio(name, "reader_cpu_ratio", cpu, over=ICEWRIGHT, under=PEER, target=READER_TARGET),
            ratio(name, "output_size_ratio", sizes, over=ICEWRIGHT, under=PEER),
        ]


def _share_of(phase: str) -> Callable[[Run], float]:
    return lambda run: run.cost.phases[phase] / run.cost.cpu_s


def _beyond_the_jvm(run: Run) -> float:
    """What the whole took at its peak over what the JVM took at its own: the driver and the Python workers."""
    return (run.cost.peak_memory_bytes - run.cost.peak_jvm_bytes) / _GIB


def _figures(runs: Sequence[Run], value: Callable[[Run], float]) -> list[Figure]:
    return [Figure(run.contestant, run.round, run.position, value(run)) for run in runs]
