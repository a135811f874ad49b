"""B4, first part: what a sample of rows predicts that queries read under layouts, against the same layouts of all rows.

No file is written here, but in :mod:`benchmarks.b3_written`: what is judged against are the least and the largest
values per file of all rows, placed by the code of the shuffle's workers from another sample, as in B3. The tables and
their queries are those of B3 (:mod:`benchmarks.layout_tables`); rows lie in as many files in the order of their
arrival, whose true bounds are given, each as if it had 128 MiB, and a hundred queries are run a day.

Half of the queries are older, half newer. Four layouts by the table's columns are predicted on the newer ones; then
layouts are judged by 800 later queries, about as many as the horizon has, which no prediction saw. What is recommended,
of whatever columns, is judged by these too. The correction for unseen extremes was chosen on the tables of even number;
what is published is of the others alone, with losses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from benchmarks import layout_tables as made
from benchmarks import machine
from benchmarks.b3 import Bounds, bounds_of, ranks_of
from benchmarks.layout_tables import LayoutTable, Query, Ranks
from benchmarks.results import AT_LEAST, AT_MOST, Case, Figure, Result, Target, amount
from icewright.model.iceberg.layouts import Curve, LayoutColumn, LayoutExpression
from icewright.model.iceberg.names import TableName
from icewright.model.queries.queries import (
    Filter,
    Literal,
    LiteralKind,
    Operator,
    QueryRecord,
    QuerySource,
    TableRead,
)
from icewright.model.queries.recommendations import Interval, LayoutChange, Rates, Recommendation, Verdict
from icewright_spark.executors.sort.cells import cells_of, sample_rows
from icewright_spark.trials.predicates import Columns, flat_columns
from icewright_spark.trials.recommend import Options as Trial
from icewright_spark.trials.recommend import recommend, sides_of
from icewright_spark.trials.simulation import Simulation, scanned
from icewright_spark.trials.sizes import Sizes, layout_by_place
from icewright_spark.trials.table_sample import FILE, table_sample
from icewright_spark.trials.tournament import Window, prediction
from icewright_spark.trials.workload import reads_of, workload_of

NAME: Final = "B4"
TITLE: Final = "what a sample predicts that queries read under layouts of 15 tables, against all rows; no files written"

ERROR_TARGET: Final = Target(AT_MOST, 0.07)
COVERED_TARGET: Final = Target(AT_LEAST, 0.93)
SAVED_TARGET: Final = Target(AT_LEAST, 0.35)
WORSE_TARGET: Final = Target(AT_MOST, 1.05)

FILE_BYTES: Final = 128 << 20
_QUERY_MS: Final = 864_000
"""A hundred queries a day."""
_LATER_SEEDS: Final = (1_001, 1_002, 1_003, 1_004)
_TABLE: Final = TableName("b4", ("bench",), "t")
"""What queries name, whichever table they are of."""
_PACKAGES: Final = ("icewright", "numpy", "pyarrow")
_ROWS_PER_FILE: Final = (80, 400)
"""Of the sample: the fewest, and what the shuffle takes."""


@dataclass(frozen=True, slots=True)
class Options:
    """How much to measure. ``tables`` are their places among the thirty."""

    rows: int
    files: int
    seed: int
    tables: Sequence[int]


def full(seed: int) -> Options:
    """The options whose results are published: tables of odd number, by which nothing was chosen."""
    return Options(rows=200_000, files=64, seed=seed, tables=range(1, 30, 2))


def short(seed: int) -> Options:
    """The options that only show that everything works."""
    return Options(rows=20_000, files=8, seed=seed, tables=(1, 11))


@dataclass(frozen=True, slots=True)
class Predicted:
    """One layout of one table: shares of all bytes that queries read. ``same`` is of the queries of the prediction."""

    table: LayoutTable
    layout: LayoutExpression
    rows_per_file: int
    share: Interval
    same: float
    later: float

    @property
    def error(self) -> float:
        """Of the prediction, to what the same queries read when all rows are placed."""
        return abs(self.share.mean / self.same - 1)

    @property
    def is_covered(self) -> bool:
        """Whether the interval has what later queries read."""
        return self.share.low <= self.later <= self.share.high


@dataclass(frozen=True, slots=True)
class Recommended:
    """What was recommended for a table: shares of bytes that later queries read, as it is and as recommended."""

    table: LayoutTable
    recommendation: Recommendation
    now: float
    then: float

    @property
    def is_changed(self) -> bool:
        """Whether anything but to leave it is recommended."""
        return self.recommendation.verdict is Verdict.CHANGE


@dataclass(frozen=True, slots=True)
class Subject:
    """A table with its files, its queries in two windows and later ones."""

    table: LayoutTable
    files: int
    distinct: Mapping[str, Any]
    ranks: Mapping[str, Ranks]
    placed: Ranks
    queries: Sequence[Query]
    later: Sequence[Query]

    @classmethod
    def of(cls, table: LayoutTable, files: int, seed: int) -> Subject:
        """The table with rows in files in the order of their arrival."""
        distinct = table.distinct
        ranks = {name: ranks_of(table.rows[name], values) for name, values in distinct.items()}
        rows = table.rows.num_rows
        later = [query for more in _LATER_SEEDS for query in made.queries(table, ranks, seed + more)]
        placed = np.arange(rows) * files // rows
        return cls(table, files, distinct, ranks, placed, made.queries(table, ranks, seed), later)

    @property
    def newer(self) -> Sequence[Query]:
        """The half of the queries that predictions are made for."""
        return self.queries[len(self.queries) // 2 :]

    @property
    def now(self) -> Bounds:
        """The bounds of the files that are there."""
        return bounds_of(self.placed, self.files, self.ranks)

    def under(self, layout: LayoutExpression, seed: int) -> Bounds:
        """The bounds of all rows under a layout, by the code of the shuffle, from a sample of its own."""
        columns = self.table.rows.select([column.path[0] for column in layout.columns])
        rows = columns.num_rows
        chosen = np.random.default_rng([seed, 7]).choice(rows, min(sample_rows(self.files), rows), replace=False)
        cells = cells_of(columns.take(pa.array(np.sort(chosen))), layout_by_place(layout), self.files)
        batches = columns.combine_chunks().to_batches(max_chunksize=10_000)
        placed = np.concatenate([np.asarray(cells.place(batch)["cell"]) for batch in batches])
        return bounds_of(placed, self.files, self.ranks)

    def sample(self, rows_per_file: int, seed: int, paths: Sequence[str] = ()) -> Any:
        """Rows chosen by chance, with their files, whose ``paths`` may be given."""
        rows = self.table.rows.num_rows
        count = min(rows, rows_per_file * self.files)
        chosen = np.sort(np.random.default_rng([seed, 3]).choice(rows, count, replace=False))
        called = paths or [f"f{number}" for number in range(self.files)]
        names = pa.array([called[number] for number in self.placed[chosen].tolist()], pa.string())
        return self.table.rows.take(pa.array(chosen)).append_column(FILE, names)

    def listed(self) -> Any:
        """The files as Iceberg's metadata table has them."""
        now = self.now
        metrics = []
        for name, values in self.distinct.items():
            lower, upper = (values.take(pa.array(ends[name])) for ends in (now.least, now.largest))
            counts = (pa.array(now.rows), *(pa.array(np.zeros(self.files, np.int64)) for _ in range(2)))
            keys = ["value_count", "null_value_count", "nan_value_count", "lower_bound", "upper_bound"]
            metrics.append(pa.StructArray.from_arrays([*counts, lower, upper], keys))
        return pa.table(
            {
                "file_path": [f"f{number}" for number in range(self.files)],
                "record_count": now.rows,
                "file_size_in_bytes": np.full(self.files, FILE_BYTES),
                "readable_metrics": pa.StructArray.from_arrays(metrics, list(self.distinct)),
            }
        )

    def records(self) -> list[QueryRecord]:
        """The queries as a log has them."""
        return [
            QueryRecord(
                query_id=str(number),
                source=QuerySource.TRINO,
                engine="trino",
                user="bench",
                started_at=number * _QUERY_MS,
                tables=(TableRead(_TABLE, filters=self._filters(query)),),
            )
            for number, query in enumerate(self.queries)
        ]

    def _filters(self, query: Query) -> tuple[Filter, ...]:
        found: list[Filter] = []
        for name, (low, high) in query.ranges.items():
            first, last = (_literal(self.distinct[name][rank]) for rank in (low, high))
            if low == high:
                found.append(Filter(name, Operator.EQ, (first,)))
            else:
                found += [Filter(name, Operator.GT_EQ, (first,)), Filter(name, Operator.LT_EQ, (last,))]
        return tuple(found)


