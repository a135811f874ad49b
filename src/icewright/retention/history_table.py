"""The history of tasks as an Iceberg table: rows, and where they end, in one commit that is asked for once.

The control plane commits rows here and nowhere else: they are its own, and a Spark for a few thousand of them a day
would be waste. PyIceberg writes the files and says what the commit is; its own commit is not used, since it tries again
on top of what others committed, which may be these very rows, and removes files after an answer that may be lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, RESTError, TableAlreadyExistsError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table, Transaction
from pyiceberg.table.update import AssertTableUUID
from pyiceberg.transforms import DayTransform
from pyiceberg.types import IcebergType, IntegerType, LongType, NestedField, StringType, TimestamptzType

from icewright.catalogs.metadata.translated_errors import asking, reading
from icewright.core.errors import Conflict, OutcomeUnknown, Unavailable, Unsupported
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName
from icewright.model.work.history import END_KEY, FIELDS_KEY, EndedTask, Ending

_INSTANTS: Final = frozenset({"created_at", "ended_at"})
_COLUMNS: Final[dict[str, tuple[IcebergType, pa.DataType]]] = {
    "task_id": (StringType(), pa.string()),
    "catalog": (StringType(), pa.string()),
    "table": (StringType(), pa.string()),
    "table_uuid": (StringType(), pa.string()),
    "kind": (StringType(), pa.string()),
    "state": (StringType(), pa.string()),
    "attempts": (IntegerType(), pa.int32()),
    "resource_group": (StringType(), pa.string()),
    "plan_id": (StringType(), pa.string()),
    "reason_code": (StringType(), pa.string()),
    "reason": (StringType(), pa.string()),
    "figures": (StringType(), pa.string()),
    "snapshot_id": (LongType(), pa.int64()),
    "created_at": (TimestamptzType(), pa.timestamp("us", tz="UTC")),
    "ended_at": (TimestamptzType(), pa.timestamp("us", tz="UTC")),
}
"""Ours, in their order. One that comes later goes to the end, and none changes its type."""
_OWN_POLICY: Final = {
    "icewright.mode": "auto",
    "icewright.expire-snapshots.enabled": "true",
    "history.expire.max-snapshot-age-ms": str(7 * 86_400_000),
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "50",
}
"""What it begins with, as any owner may say it of a table; its users may change all of it."""


@dataclass(frozen=True, slots=True)
class PyIcebergHistory:
    """The history in one table of one catalog, which is made when it is not there."""

    entry: CatalogEntry
    name: TableName

    def end(self) -> Ending | None:
        """See the port."""
        with self._asking():
            return _end(self._table(self._catalog()))

    def append(self, rows: Sequence[EndedTask], after: Ending | None) -> None:
        """See the port."""
        with self._asking():
            catalog = self._catalog()
            table = self._table(catalog)
            if _end(table) != after:  # before anything of it is changed: it may be somebody else's
                raise Conflict(f"{self.name} has another end now")
            table = self._with_columns(catalog, table)
            if _end(table) != after:
                raise Conflict(f"{self.name} has another end now")
            commit = Transaction(table)
            with reading(f"files of table {self.name}"):
                end = {END_KEY: str(rows[-1].ending)}
                commit.append(_batch(table, rows), snapshot_properties=end)
                commit.set_properties(end)
        self._commit(catalog, table, commit)

    def _commit(self, catalog: Catalog, table: Table, prepared: Transaction) -> None:
        """Ask once. That nobody committed since the table was read is part of what is asked."""
        requirements = (*prepared._requirements, AssertTableUUID(uuid=table.metadata.table_uuid))  # noqa: SLF001 - above
        try:
            catalog.commit_table(table, requirements, prepared._updates)  # noqa: SLF001 - the module's docstring says why
        except CommitFailedException as error:
            raise Conflict(f"another writer committed to {self.name}: {error}") from error
        except Exception as error:  # whatever it was, the commit may have been made
            raise OutcomeUnknown(f"it is unknown whether {self.name} has grown: {type(error).__name__}") from error

    def _catalog(self) -> Catalog:
        return load_catalog(self.entry.name, **self.entry.pyiceberg_properties())

    @property
    def _identifier(self) -> tuple[str, ...]:
        return (*self.name.namespace, self.name.name)

    def _table(self, catalog: Catalog) -> Table:
        try:
            return catalog.load_table(self._identifier)
        except NoSuchTableError:
            return self._made(catalog)

    def _made(self, catalog: Catalog) -> Table:
        schema = Schema(
            *(
                NestedField(number, name, kind, required=False)
                for number, (name, (kind, _)) in enumerate(_COLUMNS.items(), start=1)
            )
        )
        by_day = PartitionField(schema.find_field("ended_at").field_id, 1000, DayTransform(), "ended_day")
        ids = {FIELDS_KEY: json.dumps({field.name: field.field_id for field in schema.fields})}
        catalog.create_namespace_if_not_exists(self.name.namespace)
        try:
            return catalog.create_table(
                self._identifier, schema, partition_spec=PartitionSpec(by_day), properties={**_OWN_POLICY, **ids}
            )
        except TableAlreadyExistsError:  # another server was faster
            return catalog.load_table(self._identifier)

    def _with_columns(self, catalog: Catalog, table: Table) -> Table:
        """The table with a column for what a newer release says, and without one again that was dropped."""
        known = _ids(table)
        missing = [name for name in _COLUMNS if name not in known]
        if not missing:
            return table
        names = {field.name for field in table.schema().fields}
        with table.transaction() as change:
            with change.update_schema() as columns:
                for name in missing:
                    if name not in names:
                        columns.add_column(name, _COLUMNS[name][0])
            schema = change.table_metadata.schema()
            found = {**known, **{name: schema.find_field(name).field_id for name in missing}}
            change.set_properties({FIELDS_KEY: json.dumps(found)})
        return catalog.load_table(self._identifier)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            with asking(self.entry.name):
                yield
        except CommitFailedException as error:
            raise Conflict(f"another writer committed to {self.name}: {error}") from error
        except RESTError as error:
            raise Unavailable(f"catalog {self.entry.name} does not answer: {error}") from error


def _end(table: Table) -> Ending | None:
    said = table.properties.get(END_KEY)
    if said is None and table.current_snapshot() is not None:
        raise Unsupported(
            f"{'.'.join(table.name())} has rows and does not say where it ends",
            hint="it is not icewright's table; set history.table to another name",
        )
    return None if said is None else Ending.read(said)


def _ids(table: Table) -> dict[str, int]:
    said = table.properties.get(FIELDS_KEY)
    if said is None:
        return {}
    try:
        return {str(name): int(number) for name, number in json.loads(said).items()}
    except (ValueError, AttributeError, TypeError) as error:
        raise Unsupported(f"the property {FIELDS_KEY} of the history is not what icewright wrote") from error


def _writable(value: Any) -> Any:
    """Names of tables may have what UTF-8 cannot say: that is written out, or one such name would end the history."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _batch(table: Table, rows: Sequence[EndedTask]) -> pa.Table:
    """Rows under the names that the columns have by now; a column that its users dropped is left out."""
    ids, columns = _ids(table), {field.field_id: field.name for field in table.schema().fields}
    arrays: dict[str, pa.Array] = {}
    for name, (_, kind) in _COLUMNS.items():
        if ids.get(name) in columns:
            values: list[Any] = [_writable(getattr(row, name)) for row in rows]
            if name in _INSTANTS:
                values = [value * 1_000 for value in values]
            arrays[columns[ids[name]]] = (
                pa.array(values, pa.int64()).cast(kind) if name in _INSTANTS else pa.array(values, kind)
            )
    return pa.table(arrays)
