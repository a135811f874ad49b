"""The winner is picked on older queries alone, and changes nothing unless newer ones certainly pay for it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.model.iceberg.layouts import COLUMN_CURVES, Curve, LayoutColumn, LayoutExpression
from icewright.model.queries.recommendations import (
    Candidate,
    Cost,
    LayoutChange,
    PropertiesChange,
    Rates,
    Verdict,
    t_quantile,
)
from icewright_spark.trials.simulation import Scanned
from icewright_spark.trials.tournament import (
    DOES_NOT_PAY,
    DRIFT,
    NOT_CERTAIN,
    PAYS,
    Entry,
    Sides,
    Window,
    cost_of,
    interval,
    pick,
    prediction,
    standard_error,
    verdict_on,
)

GIB = 1 << 30
RATES = Rates()
FREE = Cost(0, 0.0)


def change(curve: Curve, *names: str) -> LayoutChange:
    return LayoutChange(LayoutExpression(curve, tuple(LayoutColumn((name,)) for name in names)))


SIMPLE, BOTH, HILBERT = change(Curve.SORT, "a"), change(Curve.SORT, "a", "b"), change(Curve.HILBERT, "a", "b")


def window(now: list[float] | np.ndarray[tuple[int], np.dtype[np.float64]], days: float = 7.0) -> Window:
    """Of queries that read so many GiB of a table of ten."""
    size = np.asarray(now, np.float64) * GIB
    return Window(np.ones(len(size)), days, Scanned(np.zeros(len(size)), size), 0, 10 * GIB)


def entry(
    candidate: Candidate, then: list[float] | np.ndarray[tuple[int], np.dtype[np.float64]], cost: Cost = FREE
) -> Entry:
    size = np.asarray(then, np.float64) * GIB
    one = Scanned(np.zeros(len(size)), size)
    return Entry(candidate, cost, Sides(one, one, one))


def test_the_quantile_is_students() -> None:
    known = {1: 12.706, 2: 4.3027, 4.9: 2.7764, 5: 2.5706, 10: 2.2281, 19: 2.0930, 39: 2.0227, 100: 1.9840, 1e9: 1.9600}
    for degrees, value in known.items():
        assert t_quantile(degrees) == pytest.approx(value, rel=0.002)


def test_the_interval_is_that_of_the_textbook() -> None:
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    found = interval(values, np.ones(6))
    half = 2.5706 * np.std(values, ddof=1) / math.sqrt(6)
    assert (found.low, found.mean, found.high) == pytest.approx((3.5 - half, 3.5, 3.5 + half), rel=0.002)
    later = interval(values, np.ones(6), later=1.0)
    assert later.high - 3.5 == pytest.approx(half * math.sqrt(2), rel=0.002)


def test_a_query_that_ran_often_counts_often_and_is_one_all_the_same() -> None:
    values = np.array([1.0, 0.0, 0.0])
    often = interval(values, np.array([8.0, 1.0, 1.0]))
    assert often.mean == pytest.approx(0.8)
    repeated = interval(np.repeat(values, [8, 1, 1]), np.ones(10))
    assert often.mean == repeated.mean
    assert often.high - often.low > 2 * (repeated.high - repeated.low)
    assert standard_error(np.array([1.0]), np.array([100.0])) == math.inf
    assert interval(np.array([1.0]), np.array([100.0])).low == -math.inf


def test_queries_that_all_say_the_same_do_not_make_it_certain() -> None:
    same = np.full(30, 0.5)
    assert interval(same, np.ones(30)).low == 0.5
    assert interval(same, np.ones(30), span=10.0).low == pytest.approx(0.5 - 2.045 * 10 / 30, rel=0.01)


@given(st.lists(st.floats(-5, 5), min_size=30, max_size=60), st.floats(0, 5))
def test_a_wider_doubt_makes_the_interval_wider(values: list[float], span: float) -> None:
    narrow, wide = (interval(np.array(values), np.ones(len(values)), span=it) for it in (0.0, span))
    assert wide.low <= narrow.low <= narrow.mean <= narrow.high <= wide.high


def test_the_best_on_older_queries_is_picked() -> None:
    older = window([10.0] * 30)
    entries = [entry(SIMPLE, [8.0] * 30), entry(BOTH, [3.0] * 30), entry(HILBERT, [5.0] * 30)]
    assert pick(entries, older, RATES) == 1


def test_the_simpler_one_wins_a_tie_and_leaving_it_wins_them_all() -> None:
    older = window([10.0] * 30)
    assert pick([entry(HILBERT, [4.99] * 30), entry(BOTH, [5.0] * 30), entry(SIMPLE, [5.02] * 30)], older, RATES) == 2
    bloom = PropertiesChange({"write.parquet.bloom-filter-enabled.column.a": "true"})
    assert pick([entry(SIMPLE, [5.0] * 30), entry(bloom, [5.0] * 30)], older, RATES) == 1
    assert pick([entry(SIMPLE, [10.0] * 30)], older, RATES) is None
    assert pick([], older, RATES) is None


def test_of_equally_simple_ones_the_best_wins_whatever_it_is_called() -> None:
    older = window([5.0] * 100)
    first, last = change(Curve.SORT, "a"), change(Curve.SORT, "z")
    entries = [entry(first, [1.010] * 100), entry(last, [1.0] * 100)]
    assert pick(entries, older, RATES) == 1
    assert pick(entries[::-1], older, RATES) == 0
    assert pick([entry(last, [1.0] * 100), entry(first, [1.0] * 100)], older, RATES) == 1  # then by its name


def test_a_difference_that_may_be_chance_is_no_reason_for_the_simpler_one() -> None:
    """The better one saves 5 % more, by queries that differ much more than that."""
    rng = np.random.default_rng(3)
    better = rng.uniform(0.0, 2.0, 100)
    simpler = better + rng.normal(0, 2, 100)
    simpler += better.mean() + 0.2 - simpler.mean()
    older = window([5.0] * 100)
    assert standard_error(simpler - better, np.ones(100)) > 0.15
    entries = [entry(SIMPLE, simpler), entry(HILBERT, better)]
    assert pick(entries, older, RATES) == 1


def test_what_older_queries_do_not_earn_is_not_picked() -> None:
    saved_s = 30 * 10 * GIB / RATES.read_bytes_per_s  # in seven days, which is the horizon
    older = window([10.0] * 30)
    assert pick([entry(SIMPLE, [0.0] * 30, Cost(1, saved_s * 0.99))], older, RATES) == 0
    assert pick([entry(SIMPLE, [0.0] * 30, Cost(1, saved_s * 1.01))], older, RATES) is None


def test_the_cost_includes_conflicts() -> None:
    assert cost_of(13_500_000, RATES).cpu_s == pytest.approx(1.1)


def verdict(older: list[float], newer: list[float], cost_s: float = 0.0) -> tuple[Verdict, str]:
    before, after = (prediction(window([10.0] * len(it)), entry(SIMPLE, it).sides, RATES) for it in (older, newer))
    found, reason = verdict_on(Cost(1, cost_s), before, after, RATES)
    return found, reason.code


def test_only_what_newer_queries_certainly_earn_is_done() -> None:
    half = [5.0] * 60
    saved_s = 60 * 5 * GIB / RATES.read_bytes_per_s
    assert verdict(half, half) == (Verdict.CHANGE, PAYS)
    assert verdict(half, half, saved_s * 0.8) == (Verdict.CHANGE, PAYS)
    assert verdict(half, half, saved_s * 0.99) == (Verdict.LEAVE, NOT_CERTAIN)
    assert verdict(half, half, saved_s * 1.01) == (Verdict.LEAVE, DOES_NOT_PAY)
    assert verdict(half, [0.0, 10.0] * 30, saved_s * 0.8) == (Verdict.LEAVE, NOT_CERTAIN)
    assert verdict([0.0] * 60, [9.9] * 60) == (Verdict.LEAVE, DRIFT)
    assert verdict([0.0] * 60, [10.0] * 60) == (Verdict.LEAVE, DRIFT)


def test_the_low_end_is_of_the_worst_files_and_the_high_end_of_the_best() -> None:
    older = window([10.0] * 40)
    best, expected, worst = (entry(SIMPLE, [size] * 40).sides.expected for size in (4.0, 5.0, 6.0))
    found = prediction(older, Sides(expected, best, worst), RATES)
    margin = 10 * GIB / 40 * t_quantile(39) * math.sqrt(2)
    assert found.bytes_read.mean == 5 * GIB
    assert found.bytes_read.high == pytest.approx(6 * GIB + margin)
    assert found.bytes_read.low == pytest.approx(4 * GIB - margin)
    assert found.bytes_share == 0.5
    assert found.saved_s_per_day.low < found.saved_s_per_day.mean < found.saved_s_per_day.high


@pytest.mark.parametrize("queries", [20, 100])
def test_where_nothing_helps_the_table_is_left_as_it_is(queries: int) -> None:
    """Differences of pure chance, at no cost at all: of 40 seeds, 38 at least."""
    left = 0
    for seed in range(40):
        rng = np.random.default_rng([queries, seed])
        candidates = [change(curve, *names) for curve in COLUMN_CURVES for names in ("ab", "ac", "bc", "abc")]
        now = rng.uniform(2, 8, (2, queries))
        older, newer = window(now[0]), window(now[1])
        noise = rng.uniform(-2, 2, (len(candidates), 2, queries))
        entries = [entry(it, now[0] + noise[place, 0]) for place, it in enumerate(candidates)]
        winner = pick(entries, older, RATES)
        if winner is None:
            left += 1
            continue
        sides = entry(candidates[winner], now[1] + noise[winner, 1]).sides
        decided, _ = verdict_on(
            FREE, prediction(older, entries[winner].sides, RATES), prediction(newer, sides, RATES), RATES
        )
        left += decided is Verdict.LEAVE
    assert left >= 38


def test_judging_by_the_queries_that_picked_it_would_change_tables_by_chance() -> None:
    """Why the newer queries are kept apart: the same intervals, on the queries that the winner was picked by."""
    changed = 0
    for seed in range(40):
        rng = np.random.default_rng([7, seed])
        older = window(rng.uniform(2, 8, 100))
        noise = rng.uniform(-2, 2, (40, 100)) * GIB
        means = [interval(gain, np.ones(100)) for gain in noise]
        best = max(range(40), key=lambda place: means[place].mean)
        changed += means[best].low > 0
        assert older.per_day > 0
    assert changed > 10
