"""Tables that PyIceberg itself could not load, or would give a made-up uuid, are seen and shown with their reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import Table

from tests.builders.command_line import at_home, icewright, write_configuration
from tests.cases import each_case
from tests.lakes.sqlite import append, make_lake, make_table


def rewritten(table: Table, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a table's metadata as a writer of another age would have written it."""
    path = Path(table.metadata_location.removeprefix("file://"))
    metadata = json.loads(path.read_text())
    change(metadata)
    path.write_text(json.dumps(metadata))


def without_uuid(metadata: dict[str, Any]) -> None:
    metadata["format-version"] = 1
    del metadata["table-uuid"]


def with_type(kind: Any) -> Callable[[dict[str, Any]], None]:
    def change(metadata: dict[str, Any]) -> None:
        metadata |= {"format-version": 3, "next-row-id": 0}
        metadata["schemas"][0]["fields"].append({"id": 9, "name": "odd", "required": False, "type": kind})
        metadata["last-column-id"] = 9

    return change


TABLES = {
    "ancient": without_uuid,
    "shredded": with_type("variant"),
    "earthly": with_type("geography(srid:4326, spherical)"),
    "future": with_type("hologram(3)"),
}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("odd")
    entry = make_lake(folder)
    for name, change in {**TABLES, "plain": lambda _: None}.items():
        table = make_table(entry, ("db", name))
        for number in range(6):
            append(table, [number])
        rewritten(table, change)
    write_configuration(folder, entry)
    return folder


@pytest.fixture(autouse=True)
def here(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_home(lake, monkeypatch)


def test_scan_shows_every_one_of_them() -> None:
    rows = {row["name"].removeprefix("lake.db."): row for row in icewright("scan", "--json").json["tables"]}
    assert rows.keys() == {*TABLES, "plain"}
    assert {name: row["problem"] for name, row in rows.items()} == dict.fromkeys(rows)
    assert {row["figures"]["data_files"] for row in rows.values()} == {6}
    found = {name: [finding["code"] for finding in row["findings"]] for name, row in rows.items()}
    assert "no-uuid" in found["ancient"]
    assert "unsupported-type" in found["earthly"]
    assert "unsupported-type" in found["future"]
    assert "small-files" in found["plain"]


@each_case(("name", "code"), [("ancient", "no-uuid"), ("earthly", "unsupported-type"), ("future", "unsupported-type")])
def test_the_plan_says_why_nothing_is_done(name: str, code: str) -> None:
    said = icewright("plan", f"lake.db.{name}", "--json").json["plan"]
    assert said["reason"]["code"] == code
    assert "cannot" in said["reason"]["text"]
    assert said["actions"] == []


@each_case("name", list(TABLES))
def test_they_are_shown(name: str) -> None:
    said = icewright("table", "show", f"db.{name}", "--json").json
    assert said["figures"]["data_files"] == 6
    shown = icewright("table", "show", f"db.{name}")
    assert shown.status == 0
    assert shown.err == ""
    files = icewright("table", "files", f"db.{name}", "--json").json
    assert len(files["items"]) == 6


def test_what_stands_for_the_missing_uuid_is_no_uuid() -> None:
    uuids = [icewright("table", "show", "db.ancient", "--json").json["uuid"] for _ in range(2)]
    assert uuids[0] == uuids[1]
    assert uuids[0].startswith("no-uuid-")
