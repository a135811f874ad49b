"""Verdicts on what was measured, by the ends of intervals: counted by hand, and with figures that must say nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from icewright.model.iceberg.names import TableId
from icewright.model.queries.measurements import Effect, FileSums, Measured, MeasuredQuery
from icewright.model.queries.queries import Operator
from icewright.model.queries.recommendations import JudgedQuery
from icewright.model.queries.templates import WEEK_MS, FilteredColumn, Sums, Template, TemplateWeek, week_of
from icewright.recommendations import effects
from icewright.recommendations.effects import planned, scanned, together
from tests.cases import each_case

TABLE = FileSums(40, 4_000)
NOW = 1_700_000_000_000
WEEK = week_of(NOW)
BY_USER = Template((FilteredColumn("user_id", (Operator.EQ,)),))
BY_DAY = Template((FilteredColumn("day", (Operator.EQ,)),))


def row(number: int, before: int | None, after: int, weight: int = 1) -> MeasuredQuery:
    """A query that opened so many files of 100 bytes each."""
    size = None if before is None else 100 * before
    return MeasuredQuery(f"q{number}", weight, after, 100 * after, before, size)


def measured(
    rows: Sequence[MeasuredQuery] = (),
    judged: Sequence[MeasuredQuery] = (),
    table: FileSums = TABLE,
    before: FileSums | None = TABLE,
) -> Measured:
    return Measured("recommendation-1", 7, table, before, tuple(rows), tuple(judged))


def test_what_all_queries_read_less_of_is_better() -> None:
    found = planned(measured([row(n, 40, 2 + n % 3) for n in range(60)]), {}, TABLE)
    assert found.effect is Effect.BETTER
    assert (found.files_before, found.files, found.queries, found.are_later) == (40, 3, 60, True)
    assert found.change is not None
    assert found.change.mean == pytest.approx(3 / 40 - 1)
    assert found.change.low < found.change.mean < found.change.high < 0
    assert len(found.rows) == 60


def test_the_interval_is_that_of_paired_differences() -> None:
    """Of 25 queries that read 100 and 140 % in turn of before: mean 1.192, by hand."""
    rows = [row(n, 10, 14 if n % 2 else 10) for n in range(25)]
    found = planned(measured(rows), {}, TABLE)
    assert found.change is not None
    mean = 12 * 0.4 / 25
    deviations = [(0.4 if n % 2 else 0.0) - mean for n in range(25)]
    error = math.sqrt(sum(value**2 for value in deviations) / 24 / 25)
    assert found.change.mean == pytest.approx(mean)
    assert found.change.high - found.change.mean == pytest.approx(2.064 * error, rel=0.002)


@each_case(
    ("after", "effect"),
    [(10, Effect.AS_BEFORE), (12, Effect.WORSE), (9, Effect.BETTER)],
)
def test_a_regression_is_one_above_five_percent(after: int, effect: Effect) -> None:
    found = planned(measured([row(n, 10, after) for n in range(30)]), {}, TABLE)
    assert found.effect is effect


def test_a_mean_alone_takes_nothing_back() -> None:
    """Two queries read ten times as much, all others as before: 60 % more on average, and not certain."""
    found = planned(measured([row(n, 4, 40 if n < 2 else 4) for n in range(30)]), {}, TABLE)
    assert found.change is not None
    assert found.change.mean > effects.REGRESSION
    assert (found.effect, found.reason.code) == (Effect.UNKNOWN, effects.NOT_CERTAIN)


@each_case(
    ("rows", "code"),
    [
        ([row(n, 10, 30) for n in range(3)], effects.TOO_FEW_QUERIES),
        ([], effects.TOO_FEW_QUERIES),
        ([row(n, 10, 30, 10_000 if n == 0 else 1) for n in range(30)], effects.TOO_FEW_QUERIES),
        ([row(n, 0, 0) for n in range(30)], effects.NOTHING_BEFORE),
    ],
)
def test_little_is_no_evidence(rows: Sequence[MeasuredQuery], code: str) -> None:
    found = planned(measured(rows), {}, TABLE)
    assert (found.effect, found.reason.code) == (Effect.UNKNOWN, code)


def test_what_has_expired_is_known_by_what_was_kept() -> None:
    """The snapshot of before is gone: later queries cannot be compared, those that judged can."""
    judged = {f"q{n}": JudgedQuery(f"q{n}", 1, 40, 4_000) for n in range(30)}
    later = [row(n + 100, None, 1) for n in range(50)]
    again = [row(n, None, 2) for n in range(40)]
    found = planned(measured(later, again, before=None), judged, TABLE)
    assert (found.effect, found.are_later, found.queries) == (Effect.BETTER, False, 30)
    assert (found.files_before, found.files) == (40, 2)


def test_a_table_that_has_doubled_is_not_said_to_be_worse() -> None:
    """Each query reads a half more of a table twice the size: more bytes, and less of the table."""
    found = planned(measured([row(n, 10, 15) for n in range(30)], table=FileSums(80, 8_000)), {}, TABLE)
    assert (found.effect, found.reason.code) == (Effect.UNKNOWN, effects.TABLE_CHANGED)


def weeks(*bytes_a_query: float, queries: int = 50, template: Template = BY_USER) -> list[TemplateWeek]:
    """One for each week up to the last whole one."""
    first = WEEK - len(bytes_a_query) * WEEK_MS
    return [
        TemplateWeek(
            TableId("lake", "u"),
            first + number * WEEK_MS,
            template,
            Sums(queries=queries, with_bytes=queries, bytes_read=round(queries * size)),
        )
        for number, size in enumerate(bytes_a_query)
    ]


ACCEPTED = WEEK - 4 * WEEK_MS + 1
"""In the fourth week before this one: it is of neither side."""


def test_what_engines_read_is_compared_with_tables_that_were_left_alone() -> None:
    """All tables read half as much since; the table a tenth of that."""
    own = weeks(1_000, 1_010, 990, 1_000, 777, 50, 50.5, 49.5)
    other = weeks(2_000, 2_020, 1_980, 2_000, 2_000, 1_000, 1_010, 990)
    found = scanned(own, [other], ACCEPTED, ACCEPTED, NOW)
    assert found.effect is Effect.BETTER
    assert found.others == 1
    assert found.change is not None
    assert found.change.mean == pytest.approx(-0.9, abs=0.005)
    assert [week.is_after for week in found.weeks] == [False] * 4 + [True] * 3
    assert {week.bytes_read for week in found.weeks if week.is_after} == {2_500, 2_525, 2_475}


def test_what_all_tables_do_is_not_the_changes_doing() -> None:
    both = [1_000, 1_010, 990, 1_000, 777, 2_000, 2_020, 1_980]
    found = scanned(weeks(*both), [weeks(*both)], ACCEPTED, ACCEPTED, NOW)
    assert found.effect is Effect.AS_BEFORE


def test_without_a_table_to_compare_with_nothing_is_said() -> None:
    found = scanned(weeks(1_000, 1_010, 990, 1_000, 777, 50, 50, 50), (), ACCEPTED, ACCEPTED, NOW)
    assert (found.effect, found.reason.code) == (Effect.UNKNOWN, effects.NO_OTHERS)
    assert found.change is not None


@each_case(
    ("own", "code"),
    [
        (weeks(1_000, 777, 100), effects.TOO_FEW_QUERIES),
        (weeks(1_000, 1_000, 1_000, 1_000, 777, 50, 50, 50, queries=2), effects.TOO_FEW_QUERIES),
        (
            [*weeks(1_000, 1_000, 1_000, 1_000, 7, 7, 7, 7)[:4], *weeks(5, 5, 5, template=BY_DAY)],
            effects.TOO_FEW_QUERIES,
        ),
        ([*weeks(1_000, 1, 1, 1, 7, 50, 7, 7)[:1], *weeks(1_000, 1, 1, 1, 7, 50, 7, 7)[5:6]], effects.TOO_FEW_WEEKS),
    ],
)
def test_few_weeks_or_other_queries_say_nothing(own: Sequence[TemplateWeek], code: str) -> None:
    found = scanned(own, (), ACCEPTED, ACCEPTED, NOW)
    assert (found.effect, found.reason.code) == (Effect.UNKNOWN, code)


def test_measures_that_contradict_each_other_decide_nothing() -> None:
    better = planned(measured([row(n, 40, 2) for n in range(30)]), {}, TABLE)
    worse = scanned(
        weeks(1_000, 1_010, 990, 1_000, 777, 2_000, 2_010, 1_990),
        [weeks(1_000, 1_010, 990, 1_000, 1_000, 1_000, 1_010, 990)],
        ACCEPTED,
        ACCEPTED,
        NOW,
    )
    assert (better.effect, worse.effect) == (Effect.BETTER, Effect.WORSE)
    effect, reason = together(better, worse)
    assert (effect, reason.code) == (Effect.UNKNOWN, effects.CONTRADICTION)
    assert together(better, scanned((), (), ACCEPTED, ACCEPTED, NOW))[0] is Effect.BETTER
