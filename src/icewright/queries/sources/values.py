"""Values in queries as literals: numbers, dates and timestamps, each in one spelling."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Final

from icewright.model.queries.queries import Literal, LiteralKind

_DIGITS_MAX: Final = 60
_TIMESTAMP: Final = re.compile(
    r"(?P<date>[+-]?\d{4,6}-\d\d?-\d\d?)"
    r"(?:[ T](?P<hour>\d\d?):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d{1,12}))?)?)?"
    r"\s*(?P<zone>Z|UTC|GMT|[+-]\d\d:?\d\d)?\Z",
    re.IGNORECASE | re.ASCII,
)
_DATE: Final = re.compile(r"([+-]?\d{4,6})-(\d\d?)-(\d\d?)\Z", re.ASCII)


def number(text: str) -> Literal:
    """A number as digits."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        return Literal(LiteralKind.DROPPED)
    if not value.is_finite() or abs(value.adjusted()) > _DIGITS_MAX or len(value.as_tuple().digits) > _DIGITS_MAX:
        return Literal(LiteralKind.DROPPED)
    digits = format(value, "f")
    digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
    return Literal(LiteralKind.NUMBER, "0" if digits in {"-0", ""} else digits)


def date(text: str) -> Literal:
    """A date of ISO 8601; a string where it is none, which policies of literals treat with more care."""
    found = _DATE.match(text.strip())
    if found is None:
        return Literal(LiteralKind.STRING, text)
    year, month, day = found.groups()
    return Literal(LiteralKind.DATE, f"{year}-{int(month):02}-{int(day):02}")


def timestamp(text: str) -> Literal:
    """A timestamp of ISO 8601 with microseconds, with an offset where it has one.

    Dropped where it is finer than that, or has a zone by name. A string where it is none.
    """
    found = _TIMESTAMP.match(text.strip())
    if found is None:
        named_zone = _TIMESTAMP.match(text.strip().rpartition(" ")[0])
        return Literal(LiteralKind.STRING, text) if named_zone is None else Literal(LiteralKind.DROPPED)
    fraction = found["fraction"] or ""
    if fraction[6:].strip("0"):
        return Literal(LiteralKind.DROPPED)
    day = date(found["date"]).text
    time = f"{int(found['hour'] or 0):02}:{found['minute'] or '00'}:{found['second'] or '00'}.{fraction[:6]:0<6}"
    return Literal(LiteralKind.TIMESTAMP, f"{day}T{time}{_offset(found['zone'])}")


def _offset(zone: str | None) -> str:
    if not zone:
        return ""
    if zone[0] not in "+-":
        return "+00:00"
    digits = zone[1:].replace(":", "")
    return f"{zone[0]}{digits[:2]}:{digits[2:]}"
