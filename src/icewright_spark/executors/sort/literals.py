"""Literals of queries on the scale of a column: compared with its values exactly, whatever their types.

A literal is a value of the column's type, or none: a word for a column of numbers is none. Between two values of the
type, as 5.5 of integers, it has a code between theirs.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from decimal import ROUND_FLOOR, Context, Decimal, InvalidOperation
from typing import Any, Final

import pyarrow as pa

from icewright.model.iceberg.predicates.comparisons import Literal, LiteralKind, Operator
from icewright.model.iceberg.predicates.cuts import is_value
from icewright_spark.executors.merge.values import comparable
from icewright_spark.executors.sort.scale import Scale

_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - as Iceberg counts instants without a zone
_UNITS_PER_S: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY_US: Final = 86_400_000_000
_MANY_DIGITS: Final = 45
"""No column has numbers of so many digits that are not floats: what is larger is above all of them."""
_WIDE: Final = Context(prec=2 * _MANY_DIGITS)
_INT64: Final = 1 << 63
_INT128: Final = 1 << 127
_MOMENTS: Final = frozenset({LiteralKind.DATE, LiteralKind.TIMESTAMP, LiteralKind.STRING})
_LOWEST_CODE: Final = 2
"""Of a :class:`Scale` with NULL first, whose code is 1."""
_NUMBERS: Final = frozenset({LiteralKind.NUMBER, LiteralKind.STRING})


def code_of(literal: Literal, scale: Scale) -> int | None:
    """The code of a literal, be it a mark or not. None if it is no value of the column's type."""
    kind = scale.kind
    if is_text(kind):
        return code_of_value(literal.text.encode(), scale) if literal.kind is LiteralKind.STRING else None
    number = _number(literal, kind)
    if number is None:
        return None
    if pa.types.is_floating(kind):
        return code_of_value(comparable(pa.array([float(number)], pa.float64()))[0].as_py(), scale)
    return _number_code(number, scale)


def _number(literal: Literal, kind: Any) -> Decimal | None:
    """The literal in the units in which a column of this type is compared. None if it is no value of the type."""
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        is_counted = literal.kind is LiteralKind.NUMBER
        return _counted(literal, kind) if is_counted else _instant(literal, kind)
    if pa.types.is_boolean(kind):
        word = literal.text.lower() if literal.kind in (LiteralKind.BOOLEAN, LiteralKind.STRING) else ""
        return {"true": Decimal(1), "false": Decimal(0)}.get(word)
    if literal.kind not in _NUMBERS:
        return None
    try:
        number = Decimal(literal.text.strip())
    except InvalidOperation:
        return None
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal128(kind)
    if not number.is_finite() or not numeric:
        return None
    small = number.adjusted() < _MANY_DIGITS
    return number.scaleb(kind.scale, _WIDE) if pa.types.is_decimal128(kind) and small else number


def _number_code(number: Decimal, scale: Scale) -> int:
    """Of a number in the units of a column of integers: between two integers, its code is between those of both."""
    whole = _floor(number)
    mark = _mark(whole, wide=pa.types.is_binary(scale.marks.type))
    if mark is None:
        return scale.size - 1 if whole > 0 else _LOWEST_CODE
    code = code_of_value(mark, scale)
    return code + 1 if number != whole and code % 2 else code


def _floor(number: Decimal) -> int:
    if number.adjusted() >= 2 * _MANY_DIGITS:
        number = Decimal(10**_MANY_DIGITS).copy_sign(number)
    return int(number.to_integral_value(ROUND_FLOOR, _WIDE))


def _mark(whole: int, *, wide: bool) -> int | bytes | None:
    """A whole number as :func:`comparable` has it; None for one that no column has."""
    limit = _INT128 if wide else _INT64
    if not -limit <= whole < limit:
        return None
    return (whole + _INT128).to_bytes(16, "big") if wide else whole


