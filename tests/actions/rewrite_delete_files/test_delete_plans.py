"""``icewright plan NAME --action ...`` for delete files, without a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from icewright.actions.rewrite_delete_files.cli import delete_costs_cells, delete_costs_pairs
from icewright.model.iceberg.inventory import DeleteCosts
from tests.builders.command_line import at_home, icewright, write_configuration
from tests.lakes.sqlite import BY_CITY, append, make_lake, make_table

ACTIONS = ("remove-dangling-deletes", "rewrite-position-delete-files")


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = make_lake(tmp_path)
    append(make_table(entry, spec=BY_CITY), range(3))
    write_configuration(tmp_path, entry)
    at_home(tmp_path, monkeypatch)


@pytest.mark.usefixtures("lake")
@pytest.mark.parametrize("action", ACTIONS)
def test_a_table_without_deletes_has_nothing_to_be_done(action: str) -> None:
    said = icewright("plan", "lake.db.events", "--action", action)
    assert said.status == 0
    assert "because nothing" in said.out.replace("  ", " ").replace("  ", " ")


def test_what_readers_open_is_said_before_and_after() -> None:
    before, after = DeleteCosts(6, 14, 12_288), DeleteCosts(2, 4, 3_072)
    assert delete_costs_pairs(before, after) == [
        ("delete files", "6 -> 2"),
        ("opened", "14 -> 4 by a scan of the whole table (12.0 KiB -> 3.0 KiB)"),
    ]
    found = {"listed_after": 3, "opened_before": 14, "opened_after": 5, "opened_bytes_before": 4_096}
    assert delete_costs_cells(before, after, found) == [
        ("delete files", "2", "3"),
        ("opened less by a scan", "10", "9"),
    ]
    assert delete_costs_cells(before, after, {}) == []
