"""What else names a file: other formats around a place, links, manifests alone, tables that a catalog does not show."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hive_metastore.ttypes import Table as HiveTable

from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.catalogs.pointers.hive_pointers import HivePointers
from icewright.catalogs.pointers.sql_pointers import SqlPointers
from icewright.core.errors import Unreadable
from icewright.model.actions.deletion import IntentState
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.names import TableName
from tests.actions.remove_files.test_expired_files_adapter import expired, overwritten
from tests.adversary.test_files_of_others import Lake, findings, only_a_tag_needs, tagged_rows
from tests.catalogs.pointers.test_pyiceberg_hive import Stumbling
from tests.catalogs.pointers.test_pyiceberg_rest import Stub
from tests.lakes.house import House, all_there, files, location
from tests.lakes.sqlite import append, database, make_table, table_name, with_tables, writer


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


@pytest.fixture
def stub() -> Iterator[Stub]:
    found = Stub()
    yield found
    found.server.shutdown()
    found.server.server_close()


def moved(lake: Lake) -> list[str]:
    """Files that were moved or purged."""
    return [name for name, state in lake.states().items() if state is not IntentState.SKIPPED]


def test_f8_a_file_that_another_table_reaches_by_a_link_stays(lake: Lake) -> None:
    """Not a link of a folder: of one file, in that table's own place."""
    (imported,) = lake.foreign("imported.parquet")
    link = location(lake.b) / "data" / "link.parquet"
    link.symlink_to(imported)
    lake.b.refresh().add_files([f"file://{link}"])
    lake.days(8)
    assert imported.exists()
    assert moved(lake) == []


def test_f8_a_manifest_that_is_all_that_another_table_has_here_stays(lake: Lake) -> None:
    """Its metadata lay here once: of that one manifest is left, whose files, list and log are elsewhere."""
    here = location(lake.a) / "data" / "kept"
    here.mkdir()
    c = make_table(
        lake.house.entry,
        ("other", "c"),
        properties={
            "icewright.mode": "observe",
            "write.metadata.path": f"file://{here}",
            "write.metadata.previous-versions-max": "1",
        },
    )
    append(c, range(5))
    first = c.refresh().current_snapshot()
    assert first is not None
    with c.transaction() as change:
        change.remove_properties("write.metadata.path")
    append(c, range(5))
    append(c, range(5))
    c.refresh().maintenance.expire_snapshots().by_id(first.snapshot_id).commit()
    append(c, range(5))
    for path in (*here.glob("*.metadata.json"), *here.glob("snap-*")):
        path.unlink()  # as engines delete them
    (manifest,) = here.iterdir()
    lake.days(10)
    assert manifest.exists()
    assert c.refresh().scan().to_arrow().num_rows == 20
    assert moved(lake) == []


SPARKS = "part-00000-2dd664f9-d2c4-4ffe-878f-c6c70c1fb0cb-c000.snappy.parquet"


@pytest.mark.parametrize("mark", ["_delta_log/0.json", ".hoodie/hoodie.properties", "schema/schema-0"])
def test_f9_files_of_a_table_of_another_format_around_the_place_stay(lake: Lake, mark: str) -> None:
    """The owner of a table keeps it in a folder of somebody's table, such as that of one of its partitions."""
    log = location(lake.a).parent / mark
    log.parent.mkdir()
    log.write_text("{}")
    (theirs,) = lake.foreign(SPARKS)
    lake.days(8)
    assert theirs.exists()
    assert moved(lake) == []
    assert findings(lake) == {"other-table-format"}


def test_f9_files_of_an_iceberg_table_of_nobody_around_the_place_stay(lake: Lake, tmp_path: Path) -> None:
    elsewhere = with_tables(replace(lake.house.entry, name="elsewhere", uri=f"sqlite:///{tmp_path}/elsewhere.db"))
    catalog = writer(elsewhere)
    catalog.create_namespace("db")
    around = catalog.create_table(("db", "around"), lake.b.schema(), location=f"file://{location(lake.a).parent}")
    (theirs,) = lake.foreign(SPARKS)
    around.add_files([f"file://{theirs}"])
    lake.days(8)
    assert theirs.exists()
    assert moved(lake) == []
    assert all_there(around)


