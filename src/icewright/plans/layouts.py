"""From what an owner wants, or else the table's sort order says, to a layout by field ids; or why there is none.

What cannot be used here is no problem of the policy: a rule may be for many tables, and a table whose column was
dropped is still merged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from itertools import islice
from typing import Any

from icewright.core import wording
from icewright.model.iceberg.column_types import is_orderable
from icewright.model.iceberg.layouts import Curve, Layout, LayoutColumn, LayoutExpression, order_text
from icewright.model.iceberg.names import quote_part
from icewright.model.iceberg.predicates.cuts import CutTree, fits_type
from icewright.model.iceberg.tables import Json, SortField, TableMetadata
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import Policy

_COLUMNS_SEARCHED_MAX = 2_000
_NAME_LENGTH_MAX = 100
_HINTS_MAX = 3
_DATES = r"date|timestamp|timestamptz|timestamp_ns|timestamptz_ns"
_MONOTONE = (
    (re.compile(r"identity"), re.compile(r".*", re.DOTALL)),
    (re.compile(r"truncate\[\d+\]", re.ASCII), re.compile(r"int|long|string|binary|decimal\(.*\)", re.DOTALL)),
    (re.compile(r"year|month|day"), re.compile(_DATES)),
    (re.compile(r"hour"), re.compile(_DATES.removeprefix("date|"))),
)
"""Transforms that keep the order of their source, and the types that each takes (spec, "Partition Transforms")."""


def resolve(metadata: TableMetadata, policy: Policy) -> Layout | Reason | None:
    """The layout of a table, a reason why what is asked for cannot be done, or None when nobody asks for one.

    ``sort_order_id`` is set only where the layout is the table's sort order, field by field: a file may then say
    that it is sorted by it.
    """
    if all(schema.schema_id != metadata.current_schema_id for schema in metadata.schemas):
        return Reason("schema-missing", f"the metadata does not have its current schema {metadata.current_schema_id}")
    if policy.layout is not None:
        return None if policy.layout.is_none else resolve_expression(metadata, policy.layout)
    return _own_sort_order(metadata) if metadata.sort_order.fields else None


def resolve_expression(metadata: TableMetadata, wanted: LayoutExpression) -> Layout | Reason:
    """A layout that names columns, by the fields that they are in the current schema."""
    if wanted.curve is Curve.CUTS and wanted.cuts is None:
        return _no_tree(wanted)
    fields: list[SortField] = []
    for place, column in enumerate(wanted.columns):
        found = _field(metadata.schema.fields, column.path)
        if found is None:
            return _missing(metadata, wanted, column)
        if not is_orderable(found["type"]):
            return _unorderable(f"the layout {_said(wanted)} names {_name(column.path)}", found["type"])
        if wanted.cuts is not None and not _are_values(wanted.cuts, place, found["type"]):
            return _other_type(wanted, column, found["type"])
        fields.append(SortField(int(found["id"]), "identity", column.direction, column.null_order))
    is_own = wanted.curve is Curve.SORT and tuple(fields) == metadata.sort_order.fields
    return Layout(wanted.curve, tuple(fields), metadata.sort_order.order_id if is_own else None, wanted.cuts)


def _no_tree(wanted: LayoutExpression) -> Reason:
    text = f"the layout {_said(wanted)} names a tree of cuts that icewright.layout.cuts does not have"
    return Reason("layout-cuts-missing", f"{text}: it is set to another one, or not at all", {"cuts": wanted.cuts_id})


def _are_values(tree: CutTree, place: int, kind: Any) -> bool:
    """Whether the literals of a column's cuts are values of its type."""
    return all(fits_type(cut.literal, kind) for cut in tree.cuts if cut is not None and cut.column == place)


def _other_type(wanted: LayoutExpression, column: LayoutColumn, kind: Any) -> Reason:
    said = kind if isinstance(kind, str) else str(kind["type"])
    text = f"the layout {_said(wanted)} cuts {_name(column.path)} by values of another type than {wording.name(said)}"
    figures = {"column": wording.cut(dotted(column.path)), "type": wording.cut(said)}
    return Reason("layout-cuts-type", f"{text}, which it has now", figures)


def paths_of(metadata: TableMetadata, layout: Layout) -> list[tuple[str, ...]]:
    """The columns of a layout by the names that they have now, from the outermost struct inwards."""
    known = {int(field["id"]): path for path, field in _columns(metadata.schema.fields)}
    return [known.get(field.source_id, (f"field {field.source_id}",)) for field in layout.fields]


