"""B3: how many rows the bounds of files leave to be scanned: icewright's layouts against those of Iceberg's procedure.

Thirty small tables are generated (:mod:`benchmarks.layout_tables`). The peer rewrites each one by its ``sort``,
``zorder`` and ``hilbert`` on real Spark, and what it has written is judged by the bounds in its manifests. icewright
places the same rows in as many files as the peer made of them, from a sample, by the code that its workers run; what
is judged are the least and the largest values per file, which are the bounds that writing them would give. So the
writing is the peer's alone (in :mod:`benchmarks.b3_written` both write), and there is nothing here of what a rewrite
costs, but how much dearer one curve is to compute than the other. Ratios are taken table by table; what is published is
their median, the least and the largest.

The peer is asked for its files such that none of its ranges is divided: by twice the size of a file as a target, and a
compression factor of two. Strings here have at most 8 bytes, of which its curves take all.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from benchmarks import layout_tables as made
from benchmarks import machine
from benchmarks.lake import Mismatch, make_lake
from benchmarks.layout_tables import LayoutTable, Query, Ranks
from benchmarks.results import AT_MOST, Case, Figure, Result, Target, amount
from benchmarks.rewriters import ICEWRIGHT, PEER
from icewright.model.iceberg.layouts import COLUMN_CURVES, Curve, Layout
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import SortField
from icewright_spark.executors.sort.cells import Cells, cells_of, sample_rows
from icewright_spark.iceberg.java_api import SparkTable

NAME: Final = "B3"
TITLE: Final = "rows that file bounds leave to be scanned, under layouts of 30 tables, against Iceberg's procedure"
ARRIVAL, RATIO = "arrival", "icewright over peer"

ZORDER_TARGET: Final = Target(AT_MOST, 0.5)
TARGET: Final = Target(AT_MOST, 1.05)

_RATIO: Final = "scanned, ours over the peer's"
_SCANNED: Final = "share of rows scanned"
_LARGEST: Final = "largest file over the mean"
_CATALOG: Final = "b3"
_BATCH_ROWS: Final = 10_000
"""As Spark hands rows to Python."""
PACKAGES: Final = ("icewright", "pyspark", "numpy", "pyarrow")


@dataclass(frozen=True, slots=True)
class Options:
    """How much to measure. ``tables`` are their places among the thirty; ``files`` is what the peer is asked for."""

    rows: int
    files: int
    seed: int
    tables: Sequence[int]


def full(seed: int) -> Options:
    """The options whose results are published."""
    return Options(rows=200_000, files=64, seed=seed, tables=range(30))


def short(seed: int) -> Options:
    """The options that only show that everything works."""
    return Options(rows=20_000, files=8, seed=seed, tables=(11,))


@dataclass(frozen=True, slots=True)
class Bounds:
    """The files of one layout of a table: rows, and for each column the least and the largest rank of its values."""

    rows: Ranks
    least: Mapping[str, Ranks]
    largest: Mapping[str, Ranks]

    def scanned(self, queries: Sequence[Query]) -> float:
        """The mean share of all rows that lie in files whose bounds meet the query."""
        return float(np.mean([self.rows[self._met(query)].sum() for query in queries]) / self.rows.sum())

    def _met(self, query: Query) -> Any:
        met = np.ones(len(self.rows), bool)
        for column, (low, high) in query.ranges.items():
            met &= (self.least[column] <= high) & (self.largest[column] >= low)
        return met

    def is_of_same_files(self, other: Bounds) -> bool:
        """Whether both are of files in the same order."""
        pairs = [(self.rows, other.rows)]
        for ours, theirs in ((self.least, other.least), (self.largest, other.largest)):
            pairs += [(ranks, theirs[name]) for name, ranks in ours.items()]
        return all(np.array_equal(one, another) for one, another in pairs)

    @property
    def unevenness(self) -> float:
        """The rows of the largest file over those of the mean one."""
        return float(self.rows.max() / self.rows.mean())


@dataclass(frozen=True, slots=True)
class Outcome:
    """One layout of one table by both. ``cpu_s`` went into placing the rows, of our process."""

    table: LayoutTable
    curve: Curve
    arrival: float
    ours: float
    peers: float
    our_unevenness: float
    peers_unevenness: float
    files: int
    cpu_s: float

    @property
    def ratio(self) -> float:
        """Of what is left to be scanned, ours over the peer's."""
        return self.ours / self.peers