def test_f9_what_expired_stays_where_a_table_of_another_format_has_the_same_files(tmp_path: Path) -> None:
    house = House(tmp_path)
    table = overwritten(house)
    log = location(table) / "_delta_log"
    log.mkdir()
    (log / f"{0:020d}.json").write_text("{}")
    house.days(0.25)
    before = files(location(table))
    expired(house, table)
    house.days(2)
    for waiting in house.control.tables.waiting(limit=10):
        house.control.dispatcher.approve(waiting.plan_id, "Ada")
    house.days(2)
    assert before.keys() - files(location(table)).keys() == set()


def test_f10_files_of_a_catalog_of_another_name_in_the_same_database_stay(lake: Lake) -> None:
    """PyIceberg's clients make a catalog of each name that they give theirs: nobody has configured this one."""
    imported = lake.foreign("imported.parquet")
    only_a_tag_needs(lake, lake.b, imported)
    rename(lake, "lake", "theirs")
    lake.days(10)
    assert imported[0].exists()
    assert moved(lake) == []
    assert "lake:theirs" in lake.house.look(table_name(lake.a)).reason.text
    rename(lake, "theirs", "lake")
    assert tagged_rows(lake.b) == 15


def test_f10_a_catalog_that_is_configured_answers_for_itself(lake: Lake) -> None:
    rename(lake, "lake", "theirs")
    theirs = replace(lake.house.entry, name="theirs")
    catalogs = [PyIcebergCatalog(one, (lake.house.entry, theirs)) for one in (lake.house.entry, theirs)]
    assert [{str(name) for name in one.pointers().tables} for one in catalogs] == [{"lake.db.a"}, {"theirs.other.b"}]


def rename(lake: Lake, name: str, other: str) -> None:
    with sqlite3.connect(database(lake.house.entry)) as connection:
        connection.execute(
            "UPDATE iceberg_tables SET catalog_name = ? WHERE catalog_name = ? AND table_namespace = 'other'",
            (other, name),
        )


def test_f10_a_table_without_a_usable_name_stops_removals(lake: Lake) -> None:
    """Nobody can ask what it needs."""
    imported = lake.foreign("imported.parquet")
    only_a_tag_needs(lake, lake.b, imported)
    with sqlite3.connect(database(lake.house.entry)) as connection:
        connection.execute("UPDATE iceberg_tables SET table_name = '' WHERE table_namespace = 'other'")
    lake.days(10)
    assert imported[0].exists()
    assert moved(lake) == []
    assert "usable name" in lake.house.look(table_name(lake.a)).reason.text
    assert list(PyIcebergCatalog(lake.house.entry).tables()) == [table_name(lake.a)], "the others are looked at"


def answering(stub: Stub, tables: object, below: object = (404, {})) -> Stub:
    """A catalog with two namespaces, as it answers what is in the first and below each of them."""
    stub.answers["/v1/namespaces"] = lambda query: below if "parent" in query else {"namespaces": [["a"], ["b"]]}
    stub.answers["/v1/namespaces/a/tables"] = tables
    stub.answers["/v1/namespaces/b/tables"] = {"identifiers": []}
    return stub


@pytest.mark.parametrize("status", [400, 403, 409])
def test_f10_a_namespace_that_a_rest_catalog_does_not_show_is_not_taken_for_empty(stub: Stub, status: int) -> None:
    answering(stub, (status, {}))
    catalog = stub.catalog()
    assert list(catalog.tables()) == []
    with pytest.raises(Unreadable, match="does not show all its tables"):
        catalog.pointers()
    answering(stub, {"identifiers": []}, below=(403, {}))
    with pytest.raises(Unreadable, match="does not show all its tables"):
        catalog.pointers()
    answering(stub, (404, {}))
    assert catalog.pointers().tables == {}, "it is gone since"


