"""Filters of queries, on rows and on the bounds of files.

All is compared by codes of one :class:`~icewright_spark.executors.sort.scale.Scale` for each column, whose marks are
all values of the sample and all bounds: their codes are odd, a literal between two marks has the even code between
them. So a literal is compared with rows and bounds exactly, whatever its type.

Rows are compared as in SQL: NULL satisfies nothing but IS NULL. NaN satisfies ``<>`` and NOT IN alone, as in IEEE 754,
Trino and Iceberg's evaluator; Spark, which holds NaN to be above all numbers, finds more rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_FLOOR, Context, Decimal, InvalidOperation
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icewright.model.queries.queries import Filter, Literal, LiteralKind, Operator
from icewright_spark.executors.merge.values import comparable
from icewright_spark.executors.sort.scale import Scale

Flags: TypeAlias = npt.NDArray[np.bool_]
Codes: TypeAlias = npt.NDArray[np.int64]
Path: TypeAlias = tuple[str, ...]
"""The names of a column, from the outermost struct inwards."""

IN_LITERALS_MAX: Final = 200
"""Iceberg's evaluator does not look at the bounds for an IN of more literals."""
NULL_CODE: Final = 1
"""Of :class:`Scale`, with NULL first. Values have codes above it, and below the scale's size."""
UNKNOWN_LOW: Final = 0
UNKNOWN_HIGH: Final = 1 << 62
"""Ends of a file that has no bound."""

_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - as Iceberg counts instants without a zone
_UNITS_PER_S: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_DAY_US: Final = 86_400_000_000
_MANY_DIGITS: Final = 45
"""No column has numbers of so many digits that are not floats: what is larger is above all of them."""
_INT64: Final = 1 << 63
_INT128: Final = 1 << 127
_UNANSWERABLE: Final = frozenset({LiteralKind.HASHED, LiteralKind.DROPPED})
_MOMENTS: Final = frozenset({LiteralKind.DATE, LiteralKind.TIMESTAMP, LiteralKind.STRING})
_NUMBERS: Final = frozenset({LiteralKind.NUMBER, LiteralKind.STRING})
_OF_NULLS: Final = frozenset({Operator.IS_NULL, Operator.NOT_NULL})
_NEGATIVE: Final = frozenset({Operator.NOT_EQ, Operator.NOT_IN})
_OF_SEVERAL: Final = frozenset({Operator.IN, Operator.NOT_IN})


@dataclass(frozen=True, slots=True)
class Condition:
    """A filter on one column: ranges of codes, ends included, ascending.

    Of NOT_EQ and NOT_IN the ranges are those that do *not* satisfy it. ``never`` is of a comparison with NULL.
    ``literals`` is how many different ones there are: several may lie between the same two marks, and have one range.
    """

    column: Path
    operator: Operator
    lows: Codes
    highs: Codes
    literals: int = 0
    never: bool = False


@dataclass(frozen=True, slots=True)
class RowCodes:
    """The values of a column, as codes. NaN has the code of its mark, and is flagged."""

    codes: Codes
    nan: Flags


@dataclass(frozen=True, slots=True)
class ColumnBounds:
    """What files say of one column: an entry for each file. Ends are codes.

    ``empty`` has nothing but NULL, or nothing but NaN; ``all_null`` nothing but NULL; ``may_have_null`` unless the
    file says that there is none.
    """

    lower: Codes
    upper: Codes
    empty: Flags
    all_null: Flags
    may_have_null: Flags


def rows_that_match(condition: Condition, rows: RowCodes) -> Flags:
    """Which rows satisfy the condition; where SQL says neither yes nor no, they do not."""
    valid = np.asarray(rows.codes != NULL_CODE, np.bool_)
    if condition.operator in _OF_NULLS:
        return valid if condition.operator is Operator.NOT_NULL else ~valid
    if condition.never:
        return np.zeros(len(valid), np.bool_)
    if len(condition.lows) == 1:
        within = (rows.codes >= condition.lows[0]) & (rows.codes <= condition.highs[0])
    else:
        within = np.isin(rows.codes, condition.lows)
    within &= valid & ~rows.nan
    return np.asarray(valid & ~within if condition.operator in _NEGATIVE else within, np.bool_)


def files_that_may_match(condition: Condition, bounds: ColumnBounds) -> Flags:
    """Which files may have a row that satisfies it: as Iceberg's ``InclusiveMetricsEvaluator`` decides."""
    if condition.operator in _OF_NULLS:
        return ~bounds.all_null if condition.operator is Operator.NOT_NULL else bounds.may_have_null
    if condition.never or condition.operator in _NEGATIVE:
        return np.full(len(bounds.lower), not condition.never)
    if condition.literals > IN_LITERALS_MAX:
        return ~bounds.empty
    first_not_below = np.searchsorted(condition.highs, bounds.lower, "left")
    first_above = np.searchsorted(condition.lows, bounds.upper, "right")
    return (first_not_below < first_above) & ~bounds.empty


