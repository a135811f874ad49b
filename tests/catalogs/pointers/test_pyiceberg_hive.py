"""What is particular to a Hive Metastore: what else lives in it, what it cannot say, and servers that are none."""

from __future__ import annotations

import socket
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hive_metastore.ttypes import FieldSchema, MetaException, SerDeInfo, StorageDescriptor
from hive_metastore.ttypes import Table as HiveTable
from pyiceberg.catalog.hive import HiveCatalog

from icewright.catalogs.pointers import hive_pointers
from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.core.errors import NotFound, Unavailable, Unreadable
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.names import TableName
from tests.cases import each_case
from tests.contracts.lakes import empty
from tests.lakes.sqlite import make_table, writer
from tests.servers.hive import HiveMetastore
from tests.servers.processes import HOST, free_port

EVENTS = TableName("lake", ("db",), "events")


@pytest.fixture
def entry(metastore: HiveMetastore, tmp_path: Path) -> CatalogEntry:
    found = CatalogEntry("lake", CatalogKind.HIVE, metastore.uri, str(tmp_path), {"hive.hive2-compatible": "true"})
    empty(writer(found))
    make_table(found)
    return found


def put(
    entry: CatalogEntry,
    name: str,
    parameters: dict[str, str] | None,
    kind: str = "EXTERNAL_TABLE",
    *,
    location: str | None = None,
    path: str | None = None,
) -> None:
    """Something else in the same database; ``path`` is where Spark says that its files are."""
    catalog = writer(entry)
    assert isinstance(catalog, HiveCatalog)
    columns = [FieldSchema("id", "int", None)]
    serde = SerDeInfo(parameters={} if path is None else {"path": path})
    storage = StorageDescriptor(columns, location, serdeInfo=serde, inputFormat="", outputFormat="")
    texts: dict[str, Any] = {"viewOriginalText": "select 1", "viewExpandedText": "select 1"} if "VIEW" in kind else {}
    table = HiveTable(name, "db", "me", 0, 0, sd=storage, parameters=parameters, tableType=kind, **texts)
    with catalog._client as client:
        client.create_table(table)


def test_tables_of_other_formats_and_views_are_passed_over(entry: CatalogEntry) -> None:
    put(entry, "of_hive", {"EXTERNAL": "TRUE"})
    put(entry, "without_parameters", None)
    put(entry, "a_view", {}, "VIRTUAL_VIEW")
    put(entry, "iceberg_view", {"table_type": "ICEBERG-VIEW", "metadata_location": "file:/v.json"}, "VIRTUAL_VIEW")
    catalog = PyIcebergCatalog(entry)
    assert list(catalog.tables()) == [EVENTS]
    for name in ("of_hive", "a_view", "iceberg_view"):
        with pytest.raises(NotFound, match="no Iceberg table"):
            catalog.load(replace(EVENTS, name=name))


def test_it_is_told_where_tables_of_other_formats_lie(entry: CatalogEntry, tmp_path: Path) -> None:
    for folder in ("x", "placeholder"):
        (tmp_path / folder).mkdir()
    put(entry, "backup", {"EXTERNAL": "TRUE"}, location=f"file:{tmp_path}/x")
    put(entry, "of_spark", {"EXTERNAL": "TRUE"}, location=f"file:{tmp_path}/placeholder", path=f"file:{tmp_path}/y")
    put(entry, "a_view", {}, "VIRTUAL_VIEW")
    assert PyIcebergCatalog(entry).pointers().others == {
        replace(EVENTS, name="backup"): [f"file:{tmp_path}/x"],
        replace(EVENTS, name="of_spark"): [f"file:{tmp_path}/placeholder", f"file:{tmp_path}/y"],
    }


def test_many_tables_are_asked_for_in_batches(entry: CatalogEntry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hive_pointers, "_TABLES_AT_ONCE", 2)
    for number in range(4):
        put(entry, f"t{number}", {"table_type": "iceberg", "metadata_location": "file:/m.json"})
    assert len(list(PyIcebergCatalog(entry).tables())) == 5


