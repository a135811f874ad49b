"""Catalogs of every kind for the contract of catalogs, each with a writer's hand to set the stage."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from pyiceberg.catalog import Catalog as WritersCatalog
from pyiceberg.catalog.hive import HiveCatalog
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.table import Table

from icewright.actions.expire_snapshots.iceberg import PyIcebergExpiry
from icewright.actions.rollback.iceberg import PyIcebergRollbacks
from icewright.actions.rollback.port import Rollbacks
from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.catalogs.pointers.properties import PyIcebergProperties
from icewright.catalogs.pointers.table_files import PyIcebergTableFiles
from icewright.catalogs.port import Catalog
from icewright.catalogs.properties_port import TableProperties
from icewright.catalogs.table_files_port import TableFiles
from icewright.core.system_clock import SystemClock
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.files import UNPARTITIONED, Partition
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import MAIN_BRANCH, PartitionField, RefKind
from icewright.ports.snapshot_expiry import SnapshotExpiry
from tests.doubles.catalog import MemoryCatalog
from tests.doubles.clock import ManualClock
from tests.doubles.expiry import MemoryExpiry
from tests.doubles.lake import MemoryFile
from tests.doubles.objects import MemoryStorage
from tests.doubles.rollback import MemoryRollbacks
from tests.doubles.table_files import MemoryTableFiles
from tests.lakes import sqlite
from tests.servers.hive import HiveMetastore
from tests.servers.postgres import PostgresServer
from tests.servers.relay import Relay
from tests.servers.rest import RestCatalogServer


class Lake(Protocol):
    """A catalog under test, and a writer's hand to set the stage."""

    @property
    def catalog(self) -> Catalog: ...
    @property
    def properties(self) -> TableProperties: ...
    @property
    def files(self) -> TableFiles: ...
    @property
    def expiry(self) -> SnapshotExpiry: ...
    @property
    def rollbacks(self) -> Rollbacks: ...
    def create(self, path: tuple[str, ...], *, by_city: bool = False, format_version: int = 2) -> None: ...
    def append(self, path: tuple[str, ...], cities: Sequence[str]) -> int:
        """One file for each of the different cities; as many rows as cities. The snapshot id."""

    def remove_city(self, path: tuple[str, ...], city: str) -> int:
        """Remove all files of a partition by city."""

    def stop_partitioning(self, path: tuple[str, ...]) -> None: ...
    def tag(self, path: tuple[str, ...], ref: str, snapshot_id: int, *, max_age_ms: int | None = None) -> None: ...
    def branch(self, path: tuple[str, ...], ref: str, snapshot_id: int) -> None: ...
    def drop_tag(self, path: tuple[str, ...], ref: str) -> None: ...
    def roll_back(self, path: tuple[str, ...], snapshot_id: int) -> None: ...
    def drop(self, path: tuple[str, ...]) -> None: ...
    def rename(self, path: tuple[str, ...], to: tuple[str, ...]) -> None: ...
    def damage(self, path: str) -> None: ...
    def go_away(self) -> None: ...


def named(path: tuple[str, ...]) -> TableName:
    return TableName("lake", path[:-1], path[-1])


class MemoryLake:
    def __init__(self) -> None:
        clock = ManualClock()
        self.storage = MemoryStorage(clock)
        self.catalog = self.properties = MemoryCatalog("lake", clock, self.storage)
        self.files = MemoryTableFiles(self.catalog)
        self.expiry = MemoryExpiry(self.catalog)
        self.rollbacks = MemoryRollbacks(self.catalog, ManualClock())
        self._numbers = count()

    def create(self, path: tuple[str, ...], *, by_city: bool = False, format_version: int = 2) -> None:
        fields = (PartitionField(2, 1000, "city", "identity"),) if by_city else ()
        self.catalog.create(named(path), partition_fields=fields, format_version=format_version)

    def append(self, path: tuple[str, ...], cities: Sequence[str]) -> int:
        metadata = self.catalog.load(named(path))
        spec = metadata.spec(metadata.default_spec_id)
        values = [UNPARTITIONED if spec.is_unpartitioned else json.dumps([c], ensure_ascii=False) for c in cities]
        files = [
            MemoryFile(
                f"file:///memory/f{next(self._numbers)}", Partition(spec.spec_id, value), 1000, values.count(value)
            )
            for value in dict.fromkeys(values)
        ]
        for file in files:
            self.storage.write(CanonicalPath(file.path), b"rows", size_bytes=file.size_bytes)
        return self.catalog.append(named(path), files).snapshot_id

    def remove_city(self, path: tuple[str, ...], city: str) -> int:
        paths = [f.path for f in self.catalog.live_files(named(path)) if f.partition.values == json.dumps([city])]
        return self.catalog.delete(named(path), paths).snapshot_id

    def stop_partitioning(self, path: tuple[str, ...]) -> None:
        self.catalog.set_spec(named(path), ())

    def tag(self, path: tuple[str, ...], ref: str, snapshot_id: int, *, max_age_ms: int | None = None) -> None:
        self.catalog.set_ref(named(path), ref, snapshot_id, kind=RefKind.TAG, max_ref_age_ms=max_age_ms)

    def branch(self, path: tuple[str, ...], ref: str, snapshot_id: int) -> None:
        self.catalog.set_ref(named(path), ref, snapshot_id)

    def drop_tag(self, path: tuple[str, ...], ref: str) -> None:
        self.catalog.drop_ref(named(path), ref)

    def roll_back(self, path: tuple[str, ...], snapshot_id: int) -> None:
        self.catalog.set_ref(named(path), MAIN_BRANCH, snapshot_id)

    def drop(self, path: tuple[str, ...]) -> None:
        self.catalog.drop(named(path))

    def rename(self, path: tuple[str, ...], to: tuple[str, ...]) -> None:
        self.catalog.rename(named(path), named(to))

    def damage(self, path: str) -> None:
        self.catalog.damage(path)

    def go_away(self) -> None:
        self.catalog.available = False


