"""What people ask of the demo's flights: which files each query opens by the manifests, told as an engine tells it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import And, BooleanExpression, EqualTo, GreaterThanOrEqual, LessThan
from pyiceberg.table import Table

from icewright.demo.flights_writer import FLIGHTS
from icewright.demo.folder import DemoFolder
from icewright.model.iceberg.names import TableName
from icewright.model.queries.queries import (
    Filter,
    Literal,
    LiteralKind,
    Operator,
    QueryRecord,
    QuerySource,
    TableRead,
)

_COMPARISONS: Final = {
    Operator.EQ: (EqualTo, "="),
    Operator.GT_EQ: (GreaterThanOrEqual, ">="),
    Operator.LT: (LessThan, "<"),
}
_KINDS: Final = {str: LiteralKind.STRING, date: LiteralKind.DATE}
_FIRST_DAY: Final = date(2013, 1, 1)

Condition = tuple[str, Operator, str | date]


@dataclass(frozen=True, slots=True)
class Question:
    """A SELECT of some columns with all of the conditions."""

    user: str
    columns: tuple[str, ...]
    conditions: tuple[Condition, ...]

    @property
    def sql(self) -> str:
        """The question as an engine is asked it."""
        said = " AND ".join(f"{column} {_COMPARISONS[op][1]} {_shown(value)}" for column, op, value in self.conditions)
        return f"SELECT {', '.join(self.columns)} FROM {FLIGHTS} WHERE {said}"  # noqa: S608 - nothing runs it

    @property
    def filter(self) -> BooleanExpression:
        """The conditions for PyIceberg."""
        parts = [_COMPARISONS[op][0](column, value) for column, op, value in self.conditions]
        return parts[0] if len(parts) == 1 else And(*parts)


def _shown(value: str | date) -> str:
    return f"DATE '{value}'" if isinstance(value, date) else f"'{value}'"


def _between(first: int, days: int) -> tuple[Condition, Condition]:
    start = _FIRST_DAY + timedelta(days=first)
    return ("date", Operator.GT_EQ, start), ("date", Operator.LT, start + timedelta(days=days))


_PLANE: Final = ("date", "flight", "origin", "dest")
QUESTIONS: Final = (
    *(Question("mechanics", _PLANE, (("tailnum", Operator.EQ, plane),)) for plane in ("N14228", "N24211", "N619AA")),
    *(Question("airports", ("date", "arr_delay"), (("dest", Operator.EQ, place),)) for place in ("LAX", "BOS", "MIA")),
    *(Question("airlines", ("carrier", "dep_delay"), _between(first, days)) for first, days in ((0, 1), (9, 7))),
    *(
        Question("airports", ("date", "dep_delay"), (("origin", Operator.EQ, place), *_between(3, 14)))
        for place in ("JFK", "LGA")
    ),
)
"""Ten queries: of planes, of destinations, of days, and of airports in some days."""


@dataclass(frozen=True, slots=True)
class Opened:
    """How many files the questions open together, of how many that are ``there`` for each."""

    files: int
    there: int
    records: Sequence[QueryRecord]


def ask(folder: DemoFolder, round_of_questions: str) -> Opened:
    """Plan every question on the table as it is. No file is read: a manifest says which could have a row of it."""
    entry = folder.entry
    table = SqlCatalog(entry.name, **entry.pyiceberg_properties()).load_table(FLIGHTS)
    snapshot = table.current_snapshot()
    there = 0 if snapshot is None or snapshot.summary is None else int(snapshot.summary["total-data-files"] or 0)
    records = [
        _record(entry.name, table, there, question, f"{round_of_questions}-{number}")
        for number, question in enumerate(QUESTIONS)
    ]
    opened = sum(record.tables[0].files_read or 0 for record in records)
    return Opened(opened, there, records)


def _record(catalog: str, table: Table, there: int, question: Question, query_id: str) -> QueryRecord:
    began_s, started_at = time.monotonic(), time.time_ns() // 1_000_000
    tasks = list(table.scan(row_filter=question.filter, selected_fields=question.columns).plan_files())
    read = TableRead(
        TableName(catalog, *_parts(FLIGHTS)),
        columns=tuple(sorted({*question.columns, *(column for column, _, _ in question.conditions)})),
        filters=tuple(
            Filter(column, op, (Literal(_KINDS[type(value)], str(value)),)) for column, op, value in question.conditions
        ),
        snapshot_id=table.metadata.current_snapshot_id,
        files_read=len(tasks),
        files_skipped=there - len(tasks),
        bytes_planned=sum(task.file.file_size_in_bytes for task in tasks),
    )
    return QueryRecord(
        query_id,
        QuerySource.SQL,
        "the demo's readers",
        question.user,
        started_at,
        duration_ms=round(1000 * (time.monotonic() - began_s)),
        sql=question.sql,
        tables=(read,),
    )


def _parts(name: str) -> tuple[tuple[str, ...], str]:
    *namespace, table = name.split(".")
    return tuple(namespace), table
