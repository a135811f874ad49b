"""B3 and B4 on files that were really written: what is recommended, what it brings, and what was predicted.

Each table (:mod:`benchmarks.layout_tables`) is written by Spark into an Iceberg table, in as many files as it is to
have, in the order in which its rows came. Its queries are split by time: of the first 200 the older half chooses a
layout and the newer half tests it, as `icewright recommend` does it, from a sample of 80 rows a file and the bounds in
the manifests; 800 later ones judge, which nothing saw. What is recommended is written by icewright's own shuffle, with
its proofs and its commit; the peer writes the same files by `sort` and `zorder` on the columns that an expert picks
(those that the table is asked for; all of them are known to him, none to us).

What queries read are the sizes of files whose bounds in the manifests may have a row of theirs; Iceberg's own planning
says the same for some of them, or the measurement fails. No table has partitions. The recommendation is made for sizes
as if a file had 128 MiB on the mean, with a hundred queries a day; shares do not change by that. The peer is asked for
its files as in B3, and may make a few more or less.

What is judged of predictions: the layout that is recommended, if any, and the Hilbert curve or the sort of the columns
that the expert picks. Errors are of the share of the table's bytes that queries read, and of the bytes, where rows in
another order may take more or less room. Intervals are of the bytes that 800 later queries read.

The usual form takes a table of each family at 20,000 rows in 8 files; it fits into ten minutes on two cores. The full
one takes thirty tables by which nothing was chosen at 200,000 rows in 64 files, and TPC-H's `lineitem` and `orders` at
scale factor 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks import layout_tables as made
from benchmarks import machine
from benchmarks.b3 import PACKAGES, LakeTable, bounds_in
from benchmarks.b4 import (
    COVERED_TARGET,
    ERROR_TARGET,
    FILE_BYTES,
    SAVED_TARGET,
    WORSE_TARGET,
    Share,
    Subject,
    mean,
    predicted_shares,
    recommendation_of,
)
from benchmarks.lake import Mismatch, make_lake
from benchmarks.layout_tables import LayoutTable, Query
from benchmarks.results import AT_LEAST, AT_MOST, Case, Figure, Result, Target, amount
from icewright.model.actions.actions import Executor
from icewright.model.iceberg.layouts import Curve, Layout, LayoutColumn, LayoutExpression, Level
from icewright.model.iceberg.tables import SortField
from icewright.model.queries.recommendations import LayoutChange
from icewright.model.work.jobs import Committed
from icewright_spark.actions.phase import Phase
from icewright_spark.actions.rewrite_data_files import rewrite_data_files
from icewright_spark.iceberg.java_api import SparkTable, iterate
from icewright_spark.session.session import java_gateway
from tests.spark.hand_planned import hand_planned

NAME: Final = "B3-written"
TITLE: Final = (
    "layouts and predictions on files really written, against Iceberg's sort and zorder on an expert's columns"
)

MOST_TARGET: Final = Target(AT_LEAST, 0.6)
PEER_TARGET: Final = Target(AT_MOST, 1.05)

_ROWS_PER_FILE: Final = 80
_ASKED_OF_ICEBERG: Final = 3
"""Queries of each layout whose files Iceberg's planning counts, too."""
_CATALOG: Final = "b3_written"


@dataclass(frozen=True, slots=True)
class Options:
    """How much to measure. ``tables`` are their numbers; those of TPC-H have the rows of the scale factor."""

    name: str
    rows: int
    files: int
    seed: int
    tables: Sequence[int]
    scale_factor: float = 1


NOT_CHOSEN_BY: Final = (*range(1, 30, 2), *range(30, 45))
"""Thirty tables by which nothing was chosen."""


def short(seed: int) -> Options:
    """The options that only show that everything works."""
    return Options(NAME, 4_000, 8, seed, (11, 40, 48), scale_factor=0.003)


def usual(seed: int) -> Options:
    """A table of each family, and both TPC-H-like ones."""
    return Options(NAME, 20_000, 8, seed, (7, 11, 21, 27, 31, 36, 41, 45, 46))


def full(seed: int) -> Options:
    """All thirty tables, and those of TPC-H."""
    return Options(f"{NAME}-full", 200_000, 64, seed, (*NOT_CHOSEN_BY, *made.GENERATED))


