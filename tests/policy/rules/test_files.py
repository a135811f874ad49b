"""Policy files: what people write, and what is told when it is wrong: file, line, column, and what to do."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema_rs import Draft202012Validator, meta
from strictyaml.ruamel.main import YAML

from icewright.core.errors import InvalidConfiguration
from icewright.model.policy.policies import NamedRule, RuleMatch
from icewright.policy.rules.case_files import read_cases
from icewright.policy.rules.file_schema import policy_schema
from icewright.policy.rules.files import read_policies
from icewright.policy.rules.yaml_tree import FILE_BYTES_MAX, parse_yaml
from icewright.policy.settings import BY_KEY
from tests.cases import ROOT, each_case

EXAMPLES = ROOT / "examples" / "policies"
MODE = "icewright.mode"
RULE = """\
version: 1
rules:
  - name: a
    match:
      tables: [lake.db.*]
      owner: sales*
      properties:
        tier: gold
    priority: -7
    settings:
      icewright.mode: auto
      icewright.rewrite-data-files.min-file-size-ratio: 0.50
      icewright.expire-snapshots.enabled: true
    note: >
      because
"""


def write(folder: Path, text: str, name: str = "p.yaml") -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def test_a_rule_is_read_as_it_is_written(tmp_path: Path) -> None:
    (found,) = read_policies([write(tmp_path, RULE)]).rules
    settings = {
        MODE: "auto",
        "icewright.rewrite-data-files.min-file-size-ratio": "0.50",
        "icewright.expire-snapshots.enabled": "true",
    }
    assert found == NamedRule("a", RuleMatch(("lake.db.*",), "sales*", {"tier": "gold"}), settings, -7, "because")


def test_files_and_folders_in_any_order_are_the_same(tmp_path: Path) -> None:
    one = write(tmp_path, RULE, "x/one.yaml")
    other = write(tmp_path, RULE.replace("name: a", "name: b"), "x/y/other.yml")
    write(tmp_path, "not a policy", "x/README.md")
    write(tmp_path, "not a policy", "x/.hidden/z.yaml")
    assert read_policies([one, other]) == read_policies([other, one]) == read_policies([tmp_path / "x", one])
    assert [rule.name for rule in read_policies([tmp_path / "x"]).rules] == ["a", "b"]


def test_a_file_without_rules_is_fine(tmp_path: Path) -> None:
    assert read_policies([write(tmp_path, "version: 1\n")]).rules == ()


WRONG = [
    ("version: 2\n", "p.yaml:1:10: the version is not known"),
    ("rules: []\n", "p.yaml:1:1: a policy file needs the key version"),
    ("version: 1\nrule: []\n", "p.yaml:2:1: there is no key 'rule'"),
    ("- a\n", "p.yaml:1:1: expected a policy file"),
    ("", "p.yaml:1:1: the file is empty"),
    ("version: 1\n---\nversion: 1\n", "p.yaml:2:1: there is a second document"),
    ("version: 1\nversion: 1\n", "p.yaml:2:1: 'version' is there twice"),
    ("version: &x 1\n", "p.yaml:1:10: anchors"),
    ("version: !!python/object:os.system 1\n", "p.yaml:1:10: tags"),
    ("version: 1\nrules:\n  - name: [\n", "p.yaml:4:1: not YAML"),
    (RULE.replace("lake.db.*", "*.db.x"), "p.yaml:5:16: a text that begins with a star is an alias"),
    (RULE.replace("lake.db.*", "lake.db"), "p.yaml:5:16: 'lake.db' is no full name"),
    (RULE.replace("[lake.db.*]", "lake.db.*"), "p.yaml:5:15: expected a list of patterns"),
    (RULE.replace("name: a", "name: a b"), "p.yaml:3:11: 'a b' cannot be the name"),
    (RULE.replace("    priority", "    prioritty"), "p.yaml:9:5: there is no key 'prioritty' in a rule"),
    (RULE.replace("-7", "high"), "p.yaml:9:15: 'high' is no priority"),
    (RULE.replace(": auto", ": often"), "p.yaml:11:23: 'often' is not observe, approve or auto"),
    (RULE.replace("icewright.mode:", "icewright.moode:"), "p.yaml:11:24: there is no setting 'icewright.moode'"),
    (RULE.replace("tier: gold", "tier: [gold]"), "p.yaml:8:15: expected a value, found a list"),
    (RULE.replace("tier: gold", "my-token: x"), "p.yaml:8:19: 'my-token' may be a secret"),
    (RULE + RULE.partition("rules:\n")[2], "p.yaml:16:11: there are two rules a"),
    ("version: " + "[" * 30, "p.yaml:1:19: nested more than 10 deep"),
]


@each_case(("text", "said"), WRONG)
def test_what_is_wrong_is_told_with_file_line_and_column(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        read_policies([write(tmp_path, text)])
    assert caught.value.message.removeprefix(f"{tmp_path}/").startswith(said)


def test_two_rules_of_one_name_in_two_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfiguration, match=r"z\.yaml:3:11: there are two rules a"):
        read_policies([write(tmp_path, RULE, "z.yaml"), write(tmp_path, RULE, "a.yaml")][::-1])


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "latin.yaml").write_bytes(b"version: \xff")
    for path, said in ((tmp_path / "no.yaml", "cannot be read"), (tmp_path / "empty", "no policy file")):
        with pytest.raises(InvalidConfiguration, match=said):
            read_policies([path])
    with pytest.raises(InvalidConfiguration, match="UTF-8"):
        read_policies([tmp_path / "latin.yaml"])
    with pytest.raises(InvalidConfiguration, match="bytes"):
        read_policies([write(tmp_path, "#" * (FILE_BYTES_MAX + 1))])


@given(st.text("ab:-[]{}&*!|>%'\"#,?\n \t\\\x00\ud800u", max_size=40))
def test_t9_t13_whatever_is_in_a_file_it_is_read_or_refused(text: str) -> None:
    with suppress(InvalidConfiguration):  # anything else is a defect
        parse_yaml(text, "f")


def loaded(file: Path) -> Any:
    """As another reader of YAML sees it, which takes true for a boolean."""
    return YAML(typ="safe", pure=True).load(file.read_text())


class TestSchema:
    VALIDATOR = Draft202012Validator(policy_schema())

    def test_it_is_a_schema_of_all_settings(self) -> None:
        meta.validate(policy_schema())
        settings = json.loads(json.dumps(policy_schema()))["properties"]["rules"]["items"]["properties"]["settings"]
        assert settings["properties"].keys() == BY_KEY.keys()

    @pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: file.name)
    def test_the_examples_are_valid(self, file: Path) -> None:
        self.VALIDATOR.validate(loaded(file))
        assert read_policies([file]).rules

    @each_case(
        "text",
        [
            RULE.replace("version: 1", "version: 2"),
            RULE.replace("    priority", "    prioritty"),
            RULE.replace("icewright.mode:", "icewright.moode:"),
            RULE.replace("[lake.db.*]", "lake.db.*"),
            RULE.replace("name: a", "name: a b"),
        ],
    )
    def test_what_reading_refuses_by_its_shape_the_schema_refuses(self, tmp_path: Path, text: str) -> None:
        file = write(tmp_path, text)
        assert list(self.VALIDATOR.iter_errors(loaded(file)))
        with pytest.raises(InvalidConfiguration):
            read_policies([file])


CASES = """\
version: 1
cases:
  - table: lake.db.a
    expect:
      icewright.mode: auto
"""


class TestCases:
    def test_cases_are_read(self, tmp_path: Path) -> None:
        (found,) = read_cases(write(tmp_path, CASES))
        assert (str(found.table), dict(found.properties), dict(found.expect)) == ("lake.db.a", {}, {MODE: "auto"})
        assert found.place.endswith("p.yaml:3:5")

    @each_case(
        ("text", "said"),
        [
            (CASES.replace("lake.db.a", "a"), "3:12: not a full table name"),
            (CASES.replace("mode: auto", "mode: often"), "5:23: 'often' is not"),
            (CASES.replace("icewright.mode", "icewright.moode"), "5:24: there is no setting"),
            (CASES.replace("expect", "expects"), "4:5: there is no key"),
            ("version: 1\n", "1:1: a file of cases needs the key cases"),
        ],
    )
    def test_what_is_wrong_is_told(self, tmp_path: Path, text: str, said: str) -> None:
        with pytest.raises(InvalidConfiguration, match=rf"p\.yaml:{said}"):
            read_cases(write(tmp_path, text))
