"""What settings are made of: one setting, and the parsers of their values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_LONG_MAX = 2**63 - 1
_WHOLE_NUMBER = re.compile(r"[0-9]{1,19}", re.ASCII)
_DECIMAL = re.compile(r"[0-9]+(?:\.[0-9]+)?|\.[0-9]+", re.ASCII)
_DECIMAL_LENGTH_MAX = 30
_NUMBER_LIMIT = 1e9
_DURATION = re.compile(
    r"P(?:(?P<weeks>\d{1,4})W|(?:(?P<days>\d{1,5})D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d{1,6})H)?(?:(?P<minutes>\d{1,8})M)?(?:(?P<seconds>\d{1,9})S)?)?)",
    re.ASCII,
)
_MS_PER_UNIT = {"weeks": 604_800_000, "days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1_000}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. ``parse`` raises ``ValueError`` for text that is not ``allowed``.

    ``field`` is the attribute of :class:`~icewright.model.policy.policy.Policy` that it fills, and ``takes`` what is
    allowed where ``parse`` alone does not tell.
    """

    key: str
    field: str
    parse: Callable[[str], Any]
    default: Any
    doc: str
    takes: str = ""

    @property
    def allowed(self) -> str:
        """What may be set, in words."""
        return self.takes or _ALLOWED[self.parse]


def whole_number(least: int, most: int = _LONG_MAX) -> Callable[[str], int]:
    """A parser of whole numbers in plain decimal digits, as Java's ``Long.parseLong`` takes them."""

    def parse(text: str) -> int:
        if not _WHOLE_NUMBER.fullmatch(text) or not least <= int(text) <= most:
            raise ValueError(text)
        return int(text)

    return parse


def ratio(text: str) -> float:
    """A share above 0 and at most 1."""
    if not _DECIMAL.fullmatch(text) or not 0 < float(text) <= 1:
        raise ValueError(text)
    return float(text)


def number(text: str) -> float:
    """A number in plain decimal digits, 0 or more, below a thousand million."""
    if not _DECIMAL.fullmatch(text) or len(text) > _DECIMAL_LENGTH_MAX or float(text) >= _NUMBER_LIMIT:
        raise ValueError(text)
    return float(text)


def yes_or_no(text: str) -> bool:
    """``true`` or ``false``, in any case as Java writes them; anything else is an error, not ``false``."""
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def duration_ms(text: str) -> int:
    """An ISO-8601 duration in weeks, or in days, hours, minutes and seconds; months and years have no fixed length."""
    match = _DURATION.fullmatch(text)
    if match is None or not any(match.groups()):
        raise ValueError(text)
    return sum(int(number) * _MS_PER_UNIT[unit] for unit, number in match.groupdict().items() if number is not None)


@dataclass(frozen=True, slots=True)
class DurationWithin:
    """A parser of durations as :func:`duration_ms` reads them, neither shorter nor longer than these."""

    least_ms: int
    most_ms: int

    def __call__(self, text: str) -> int:
        """The duration in milliseconds. Raises ``ValueError``."""
        span_ms = duration_ms(text)
        if not self.least_ms <= span_ms <= self.most_ms:
            raise ValueError(text)
        return span_ms


DURATIONS = "an ISO-8601 duration in weeks, or days, hours, minutes and seconds (PT2H, P1DT12H)"
BYTES = "a whole number of bytes, at least 1, in digits alone (536870912)"
_ALLOWED: Mapping[Callable[[str], Any], str] = {
    duration_ms: DURATIONS,
    number: "a number in plain digits, below 1000000000 (0.05)",
    ratio: "a number above 0, at most 1",
    yes_or_no: "true or false",
}


def value_text(setting: Setting, value: Any) -> str:
    """A value as it would be set; empty where there is none."""
    if value is None:
        return ""
    if setting.parse is duration_ms or isinstance(setting.parse, DurationWithin):
        return _duration_text(value)
    if isinstance(value, tuple):
        return ", ".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _duration_text(span_ms: int) -> str:
    """``P7D``, ``PT90S``: in the largest unit that keeps it whole."""
    for unit, sign in (("days", "P{}D"), ("hours", "PT{}H"), ("minutes", "PT{}M")):
        if span_ms and span_ms % _MS_PER_UNIT[unit] == 0:
            return sign.format(span_ms // _MS_PER_UNIT[unit])
    return f"PT{span_ms // _MS_PER_UNIT['seconds']}S"
