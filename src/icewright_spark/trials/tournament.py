"""Which candidate wins on older queries, and whether it holds on newer ones.

The winner is picked by :func:`pick`, which sees the older queries alone; :func:`verdict_on` sees the newer ones, and
the winner alone. So the interval on the newer queries is not biased by the choice among many.

The interval is that of paired differences by Student's t, over queries that differ, weighted by how often each ran: it
needs no random numbers, and differences are bounded by the table, so that it holds from about twenty queries on. As if
one more query were unlike all others, it is widened by the whole table over their number: queries that all say the same
would make it empty otherwise. It is an interval of what the queries of the horizon bring, which are a sample of their
kind as well. Its low end is taken
from the simulation with exponential tails, its high end from the one that moves no ends
(:class:`~icewright_spark.trials.simulation.Ends`): what is not known of files that are not written yet widens it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from icewright.core.reasons import Reason
from icewright.model.queries.recommendations import Candidate, Cost, Interval, Prediction, Rates, Verdict, t_quantile
from icewright_spark.trials.candidates import simplicity
from icewright_spark.trials.simulation import Amounts, Scanned
from icewright_spark.trials.workload import effective

TIE: Final = 0.01
"""Of the best gain: candidates that are no further below it tie."""

PAYS, NO_CANDIDATE, NO_GAIN, NOT_CERTAIN, DOES_NOT_PAY, DRIFT = (
    "pays",
    "no-candidate",
    "no-gain",
    "not-certain",
    "does-not-pay",
    "drift",
)
"""Codes of the reasons of a verdict."""


@dataclass(frozen=True, slots=True)
class Sides:
    """What the queries of a window open with a candidate, as expected, at best and at worst."""

    expected: Scanned
    optimistic: Scanned
    pessimistic: Scanned


@dataclass(frozen=True, slots=True)
class Window:
    """The queries of a window: how often each ran, in how many days, and what they open now, of how much.

    ``largest`` is the most that a query could open less, or more; the whole table where it is not known.
    """

    weights: Amounts
    days: float
    now: Scanned
    files: int
    bytes: int
    largest: Scanned | None = None

    @property
    def per_day(self) -> float:
        """Queries a day."""
        return float(self.weights.sum()) / self.days


@dataclass(frozen=True, slots=True)
class Entry:
    """A candidate with its cost and what the queries of one window open with it.

    ``window`` is of those queries where they are counted in another way than for the others. One that may not win was
    measured too rarely, and is only shown.
    """

    candidate: Candidate
    cost: Cost
    sides: Sides
    window: Window | None = None
    may_win: bool = True


def cost_of(rewrite_bytes: int, rates: Rates) -> Cost:
    """What it costs to rewrite so many bytes, conflicts included."""
    return Cost(rewrite_bytes, rewrite_bytes / rates.rewrite_bytes_per_s * (1 + rates.conflict_probability))


def gains(now: Scanned, then: Scanned, rates: Rates) -> Amounts:
    """CPU seconds that each query saves."""
    files = (now.files - then.files) * (rates.open_s + rates.plan_s)
    return files + (now.bytes - then.bytes) / rates.read_bytes_per_s + (now.other_s - then.other_s)


def pick(entries: Sequence[Entry], older: Window, rates: Rates) -> int | None:
    """The number of the winner on the older queries, None where the table is best left as it is.

    It must save more within the horizon than it costs. Among those that save nearly as much as the best (by less than
    :data:`TIE` of its gain), the simplest wins, and among equally simple ones the best. That a difference may be chance
    is no reason to take the simpler one: the better one is better more often than not. On the tables of B3 of even
    number, in 8 files, later queries read 0.403 of what they read before; where everything within one standard error
    tied, 0.410.
    """
    if not entries or not older.weights.sum():
        return None
    saved = [saved_in_horizon(entry, older, rates) for entry in entries]
    worth = [
        gain - entry.cost.cpu_s if entry.may_win else -math.inf for gain, entry in zip(saved, entries, strict=True)
    ]
    best = int(np.argmax(worth))
    if worth[best] <= 0:
        return None

    def ties(number: int) -> bool:
        return worth[number] > 0 and worth[best] - worth[number] <= TIE * abs(saved[best])

    def order(number: int) -> tuple[tuple[int, int], float, str]:
        candidate = entries[number].candidate
        return simplicity(candidate), -worth[number], str(candidate)

    return min((number for number in range(len(entries)) if ties(number)), key=order)


def saved_in_horizon(entry: Entry, older: Window, rates: Rates) -> float:
    """CPU seconds that an entry saves its queries within the horizon."""
    window = entry.window or older
    gain = _mean(gains(window.now, entry.sides.expected, rates), window.weights)
    return gain * window.per_day * rates.horizon_days


def prediction(window: Window, sides: Sides, rates: Rates) -> Prediction:
    """What the queries of a window open on average, and what they save a day, each with its interval."""
    now, later = window.now, rates.horizon_days / window.days
    sides_of = (sides.expected, sides.optimistic, sides.pessimistic)
    nothing = Scanned(np.zeros(1), np.zeros(1))
    table = window.largest or Scanned(np.ones(1) * window.files, np.ones(1) * window.bytes)
    saved, files, size = (
        [
            interval(value(now, then), window.weights, later=later, span=float(value(table, nothing)[0]))
            for then in sides_of
        ]
        for value in (
            lambda before, after: gains(before, after, rates) * window.per_day,
            lambda before, after: before.files - after.files,
            lambda before, after: before.bytes - after.bytes,
        )
    )
    return Prediction(
        queries=int(window.weights.sum()),
        files=window.files,
        files_opened_now=_mean(now.files, window.weights),
        files_opened=_after(_mean(now.files, window.weights), files),
        bytes_read_now=_mean(now.bytes, window.weights),
        bytes_read=_after(_mean(now.bytes, window.weights), size),
        saved_s_per_day=_widest(saved),
    )


def verdict_on(cost: Cost, older: Prediction, newer: Prediction, rates: Rates) -> tuple[Verdict, Reason]:
    """Whether the winner holds: only if even the low end of what it saves on newer queries pays for it."""
    saved = newer.saved_s_per_day
    figures: dict[str, int | float | str] = {
        "saved_s_per_day": round(saved.mean, 3),
        "saved_s_per_day_low": round(saved.low, 3),
        "saved_s_per_day_high": round(saved.high, 3),
        "cost_s": round(cost.cpu_s, 3),
        "horizon_days": rates.horizon_days,
    }
    per_day = f"{saved.mean:.3g} CPU seconds a day (at least {saved.low:.3g})"
    costs = f"the rewrite costs {cost.cpu_s:.3g}, to be earned in {rates.horizon_days:g} days"
    if saved.low > 0 and saved.low * rates.horizon_days > cost.cpu_s:
        return Verdict.CHANGE, Reason(PAYS, f"Newer queries save {per_day}; {costs}.", figures)
    if older.saved_s_per_day.low > saved.high:
        text = (
            f"The queries have changed: what saves {older.saved_s_per_day.mean:.3g} CPU seconds a day of older ones "
            f"saves {saved.mean:.3g} (at most {saved.high:.3g}) of newer ones."
        )
        return Verdict.LEAVE, Reason(DRIFT, text, figures)
    if saved.mean * rates.horizon_days <= cost.cpu_s:
        return Verdict.LEAVE, Reason(DOES_NOT_PAY, f"Newer queries save {per_day}; {costs}.", figures)
    text = f"It is not certain that it pays: newer queries save {per_day}; {costs}."
    return Verdict.LEAVE, Reason(NOT_CERTAIN, text, figures)


def interval(values: Amounts, weights: Amounts, *, later: float = math.inf, span: float = 0.0) -> Interval:
    """The weighted mean of paired differences, with Student's t interval; unbounded where there are fewer than two.

    Of the mean of ``later`` times as many further queries of the same kind, which varies as well; of all of them, if
    that is infinite. ``span`` is the largest difference that a query can make.
    """
    mean, count = _mean(values, weights), effective(weights)
    if count < 2:  # noqa: PLR2004 - one value has no spread
        return Interval(-math.inf, mean, math.inf)
    spread = math.hypot(standard_error(values, weights), span / count) * math.sqrt(1 + 1 / later)
    half = t_quantile(count - 1) * spread
    return Interval(mean - half, mean, mean + half)


def standard_error(values: Amounts, weights: Amounts) -> float:
    """Of the weighted mean; infinite where there are fewer than two values."""
    count = effective(weights)
    if count <= 1:
        return math.inf
    parts = weights * (values - _mean(values, weights))
    return math.sqrt(float((parts**2).sum()) * count / (count - 1)) / float(weights.sum())


def _mean(values: Amounts, weights: Amounts) -> float:
    return float((values * weights).sum() / weights.sum()) if weights.sum() else 0.0


def _widest(found: Sequence[Interval]) -> Interval:
    return Interval(min(it.low for it in found), found[0].mean, max(it.high for it in found))


def _after(now: float, saved: Sequence[Interval]) -> Interval:
    widest = _widest(saved)
    return Interval(max(0.0, now - widest.high), now - widest.mean, now - widest.low)