@dataclass(frozen=True, slots=True)
class Written:
    """One layout that was really written: shares of its bytes that queries read, and its bytes over those before.

    What was predicted is over the bytes before, too.
    """

    layout: LayoutExpression
    predicted: Share
    same: float
    later: float
    size: float

    @property
    def error(self) -> float:
        """Of the predicted share of the bytes that there are then, to what the same queries read in the files."""
        return abs(self.predicted.read.mean / self.predicted.size / self.same - 1)

    @property
    def error_in_bytes(self) -> float:
        """The same, of bytes."""
        return abs(self.predicted.read.mean / (self.same * self.size) - 1)

    @property
    def error_of_size(self) -> float:
        """Of the predicted size of the table."""
        return abs(self.predicted.size / self.size - 1)

    @property
    def is_covered(self) -> bool:
        """Whether the interval has the bytes that later queries read."""
        return self.predicted.read.low <= self.later * self.size <= self.predicted.read.high


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a table: bytes that a later query reads, over all bytes before."""

    table: LayoutTable
    candidate: str
    now: float
    ours: float
    peers: Mapping[Curve, float]
    written: tuple[Written, ...]


def run(spark: SparkSession, folder: Path, options: Options, say: Callable[[str], None]) -> Result:
    """Measure all tables. Raises :class:`Mismatch` where rows are missing, or Iceberg plans other files."""
    where = machine.description()
    make_lake(spark, folder, _CATALOG)
    outcomes: list[Outcome] = []
    for number in options.tables:
        if number in made.GENERATED:
            table = made.generated(folder, number, options.scale_factor)
        else:
            table = made.table(options.rows, options.seed, number)
        outcomes.append(_measure(spark, folder, table, options))
        it = outcomes[-1]
        said = ", ".join(f"{curve} {share:.3f}" for curve, share in it.peers.items())
        errors = ", ".join(f"{one.layout} {one.error:.1%}" for one in it.written)
        say(
            f"{table.name} {table.family}: {it.candidate}; later queries read {it.ours:.3f} of it, {it.now:.3f} "
            f"before; peer: {said}; errors: {errors}"
        )
    return Result(
        benchmark=options.name,
        title=TITLE,
        measured_at=machine.today(),
        versions=machine.versions(PACKAGES, spark),
        cores=machine.cores(),
        machine={
            **where,
            "Rows of each table": _rows_of(options),
            "Files of each table": str(options.files),
        },
        seed=options.seed,
        cases=tuple(_cases(outcomes)),
    )


def _rows_of(options: Options) -> str:
    generated = f" (TPC-H: scale factor {options.scale_factor:g})"
    return f"{options.rows:,}{generated if any(one in made.GENERATED for one in options.tables) else ''}"


def _measure(spark: SparkSession, folder: Path, table: LayoutTable, options: Options) -> Outcome:
    subject = Subject.of(table, options.files, options.seed)
    with LakeTable(spark, _CATALOG, folder, table, options.files) as lake:
        files = lake.files()
        if not bounds_in(files, subject.distinct).is_of_same_files(subject.now):
            raise Mismatch(f"{table.name} was not written in the order in which its rows came")
        listed, before = _as_large(files), int(np.asarray(files["file_size_in_bytes"]).sum())
        sample = subject.sample(_ROWS_PER_FILE, options.seed, files["file_path"].to_pylist())
        now = bounds_in(files, subject.distinct, "file_size_in_bytes").scanned(subject.later)
        found = recommendation_of(subject, sample, listed)
        change = found.candidate.layout if isinstance(found.candidate, LayoutChange) else None
        layouts = list(dict.fromkeys(layout for layout in (change, _expected(table)) if layout is not None))
        shares = predicted_shares(subject, sample, listed, layouts)
        written = []
        for layout, share in zip(layouts, shares, strict=True):
            _rewrite(spark, lake, layout, options.files)
            written.append(_judged(spark, lake, subject, layout, share, before))
            lake.set_back()
        peers: dict[Curve, float] = {}
        for curve in (Curve.SORT, Curve.ZORDER):
            peers[curve] = _bytes_read(spark, lake, subject, lake.rewrite_by_peer(curve, options.files)) / before
            lake.set_back()
    ours = written[0].later * written[0].size if change is not None else now
    return Outcome(table, str(found.candidate), now, ours, peers, tuple(written))


def _expected(table: LayoutTable) -> LayoutExpression:
    """What is written beside the recommendation: the curve of the columns that an expert picks."""
    columns = tuple(LayoutColumn((name,)) for name in table.layout)
    return LayoutExpression(Curve.HILBERT, columns)


def _as_large(files: Any) -> Any:
    """The files, each as if all had 128 MiB on the mean."""
    size = np.asarray(files["file_size_in_bytes"]).astype(np.float64)
    place = files.column_names.index("file_size_in_bytes")
    return files.set_column(place, "file_size_in_bytes", pa.array((size * (FILE_BYTES / size.mean())).astype(np.int64)))


def _rewrite(spark: SparkSession, lake: LakeTable, layout: LayoutExpression, files: int) -> None:
    """One task of Level 2 by icewright's shuffle, proved and committed. Raises :class:`Mismatch` if it is not."""
    table, spec = SparkTable(spark, lake.name), hand_planned(spark, lake.name)
    ids = [int(table.java.schema().findField(".".join(column.path)).fieldId()) for column in layout.columns]
    fields = tuple(
        SortField(field_id, "identity", column.direction, column.null_order)
        for field_id, column in zip(ids, layout.columns, strict=True)
    )
    groups = tuple(replace(group, executor=Executor.SHUFFLE, output_files=files) for group in spec.rewrite.groups)
    planned = Layout(layout.curve, fields, cuts=layout.cuts)
    action = replace(spec.rewrite, groups=groups, level=Level.LEVEL_2, layout=planned)
    done = rewrite_data_files(spark, table, replace(spec, action=action), Phase(len(groups)), lambda: None)
    if not isinstance(done.result, Committed) or done.left:
        raise Mismatch(f"{lake.name} was not rewritten: {done.result}, {done.left}")