def mark_of(literal: Literal, kind: Any) -> int | bytes | None:
    """The greatest value of a column of this type that is not above the literal, as :func:`comparable` has it.

    None if the literal is no value of the type, or is below or above all that a column of it can have.
    """
    if is_text(kind):
        return literal.text.encode() if literal.kind is LiteralKind.STRING else None
    number = _number(literal, kind)
    if number is None:
        return None
    if pa.types.is_floating(kind):
        found: int = comparable(pa.array([float(number)], pa.float64()))[0].as_py()
        return found
    return _mark(_floor(number), wide=pa.types.is_binary(comparable(pa.array([], kind)).type))


def as_cut(operator: Operator, literal: Literal, kind: Any) -> tuple[Operator, Literal] | None:
    """``< literal`` or ``<= literal`` as a cut of a column of this type has it: by a value of the type.

    None if that would be no value.
    """
    if is_text(kind):
        found = (operator, literal) if literal.kind is LiteralKind.STRING else None
    else:
        number = _number(literal, kind)
        found = None if number is None else _numeric_cut(operator, number, kind)
    return found if found is not None and is_value(found[1]) else None


def _numeric_cut(operator: Operator, number: Decimal, kind: Any) -> tuple[Operator, Literal] | None:
    if pa.types.is_floating(kind):
        value = float(number)
        return (operator, Literal(LiteralKind.NUMBER, repr(value))) if math.isfinite(value) else None
    whole = _floor(number)
    operator = operator if number == whole else Operator.LT_EQ
    if pa.types.is_boolean(kind):
        return operator, Literal(LiteralKind.BOOLEAN, "true" if whole else "false")
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return _moment_cut(operator, whole, kind)
    scale = kind.scale if pa.types.is_decimal128(kind) else 0
    return operator, Literal(LiteralKind.NUMBER, f"{Decimal(whole).scaleb(-scale, _WIDE):f}")


def _moment_cut(operator: Operator, whole: int, kind: Any) -> tuple[Operator, Literal] | None:
    per_day = 1 if pa.types.is_date32(kind) else 86_400 * _UNITS_PER_S["ms" if pa.types.is_date64(kind) else kind.unit]
    try:
        moment = _EPOCH + timedelta(microseconds=whole * _DAY_US // per_day)
    except OverflowError:
        return None
    if pa.types.is_date(kind):
        return operator, Literal(LiteralKind.DATE, moment.date().isoformat())
    zone = "+00:00" if kind.tz is not None else ""
    return operator, Literal(LiteralKind.TIMESTAMP, moment.isoformat() + zone)


def code_of_value(value: Any, scale: Scale) -> int:
    """The code of a value as :func:`comparable` has it."""
    return int(scale.codes(pa.array([value], scale.marks.type))[0])


def _counted(literal: Literal, kind: Any) -> Decimal | None:
    """A number that stands for a date or a timestamp, as Iceberg prints them in Spark's plans: days, microseconds.

    Nanoseconds for a column that has them. Engines compare such columns with no other numbers.
    """
    if not (pa.types.is_date32(kind) or (pa.types.is_timestamp(kind) and kind.unit in ("us", "ns"))):
        return None
    try:
        number = Decimal(literal.text.strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _instant(literal: Literal, kind: Any) -> Decimal | None:
    """Days of a date, units of a timestamp. A date, and a timestamp without offset, are UTC to a column with a zone."""
    if literal.kind not in _MOMENTS:
        return None
    zoned = pa.types.is_timestamp(kind) and kind.tz is not None
    try:
        moment = datetime.fromisoformat(literal.text.strip())
        if moment.tzinfo is not None:
            if not zoned:
                return None
            moment = moment.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None
    micros = Decimal((moment - _EPOCH) // timedelta(microseconds=1))
    if pa.types.is_date32(kind):
        return micros / _DAY_US
    return micros / 10**6 * _UNITS_PER_S["ms" if pa.types.is_date64(kind) else kind.unit]


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is that of strings."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