def _literal(value: Any) -> Literal:
    kind, plain = value.type, value.as_py()
    if pa.types.is_timestamp(kind):
        return Literal(LiteralKind.TIMESTAMP, plain.isoformat())
    if pa.types.is_date(kind):
        return Literal(LiteralKind.DATE, plain.isoformat())
    return Literal(LiteralKind.STRING if pa.types.is_string(kind) else LiteralKind.NUMBER, str(plain))


def layouts_of(table: LayoutTable) -> list[LayoutExpression]:
    """Four layouts by the columns of a table: its first one, all, and both curves."""
    columns = tuple(LayoutColumn((name,)) for name in table.layout)
    sorts = [LayoutExpression(Curve.SORT, columns[:count]) for count in (1, len(columns))]
    return [*sorts, *(LayoutExpression(curve, columns) for curve in (Curve.ZORDER, Curve.HILBERT))]


def predict(
    subject: Subject, layouts: Mapping[LayoutExpression, Bounds], rows_per_file: int, seed: int
) -> list[Predicted]:
    """Each layout as predicted on the newer half of the queries, and as it is for the same and for later ones."""
    shares = predicted_shares(subject, subject.sample(rows_per_file, seed), subject.listed(), list(layouts))
    newer, found = subject.newer, []
    for (layout, bounds), share in zip(layouts.items(), shares, strict=True):
        same, later = bounds.scanned(newer), bounds.scanned(subject.later)
        found.append(Predicted(subject.table, layout, rows_per_file, share.read, same, later))
    return found