def condition_of(item: Filter, column: Path, scale: Scale) -> Condition | None:
    """The filter as a condition on a column of this scale. None if it cannot be evaluated on rows and bounds.

    That is so of the operator OTHER, of hashed and dropped literals, and of a literal that is no value of the type.
    """
    operator, literals = item.operator, item.literals
    nothing = np.zeros(0, np.int64)
    if operator in _OF_NULLS:
        return Condition(column, operator, nothing, nothing)
    wrong_count = not literals or (len(literals) > 1 and operator not in _OF_SEVERAL)
    if operator is Operator.OTHER or wrong_count or any(literal.kind in _UNANSWERABLE for literal in literals):
        return None
    known = [literal for literal in literals if literal.kind is not LiteralKind.NULL]
    if not known or (operator is Operator.NOT_IN and len(known) < len(literals)):
        return Condition(column, operator, nothing, nothing, never=True)
    ranges = [_range(operator, literal, scale) for literal in known]
    found = sorted({item for item in ranges if item is not None})
    if None in ranges:
        return None
    lows, highs = (np.array(ends, np.int64) for ends in zip(*found, strict=True))
    return Condition(column, operator, lows, highs, len(set(known)))


def rows_of(values: Any, scale: Scale) -> RowCodes:
    """The codes of an Arrow array of the scale's type."""
    return RowCodes(scale.read(values), not_a_number(values))


def not_a_number(values: Any) -> Flags:
    """Which values of an Arrow array are NaN."""
    if not pa.types.is_floating(values.type):
        return np.zeros(len(values), np.bool_)
    return np.asarray(pc.is_nan(values).fill_null(False), np.bool_)


def _range(operator: Operator, literal: Literal, scale: Scale) -> tuple[int, int] | None:
    """The codes of values that satisfy the comparison, NaN apart; those that do not, if it is a negative one."""
    if operator is Operator.STARTS_WITH:
        return _with_prefix(literal, scale)
    code = _code(literal, scale)
    if code is None:
        return None
    first, last = NULL_CODE + 1, scale.size - 1
    ranges = {
        Operator.LT: (first, code - 1),
        Operator.LT_EQ: (first, code),
        Operator.GT: (code + 1, last),
        Operator.GT_EQ: (code, last),
    }
    return ranges.get(operator, (code, code))


def _with_prefix(literal: Literal, scale: Scale) -> tuple[int, int] | None:
    if not _is_text(scale.kind) or literal.kind is not LiteralKind.STRING:
        return None
    prefix = literal.text.encode()
    last = scale.size - 1
    if prefix:  # no byte of UTF-8 is 0xFF
        last = _code_of(prefix[:-1] + bytes([prefix[-1] + 1]), scale) - 1
    return _code_of(prefix, scale), last


def _code(literal: Literal, scale: Scale) -> int | None:
    """The code of a literal, be it a mark or not. None if it is no value of the column's type."""
    kind = scale.kind
    if _is_text(kind):
        return _code_of(literal.text.encode(), scale) if literal.kind is LiteralKind.STRING else None
    number = _number(literal, kind)
    if number is None:
        return None
    if pa.types.is_floating(kind):
        return _code_of(comparable(pa.array([float(number)], pa.float64()))[0].as_py(), scale)
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


_WIDE: Final = Context(prec=2 * _MANY_DIGITS)


def _number_code(number: Decimal, scale: Scale) -> int:
    """Of a number in the units of a column of integers: between two integers, its code is between those of both."""
    if number.adjusted() >= 2 * _MANY_DIGITS:
        number = Decimal(10**_MANY_DIGITS).copy_sign(number)
    whole = int(number.to_integral_value(ROUND_FLOOR, _WIDE))
    wide = pa.types.is_binary(scale.marks.type)
    limit = _INT128 if wide else _INT64
    if not -limit <= whole < limit:
        return scale.size - 1 if whole > 0 else NULL_CODE + 1
    code = _code_of((whole + _INT128).to_bytes(16, "big") if wide else whole, scale)
    return code + 1 if number != whole and code % 2 else code


def _code_of(value: Any, scale: Scale) -> int:
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
    except ValueError:
        return None
    if moment.tzinfo is not None:
        if not zoned:
            return None
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    micros = Decimal((moment - _EPOCH) // timedelta(microseconds=1))
    if pa.types.is_date32(kind):
        return micros / _DAY_US
    return micros / 10**6 * _UNITS_PER_S["ms" if pa.types.is_date64(kind) else kind.unit]


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


class Columns:
    """Columns by the names that queries have for them: case is ignored, and what is ambiguous is no column."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._by_name: dict[str, list[Path]] = {}
        for path in paths:
            self._by_name.setdefault(".".join(path).lower(), []).append(path)

    def find(self, name: str) -> Path | None:
        """The one column of this name. None if there is none, or several."""
        found = self._by_name.get(name.lower(), [])
        return found[0] if len(found) == 1 else None


def flat_columns(table: Any) -> Mapping[Path, Any]:
    """The columns of an Arrow table with those in structs, each as one array; NULL where a struct around it is."""
    found: dict[Path, Any] = {}
    pending: list[tuple[Path, Any]] = [
        ((name,), table.column(place).combine_chunks()) for place, name in enumerate(table.column_names)
    ]
    while pending:
        path, array = pending.pop(0)
        if pa.types.is_struct(array.type):
            names = [array.type.field(place).name for place in range(array.type.num_fields)]
            pending += [((*path, name), child) for name, child in zip(names, array.flatten(), strict=True)]
        else:
            found[path] = array
    return found
