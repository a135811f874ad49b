"""Which rules of policy files concern a table, in which order they count, and what is wrong with them.

Of rules that set the same for a table the higher priority wins, then the pattern that says more of the name, then the
name that comes first by code points. So there is always one that wins, whatever order files and rules are in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Final, overload

from icewright.core import wording
from icewright.core.errors import InvalidConfiguration, InvalidName
from icewright.model.access.redacted_text import names_a_secret
from icewright.model.iceberg.names import TableName
from icewright.model.policy.policies import (
    GROUPS_MAX,
    NAME_LENGTH_MAX,
    OWNER_KEY,
    PATTERNS_MAX,
    PRIORITY_MAX,
    TEXT_LENGTH_MAX,
    NamedRule,
    Policies,
    Rule,
    RuleMatch,
)
from icewright.model.policy.policy import Enforced, PolicyRule
from icewright.policy.groups.text import group_fault
from icewright.policy.rules.name_patterns import Specificity, glob, name_pattern
from icewright.policy.rules.pattern_index import PatternIndex
from icewright.policy.settings import BY_KEY, value_problem

_NAME: Final = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{NAME_LENGTH_MAX - 1}}}", re.ASCII)
_CONDITIONS_MAX: Final = 20
_ALL: Final = "`icewright policy schema` lists all settings, and what each of them means"
NAME_ALLOWED: Final = "letters, digits, `.`, `_` and `-`, beginning with a letter or a digit"


@dataclass(frozen=True, slots=True)
class Concerning:
    """A rule that concerns a table, with the pattern by which it does, and how specific that is."""

    rule: NamedRule
    pattern: str
    specificity: Specificity


class RuleIndex(Sequence[Rule]):
    """Rules in the order in which they were given; those for a table are found without a look at all the others."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        """Raises :class:`~icewright.core.errors.InvalidName` for a pattern that is none."""
        self._rules = tuple(rules)
        self._named = PatternIndex(
            (pattern, (number, pattern.specificity, text))
            for number, rule in enumerate(self._rules)
            if isinstance(rule, NamedRule)
            for text, pattern in ((text, name_pattern(text)) for text in rule.match.tables)
        )
        self._configured: dict[tuple[str, ...], list[PolicyRule]] = {}
        for rule in self._rules:
            if isinstance(rule, PolicyRule):
                self._configured.setdefault((rule.catalog, *rule.namespace), []).append(rule)

    @overload
    def __getitem__(self, index: int) -> Rule: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Rule]: ...

    def __getitem__(self, index: int | slice) -> Rule | Sequence[Rule]:
        """As of a tuple."""
        return self._rules[index]

    def __len__(self) -> int:
        """As of a tuple."""
        return len(self._rules)

    def may_concern(self, name: TableName) -> bool:
        """Whether a rule of a policy file has a pattern for that name, whatever it asks besides."""
        return bool(self._named.matches(name))

    def concerning(self, name: TableName, properties: Mapping[str, str]) -> list[Concerning]:
        """The rules of policy files that concern a table, the one that wins first."""
        hits: dict[int, list[tuple[Specificity, str]]] = {}
        for number, specificity, text in self._named.matches(name):
            hits.setdefault(number, []).append((specificity, text))
        found = []
        for number in sorted(hits):
            rule, (specificity, text) = self._rules[number], max(hits[number])
            if isinstance(rule, NamedRule) and _are_met(wanted := conditions(rule.match), properties):
                found.append(Concerning(rule, text, replace(specificity, conditions=len(wanted))))
        found.sort(key=lambda one: one.rule.name)
        found.sort(key=lambda one: (one.rule.priority, one.specificity), reverse=True)  # stable: names break ties
        return found

    def configured(self, name: TableName) -> list[PolicyRule]:
        """The rules of the configuration that are for a table, that of the deepest namespace first."""
        parts = (name.catalog, *name.namespace)
        return [rule for end in range(len(parts), 0, -1) for rule in self._configured.get(parts[:end], ())]


def _are_met(wanted: Mapping[str, str], properties: Mapping[str, str]) -> bool:
    return all(key in properties and glob(text).matches(properties[key]) for key, text in wanted.items())


def conditions(match: RuleMatch) -> Mapping[str, str]:
    """The properties that a rule asks of a table, its owner among them."""
    return dict(match.properties) if match.owner is None else {**match.properties, OWNER_KEY: match.owner}


@dataclass(frozen=True, slots=True)
class RuleFault:
    """Something that is wrong with policies; ``path`` leads to it: ``("rules", 2, "settings", "icewright.mode")``."""

    path: tuple[str | int, ...]
    text: str
    hint: str = ""


def check_policies(policies: Policies) -> None:
    """Raises :class:`InvalidConfiguration` for the first thing that is wrong."""
    for fault in faults(policies):
        path = ".".join(wording.name(str(step)) for step in fault.path)
        raise InvalidConfiguration(f"{path}: {fault.text}", hint=fault.hint)


def faults(policies: Policies) -> Iterator[RuleFault]:
    """Everything that is wrong with policies, rule by rule."""
    yield from _of_groups(policies)
    seen: set[str] = set()
    for number, rule in enumerate(policies.rules):
        head = ("rules", number)
        yield from _of_name(rule, head, seen)
        yield from _of_match(rule.match, (*head, "match"))
        if not -PRIORITY_MAX <= rule.priority <= PRIORITY_MAX:
            yield RuleFault((*head, "priority"), f"{rule.priority} is beyond {PRIORITY_MAX:,}", "0 is the middle")
        if rule.enforce is not Enforced.NO and conditions(rule.match):
            text = "an enforced rule cannot match properties of tables: who may change these could leave it"
            yield RuleFault((*head, "enforce"), text, "match tables by their names alone")
        if len(rule.note) > TEXT_LENGTH_MAX:
            yield RuleFault((*head, "note"), f"longer than {TEXT_LENGTH_MAX:,} characters", "keep it short")
        yield from _of_settings(rule.settings, (*head, "settings"))


def _of_groups(policies: Policies) -> Iterator[RuleFault]:
    if len(policies.groups) > GROUPS_MAX:
        yield RuleFault(("groups",), f"more than {GROUPS_MAX} resource groups", "several tables may share one")
    names: set[str] = set()
    for group in policies.groups:
        fault = group_fault(group)
        if fault is not None:
            yield RuleFault(("groups", group.name), fault, "write it as in the documentation of the queue")
        if group.name in names:
            yield RuleFault(("groups", group.name), f"there are two resource groups {group.name}", "make them one")
        names.add(group.name)


def _of_name(rule: NamedRule, head: tuple[str | int, ...], seen: set[str]) -> Iterator[RuleFault]:
    if not _NAME.fullmatch(rule.name):
        text = f"{wording.quoted(rule.name)} cannot be the name of a rule"
        yield RuleFault((*head, "name"), text, f"use {NAME_ALLOWED}, at most {NAME_LENGTH_MAX} characters")
    elif rule.name in seen:
        yield RuleFault((*head, "name"), f"there are two rules {rule.name}", "give one of them another name")
    seen.add(rule.name)


def _of_match(match: RuleMatch, head: tuple[str | int, ...]) -> Iterator[RuleFault]:
    if not match.tables:
        yield RuleFault((*head, "tables"), "no pattern, so the rule is for no table", "`**` is for all tables")
    if len(match.tables) > PATTERNS_MAX:
        yield RuleFault((*head, "tables"), f"more than {PATTERNS_MAX} patterns", "make two rules of it")
        return
    for number, text in enumerate(match.tables):
        try:
            name_pattern(text)
        except InvalidName as error:
            yield RuleFault((*head, "tables", number), error.message, error.hint)
    yield from _of_conditions(match, head)


def _of_conditions(match: RuleMatch, head: tuple[str | int, ...]) -> Iterator[RuleFault]:
    if len(match.properties) > _CONDITIONS_MAX:
        yield RuleFault((*head, "properties"), f"more than {_CONDITIONS_MAX} properties", "make the rule simpler")
    if match.owner is not None and OWNER_KEY in match.properties:
        yield RuleFault((*head, "owner"), "owner is said twice: it is the property owner", "leave one of them out")
    texts = {(*head, "properties", key): value for key, value in match.properties.items()}
    if match.owner is not None:
        texts[*head, "owner"] = match.owner
    for path, value in texts.items():
        key = str(path[-1])
        if names_a_secret(key):
            text = f"{wording.quoted(key)} may be a secret, which is neither kept nor compared"
            yield RuleFault(path, text, "match by another property")
        elif not value or len(value) > TEXT_LENGTH_MAX:
            yield RuleFault(path, f"expected a text of 1 to {TEXT_LENGTH_MAX:,} characters", "`*` is for any value")


def _of_settings(settings: Mapping[str, str], head: tuple[str | int, ...]) -> Iterator[RuleFault]:
    if not settings:
        yield RuleFault(head, "the rule sets nothing", _ALL)
    for key, value in settings.items():
        setting = BY_KEY.get(key)
        if setting is None:
            yield RuleFault((*head, key), f"there is no setting {wording.quoted(key)}", _meant(key))
        elif len(value) > TEXT_LENGTH_MAX:
            yield RuleFault((*head, key), f"longer than {TEXT_LENGTH_MAX:,} characters", f"allowed: {setting.allowed}")
        elif (problem := value_problem(setting, value)) is not None:
            yield RuleFault((*head, key), problem, _ALL)


def _meant(key: str) -> str:
    close = get_close_matches(key[:NAME_LENGTH_MAX], BY_KEY, n=1)
    return f"perhaps {close[0]} is meant" if close else _ALL
