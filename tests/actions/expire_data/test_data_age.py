"""No row expires that is younger than asked for, in any zone and on any day: against every row, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import example, given, settings
from hypothesis import strategies as st

from icewright.actions.expire_data.age import End, Limits, Measure, end_of, limits
from icewright.actions.expire_data.check import _is_older, _last
from icewright.model.actions.expire_data import ExpireData, ExpiringPartition, IntegerTime
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.tables import PartitionField, PartitionSpec
from tests.builders.observations import DAY_MS, HOUR_MS, observe, table
from tests.cases import each_case
from tests.narrowing import not_none

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
READING = datetime(1970, 1, 1)  # noqa: DTZ001 - a clock on the wall
QUARTER_MS = HOUR_MS // 4
ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/St_Johns",
    "Australia/Lord_Howe",
    "Antarctica/Troll",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Africa/Casablanca",
    "Pacific/Apia",
    "Pacific/Kiritimati",
    "America/Caracas",
)
SLACK_MS = 26 * HOUR_MS
"""For how long a partition may stay whose rows are all older: no zone of these was ever put back further."""


def instant_of(at: datetime) -> int:
    return (at - EPOCH) // timedelta(milliseconds=1)


def shown(instant: int, zone: ZoneInfo) -> datetime:
    """What a clock of the zone shows."""
    return (EPOCH + timedelta(milliseconds=instant)).astimezone(zone).replace(tzinfo=None)


@cache
def changes(zone: str) -> tuple[int, ...]:
    """When the clocks of a zone were changed, 2005 to 2030, to the quarter of an hour."""
    found, info = [], ZoneInfo(zone)
    at, end = instant_of(datetime(2005, 1, 1, tzinfo=UTC)), instant_of(datetime(2030, 1, 1, tzinfo=UTC))
    while at < end:
        if shown(at, info) - shown(at + DAY_MS, info) != timedelta(milliseconds=-DAY_MS):
            found.append(at)
        at += DAY_MS
    return tuple(found)


def is_young_instant(row: int, now: int, age_ms: int, zone: ZoneInfo) -> bool:
    """By the time that went by, or by the calendar."""
    return row >= now - age_ms or shown(row, zone) >= shown(now, zone) - timedelta(milliseconds=age_ms)


def is_young_reading(row: datetime, now: int, age_ms: int, zone: ZoneInfo) -> bool:
    """As an instant, whichever of two it may be."""
    wall = row >= shown(now, zone) - timedelta(milliseconds=age_ms)
    either = [row.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)]
    return wall or any(instant_of(one) >= now - age_ms for one in either)


def young_rows(now: int, age_ms: int, zone: ZoneInfo, below: Limits, measure: Measure) -> Iterator[int]:
    """Rows below the limit, for two days before it, that are younger than asked for."""
    limit = below.of(measure)
    for row in (*range(limit - 2 * DAY_MS, limit, QUARTER_MS), limit - 1):
        if measure is Measure.INSTANT:
            young = is_young_instant(row, now, age_ms, zone)
        else:
            young = is_young_reading(READING + timedelta(milliseconds=row), now, age_ms, zone)
        if young:
            yield row


@st.composite
def moments(draw: st.DrawFn) -> tuple[str, int, int]:
    """A zone, an age and now, of which one end or the other is near a change of the clocks, if there are any."""
    zone = draw(st.sampled_from(ZONES))
    age_ms = draw(st.sampled_from([DAY_MS, 7 * DAY_MS, 90 * DAY_MS, 365 * DAY_MS]) | st.integers(DAY_MS, 900 * DAY_MS))
    near = draw(st.sampled_from(changes(zone))) if changes(zone) else 1_600_000_000_000
    at = near + draw(st.integers(-2 * DAY_MS, 2 * DAY_MS))
    return zone, age_ms, draw(st.sampled_from([at, at + age_ms]))


@given(moments(), st.sampled_from(list(Measure)))
@settings(max_examples=150, deadline=None)
@example(("Europe/Berlin", 7 * DAY_MS, instant_of(datetime(2024, 10, 27, 23, 30, tzinfo=UTC))), Measure.INSTANT)
@example(("Pacific/Apia", DAY_MS, instant_of(datetime(2011, 12, 31, 12, tzinfo=UTC))), Measure.READING)
def test_x2_no_row_below_the_limit_is_younger_in_its_zone(moment: tuple[str, int, int], measure: Measure) -> None:
    zone, age_ms, now = ZoneInfo(moment[0]), moment[1], moment[2]
    below = limits(now, age_ms, zone)
    assert list(young_rows(now, age_ms, zone, below, measure)) == []


@given(moments())
@settings(max_examples=100, deadline=None)
def test_g18_what_is_a_day_older_in_any_zone_is_below_the_limit(moment: tuple[str, int, int]) -> None:
    zone, age_ms, now = ZoneInfo(moment[0]), moment[1], moment[2]
    below = limits(now, age_ms, zone)
    wall = (shown(now - age_ms, zone) - READING) // timedelta(milliseconds=1)
    assert below.instant >= now - age_ms - SLACK_MS
    assert below.reading >= wall - SLACK_MS


def elapsed_alone(now: int, age_ms: int, zone: ZoneInfo) -> Limits:
    """Without the calendar, and with a reading as of then."""
    wall = (shown(now - age_ms, zone) - READING) // timedelta(milliseconds=1)
    return Limits(now - age_ms, wall)


def of_utc(now: int, age_ms: int, zone: ZoneInfo) -> Limits:
    """As if every clock showed UTC."""
    del zone
    return Limits(now - age_ms, now - age_ms)


def of_a_server_in_the_east(now: int, age_ms: int, zone: ZoneInfo) -> Limits:
    """Eight hours too early, as it has happened."""
    del zone
    return Limits(now - age_ms, now - age_ms + 8 * HOUR_MS)


@each_case("wrong", [elapsed_alone, of_utc, of_a_server_in_the_east], ids=lambda each: each.__name__)
def test_x2_a_limit_without_its_guard_is_noticed(wrong: Callable[[int, int, ZoneInfo], Limits]) -> None:
    """The zones are west of Greenwich, east of it, and of both clocks."""
    assert any(
        True
        for name in ("America/New_York", "Europe/Berlin")
        for change in changes(name)[:4]
        for now in range(change - DAY_MS, change + 2 * DAY_MS, HOUR_MS)
        for at in (now, now + 7 * DAY_MS)
        for measure in Measure
        for _ in young_rows(at, 7 * DAY_MS, ZoneInfo(name), wrong(at, 7 * DAY_MS, ZoneInfo(name)), measure)
    )


@given(moments(), st.integers(1, 40))
@settings(max_examples=60, deadline=None)
def test_x2_the_last_full_days_of_the_zone_stay(moment: tuple[str, int, int], days: int) -> None:
    """By date: today and the last so many days that are over."""
    zone, now = ZoneInfo(moment[0]), moment[2]
    below = limits(now, days * DAY_MS, zone)
    today = shown(now, zone).date()
    for back in range(days + 1):
        end = not_none(end_of((today - timedelta(days=back)).isoformat(), "identity", "date", None))
        assert end.at > below.reading


class TestEnds:
    """Where the values of a partition end, worked out by hand."""

    @each_case(
        ("value", "transform", "kind", "integers", "last"),
        [
            ("2024-02-29", "identity", "date", None, "2024-02-29T23:59:59.999"),
            ("2024-02-29", "day", "timestamp", None, "2024-02-29T23:59:59.999"),
            ("1969-12-31", "day", "timestamptz", None, "1969-12-31T23:59:59.999"),
            (0, "month", "timestamp", None, "1970-01-31T23:59:59.999"),
            (-1, "month", "date", None, "1969-12-31T23:59:59.999"),
            (649, "month", "timestamptz", None, "2024-02-29T23:59:59.999"),
            (54, "year", "date", None, "2024-12-31T23:59:59.999"),
            (-1, "year", "timestamp", None, "1969-12-31T23:59:59.999"),
            (0, "hour", "timestamp", None, "1970-01-01T00:59:59.999"),
            (-1, "hour", "timestamptz", None, "1969-12-31T23:59:59.999"),
            ("2024-02-29T12:00:00", "identity", "timestamp", None, "2024-02-29T12:00:00"),
            ("2024-02-29T12:00:00.000001+00:00", "identity", "timestamptz", None, "2024-02-29T12:00:00"),
            ("2024-02-29T12:00:00.123456789", "identity", "timestamp_ns", None, "2024-02-29T12:00:00.123"),
            ("1969-12-31T23:59:59.999999", "identity", "timestamp", None, "1969-12-31T23:59:59.999"),
            (20240229, "identity", "int", IntegerTime.YYYYMMDD, "2024-02-29T23:59:59.999"),
            (19782, "identity", "int", IntegerTime.EPOCH_DAYS, "2024-02-29T23:59:59.999"),
            (1709251199, "identity", "long", IntegerTime.EPOCH_SECONDS, "2024-02-29T23:59:59.999"),
            (1709251199999, "identity", "long", IntegerTime.EPOCH_MILLISECONDS, "2024-02-29T23:59:59.999"),
        ],
    )
    def test_x2_it_is_right_after_the_last_row(
        self, value: Any, transform: str, kind: str, integers: IntegerTime | None, last: str
    ) -> None:
        found = not_none(end_of(value, transform, kind, integers))
        assert found.at == (datetime.fromisoformat(last) - READING) // timedelta(milliseconds=1) + 1
        is_instant = kind.startswith("timestamptz") or integers in (
            IntegerTime.EPOCH_SECONDS,
            IntegerTime.EPOCH_MILLISECONDS,
        )
        assert found.measure is (Measure.INSTANT if is_instant else Measure.READING)

    @each_case(
        ("value", "transform", "kind", "integers"),
        [
            (None, "day", "timestamp", None),
            (True, "month", "timestamp", None),
            (19782, "day", "timestamp", None),
            ("not-a-day", "day", "timestamp", None),
            (99999999, "identity", "date", None),
            ("2024-02-29T12:00:00", "identity", "timestamptz", None),
            ("2024-02-29T12:00:00+00:00", "identity", "timestamp", None),
            (10_000_000, "month", "date", None),
            (8030, "year", "date", None),
            (-1971, "year", "date", None),
            ("5", "hour", "timestamp", None),
            (20240230, "identity", "int", IntegerTime.YYYYMMDD),
            (-20240101, "identity", "int", IntegerTime.YYYYMMDD),
            (240131, "identity", "int", IntegerTime.YYYYMMDD),
            (2020101, "identity", "int", IntegerTime.YYYYMMDD),
            (10101, "identity", "int", IntegerTime.YYYYMMDD),
            (20240229, "identity", "int", None),
            (3, "bucket[16]", "timestamp", None),
            (-(2**31), "hour", "timestamp", None),
            (-(2**31), "identity", "int", IntegerTime.EPOCH_DAYS),
            (-(2**63), "identity", "long", IntegerTime.EPOCH_DAYS),
            (-(2**63), "identity", "long", IntegerTime.EPOCH_SECONDS),
            (-(2**63), "identity", "long", IntegerTime.EPOCH_MILLISECONDS),
        ],
    )
    def test_what_cannot_be_read_has_none(
        self, value: Any, transform: str, kind: str, integers: IntegerTime | None
    ) -> None:
        assert end_of(value, transform, kind, integers) is None


@given(
    moments(),
    st.integers(-3 * DAY_MS, 3 * DAY_MS),
    st.sampled_from(["day", "hour", "month", "year"]),
    st.sampled_from(["timestamp", "timestamptz"]),
)
@settings(max_examples=150, deadline=None)
def test_x2_the_checker_finds_nothing_that_the_planner_lets_expire(
    moment: tuple[str, int, int], off_ms: int, transform: str, kind: str
) -> None:
    """Two ways to tell it, which share no line."""
    zone, age_ms, now = moment
    at = EPOCH + timedelta(milliseconds=now - age_ms + off_ms)
    hours = instant_of(at) // HOUR_MS
    months = 12 * (at.year - 1970) + at.month - 1
    value: Any = {"day": at.date().isoformat(), "hour": hours, "month": months, "year": at.year - 1970}[transform]
    end = not_none(end_of(value, transform, kind, None))
    expires = end.at <= limits(now, age_ms, ZoneInfo(zone)).of(end.measure)
    action, partition, observation = asked(value, transform, kind, age_ms, zone, now)
    last = not_none(_last(action, partition, observation, kind))
    assert end == End(end.measure, (last.replace(tzinfo=None) - READING) // timedelta(milliseconds=1) + 1)
    if expires:
        assert _is_older(last, action)


def asked(value: Any, transform: str, kind: str, age_ms: int, zone: str, now: int) -> tuple[Any, ...]:
    spec = PartitionSpec(0, (PartitionField(1, 1000, "at", transform),))
    metadata = table(fields=({"id": 1, "name": "at", "type": kind, "required": False},), specs=(spec,))
    text = f'["{value}"]' if isinstance(value, str) else f"[{value}]"
    partition = ExpiringPartition(Partition(0, text), "", ())
    action = ExpireData(1, "at", 1, None, age_ms, zone, now, (partition,), 0, 0)
    return action, partition, observe([], metadata)