def run(spark: SparkSession, folder: Path, options: Options, say: Callable[[str], None]) -> Result:
    """Measure all tables in ``folder``, which must be empty and is left with the last table in it.

    Raises :class:`~benchmarks.lake.Mismatch` when a layout has not all rows, or bounds that no row has.
    """
    where = machine.description()
    make_lake(spark, folder, _CATALOG)
    outcomes: list[Outcome] = []
    for number, table in enumerate(made.tables(options.rows, options.seed)):
        if number in options.tables:
            outcomes += _contest(spark, folder, table, options, say)
    return Result(
        benchmark=NAME,
        title=TITLE,
        measured_at=machine.today(),
        versions=machine.versions(PACKAGES, spark),
        cores=machine.cores(),
        machine={**where, "Rows of each table": f"{options.rows:,}", "Files asked for": str(options.files)},
        seed=options.seed,
        cases=tuple(_cases(outcomes)),
    )


def _contest(
    spark: SparkSession, folder: Path, table: LayoutTable, options: Options, say: Callable[[str], None]
) -> list[Outcome]:
    distinct = table.distinct
    ranks = {name: ranks_of(table.rows[name], values) for name, values in distinct.items()}
    queries = made.queries(table, ranks, options.seed)
    outcomes: list[Outcome] = []
    with LakeTable(spark, _CATALOG, folder, table) as peer:
        for curve in COLUMN_CURVES:
            theirs = peer.lay_out(curve, options.files, distinct)
            files = len(theirs.rows)
            cells = _cells(table, curve, files, options.seed)
            started_s = time.process_time()
            placed = place(cells, table)
            cpu_s = time.process_time() - started_s
            ours = bounds_of(placed, files, ranks)
            arrival = bounds_of(np.arange(options.rows) * files // options.rows, files, ranks)
            outcome = Outcome(
                table=table,
                curve=curve,
                arrival=arrival.scanned(queries),
                ours=ours.scanned(queries),
                peers=theirs.scanned(queries),
                our_unevenness=ours.unevenness,
                peers_unevenness=theirs.unevenness,
                files=files,
                cpu_s=cpu_s,
            )
            say(
                f"{table.name} {table.family}, {curve}({', '.join(table.layout)}), {files} files: arrival "
                f"{outcome.arrival:.3f}, {PEER} {outcome.peers:.3f}, {ICEWRIGHT} {outcome.ours:.3f}"
            )
            outcomes.append(outcome)
    return outcomes


def ranks_of(column: Any, distinct: Any) -> Ranks:
    """The place of each value among the distinct ones. Raises :class:`Mismatch` for one that is not among them."""
    first = pc.search_sorted(distinct, column, side="left")
    found = pc.less(first, pc.search_sorted(distinct, column, side="right"))
    if not pc.all(found.fill_null(False)).as_py():
        raise Mismatch(f"a bound is a value that no row has, or none, in a column of {column.type}")
    return np.asarray(first).astype(np.int64)


def bounds_of(placed: Ranks, files: int, ranks: Mapping[str, Ranks]) -> Bounds:
    """The files that rows make which are placed so; those without any rows are none."""
    order = np.argsort(placed, kind="stable")
    rows = np.bincount(placed, minlength=files)
    starts = np.concatenate([[0], np.cumsum(rows)[:-1]])[rows > 0]
    return Bounds(
        rows[rows > 0],
        {name: np.minimum.reduceat(values[order], starts) for name, values in ranks.items()},
        {name: np.maximum.reduceat(values[order], starts) for name, values in ranks.items()},
    )


def _cells(table: LayoutTable, curve: Curve, files: int, seed: int) -> Cells:
    columns = table.rows.select(list(table.layout))
    rows = columns.num_rows
    chosen = np.random.default_rng(seed).choice(rows, min(sample_rows(files), rows), replace=False)
    fields = tuple(SortField(place, "identity", "asc", "nulls-first") for place in range(len(table.layout)))
    return cells_of(columns.take(pa.array(np.sort(chosen))), Layout(curve, fields), files)


def place(cells: Cells, table: LayoutTable) -> Ranks:
    """The file of each row."""
    batches = table.rows.select(list(table.layout)).combine_chunks().to_batches(max_chunksize=_BATCH_ROWS)
    return np.concatenate([np.asarray(cells.place(batch)["cell"]) for batch in batches])


class LakeTable:
    """The table in Iceberg, in so many files in the order in which the rows came; each rewrite begins there.

    Dropped when left.
    """

    def __init__(self, spark: SparkSession, catalog: str, folder: Path, table: LayoutTable, files: int = 1) -> None:
        self._spark, self._folder, self._table, self._files = spark, folder / table.name, table, files
        self.name = TableName(catalog, ("bench",), table.name)
        self._base_snapshot_id = self.size_bytes = 0

    def __enter__(self) -> Self:
        self._folder.mkdir()
        rows, files = self._table.rows, self._files
        parts = []
        for number in range(files):
            first, end = (-(-rows.num_rows * place // files) for place in (number, number + 1))
            path = self._folder / f"{number:05}.parquet"
            pq.write_table(rows.slice(first, end - first), path)
            parts.append(self._spark.read.parquet(str(path)))
        # Of several files at once Spark reads the largest first.
        read = reduce(DataFrame.unionAll, parts)
        read.writeTo(str(self.name)).using("iceberg").tableProperty("write.distribution-mode", "none").create()
        (self._base_snapshot_id,) = self._metadata("snapshots", "snapshot_id").first()
        (self.size_bytes,) = self._metadata("files", "sum(file_size_in_bytes)").first()
        return self

    def __exit__(self, *_: object) -> None:
        self._spark.sql(f"DROP TABLE {self.name} PURGE")
        shutil.rmtree(self._folder)

    def lay_out(self, curve: Curve, files: int, distinct: Mapping[str, Any]) -> Bounds:
        """Rewritten by the procedure, as its manifests say. Raises :class:`Mismatch` unless all rows are there."""
        found = bounds_in(self.rewrite_by_peer(curve, files), distinct)
        self.set_back()
        return found

    def rewrite_by_peer(self, curve: Curve, files: int) -> Any:
        """Rewrite by the procedure; gives the :meth:`files`. Raises :class:`Mismatch` unless all rows are there."""
        columns = self._table.layout
        order = ", ".join(f"{name} ASC NULLS FIRST" for name in columns)
        order = order if curve is Curve.SORT else f"{curve}({', '.join(columns)})"
        options = {
            "rewrite-all": "true",
            "target-file-size-bytes": self.size_bytes * 2 // files,
            "compression-factor": 2,
        }
        listed = ", ".join(f"'{key}', '{value}'" for key, value in options.items())
        self._spark.sql(
            f"CALL {self.name.catalog}.system.rewrite_data_files(table => 'bench.{self._table.name}', "
            f"strategy => 'sort', sort_order => '{order}', options => map({listed}))"
        ).collect()
        found = self.files()
        rows = int(np.asarray(found["record_count"]).sum())
        if rows != self._table.rows.num_rows:
            raise Mismatch(f"{self._table.name} has {rows} rows by {curve}")
        return found

    def set_back(self) -> None:
        """Bring the table back to the files that it began with."""
        SparkTable(self._spark, self.name).java.manageSnapshots().rollbackTo(self._base_snapshot_id).commit()

    def files(self) -> Any:
        """The data files as Iceberg's metadata table has them, by path."""
        columns = ("file_path", "record_count", "file_size_in_bytes", "readable_metrics")
        return self._metadata("files", *columns).toArrow().sort_by("file_path")

    def _metadata(self, which: str, *columns: str) -> Any:
        return self._spark.table(f"{self.name}.{which}").selectExpr(*columns)


def bounds_in(files: Any, distinct: Mapping[str, Any], weight: str = "record_count") -> Bounds:
    """The bounds of files that were written, by their manifests. Raises :class:`Mismatch` for a bound of no row."""
    metrics = files["readable_metrics"].combine_chunks()

    def ranks(which: str) -> dict[str, Ranks]:
        return {
            name: ranks_of(pc.struct_field(metrics, [name, which]).cast(values.type), values)
            for name, values in distinct.items()
        }

    return Bounds(np.asarray(files[weight]), ranks("lower_bound"), ranks("upper_bound"))


def _cases(outcomes: Sequence[Outcome]) -> list[Case]:
    cases: list[Case] = []
    for family in made.FAMILIES:
        for curve in COLUMN_CURVES:
            some = [outcome for outcome in outcomes if (outcome.table.family, outcome.curve) == (family, curve)]
            if some:
                cases += _family_cases(f"{family}, {curve}", some)
        cases += _hilbert_against_zorder(family, outcomes)
    worst = max(outcomes, key=lambda outcome: outcome.ratio)
    where = f"{worst.table.name}, {worst.table.family}, {worst.curve}"
    cases.append(amount(f"worst of all: {where}", _RATIO, _figures([worst], RATIO, lambda it: it.ratio), TARGET))
    for curve in COLUMN_CURVES:
        some = [outcome for outcome in outcomes if outcome.curve == curve]
        name = f"all, {curve}"
        cases += [
            amount(name, f"{_LARGEST}: {PEER}", _figures(some, PEER, lambda it: it.peers_unevenness)),
            amount(name, f"{_LARGEST}: {ICEWRIGHT}", _figures(some, ICEWRIGHT, lambda it: it.our_unevenness)),
            amount(
                name,
                "CPU to place the rows, over zorder's",
                _figures(some, ICEWRIGHT, lambda it: _dearness(it, outcomes)),
            ),
        ]
    return cases


def _family_cases(name: str, some: Sequence[Outcome]) -> list[Case]:
    return [
        amount(name, _RATIO, _figures(some, RATIO, lambda it: it.ratio), TARGET),
        amount(name, f"{_SCANNED}: {ARRIVAL}", _figures(some, ARRIVAL, lambda it: it.arrival)),
        amount(name, f"{_SCANNED}: {PEER}", _figures(some, PEER, lambda it: it.peers)),
        amount(name, f"{_SCANNED}: {ICEWRIGHT}", _figures(some, ICEWRIGHT, lambda it: it.ours)),
    ]


def _hilbert_against_zorder(family: str, outcomes: Sequence[Outcome]) -> list[Case]:
    """Our best for several columns against what most people would ask the procedure for."""
    some = [outcome for outcome in outcomes if outcome.table.family == family]
    theirs = {outcome.table.name: outcome.peers for outcome in some if outcome.curve is Curve.ZORDER}
    ours = [outcome for outcome in some if outcome.curve is Curve.HILBERT]
    figures = _figures(ours, RATIO, lambda it: it.ours / theirs[it.table.name])
    target = ZORDER_TARGET if family == made.SKEWED else TARGET
    return [amount(f"{family}, our hilbert", "scanned, over the peer's zorder", figures, target)] if ours else []


def _dearness(outcome: Outcome, outcomes: Sequence[Outcome]) -> float:
    (zorder,) = (it for it in outcomes if (it.table.name, it.curve) == (outcome.table.name, Curve.ZORDER))
    return outcome.cpu_s / zorder.cpu_s


def _figures(some: Sequence[Outcome], who: str, value: Callable[[Outcome], float]) -> list[Figure]:
    """One figure per table; its round is the table's number."""
    return [Figure(who, int(outcome.table.name[1:]), 0, value(outcome)) for outcome in some]
