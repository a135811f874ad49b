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
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icewright.model.queries.queries import Filter, Literal, LiteralKind, Operator
from icewright_spark.executors.sort.literals import code_of, code_of_value, is_text
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

_UNANSWERABLE: Final = frozenset({LiteralKind.HASHED, LiteralKind.DROPPED})
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
    code = code_of(literal, scale)
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
    if not is_text(scale.kind) or literal.kind is not LiteralKind.STRING:
        return None
    prefix = literal.text.encode()
    last = scale.size - 1
    if prefix:  # no byte of UTF-8 is 0xFF
        last = code_of_value(prefix[:-1] + bytes([prefix[-1] + 1]), scale) - 1
    return code_of_value(prefix, scale), last


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
