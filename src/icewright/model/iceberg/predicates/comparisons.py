"""Comparisons of a column with literals: the words that filters of queries and cuts of layouts are made of."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Operator(StrEnum):
    """How a filter compares a column; the names of Iceberg's expressions."""

    EQ = "eq"
    NOT_EQ = "not-eq"
    IN = "in"
    NOT_IN = "not-in"
    LT = "lt"
    LT_EQ = "lt-eq"
    GT = "gt"
    GT_EQ = "gt-eq"
    IS_NULL = "is-null"
    NOT_NULL = "not-null"
    STARTS_WITH = "starts-with"
    OTHER = "other"
    """A comparison that no bounds can answer: a function of the column, LIKE '%x', a comparison with another column."""


class LiteralKind(StrEnum):
    """What a literal is; how its text is read."""

    NULL = "null"
    BOOLEAN = "boolean"
    """``true`` or ``false``."""
    NUMBER = "number"
    """An integer or a decimal, as digits."""
    STRING = "string"
    DATE = "date"
    """ISO 8601."""
    TIMESTAMP = "timestamp"
    """ISO 8601 with microseconds; with an offset where the type has a zone."""
    HASHED = "hashed"
    """Only a digest is known, or kept."""
    DROPPED = "dropped"
    """No value is known, or kept. The text says what is known of it, such as ``date-3-days-ago`` or ``120 values``."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A value that a column is compared with."""

    kind: LiteralKind
    text: str = ""
