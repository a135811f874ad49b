"""The rules for a table are found without a look at all others, and are those that a look at all of them finds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.model.iceberg.names import TableId, TableName, quote_part
from icewright.model.policy.policies import NamedRule, Policies, Rule, RuleMatch
from icewright.model.policy.policy import PolicyRule
from icewright.policy.effective import policy_of
from icewright.policy.rules.difference import Comparison
from icewright.policy.rules.name_patterns import NamePattern, glob, name_pattern
from icewright.policy.rules.named_rules import Concerning, RuleIndex, check_policies, conditions
from icewright.policy.rules.pattern_index import PatternIndex
from tests.cases import each_case

MODE = "icewright.mode"
MANY = 10_000

WORDS = ("a", "b", "aa", "*")
OF_CASES = ("A", "a", "Ä")
NAMES = [
    TableName(first, tuple(more), last)
    for words, parts in ((WORDS, 3), (WORDS, 4), (OF_CASES, 3))
    for first, *more, last in product(words, repeat=parts)
]
GLOBS = st.sampled_from([*map(quote_part, WORDS), *OF_CASES, "*", "a*", "aa*", "A*", "*a", "*b", "*Ä", "ä*"])


@st.composite
def patterns(draw: st.DrawFn) -> str:
    """Of all shapes that there are; many are for the same few names."""
    parts = draw(st.lists(GLOBS, min_size=3, max_size=5))
    if draw(st.booleans()):
        parts = parts[: draw(st.integers(0, 4))]
        parts.insert(draw(st.integers(0, len(parts))), "**")
    return ".".join(parts)


MATCHES = st.builds(
    RuleMatch,
    st.lists(patterns(), min_size=1, max_size=3).map(tuple),
    st.sampled_from([None, "x", "*"]),
    st.sampled_from([{}, {"tier": "g*"}]),
)
NAMED = st.builds(
    NamedRule, st.sampled_from("abcd"), MATCHES, st.just({MODE: "auto"}), st.integers(-1, 1)
)  # names may be there twice: such rules are refused, and found in the order in which they are given
CONFIGURED = st.builds(
    PolicyRule, st.sampled_from("ab"), st.lists(st.sampled_from("ab"), max_size=3).map(tuple), st.just({MODE: "auto"})
)
RULES: st.SearchStrategy[list[Rule]] = st.lists(st.one_of(NAMED, NAMED, CONFIGURED), max_size=12)


def concerning(rules: Sequence[Rule], name: TableName, properties: Mapping[str, str]) -> list[Concerning]:
    """Each rule is looked at: the plainest statement of which concern a table, and in which order they count."""
    found = []
    for rule in rules:
        if not isinstance(rule, NamedRule):
            continue
        each = [(name_pattern(text), text) for text in rule.match.tables]
        hits = [(pattern.specificity, text) for pattern, text in each if pattern.matches(name)]
        wanted = conditions(rule.match)
        if hits and all(key in properties and glob(wanted[key]).matches(properties[key]) for key in wanted):
            specificity, text = max(hits)
            found.append(Concerning(rule, text, replace(specificity, conditions=len(wanted))))
    found.sort(key=lambda one: one.rule.name)
    found.sort(key=lambda one: (one.rule.priority, one.specificity), reverse=True)
    return found


def configured(rules: Sequence[Rule], name: TableName) -> list[PolicyRule]:
    found = [
        rule
        for rule in rules
        if isinstance(rule, PolicyRule)
        and rule.catalog == name.catalog
        and name.namespace[: len(rule.namespace)] == rule.namespace
    ]
    return sorted(found, key=lambda rule: -len(rule.namespace))


@given(RULES, st.sampled_from([{}, {"owner": "x"}, {"owner": "y", "tier": "gold"}]))
def test_what_is_found_is_what_a_look_at_all_rules_finds(rules: list[Rule], properties: dict[str, str]) -> None:
    index = RuleIndex(rules)
    for name in NAMES:
        assert index.concerning(name, properties) == concerning(rules, name, properties)
        assert index.configured(name) == configured(rules, name)
        assert index.may_concern(name) is any(
            name_pattern(text).matches(name)
            for rule in rules
            if isinstance(rule, NamedRule)
            for text in rule.match.tables
        )
    assert (list(index), len(index)) == (rules, len(rules))
    assert policy_of(NAMES[0], properties, index) == policy_of(NAMES[0], properties, rules)


@given(st.lists(patterns(), min_size=10, max_size=20))
def test_every_pattern_that_matches_is_found_once(texts: list[str]) -> None:
    each = [name_pattern(text) for text in texts]
    index = PatternIndex(zip(each, range(len(each)), strict=True))
    for name in NAMES:
        assert sorted(index.matches(name)) == [number for number, one in enumerate(each) if one.matches(name)]


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[NamePattern]:
    """Every pattern that is compared with a name."""
    found: list[NamePattern] = []
    matches = NamePattern.matches

    def noted(self: NamePattern, name: TableName) -> bool:
        found.append(self)
        return matches(self, name)

    monkeypatch.setattr(NamePattern, "matches", noted)
    return found


def rules_of(shapes: Iterable[str]) -> list[NamedRule]:
    each = list(shapes)
    return [
        NamedRule(f"r{number}", RuleMatch((each[number % len(each)].format(number),)), {MODE: "auto"})
        for number in range(MANY)
    ]


SHAPES = [
    ("lake.sales.t{}",),
    ("lake.sales.t{}", "lake.sales.t{}_*", "lake.n{}.*", "lake.n{}.**", "lake.*.t{}", "*.sales.t{}", "**.t{}"),
]


@each_case(("shapes",), SHAPES)
def test_of_many_rules_for_one_table_or_namespace_each_a_handful_is_compared(
    shapes: tuple[str, ...], compared: list[NamePattern]
) -> None:
    rules = rules_of(shapes)
    check_policies(Policies(tuple(rules)))  # there may be as many
    index = RuleIndex(rules)
    for number in (0, 7, 5_432, MANY - 1):
        for name in (
            TableName("lake", ("sales",), f"t{number}"),
            TableName("lake", ("sales",), f"t{number}_x"),
            TableName("lake", (f"n{number}",), "any"),
            TableName("lake", (f"n{number}", "deeper"), "any"),
            TableName("lake", ("n", "sales"), f"x{number}"),
        ):
            compared.clear()
            index.concerning(name, {})
            assert len(compared) <= len(shapes) + 1
    assert index.concerning(TableName("lake", (f"n{MANY}",), "t"), {}) == []


def test_those_that_begin_and_end_with_a_star_are_compared_with_every_name(compared: list[NamePattern]) -> None:
    wide = [NamedRule(f"w{number}", RuleMatch((f"*.n{number}.*",)), {MODE: "auto"}) for number in range(3)]
    index = RuleIndex([*rules_of(("lake.sales.t{}",)), *wide])
    found = index.concerning(TableName("lake", ("n1",), "t"), {})
    assert [one.rule.name for one in found] == ["w1"]
    assert len(compared) == 3


def test_a_preview_of_many_rules_compares_a_handful_for_each_table(compared: list[NamePattern]) -> None:
    after = rules_of(("lake.sales.t{}", "lake.n{}.**"))[:2_000]
    comparison = Comparison(Policies(()), Policies(tuple(after)), ())
    tables = 10
    for number in range(0, 2 * tables, 2):
        comparison.add(TableId("lake", str(number)), TableName("lake", ("sales",), f"t{number}"), {})
    assert len(compared) <= 6 * tables
    difference = comparison.difference(0)
    assert (difference.tables_changed, len(comparison.affected)) == (tables, tables)
    assert sum(change.tables for change in difference.rules) == tables
    assert sum(warning.code == "matches-nothing" for warning in difference.warnings) == len(after) - tables
