"""Rules of a platform that tables cannot overrule, and owners whose word still counts where they want less."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from icewright.configuration.load import load_config
from icewright.core.errors import InvalidConfiguration
from icewright.model.iceberg.names import TableName
from icewright.model.policy.policies import NamedRule, Policies, Rule, RuleMatch
from icewright.model.policy.policy import Enforced, Mode, PolicyRule
from icewright.policy.effective import policy_of
from icewright.policy.rules.files import read_policies
from icewright.policy.rules.named_rules import check_policies
from icewright.policy.rules.precedence import wins

NAME = TableName("lake", ("sales",), "orders")
MODE, SIZE = "icewright.mode", "write.target-file-size-bytes"
ORPHANS = "icewright.remove-orphan-files.enabled"
OVER = Enforced.OVER_OPT_OUTS


def named(enforce: Enforced, settings: Mapping[str, str]) -> NamedRule:
    return NamedRule("platform", RuleMatch(("lake.**",)), settings, enforce=enforce)


def configured(enforce: Enforced, settings: Mapping[str, str]) -> PolicyRule:
    return PolicyRule("lake", ("sales",), settings, enforce)


@pytest.mark.parametrize("rule", [named, configured])
def test_s9_an_enforced_rule_is_above_table_properties(rule: Callable[[Enforced, Mapping[str, str]], Rule]) -> None:
    own = {MODE: "auto", SIZE: str(2**40)}
    settings = {MODE: "observe", SIZE: str(2**29)}
    free = policy_of(NAME, own, [rule(Enforced.NO, settings)])
    assert (free.mode, free.target_file_size_bytes) == (Mode.AUTO, 2**40)
    for enforce in (Enforced.YES, OVER):
        policy = policy_of(NAME, own, [rule(enforce, settings)])
        assert (policy.mode, policy.target_file_size_bytes, policy.problems) == (Mode.OBSERVE, 2**29, ())
        assert "enforced; the table property auto is overruled" in policy.origins[MODE].replace("'", "").replace(
            "`", ""
        )
        (mode,) = [win for win in wins(NAME, own, [rule(enforce, settings)]) if win.key == MODE]
        assert [(one.origin, one.value, one.why) for one in mode.over] == [
            ("table property", "auto", "the rule above it is enforced")
        ]


@pytest.mark.parametrize("own", [{MODE: "observe"}, {MODE: "observe", ORPHANS: "false"}])
def test_s9_an_owner_who_wants_less_keeps_the_say_unless_the_rule_is_over_opt_outs(own: dict[str, str]) -> None:
    rule = named(Enforced.YES, {MODE: "auto", ORPHANS: "true"})
    policy = policy_of(NAME, own, [rule])
    assert (policy.mode, policy.origins[MODE]) == (Mode.OBSERVE, "table property")
    assert policy.removes_orphan_files is (ORPHANS not in own)
    (mode,) = [win for win in wins(NAME, own, [rule]) if win.key == MODE]
    assert "the table opts out" in mode.over[0].why
    over = policy_of(NAME, own, [named(OVER, {MODE: "auto", ORPHANS: "true"})])
    assert (over.mode, over.removes_orphan_files) == (Mode.AUTO, True)
    assert policy_of(NAME, {MODE: "approve"}, [rule]).mode is Mode.APPROVE


def test_s9_a_value_that_cannot_be_used_still_stops_everything() -> None:
    policy = policy_of(NAME, {MODE: "maybe"}, [named(OVER, {MODE: "auto"})])
    assert policy.mode is Mode.OBSERVE
    assert policy.problems


def test_s9_an_enforced_rule_goes_by_names_alone() -> None:
    """An owner could leave one that goes by the table's own properties."""
    for match in (RuleMatch(("lake.**",), owner="x"), RuleMatch(("lake.**",), properties={"tier": "gold"})):
        with pytest.raises(InvalidConfiguration, match="properties of tables"):
            check_policies(Policies((NamedRule("platform", match, {MODE: "observe"}, enforce=Enforced.YES),)))


def test_s9_files_say_that_a_rule_is_enforced(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(
        "version: 1\nrules:\n  - name: platform\n    match:\n      tables: [lake.**]\n    enforce: true\n"
        "    settings:\n      icewright.mode: observe\n"
    )
    (rule,) = read_policies([file]).rules
    assert rule.enforce is Enforced.YES
    config = tmp_path / "icewright.toml"
    config.write_text(
        '[[catalogs]]\nname = "lake"\ntype = "sql"\nuri = "sqlite:////c.db"\nwarehouse = "/w"\n'
        '[[policies]]\ncatalog = "lake"\nnamespace = ["sales"]\nmode = "observe"\nenforce = "over-opt-outs"\n'
    )
    found = [one for one in load_config(config, {}, tmp_path).rules if one.namespace]
    assert [one.enforce for one in found] == [OVER]
