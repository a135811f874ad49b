"""The effective policy of a table: its own properties over the rules of policy files over those of the configuration.

Rules that are enforced are above the properties of the table, but where these opt out.

Of the latter, namespace rules are over the catalog's rule, and that is over defaults; in which order rules of policy
files count is in :mod:`icewright.policy.rules.named_rules`.

Each setting is looked up by itself, in the deepest layer that has it. Nothing is guessed: an unknown key or an
invalid value in *any* layer that concerns the table becomes a :class:`PolicyProblem`, and then nothing is done to the
table; in particular the value of the next lower layer does not step in for an invalid one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from icewright.core import wording
from icewright.model.actions.undo import SIGNATURE_KEY
from icewright.model.iceberg.layouts import LayoutExpression
from icewright.model.iceberg.names import TableName, quote_part
from icewright.model.iceberg.predicates.cuts import CutTree
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.policy.policies import Rule
from icewright.model.policy.policy import MODE_KEY, PREFIX, Enforced, Mode, Policy, PolicyProblem, PolicyRule, Trigger
from icewright.model.queries.queries import LOG_PREFIX
from icewright.model.work.history import END_KEY, FIELDS_KEY
from icewright.plans.consumers import CONSUMER_PREFIX, consumer_problem
from icewright.policy.rules.named_rules import Concerning, RuleIndex
from icewright.policy.settings import BY_KEY, SCANS_KEY, SETTINGS, TRIGGER_KEY, value_problem

DEFAULT_ORIGIN = "default"
TABLE_ORIGIN = "table property"
QUERIES_A_WEEK = 50
"""Fewer do not tell how often a table is read: perhaps not all engines say so."""
KNOWN_WEEKS = 8
"""How far back weeks are looked at: what was decided before is forgotten."""
_DAY_MS = 86_400_000
_KEY_LENGTH_MAX = 100  # longer ones are nobody's typing error
_HINTS_MAX = 20
"""For how many unknown settings of one layer a known one is looked for that is spelt alike."""
_NOTES = frozenset({SIGNATURE_KEY, END_KEY, FIELDS_KEY})
"""What icewright itself notes in properties of tables: nobody's wish."""


@dataclass(frozen=True, slots=True)
class Layer:
    """What one place says of a table: its own properties, or a rule that concerns it."""

    origin: str
    properties: Mapping[str, str]
    source: PolicyRule | Concerning | None = None
    """The rule; None for the table itself."""

    @property
    def enforced(self) -> Enforced:
        """Whether it is above the properties of tables."""
        match self.source:
            case Concerning() as one:
                return one.rule.enforce
            case PolicyRule() as rule:
                return rule.enforce
            case None:
                return Enforced.NO


def effective_policy(metadata: TableMetadata, rules: Sequence[Rule]) -> Policy:
    """What the owner wants of this table. See :func:`policy_of`."""
    return policy_of(metadata.name, metadata.properties, rules)


def policy_of(name: TableName, properties: Mapping[str, str], rules: Sequence[Rule]) -> Policy:
    """What the owner wants of a table of that name, with these properties.

    ``rules`` may be those of all catalogs, in any order; of two of the configuration for the same namespace that
    disagree, neither wins: that is a problem, too. With problems in a setting its default is in the policy, and
    ``origins`` says so.
    """
    layers = layers_of(name, properties, rules)
    problems = [*_contradictions(layers)]
    for layer in layers:
        problems.extend(_layer_problems(layer, every_key=layer.origin != TABLE_ORIGIN))
    invalid = {problem.key for problem in problems}
    said = {key for layer in layers for key in layer.properties}
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for setting in SETTINGS:
        speaking = saying(setting.key, layers) if setting.key in said else []
        found = next(iter(speaking), None)
        if setting.key in invalid:
            values[setting.field], origins[setting.key] = setting.default, f"{DEFAULT_ORIGIN} (the value is invalid)"
        elif found is None:
            values[setting.field], origins[setting.key] = setting.default, DEFAULT_ORIGIN
        else:
            values[setting.field] = setting.parse(found.properties[setting.key])
            origins[setting.key] = _origin(setting.key, speaking)
    values["layout"] = with_cuts(values["layout"], values["layout_cuts"])
    return Policy(**values, origins=origins, problems=tuple(problems))


def with_cuts(layout: LayoutExpression | None, tree: CutTree | None) -> LayoutExpression | None:
    """A layout with the tree that it names, if that is this one."""
    if layout is None or tree is None or layout.cuts_id != tree.id:
        return layout
    return LayoutExpression.by_cuts(tree)


def are_queries_known(weeks: Sequence[int]) -> bool:
    """Whether enough queries of a table are counted to go by them, from how many there were in each week.

    The weeks are the latest ones, the last of them has not ended. One with :data:`QUERIES_A_WEEK` is enough, and stays
    so until two weeks that have ended have fewer together. In between the answer is what it was: a table near the bound
    changes its trigger a few times a year and not every week, and days of the week do not count, since no week is
    judged to have too few before it has ended.
    """
    known, before = False, 0
    for queries in weeks[:-1]:
        known = queries >= QUERIES_A_WEEK or (known and queries + before >= QUERIES_A_WEEK)
        before = queries
    return known or (bool(weeks) and weeks[-1] >= QUERIES_A_WEEK)


