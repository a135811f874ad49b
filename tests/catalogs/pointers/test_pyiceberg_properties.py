"""What is particular to changing properties of real tables: what is kept, and what happens when others come first."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pyiceberg.catalog.sql import IcebergTables
from sqlalchemy import update

from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.catalogs.pointers.next_metadata import next_location, next_metadata
from icewright.catalogs.pointers.properties import PyIcebergProperties
from icewright.catalogs.pointers.rest_commits import RestCommits, property_updates
from icewright.catalogs.pointers.sql_pointers import SqlCommits
from icewright.catalogs.pointers.table_commits import TRIES_MAX
from icewright.core.errors import (
    Conflict,
    IcewrightError,
    NotAllowed,
    NotFound,
    OutcomeUnknown,
    Unavailable,
    Unsupported,
)
from icewright.core.system_clock import SystemClock
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import TableMetadata
from tests.cases import each_case
from tests.lakes import sqlite
from tests.lakes.moves import Move, moving

NAME = TableName("lake", ("db", "events"), "t")
LAYOUT = "icewright.layout"


@pytest.fixture
def entry(tmp_path: Path) -> CatalogEntry:
    made = sqlite.make_lake(tmp_path)
    sqlite.make_table(made, (*NAME.namespace, NAME.name))
    return made


def seen(entry: CatalogEntry) -> TableMetadata:
    return PyIcebergCatalog(entry).load(NAME)


def raw(location: str) -> dict[str, Any]:
    content = Path(urlsplit(location).path).read_bytes()
    found: dict[str, Any] = json.loads(gzip.decompress(content) if ".gz." in location else content)
    return found


def put(entry: CatalogEntry, metadata: Mapping[str, Any]) -> None:
    """Another writer's metadata, at once."""
    location = seen(entry).metadata_location
    after = location.replace(".metadata.json", "-other.metadata.json")
    Path(urlsplit(after).path).write_text(json.dumps(metadata))
    assert SqlCommits(entry).move(NAME, location, after, {})


def test_what_nobody_here_knows_is_kept(entry: CatalogEntry) -> None:
    before = raw(seen(entry).metadata_location)
    before |= {"format-version": 3, "next-row-id": 7, "encryption-keys": [{"key-id": "k"}], "of-the-future": {"a": 1.5}}
    before["schemas"][0]["fields"].append({"id": 9, "name": "v", "type": "of-the-future", "required": False})
    put(entry, before)
    table = seen(entry)
    PyIcebergProperties(entry, SystemClock()).change(table, {LAYOUT: "sort(id)"})
    after = raw(seen(entry).metadata_location)
    assert after.pop("properties") == {**before.pop("properties"), LAYOUT: "sort(id)"}
    assert after.pop("last-updated-ms") >= before["last-updated-ms"]
    entry_of_log = {"timestamp-ms": before.pop("last-updated-ms"), "metadata-file": table.metadata_location}
    assert after.pop("metadata-log") == [*before.pop("metadata-log"), entry_of_log]
    assert after == before