def in_names(metadata: TableMetadata, layout: Layout) -> str:
    """``sort(day(ts), id desc)``: a layout by the names that its fields have now; ``cuts(ID) of ts, id``."""
    if layout.cuts is not None:
        return f"{layout.key} of {', '.join(map(dotted, paths_of(metadata, layout)))}"
    terms = []
    for path, field in zip(paths_of(metadata, layout), layout.fields, strict=True):
        name = dotted(path)
        term = name if field.transform == "identity" else f"{field.transform}({name})"
        terms.append(term + order_text(field.direction, field.null_order.replace("-", " ")))
    return f"{layout.curve}({', '.join(terms)})"


def _own_sort_order(metadata: TableMetadata) -> Layout | Reason:
    order = metadata.sort_order
    known = {int(field["id"]): (path, field["type"]) for path, field in _columns(metadata.schema.fields)}
    for field in order.fields:
        if field.source_id not in known:
            text = f"the table's sort order {order.order_id} is by field {field.source_id}, which no column is any more"
            return Reason("layout-column-missing", text, {"field_id": field.source_id})
        path, kind = known[field.source_id]
        if not is_orderable(kind):
            return _unorderable(f"the table's sort order {order.order_id} is by {_name(path)}", kind)
        if not _keeps_order(field.transform, kind):
            text = (
                f"the table's sort order {order.order_id} has {wording.name(field.transform)} of {_name(path)}, which "
                "does not keep the column's order, so files cannot be distinguished by it"
            )
            return Reason("layout-transform", text, {"transform": wording.cut(field.transform)})
    return Layout(Curve.SORT, order.fields, order.order_id)


def _keeps_order(transform: str, kind: str) -> bool:
    return any(known.fullmatch(transform) and kinds.fullmatch(kind) for known, kinds in _MONOTONE)


def _field(fields: Iterable[Json], path: tuple[str, ...]) -> Json | None:
    """The field at a path through structs; names are told apart by their case, as in the spec."""
    found = next((field for field in fields if field["name"] == path[0]), None)
    if found is None or len(path) == 1:
        return found
    return _field(_struct_fields(found["type"]), path[1:])


def _columns(fields: Iterable[Json], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Json]]:
    """All columns that a row has at most one value of: those in lists and maps are left out."""
    for field in fields:
        path = (*above, str(field["name"]))
        yield path, field
        yield from _columns(_struct_fields(field["type"]), path)


def _struct_fields(kind: Any) -> list[Json]:
    return list(kind["fields"]) if not isinstance(kind, str) and kind["type"] == "struct" else []


def _missing(metadata: TableMetadata, wanted: LayoutExpression, column: LayoutColumn) -> Reason:
    text = f"the layout {_said(wanted)} names {_name(column.path)}, which the table does not have"
    hints = _similar(metadata, column.path)
    text += f"; perhaps {' or '.join(hints)} is meant" if hints else ""
    return Reason("layout-column-missing", text, {"column": wording.cut(dotted(column.path))})


def _similar(metadata: TableMetadata, path: tuple[str, ...]) -> list[str]:
    """What may be meant: names that differ in case alone, else the closest ones."""
    asked = dotted(path)
    if len(asked) > _NAME_LENGTH_MAX:
        return []
    names = [dotted(known) for known, _ in islice(_columns(metadata.schema.fields), _COLUMNS_SEARCHED_MAX)]
    names = [name for name in names if len(name) <= _NAME_LENGTH_MAX]
    alike = [name for name in names if name.casefold() == asked.casefold()]
    return [wording.name(name) for name in alike or get_close_matches(asked, names, n=_HINTS_MAX)][:_HINTS_MAX]


def _unorderable(what: str, kind: Any) -> Reason:
    said = kind if isinstance(kind, str) else str(kind["type"])
    text = f"{what}, whose type {wording.name(said)} has no order"
    return Reason("layout-column-type", text, {"type": wording.cut(said)})


def _said(wanted: LayoutExpression) -> str:
    return wording.cut(str(wanted)) if str(wanted).isprintable() else wording.quoted(str(wanted))


def _name(path: tuple[str, ...]) -> str:
    return wording.name(dotted(path))


def dotted(path: tuple[str, ...]) -> str:
    """A column as its owner writes it: ``place.`zip code```."""
    return ".".join(quote_part(part) for part in path)