def with_known_queries(policy: Policy, weeks: Sequence[int], span_ms: int) -> Policy:
    """The policy of a table of which so many queries were counted in the latest weeks, the last of which goes on.

    Where they are known well enough (:func:`are_queries_known`), its trigger is cost-benefit where nothing names one,
    with as many scans a day as there were queries where nothing says how many: in the last two weeks, of which
    ``span_ms`` have passed.
    """
    origins = policy.origins
    if span_ms <= 0 or origins[TRIGGER_KEY] != DEFAULT_ORIGIN or not are_queries_known(weeks):
        return policy
    queries = sum(weeks[-2:])
    scans_per_day, said = queries * _DAY_MS / span_ms, f"default for {queries:,} counted queries"
    if origins[SCANS_KEY] != DEFAULT_ORIGIN:
        return replace(policy, trigger=Trigger.COST_BENEFIT, origins={**origins, TRIGGER_KEY: said})
    origins = {**origins, TRIGGER_KEY: said, SCANS_KEY: "counted queries"}
    return replace(policy, trigger=Trigger.COST_BENEFIT, scans_per_day=scans_per_day, origins=origins)


def _origin(key: str, speaking: Sequence[Layer]) -> str:
    """Where a value comes from, for people; an enforced rule says which property of the table it overrules."""
    winner = speaking[0]
    if winner.enforced is Enforced.NO:
        return winner.origin
    own = next((layer.properties[key] for layer in speaking if layer.source is None), None)
    over = "" if own is None else f"; the table property {wording.quoted(own)} is overruled"
    return f"{winner.origin} (enforced{over})"


def rule_problems(rule: PolicyRule) -> tuple[PolicyProblem, ...]:
    """What is wrong with one rule of the configuration, to be told at start rather than on each table."""
    return tuple(_layer_problems(Layer(rule_origin(rule), rule.properties), every_key=True))


def rule_origin(rule: PolicyRule) -> str:
    """Where a rule's values come from, for people: ``catalog lake`` or ``namespace lake.sales``."""
    name = ".".join(quote_part(part) for part in (rule.catalog, *rule.namespace))
    return f"namespace {name}" if rule.namespace else f"catalog {name}"


def named_origin(name: str) -> str:
    """As :func:`rule_origin`, of a rule of a policy file."""
    return f"rule {name}"


def layers_of(name: TableName, properties: Mapping[str, str], rules: Iterable[Rule]) -> list[Layer]:
    """What concerns the table, the one that wins first. Of many rules, give a :class:`RuleIndex`: it is made once."""
    index = rules if isinstance(rules, RuleIndex) else RuleIndex(rules)
    of_rules = [
        *(Layer(named_origin(one.rule.name), one.rule.settings, one) for one in index.concerning(name, properties)),
        *(Layer(rule_origin(rule), rule.properties, rule) for rule in index.configured(name)),
    ]
    above = [layer for layer in of_rules if layer.enforced is not Enforced.NO]
    return [*above, Layer(TABLE_ORIGIN, properties), *(layer for layer in of_rules if layer.enforced is Enforced.NO)]


def saying(key: str, layers: Sequence[Layer]) -> list[Layer]:
    """The layers that set a setting, the one that wins first.

    An enforced rule makes nothing happen to a table that opts out of it, unless it says that it is over opt-outs.
    """
    found = [layer for layer in layers if key in layer.properties]
    own = next((layer for layer in found if layer.source is None), None)
    if own is None or found[0].enforced is not Enforced.YES or not opts_out(key, own.properties, found[0].properties):
        return found
    return [own, *(layer for layer in found if layer is not own)]


def opts_out(key: str, own: Mapping[str, str], enforced: Mapping[str, str]) -> bool:
    """Whether a table's own value lets less happen to it than an enforced one: a lower mode, or a kind of work off."""
    if key == MODE_KEY:
        order = [mode.value for mode in (Mode.OBSERVE, Mode.APPROVE, Mode.AUTO)]
        values = own[key].lower(), enforced[key].lower()
        return all(value in order for value in values) and order.index(values[0]) < order.index(values[1])
    return key.startswith(PREFIX) and key.endswith(".enabled") and own[key].lower() == "false"


def _contradictions(layers: Sequence[Layer]) -> Iterator[PolicyProblem]:
    """Where two rules of the configuration for the same namespace say something else."""
    said: dict[tuple[str, str], str] = {}
    for layer in layers:
        if not isinstance(layer.source, PolicyRule):
            continue
        for key, value in layer.properties.items():
            first = said.setdefault((layer.origin, key), value)
            if first != value:
                problem = f"{layer.origin} says both {wording.quoted(first)} and {wording.quoted(value)}"
                yield PolicyProblem(key, value, layer.origin, problem)


def _layer_problems(layer: Layer, *, every_key: bool) -> Iterator[PolicyProblem]:
    """``every_key``: a rule has nothing but settings, while a table has many properties that are not ours."""
    unknown = 0
    for key, value in sorted(layer.properties.items()):
        setting = BY_KEY.get(key)
        if key.startswith(CONSUMER_PREFIX) and not every_key:
            problem = consumer_problem(key, value)
            if problem is not None:
                yield PolicyProblem(key, value, layer.origin, problem)
        elif (key in _NOTES or key.startswith(LOG_PREFIX)) and not every_key:
            continue
        elif setting is not None:
            problem = value_problem(setting, value)
            if problem is not None:
                yield PolicyProblem(key, value, layer.origin, problem)
        elif every_key or key.startswith(PREFIX):
            unknown += 1  # a hint takes a millisecond, and a table may have 10,000 of them
            has_hint = unknown <= _HINTS_MAX and len(key) <= _KEY_LENGTH_MAX
            close = get_close_matches(key, BY_KEY, n=1) if has_hint else []
            text = f"there is no setting {wording.quoted(key)}" + (f"; perhaps {close[0]} is meant" if close else "")
            yield PolicyProblem(key, value, layer.origin, text)
