"""What is said of policies before anybody applies them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from icewright.model.iceberg.names import TableId, TableName
from icewright.model.policy.policies import NamedRule, Policies, RuleMatch
from icewright.model.policy.policy import Enforced, PolicyRule
from icewright.observation.observer import KNOWN_CHARACTERS_MAX, known_properties
from icewright.policy.rules.difference import TABLES_SHOWN, Comparison, PolicyDifference, RuleChange, SettingChange

MODE = "icewright.mode"
EXPIRES = "icewright.expire-snapshots.enabled"
AGE = "history.expire.max-snapshot-age-ms"


def rule(name: str, settings: Mapping[str, str], *patterns: str, priority: int = 0) -> NamedRule:
    return NamedRule(name, RuleMatch(patterns), settings, priority)


def compared(
    before: Sequence[NamedRule],
    after: Sequence[NamedRule],
    tables: Mapping[str, Mapping[str, str] | None],
    configured: Sequence[PolicyRule] = (),
) -> Comparison:
    found = Comparison(Policies(tuple(before)), Policies(tuple(after)), configured)
    for number, (name, properties) in enumerate(tables.items()):
        found.add(TableId("lake", f"u{number}"), TableName.parse(name), properties)
    return found


def difference(
    before: Sequence[NamedRule],
    after: Sequence[NamedRule],
    tables: Mapping[str, Mapping[str, str] | None],
    configured: Sequence[PolicyRule] = (),
) -> PolicyDifference:
    return compared(before, after, tables, configured).difference(3)


def codes(found: PolicyDifference) -> list[str]:
    return [warning.code for warning in found.warnings]


AUTO = rule("auto", {MODE: "auto"}, "lake.db.*")


def test_the_same_policies_are_no_difference() -> None:
    found = difference([AUTO], [AUTO], {"lake.db.a": {}})
    assert found.is_empty
    assert (found.revision, found.tables_known, found.tables_changed, found.warnings) == (3, 1, 0, ())


def test_x3_tables_that_become_auto_are_pointed_out() -> None:
    tables: dict[str, Mapping[str, str]] = {"lake.db.a": {}, "lake.db.own": {MODE: "observe"}, "lake.other.b": {}}
    found = difference([], [AUTO], tables)
    assert found.rules == (RuleChange("auto", "added", (), 2),)
    assert (found.tables_known, found.tables_changed, found.settings) == (3, 1, {MODE: 1})
    assert [table.table for table in found.tables] == ["lake.db.a"]
    assert found.tables[0].changes == (SettingChange(MODE, "observe", "auto", "default", "rule auto"),)
    assert codes(found) == ["becomes-auto"]
    assert "lake.db.a" in found.warnings[0].text


def test_x3_a_table_that_opts_out_of_an_enforced_rule_does_not_change() -> None:
    tables: dict[str, Mapping[str, str]] = {"lake.db.own": {MODE: "observe", EXPIRES: "false"}, "lake.db.a": {}}
    enforced = replace(AUTO, settings={MODE: "auto", EXPIRES: "true"}, enforce=Enforced.YES)
    found = difference([], [enforced], tables)
    assert [table.table for table in found.tables] == ["lake.db.a"]
    over = difference([enforced], [replace(enforced, enforce=Enforced.OVER_OPT_OUTS)], tables)
    assert [table.table for table in over.tables] == ["lake.db.own"]
    assert "becomes-auto" in codes(over)


def test_what_only_says_the_same_in_other_words_changes_nothing() -> None:
    found = difference([], [rule("a", {MODE: "observe"}, "lake.db.*")], {"lake.db.a": {}})
    assert (found.is_empty, found.tables_changed) == (False, 0)


def test_x3_what_may_delete_is_pointed_out() -> None:
    auto = {MODE: "auto"}
    expiring = rule("expiring", {EXPIRES: "true"}, "lake.db.a")
    other: dict[str, Mapping[str, str]] = {"lake.z.z": {}}
    assert codes(difference([], [expiring], {"lake.db.a": auto, **other})) == ["may-delete"]
    assert codes(difference([], [expiring], {"lake.db.a": {MODE: "approve"}, **other})) == []
    sooner = rule("expiring", {EXPIRES: "true", AGE: "86400000"}, "lake.db.a")
    assert codes(difference([expiring], [sooner], {"lake.db.a": auto, **other})) == ["may-delete"]
    assert codes(difference([AUTO], [], {"lake.db.a": {EXPIRES: "true"}})) == []
    assert codes(difference([], [AUTO], {"lake.db.a": {EXPIRES: "true"}, **other})) == ["becomes-auto", "may-delete"]


def test_x3_a_pattern_that_matches_nothing_or_everything_is_said() -> None:
    tables: dict[str, Mapping[str, str]] = {"lake.db.a": {}, "lake.db.b": {}}
    nothing = rule("a", {MODE: "approve"}, "lake.bd.*", "lake.db.a")
    assert [warning.text for warning in difference([], [nothing], tables).warnings] == [
        "rule a: the pattern lake.bd.* matches no table that is known"
    ]
    for pattern in ("**", "lake.**"):
        assert codes(difference([], [rule("a", {MODE: "approve"}, pattern)], tables)) == ["matches-everything"]
    assert codes(difference([], [rule("a", {MODE: "approve"}, "**")], {})) == ["matches-nothing"]


def test_rules_that_change_and_go_are_told_with_what_changed() -> None:
    before = [AUTO, rule("old", {MODE: "approve"}, "lake.db.b")]
    after = [rule("auto", {MODE: "approve"}, "lake.db.*", priority=4)]
    found = difference(before, after, {"lake.db.a": {}, "lake.db.b": {}})
    assert [(one.name, one.what, one.fields) for one in found.rules] == [
        ("auto", "changed", ("settings", "priority")),
        ("old", "removed", ()),
    ]
    assert found.tables[0].changes == (SettingChange(MODE, "auto", "approve", "rule auto", "rule auto"),)


def test_the_first_tables_are_listed_and_all_are_counted_and_looked_at() -> None:
    names = [f"lake.db.t{number:03d}" for number in range(TABLES_SHOWN + 5)]
    found = compared([], [AUTO], {name: {} for name in reversed(names)} | {"lake.x.y": {}})
    told = found.difference(0)
    assert [table.table for table in told.tables] == names[:TABLES_SHOWN]
    assert (told.tables_changed, len(found.affected)) == (TABLES_SHOWN + 5, TABLES_SHOWN + 5)


def test_a_table_that_was_not_looked_at_is_said_to_be_unknown_and_looked_at() -> None:
    found = compared([], [AUTO], {"lake.db.a": None, "lake.x.b": None})
    told = found.difference(0)
    assert (told.tables_changed, codes(told), found.affected) == (0, ["not-known"], [TableId("lake", "u0")])


def test_the_rules_of_the_configuration_are_below() -> None:
    configured = [PolicyRule("lake", (), {MODE: "auto"})]
    assert difference([], [AUTO], {"lake.db.a": {}}, configured).tables_changed == 0


def test_an_invalid_property_of_a_table_does_not_hide_the_others() -> None:
    found = difference([], [AUTO], {"lake.db.a": {MODE: "often"}, "lake.db.b": {}})
    assert [table.table for table in found.tables] == ["lake.db.b"]


def test_t5_what_may_be_a_secret_is_not_kept_of_a_table() -> None:
    own = {"owner": "x", "s3.secret-access-key": "x", "my.password": "x", MODE: "auto"}
    assert known_properties(own) == {"owner": "x", MODE: "auto"}


def test_t13_more_than_can_be_kept_is_not_known() -> None:
    assert known_properties({"k": "v" * KNOWN_CHARACTERS_MAX}) is None
