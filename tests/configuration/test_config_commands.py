"""``icewright config``: what is in effect, and a file to start from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.builders.command_line import icewright, write_configuration
from tests.lakes.sqlite import make_lake

YAML = "catalog:\n  lake:\n    uri: sqlite:////lake/c.db\n    warehouse: /lake\n    token: hunter2\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("ICEWRIGHT_CONFIG", raising=False)
    return tmp_path


def test_everything_is_shown_with_its_origin(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / ".pyiceberg.yaml").write_text(YAML)
    monkeypatch.setenv("ICEWRIGHT_SERVER__PORT", "7000")
    said = icewright("config", "show", "--origin")
    lines = {line.split()[0]: line.split(maxsplit=2)[1:] for line in said.out.splitlines()}
    assert lines["server.port"] == ["7000", "environment ICEWRIGHT_SERVER__PORT"]
    assert lines["server.host"] == ["127.0.0.1", "default"]
    assert lines["catalogs.lake.properties.token"] == ["***", str(here / ".pyiceberg.yaml")]
    assert "taken from PyIceberg's configuration" in said.err
    settings = icewright("config", "show", "--json").json["settings"]
    assert {"key": "server.port", "value": "7000", "origin": "environment ICEWRIGHT_SERVER__PORT"} in settings


def test_init_writes_once_and_what_it_wrote_is_read(here: Path) -> None:
    (here / ".pyiceberg.yaml").write_text(YAML)
    assert icewright("config", "path").out == "no configuration file\n"
    said = icewright("config", "init")
    assert (said.status, "lake, in mode observe" in said.out) == (0, True)
    file = here / "icewright.toml"
    assert file.stat().st_mode & 0o777 == 0o600
    assert icewright("config", "path").out == f"{file}\n"
    shown = icewright("config", "show").out
    assert "catalogs.lake.policy.icewright.mode" in shown
    before = file.read_text()
    again = icewright("config", "init")
    assert (again.status, file.read_text()) == (1, before)
    assert "exists already and is not overwritten" in again.err


def test_init_does_not_follow_a_link_that_leads_nowhere(here: Path) -> None:
    (here / "icewright.toml").symlink_to(here / "elsewhere.toml")
    assert icewright("config", "init").status == 1
    assert not (here / "elsewhere.toml").exists()


def test_init_where_nothing_can_be_written(here: Path) -> None:
    said = icewright("config", "init", str(here / "no" / "folder.toml"), "--json")
    assert (said.status, said.json["error"]["code"]) == (1, "unavailable")


def test_a_wrong_setting_is_one_line(here: Path) -> None:
    (here / "icewright.toml").write_text("[server]\nprot = 1\n")
    said = icewright("config", "show")
    assert said.status == 2
    assert said.err.splitlines()[0] == f"icewright: {here}/icewright.toml: unknown key server.prot"
    assert said.err.splitlines()[1].startswith("hint: known here: host, port")


def test_a_quarantine_that_cannot_be_used_is_told_when_it_is_configured(here: Path, other_file_system: Path) -> None:
    """Not a week later, when the first file would go: on another file system, or not there."""
    lake = make_lake(here)
    for held, problem in (
        (str(other_file_system), "no quarantine on the file system"),
        (f"{here}/held", "no directory"),
    ):
        write_configuration(here, replace(lake, quarantine=(held,)))
        said = icewright("config", "show")
        assert said.status == 1
        assert "the quarantine of catalog lake cannot be used" in said.err.replace("\n", " ")
        assert problem in icewright("config", "show", "--json").json["quarantines"]["lake"]
    (here / "held").mkdir()
    assert icewright("config", "show").status == 0
    assert icewright("config", "show", "--json").json["quarantines"] == {}