def test_a_table_without_its_pointer_concerns_itself_alone(entry: CatalogEntry) -> None:
    put(entry, "lost", {"table_type": "ICEBERG"})
    catalog = PyIcebergCatalog(entry)
    assert set(catalog.tables()) == {EVENTS, replace(EVENTS, name="lost")}
    with pytest.raises(Unreadable, match="does not say where"):
        catalog.load(replace(EVENTS, name="lost"))
    assert catalog.load(EVENTS).snapshots == ()


class Stumbling:
    """A metastore's client that cannot answer for one table, as of a SerDe that is not there."""

    def get_all_tables(self, _database: str) -> list[str]:
        return ["broken", "events", "other"]

    def get_table_objects_by_name(self, _database: str, names: list[str]) -> list[HiveTable]:
        if "broken" in names:
            raise MetaException("no such class")
        return [HiveTable(name, "db", parameters={"table_type": "ICEBERG"}) for name in names]


def test_one_table_that_the_metastore_stumbles_over_hides_no_other() -> None:
    pointers = hive_pointers.HivePointers(CatalogEntry("lake", CatalogKind.HIVE, "thrift://nowhere", ""))
    found = {name: table is not None for name, table in pointers._described_of(Stumbling(), "db").items()}
    assert found == {"broken": False, "events": True, "other": True}, "only what it stumbles over is not known"


@pytest.mark.parametrize(
    "name", [replace(EVENTS, name="Events"), replace(EVENTS, namespace=("DB",)), replace(EVENTS, namespace=("db", "x"))]
)
def test_a_table_has_one_name(entry: CatalogEntry, name: TableName) -> None:
    with pytest.raises(NotFound):
        PyIcebergCatalog(entry).metadata_location(name)


def test_the_next_server_is_asked_where_the_first_is_away(entry: CatalogEntry) -> None:
    both = replace(entry, uri=f"thrift://{HOST}:{free_port()},{entry.uri}")
    assert list(PyIcebergCatalog(both).tables()) == [EVENTS]


def test_whoever_asks_may_say_who_they_are(entry: CatalogEntry) -> None:
    named = replace(entry, properties={"ugi": "me:group"})
    assert list(PyIcebergCatalog(named).tables()) == [EVENTS]


@each_case(
    "answer",
    [
        b"",
        b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
        b"\x7f\xff\xff\xff" * 100,
        b"\x80\x01\x00\x02\x7f\xff\xff\xf0",
        b"\x80\x01\x00\x02\x00\x00\x00\x11get_all_databases\x00\x00\x00\x00\x0f\x00\x00\x0b\x7f\xff\xff\xff",
        None,
    ],
)
def test_a_server_that_is_none_is_away(answer: bytes | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """None: it takes connections and says nothing."""
    monkeypatch.setattr(hive_pointers, "ANSWER_TIMEOUT_MS", 300)
    with closing(socket.create_server((HOST, 0))) as listener:
        kept: list[socket.socket] = []

        def serve() -> None:
            client, _ = listener.accept()
            kept.append(client)
            if answer is not None:
                client.recv(1000)
                client.sendall(answer)
                client.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        port = listener.getsockname()[1]
        entry = CatalogEntry("lake", CatalogKind.HIVE, f"thrift://{HOST}:{port}", "")
        with pytest.raises(Unavailable) as caught:
            list(PyIcebergCatalog(entry).tables())
        assert not isinstance(caught.value, Unreadable)
        thread.join()
        for one in kept:
            one.close()


def test_nothing_is_asked_before_the_first_question() -> None:
    PyIcebergCatalog(CatalogEntry("lake", CatalogKind.HIVE, f"thrift://{HOST}:{free_port()}", ""))
    PyIcebergCatalog(CatalogEntry("lake", CatalogKind.REST, f"http://{HOST}:{free_port()}", ""))
