"""``icewright plan NAME --action compute-statistics``, and its shortcut, without a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.command_line import at_home, icewright, write_configuration
from tests.lakes.sqlite import BY_CITY, append, make_lake, make_table


@pytest.fixture(autouse=True)
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = make_lake(tmp_path)
    append(make_table(entry, spec=BY_CITY), range(10), ("Bonn", "Kyoto"))
    write_configuration(tmp_path, entry)
    at_home(tmp_path, monkeypatch)


def test_a_plan_says_which_columns_what_is_read_and_what_for() -> None:
    said = icewright("plan", "lake.db.events", "--action", "compute-statistics", "--columns", "city, id")
    assert said.status == 1
    assert "distinct values of 2 columns and figures of its partitions" in said.out
    assert "city, id" in said.out
    assert "10 rows in 2 files" in said.out
    assert "spark.sql.cbo.enabled" in said.out
    assert "system.compute_table_stats(" in said.out
    assert "system.compute_partition_stats(" in said.out
    document = icewright("plan", "lake.db.events", "--action", "compute-statistics", "--json").json
    assert document["plan"]["prediction"]["kind"] == "compute_statistics"
    assert document["plan"]["actions"][0]["of_partitions"] is True


def test_the_shortcut_only_shows_it() -> None:
    said = icewright("compute-statistics", "lake.db.events")
    assert said.status == 1
    assert "figures of its partitions" in said.out
    missing = icewright("compute-statistics", "lake.db.events", "--columns", "colour")
    assert missing.status != 0
    assert "colour" in missing.err