def _judged(
    spark: SparkSession, lake: LakeTable, subject: Subject, layout: LayoutExpression, share: Share, before: int
) -> Written:
    files = lake.files()
    read = _bytes_read(spark, lake, subject, files)
    rows, size = (int(np.asarray(files[name]).sum()) for name in ("record_count", "file_size_in_bytes"))
    if rows != subject.table.rows.num_rows:
        raise Mismatch(f"{subject.table.name} has {rows} rows by {layout}")
    same = bounds_in(files, subject.distinct, "file_size_in_bytes").scanned(subject.newer)
    return Written(layout, share, same, read / size, size / before)


def _bytes_read(spark: SparkSession, lake: LakeTable, subject: Subject, files: Any) -> float:
    """What a later query reads on the mean. Raises :class:`Mismatch` where Iceberg plans other files."""
    bounds, size = bounds_in(files, subject.distinct, "file_size_in_bytes"), np.asarray(files["file_size_in_bytes"])
    scan = SparkTable(spark, lake.name).java.newScan()
    for query in subject.later[:_ASKED_OF_ICEBERG]:
        counted = round(bounds.scanned([query]) * int(size.sum()))
        tasks = iterate(scan.filter(_expression(spark, subject, query)).planFiles())
        planned = sum(int(task.file().fileSizeInBytes()) for task in tasks)
        if planned != counted:
            raise Mismatch(f"{lake.name}: Iceberg plans {planned} bytes, and bounds leave {counted}: {query}")
    return bounds.scanned(subject.later) * int(size.sum())


def _expression(spark: SparkSession, subject: Subject, query: Query) -> Any:
    made_by = java_gateway(spark).org.apache.iceberg.expressions.Expressions
    found = made_by.alwaysTrue()
    for name, ends in query.ranges.items():
        low, high = (_plain(subject.distinct[name][rank]) for rank in ends)
        found = getattr(made_by, "and")(found, made_by.greaterThanOrEqual(name, low))
        found = getattr(made_by, "and")(found, made_by.lessThanOrEqual(name, high))
    return found


