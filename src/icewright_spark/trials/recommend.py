"""From a sample, a list of files and a log of queries to a recommendation for one table.

A Spark job hands over Arrow tables and records, and gets a recommendation. Nothing is read or written here, there is no
clock and no chance in it, but for what comes with the options: rows for settings of the file format, and their measure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from icewright.core.errors import Rejected, Unavailable
from icewright.core.reasons import Reason
from icewright.model.iceberg.layouts import LayoutExpression
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.predicates.cuts import CutTree
from icewright.model.queries.queries import Operator, QueryRecord
from icewright.model.queries.recommendations import (
    FREQUENT_MAX,
    LEAVE,
    Candidate,
    CandidateTrial,
    Evidence,
    FrequentQueries,
    JudgedQuery,
    LayoutChange,
    PropertiesChange,
    Rates,
    Recommendation,
    Verdict,
)
from icewright_spark.executors.sort.sample import ROWS_PER_FILE_MIN
from icewright_spark.trials.aggregations import aggregating_reads, aggregations
from icewright_spark.trials.candidates import BLOOM_PROPERTY, Choice, choose
from icewright_spark.trials.cutting import cut_tree
from icewright_spark.trials.format_sample import FormatSample, one_round
from icewright_spark.trials.formats import FormatsOfWindows, FormatTrials, Measure, may_pay
from icewright_spark.trials.hashed_literals import with_values
from icewright_spark.trials.predicates import Columns, Path, flat_columns
from icewright_spark.trials.simulation import (
    Ends,
    Scanned,
    Simulation,
    scanned,
)
from icewright_spark.trials.sizes import Sizes
from icewright_spark.trials.table_sample import FILE, TableSample, table_sample
from icewright_spark.trials.tournament import (
    NO_CANDIDATE,
    NO_GAIN,
    Entry,
    Sides,
    Window,
    cost_of,
    pick,
    prediction,
    verdict_on,
)
from icewright_spark.trials.workload import (
    EFFECTIVE_MIN,
    QUERIES_MIN,
    UNREADABLE_ROW,
    Workload,
    effective,
    reads_of,
    split_by_time,
    workload_of,
)

SIMULATED_MIN: Final = 0.8
"""Of the bytes: with less in partitions that have sample rows enough, the table is left as it is."""
BLOOM_FALSE_POSITIVES: Final = 0.01
"""Iceberg's default of ``write.parquet.bloom-filter-fpp.column``."""

JUDGED_MAX: Final = 1_000
"""Queries of which it is kept what they open now."""

TOO_FEW_QUERIES, SAMPLE_TOO_SMALL = "too-few-queries", "sample-too-small"


@dataclass(frozen=True, slots=True)
class Options:
    """``current`` is the layout that the table is to have now; ``modes`` its metrics modes, by column.

    ``unreadable`` counts queries that could not be read, and are not among those that are given. ``whole`` are rows
    with all columns and ``_file`` of some files, chosen by chance, each file's in their order, by which sizes are
    predicted; without it rows take as much room under a layout as they do now. ``formats`` reads the rows on which
    settings of the file format are tried, where these may pay; where it is refused the reason is a caveat.
    ``written_share`` is of :class:`~icewright_spark.trials.formats.FormatTrials`; ``hash_key`` is that of the digests
    in queries, None where it is not known.
    """

    rates: Rates = field(default_factory=Rates)
    current: LayoutExpression | None = None
    modes: Mapping[Path, str] = field(default_factory=dict)
    unreadable: int = 0
    whole: Any = None
    formats: Callable[[], FormatSample] | None = None
    measure: Measure = one_round
    written_share: float = 1.0
    hash_key: bytes | None = field(default=None, repr=False)


