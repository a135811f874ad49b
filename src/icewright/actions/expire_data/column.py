"""The column by which data expires: found in the schema, and fit to say how old a row is; or why it is not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from icewright.actions.expire_data.age import INTEGERS, TYPES
from icewright.actions.expire_data.settings import DATA_FIELD_KEY, DATA_INTEGERS_KEY
from icewright.core import wording
from icewright.model.actions.expire_data import ExpireData, IntegerTime
from icewright.model.iceberg.column_types import all_fields
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import Policy


@dataclass(frozen=True, slots=True)
class DataColumn:
    """A column that says how old a row is. ``integers`` is what its numbers mean, None where it has none."""

    path: tuple[str, ...]
    field_id: int
    type_name: str
    integers: IntegerTime | None


def data_column(metadata: TableMetadata, policy: Policy) -> DataColumn | Reason:
    """The column that the owner names, or why no data expires by it."""
    wanted = policy.expire_data_field
    if wanted is None:
        return _nothing("expire-data-off", f"nobody says by which column data expires: set {DATA_FIELD_KEY}")
    if all(schema.schema_id != metadata.current_schema_id for schema in metadata.schemas):
        return _nothing("schema-missing", f"the metadata does not have its current schema {metadata.current_schema_id}")
    found = _find(metadata.schema.fields, wanted)
    if found is None:
        return _nothing("expire-data-column", f"the table has no column {wording.name(wanted)} ({DATA_FIELD_KEY})")
    path, field = found
    problem = _type_problem(wording.name(wanted), _types(metadata, int(field["id"])), policy.expire_data_integers)
    if problem is not None:
        return _nothing("expire-data-type", problem)
    kind = str(field["type"])
    return DataColumn(path, int(field["id"]), kind, policy.expire_data_integers if kind in INTEGERS else None)


def _type_problem(name: str, kinds: set[str], integers: IntegerTime | None) -> str | None:
    """Why a column that has had these types does not say how old a row is."""
    if not kinds <= TYPES:
        return f"{name} is of type {', '.join(sorted(wording.name(kind) for kind in kinds - TYPES))}, which is no time"
    if kinds <= INTEGERS:
        said = f"{name} is of integers, and {DATA_INTEGERS_KEY} does not say what they mean"
        return said if integers is None else None
    return f"{name} has been {' and '.join(sorted(kinds))}, and old values may be either" if len(kinds) > 1 else None


def column_moved(action: ExpireData, metadata: TableMetadata, policy: Policy) -> Reason | None:
    """Why data does not expire as planned any more: by another column, read in another way, or by none."""
    column = data_column(metadata, policy)
    if isinstance(column, Reason):
        return column
    planned = (action.field_id, action.integers, action.time_zone)
    if planned == (column.field_id, column.integers, policy.expire_data_time_zone):
        return None
    return _nothing("expire-data-changed", "the owner reads how old rows are in another way by now")


def _find(fields: Any, wanted: str) -> tuple[tuple[str, ...], Any] | None:
    """A column by its name, dots between those of structs; one whose own name has dots comes first."""
    for field in fields:
        if field["name"] == wanted:
            return (str(field["name"]),), field
    for field in fields:
        head, kind = f"{field['name']}.", field["type"]
        if wanted.startswith(head) and not isinstance(kind, str) and kind.get("type") == "struct":
            below = _find(kind["fields"], wanted[len(head) :])
            if below is not None:
                return (str(field["name"]), *below[0]), below[1]
    return None


def _types(metadata: TableMetadata, field_id: int) -> set[str]:
    """All types that a column has had, in any schema that is kept."""
    found = [
        field["type"]
        for schema in metadata.schemas
        for _, field in all_fields(schema.fields)
        if field["id"] == field_id
    ]
    return {kind if isinstance(kind, str) else str(kind.get("type")) for kind in found}


def _nothing(code: str, because: str) -> Reason:
    return Reason(code, f"nothing, because {because}")
