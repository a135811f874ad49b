"""``icewright policy test`` and what needs no server: which rule wins, by files, with a catalog or by cases alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.policy.rules.file_schema import policy_schema
from tests.builders.command_line import at_home, icewright, write_configuration
from tests.cases import ROOT, each_case
from tests.lakes.sqlite import append, make_lake, make_table

EXAMPLES = ROOT / "examples" / "policies"
RULES = """\
version: 1
rules:
  - name: everything
    match:
      tables: ["**"]
    priority: -1
    settings:
      icewright.mode: approve
  - name: events
    match:
      tables: [lake.db.events]
    settings:
      icewright.mode: auto
      icewright.level-2.runs: 4
"""
CASES = """\
version: 1
cases:
  - table: lake.db.events
    expect:
      icewright.mode: auto
      icewright.layout: none
  - table: lake.db.events
    properties:
      icewright.mode: observe
    expect:
      icewright.mode: observe
      icewright.level-2.runs: "4"
"""


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CatalogEntry:
    entry = make_lake(tmp_path)
    append(make_table(entry, ("db", "events"), properties={"icewright.level-2.runs": "5"}), range(3))
    more = '[[policies]]\ncatalog = "lake"\nnamespace = "db"\nmode = "observe"\n'
    write_configuration(tmp_path, entry, more)
    (tmp_path / "rules.yaml").write_text(RULES)
    (tmp_path / "cases.yaml").write_text(CASES)
    at_home(tmp_path, monkeypatch)
    return entry


@pytest.mark.usefixtures("lake")
class TestWhichWins:
    def test_by_files_that_are_not_applied_with_what_would_change(self) -> None:
        said = icewright("policy", "test", "db.events", "--file", "rules.yaml")
        assert said.status == 0
        lines = [" ".join(line.split()) for line in said.out.splitlines()]
        assert "table lake.db.events" in lines
        assert "before the configuration alone: no server was asked" in lines
        over = "not approve of rule everything: its priority -1 is below 0; "
        over += "not observe of namespace lake.db: rules of policy files are above those of the configuration"
        assert f"icewright.mode observe -> auto rule events (lake.db.events) {over}" in lines
        own = "icewright.level-2.runs 5 table property"
        assert f"{own} not 4 of rule events: a table's own property is above every rule" in lines
        assert not [line for line in lines if line.startswith("icewright.layout")]
        assert "icewright.layout" in icewright("policy", "test", "db.events", "--file", "rules.yaml", "--all").out

    def test_by_the_configuration_where_nothing_is_applied(self) -> None:
        said = icewright("policy", "test", "db.events", "--json").json["table"]
        assert (said["revision"], said["from_files"], said["problems"]) == (None, False, [])
        (mode,) = (one for one in said["settings"] if one["win"]["key"] == "icewright.mode")
        assert (mode["win"]["value"], mode["win"]["origin"]) == ("observe", "namespace lake.db")

    def test_which_definition_of_its_group_counts(self, lake: CatalogEntry, tmp_path: Path) -> None:
        make_table(lake, ("db", "big"), properties={"icewright.resource-group": "etl", "owner": "sales"})
        said = icewright("policy", "test", "db.big")
        assert said.status == 1  # nothing of it would start
        assert "cannot be used: resource group etl: it is not defined, neither revision 0 of the policies" in said.out
        with (tmp_path / "icewright.toml").open("a") as file:
            file.write("\n[groups.etl]\ncores = 8\n")
        said = icewright("policy", "test", "db.big")
        lines = [" ".join(line.split()) for line in said.out.splitlines()]
        assert said.status == 0
        assert "resource group etl, from table property" in lines
        assert f"defined [groups.etl] of {tmp_path / 'icewright.toml'} (no other definition)" in lines
        assert "caps cores 8" in lines
        assert "owner sales, without caps of its own" in lines
        groups = "groups:\n  etl:\n    tasks: 4\n    tenants:\n      sales:\n        tasks: 2\n"
        (tmp_path / "groups.yaml").write_text(f"version: 1\n{groups}")
        said = icewright("policy", "test", "db.big", "--file", "groups.yaml")
        lines = [" ".join(line.split()) for line in said.out.splitlines()]
        over = f"not [groups.etl] of {tmp_path / 'icewright.toml'}: what policies say of a group is above the"
        assert f"defined groups.yaml:3:3 ({over} configuration, as a whole)" in lines
        assert "caps tasks 4" in lines
        assert "owner sales, of these at most: tasks 2" in lines
        assert "before etl, from table property" in lines
        found = icewright("policy", "test", "db.big", "--file", "groups.yaml", "--json").json["table"]["group"]
        assert (found["win"]["defined_by"], found["before"]["group"]["cores"]) == ("groups.yaml:3:3", 8)

    def test_cases_pass_or_fail_with_what_was_found(self, tmp_path: Path) -> None:
        said = icewright("policy", "test", "--file", "rules.yaml", "--expect", "cases.yaml")
        assert (said.status, said.out) == (0, "passed  lake.db.events\npassed  lake.db.events\n")
        (tmp_path / "cases.yaml").write_text(CASES.replace("mode: auto", "mode: approve"))
        said = icewright("policy", "test", "--file", "rules.yaml", "--expect", "cases.yaml")
        assert said.status == 1
        assert "FAILED  lake.db.events  cases.yaml:3:5" in said.out
        assert "icewright.mode: expected approve, found auto (rule events)" in said.out
        said = icewright("policy", "test", "--file", "rules.yaml", "--expect", "cases.yaml", "--json")
        assert (said.status, [len(case["failures"]) for case in said.json["cases"]]) == (1, [1, 0])

    def test_a_table_with_something_that_cannot_be_used_is_status_1(self, lake: CatalogEntry) -> None:
        make_table(lake, ("db", "wrong"), properties={"icewright.mode": "often"})
        said = icewright("policy", "test", "db.wrong", "--file", "rules.yaml")
        assert said.status == 1
        assert "cannot be used: table property, icewright.mode: 'often' is not" in said.out

    def test_what_is_wrong_with_a_file_is_wrong_use(self, tmp_path: Path) -> None:
        (tmp_path / "rules.yaml").write_text(RULES.replace("auto", "often"))
        said = icewright("policy", "test", "db.events", "--file", "rules.yaml")
        assert said.status == 2
        assert "rules.yaml:13:23: 'often' is not observe, approve or auto" in said.err
        assert icewright("policy", "test").status == 2

    @each_case("arguments", [["apply", "rules.yaml"], ["history"], ["rollback", "0"], ["show"]])
    def test_what_is_applied_is_the_servers(self, arguments: list[str]) -> None:
        said = icewright("policy", *arguments)
        assert (said.status, "no server is running" in said.err) == (1, True)

    def test_a_table_has_no_revision(self) -> None:
        assert icewright("policy", "show", "db.events", "--revision", "1").status == 2


def test_cases_need_neither_a_configuration_nor_a_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As CI runs them: with the files alone."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "rules.yaml").write_text(RULES)
    (tmp_path / "cases.yaml").write_text(CASES)
    assert icewright("policy", "test", "--file", "rules.yaml", "--expect", "cases.yaml").status == 0


def test_the_examples_pass_their_cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    cases = str(EXAMPLES.parent / "policy-cases.yaml")
    said = icewright("policy", "test", "--file", str(EXAMPLES), "--expect", cases)
    assert (said.status, said.out.count("passed")) == (0, 4)


def test_the_schema_is_printed() -> None:
    assert json.loads(icewright("policy", "schema").out) == policy_schema()
