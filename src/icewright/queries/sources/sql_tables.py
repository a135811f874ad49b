"""Names of tables in SQL: what they stand for, and which snapshot is asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from sqlglot import exp

from icewright.core.errors import InvalidName
from icewright.model.iceberg.names import TableName
from icewright.queries.sources.predicates import Path
from icewright.queries.sources.sql_text import UnreadableSql

Schemas: TypeAlias = Mapping[TableName, tuple[str, ...]]
"""The columns of tables, as far as they are known; fields of structs are not among them."""

_CATALOG_PARTS: Final = 3
METADATA_TABLES: Final = frozenset(
    {
        *("all_data_files", "all_delete_files", "all_entries", "all_files", "all_manifests", "data_files", "refs"),
        *("delete_files", "entries", "files", "history", "manifests", "metadata_log_entries", "partitions"),
        *("position_deletes", "snapshots"),
    }
)
_SNAPSHOT_PART: Final = re.compile(r"snapshot_id_(\d{1,19})\Z")
_TIME_TRAVEL_PART: Final = re.compile(r"(?:snapshot_id|at_timestamp|branch|tag)_.+")
_VERSION_DIGITS_MAX: Final = 19


@dataclass(frozen=True, slots=True)
class Names:
    """What names without all their parts stand for, and what is known of tables."""

    catalog: str
    namespace: tuple[str, ...]
    folds_case: bool = False
    schemas: Schemas = field(default_factory=dict)


def table_of(parts: Path, version: exp.Expr | None, names: Names) -> tuple[TableName, int | None] | None:
    """The table of a name and the snapshot of it; None for tables of metadata. Raises :class:`UnreadableSql`."""
    if names.folds_case:
        parts = tuple(part.lower() for part in parts)
    snapshot_id = _snapshot_of(version)
    if len(parts) > _CATALOG_PARTS:
        found = _SNAPSHOT_PART.match(parts[-1])
        snapshot_id = int(found[1]) if found else snapshot_id
        parts = parts[:-1] if _TIME_TRAVEL_PART.match(parts[-1]) else parts
    is_metadata = "$" in parts[-1] or (len(parts) > _CATALOG_PARTS and parts[-1].lower() in METADATA_TABLES)
    if is_metadata or "information_schema" in parts[:-1]:
        return None
    if len(parts) < _CATALOG_PARTS:
        parts = (names.catalog, *(names.namespace if len(parts) == 1 else ()), *parts)
    try:
        return TableName(parts[0], parts[1:-1], parts[-1]), snapshot_id
    except InvalidName as error:
        raise UnreadableSql(f"it names a table that cannot be: {error.message}") from error


def _snapshot_of(version: exp.Expr | None) -> int | None:
    if not isinstance(version, exp.Version) or version.name.upper() not in {"VERSION", "SNAPSHOT"}:
        return None
    said = version.expression
    is_id = isinstance(said, exp.Literal) and said.name.isascii() and said.name.isdigit()
    return int(said.name) if is_id and len(said.name) <= _VERSION_DIGITS_MAX else None
