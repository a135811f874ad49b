"""How old the rows of a partition are at least: where its range of values ends, against where "older than" begins.

Values are of two kinds. An *instant* (``timestamptz``) is the same everywhere, and Iceberg's transforms cut instants
into years, months, days and hours of UTC. A *reading* (``date``, ``timestamp``) is what a clock on the wall showed;
which instant that was, its zone tells, and in the hour that a clock is put back it does not. So there are two limits.
Rows below either are older than asked for, both by the time that has gone by and by the calendar of the zone, however
a reading is taken; in the days around a change of the clocks a partition may stay an hour longer for it, never less.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Any, Final
from zoneinfo import ZoneInfo

from icewright.core.times import Instant
from icewright.model.actions.expire_data import IntegerTime

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_READING: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - a clock on the wall
_MS: Final = timedelta(milliseconds=1)
_HOUR_MS: Final = 3_600_000
_DAY_MS: Final = 24 * _HOUR_MS
_CALENDAR_BEGINS: Final = (date.min - _EPOCH.date()).days * _DAY_MS
"""A number that is before it stands for something else: for no value, say, as the least long does in many libraries."""
_NEAR_MS: Final = 2 * _DAY_MS
"""How far around an instant a change of the clocks matters: further than any clock was ever put back."""
_STEP_MS: Final = _HOUR_MS // 4
"""No zone ever had an offset for so short a time."""

_DATES: Final = frozenset({"date"})
_READINGS: Final = frozenset({"timestamp", "timestamp_ns"})
_INSTANTS: Final = frozenset({"timestamptz", "timestamptz_ns"})
INTEGERS: Final = frozenset({"int", "long"})
TYPES: Final = _DATES | _READINGS | _INSTANTS | INTEGERS
"""The types of columns that can say how old a row is."""
EPOCHS: Final = frozenset({IntegerTime.EPOCH_DAYS, IntegerTime.EPOCH_SECONDS, IntegerTime.EPOCH_MILLISECONDS})
EPOCHS_SINCE_MS: Final = 315_532_800_000
"""What counts from 1970 and would be of before 1980 is more likely to count something else: seconds, read as
milliseconds, are of January 1970, and all of them would be old."""
TRANSFORMS: Final = frozenset({"identity", "year", "month", "day", "hour"})
"""The transforms whose values have an end in time."""


class Measure(StrEnum):
    """What the values of a column are."""

    INSTANT = "instant"
    READING = "reading"


@dataclass(frozen=True, slots=True)
class Limits:
    """Below these rows are older than asked for: ``instant`` is of instants, ``reading`` of readings.

    Both in milliseconds since 1970-01-01T00:00, of UTC and of the clock on the wall.
    """

    instant: int
    reading: int

    def of(self, measure: Measure) -> int:
        """The limit of values of this kind."""
        return self.instant if measure is Measure.INSTANT else self.reading


@dataclass(frozen=True, slots=True)
class End:
    """Where the values of a partition end: all of them are below ``at``."""

    measure: Measure
    at: int


def limits(now: Instant, older_than_ms: int, zone: ZoneInfo) -> Limits:
    """What is older than so long at an instant. Raises ``OverflowError`` for what no calendar has."""
    then = now - older_than_ms
    today = _offset(now, zone)
    near = [_offset(at, zone) for at in range(then - _NEAR_MS, then + _NEAR_MS + 1, _STEP_MS)]
    return Limits(instant=then + min(0, today - max(near)), reading=then + min(today, *near))


def measure_of(type_name: str, integers: IntegerTime | None) -> Measure:
    """What the values of a column of this type are."""
    if type_name in INTEGERS:
        instants = (IntegerTime.EPOCH_SECONDS, IntegerTime.EPOCH_MILLISECONDS)
        return Measure.INSTANT if integers in instants else Measure.READING
    return Measure.INSTANT if type_name in _INSTANTS else Measure.READING


def end_of(value: Any, transform: str, type_name: str, integers: IntegerTime | None) -> End | None:
    """Where the values of a partition end that has this value of a field, None where nothing is known of it.

    ``value`` is in JSON single-value form, of the field's ``transform`` of a column of that type.
    """
    if value is None or isinstance(value, bool):
        return None
    try:
        at = _identity_end(value, type_name, integers) if transform == "identity" else _cut_end(value, transform)
    except (ValueError, OverflowError):  # what cannot be read as a time is not known to be old
        return None
    return None if at is None or at < _CALENDAR_BEGINS else End(measure_of(type_name, integers), at)


def _cut_end(value: Any, transform: str) -> int | None:
    """The end of a year, month, day or hour."""
    if transform == "day":
        return (_day_number(value) + 1) * _DAY_MS if isinstance(value, str) else None
    if not isinstance(value, int):
        return None
    match transform:
        case "year":
            return _month_start(12 * (value + 1))
        case "month":
            return _month_start(value + 1)
        case "hour":
            return (value + 1) * _HOUR_MS
        case _:
            return None


def _identity_end(value: Any, type_name: str, integers: IntegerTime | None) -> int | None:
    if type_name in INTEGERS:
        return _integer_end(value, integers) if isinstance(value, int) else None
    if not isinstance(value, str):
        return None
    if type_name in _DATES:
        return (_day_number(value) + 1) * _DAY_MS
    at = datetime.fromisoformat(value)
    if (at.tzinfo is not None) is not (type_name in _INSTANTS):
        return None
    return (at - (_EPOCH if at.tzinfo is not None else _EPOCH_READING)) // _MS + 1


def _integer_end(value: int, integers: IntegerTime | None) -> int | None:
    match integers:
        case None:
            return None
        case IntegerTime.YYYYMMDD:
            return (_day_number(str(value)) + 1) * _DAY_MS if value > 0 else None  # 240131 is no day of year 24
        case IntegerTime.EPOCH_DAYS:
            return (value + 1) * _DAY_MS
        case IntegerTime.EPOCH_SECONDS:
            return (value + 1) * 1000
        case IntegerTime.EPOCH_MILLISECONDS:
            return value + 1


def _day_number(text: str) -> int:
    return (date.fromisoformat(text) - _EPOCH.date()).days


def _month_start(months: int) -> int | None:
    """When a month begins, by its number since January 1970; None beyond what calendars have."""
    year, month = divmod(months, 12)
    year += 1970
    if not MINYEAR <= year <= MAXYEAR:
        return None
    return (date(year, month + 1, 1) - _EPOCH.date()).days * _DAY_MS


def _offset(at: Instant, zone: ZoneInfo) -> int:
    """How far the clocks of a zone are before UTC at an instant, in milliseconds."""
    offset = (_EPOCH + timedelta(milliseconds=at)).astimezone(zone).utcoffset()
    return (offset or timedelta()) // _MS
