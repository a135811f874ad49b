"""The column by which data expires: found in the schema, and fit to say how old a row is; or why it is not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from icewright.actions.expire_data.age import INTEGERS, TYPES
from icewright.actions.expire_data.settings import DATA_FIELD_KEY, DATA_INTEGERS_KEY
from icewright.core import wording
from icewright.core.times import Instant
from icewright.model.actions.expire_data import ExpireData, IntegerTime
from icewright.model.iceberg.column_types import all_fields
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import Policy
from icewright.plans.branches import branch_obstacle
from icewright.plans.eligibility import manifests_obstacle


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
        return Reason("expire-data-off", f"no column is set by which data expires: set {DATA_FIELD_KEY}")
    if all(schema.schema_id != metadata.current_schema_id for schema in metadata.schemas):
        return Reason("schema-missing", f"the metadata does not have its current schema {metadata.current_schema_id}")
    found = _find(metadata.schema.fields, wanted)
    if found is None:
        return Reason("expire-data-column", f"the table has no column {wording.name(wanted)} ({DATA_FIELD_KEY})")
    path, field = found
    problem = _type_problem(wording.name(wanted), _types(metadata, int(field["id"])), policy.expire_data_integers)
    if problem is not None:
        return Reason("expire-data-type", problem)
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
    return Reason("expire-data-changed", "the policy now reads the age of rows in another way")


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


def expire_data_obstacle(action: ExpireData, metadata: TableMetadata, policy: Policy, now: Instant) -> Reason | None:
    """Of an expiry of data: its column is the one that it was planned by, too."""
    obstacle = manifests_obstacle(metadata, policy) or column_moved(action, metadata, policy)
    return obstacle or branch_obstacle(metadata, policy, now)
