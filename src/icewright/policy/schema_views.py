"""Schemas, partition specs and sort orders in words, as SQL users write them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from icewright.model.iceberg.tables import Json, PartitionSpec, Schema, SortOrder, TableMetadata
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import Policy
from icewright.model.policy.setting_values import value_text
from icewright.plans.layouts import in_names, resolve
from icewright.policy.settings import LAYOUT_KEY, SETTINGS

SORT_ORDER_ORIGIN = "the table's sort order"


@dataclass(frozen=True, slots=True)
class ColumnView:
    """One top-level column; ``type`` is written as the spec writes it, nested types in angle brackets."""

    field_id: int
    name: str
    type: str
    required: bool
    doc: str | None


@dataclass(frozen=True, slots=True)
class LayoutView:
    """The layout that a table has, or that is asked for and cannot be had, with the reason.

    ``text`` is by the names of today, ``key`` by field ids, as snapshots say it. ``origin`` is a layer of the policy,
    or the table's sort order.
    """

    text: str
    origin: str
    key: str | None
    reason: Reason | None


def columns(schema: Schema) -> tuple[ColumnView, ...]:
    """The columns of a schema, in its order."""
    return tuple(
        ColumnView(field["id"], field["name"], type_text(field["type"]), bool(field["required"]), field.get("doc"))
        for field in schema.fields
    )


def type_text(found: Any) -> str:
    """A type of the spec's JSON in one line: ``list<struct<a: int, b: string>>``."""
    if not isinstance(found, Mapping):
        return str(found)
    match found["type"]:
        case "struct":
            return f"struct<{', '.join(_field_text(field) for field in found['fields'])}>"
        case "list":
            return f"list<{type_text(found['element'])}>"
        case "map":
            return f"map<{type_text(found['key'])}, {type_text(found['value'])}>"
        case other:
            return str(other)


def _field_text(field: Json) -> str:
    return f"{field['name']}: {type_text(field['type'])}"


def spec_text(metadata: TableMetadata, spec: PartitionSpec) -> str:
    """``month(time_hour), carrier``; empty where the table is unpartitioned."""
    names = _names(metadata)
    return ", ".join(_term(names, f.source_id, f.transform) for f in spec.fields if f.transform != "void")


def sort_order_text(metadata: TableMetadata, order: SortOrder) -> str:
    """``carrier asc nulls-first, bucket[4](id) desc nulls-last``; empty where there is no order."""
    names = _names(metadata)
    return ", ".join(f"{_term(names, f.source_id, f.transform)} {f.direction} {f.null_order}" for f in order.fields)


def layout_view(metadata: TableMetadata, policy: Policy) -> LayoutView | None:
    """The layout of a table; None where nobody asks for one."""
    found = resolve(metadata, policy)
    if found is None:
        return None
    origin = SORT_ORDER_ORIGIN if policy.layout is None else policy.origins[LAYOUT_KEY]
    if isinstance(found, Reason):
        asked = sort_order_text(metadata, metadata.sort_order) if policy.layout is None else str(policy.layout)
        return LayoutView(asked, origin, None, found)
    return LayoutView(in_names(metadata, found), origin, found.key, None)


def _term(names: Mapping[int, str], source_id: int, transform: str) -> str:
    name = names.get(source_id, f"field {source_id}")
    return name if transform == "identity" else f"{transform}({name})"


def _names(metadata: TableMetadata) -> dict[int, str]:
    """Names by field id, from all schemas: a spec may speak of a column that the current schema has dropped."""
    schemas = sorted(metadata.schemas, key=lambda schema: schema.schema_id == metadata.current_schema_id)
    return {field_id: name for schema in schemas for field_id, name in _fields(schema.fields, "")}


def _fields(fields: tuple[Json, ...], prefix: str) -> Iterator[tuple[int, str]]:
    for field in fields:
        name = f"{prefix}{field['name']}"
        yield field["id"], name
        kind = field["type"]
        if isinstance(kind, Mapping) and kind["type"] == "struct":
            yield from _fields(tuple(kind["fields"]), f"{name}.")


@dataclass(frozen=True, slots=True)
class SettingView:
    """One setting of the effective policy, and which rule won. ``value`` is empty where nothing is set."""

    key: str
    value: str
    origin: str


def setting_views(policy: Policy) -> tuple[SettingView, ...]:
    """All settings in effect."""
    return tuple(SettingView(s.key, value_text(s, getattr(policy, s.field)), policy.origins[s.key]) for s in SETTINGS)
