"""Little Iceberg lakes, on SQLite if not said otherwise: real catalogs, metadata and Parquet files, by PyIceberg.

The writers here know nothing of icewright, as the writers of its users do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortOrder
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.sql_urls import SqliteFile
from tests.narrowing import of_type

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "city", StringType(), required=False),
)
"""Two columns; ``city`` is what partitioned tables are partitioned by."""

BY_CITY = PartitionSpec(PartitionField(source_id=2, field_id=1000, transform=IdentityTransform(), name="city"))

ARROW_SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("city", pa.string())])


def make_lake(folder: Path, name: str = "lake") -> CatalogEntry:
    """An empty catalog ``name`` in ``folder``, with its warehouse beside it."""
    return with_tables(CatalogEntry(name, CatalogKind.SQL, f"sqlite:///{folder}/{name}.db", str(folder / "warehouse")))


def with_tables(entry: CatalogEntry) -> CatalogEntry:
    """A SQL catalog whose database has the tables of one."""
    SqlCatalog(entry.name, **entry.pyiceberg_properties()).create_tables()
    return entry


def database(entry: CatalogEntry) -> Path:
    """The file of the catalog."""
    return Path(of_type(SqliteFile, entry.sql_database).path)


def writer(entry: CatalogEntry) -> Catalog:
    """PyIceberg's own catalog over the same lake, for writing."""
    return load_catalog(entry.name, **entry.pyiceberg_properties())


def make_table(
    entry: CatalogEntry,
    path: tuple[str, ...] = ("db", "events"),
    *,
    schema: Schema = SCHEMA,
    spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
    sort_order: SortOrder = UNSORTED_SORT_ORDER,
    properties: dict[str, str] | None = None,
) -> Table:
    """A new empty table; its namespace is created when it is not there. v2 unless the properties say otherwise."""
    catalog = writer(entry)
    for depth in range(1, len(path)):
        catalog.create_namespace_if_not_exists(path[:depth])
    return catalog.create_table(path, schema, partition_spec=spec, sort_order=sort_order, properties=properties or {})


def table_name(table: Table) -> TableName:
    """The name under which icewright knows a table."""
    *namespace, name = table.name()
    return TableName(table.catalog.name, tuple(namespace), name)


def entry_of(table: Table) -> CatalogEntry:
    """The lake that a table lies in."""
    properties = table.catalog.properties
    return CatalogEntry(table.catalog.name, CatalogKind.SQL, properties["uri"], properties["warehouse"])


def rows(ids: Iterable[int], cities: Sequence[str] = ("Bonn",)) -> pa.Table:
    """Rows of :data:`SCHEMA`: the ids, with the cities in turn."""
    numbers = list(ids)
    places = [cities[position % len(cities)] for position in range(len(numbers))]
    return pa.table({"id": numbers, "city": places}, schema=ARROW_SCHEMA)


def append(table: Table, ids: Iterable[int], cities: Sequence[str] = ("Bonn",)) -> int:
    """One commit with one file per city; its snapshot id."""
    table.append(rows(ids, cities))
    return current_snapshot_id(table)


def current_snapshot_id(table: Table) -> int:
    """The snapshot that readers see, freshly loaded."""
    snapshot = table.refresh().current_snapshot()
    if snapshot is None:
        raise ValueError("the table has no snapshot")
    return snapshot.snapshot_id


def files_of(table: Table) -> set[str]:
    """Every file that any snapshot of a table needs."""
    paths = {table.metadata_location}
    for snapshot in table.metadata.snapshots:
        paths.add(snapshot.manifest_list)
        for manifest in snapshot.manifests(table.io):
            paths.add(manifest.manifest_path)
            paths |= {entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io)}
    return paths
