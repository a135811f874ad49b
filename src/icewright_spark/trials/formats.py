"""Settings of the file format as candidates: codec and level, row groups, and dictionaries of single columns.

1. Every setting is tried on the same rows (:mod:`.format_sample`), by turns with the present ones, :data:`FIRST_ROUNDS`
   times; the best on the older queries, and all that help together, :data:`ROUNDS` times. The newer queries judge the
   winner by as many rounds of their own.
2. A query reads, of the row groups that it cannot skip, the columns that it is known to read, and those of its
   filters. It skips row groups by minima and maxima as Iceberg's reader does, and by a dictionary that has all values.
3. It saves what these bytes cost at the rate of reading, what decoding them cost here, and opening a row group as if
   it were a file. What differs between rounds widens the interval on both sides.
4. The cost is that of a rewrite of the whole table, though accepting rewrites nothing, and besides, by the unfavorable
   end of its interval, what writing takes longer: of all rows, or of those that are written within the horizon.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icewright.core.errors import Unsupported
from icewright.model.iceberg.writer_settings import (
    CODEC_KEY,
    DICTIONARY_PREFIX,
    LEVEL_KEY,
    ROW_GROUP_KEY,
    WriterSettings,
    writer_settings,
)
from icewright.model.queries.queries import Filter, Operator
from icewright.model.queries.recommendations import (
    FORMAT_COLUMNS_MAX,
    ColumnBytes,
    Cost,
    FormatTrial,
    Interval,
    PropertiesChange,
    Rates,
    t_quantile,
)
from icewright_spark.executors.merge.values import comparable
from icewright_spark.parquet.schema import compatible_name
from icewright_spark.trials.format_sample import FormatSample, Round
from icewright_spark.trials.predicates import (
    NULL_CODE,
    UNKNOWN_HIGH,
    UNKNOWN_LOW,
    ColumnBounds,
    Condition,
    Flags,
    Path,
    RowCodes,
    condition_of,
    files_that_may_match,
    flat_columns,
    rows_of,
    rows_that_match,
)
from icewright_spark.trials.simulation import Amounts, Files, Scanned, scanned
from icewright_spark.trials.table_sample import CodedColumn, has_order, scale_of
from icewright_spark.trials.tournament import Entry, Sides, Window, cost_of, saved_in_horizon
from icewright_spark.trials.workload import EFFECTIVE_MIN, Read, Unit, Workload, effective, filters_of, unit_of

Measure: TypeAlias = Callable[[FormatSample, WriterSettings, Collection[str]], Round]

FIRST_ROUNDS: Final = 2
ROUNDS: Final = 5
FINALISTS: Final = 3
QUERIES_MAX: Final = 500
"""Of a window, that differ in filters or columns; of more, those of the smallest digests, which count for all."""

CODECS: Final = (("zstd", 1), ("zstd", 3), ("zstd", 9), ("snappy", None), ("uncompressed", None))
"""That every reader reads. Not gzip: Zstandard writes as little, and faster."""
ROW_GROUPS: Final = tuple(size << 20 for size in (8, 16, 32, 64, 128))
"""From 8 MiB on, row groups are copied by cheap rewrites."""
DICTIONARY_COLUMNS_MAX: Final = 3
REPEATING: Final = 0.2
"""Distinct values of the sample over its rows, from which a dictionary may be in vain."""
MAY_SAVE: Final = 3.0
"""Times what reading costs at the stated rate: more is not saved, decoding included, however files are written."""

_NOT_BY_DICTIONARY: Final = frozenset({Operator.IS_NULL, Operator.NOT_NULL, Operator.NOT_EQ, Operator.NOT_IN})


@dataclass(frozen=True, slots=True, eq=False)
class FormatQueries:
    """Queries of one window: how often each ran, what it filters by, which leaves it reads, which files it opens."""

    weights: Amounts
    days: float
    conditions: tuple[tuple[Condition, ...], ...]
    leaves: npt.NDArray[np.bool_]
    files: Amounts


class _Column:
    """A column of the sample by which queries filter, in codes."""

    def __init__(self, values: Any) -> None:
        plain = comparable(values)
        self.scale = scale_of(values.slice(0, 0), plain.drop_null())
        self.rows: RowCodes = rows_of(values, self.scale)

    def bounds(self, starts: npt.NDArray[np.int64]) -> ColumnBounds:
        """What row groups that begin there state of it; nothing where there are NaN."""
        codes, nan = self.rows.codes, self.rows.nan
        valid = (codes != NULL_CODE) & ~nan
        some, nans, nulls = (np.logical_or.reduceat(flags, starts) for flags in (valid, nan, codes == NULL_CODE))
        low = np.minimum.reduceat(np.where(valid, codes, UNKNOWN_HIGH), starts)
        high = np.maximum.reduceat(np.where(valid, codes, UNKNOWN_LOW), starts)
        is_known = some & ~nans
        return ColumnBounds(
            np.where(is_known, low, UNKNOWN_LOW),
            np.where(is_known, high, UNKNOWN_HIGH),
            ~some & ~nans,
            ~some & ~nans,
            nulls,
        )


class FormatTrials:
    """Settings of the file format, tried for one table. ``measure`` makes a round."""

    def __init__(
        self,
        sample: FormatSample,
        measure: Measure,
        rates: Rates,
        *,
        files: int,
        file_bytes: int,
        written_share: float = 1.0,
    ) -> None:
        """``written_share`` is how often, within the horizon, as many rows are written as the table has.

        Raises :class:`~icewright.core.errors.Unsupported` and ``InvalidConfiguration`` for properties that no rewrite
        in Arrow writes by.
        """
        self._present = writer_settings(sample.properties)
        self._sample, self._measure, self._rates = sample, measure, rates
        self._files, self._file_bytes = files, file_bytes
        self._scale = sample.table_rows / sample.rows
        self._written = max(1.0, written_share)
        self._leaves = sample.leaves
        self._flat = flat_columns(sample.table)
        self._columns: dict[Path, _Column | None] = {}
        self._tops: set[str] = set()
        self._rounds: dict[str, list[Round]] = {}
        self._matches: dict[tuple[int, bytes], tuple[Condition, Flags]] = {}

    def queries(
        self, reads: Sequence[Read], workload: Workload, columns: Mapping[Path, CodedColumn], files: Files
    ) -> FormatQueries:
        """The reads of a window that can be evaluated, as the ``workload`` of them for layouts has it.

        Of both windows before anything is tried: columns that none of them reads are not decoded. Raises
        :class:`~icewright.core.errors.Unsupported` where those that are taken tell too little.
        """
        counted = Counter((filters_of(read), frozenset(read.columns)) for read in reads)
        taken: list[tuple[Unit, frozenset[str]]] = []
        for filters, names in sorted(counted, key=_digest):
            unit = unit_of(filters, counted[filters, names], columns)
            if unit is not None and unit.conditions is not None:
                taken.append((unit, names))
            if len(taken) == QUERIES_MAX:
                break
        weights = np.array([unit.weight for unit, _ in taken], np.float64)
        if effective(weights) < EFFECTIVE_MIN:
            raise Unsupported(
                f"{len(taken)} queries tell as much as {effective(weights):.1f}, {EFFECTIVE_MIN} are needed"
            )
        weights *= workload.weights.sum() / weights.sum()
        masks = np.array([self._read_by(unit, names) for unit, names in taken], np.bool_)
        masks = masks.reshape(len(taken), len(self._leaves))
        self._tops |= {self._leaves[place].path[0] for place in np.flatnonzero(masks.any(axis=0))}
        opened = scanned([unit.conditions or () for unit, _ in taken], files)
        conditions = tuple(self._conditions(unit, columns) for unit, _ in taken)
        return FormatQueries(weights, workload.days, conditions, masks, opened.files)

    def entries(self, older: FormatQueries) -> list[Entry]:
        """All settings that were tried, with what the older queries read by them."""
        candidates = [PropertiesChange(properties) for properties in self._candidates()]
        self._measure(self._sample, self._present, sorted(self._tops))  # the first round of a process takes longer
        self._run(candidates, FIRST_ROUNDS)
        worth = {str(one): self._worth(one, older) for one in candidates}
        best = sorted(candidates, key=lambda one: (-worth[str(one)], str(one)))[:FINALISTS]
        together = self._together([one for one in candidates if worth[str(one)] > 0], worth)
        if together is not None:
            candidates.append(together)
            best.append(together)
        if any(worth.get(str(one), 1.0) > 0 for one in best):
            self._run(best, ROUNDS)
        found = [self.entry(one, older) for one in candidates]
        return [replace(one, may_win=len(self._rounds[str(one.candidate)]) == ROUNDS) for one in found]

    def entry(self, candidate: PropertiesChange, queries: FormatQueries) -> Entry:
        """What the queries of a window read with settings that were tried."""
        now, then = self._pairs(candidate)
        read_now, spent_now = self._read(now, queries)
        read_then, spent_then = self._read(then, queries)
        saved = _over_rounds(spent_now - spent_then)
        before = Scanned(queries.files, read_now, spent_now.mean(axis=0))
        sides = Sides(
            *(Scanned(queries.files, read_then, before.other_s - saved_s) for saved_s in (saved[1], saved[2], saved[0]))
        )
        window = Window(queries.weights, queries.days, before, self._files, self._file_bytes, self._largest(now, then))
        extra = _over_rounds(np.array([[b.write_s - a.write_s] for a, b in zip(now, then, strict=True)]))[2][0]
        rewrite = cost_of(self._file_bytes, self._rates)
        cost = Cost(self._file_bytes, rewrite.cpu_s + max(0.0, extra) * self._scale * self._written)
        return Entry(candidate, cost, sides, window)

    def judged(self, candidate: PropertiesChange, queries: FormatQueries) -> Entry:
        """The same by rounds of its own: those that chose it are the best of many, and some of that is luck."""
        self._rounds.clear()
        self._run([candidate], ROUNDS)
        return self.entry(candidate, queries)

    def said(self, candidate: PropertiesChange) -> FormatTrial:
        """What the sample came to."""
        now, then = self._pairs(candidate)
        before, after = now[0].bytes.sum(axis=0), then[0].bytes.sum(axis=0)
        most = sorted(range(len(self._leaves)), key=lambda place: -abs(before[place] - after[place]))
        return FormatTrial(
            sample_rows=self._sample.rows,
            sample_files=len(self._sample.pieces),
            rounds=len(then),
            bytes_now=now[0].file_bytes,
            bytes=then[0].file_bytes,
            row_groups_now=len(now[0].rows),
            row_groups=len(then[0].rows),
            write_s_now=float(np.mean([one.write_s for one in now])),
            write_s=_interval([one.write_s for one in then]),
            read_s_now=float(np.mean([one.decode_s.sum() for one in now])),
            read_s=_interval([float(one.decode_s.sum()) for one in then]),
            columns=tuple(
                ColumnBytes(".".join(self._leaves[place].path), int(before[place]), int(after[place]))
                for place in most[:FORMAT_COLUMNS_MAX]
            ),
        )

    def _candidates(self) -> list[dict[str, str]]:
        now = self._present
        found = [
            {CODEC_KEY: codec} | ({} if level is None else {LEVEL_KEY: str(level)})
            for codec, level in CODECS
            if (codec, level) != (now.codec, now.compression_level)
        ]
        present = self._group_counts(now.row_group_size_bytes)
        sizes = [size for size in ROW_GROUPS if self._group_counts(size) != present]
        found += [{ROW_GROUP_KEY: str(size)} for size in sizes]
        return found + [{f"{DICTIONARY_PREFIX}{name}": "false"} for name in self._dictionaries_in_vain(now)]

    def _group_counts(self, size: int) -> list[int]:
        return [max(1, -(-piece.encoded_bytes // size)) for piece in self._sample.pieces]

    def _dictionaries_in_vain(self, now: WriterSettings) -> list[str]:
        """Columns with a dictionary whose values hardly repeat, those with most values first."""
        shares = {}
        names = {field["id"]: field["name"] for field in self._sample.fields}
        for leaf in self._leaves:
            name = leaf.path[0]
            is_plain = len(leaf.path) > 1 or name in now.plain_columns or leaf.type in ("boolean", "uuid")
            if leaf.field_id in self._sample.dictionary and not is_plain and name == names[leaf.field_id]:
                shares[name] = pc.count_distinct(self._flat[name,]).as_py() / self._sample.rows
        most = sorted((name for name in shares if shares[name] >= REPEATING), key=lambda name: (-shares[name], name))
        return most[:DICTIONARY_COLUMNS_MAX]

    def _together(self, good: Sequence[PropertiesChange], worth: Mapping[str, float]) -> PropertiesChange | None:
        """The best of each kind of setting that helps, together; None where it is one kind alone."""
        found: dict[str, str] = {}
        kinds = 0
        for key in (CODEC_KEY, ROW_GROUP_KEY, DICTIONARY_PREFIX):
            of_kind = [one for one in good if any(name.startswith(key) for name in one.properties)]
            if of_kind:
                kinds += 1
                found |= max(of_kind, key=lambda one: worth[str(one)]).properties
        return PropertiesChange(found) if kinds > 1 else None

    def _run(self, candidates: Sequence[PropertiesChange], rounds: int) -> None:
        """Rounds of all of them, by turns with the present settings, until each has so many."""
        for number in range(rounds):
            for one in (_PRESENT, *candidates):
                made = self._rounds.setdefault(str(one), [])
                if len(made) <= number:
                    settings = writer_settings({**self._sample.properties, **one.properties})
                    made.append(self._measure(self._sample, settings, sorted(self._tops)))

    def _pairs(self, candidate: PropertiesChange) -> tuple[list[Round], list[Round]]:
        then = self._rounds[str(candidate)]
        return self._rounds[str(_PRESENT)][: len(then)], then

    def _worth(self, candidate: PropertiesChange, older: FormatQueries) -> float:
        entry = self.entry(candidate, older)
        window = entry.window
        return 0.0 if window is None else saved_in_horizon(entry, window, self._rates) - entry.cost.cpu_s

    def _read(self, rounds: Sequence[Round], queries: FormatQueries) -> tuple[Amounts, Amounts]:
        """What each query reads, in bytes; and in each round what decoding that and opening row groups takes."""
        one = rounds[0]
        groups = self._groups_read(one, queries)
        size = ((groups @ one.bytes) * queries.leaves).sum(axis=1)
        rows = groups @ (one.rows / self._sample.rows)
        decoded = np.array([rows * (queries.leaves @ each.decode_s) for each in rounds])
        opened = groups.sum(axis=1) * self._rates.open_s
        return size * self._bytes_scale(), (decoded + opened) * self._scale

    def _bytes_scale(self) -> float:
        """From bytes of the sample to those of the table, which is no larger than its files as they are now."""
        return min(self._scale, self._file_bytes / float(self._rounds[str(_PRESENT)][0].bytes.sum()))

    def _groups_read(self, one: Round, queries: FormatQueries) -> Amounts:
        starts = np.concatenate([[0], np.cumsum(one.rows)[:-1]]).astype(np.int64)
        bounds: dict[Path, ColumnBounds] = {}
        found = np.ones((len(queries.conditions), len(starts)), np.bool_)
        for place, conditions in enumerate(queries.conditions):
            for condition in conditions:
                column = self._column(condition.column)
                if column is None:
                    continue
                if condition.column not in bounds:
                    bounds[condition.column] = column.bounds(starts)
                found[place] &= files_that_may_match(condition, bounds[condition.column])
                whole = one.whole[:, self._leaf_of(condition.column)]
                if condition.operator not in _NOT_BY_DICTIONARY and whole.any():
                    found[place] &= ~whole | self._has_match(condition, column, starts)
        return found.astype(np.float64)

    def _has_match(self, condition: Condition, column: _Column, starts: npt.NDArray[np.int64]) -> Flags:
        """Which row groups have a value that satisfies a condition."""
        key = (id(condition), starts.tobytes())
        if key not in self._matches:  # with the condition, so that no other one gets its id
            flags = np.logical_or.reduceat(rows_that_match(condition, column.rows), starts)
            self._matches[key] = condition, flags
        return self._matches[key][1]

    def _largest(self, now: Sequence[Round], then: Sequence[Round]) -> Scanned | None:
        """The most that a query may differ by where it reads the same row groups: all columns. Else the whole table."""
        if not (np.array_equal(now[0].rows, then[0].rows) and np.array_equal(now[0].whole, then[0].whole)):
            return None
        size = np.abs(now[0].bytes.sum(axis=0) - then[0].bytes.sum(axis=0)).sum()
        spent = np.abs(np.mean([a.decode_s - b.decode_s for a, b in zip(now, then, strict=True)], axis=0)).sum()
        return Scanned(np.zeros(1), np.array([size * self._bytes_scale()]), np.array([spent * self._scale]))

    def _read_by(self, unit: Unit, names: Collection[str]) -> Flags:
        """The leaves that a query reads: those that it is known to read, and those of its filters."""
        wanted = {tuple(compatible_name(part).lower() for part in name.split(".")) for name in names}
        wanted |= {tuple(compatible_name(part).lower() for part in path) for path, _ in unit.filters}
        paths = [tuple(part.lower() for part in leaf.path) for leaf in self._leaves]
        return np.array([any(path[: len(prefix)] == prefix for prefix in wanted) for path in paths])

    def _conditions(self, unit: Unit, columns: Mapping[Path, CodedColumn]) -> tuple[Condition, ...]:
        """Its filters as conditions on rows of this sample; what cannot be evaluated skips nothing."""
        found = []
        for path, item in unit.filters:
            column = self._column(path)
            valued = columns[path].with_values(item) if path in columns else item
            condition = None if column is None else condition_of(valued, path, column.scale)
            found += [] if condition is None else [condition]
        return tuple(found)

    def _column(self, path: Path) -> _Column | None:
        if path not in self._columns:
            values = self._flat.get(tuple(map(compatible_name, path)))
            is_flat = values is not None and not isinstance(values.type, pa.ExtensionType) and has_order(values.type)
            self._columns[path] = _Column(values) if is_flat else None
        return self._columns[path]

    def _leaf_of(self, path: Path) -> int:
        names = tuple(map(compatible_name, path))
        return next(place for place, leaf in enumerate(self._leaves) if leaf.path == names)


_PRESENT: Final = PropertiesChange({})


@dataclass(frozen=True, slots=True, eq=False)
class FormatsOfWindows:
    """The trials of a table, what the older queries read by each of them, and the newer queries."""

    trials: FormatTrials
    entries: tuple[Entry, ...]
    newer: FormatQueries


def may_pay(older: Window, rates: Rates) -> bool:
    """Whether settings of the file format could pay at all: most tables are read too little, and nothing is tried."""
    read = float((older.now.bytes * older.weights).sum() / older.weights.sum()) if older.weights.sum() else 0.0
    saved = MAY_SAVE * read / rates.read_bytes_per_s * older.per_day * rates.horizon_days
    return saved > cost_of(older.bytes, rates).cpu_s


def _over_rounds(values: Amounts) -> tuple[Amounts, Amounts, Amounts]:
    """Low end, mean and high end of what rounds found, in rows, of each column."""
    count, mean = len(values), values.mean(axis=0)
    half = t_quantile(count - 1) * values.std(axis=0, ddof=1) / np.sqrt(count)
    return mean - half, mean, mean + half


def _interval(values: Sequence[float]) -> Interval:
    low, mean, high = _over_rounds(np.array(values)[:, np.newaxis])
    return Interval(float(low[0]), float(mean[0]), float(high[0]))


def _digest(read: tuple[tuple[tuple[Path, Filter], ...], frozenset[str]]) -> str:
    filters, names = read
    return hashlib.sha256(repr((filters, sorted(names))).encode("utf-8", "surrogatepass")).hexdigest()
