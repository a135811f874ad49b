"""Cases: what is expected of policies for some tables, kept in git beside them and tested without any table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.policy.policies import Rule
from icewright.model.policy.policy import PolicyProblem
from icewright.model.policy.setting_values import value_text
from icewright.policy.effective import effective_policy, policy_of
from icewright.policy.groups.precedence import GroupSource, GroupWin, group_win
from icewright.policy.rules.precedence import Win, wins
from icewright.policy.settings import BY_KEY, value_problem

NO_VALUE = "none"
"""How a setting without a value is expected."""


@dataclass(frozen=True, slots=True)
class PolicyCase:
    """A table as it may be, and settings that it should have. ``place`` is where the case stands, for people."""

    place: str
    table: TableName
    properties: Mapping[str, str]
    expect: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CaseFailure:
    """A setting that is not as expected, and who says so."""

    key: str
    expected: str
    found: str
    origin: str


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What became of a case: it passed without ``failures`` and ``problems``."""

    place: str
    table: str
    failures: tuple[CaseFailure, ...]
    problems: tuple[PolicyProblem, ...]

    @property
    def passed(self) -> bool:
        """Whether all is as expected."""
        return not self.failures and not self.problems


@dataclass(frozen=True, slots=True)
class TestedSetting:
    """A setting by the rules that are tested, and by those before."""

    win: Win
    before: Win

    @property
    def differs(self) -> bool:
        """Whether its value is another one."""
        return self.win.value != self.before.value


@dataclass(frozen=True, slots=True)
class TestedGroup:
    """The resource group of a table by what is tested, and by what was before."""

    win: GroupWin
    before: GroupWin

    @property
    def differs(self) -> bool:
        """Whether it is another one, or has other caps, windows or shares for the table."""
        return (self.win.name, self.win.group, self.win.tenant) != (
            self.before.name,
            self.before.group,
            self.before.tenant,
        )


@dataclass(frozen=True, slots=True)
class PolicyTest:
    """Which rule wins for each setting of a table, and which definition of its resource group.

    ``revision`` is the one that was applied when it was asked for, None where no server answered; ``from_files`` tells
    whether ``win`` is by files rather than by what is applied.
    """

    table: str
    revision: int | None
    from_files: bool
    settings: tuple[TestedSetting, ...]
    problems: tuple[PolicyProblem, ...]
    group: TestedGroup

    @property
    def is_usable(self) -> bool:
        """Whether nothing that is set is wrong, and somebody defines the group."""
        return not self.problems and self.group.win.group is not None


@dataclass(frozen=True, slots=True)
class Said:
    """All that rules and resource groups say of tables; those that are above others come first."""

    rules: Sequence[Rule]
    groups: tuple[GroupSource, ...]


def policy_test(metadata: TableMetadata, revision: int | None, said: Said, before: Said | None = None) -> PolicyTest:
    """What holds for a table, beside what is so ``before`` it is applied; without that it is applied."""
    name, properties, was = metadata.name, metadata.properties, before or said
    pairs = zip(wins(name, properties, said.rules), wins(name, properties, was.rules), strict=True)
    return PolicyTest(
        str(name),
        revision,
        before is not None,
        tuple(TestedSetting(win, other) for win, other in pairs),
        effective_policy(metadata, said.rules).problems,
        TestedGroup(
            group_win(name, properties, said.rules, said.groups), group_win(name, properties, was.rules, was.groups)
        ),
    )


def expectation_problem(key: str, value: str) -> str | None:
    """Why something cannot be expected, None when it can."""
    if key not in BY_KEY:
        return f"there is no setting {key!r}"
    return None if value == NO_VALUE else value_problem(BY_KEY[key], value)


def run_case(case: PolicyCase, rules: Sequence[Rule]) -> CaseResult:
    """Compare what is expected with what the rules say."""
    policy = policy_of(case.table, case.properties, rules)
    found = {win.key: win for win in wins(case.table, case.properties, rules)}
    return CaseResult(case.place, str(case.table), tuple(_failures(case, found)), policy.problems)


def _failures(case: PolicyCase, found: Mapping[str, Win]) -> Iterator[CaseFailure]:
    for key, expected in case.expect.items():
        setting, win = BY_KEY[key], found[key]
        wanted = None if expected == NO_VALUE and win.value is None else value_text(setting, setting.parse(expected))
        if win.value != wanted:
            yield CaseFailure(key, expected, NO_VALUE if win.value is None else win.value, win.origin)