@dataclass(frozen=True, slots=True)
class Share:
    """What queries read under a layout over all bytes that there are now; ``size`` is all bytes then over those now."""

    read: Interval
    size: float


def predicted_shares(subject: Subject, sample: Any, listed: Any, layouts: Sequence[LayoutExpression]) -> list[Share]:
    """What the newer half of the queries reads under each layout, as predicted from a sample."""
    flat, names = flat_columns(sample), list(subject.distinct)
    reads, _ = reads_of(subject.records(), _TABLE, Columns([(name,) for name in names]))
    table = table_sample(flat, listed, [(name,) for name in names], {})
    newer, _ = workload_of(reads[len(reads) // 2 :], table.columns)
    simulation, total = Simulation(table, Sizes.of(sample, listed)), int(np.asarray(listed["file_size_in_bytes"]).sum())
    window = Window(newer.weights, newer.days, scanned(newer.conditions, simulation.now()), subject.files, total)
    found = []
    for layout in layouts:
        size = prediction(window, sides_of(simulation, layout, newer), Rates()).bytes_read
        read = Interval(size.low / total, size.mean / total, size.high / total)
        found.append(Share(read, simulation.size_under(layout)))
    return found


def recommendation_of(subject: Subject, sample: Any, listed: Any) -> Recommendation:
    """What is recommended for a table."""
    return recommend(_TABLE, sample, listed, subject.records(), Trial(whole=sample))


def recommended(subject: Subject, rows_per_file: int, seed: int) -> Recommended:
    """What is recommended for a table, and what later queries read then."""
    found = recommendation_of(subject, subject.sample(rows_per_file, seed), subject.listed())
    now = subject.now.scanned(subject.later)
    then = now
    if isinstance(found.candidate, LayoutChange):
        then = subject.under(found.candidate.layout, seed).scanned(subject.later)
    return Recommended(subject.table, found, now, then)


def run(_folder: Path, options: Options, say: Callable[[str], None]) -> Result:
    """Measure all tables."""
    predictions: list[Predicted] = []
    outcomes: list[Recommended] = []
    for number, table in enumerate(made.tables(options.rows, options.seed)):
        if number not in options.tables:
            continue
        subject = Subject.of(table, options.files, options.seed)
        layouts = {layout: subject.under(layout, options.seed) for layout in layouts_of(table)}
        for rows_per_file in _ROWS_PER_FILE:
            predictions += predict(subject, layouts, rows_per_file, options.seed)
        outcomes.append(recommended(subject, _ROWS_PER_FILE[0], options.seed))
        outcome = outcomes[-1]
        say(
            f"{table.name} {table.family}: {outcome.recommendation.candidate} ({outcome.recommendation.reason.code}), "
            f"later queries read {outcome.then:.3f} of it, {outcome.now:.3f} before"
        )
    return Result(
        benchmark=NAME,
        title=TITLE,
        measured_at=machine.today(),
        versions=machine.versions(_PACKAGES, None),
        cores=machine.cores(),
        machine={
            **machine.description(),
            "Rows of each table": f"{options.rows:,}",
            "Files of each table": str(options.files),
        },
        seed=options.seed,
        cases=tuple(_cases(predictions, outcomes)),
    )


def _cases(predictions: Sequence[Predicted], outcomes: Sequence[Recommended]) -> list[Case]:
    cases: list[Case] = []
    for rows_per_file in _ROWS_PER_FILE:
        some = [it for it in predictions if it.rows_per_file == rows_per_file]
        cases += _predicted(some, f"{rows_per_file} rows a file")
    return cases + _recommended(outcomes)


def _predicted(some: Sequence[Predicted], name: str) -> list[Case]:
    errors = [Figure(str(it.layout), int(it.table.name[1:]), 0, it.error) for it in some]
    covered = [Figure(str(it.layout), int(it.table.name[1:]), 0, float(it.is_covered)) for it in some]
    widths = [Figure(str(it.layout), int(it.table.name[1:]), 0, (it.share.high - it.share.low) / 2) for it in some]
    return [
        mean(name, "error of the share read, of the same queries", errors, ERROR_TARGET),
        mean(name, "intervals that have what later queries read", covered, COVERED_TARGET),
        amount(name, "half the width of an interval, in shares of the table", widths),
        *(
            mean(f"{name}, {family}", "error of the share read, of the same queries", figures)
            for family in made.FAMILIES
            if (figures := [figure for figure, it in zip(errors, some, strict=True) if it.table.family == family])
        ),
    ]


def _recommended(outcomes: Sequence[Recommended]) -> list[Case]:
    def figures(value: Callable[[Recommended], float]) -> list[Figure]:
        return [Figure(str(it.recommendation.candidate), int(it.table.name[1:]), 0, value(it)) for it in outcomes]

    saved = 1 - sum(it.then for it in outcomes) / sum(it.now for it in outcomes)
    return [
        replace(
            mean(
                "recommended", "bytes that later queries save, of all tables", figures(lambda it: 1 - it.then / it.now)
            ),
            value=saved,
            target=SAVED_TARGET.text,
            met=SAVED_TARGET.met(saved),
        ),
        mean("recommended", "tables that save more than 30 %", figures(lambda it: float(it.then < 0.7 * it.now))),
        _worst("recommended", "later queries read, over before: the worst table", figures(lambda it: it.then / it.now)),
        mean("recommended", "tables that are changed", figures(lambda it: float(it.recommendation.chosen is not None))),
    ]


def mean(case: str, metric: str, figures: Sequence[Figure], target: Target | None = None) -> Case:
    """The mean, where single values are yes or no, or errors."""
    value = float(np.mean([figure.value for figure in figures]))
    met = None if target is None else target.met(value)
    return replace(amount(case, metric, figures), value=value, target=None if target is None else target.text, met=met)


def _worst(case: str, metric: str, figures: Sequence[Figure]) -> Case:
    value = max(figure.value for figure in figures)
    found = amount(case, metric, figures)
    return replace(found, value=value, target=WORSE_TARGET.text, met=WORSE_TARGET.met(value))