def test_f10_a_list_of_tables_that_breaks_off_is_not_taken_for_all(stub: Stub) -> None:
    pages: dict[str, object] = {"": {"identifiers": [], "next-page-token": "2"}, "2": (404, {})}
    answering(stub, lambda query: pages[query.get("pageToken", [""])[0]])
    with pytest.raises(Unreadable, match="does not show all its tables"):
        stub.catalog().pointers()


@pytest.mark.parametrize("name", ["..", ""])
def test_f10_a_table_that_cannot_be_asked_for_is_not_passed_over(stub: Stub, name: str) -> None:
    answering(stub, {"identifiers": [{"namespace": ["a"], "name": name}]})
    with pytest.raises(Unreadable, match="cannot be asked for"):
        stub.catalog().pointers()


def test_f10_a_table_that_a_rest_catalog_lists_and_hides_is_not_taken_for_dropped(stub: Stub) -> None:
    """Some answer so where the server's principal may not see it; who drops a table does not list it either."""
    answering(stub, {"identifiers": [{"namespace": ["a"], "name": "hidden"}]})
    hidden = TableName("lake", ("a",), "hidden")
    assert stub.catalog().pointers().tables == {hidden: None}
    lists = iter([{"identifiers": [{"namespace": ["a"], "name": "hidden"}]}, {"identifiers": []}])
    answering(stub, lambda _: next(lists))
    assert stub.catalog().pointers().tables == {}, "it was dropped meanwhile"


def test_f10_what_a_metastore_lists_and_does_not_describe_is_not_known() -> None:
    class Silent(Stumbling):
        def get_table_objects_by_name(self, _database: str, names: list[str]) -> list[HiveTable]:
            return [HiveTable(name, "db", parameters={}) for name in names if name != "broken"]

    pointers = HivePointers(CatalogEntry("lake", CatalogKind.HIVE, "thrift://nowhere", ""))
    found = {name: table is not None for name, table in pointers._described_of(Silent(), "db").items()}
    assert found == {"broken": False, "events": True, "other": True}


def test_f11_a_table_that_its_catalog_does_not_show_any_more_keeps_its_files(lake: Lake) -> None:
    """The server's principal lost the right to see it, or it was registered elsewhere: it is in use as ever."""
    imported = lake.foreign("imported.parquet")
    only_a_tag_needs(lake, lake.b, imported)
    lake.days(1)
    with sqlite3.connect(database(lake.house.entry)) as connection:
        connection.execute("DELETE FROM iceberg_tables WHERE table_namespace = 'other'")
    lake.house.restart()
    lake.days(10)
    assert imported[0].exists()
    assert moved(lake) == []
    assert "other.b" in lake.house.look(table_name(lake.a)).reason.text
    lake.house.control.registry.declare_lost(table_name(lake.b), "Ada")
    lake.until_quarantined(*lake.garbage)


def shows(monkeypatch: pytest.MonkeyPatch, name: TableName, place: str) -> None:
    """The catalog shows a table of another format as well, as a Hive Metastore does."""
    all_shown = SqlPointers.all_shown
    monkeypatch.setattr(SqlPointers, "all_shown", lambda self: replace(all_shown(self), others={name: [place]}))


def test_f12_files_of_a_hive_table_in_the_place_stay(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the backup that ``migrate`` leaves, or a table of Spark's over a folder; a metastore has both beside."""
    (theirs,) = lake.foreign(SPARKS)
    backup = TableName("lake", ("db",), "a_BACKUP_")
    shows(monkeypatch, backup, f"file://{location(lake.a)}")
    lake.days(8)
    assert theirs.exists()
    assert moved(lake) == []
    assert findings(lake) == {"place-not-owned"}


def test_f12_while_a_hive_table_is_where_removed_files_were_none_is_purged(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.until_quarantined(*lake.garbage)
    backup = TableName("lake", ("db",), "made_since")
    shows(monkeypatch, backup, f"file://{location(lake.a)}/data")
    lake.days(12)
    assert set(lake.states().values()) == {IntentState.QUARANTINED}
    assert len(lake.held()) == len(lake.garbage)
