"""Maintenance windows against an oracle that looks at the clock on the wall, minute by minute."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim, CronSimError
from hypothesis import example, given
from hypothesis import strategies as st

from icewright.core.times import Window
from icewright.model.iceberg.names import TableId
from icewright.model.policy.policy import PolicyRule
from icewright.model.policy.time_windows import (
    CRON_LENGTH_MAX,
    WindowTextError,
    opens_at,
    parse_cron,
    parse_time_zone,
    spread,
    window_of,
)
from icewright.policy.effective import effective_policy
from icewright.policy.settings import BY_KEY, value_problem
from tests.builders.observations import policy, table
from tests.cases import each_case
from tests.narrowing import not_none

MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
_MINUTE, _HORIZON_MINUTES = timedelta(minutes=1), 3 * 24 * 60
_NAMES = {name: number for number, name in enumerate(("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"))}

ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",  # half an hour
    "Africa/Cairo",  # at midnight
    "America/Santiago",  # at midnight, in the south
    "Africa/Casablanca",  # in Ramadan
    "Asia/Kathmandu",  # 45 minutes off, never changed
)


def at(text: str, zone: str) -> int:
    """An instant as clocks in a zone show it; of two the first."""
    return round(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000)


def shown(instant: int, zone: str) -> str:
    return datetime.fromtimestamp(instant / 1000, ZoneInfo(zone)).isoformat()


# The oracle: fields parsed by other code, and nothing but a look at the clock.


def field(text: str, least: int, most: int) -> set[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        if span == "*":
            first, last = least, most
        else:
            one, dash, other = span.partition("-")
            first = _NAMES.get(one) if one in _NAMES else int(one)  # type: ignore[assignment] # found
            last = (_NAMES.get(other) or int(other)) if dash else (most if step else first)
        found |= set(range(first, last + 1, int(step or 1)))
    return found


def matcher(cron: str) -> Callable[[datetime], bool]:
    minute, hour, day, month, weekday = cron.split()
    minutes, hours = field(minute, 0, 59), field(hour, 0, 23)
    days, months = field(day, 1, 31), field(month, 1, 12)
    weekdays = {number % 7 for number in field(weekday, 0, 7)}
    both = day.startswith("*") or weekday.startswith("*")

    def matches(clock: datetime) -> bool:
        by_day, by_weekday = clock.day in days, clock.isoweekday() % 7 in weekdays
        today = (by_day and by_weekday) if both else (by_day or by_weekday)
        return today and clock.minute in minutes and clock.hour in hours and clock.month in months

    return matches


def clock_on_the_wall(instant: int, zone: str) -> datetime:
    moment = datetime.fromtimestamp(instant // 1000, UTC) + timedelta(milliseconds=instant % 1000)
    return moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None)


def is_open(window: Window, instant: int) -> bool:
    return opens_at(window, instant) == instant


def oracle_is_open(window: Window, instant: int) -> bool:
    matches, clock = matcher(window.cron), clock_on_the_wall(instant, window.time_zone)
    minute = clock.replace(second=0, microsecond=0)
    while clock - minute < timedelta(milliseconds=window.duration_ms):
        if clock - minute >= timedelta(milliseconds=window.delay_ms) and matches(minute):
            return True
        minute -= _MINUTE
    return False


def oracle_opens_at(window: Window, instant: int) -> int | None:
    """As :func:`opens_at` for windows that begin at full minutes, for some days."""
    if oracle_is_open(window, instant):
        return instant
    first = -(-instant // MINUTE_MS) * MINUTE_MS
    oldest = clock_on_the_wall(first, window.time_zone) - 2 * timedelta(days=1)
    matches, sums = matcher(window.cron), [0]
    for number in range(_HORIZON_MINUTES + 4 * 24 * 60):
        sums.append(sums[-1] + matches(oldest + number * _MINUTE))
    delay, duration = window.delay_ms // MINUTE_MS, window.duration_ms // MINUTE_MS
    for minute in range(first, first + _HORIZON_MINUTES * MINUTE_MS, MINUTE_MS):
        number = (clock_on_the_wall(minute, window.time_zone) - oldest) // _MINUTE
        if sums[number - delay + 1] - sums[number - duration + 1]:  # one of these minutes
            return minute
    return None


@cache
def changes(zone: str) -> tuple[int, ...]:
    """When clocks are changed there, from 2025 to 2027, to the minute."""
    found, last = [], None
    for hour in range(at("2025-01-01", "UTC"), at("2028-01-01", "UTC"), HOUR_MS // 2):
        ahead = clock_on_the_wall(hour, zone) - clock_on_the_wall(hour, "UTC")
        if last is not None and ahead != last:
            found.append(hour)
        last = ahead
    return tuple(found)


def _some(least: int, most: int) -> st.SearchStrategy[str]:
    """Values of a field, one or several."""
    number = st.integers(least, most)
    # Of two at least: CronSim takes 1-1/2 for 1/2.
    spans = st.tuples(st.integers(least, most - 1), st.integers(1, most)).map(
        lambda pair: f"{pair[0]}-{min(pair[0] + pair[1], most)}"
    )
    steps = st.integers(1, most)
    return st.one_of(
        number.map(str),
        st.lists(number.map(str), min_size=2, max_size=3).map(",".join),
        spans,
        st.tuples(spans, steps).map(lambda pair: f"{pair[0]}/{pair[1]}"),
        steps.map(lambda step: f"*/{step}"),
        st.just("*"),
    )


_days = st.one_of(st.just("*"), st.just("*"), _some(1, 28))
_weekdays = st.one_of(st.just("*"), st.just("*"), _some(0, 7), st.sampled_from(["MON-FRI", "SAT,SUN", "SUN"]))
crons = st.tuples(_some(0, 59), st.one_of(_some(0, 3), _some(0, 23)), _days, st.just("*"), _weekdays).map(" ".join)


@st.composite
def windows(draw: st.DrawFn) -> Window:
    minutes = draw(st.integers(1, 90) | st.integers(1, 26 * 60))
    delay = draw(st.integers(0, minutes - 1))
    return Window(draw(crons), draw(st.sampled_from(ZONES)), minutes * MINUTE_MS, delay * MINUTE_MS)


@st.composite
def moments(draw: st.DrawFn) -> tuple[Window, int]:
    """A window and an instant, mostly within a day of when clocks are changed."""
    window = draw(windows())
    near = changes(window.time_zone)
    if len(near) > 0 and draw(st.integers(0, 3)) > 0:
        return window, near[draw(st.integers(0, len(near) - 1))] + draw(st.integers(-DAY_MS, DAY_MS))
    return window, draw(st.integers(at("2025-01-01", "UTC"), at("2027-12-01", "UTC")))


@given(moments())
@example((Window("30 2 * * *", "Europe/Berlin", 20 * MINUTE_MS), at("2026-03-28T12:00", "Europe/Berlin")))
@example((Window("0 2 * * *", "Europe/Berlin", 30 * MINUTE_MS), at("2026-10-25T02:45", "Europe/Berlin")))
@example((Window("*/10 0 * * *", "Africa/Cairo", 5 * MINUTE_MS), at("2026-04-23T23:59", "Africa/Cairo")))
@example((Window("0 3 * * *", "Australia/Lord_Howe", 5 * MINUTE_MS), at("2026-10-04T01:00", "Australia/Lord_Howe")))
def test_it_is_open_whenever_the_clock_on_the_wall_says_so(moment: tuple[Window, int]) -> None:
    window, instant = moment
    assert is_open(window, instant) == oracle_is_open(window, instant), shown(instant, window.time_zone)


@given(moments())
@example((Window("30 2 * * *", "Europe/Berlin", 20 * MINUTE_MS), at("2026-03-28T12:00", "Europe/Berlin")))
@example((Window("0 2 * * *", "Europe/Berlin", 30 * MINUTE_MS), at("2026-10-25T02:45", "Europe/Berlin")))
@example((Window("0 0 * * *", "Africa/Cairo", 30 * MINUTE_MS), at("2026-04-23T23:30", "Africa/Cairo")))
def test_it_opens_next_when_the_clock_on_the_wall_says_so_first(moment: tuple[Window, int]) -> None:
    window, instant = moment
    found, wanted = opens_at(window, instant), oracle_opens_at(window, instant)
    if wanted is None:
        assert found is None or found >= instant + (_HORIZON_MINUTES - 1) * MINUTE_MS
    else:
        assert found == wanted, shown(wanted, window.time_zone)


@given(moments(), st.integers(0, MINUTE_MS - 1))
def test_nothing_opens_a_millisecond_sooner(moment: tuple[Window, int], more_ms: int) -> None:
    window, instant = moment
    window = replace(window, duration_ms=window.duration_ms + more_ms, delay_ms=window.delay_ms + more_ms)
    opens = not_none(opens_at(window, instant))
    assert is_open(window, opens)
    assert opens == instant or not is_open(window, opens - 1)


class TestNightsInWhichClocksAreChanged:
    NIGHT = Window("0 2 * * *", "Europe/Berlin", 4 * HOUR_MS)

    def test_a_window_ends_at_the_time_that_it_ends_at_on_other_days(self) -> None:
        for day, hours in (("2026-03-29", 3), ("2026-10-25", 5), ("2026-10-26", 4)):
            opens = not_none(opens_at(self.NIGHT, at(f"{day}T00:00", "Europe/Berlin")))
            assert not is_open(self.NIGHT, at(f"{day}T06:00", "Europe/Berlin"))
            assert at(f"{day}T06:00", "Europe/Berlin") - opens == hours * HOUR_MS

    def test_one_within_the_hour_that_is_skipped_is_left_out(self) -> None:
        window = replace(self.NIGHT, duration_ms=HOUR_MS)
        opens = opens_at(window, at("2026-03-28T12:00", "Europe/Berlin"))
        assert opens == at("2026-03-30T02:00", "Europe/Berlin")

    def test_one_within_the_hour_that_comes_twice_is_open_twice(self) -> None:
        window = replace(self.NIGHT, duration_ms=HOUR_MS // 2)
        closed = at("2026-10-25T02:30", "Europe/Berlin")
        assert not is_open(window, closed)
        assert opens_at(window, closed) == closed + HOUR_MS // 2

    def test_a_change_is_not_missed_where_another_one_undoes_it_before_the_next_window(self) -> None:
        zone = "Africa/Casablanca"  # clocks go back for Ramadan
        back = next(one for one in changes(zone) if shown(one, zone).startswith("2026-02"))
        before = clock_on_the_wall(back - MINUTE_MS, zone)
        window = Window(f"0 {before.hour} {before.day} {before.month} *", zone, HOUR_MS // 2)
        assert opens_at(window, back - 10 * MINUTE_MS) == back
        assert shown(back, zone).startswith(f"2026-02-{before.day}T{before.hour:02}:00")


class TestTables:
    NIGHT = Window("0 2 * * *", "UTC", 4 * HOUR_MS)

    def windows(self, count: int, *, was_left_out: bool = False) -> list[Window]:
        ids = [TableId("lake", f"9c12d441-03fe-4693-9a96-a0705ddf{number:04x}") for number in range(count)]
        return [spread(self.NIGHT, table_id, was_left_out=was_left_out) for table_id in ids]

    def test_they_do_not_wake_together_and_each_has_half_of_the_window(self) -> None:
        found = self.windows(2_400)
        assert all(0 <= window.delay_ms < 2 * HOUR_MS for window in found)
        each_minute = Counter(window.delay_ms // MINUTE_MS for window in found)
        assert len(each_minute) == 120
        assert max(each_minute.values()) < 3 * 2_400 / 120

    def test_each_wakes_at_the_same_time_each_time_and_on_each_machine(self) -> None:
        assert [window.delay_ms for window in self.windows(2)] == [5405238, 7136879]

    def test_those_that_were_left_out_begin_before_most_others_and_not_together_either(self) -> None:
        found = self.windows(2_400, was_left_out=True)
        assert max(window.delay_ms for window in found) < HOUR_MS // 2
        assert len({window.delay_ms // MINUTE_MS for window in found}) == 30

    def test_a_name_that_no_uuid_should_be_has_a_time_as_well(self) -> None:
        assert spread(self.NIGHT, TableId("lake", "\ud800")).delay_ms < 2 * HOUR_MS

    def test_what_the_owner_says_is_the_window(self) -> None:
        metadata = table(properties={"icewright.maintenance-window.cron": "0 2 * * *"})
        assert window_of(effective_policy(metadata, ())) == self.NIGHT
        assert window_of(policy()) is None


class TestValues:
    @each_case(
        ("text", "said"),
        [
            ("", "it takes minute, hour"),
            ("0 2 * *", "it takes minute, hour"),
            ("0 0 2 * * *", "it takes minute, hour"),
            ("@daily", "it takes minute, hour"),
            ("60 2 * * *", "minute cannot be read"),
            ("0 24 * * *", "hour cannot be read"),
            ("0 2 * * MOON", "day-of-week cannot be read"),
            ("0 2 31 4 *", "day-of-month cannot be read"),
            ("0 2 */20 * 1L", "there is no such day"),
            ("0 2 * * M\u014dN", "ASCII"),
            (f"0 2 {'1,' * CRON_LENGTH_MAX}1 * *", "characters"),
        ],
    )
    def test_what_is_no_expression_is_said(self, text: str, said: str) -> None:
        assert said in not_none(value_problem(BY_KEY["icewright.maintenance-window.cron"], text))

    @each_case(
        "text",
        ["", "CET+1", "Berlin", "europe/berlin", "localtime", "../../etc/passwd", "Europe", "/etc/localtime", "\0"],
    )
    def test_what_is_no_time_zone_is_said(self, text: str) -> None:
        problem = not_none(value_problem(BY_KEY["icewright.maintenance-window.time-zone"], text))
        assert "Europe/Berlin" in problem

    @each_case("text", ["PT0S", "PT59S", "P8D", "4h", "-PT1H"])
    def test_what_is_no_duration_of_a_window_is_said(self, text: str) -> None:
        assert value_problem(BY_KEY["icewright.maintenance-window.duration"], text) is not None

    def test_one_that_cannot_be_used_lets_nothing_happen_and_no_other_layer_step_in(self) -> None:
        rules = [PolicyRule("lake", (), {"icewright.maintenance-window.cron": "0 2 * * *"})]
        metadata = table(properties={"icewright.maintenance-window.cron": "at night"})
        found = effective_policy(metadata, rules)
        assert [problem.key for problem in found.problems] == ["icewright.maintenance-window.cron"]

    @given(st.text("0123456789*/,-#LWSUNMOTEFRIA \t", max_size=120))
    def test_hostile_expressions_are_refused_or_open(self, text: str) -> None:
        try:
            cron = parse_cron(text)
        except WindowTextError:
            return
        assert opens_at(Window(cron, "Europe/Berlin", HOUR_MS), at("2026-01-01", "UTC")) is not None

    @given(crons)
    def test_what_the_library_takes_is_taken(self, cron: str) -> None:
        try:
            CronSim(cron, datetime(2026, 1, 1))  # noqa: DTZ001 - of the clock on a wall
        except CronSimError:
            pytest.fail("the oracle's expressions are to be valid")
        assert parse_cron(cron) == cron

    @given(st.text(max_size=60))
    def test_only_names_that_are_known_are_looked_for(self, text: str) -> None:
        with suppress(WindowTextError):
            assert ZoneInfo(parse_time_zone(text)).key == text


def test_the_oracle_is_not_always_of_one_opinion() -> None:
    window = Window("0 2 * * *", "Europe/Berlin", HOUR_MS)
    hours = range(at("2026-01-01", "UTC"), at("2026-01-08", "UTC"), HOUR_MS)
    assert Counter(oracle_is_open(window, hour) for hour in hours) == {True: 7, False: 7 * 23}
    assert all(changes(zone) for zone in ZONES if zone not in ("UTC", "Asia/Kathmandu"))
