"""What is particular to a SQL catalog on PostgreSQL: who gets in, what looking leaves, what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.catalogs.pointers.sql_pointers import SqlPointers
from icewright.core.errors import Unavailable
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.names import TableName
from tests.lakes.sqlite import make_table, with_tables
from tests.servers.postgres import PASSWORD, PASSWORD_IN_URLS, USER, PostgresServer

EVENTS = TableName("lake", ("db",), "events")


@pytest.fixture
def entry(postgres: PostgresServer, tmp_path: Path) -> Iterator[CatalogEntry]:
    url = postgres.new_database()
    yield with_tables(CatalogEntry("lake", CatalogKind.SQL, url, str(tmp_path / "warehouse")))
    postgres.drop(url)


def test_views_and_other_catalogs_rows_are_not_listed(entry: CatalogEntry, postgres: PostgresServer) -> None:
    make_table(entry)
    insert = "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, iceberg_type)"
    values = "('lake', 'db', 'a_view', 'file:///v', 'VIEW'), ('other', 'db', 'theirs', 'file:///t', 'TABLE')"
    postgres.execute(f"{insert} VALUES {values}", entry.uri.rpartition("/")[2])
    assert list(PyIcebergCatalog(entry).tables()) == [EVENTS]


def test_a_catalog_of_schema_v0_has_no_column_for_views(entry: CatalogEntry, postgres: PostgresServer) -> None:
    make_table(entry)
    postgres.execute("ALTER TABLE iceberg_tables DROP COLUMN iceberg_type", entry.uri.rpartition("/")[2])
    catalog = PyIcebergCatalog(entry)
    assert list(catalog.tables()) == [EVENTS]
    postgres.execute("ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5)", entry.uri.rpartition("/")[2])
    assert catalog.load(EVENTS).name == EVENTS


def test_the_password_may_stand_beside_the_uri(entry: CatalogEntry) -> None:
    bare = entry.uri.replace(f"{USER}:{PASSWORD_IN_URLS}@", "")
    login = {"jdbc.user": USER, "jdbc.password": PASSWORD}
    assert list(PyIcebergCatalog(replace(entry, uri=bare, properties=login)).tables()) == []


def test_a_wrong_password_is_told_without_it(entry: CatalogEntry) -> None:
    wrong = replace(entry, uri=entry.uri.replace(PASSWORD_IN_URLS, "hunter2"))
    with pytest.raises(Unavailable) as caught:
        list(PyIcebergCatalog(wrong).tables())
    assert "hunter2" not in f"{caught.value.message}{caught.value.hint}{caught.value.__cause__}"


def test_a_database_without_a_catalog_is_unavailable_and_stays_so(postgres: PostgresServer, tmp_path: Path) -> None:
    url = postgres.new_database()
    with pytest.raises(Unavailable):
        list(PyIcebergCatalog(CatalogEntry("lake", CatalogKind.SQL, url, str(tmp_path))).tables())
    assert (
        postgres.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'", url.rpartition("/")[2]) == "0\n"
    )
    postgres.drop(url)


def test_looking_can_change_nothing_and_waits_for_nobody_for_ever(entry: CatalogEntry) -> None:
    with SqlPointers(entry)._engine.connect() as connection:
        assert connection.execute(text("SHOW statement_timeout")).scalar_one() == "1min"
        with pytest.raises(DBAPIError, match="read-only"):
            connection.execute(text("DELETE FROM iceberg_tables"))
