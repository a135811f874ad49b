"""The fields of a layout as columns of what Spark reads from a table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import call_function, col, lit

from icewright.core.errors import Unsupported
from icewright.model.iceberg.column_types import children, spark_keeps
from icewright.model.iceberg.layouts import Curve, Layout
from icewright.model.iceberg.names import identifier
from icewright.model.iceberg.tables import Json, SortField
from icewright_spark.iceberg.java_api import first_line

_WITH_NUMBER: Final = re.compile(r"(bucket|truncate)\[(\d{1,9})\]", re.ASCII)
_FUNCTIONS: Final = {"year": "years", "month": "months", "day": "days", "hour": "hours"}


def numbered(rows: DataFrame) -> DataFrame:
    """The rows, with numbers for their columns' names: some have dots, and some differ by their case only."""
    return rows.toDF(*(column_name(position) for position in range(len(rows.columns))))


def column_name(position: int) -> str:
    """The name of a numbered column."""
    return f"c{position}"


def field_columns(fields: Sequence[Json], layout: Layout, catalog: str, rows: DataFrame) -> list[Column]:
    """The values of each field of a layout, its transform applied, over :func:`numbered` rows of a table.

    ``fields`` is the table's schema in the spec's JSON. Transforms are Iceberg's own functions, which Spark finds in
    the catalog. Raises :class:`Unsupported` for a field that is not there or has no order.
    """
    for field in layout.fields:
        if layout.curve is not Curve.SORT and field.transform != "identity":
            raise Unsupported(f"a curve takes columns as they are, not {field.transform} of one")
    return term_columns(fields, layout.fields, catalog, rows)


def term_columns(fields: Sequence[Json], terms: Sequence[SortField], catalog: str, rows: DataFrame) -> list[Column]:
    """As :func:`field_columns`, of any fields with their transforms; in which direction they go plays no part."""
    places = dict(_places(fields))
    found = []
    for field in terms:
        place = places.get(field.source_id)
        if place is None:
            raise Unsupported(f"rows are ordered by field {field.source_id}, which the table does not have")
        (position, *names), kind = place
        if not isinstance(kind, str) or kind == "variant" or not spark_keeps(kind):
            raise Unsupported(f"rows are ordered by field {field.source_id}, whose values have no order in Spark")
        column = col(column_name(int(position)))
        for name in names:
            column = column.getField(name)
        found.append(_transformed(column, field, kind, catalog))
    try:
        rows.select(*found)
    except AnalysisException as error:
        said = ", ".join(f"{field.transform} of field {field.source_id}" for field in terms)
        raise Unsupported(f"Spark cannot order rows by {said}: {first_line(error)}") from error
    return found


def _transformed(column: Column, field: SortField, kind: str, catalog: str) -> Column:
    if field.transform == "identity":
        return column
    system = f"{identifier(catalog)}.system"
    if field.transform in _FUNCTIONS:
        return call_function(f"{system}.{_FUNCTIONS[field.transform]}", column)
    sized = _WITH_NUMBER.fullmatch(field.transform)
    if sized is None or kind == "uuid":  # of which Spark only has the text, and that is hashed otherwise
        raise Unsupported(f"Spark cannot order by {field.transform} of field {field.source_id}, a {kind}")
    return call_function(f"{system}.{sized[1]}", lit(int(sized[2])), column)


def _places(fields: Sequence[Json]) -> Iterator[tuple[int, tuple[tuple[Any, ...], Any]]]:
    """By field id, where a column is, and its type: the number of the outermost column, then names inwards."""
    for position, field in enumerate(fields):
        yield from _below((position,), field)


def _below(place: tuple[Any, ...], field: Json) -> Iterator[tuple[int, tuple[tuple[Any, ...], Any]]]:
    kind = field["type"]
    yield int(field["id"]), (place, kind)
    if not isinstance(kind, str) and kind["type"] == "struct":
        for child in children(kind):
            yield from _below((*place, str(child["name"])), child)