def test_the_file_lies_beside_the_present_one_wherever_properties_point(entry: CatalogEntry, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    before = raw(seen(entry).metadata_location)
    before["properties"] |= {"write.metadata.path": elsewhere.as_uri(), "py-io-impl": "no.such.Code"}
    before["location"] = elsewhere.as_uri()
    put(entry, before)
    table = seen(entry)
    PyIcebergProperties(entry, SystemClock()).change(table, {LAYOUT: "sort(id)"})
    assert seen(entry).metadata_location.rpartition("/")[0] == table.metadata_location.rpartition("/")[0]
    assert not elsewhere.exists()


def test_files_are_packed_where_the_table_asks_for_it(entry: CatalogEntry) -> None:
    writer = PyIcebergProperties(entry, SystemClock())
    writer.change(seen(entry), {"write.metadata.compression-codec": "gzip"})
    assert seen(entry).metadata_location.endswith(".gz.metadata.json")
    assert raw(seen(entry).metadata_location)["format-version"] == 2
    assert sqlite.writer(entry).load_table((*NAME.namespace, NAME.name)).metadata.format_version == 2


def test_an_encrypted_table_is_left_to_those_who_have_its_keys(entry: CatalogEntry) -> None:
    before = raw(seen(entry).metadata_location)
    before["properties"]["encryption.key-id"] = "k"
    put(entry, before)
    table = seen(entry)
    with pytest.raises(Unsupported):
        PyIcebergProperties(entry, SystemClock()).change(table, {LAYOUT: "sort(id)"})
    assert seen(entry) == table


def test_whoever_comes_second_begins_anew(entry: CatalogEntry, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[int] = []

    def others_come_first(move: Move) -> bool:
        if len(tries) < 2:
            table = sqlite.writer(entry).load_table((*NAME.namespace, NAME.name))
            tries.append(sqlite.append(table, [1], ["Bonn"]))
        return move()

    moving(monkeypatch, others_come_first)
    PyIcebergProperties(entry, SystemClock()).change(seen(entry), {LAYOUT: "sort(id)"})
    after = seen(entry)
    assert [snapshot.snapshot_id for snapshot in after.snapshots] == tries
    assert after.properties[LAYOUT] == "sort(id)"


def test_nobody_tries_for_ever(entry: CatalogEntry, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[Move] = []

    def others_always_come_first(move: Move) -> bool:
        tries.append(move)
        return False

    moving(monkeypatch, others_always_come_first)
    with pytest.raises(Conflict, match="all the time"):
        PyIcebergProperties(entry, SystemClock()).change(seen(entry), {LAYOUT: "sort(id)"})
    assert len(tries) == TRIES_MAX


def test_c1_a_commit_whose_answer_was_lost_is_looked_for(entry: CatalogEntry, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(move: Move) -> bool:
        move()
        raise Unavailable("no answer")

    moving(monkeypatch, lost)
    PyIcebergProperties(entry, SystemClock()).change(seen(entry), {LAYOUT: "sort(id)"})
    assert seen(entry).properties[LAYOUT] == "sort(id)"


def test_c1_a_commit_that_may_still_come_is_unknown(entry: CatalogEntry, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(_: Move) -> bool:
        raise Unavailable("no answer")

    moving(monkeypatch, lost)
    with pytest.raises(OutcomeUnknown):
        PyIcebergProperties(entry, SystemClock()).change(seen(entry), {LAYOUT: "sort(id)"})


def test_a_view_of_the_name_is_not_moved(entry: CatalogEntry) -> None:
    commits = SqlCommits(entry)
    location = seen(entry).metadata_location
    with commits._engine.begin() as connection:
        connection.execute(update(IcebergTables).values(iceberg_type="VIEW"))
    assert not commits.move(NAME, location, location + "x", {})


@each_case(
    ("status", "error"), [(404, NotFound), (403, NotAllowed), (400, NotAllowed), (429, Unavailable), (500, Unavailable)]
)
def test_what_a_rest_catalog_says(status: int, error: type[IcewrightError], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RestCommits, "_post", lambda *_: (status, {"error": {"message": "because"}}))
    commits = RestCommits(CatalogEntry("lake", CatalogKind.REST, "http://127.0.0.1:1", ""))
    with pytest.raises(error):
        commits.commit(NAME, "uuid", property_updates({LAYOUT: "sort(id)"}))


def test_what_a_rest_catalog_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def post(_self: RestCommits, _name: TableName, body: Any) -> tuple[int, Any]:
        asked.append(body)
        return 409, None

    monkeypatch.setattr(RestCommits, "_post", post)
    commits = RestCommits(CatalogEntry("lake", CatalogKind.REST, "http://127.0.0.1:1", ""))
    assert not commits.commit(NAME, "u1", property_updates({LAYOUT: "sort(id)", "icewright.mode": None}))
    assert asked == [
        {
            "identifier": {"namespace": ["db", "events"], "name": "t"},
            "requirements": [{"type": "assert-table-uuid", "uuid": "u1"}],
            "updates": [
                {"action": "set-properties", "updates": {LAYOUT: "sort(id)"}},
                {"action": "remove-properties", "removals": ["icewright.mode"]},
            ],
        }
    ]


def test_the_log_is_as_long_as_the_table_wants() -> None:
    log = [{"timestamp-ms": number, "metadata-file": f"m{number}"} for number in range(5)]
    properties = {"write.metadata.previous-versions-max": "2"}
    before = {"last-updated-ms": 9, "metadata-log": log, "properties": properties}
    after = next_metadata(before, before, "m9", 5)
    assert [one["metadata-file"] for one in after["metadata-log"]] == ["m4", "m9"]
    assert after["last-updated-ms"] == 9
    assert len(log) == 5


@each_case(
    ("location", "after"),
    [
        ("s3://b/t/metadata/00041-0aa.metadata.json", "s3://b/t/metadata/00042-u.metadata.json"),
        ("file:/t/metadata/v7.metadata.json", "file:/t/metadata/00000-u.metadata.json"),
        ("file:/t/7-x/00001.json", "file:/t/7-x/00000-u.metadata.json"),
    ],
)
def test_names_of_files(location: str, after: str) -> None:
    assert next_location(location, {}, "u") == after
