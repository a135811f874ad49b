"""B11: a query for one metric over six days of many partitions, as its writers left the files, and as icewright does.

The case that Iceberg's makers told of: Netflix's Atlas, a month of metrics in 2.7 million files and 2,688 partitions.
By partitions alone the query was 15,218 splits, 61.5 hours of tasks and 10 seconds of planning, with bounds of files
412 splits, 22 minutes and 25 seconds. Here the month has as many partitions and a hundredth of the files
(:mod:`benchmarks.atlas`). They are small ones, so that *all sizes are divided by a scale*: the target of a split (128
MiB), what opening a file counts for (4 MiB), and the target of the table's files (10 or 12 MiB). A file stands for one
of some 40 MiB then. What splits Iceberg would make of the files without that is said beside it. The full form is a
month of files of 300 kB (scale 128), the usual one a week of files of 42 kB (scale 1,024); of both the query sees six
days.

The loop puts the table in the order of ``sort(name)`` until it finds nothing more to do; then Spark carries out the
same query on the first snapshot and on the last one. Nothing but the files differs: catalog, metadata file, session and
settings are the same. Splits are Spark's partitions of the scan; task time is what Spark's executors say they ran;
planning is from the table's name to the splits.

What bounds the gain: the metric is in every partition, which has 10 files before, of which one at least is opened
after. So no layout makes it open less than a tenth of the files, and where opening a file is much of the work, as it is
with files of 1,500 rows, the time of the tasks does not fall by much more than that. Files whose bounds tell much are
many: a scan has to look at more entries of manifests, as at Netflix, where planning took longer with bounds.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from benchmarks import machine
from benchmarks.atlas import Shape, metric_of_rank, write_table
from benchmarks.contest import Contestant, Run, hold
from benchmarks.lake import Mismatch, make_lake
from benchmarks.measure import Cost, Meter, ProcessTree, measure
from benchmarks.results import AT_LEAST, AT_MOST, Case, Figure, Result, Target, amount, ratio
from benchmarks.rewriters import ICEWRIGHT, PHASES, IcewrightRewriter
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName
from icewright.model.policy.policy import MODE_KEY, Mode
from icewright.model.work.jobs import TaskSpec
from icewright.policy.settings import LAYOUT_KEY, LEVEL_1_SIZE_KEY, TARGET_FILE_SIZE_KEY
from icewright_spark.iceberg.java_api import SparkTable
from icewright_spark.session.session import java_array, java_gateway

NAME: Final = "B11"
TITLE: Final = "a metric over six days, Netflix's Atlas at 1/100, as written and as optimized"
AS_WRITTEN: Final = "as written"

SPLITS_TARGET: Final = Target(AT_LEAST, 37)
TASK_TIME_TARGET: Final = Target(AT_LEAST, 100)
PLANNING_TARGET: Final = Target(AT_MOST, 1)

SPLIT_BYTES: Final = 128 << 20
OPEN_FILE_BYTES: Final = 4 << 20
LEVEL_1_BYTES: Final = 64 << 20
"""Of a partition of some 400 MiB, which is below the default of 2 GiB. All three are to be divided by a scale."""

_RANK: Final = 1_000
"""Of the metric that is asked for: one of the rarer half, with some ten rows in a partition."""
_COMPARED: Final = (0, 10, 100, _RANK, 2_399)
"""The ranks of the metrics whose answers are compared."""
_CATALOG: Final = "b11"
_PACKAGES: Final = ("icewright", "pyspark", "pyiceberg", "pyarrow", "arro3-io")
_SPLITS: Final = "splits by sizes divided by the scale, as written over ours"
_ROWS_HASHED: Final = "name, map_entries(tags), at, value, date, hour, batch"


@dataclass(frozen=True, slots=True)
class Options:
    """How much to measure. ``warmups`` are rounds that do not count; all sizes are divided by ``scale``.

    ``target_file_bytes`` is that of the table.
    """

    name: str
    shape: Shape
    scale: int
    target_file_bytes: int
    seed: int
    warmups: int
    rounds: int


def usual(seed: int) -> Options:
    """A week of the month."""
    shape = Shape(days=7, hours=24, files=6_750, rows_per_file=1_500)
    return Options(NAME, shape, 1_024, 12 << 20, seed, warmups=1, rounds=5)


def full(seed: int) -> Options:
    """The whole month in files of ten times as many rows; its result stands beside the other."""
    shape = Shape(days=28, hours=24, files=27_000, rows_per_file=15_000)
    return replace(usual(seed), name=f"{NAME}-full", shape=shape, scale=128, target_file_bytes=10 << 20)


def short(seed: int) -> Options:
    """The options that only show that everything works."""
    return replace(usual(seed), shape=Shape(days=7, hours=1, files=281, rows_per_file=1_500), rounds=2)


def run(spark: SparkSession, folder: Path, options: Options, say: Callable[[str], None]) -> Result:
    """Measure in ``folder``, which must be empty and is left with the table in it.

    Raises :class:`~benchmarks.lake.Mismatch` when an answer differs, or a row.
    """
    entry, where = make_lake(spark, folder, _CATALOG), machine.description()
    table = AtlasTable(spark, entry)
    table.write(options)
    case = f"{options.shape.files:,} files, {options.shape.partitions:,} partitions"
    say(f"{case}, {options.shape.files * options.shape.rows_per_file:,} rows, {table.size_bytes(table.base):,} bytes")
    cases = _Contest(spark, entry, table, options, case, say).hold()
    return Result(
        benchmark=options.name,
        title=f"{TITLE}: {case}",
        measured_at=machine.today(),
        versions=machine.versions(_PACKAGES, spark),
        cores=machine.cores(),
        machine={**where, "Scale": f"1/{options.scale:,}"},
        seed=options.seed,
        cases=tuple(cases),
    )


class AtlasTable:
    """The table, and the query for a metric as of a snapshot of it."""

    def __init__(self, spark: SparkSession, entry: CatalogEntry) -> None:
        self._spark, self._entry = spark, entry
        self.name = TableName(entry.name, ("bench",), "atlas")
        self.base = 0
        self._days = ("", "")

    def write(self, options: Options) -> None:
        """Create the table, and write all of its files."""
        shape, scale = options.shape, options.scale
        properties = {
            "format-version": "2",
            "read.split.target-size": SPLIT_BYTES // scale,
            "read.split.open-file-cost": OPEN_FILE_BYTES // scale,
            TARGET_FILE_SIZE_KEY: options.target_file_bytes // scale,
            MODE_KEY: Mode.AUTO.value,
            LAYOUT_KEY: "sort(name)",
            LEVEL_1_SIZE_KEY: LEVEL_1_BYTES // scale,
        }
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        self._spark.sql(
            f"CREATE TABLE {self.name} (name string, tags map<string, string>, at timestamp, value double, date date, "
            f"hour int, batch int) USING iceberg PARTITIONED BY (date, hour, batch) TBLPROPERTIES ({listed})"
        )
        write_table(self._entry, self.name, shape, options.seed, machine.cores())
        after, last = shape.asked_days
        self.base, self._days = self.snapshot_id(), (after.isoformat(), last.isoformat())
        if self.files(self.base) != shape.files:
            raise Mismatch(f"{self.files(self.base)} files were written instead of {shape.files}")

    def snapshot_id(self) -> int:
        """The snapshot that readers see."""
        return int(SparkTable(self._spark, self.name).java.currentSnapshot().snapshotId())

    def files(self, snapshot_id: int) -> int:
        """How many data files a snapshot has."""
        return self._total(snapshot_id, "total-data-files")

    def size_bytes(self, snapshot_id: int) -> int:
        """How long they are together."""
        return self._total(snapshot_id, "total-files-size")

    def _total(self, snapshot_id: int, key: str) -> int:
        return int(SparkTable(self._spark, self.name).java.snapshot(snapshot_id).summary().get(key))

    def rows_of(self, metric: str, snapshot_id: int, **options: int) -> DataFrame:
        """The rows of a metric in the six days, of which the query needs the tags."""
        reader = self._spark.read.option("versionAsOf", snapshot_id)
        for key, value in options.items():
            reader = reader.option(key.replace("_", "-"), value)
        after, last = self._days
        asked = f"name = '{metric}' AND date > DATE '{after}' AND date <= DATE '{last}'"
        return reader.table(str(self.name)).where(asked).select("tags")

    def types_of(self, metric: str, snapshot_id: int) -> list[str]:
        """The query as it was told: ``SELECT DISTINCT tags['type'] AS type ... ORDER BY type``."""
        rows = self.rows_of(metric, snapshot_id).selectExpr("tags['type'] AS type").distinct().orderBy("type")
        return [row["type"] for row in rows.collect()]

    def splits(self, metric: str, snapshot_id: int, **options: int) -> int:
        """Plan the scan, and say how many partitions it has in Spark."""
        rows: Any = self.rows_of(metric, snapshot_id, **options)
        return int(rows._jdf.queryExecution().toRdd().getNumPartitions())  # noqa: SLF001 - the scan alone, without a stage for Python

    def files_planned(self, metric: str, snapshot_id: int) -> int:
        """The files that the scan opens."""
        return self.splits(metric, snapshot_id, split_size=1 << 40, file_open_cost=1 << 40)

    def fingerprint(self, snapshot_id: int) -> tuple[Any, ...]:
        """Equal for equal multisets of rows: as :meth:`benchmarks.lake.BenchTable.fingerprint`."""
        hashed = [f"sum(cast(xxhash64({said}{_ROWS_HASHED}) AS decimal(38,0)))" for said in ("", "'again', ")]
        rows = self._spark.read.option("versionAsOf", snapshot_id).table(str(self.name))
        (row,) = rows.selectExpr("sum(1)", *hashed).collect()
        return tuple(row)


@dataclass(slots=True)
class _Optimized:
    """What the loop did: its tasks, and what they read and were to write."""

    tasks: int = 0
    groups: int = 0
    input_bytes: int = 0

    def add(self, spec: TaskSpec) -> None:
        self.tasks, self.groups = self.tasks + 1, self.groups + len(spec.rewrite.groups)
        self.input_bytes += spec.rewrite.input_bytes


@dataclass(slots=True)
class _Contest:
    spark: SparkSession
    entry: CatalogEntry
    table: AtlasTable
    options: Options
    case: str
    say: Callable[[str], None]
    tree: ProcessTree = field(default_factory=ProcessTree)

    def hold(self) -> list[Case]:
        done = _Optimized()
        cost = measure(self.tree, lambda meter: self._optimize(meter, done))
        snapshots = {AS_WRITTEN: self.table.base, ICEWRIGHT: self.table.snapshot_id()}
        self.say(f" {done.tasks} tasks of {done.groups} groups: {cost.cpu_s:.1f} CPU s, {cost.wall_s:.1f} s")
        self._prove(snapshots)
        chance = random.Random(self.options.seed)  # noqa: S311 - an order, no secret
        return [
            *self._split_cases(snapshots),
            *self._query_cases(snapshots, chance),
            *self._planning_cases(snapshots, chance),
            *self._cost_cases(snapshots, cost, done),
        ]

    def _optimize(self, meter: Meter, done: _Optimized) -> None:
        def add(spec: TaskSpec) -> None:
            done.add(spec)
            self.say(f"  task {done.tasks}: {len(spec.rewrite.groups)} groups, {spec.rewrite.output_files} files")

        IcewrightRewriter(self.spark, self.entry, self.table.name).optimize(meter, add)

    def _prove(self, snapshots: dict[str, int]) -> None:
        """The same rows, and the same answers. Raises :class:`Mismatch`."""
        rows = {who: self.table.fingerprint(snapshot_id) for who, snapshot_id in snapshots.items()}
        if rows[AS_WRITTEN] != rows[ICEWRIGHT]:
            raise Mismatch(f"the rows are not the same: {rows}")
        for rank in _COMPARED:
            metric = metric_of_rank(rank)
            found = {who: self.table.types_of(metric, snapshot_id) for who, snapshot_id in snapshots.items()}
            if found[AS_WRITTEN] != found[ICEWRIGHT] or not found[ICEWRIGHT]:
                raise Mismatch(f"the types of {metric} are not the same: {found}")
        self.say(f" the same {rows[ICEWRIGHT][0]:,} rows, and the same answers for {len(_COMPARED)} metrics")

    def _split_cases(self, snapshots: dict[str, int]) -> list[Case]:
        metric, table = metric_of_rank(_RANK), self.table
        splits = [Figure(who, 0, 0, table.splits(metric, snapshot)) for who, snapshot in snapshots.items()]
        default = [
            Figure(who, 0, 0, table.splits(metric, snapshot, split_size=SPLIT_BYTES, file_open_cost=OPEN_FILE_BYTES))
            for who, snapshot in snapshots.items()
        ]
        files = [Figure(who, 0, 0, table.files_planned(metric, snapshot)) for who, snapshot in snapshots.items()]
        return [
            self._ratio("splits by Iceberg's own sizes, as written over ours", default, SPLITS_TARGET),
            self._ratio(_SPLITS, splits),
            *self._amounts("splits by divided sizes", splits),
            self._ratio("files opened, as written over ours", files),
            *self._amounts("files opened", files),
        ]

    def _query_cases(self, snapshots: dict[str, int], chance: random.Random) -> list[Case]:
        metric = metric_of_rank(_RANK)
        times: dict[str, list[float]] = {who: [] for who in snapshots}

        def query(who: str) -> Callable[[Meter], None]:
            def work(_: Meter) -> None:
                tag = f"b11-{who.replace(' ', '-')}-{sum(map(len, times.values()))}"
                self.spark.sparkContext.addJobTag(tag)
                try:
                    self.table.types_of(metric, snapshots[who])
                finally:
                    self.spark.sparkContext.removeJobTag(tag)
                times[who].append(task_time_s(self.spark, tag))

            return work

        runs = self._hold("the query", {who: query(who) for who in snapshots}, chance)
        counted = {who: iter(taken[self.options.warmups :]) for who, taken in times.items()}
        tasks = [Figure(run.contestant, run.round, run.position, next(counted[run.contestant])) for run in runs]
        wall = _figures(runs, lambda run: run.cost.wall_s)
        cpu = _figures(runs, lambda run: run.cost.cpu_s)
        return [
            self._ratio("task time, as written over ours", tasks, TASK_TIME_TARGET),
            *self._amounts("task time, s", tasks),
            self._ratio("CPU of the query, as written over ours", cpu),
            self._ratio("wall time of the query, as written over ours", wall),
        ]

    def _planning_cases(self, snapshots: dict[str, int], chance: random.Random) -> list[Case]:
        metric, taken = metric_of_rank(_RANK), list[int]()

        def plan(who: str) -> Callable[[Meter], None]:
            return lambda _: taken.append(self.table.splits(metric, snapshots[who]))

        runs = self._hold("planning", {who: plan(who) for who in snapshots}, chance)
        wall = _figures(runs, lambda run: run.cost.wall_s)
        cpu = _figures(runs, lambda run: run.cost.cpu_s)
        return [
            ratio(
                self.case,
                "planning, ours over as written",
                wall,
                over=ICEWRIGHT,
                under=AS_WRITTEN,
                target=PLANNING_TARGET,
            ),
            *self._amounts("planning, s", wall),
            ratio(self.case, "CPU of planning, ours over as written", cpu, over=ICEWRIGHT, under=AS_WRITTEN),
        ]

    def _hold(self, what: str, works: dict[str, Callable[[Meter], None]], chance: random.Random) -> list[Run]:
        contestants = [Contestant(who, self._collect_garbage, work, lambda: None) for who, work in works.items()]
        self.say(f" {what}, warm-up:")
        hold(contestants, rounds=self.options.warmups, chance=chance, tree=self.tree, say=self.say)
        self.say(f" {what}:")
        return hold(contestants, rounds=self.options.rounds, chance=chance, tree=self.tree, say=self.say)

    def _collect_garbage(self) -> None:
        java_gateway(self.spark).System.gc()

    def _cost_cases(self, snapshots: dict[str, int], cost: Cost, done: _Optimized) -> list[Case]:
        table, ours = self.table, snapshots[ICEWRIGHT]
        sizes = [Figure(who, 0, 0, table.size_bytes(snapshot)) for who, snapshot in snapshots.items()]
        files = [Figure(who, 0, 0, table.files(snapshot)) for who, snapshot in snapshots.items()]
        single = {
            "optimization, CPU s": cost.cpu_s,
            "optimization, wall s": cost.wall_s,
            "optimization, tasks": done.tasks,
            "optimization, MiB read": done.input_bytes / 2**20,
            "optimization, MiB written": table.size_bytes(ours) / 2**20,
            "optimization, peak memory, GiB": cost.peak_memory_bytes / 2**30,
            **{f"optimization, share of CPU, {phase}": cost.phases[phase] / cost.cpu_s for phase in PHASES},
        }
        return [
            *(amount(self.case, metric, [Figure(ICEWRIGHT, 0, 0, value)]) for metric, value in single.items()),
            ratio(self.case, "data files, ours over as written", files, over=ICEWRIGHT, under=AS_WRITTEN),
            ratio(self.case, "bytes of data files, ours over as written", sizes, over=ICEWRIGHT, under=AS_WRITTEN),
        ]

    def _ratio(self, metric: str, figures: Sequence[Figure], target: Target | None = None) -> Case:
        return ratio(self.case, metric, figures, over=AS_WRITTEN, under=ICEWRIGHT, target=target)

    def _amounts(self, metric: str, figures: Sequence[Figure]) -> list[Case]:
        return [
            amount(self.case, f"{metric}: {who}", [figure for figure in figures if figure.contestant == who])
            for who in (AS_WRITTEN, ICEWRIGHT)
        ]


def task_time_s(spark: SparkSession, tag: str) -> float:
    """How long Spark's executors ran the tasks of all jobs with this tag, together."""
    jvm, core = java_gateway(spark), spark.sparkContext._jsc.sc()  # noqa: SLF001 - PySpark shows no metrics
    core.listenerBus().waitUntilEmpty()
    tracker, store, total = spark.sparkContext.statusTracker(), core.statusStore(), 0
    for job in core.statusTracker().getJobIdsForTag(tag):
        info = tracker.getJobInfo(job)
        if info is None:
            raise Mismatch(f"Spark has forgotten job {job}")
        for stage in info.stageIds:
            attempts = store.stageData(stage, False, jvm.java.util.ArrayList(), False, java_array(spark, jvm.double, 0))
            total += sum(int(attempts.apply(place).executorRunTime()) for place in range(attempts.size()))
    return total / 1000


def _figures(runs: Sequence[Run], value: Callable[[Run], float]) -> list[Figure]:
    return [Figure(run.contestant, run.round, run.position, value(run)) for run in runs]
