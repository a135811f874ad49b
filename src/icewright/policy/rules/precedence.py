"""Which rule wins for each setting of a table, and why the others do not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from icewright.model.iceberg.names import TableName
from icewright.model.policy.policies import Rule
from icewright.model.policy.policy import Enforced, PolicyRule
from icewright.model.policy.setting_values import value_text
from icewright.policy.effective import DEFAULT_ORIGIN, Layer, layers_of, policy_of, saying
from icewright.policy.rules.named_rules import Concerning
from icewright.policy.settings import SETTINGS


@dataclass(frozen=True, slots=True)
class Overruled:
    """Somebody who sets a setting as well, and why that does not count."""

    origin: str
    value: str
    why: str


@dataclass(frozen=True, slots=True)
class Win:
    """A setting of a table: its value, who says so, and who is overruled by that.

    ``value`` is as it is used, None where there is none; ``pattern`` is the one by which a rule of a policy file is
    for the table.
    """

    key: str
    value: str | None
    origin: str
    pattern: str | None
    over: tuple[Overruled, ...]

    @property
    def is_default(self) -> bool:
        """Whether not set."""
        return self.origin == DEFAULT_ORIGIN


def wins(name: TableName, properties: Mapping[str, str], rules: Sequence[Rule]) -> tuple[Win, ...]:
    """Every setting of a table of that name, with these properties."""
    layers, policy = layers_of(name, properties, rules), policy_of(name, properties, rules)
    found = []
    for setting in SETTINGS:
        speaking = saying(setting.key, layers)
        value = getattr(policy, setting.field)
        found.append(
            Win(
                setting.key,
                None if value is None else value_text(setting, value),
                policy.origins[setting.key],
                speaking[0].source.pattern if speaking and isinstance(speaking[0].source, Concerning) else None,
                tuple(_overruled(setting.key, speaking)),
            )
        )
    return tuple(found)


def _overruled(key: str, speaking: Sequence[Layer]) -> Iterator[Overruled]:
    for layer in speaking[1:]:
        yield Overruled(layer.origin, layer.properties[key], why(speaking[0], layer))


def why(winner: Layer, loser: Layer) -> str:  # noqa: PLR0911 - one for each case
    """Why one is above the other, as a sentence about the loser."""
    match winner.source, loser.source:
        case _ if winner.enforced is not Enforced.NO and loser.enforced is Enforced.NO:
            return "the rule above it is enforced"
        case None, _ if loser.enforced is Enforced.YES:
            return "the table opts out, which an enforced rule leaves alone unless it overrides opt-outs"
        case None, _:
            return "a table's own property is above every rule"
        case Concerning() as one, Concerning() as other:
            return _why_among_named(one, other)
        case Concerning(), PolicyRule():
            return "rules of policy files are above those of the configuration"
        case PolicyRule() as one, PolicyRule() as other if len(one.namespace) > len(other.namespace):
            return "the rule of a deeper namespace is above it"
        case _:
            return "it says something else for the same tables: neither counts"


def _why_among_named(one: Concerning, other: Concerning) -> str:
    if one.rule.priority != other.rule.priority:
        return f"its priority {other.rule.priority} is below {one.rule.priority}"
    if one.specificity != other.specificity:
        return f"{_said(other)} says less of the table than {_said(one)}"
    return f"its name comes after {one.rule.name}, and nothing else orders them"


def _said(one: Concerning) -> str:
    conditions = one.specificity.conditions
    more = "" if not conditions else f" with {conditions} {'condition' if conditions == 1 else 'conditions'}"
    return f"{one.pattern}{more}"
