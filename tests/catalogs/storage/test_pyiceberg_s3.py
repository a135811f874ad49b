"""Metadata on an object store: read as from a disk, and a store that hangs, refuses or is away holds nobody up."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from icewright.catalogs.local_spool import open_disk_spool
from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.catalogs.pointers.table_files import PyIcebergTableFiles
from icewright.core.errors import StorageUnavailable, Unreadable
from icewright.footprint.storage_views import storage_view
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.locations import Aliases
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.reachable_files import FileClass
from tests.lakes.sqlite import append, make_table, with_tables
from tests.narrowing import not_none
from tests.servers.processes import HOST, free_port
from tests.servers.refusing import refusing_server
from tests.servers.s3 import S3Server

NAME = TableName("lake", ("db",), "events")


@pytest.fixture
def entry(s3: S3Server, tmp_path: Path) -> CatalogEntry:
    warehouse = f"s3://{s3.new_bucket()}/wh"
    entry = CatalogEntry("lake", CatalogKind.SQL, f"sqlite:///{tmp_path}/lake.db", warehouse, s3.file_io)
    with_tables(entry)
    append(make_table(entry), range(10))
    return entry


def at(entry: CatalogEntry, endpoint: str, **properties: str) -> PyIcebergCatalog:
    """The same catalog, with its files sought elsewhere."""
    return PyIcebergCatalog(replace(entry, properties={**entry.properties, "s3.endpoint": endpoint, **properties}))


def test_metadata_manifests_and_times_are_read(entry: CatalogEntry) -> None:
    catalog = PyIcebergCatalog(entry)
    table = catalog.load(NAME)
    snapshot = not_none(table.current_snapshot)
    assert table.location.startswith("s3://")
    keys = catalog.manifests(table, snapshot)
    (summary,) = catalog.summarize(table, snapshot, keys)
    (file,) = catalog.data_files(table, snapshot, keys, frozenset(summary.partitions))
    assert file.path.startswith(table.location)
    assert file.record_count == 10
    first_at = not_none(catalog.first_written_at(table, snapshot))
    # An object's time has seconds, a commit's has milliseconds.
    assert first_at <= snapshot.committed_at + 1000


@pytest.fixture
def silent() -> Iterator[str]:
    """Accepts connections and says nothing."""
    with closing(socket.socket()) as listener:
        listener.bind((HOST, 0))
        listener.listen()
        yield f"http://{HOST}:{listener.getsockname()[1]}"


def test_a_store_that_hangs_is_given_up(entry: CatalogEntry, silent: str) -> None:
    with pytest.raises(StorageUnavailable):
        at(entry, silent, **{"s3.request-timeout": "1"}).load(NAME)


def test_nobody_waits_for_ever_for_a_store(entry: CatalogEntry) -> None:
    properties = entry.pyiceberg_properties()
    assert float(properties["s3.connect-timeout"]) <= 10
    assert float(properties["s3.request-timeout"]) <= 60


def test_a_store_that_is_away_is_told_from_one_that_refuses(entry: CatalogEntry) -> None:
    with pytest.raises(StorageUnavailable):
        at(entry, f"http://{HOST}:{free_port()}").load(NAME)
    with refusing_server() as address, pytest.raises(Unreadable):
        at(entry, address).load(NAME)


def test_all_files_are_found_and_a_store_that_goes_away_ends_it(entry: CatalogEntry) -> None:
    table = make_table(entry, ("db", "more"))
    for first in range(3):
        append(table, range(first, first + 2))
    log = table.refresh().metadata.metadata_log
    table.io.delete(log[0].metadata_file)
    name = TableName("lake", ("db",), "more")
    files = PyIcebergTableFiles(entry)
    metadata = files.roots(name).metadata

    view = storage_view(
        files, name, (), open_disk_spool, aliases=Aliases(), progress=lambda *_: None, now=lambda: metadata.updated_at
    )
    assert view.complete
    by_class = {share.file_class: share.live + share.by_history for share in view.classes}
    assert {one: amount.files for one, amount in by_class.items()} == {
        FileClass.DATA: 3,
        FileClass.MANIFEST: 3,
        FileClass.MANIFEST_LIST: 3,
        FileClass.METADATA: 1 + len(log),
    }
    # One that is gone is still named, and has no size.
    assert view.total.unsized == 1
    properties = {**entry.properties, "s3.endpoint": f"http://{HOST}:{free_port()}"}
    gone = PyIcebergTableFiles(replace(entry, properties=properties))
    with pytest.raises(StorageUnavailable):
        gone.manifests(metadata, metadata.snapshots[0].manifest_list)
    with pytest.raises(StorageUnavailable):
        gone.size_bytes(metadata, metadata.metadata_location)
