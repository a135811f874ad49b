"""``icewright plan NAME --action remove-dangling-deletes``, without a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command_line import icewright, write_configuration
from tests.lakes.sqlite import BY_CITY, append, make_lake, make_table


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    entry = make_lake(tmp_path)
    append(make_table(entry, spec=BY_CITY), range(3))
    write_configuration(tmp_path, entry)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.mark.usefixtures("lake")
def test_a_table_without_deletes_has_nothing_to_be_done() -> None:
    said = icewright("plan", "lake.db.events", "--action", "remove-dangling-deletes")
    assert said.status == 0
    assert "the table has no delete files" in said.out


@pytest.mark.usefixtures("lake")
def test_a_plan_is_for_one_thing() -> None:
    said = icewright("plan", "lake.db.events", "--action", "remove-dangling-deletes", "--migrate", "all")
    assert said.status != 0
    assert "these options do not go together" in said.err
