"""``icewright plan NAME --action rewrite-manifests``, without a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.command_line import at_home, icewright, write_configuration
from tests.lakes.sqlite import BY_CITY, append, make_lake, make_table


@pytest.fixture(autouse=True)
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = make_lake(tmp_path)
    table = make_table(entry, spec=BY_CITY, properties={"commit.manifest.min-count-to-merge": "3"})
    for first in range(0, 60, 10):
        append(table, range(first, first + 10), ("Bonn", "Kyoto"))
    append(make_table(entry, ("db", "good")), range(3))
    write_configuration(tmp_path, entry)
    at_home(tmp_path, monkeypatch)


def test_a_plan_says_what_queries_open_before_and_after() -> None:
    said = icewright("plan", "lake.db.events", "--action", "rewrite-manifests")
    assert said.status == 1
    assert "6 manifests become 1 (small from frequent writes" in said.out
    assert "6 -> 1" in said.out
    assert "data of spec 0: 6.0 -> 1.0 by a query for one partition, at worst 6 -> 1" in said.out
    assert "CALL lake.system.rewrite_manifests(table => 'db.events', use_caching => false)" in said.out.replace("`", "")
    document = icewright("plan", "lake.db.events", "--action", "rewrite-manifests", "--json").json
    assert document["plan"]["prediction"]["kind"] == "rewrite_manifests"
    assert document["plan"]["actions"][0]["entries"] == 12


def test_where_it_would_not_help_the_plan_says_why() -> None:
    said = icewright("plan", "lake.db.good", "--action", "rewrite-manifests")
    assert said.status == 0
    assert "it would not help" in said.out
