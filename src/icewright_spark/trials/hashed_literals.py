"""Hashed values of queries, found among those of the sample: equality on strings can be tried then as any other.

What is found stays in the conditions that are evaluated. Filters keep their digests, and so does all that is made from
them: keys of queries, cuts, and what is reported. A value that the sample does not have stays unknown; mostly it is of
few rows, so that what is tried is the less favorable part of the queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from icewright.model.queries.literal_digests import literal_digest
from icewright.model.queries.queries import Literal, LiteralKind, Operator
from icewright_spark.trials.predicates import Path
from icewright_spark.trials.table_sample import CodedColumn
from icewright_spark.trials.workload import Read

_EQUALITY: Final = frozenset({Operator.EQ, Operator.IN})


def with_values(columns: Mapping[Path, CodedColumn], reads: Iterable[Read], key: bytes) -> dict[Path, CodedColumn]:
    """The columns, with what is known of the digests that ``reads`` compare them with."""
    asked: dict[Path, set[str]] = {}
    for read in reads:
        for path, item in read.filters:
            if item.operator in _EQUALITY:
                hashed = (literal.text for literal in item.literals if literal.kind is LiteralKind.HASHED)
                asked.setdefault(path, set()).update(hashed)
    return {path: _with_values(column, asked.get(path, set()), key) for path, column in columns.items()}


def _with_values(column: CodedColumn, asked: set[str], key: bytes) -> CodedColumn:
    kind = column.values.type
    if not asked or not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return column
    found = {}
    for text in pc.unique(column.values.drop_null()).to_pylist():
        digest = literal_digest(key, text)
        if digest in asked:
            found[digest] = Literal(LiteralKind.STRING, text)
    return replace(column, hashed=found)
