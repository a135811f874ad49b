"""Queries that engines ran, for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.iceberg.layouts import Curve, LayoutColumn, LayoutExpression
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.queries.measurements import FileSums, Measured, MeasuredQuery, Measurement
from icewright.model.queries.queries import Filter, Literal, LiteralKind, Operator, QueryRecord, QuerySource, TableRead
from icewright.model.queries.recommendations import (
    LEAVE,
    CandidateTrial,
    ColumnBytes,
    ColumnScore,
    Cost,
    Evidence,
    FormatTrial,
    FrequentQueries,
    Interval,
    JudgedQuery,
    LayoutChange,
    Prediction,
    PropertiesChange,
    QueryWindow,
    Rates,
    Recommendation,
    Verdict,
)
from icewright.model.queries.templates import WEEK_MS, TemplateWeek
from icewright.policy.effective import KNOWN_WEEKS
from icewright.recommendations.effects import planned, scanned

EVENTS = TableName("lake", ("shop",), "events")
AT = 1_700_000_000_000


def equal(column: str, value: str, kind: LiteralKind = LiteralKind.STRING) -> Filter:
    """``column = value``."""
    return Filter(column, Operator.EQ, (Literal(kind, value),))


def read_of(
    table: TableName = EVENTS, *filters: Filter, files_read: int | None = 3, bytes_read: int = 100
) -> TableRead:
    """A read that opened some files and skipped seven."""
    skipped = None if files_read is None else 7
    return TableRead(table, filters=filters, files_read=files_read, files_skipped=skipped, bytes_read=bytes_read)


def query(number: int, *reads: TableRead, user: str = "ann", at: int = AT, succeeded: bool = True) -> QueryRecord:
    """The query of that number; of one table with one filter where nothing is said."""
    found = reads or (read_of(EVENTS, equal("user_id", str(number))),)
    return QueryRecord(
        f"q-{number}", QuerySource.TRINO, "trino 476", user, at, 1_000, 2_000, succeeded=succeeded, tables=found
    )


def recommendation(table: TableName = EVENTS, *columns: str, saved_s: float = 10.0) -> Recommendation:
    """To sort a table by columns, ``user_id`` where none are named, which saves at least so many CPU seconds a day."""
    layout = LayoutExpression(Curve.SORT, tuple(LayoutColumn((column,)) for column in columns or ("user_id",)))
    opened, read = Interval(1.0, 2.0, 3.0), Interval(10.0, 20.0, 30.0)
    predicted = Prediction(100, 40, 40.0, opened, 1_000.0, read, Interval(saved_s, saved_s + 1, saved_s + 2))
    chosen = CandidateTrial(LayoutChange(layout), predicted, Cost(1_000_000, 5.0), predicted)
    window = QueryWindow(AT, AT + 1_000, 100, 100)
    scores = (ColumnScore("user_id", 100, 99.0, 1.0), ColumnScore("note", 1, 0.1, 1.0, "no filter excludes rows"))
    evidence = Evidence(window, window, {"no-filter": 2}, 1, 40, 4_000_000, 1, 20_000, 4_000_000, scores)
    reason = Reason("saves", "Later queries read 2 % of their bytes.")
    note = Reason("queries-change", "The figures hold as long as queries stay what they are.")
    return Recommendation(
        table, Verdict.CHANGE, reason, chosen.candidate, evidence, Rates(), chosen, (chosen,), (note,)
    )


ZSTD = PropertiesChange({"write.parquet.compression-codec": "zstd", "write.parquet.compression-level": "9"})


def of_format(table: TableName = EVENTS, candidate: PropertiesChange = ZSTD) -> Recommendation:
    """To write files with other settings, as tried on rows."""
    said = recommendation(table)
    assert said.chosen is not None
    columns = (ColumnBytes("note", 4_500_000, 2_900_000),)
    seconds = Interval(0.4, 0.5, 0.6)
    written = FormatTrial(20_000, 4, 5, 10_000_000, 6_000_000, 4, 4, 0.3, seconds, 0.6, seconds, columns)
    chosen = replace(said.chosen, candidate=candidate, written=written)
    return replace(said, candidate=candidate, chosen=chosen, trials=(chosen, *said.trials))


def frequent(said: Recommendation, now: float = 297.0, then: float = 5.0) -> Recommendation:
    """A recommendation with what the ten most frequent queries open."""
    return replace(said, frequent=FrequentQueries(10, now, then))


def leave(table: TableName = EVENTS) -> Recommendation:
    """To leave a table as it is."""
    evidence = Evidence(None, None, {}, 0, 40, 4_000_000, 1, 20_000, 4_000_000)
    return Recommendation(table, Verdict.LEAVE, Reason("no-gain", "No candidate pays."), LEAVE, evidence, Rates())


JUDGED = (JudgedQuery("0123456789abcdef01234567", 2, 40, 4_000_000),)


def measurement(table_id: TableId, of: str, task_id: str, now: int, *, after: int = 40) -> Measurement:
    """What a task measured of a recommendation: queries that opened 4 files of 40 before, and so many since."""
    table = FileSums(40, 4_000)
    rows = tuple(MeasuredQuery(f"q{n}", 1, after, 100 * after, 4, 400) for n in range(30))
    found = planned(Measured(of, 7, table, table, rows), {}, table)
    nothing = scanned((), (), now, now, now)
    predicted = Interval(-0.99, -0.98, -0.97)
    return Measurement(of, table_id, task_id, now, now, now, found.effect, found.reason, predicted, found, nothing)


class CountedQueries:
    """So many queries of any table, counted since the week before, half of them in it."""

    table = None

    def __init__(self, number: int) -> None:
        self.number = number
        self.asked_since: list[Instant] = []

    def queries_of(self, _table_id: TableId, since: Instant) -> int:
        self.asked_since.append(since)
        return self.number

    def weeks_of(self, _table_id: TableId, since: Instant) -> Mapping[Instant, int]:
        self.asked_since.append(since)
        last = since + (KNOWN_WEEKS - 1) * WEEK_MS
        return {last - WEEK_MS: self.number - self.number // 2, last: self.number // 2}

    def templates_of(self, _table_id: TableId, _since: Instant) -> Sequence[TemplateWeek]:
        return ()
