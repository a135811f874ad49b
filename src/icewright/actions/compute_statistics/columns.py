"""Which columns get a sketch of their distinct values.

What queries join and filter by nobody tells icewright yet, so the choice is by what a table says of itself: columns
that its owner partitions or sorts by come first, then types that keys and dimensions have. Iceberg's own default, all
primitive columns, spends much of its work on measures and instants that no join asks about.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from icewright.actions.compute_statistics.settings import PLAIN_NAME
from icewright.core import wording
from icewright.model.actions.compute_statistics import COLUMNS_MAX, StatisticsColumn
from icewright.model.iceberg.tables import Json, Schema, TableMetadata
from icewright.model.plans.plans import Reason

DEFAULT_COLUMNS_MAX: Final = 32

_SKETCHED: Final = re.compile(
    r"boolean|int|long|float|double|date|time|timestamp|timestamptz|string|uuid|binary|decimal\(.*\)|fixed\[.*\]",
    re.ASCII,
)
_BY_DEFAULT: Final = re.compile(r"int|long|date|string|uuid|decimal\(.*\)", re.ASCII)
_WIDTHS: Final = {"boolean": 1, "int": 4, "float": 4, "date": 4, "uuid": 16, "string": 16, "binary": 64}
_WIDTH: Final = 8
_NESTED_WIDTH: Final = 64


@dataclass(frozen=True, slots=True)
class ChosenColumns:
    """The columns, and what is to be said of those that are left out."""

    columns: tuple[StatisticsColumn, ...]
    notes: tuple[Reason, ...] = ()


def wanted_columns(schema: Schema, names: Sequence[str]) -> ChosenColumns:
    """The columns that somebody names; those that cannot be sketched are left out, and said."""
    known = {column.name: column for column in _usable(schema.fields)}
    missing = [name for name in names if name not in known]
    notes = []
    if missing:
        text = f"no statistics of {_names(missing)}: no column of that name at the top level that could have them"
        notes.append(Reason("columns-missing", text, {"columns": len(missing)}))
    return ChosenColumns(tuple(known[name] for name in names if name in known)[:COLUMNS_MAX], tuple(notes))


def default_columns(metadata: TableMetadata, schema: Schema) -> ChosenColumns:
    """The columns that are chosen where nobody names any, the most promising first."""
    own = {field.source_id for spec in metadata.specs for field in spec.fields if field.transform != "void"}
    own |= {field.source_id for field in metadata.sort_order.fields}
    types = {int(field["id"]): field["type"] for field in schema.fields}
    usable = [each for each in _usable(schema.fields) if _BY_DEFAULT.fullmatch(types[each.field_id])]
    first = [each for each in _usable(schema.fields) if each.field_id in own]
    chosen = tuple(dict.fromkeys((*first, *usable)))
    left = [str(field["name"]) for field in schema.fields if int(field["id"]) not in {one.field_id for one in chosen}]
    notes = []
    if left:
        text = (
            f"no statistics of {_names(left)}: nested, without a plain name of its own, or of a type that is rarely "
            "joined by (floats, bytes, booleans, times, and instants that the table is not partitioned or sorted by)"
        )
        notes.append(Reason("columns-left-out", text, {"columns": len(left)}))
    if len(chosen) > DEFAULT_COLUMNS_MAX:
        over = [each.name for each in chosen[DEFAULT_COLUMNS_MAX:]]
        text = f"no statistics of {_names(over)}: {DEFAULT_COLUMNS_MAX} columns are chosen at most; name those you want"
        notes.append(Reason("columns-left-out", text, {"columns": len(over)}))
    return ChosenColumns(chosen[:DEFAULT_COLUMNS_MAX], tuple(notes))


def of_fields(schema: Schema, field_ids: Iterable[int]) -> tuple[StatisticsColumn, ...] | None:
    """The columns with these ids, None where one of them cannot be sketched by now."""
    known = {column.field_id: column for column in _usable(schema.fields)}
    wanted = sorted(field_ids)
    return tuple(known[one] for one in wanted) if all(one in known for one in wanted) else None


def share_of_bytes(schema: Schema, columns: Sequence[StatisticsColumn]) -> float:
    """About which share of a row's bytes some columns have, by the widths of their types alone."""
    widths = {int(field["id"]): _width(field["type"]) for field in schema.fields}
    whole = sum(widths.values())
    return sum(widths[column.field_id] for column in columns) / whole if whole else 0.0


def _usable(fields: Sequence[Json]) -> list[StatisticsColumn]:
    """The primitive columns of the top level that Spark, whatever case it minds, finds by a plain name of their own."""
    lowered = [str(field["name"]).lower() for field in fields]
    return [
        StatisticsColumn(int(field["id"]), str(field["name"]))
        for field in fields
        if isinstance(field["type"], str)
        and _SKETCHED.fullmatch(field["type"])
        and PLAIN_NAME.fullmatch(str(field["name"]))
        and lowered.count(str(field["name"]).lower()) == 1
    ]


def _width(kind: object) -> int:
    return _WIDTHS.get(kind, _WIDTH) if isinstance(kind, str) else _NESTED_WIDTH


def _names(names: Sequence[str]) -> str:
    return wording.shortened([wording.name(name) for name in names])