class PyIcebergLake:
    """Real metadata and real files, written by PyIceberg through the same kind of catalog."""

    def __init__(self, entry: CatalogEntry) -> None:
        self.entry = entry
        self.catalog: Catalog = PyIcebergCatalog(entry)
        self.properties: TableProperties = PyIcebergProperties(entry, SystemClock())
        self.files: TableFiles = PyIcebergTableFiles(entry)
        self.expiry: SnapshotExpiry = PyIcebergExpiry(entry, SystemClock())
        self.rollbacks: Rollbacks = PyIcebergRollbacks(entry, SystemClock())
        self._writer = sqlite.writer(entry)

    def _table(self, path: tuple[str, ...]) -> Table:
        return self._writer.load_table(path)

    def create(self, path: tuple[str, ...], *, by_city: bool = False, format_version: int = 2) -> None:
        spec = sqlite.BY_CITY if by_city else UNPARTITIONED_PARTITION_SPEC
        sqlite.make_table(self.entry, path, spec=spec, properties={"format-version": str(format_version)})

    def register(self, path: tuple[str, str], metadata_location: str) -> None:
        """Have a table in the catalog whose metadata lies there already."""
        self._writer.create_namespace_if_not_exists(path[:1])
        self._writer.register_table(path, metadata_location)

    def append(self, path: tuple[str, ...], cities: Sequence[str]) -> int:
        return sqlite.append(self._table(path), range(len(cities)), cities)

    def remove_city(self, path: tuple[str, ...], city: str) -> int:
        table = self._table(path)
        table.delete(f"city = '{city}'")
        return sqlite.current_snapshot_id(table)

    def stop_partitioning(self, path: tuple[str, ...]) -> None:
        with self._table(path).update_spec() as update:
            update.remove_field("city")

    def tag(self, path: tuple[str, ...], ref: str, snapshot_id: int, *, max_age_ms: int | None = None) -> None:
        self._table(path).manage_snapshots().create_tag(snapshot_id, ref, max_age_ms).commit()

    def branch(self, path: tuple[str, ...], ref: str, snapshot_id: int) -> None:
        self._table(path).manage_snapshots().create_branch(snapshot_id, ref).commit()

    def drop_tag(self, path: tuple[str, ...], ref: str) -> None:
        self._table(path).manage_snapshots().remove_tag(ref).commit()

    def roll_back(self, path: tuple[str, ...], snapshot_id: int) -> None:
        self._table(path).manage_snapshots().set_current_snapshot(snapshot_id).commit()

    def drop(self, path: tuple[str, ...]) -> None:
        self._writer.drop_table(path)

    def rename(self, path: tuple[str, ...], to: tuple[str, ...]) -> None:
        self._writer.rename_table(path, to)

    def damage(self, path: str) -> None:
        file = Path(urlsplit(path).path)
        file.write_bytes(file.read_bytes()[:-20])

    def go_away(self) -> None:
        sqlite.database(self.entry).unlink()


class RelayedLake(PyIcebergLake):
    """The catalog is on a server, to which the way can be cut."""

    def __init__(self, entry: CatalogEntry, port: int) -> None:
        self._relay = Relay(port)
        super().__init__(replace(entry, uri=entry.uri.replace(f":{port}", f":{self._relay.port}")))

    def go_away(self) -> None:
        self._relay.cut()


def postgresql_lake(server: PostgresServer, folder: Path) -> PyIcebergLake:
    """Over the server's own database, emptied: a new one takes hundreds of files."""
    # Engines of earlier lakes keep their connections until they are collected, and the server has so many.
    server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'postgres' AND pid <> pg_backend_pid()"
    )
    server.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    entry = CatalogEntry("lake", CatalogKind.SQL, server.url(), str(folder / "warehouse"))
    return RelayedLake(sqlite.with_tables(entry), server.port)


def rest_lake(server: RestCatalogServer) -> PyIcebergLake:
    server.forget()
    return RelayedLake(CatalogEntry("lake", CatalogKind.REST, server.uri, ""), server.port)


def hive_lake(server: HiveMetastore, folder: Path) -> PyIcebergLake:
    # Hive 2 does not know the type of timestamps with a zone.
    properties = {"hive.hive2-compatible": "true"}
    entry = CatalogEntry("lake", CatalogKind.HIVE, server.uri, str(folder), properties)
    empty(sqlite.writer(entry))
    return RelayedLake(entry, server.port)


def empty(metastore: WritersCatalog) -> None:
    """Drop what earlier tests left in a metastore that all tests share."""
    assert isinstance(metastore, HiveCatalog)
    with metastore._client as client:
        for database in client.get_all_databases():
            if database != "default":
                client.drop_database(database, deleteData=False, cascade=True)
