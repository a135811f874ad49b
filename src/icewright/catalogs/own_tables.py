"""Iceberg tables that are icewright's own: rows, and where they end, in one commit that is asked for once.

The control plane commits rows to its own tables and to no others: a Spark for a few thousand rows would be waste.
PyIceberg writes the files and says what the commit is; its own commit is not used, since it tries again on top of what
others committed, which may be these very rows, and removes files after an answer that may be lost.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, RESTError, TableAlreadyExistsError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table, Transaction
from pyiceberg.table.update import AssertTableUUID
from pyiceberg.transforms import DayTransform
from pyiceberg.types import BooleanType, IcebergType, IntegerType, LongType, NestedField, StringType, TimestamptzType

from icewright.catalogs.metadata.translated_errors import asking, reading
from icewright.core.errors import Conflict, OutcomeUnknown, Unavailable, Unsupported
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName

Column: TypeAlias = tuple[IcebergType, pa.DataType]
TEXT: Final[Column] = (StringType(), pa.string())
INTEGER: Final[Column] = (IntegerType(), pa.int32())
LONG: Final[Column] = (LongType(), pa.int64())
BOOLEAN: Final[Column] = (BooleanType(), pa.bool_())
INSTANT: Final[Column] = (TimestamptzType(), pa.timestamp("us", tz="UTC"))
"""Values are milliseconds since the epoch."""

_OWN_POLICY: Final = {
    "icewright.mode": "auto",
    "icewright.expire-snapshots.enabled": "true",
    "history.expire.max-snapshot-age-ms": str(7 * 86_400_000),
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "50",
}
"""What it begins with, as any owner may say it of a table; its users may change all of it."""


@dataclass(frozen=True, slots=True)
class OwnTable:
    """A table of one catalog, which is made when it is not there, partitioned by the day of the column ``by_day``.

    ``columns`` are ours, in their order: one that comes later goes to the end, and none changes its type.
    ``fields_key`` is the property in which the table says which of its columns is which of ours, by ids: names may be
    changed. ``marker`` is a property without which a table with rows is somebody else's. ``setting`` is what names the
    table in the configuration.
    """

    entry: CatalogEntry
    name: TableName
    columns: Mapping[str, Column]
    by_day: str
    fields_key: str
    marker: str
    setting: str

    def end(self, key: str) -> str | None:
        """Where the table says that rows end, in its property ``key``; None where it has none of them.

        Raises :class:`Unsupported` for a table that is not icewright's, and ``Unavailable``.
        """
        with self._asking():
            return self._end(self._table(self._catalog()), key)

    def append(self, rows: Sequence[Mapping[str, Any]], key: str, after: str | None, end: str) -> None:
        """Append rows, values by our columns, and say that they end at ``end``.

        Only where they ended at ``after`` before. Raises :class:`Conflict` where they did not, or somebody else
        committed; :class:`OutcomeUnknown` where it is not known whether the table has grown.
        """
        with self._asking():
            catalog = self._catalog()
            table = self._table(catalog)
            if self._end(table, key) != after:  # before anything of it is changed: it may be somebody else's
                raise Conflict(f"{self.name} has another end now")
            table = self._with_columns(catalog, table)
            if self._end(table, key) != after:
                raise Conflict(f"{self.name} has another end now")
            commit = Transaction(table)
            with reading(f"files of table {self.name}"):
                commit.append(self._batch(table, rows), snapshot_properties={key: end})
                commit.set_properties({key: end})
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
                for number, (name, (kind, _)) in enumerate(self.columns.items(), start=1)
            )
        )
        by_day = PartitionField(schema.find_field(self.by_day).field_id, 1000, DayTransform(), self._day)
        ids = {self.fields_key: json.dumps({field.name: field.field_id for field in schema.fields})}
        catalog.create_namespace_if_not_exists(self.name.namespace)
        try:
            return catalog.create_table(
                self._identifier, schema, partition_spec=PartitionSpec(by_day), properties={**_OWN_POLICY, **ids}
            )
        except TableAlreadyExistsError:  # another server was faster
            return catalog.load_table(self._identifier)

    def _with_columns(self, catalog: Catalog, table: Table) -> Table:
        """The table with a column for what a newer release says, and without one again that was dropped."""
        known = self._ids(table)
        missing = [name for name in self.columns if name not in known]
        if not missing:
            return table
        names = {field.name for field in table.schema().fields}
        with table.transaction() as change:
            with change.update_schema() as columns:
                for name in missing:
                    if name not in names:
                        columns.add_column(name, self.columns[name][0])
            schema = change.table_metadata.schema()
            found = {**known, **{name: schema.find_field(name).field_id for name in missing}}
            change.set_properties({self.fields_key: json.dumps(found)})
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

    @property
    def _day(self) -> str:
        """The partition's name: ``ended_day`` of ``ended_at``."""
        return f"{self.by_day.removesuffix('_at')}_day"

    def _end(self, table: Table, key: str) -> str | None:
        if self.marker not in table.properties and table.current_snapshot() is not None:
            raise Unsupported(
                f"{'.'.join(table.name())} has rows and does not say where it ends",
                hint=f"it is not icewright's table; set {self.setting} to another name",
            )
        return table.properties.get(key)

    def _ids(self, table: Table) -> dict[str, int]:
        said = table.properties.get(self.fields_key)
        if said is None:
            return {}
        try:
            return {str(name): int(number) for name, number in json.loads(said).items()}
        except (ValueError, AttributeError, TypeError) as error:
            raise Unsupported(f"the property {self.fields_key} of {self.name} is not what icewright wrote") from error

    def _batch(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
        """Rows under the names that the columns have by now; a column that its users dropped is left out."""
        ids, columns = self._ids(table), {field.field_id: field.name for field in table.schema().fields}
        arrays: dict[str, pa.Array] = {}
        for name, column in self.columns.items():
            if ids.get(name) in columns:
                values: list[Any] = [_writable(row[name]) for row in rows]
                if column is INSTANT:
                    micros = [None if value is None else value * 1_000 for value in values]
                    array = pa.array(micros, pa.int64()).cast(column[1])
                else:
                    array = pa.array(values, column[1])
                arrays[columns[ids[name]]] = array
        return pa.table(arrays)


def _writable(value: Any) -> Any:
    """Names of tables may have what UTF-8 cannot say: that is written out, or one such name would be the last row."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
