"""Rules of policy files: who wins is a law, and not a matter of order."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.core.errors import InvalidConfiguration
from icewright.model.iceberg.names import TableName
from icewright.model.policy.policies import NamedRule, Policies, Rule, RuleMatch
from icewright.model.policy.policy import Mode, PolicyRule
from icewright.policy.effective import TABLE_ORIGIN, effective_policy, policy_of
from icewright.policy.rules.named_rules import RuleIndex, check_policies, faults
from icewright.policy.rules.precedence import wins
from icewright.policy.settings import BY_KEY, SETTINGS
from tests.builders.observations import table
from tests.cases import each_case, for_each

MODE = "icewright.mode"
ORDERS = TableName("lake", ("sales",), "orders")
PATTERNS = st.sampled_from(
    ["**", "lake.**", "lake.sales.**", "lake.sales.*", "lake.sales.orders", "*.*.orders", "other.**"]
)


def rule(
    name: str,
    value: str = "auto",
    *patterns: str,
    priority: int = 0,
    owner: str | None = None,
    properties: Mapping[str, str] | None = None,
    key: str = MODE,
) -> NamedRule:
    return NamedRule(name, RuleMatch(patterns or ("**",), owner, properties or {}), {key: value}, priority)


RULES = st.lists(
    st.builds(
        lambda name, value, pattern, priority: rule(name, value, pattern, priority=priority),
        st.sampled_from("abcdef"),
        st.sampled_from([mode.value for mode in Mode]),
        PATTERNS,
        st.integers(-2, 2),
    ),
    max_size=6,
    unique_by=lambda one: one.name,
)
CONFIGURED = st.lists(
    st.builds(
        lambda namespace, value: PolicyRule("lake", namespace, {MODE: value}),
        st.sampled_from([(), ("sales",)]),
        st.sampled_from([mode.value for mode in Mode]),
    ),
    max_size=2,
    unique_by=lambda one: one.namespace,
)


@given(RULES, CONFIGURED, st.randoms(use_true_random=False))
def test_the_order_of_files_and_rules_does_not_matter(
    rules: list[NamedRule], configured: list[PolicyRule], random: object
) -> None:
    everything: list[Rule] = [*rules, *configured]
    shuffled = list(everything)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # of Random
    assert policy_of(ORDERS, {}, everything) == policy_of(ORDERS, {}, shuffled)
    assert wins(ORDERS, {}, everything) == wins(ORDERS, {}, shuffled)


@given(RULES, CONFIGURED, st.sampled_from(list(Mode)))
def test_a_table_property_always_wins(rules: list[NamedRule], configured: list[PolicyRule], mode: Mode) -> None:
    policy = policy_of(ORDERS, {MODE: mode.value}, [*rules, *configured])
    assert (policy.mode, policy.origins[MODE]) == (mode, TABLE_ORIGIN)


@given(RULES, CONFIGURED)
def test_the_winner_is_above_every_other_one(rules: list[NamedRule], configured: list[PolicyRule]) -> None:
    """By the words of the page and not by how it is sorted: priority, then specificity, then the name."""
    policy, order = policy_of(ORDERS, {}, [*rules, *configured]), RuleIndex(rules).concerning(ORDERS, {})
    if not order:
        assert not policy.origins[MODE].startswith("rule ")
        return
    winner, others = order[0], order[1:]
    assert policy.origins[MODE] == f"rule {winner.rule.name}"
    assert policy.mode == winner.rule.settings[MODE]
    for other in others:
        assert winner.rule.priority >= other.rule.priority
        if winner.rule.priority == other.rule.priority:
            assert winner.specificity >= other.specificity
            if winner.specificity == other.specificity:
                assert winner.rule.name < other.rule.name


def test_x3_an_invalid_value_stops_everything_for_its_table_whoever_would_overrule_it() -> None:
    wrong, right = rule("wrong", "often", "lake.**"), rule("right", "auto", "lake.**", priority=9)
    policy = effective_policy(table(), (wrong, right))
    assert policy.mode is Mode.OBSERVE
    assert [(problem.origin, problem.key) for problem in policy.problems] == [("rule wrong", MODE)]


def test_each_setting_is_looked_up_by_itself() -> None:
    low, high = rule("low", "auto", priority=1), rule("high", "4", priority=2, key="icewright.level-2.runs")
    policy = policy_of(ORDERS, {}, (low, high))
    assert (policy.mode, policy.level_2_runs) == (Mode.AUTO, 4)


@each_case(
    ("owner", "properties", "table_has", "is_for"),
    [
        ("sales*", None, {"owner": "sales-eu"}, True),
        ("sales*", None, {"owner": "ads"}, False),
        ("*", None, {}, False),
        (None, {"tier": "gold"}, {"tier": "gold"}, True),
        (None, {"tier": "gold"}, {"tier": "golden"}, False),
        ("a", {"tier": "g*"}, {"owner": "a", "tier": "gold"}, True),
        ("a", {"tier": "g*"}, {"owner": "a"}, False),
    ],
)
def test_conditions_all_have_to_hold(
    owner: str | None, properties: Mapping[str, str] | None, table_has: Mapping[str, str], *, is_for: bool
) -> None:
    found = RuleIndex([rule("a", owner=owner, properties=properties)]).concerning(ORDERS, table_has)
    assert bool(found) is is_for


def test_a_condition_is_more_specific_than_none_and_less_than_a_name() -> None:
    plain, asked, named = (
        rule("a", "auto", "lake.sales.*"),
        rule("b", "auto", "lake.sales.*", owner="x"),
        rule("c", "auto", "lake.sales.orders"),
    )
    found = RuleIndex([plain, asked, named]).concerning(ORDERS, {"owner": "x"})
    assert [one.rule.name for one in found] == ["c", "b", "a"]


WRONG = [
    (rule("a b"), ("rules", 0, "name"), "cannot be the name"),
    (rule("a", "often"), ("rules", 0, "settings", MODE), "is not observe, approve or auto"),
    (rule("a", "1", key="icewright.moode"), ("rules", 0, "settings", "icewright.moode"), "there is no setting"),
    (rule("a", "auto", "lake.x"), ("rules", 0, "match", "tables", 0), "no full name"),
    (rule("a", priority=10**7), ("rules", 0, "priority"), "beyond"),
    (NamedRule("a", RuleMatch(()), {MODE: "auto"}), ("rules", 0, "match", "tables"), "no pattern"),
    (NamedRule("a", RuleMatch(("**",)), {}), ("rules", 0, "settings"), "sets nothing"),
    (rule("a", properties={"s3.secret": "x"}), ("rules", 0, "match", "properties", "s3.secret"), "may be a secret"),
    (rule("a", owner=""), ("rules", 0, "match", "owner"), "1 to"),
    (rule("a", owner="x", properties={"owner": "y"}), ("rules", 0, "match", "owner"), "twice"),
]


@each_case(("wrong", "path", "said"), WRONG)
def test_what_is_wrong_is_told_where_it_is(wrong: NamedRule, path: tuple[str | int, ...], said: str) -> None:
    found = list(faults(Policies((wrong,))))
    assert [(fault.path, said in fault.text, bool(fault.hint)) for fault in found] == [(path, True, True)]
    with pytest.raises(InvalidConfiguration):
        check_policies(Policies((wrong,)))


def test_two_rules_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidConfiguration, match="there are two rules a"):
        check_policies(Policies((rule("a"), rule("a", "observe"))))


def test_e1_o6_x1_a_rule_lowers_no_floor_that_a_table_property_could_not() -> None:
    texts = ("0", "-1", "P0D", "PT1S", "yes", "", "1e9", "99999999999999999999")
    for_each(product(sorted(BY_KEY), texts), counts_as_a_table_property)


def counts_as_a_table_property(case: tuple[str, str]) -> None:
    """Whatever is refused of a table's own property is refused of a rule; and what is left counts the same."""
    key, text = case
    own = policy_of(ORDERS, {key: text}, ())
    refused = bool(list(faults(Policies((rule("a", text, key=key),)))))
    assert refused is bool(own.problems)
    if not refused:
        ruled = policy_of(ORDERS, {}, (rule("a", text, key=key),))
        assert [getattr(ruled, one.field) for one in SETTINGS] == [getattr(own, one.field) for one in SETTINGS]


def test_who_is_overruled_is_told_with_the_reason() -> None:
    rules = (
        rule("a", "approve", "lake.sales.*"),
        rule("b", "observe", "lake.**"),
        rule("c", "auto", "**", priority=-1),
        PolicyRule("lake", (), {MODE: "auto"}),
    )
    (found,) = (win for win in wins(ORDERS, {}, rules) if win.key == MODE)
    assert (found.value, found.origin, found.pattern) == ("approve", "rule a", "lake.sales.*")
    assert [(one.origin, one.value, one.why) for one in found.over] == [
        ("rule b", "observe", "lake.** says less of the table than lake.sales.*"),
        ("rule c", "auto", "its priority -1 is below 0"),
        ("catalog lake", "auto", "rules of policy files are above those of the configuration"),
    ]
    (own,) = (win for win in wins(ORDERS, {MODE: "observe"}, rules) if win.key == MODE)
    assert {one.why for one in own.over} == {"a table's own property is above every rule"}