def _plain(value: Any) -> Any:
    """As Iceberg's expressions take it: dates and instants as text."""
    return value.as_py().isoformat() if pa.types.is_temporal(value.type) else value.as_py()


def _cases(outcomes: Sequence[Outcome]) -> list[Case]:
    return [*_brought(outcomes), *_against_peers(outcomes), *_predicted(outcomes), *_by_table(outcomes)]


def _brought(outcomes: Sequence[Outcome]) -> list[Case]:
    def figures(value: Callable[[Outcome], float]) -> list[Figure]:
        return [_figure(it, it.candidate, value(it)) for it in outcomes]

    saved = 1 - sum(it.ours for it in outcomes) / sum(it.now for it in outcomes)
    over = figures(lambda it: it.ours / it.now)
    return [
        _of("recommended", "bytes that later queries save, of all tables", saved, figures(_saved), SAVED_TARGET),
        mean(
            "recommended",
            "tables that save more than 30 %",
            figures(lambda it: float(_saved(it) > 0.3)),  # noqa: PLR2004 - as the metric says
            MOST_TARGET,
        ),
        _of(
            "recommended",
            "later queries read, over before: the worst table",
            max(one.value for one in over),
            over,
            WORSE_TARGET,
        ),
    ]


def _against_peers(outcomes: Sequence[Outcome]) -> list[Case]:
    cases = []
    for curve in (Curve.SORT, Curve.ZORDER):
        figures = [_figure(it, it.candidate, it.ours / it.peers[curve]) for it in outcomes]
        total = sum(it.ours for it in outcomes) / sum(it.peers[curve] for it in outcomes)
        case = f"recommended, against the peer's {curve}"
        cases.append(_of(case, "bytes that later queries read, of all tables", total, figures, PEER_TARGET))
        cases.append(amount(case, "bytes that later queries read, by table", figures))
    best = [_figure(it, it.candidate, it.ours / min(*it.peers.values(), it.now)) for it in outcomes]
    worst = max(one.value for one in best)
    case = "recommended, against the best of both and of the table as it is"
    return [*cases, _of(case, "bytes that later queries read: the worst table", worst, best, PEER_TARGET)]


def _predicted(outcomes: Sequence[Outcome]) -> list[Case]:
    both = [(it, one) for it in outcomes for one in it.written]

    def figures(value: Callable[[Written], float]) -> list[Figure]:
        return [_figure(it, str(one.layout), value(one)) for it, one in both]

    case = f"predicted, {_ROWS_PER_FILE} rows a file"
    return [
        mean(case, "error of the share read, of the same queries", figures(lambda it: it.error), ERROR_TARGET),
        mean(case, "error in bytes, of the same queries", figures(lambda it: it.error_in_bytes), ERROR_TARGET),
        mean(
            case,
            "intervals that have what later queries read",
            figures(lambda it: float(it.is_covered)),
            COVERED_TARGET,
        ),
        amount(
            case,
            "half the width of an interval",
            figures(lambda it: (it.predicted.read.high - it.predicted.read.low) / 2),
        ),
        amount(case, "bytes written, over before", figures(lambda it: it.size)),
        mean(case, "error of the predicted bytes written", figures(lambda it: it.error_of_size)),
    ]


def _by_table(outcomes: Sequence[Outcome]) -> list[Case]:
    cases = []
    for it in outcomes:
        case = f"{it.table.name}, {it.table.family}: {it.candidate}"
        values = {"bytes that later queries read, over before": it.ours / it.now, "share read before": it.now}
        values |= {f"ours over the peer's {curve}": it.ours / share for curve, share in it.peers.items()}
        cases += [amount(case, metric, [_figure(it, it.candidate, value)]) for metric, value in values.items()]
    return cases


def _saved(outcome: Outcome) -> float:
    return 1 - outcome.ours / outcome.now


def _figure(outcome: Outcome, who: str, value: float) -> Figure:
    """Its round is the table's number."""
    return Figure(who, int(outcome.table.name[1:]), 0, value)


def _of(case: str, metric: str, value: float, figures: Sequence[Figure], target: Target) -> Case:
    """A value of all tables, with those of each."""
    return replace(amount(case, metric, figures), value=value, target=target.text, met=target.met(value))
