"""Whether a change that was carried out has paid: from rows to a verdict. Pure, and by no code of the optimizer's.

Two measures, neither of which replaces the other. *Planned*: the same queries by the bounds of the files before and
after, where every query is its own control. *Scanned*: what engines say they read, template by template and week by
week, against tables that nothing was done to (difference in differences). A verdict is by the end of a 95 % interval,
never by a mean alone.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from icewright.core import wording
from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.queries.measurements import (
    Effect,
    FileSums,
    Measured,
    MeasuredQuery,
    PlannedReads,
    ScannedReads,
    WeekOfReads,
    judged_of,
)
from icewright.model.queries.recommendations import Interval, JudgedQuery, t_quantile
from icewright.model.queries.templates import OTHER_TEMPLATES, WEEK_MS, Sums, Template, TemplateWeek, week_of

_OfWeek: TypeAlias = Callable[[Instant], bool]

REGRESSION: Final = 0.05
"""How much more is read at least, by the lower end of the interval, where a change is taken back."""
QUERIES_MIN: Final = 20
"""Queries that differ, as many as recommending takes: what happens to one in seven is seen among them."""
WEEKS_MIN: Final = 4
"""Weeks before and after together: with fewer, how much weeks differ by themselves is not known."""
WEEKS_MAX: Final = 12
"""Of each side."""
GROWN: Final = 0.05
"""How much larger or smaller a table may be than before to be compared by bytes alone."""
EFFECTIVE_MIN: Final = 5

TOO_FEW_QUERIES, NOTHING_BEFORE, NOT_CERTAIN, TABLE_CHANGED, TOO_FEW_WEEKS, NO_OTHERS, CONTRADICTION, NOT_BY_BOUNDS = (
    "too-few-queries",
    "nothing-before",
    "not-certain",
    "table-changed",
    "too-few-weeks",
    "no-comparable-table",
    "measures-disagree",
    "not-by-bounds",
)


def planned(found: Measured, judged: Mapping[str, JudgedQuery], before: FileSums) -> PlannedReads:
    """The queries that ran later, where enough of them can be compared; else those that judged the recommendation.

    ``before`` is what the table had when it was analyzed, for where its snapshot of then has expired.
    """
    table_before = found.table_before or before
    later = [row for row in found.later if row.bytes_before is not None]
    are_later = len(later) >= QUERIES_MIN
    rows = later if are_later else [judged_of(judged, row) for row in found.judged]
    rows = [row for row in rows if row.bytes_before is not None]
    weights = [float(row.weight) for row in rows]
    total = sum(weights) or 1.0

    def mean(values: Sequence[int]) -> float:
        return sum(weight * value for weight, value in zip(weights, values, strict=True)) / total

    then, now = [row.bytes_before or 0 for row in rows], [row.bytes for row in rows]
    change = _change(then, now, weights)
    of_share = _change(
        [value / max(1, table_before.bytes) for value in then],
        [value / max(1, found.table.bytes) for value in now],
        weights,
    )
    effect, reason = _planned_effect(rows, change, of_share, table_before, found.table)
    return PlannedReads(
        effect=effect,
        reason=reason,
        are_later=are_later,
        queries=sum(row.weight for row in rows),
        files_before=mean([row.files_before or 0 for row in rows]),
        files=mean([row.files for row in rows]),
        bytes_before=mean(then),
        bytes=mean(now),
        table_before=table_before,
        table=found.table,
        change=change,
        change_of_share=of_share,
        rows=tuple(rows),
    )


def _planned_effect(
    rows: Sequence[MeasuredQuery],
    change: Interval | None,
    of_share: Interval | None,
    before: FileSums,
    now: FileSums,
) -> tuple[Effect, Reason]:
    figures = {"queries": len(rows)}
    weights = [float(row.weight) for row in rows]
    if len(rows) < QUERIES_MIN or _effective(weights) < EFFECTIVE_MIN:
        counted = wording.count(len(rows), "query that differs", "queries that differ")
        text = f"{counted} can be planned both before and after; {QUERIES_MIN} are needed, no few of them running most"
        return Effect.UNKNOWN, Reason(TOO_FEW_QUERIES, text, figures)
    if change is None or of_share is None:
        return Effect.UNKNOWN, Reason(NOTHING_BEFORE, "the queries opened nothing before", figures)
    grown = abs(now.bytes - before.bytes) > GROWN * max(1, before.bytes)
    effect = _effect(change)
    if grown and _effect(of_share) is not effect:
        text = (
            f"the table has {now.bytes:,} bytes and had {before.bytes:,}: a query reads {_percent(change)}, and "
            f"{_percent(of_share)} of the table, which does not say the same"
        )
        return Effect.UNKNOWN, Reason(TABLE_CHANGED, text, figures)
    text = f"a query plans to read {_percent(change)} than before, by the bounds of files"
    if effect is Effect.UNKNOWN:
        return effect, Reason(NOT_CERTAIN, f"{text}: that is not certain enough", figures)
    return effect, Reason(effect.value, text, figures)


def scanned(
    table: Sequence[TemplateWeek],
    others: Sequence[Sequence[TemplateWeek]],
    accepted_at: Instant,
    carried_out_at: Instant,
    now: Instant,
) -> ScannedReads:
    """What engines read of the table in whole weeks, beyond what they read of ``others`` in the same weeks.

    The week of the acceptance, those up to the rewrite and the present one are of neither side.
    """
    before_end, after_begin = week_of(accepted_at), week_of(carried_out_at) + WEEK_MS
    present = week_of(now)

    def is_before(week_at: Instant) -> bool:
        return before_end - WEEKS_MAX * WEEK_MS <= week_at < before_end

    def is_after(week_at: Instant) -> bool:
        return after_begin <= week_at < min(present, after_begin + WEEKS_MAX * WEEK_MS)

    def weeks(of: Sequence[TemplateWeek]) -> dict[Instant, ComparedWeek]:
        return {at: week for at, week in compared_weeks(of, is_before, is_after).items() if week.expected}

    own = weeks(table)
    compared = [found for each in others if (found := weeks(each)) and _both(found, is_after)]
    rows = []
    for at, week in sorted(own.items()):
        logs = [found[at].log_ratio for found in compared if at in found]
        beside = sum(logs) / len(logs) if logs else 0.0
        row = WeekOfReads(
            at, is_after(at), week.queries, week.bytes_read, week.expected, week.log_ratio, len(logs), beside
        )
        rows.append(row)
    effect, reason, change = _scanned_effect(rows, len(compared))
    return ScannedReads(effect, reason, change, tuple(rows), len(compared))


def _scanned_effect(rows: Sequence[WeekOfReads], others: int) -> tuple[Effect, Reason, Interval | None]:
    counted = [row for row in rows if row.others] if others else list(rows)
    sides = [[row for row in counted if row.is_after is side] for side in (False, True)]
    queries = [sum(row.queries for row in side) for side in sides]
    if min(queries) < QUERIES_MIN:
        text = f"engines say what they read of {queries[0]:,} queries before and {queries[1]:,} after, in whole weeks"
        reason = Reason(TOO_FEW_QUERIES, f"{text}; {QUERIES_MIN} are needed of each", {"queries": min(queries)})
        return Effect.UNKNOWN, reason, None
    logs = [[row.log_ratio - row.log_ratio_of_others for row in side] for side in sides]
    before, after = (sum(side) / len(side) for side in logs)
    mean, degrees = after - before, len(logs[0]) + len(logs[1]) - 2
    if degrees + 2 < WEEKS_MIN or len(logs[0]) < 2:  # noqa: PLR2004 - one week has no spread
        text = (
            f"a query reads {_signed(math.expm1(mean))}, by {len(logs[0])} weeks before and {len(logs[1])} after: "
            "too few to know how much weeks differ without a change"
        )
        return Effect.UNKNOWN, Reason(TOO_FEW_WEEKS, text, {"weeks": degrees + 2}), None
    spread = sum((value - before) ** 2 for value in logs[0]) + sum((value - after) ** 2 for value in logs[1])
    error = math.sqrt(spread / degrees * (1 / len(logs[0]) + 1 / len(logs[1])))
    half = t_quantile(degrees) * error
    change = Interval(*(math.expm1(value) for value in (mean - half, mean, mean + half)))
    text = f"a query reads {_percent(change)} than before, as engines say"
    figures = {"weeks": degrees + 2, "queries": min(queries)}
    if not others:
        text += "; no table like it was left alone, so that this may have other causes"
        return Effect.UNKNOWN, Reason(NO_OTHERS, text, figures), change
    effect = _effect(change)
    if effect is Effect.UNKNOWN:
        return effect, Reason(NOT_CERTAIN, f"{text}: that is not certain enough", figures), change
    return effect, Reason(effect.value, f"{text}, against similar tables in the same weeks", figures), change


def together(planned_reads: PlannedReads, scanned_reads: ScannedReads) -> tuple[Effect, Reason]:
    """What both measures say; what was really scanned is heard where it says something, unless they contradict."""
    effects = {planned_reads.effect, scanned_reads.effect}
    if effects == {Effect.BETTER, Effect.WORSE}:
        text = f"{planned_reads.reason.text}; but {scanned_reads.reason.text}"
        return Effect.UNKNOWN, Reason(CONTRADICTION, text)
    first = planned_reads if scanned_reads.effect is Effect.UNKNOWN else scanned_reads
    return first.effect, first.reason


class ComparedWeek:
    """One week of a table, against what the same templates read before: bytes, and files where engines say them."""

    def __init__(self) -> None:
        self.queries, self.bytes_read, self.expected = 0, 0, 0.0
        self.with_files, self.files_read, self.files_expected = 0, 0, 0.0

    @property
    def log_ratio(self) -> float:
        """The logarithm of what was read over what was to be expected."""
        return math.log(max(self.bytes_read, 1) / self.expected)


def compared_weeks(of: Sequence[TemplateWeek], is_before: _OfWeek, is_after: _OfWeek) -> dict[Instant, ComparedWeek]:
    """Each week of both sides that has templates which are known from before; others count for nothing."""
    before: dict[Template, Sums] = defaultdict(Sums)
    for each in of:
        if is_before(each.week_at) and each.template != OTHER_TEMPLATES:
            before[each.template] = before[each.template] + each.sums
    found: dict[Instant, ComparedWeek] = defaultdict(ComparedWeek)
    for each in of:
        sums, now = before.get(each.template), each.sums
        if sums is None or not (is_before(each.week_at) or is_after(each.week_at)):
            continue
        week = found[each.week_at]
        if sums.bytes_read > 0 and now.with_bytes:
            week.queries += now.with_bytes
            week.bytes_read += now.bytes_read
            week.expected += now.with_bytes * sums.bytes_read / sums.with_bytes
        if sums.files_read > 0 and now.with_files:
            week.with_files += now.with_files
            week.files_read += now.files_read
            week.files_expected += now.with_files * sums.files_read / sums.with_files
    return dict(found)


def _both(weeks: Mapping[Instant, ComparedWeek], is_after: _OfWeek) -> bool:
    sides = [sum(week.queries for at, week in weeks.items() if is_after(at) is side) for side in (False, True)]
    return min(sides) >= QUERIES_MIN


def _change(then: Sequence[float], now: Sequence[float], weights: Sequence[float]) -> Interval | None:
    """The change of a weighted mean as a share, with the interval of a ratio of paired means; None of nothing."""
    total, read = sum(weights), sum(w * value for w, value in zip(weights, then, strict=True))
    count = _effective(weights)
    if read <= 0 or count <= 1:
        return None
    ratio = sum(w * value for w, value in zip(weights, now, strict=True)) / read
    residuals = (w * (after - ratio * before) for w, before, after in zip(weights, then, now, strict=True))
    error = math.sqrt(sum(value**2 for value in residuals) * count / (count - 1)) / total / (read / total)
    half = t_quantile(count - 1) * error
    return Interval(max(-1.0, ratio - 1 - half), ratio - 1, ratio - 1 + half)


def _effect(change: Interval) -> Effect:
    if change.low > REGRESSION:
        return Effect.WORSE
    if change.high < 0:
        return Effect.BETTER
    return Effect.AS_BEFORE if change.high <= REGRESSION else Effect.UNKNOWN


def _effective(weights: Sequence[float]) -> float:
    """How many queries of equal weight would tell as much (Kish 1965)."""
    squares = sum(weight**2 for weight in weights)
    return sum(weights) ** 2 / squares if squares else 0.0


def _percent(change: Interval) -> str:
    return f"{_signed(change.mean)} ({100 * change.low:+.0f} to {100 * change.high:+.0f} %)"


def _signed(share: float) -> str:
    return f"{100 * abs(share):.0f} % {'more' if share > 0 else 'less'}"