def recommend(
    table: TableName, sample: Any, files: Any, queries: Sequence[QueryRecord], options: Options | None = None
) -> Recommendation:
    """What to do about a table.

    ``sample`` is an Arrow table of rows chosen by chance, at least 80 for each file, with the table's columns and
    ``_file``; columns in structs are found by their dotted paths. ``files`` are the rows of Iceberg's metadata table
    ``files`` of the same snapshot: ``file_path``, ``record_count``, ``file_size_in_bytes``, and, as far as the table
    has them, ``partition``, ``spec_id`` and ``readable_metrics``. ``queries`` may be of any tables, in any order.

    Raises :class:`~icewright.core.errors.Rejected` for input without the columns that are needed.
    """
    return _Trials(table, sample, files, queries, options or Options()).recommendation()


def sides_of(simulation: Simulation, layout: LayoutExpression, queries: Workload) -> Sides:
    """What queries open under a layout: as expected, at best and at worst."""
    files = (simulation.under(layout, ends) for ends in (Ends.FINITE, Ends.SEEN, Ends.EXPONENTIAL))
    return Sides(*(scanned(queries.conditions, some) for some in files))


class _Trials:
    def __init__(
        self, table: TableName, sample: Any, files: Any, queries: Sequence[QueryRecord], options: Options
    ) -> None:
        self._table, self._options = table, options
        flat = flat_columns(sample)
        columns = Columns([path for path in flat if path != (FILE,)])
        reads, unusable = reads_of(queries, table, columns)
        current = [column.path for column in options.current.columns] if options.current is not None else []
        wanted = [path for read in reads for path, _ in read.filters] + [path for path in current if path in flat]
        grouped = [columns.find(name) for read in aggregating_reads(queries, table) for name in read.group_by]
        wanted += [path for path in dict.fromkeys(grouped) if path is not None]
        self._sample: TableSample = table_sample(flat, files, wanted, options.modes)
        if options.hash_key is not None:
            valued = with_values(self._sample.columns, reads, options.hash_key)
            self._sample = replace(self._sample, columns=valued)
        self._queries = queries
        older, newer = split_by_time(reads)
        self._older_reads, self._newer_reads = older, newer
        self._older, of_older = workload_of(older, self._sample.columns)
        self._newer, of_newer = workload_of(newer, self._sample.columns)
        unreadable = Counter({UNREADABLE_ROW: options.unreadable})
        self._unusable = dict(Counter(unusable) + Counter(of_older) + Counter(of_newer) + unreadable)
        sizes = None if options.whole is None else Sizes.of(options.whole, files)
        self._simulation = Simulation(self._sample, sizes)
        self._cost = cost_of(self._simulation.simulated_bytes, options.rates)
        self._not_written: Reason | None = None

    def recommendation(self) -> Recommendation:
        """With what is recorded beside it."""
        return replace(self._verdict(), aggregations=aggregations(self._queries, self._table, self._sample))

    def _verdict(self) -> Recommendation:
        refusal = self._refusal()
        if refusal is not None:
            return self._leave(refusal)
        choice = choose(self._older, self._sample.columns, self._options.current)
        cuts, older = self._cut_entry(choice), self._window(self._older)
        formats = self._formats(older)
        entries = [self._entry(candidate, self._older, choice) for candidate in choice.candidates]
        entries += [] if cuts is None else [cuts]
        entries += [] if formats is None else formats.entries
        if not entries:
            text = "No column has filters that exclude rows and that bounds of files can answer."
            return self._leave(Reason(NO_CANDIDATE, text), choice)
        trials = [self._trial(entry, older, formats) for entry in entries]
        winner = pick(entries, older, self._options.rates)
        ordered = sorted(trials, key=lambda trial: -trial.train.saved_s_per_day.mean)
        if winner is None:
            best = ordered[0]
            text = (
                f"No candidate saves older queries more than it costs: the best, {best.candidate}, saves "
                f"{best.train.saved_s_per_day.mean:.3g} CPU seconds a day and costs {best.cost.cpu_s:.3g}."
            )
            return self._leave(Reason(NO_GAIN, text), choice, ordered)
        candidate = entries[winner].candidate
        if formats is not None and isinstance(candidate, PropertiesChange) and entries[winner].window is not None:
            entry = formats.trials.judged(candidate, formats.newer)
        else:
            entry = self._entry(candidate, self._newer, choice)
        newer = prediction(entry.window or self._window(self._newer), entry.sides, self._options.rates)
        chosen = replace(trials[winner], test=newer)
        verdict, reason = verdict_on(entry.cost, chosen.train, newer, self._options.rates)
        ordered = [chosen if trial is trials[winner] else trial for trial in ordered]
        return Recommendation(
            table=self._table,
            verdict=verdict,
            reason=reason,
            candidate=chosen.candidate if verdict is Verdict.CHANGE else LEAVE,
            evidence=self._evidence(choice),
            rates=self._options.rates,
            chosen=chosen,
            trials=tuple(ordered),
            caveats=self._caveats(chosen.candidate),
            frequent=self._frequent(
                entry.sides.expected if isinstance(candidate, LayoutChange) and verdict is Verdict.CHANGE else None
            ),
            judged=self._judged() if verdict is Verdict.CHANGE else (),
        )

    def _formats(self, older: Window) -> FormatsOfWindows | None:
        """Settings of the file format with the queries of both windows; None where they cannot pay, or be tried."""
        options, files = self._options, self._sample.files
        if options.formats is None or not may_pay(older, options.rates):
            return None
        now, columns = self._simulation.now(), self._sample.columns
        windows = ((self._older_reads, self._older), (self._newer_reads, self._newer))
        try:
            trials = FormatTrials(
                options.formats(),
                options.measure,
                options.rates,
                files=len(files.rows),
                file_bytes=int(files.bytes.sum()),
                written_share=options.written_share,
            )
            first, second = (trials.queries(reads, of, columns, now) for reads, of in windows)
            return FormatsOfWindows(trials, tuple(trials.entries(first)), second)
        except (Rejected, Unavailable) as error:  # layouts need none of it, and Spark has other ways to the files
            text = f"Settings of the file format are not tried: {error.message}"
            self._not_written = Reason("formats-not-tried", text)
            return None

    def _trial(self, entry: Entry, older: Window, formats: FormatsOfWindows | None) -> CandidateTrial:
        candidate, train = entry.candidate, prediction(entry.window or older, entry.sides, self._options.rates)
        if formats is None or entry.window is None or not isinstance(candidate, PropertiesChange):
            return CandidateTrial(candidate, train, entry.cost)
        return CandidateTrial(candidate, train, entry.cost, written=formats.trials.said(candidate))

    def _judged(self) -> tuple[JudgedQuery, ...]:
        """What newer queries open now: of many, those of the smallest keys."""
        opened = scanned(self._newer.conditions, self._simulation.now())
        found = [
            JudgedQuery(unit.key, unit.weight, int(files), int(size))
            for unit, files, size in zip(self._newer.units, opened.files, opened.bytes, strict=True)
        ]
        return tuple(sorted(found, key=lambda query: query.key)[:JUDGED_MAX])

    def _refusal(self) -> Reason | None:
        """Why nothing is tried at all."""
        windows = (self._older, self._newer)
        if not all(window.is_enough for window in windows):
            counts = [len(window.units) for window in windows]
            equal = [round(effective(window.weights), 1) for window in windows]
            text = (
                f"Too few queries: {counts[0]} older and {counts[1]} newer ones that differ can be evaluated, and tell "
                f"as much as {equal[0]:g} and {equal[1]:g} that ran equally often. {QUERIES_MIN} are needed of each, "
                f"and {EFFECTIVE_MIN}."
            )
            return Reason(TOO_FEW_QUERIES, text, {"older": counts[0], "newer": counts[1]})
        several = self._simulation.simulated_bytes + self._simulation.unsampled_bytes
        if self._simulation.simulated_bytes < SIMULATED_MIN * several:
            text = (
                f"The sample of {self._sample.rows} rows is too small: it has {ROWS_PER_FILE_MIN} a file only in "
                f"{self._simulation.simulated_bytes} of {several} bytes. {self._simulation.rows_wanted} are needed."
            )
            return Reason(SAMPLE_TOO_SMALL, text, {"rows_needed": self._simulation.rows_wanted})
        return None

    def _leave(
        self, reason: Reason, choice: Choice | None = None, trials: Sequence[CandidateTrial] = ()
    ) -> Recommendation:
        return Recommendation(
            table=self._table,
            verdict=Verdict.LEAVE,
            reason=reason,
            candidate=LEAVE,
            evidence=self._evidence(choice),
            rates=self._options.rates,
            trials=tuple(trials),
            caveats=self._caveats(LEAVE),
            frequent=self._frequent(None) if self._newer.is_enough else None,
        )

    def _frequent(self, then: Scanned | None) -> FrequentQueries:
        """What the most frequent queries of the newer window open now, and ``then``."""
        first = np.argsort(-self._newer.weights, kind="stable")[:FREQUENT_MAX]
        now = scanned(self._newer.conditions, self._simulation.now())
        return FrequentQueries(
            len(first), float(now.files[first].sum()), float((now if then is None else then).files[first].sum())
        )

    def _window(self, queries: Workload) -> Window:
        now = scanned(queries.conditions, self._simulation.now())
        files = self._sample.files
        return Window(queries.weights, queries.days, now, len(files.rows), int(files.bytes.sum()))

    def _entry(self, candidate: Candidate, queries: Workload, choice: Choice) -> Entry:
        match candidate:
            case LayoutChange(layout):
                return Entry(candidate, self._cost, sides_of(self._simulation, layout, queries))
            case PropertiesChange():
                then = self._with_bloom(queries, choice.bloom)
                cost = cost_of(int(self._sample.files.bytes.sum()), self._options.rates)
                return Entry(candidate, cost, Sides(then, then, then))
        raise AssertionError(f"{candidate} is no candidate of the tournament")

    def _cut_entry(self, choice: Choice) -> Entry | None:
        """The cuts of the older queries, as half of these predict the other half: else it would be asked what it knows.

        A query of both halves counts in each as often as it ran there.
        """
        tree = self._cuts(self._older, choice)
        if tree is None or len(tree.columns) == 1:  # that is a sort, which is easier to keep in order
            return None
        halves = [workload_of(half, self._sample.columns)[0] for half in split_by_time(self._older_reads)]
        first, second = (self._sides_by(self._cuts(half, choice)) for half in halves)
        ran = {unit.filters: unit.weight for unit in halves[0].units}
        share = np.array([ran.get(unit.filters, 0) / unit.weight for unit in self._older.units])
        mixed = (
            Scanned(share * two.files + (1 - share) * one.files, share * two.bytes + (1 - share) * one.bytes)
            for one, two in zip(first, second, strict=True)
        )
        return Entry(LayoutChange(LayoutExpression.by_cuts(tree)), self._cost, Sides(*mixed))

    def _cuts(self, queries: Workload, choice: Choice) -> CutTree | None:
        return cut_tree(queries, self._sample.columns, self._simulation, choice.cut)

    def _sides_by(self, tree: CutTree | None) -> tuple[Scanned, Scanned, Scanned]:
        """What older queries open under a tree, or as files are where there is none."""
        if tree is None:
            now = scanned(self._older.conditions, self._simulation.now())
            return now, now, now
        found = sides_of(self._simulation, LayoutExpression.by_cuts(tree), self._older)
        return found.expected, found.optimistic, found.pessimistic

    def _with_bloom(self, queries: Workload, bloom: Sequence[Path]) -> Scanned:
        """The files stay open, since their footers are read; of those that have no value only false positives are."""
        now = scanned(queries.conditions, self._simulation.now())
        size = now.bytes.copy()
        for number, conditions in enumerate(queries.conditions):
            shares = [
                self._share_with_bloom(condition.literals, condition.column, now.files[number])
                for condition in conditions
                if condition.column in bloom and condition.operator in (Operator.EQ, Operator.IN)
            ]
            size[number] *= min(shares, default=1.0)
        return Scanned(now.files, size)

    def _share_with_bloom(self, literals: int, path: Path, opened: float) -> float:
        """Of the files whose bounds have one of so many values, the share that has one, or seems to.

        A value is in as many files as it has rows, at most. How many rows it has follows from how often two rows of the
        sample have the same value, with one pair more than were seen.
        """
        if not opened:
            return 1.0
        counts = np.bincount(ranks) if len(ranks := self._valid_ranks(path)) else np.zeros(1)
        pairs = float((counts * (counts - 1)).sum() / 2) + 1
        possible = max(len(ranks) * (len(ranks) - 1) / 2, 1.0)
        rows_of_value = 1 + float(self._sample.files.rows.sum()) * pairs / possible
        having = min(1.0, literals * rows_of_value / opened)
        return having + (1 - having) * min(1.0, literals * BLOOM_FALSE_POSITIVES)

    def _valid_ranks(self, path: Path) -> Any:
        ranks = self._sample.columns[path].ranks
        return ranks[ranks >= 0]

    def _evidence(self, choice: Choice | None) -> Evidence:
        hidden = sum(unit.weight for queries in (self._older, self._newer) for unit in queries.hidden)
        return Evidence(
            train=self._older.window if self._older.window.queries else None,
            test=self._newer.window if self._newer.window.queries else None,
            unusable=self._unusable,
            columns_only=hidden,
            files=len(self._sample.files.rows),
            bytes=int(self._sample.files.bytes.sum()),
            partitions=self._simulation.partitions,
            sample_rows=self._sample.rows,
            simulated_bytes=self._simulation.simulated_bytes,
            columns=choice.scores if choice is not None else (),
        )

    def _caveats(self, candidate: Candidate) -> tuple[Reason, ...]:
        """What would make the figures wrong."""
        evidence = self._evidence(None)
        found = [
            Reason("queries-change", "The figures hold as long as queries stay what they were in the newer window."),
            Reason("rates", "CPU seconds are at the stated rates, not measured on this table's storage and engines."),
        ]
        if evidence.columns_only:
            hidden = evidence.columns_only
            text = f"{hidden} queries with hashed or dropped literals count for the choice of columns alone."
            found.append(Reason("hidden-literals", text, {"queries": hidden}))
        if self._unusable:
            listed = ", ".join(f"{count} {reason}" for reason, count in sorted(self._unusable.items()))
            found.append(Reason("unusable-queries", f"Queries that count for nothing: {listed}.", self._unusable))
        if self._sample.lost_rows:
            text = f"{self._sample.lost_rows} sampled rows are of files that the list does not have: another snapshot."
            found.append(Reason("another-snapshot", text, {"rows": self._sample.lost_rows}))
        if not self._sample.has_bounds:
            found.append(Reason("no-bounds", "The bounds of the present files are estimated from the sample, too."))
        if self._simulation.unsampled_bytes:
            left = self._simulation.unsampled_bytes
            text = f"{left} bytes are in partitions with too few sample rows, and are taken as they are on both sides."
            found.append(Reason("unsampled", text, {"bytes": left}))
        if isinstance(candidate, LayoutChange) and candidate.layout.cuts is not None:
            cuts = sum(cut is not None for cut in candidate.layout.cuts.cuts)
            text = (
                f"Its {cuts} cuts are at values that older queries asked for: queries for others gain less, and so do "
                "rows beyond them, as of later times."
            )
            found.append(Reason("cuts-age", text, {"cuts": cuts}))
        if isinstance(candidate, PropertiesChange) and any(
            key.startswith(BLOOM_PROPERTY) for key in candidate.properties
        ):
            text = "What Bloom filters skip is estimated from how often values repeat in the sample, not simulated."
            found.append(Reason("bloom-estimate", text))
        elif isinstance(candidate, PropertiesChange):
            text = (
                "Files that are there get these settings when they are rewritten, and row groups that are copied as "
                "they are keep theirs. Decoding was measured with Arrow on the optimizer, not with your engines."
            )
            found.append(Reason("format-of-new-files", text))
        return (*found, *(() if self._not_written is None else (self._not_written,)))
