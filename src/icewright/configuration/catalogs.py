"""``[[catalogs]]`` and ``[[policies]]`` as the domain's catalog entries and policy rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from icewright.catalogs.pyiceberg_settings import check_entry
from icewright.config import layers, values
from icewright.config.layers import Given, Key, dotted
from icewright.config.settings import CATALOG, CATALOG_NAME, MODE, POLICY_MODE_KEY
from icewright.core.errors import InvalidConfiguration, InvalidName
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.names import split_parts
from icewright.model.policy.policy import Enforced, PolicyRule
from icewright.policy.effective import rule_origin, rule_problems

_POLICY_KEYS = ("catalog", "namespace", "mode", "properties", "enforce")


def catalog_names(given: Mapping[Key, Given]) -> tuple[str, ...]:
    """The names of the catalogs that are spoken of, in the order of their first mention."""
    return tuple(dict.fromkeys(key[1] for key in given if key[0] == "catalogs"))


def entry(given: Mapping[Key, Given], name: str) -> tuple[CatalogEntry, PolicyRule | None]:
    """One catalog, and the rule of its ``mode`` and ``policy``. Raises ``InvalidConfiguration``."""
    head = ("catalogs", name)
    origin = next(item.origin for key, item in given.items() if key[:2] == head)
    if not CATALOG_NAME.match(name):
        raise InvalidConfiguration(f"{origin}: {dotted(head)}: not a catalog name", hint="letters, digits, _ and -")
    found = {setting.key: values.value(given, head, setting) for setting in CATALOG}
    built = CatalogEntry(
        name,
        CatalogKind(found["type"]),
        found["uri"],
        found["warehouse"] or "",
        found["properties"],
        found["aliases"],
        found["roots"],
        found["quarantine"],
    )
    check_entry(built, origin)
    properties = _with_mode(found["mode"], found["policy"], f"{origin}: {dotted(head)}")
    rule = PolicyRule(name, (), properties) if properties else None
    if rule is not None:
        _check_rule(rule, origin)
    return built, rule


def policies(data: Mapping[str, Any], origin: str, catalogs: Sequence[CatalogEntry]) -> tuple[PolicyRule, ...]:
    """The rules for namespaces. Raises ``InvalidConfiguration``."""
    rules: dict[tuple[str, tuple[str, ...]], PolicyRule] = {}
    for index, table in enumerate(layers.array_of_tables(data, "policies", origin)):
        where = f"{origin}: policies[{index}]"
        unknown = sorted(table.keys() - set(_POLICY_KEYS))
        if unknown:
            raise InvalidConfiguration(f"{where}: unknown key {unknown[0]}", hint=f"known: {', '.join(_POLICY_KEYS)}")
        catalog = table.get("catalog")
        known = [one.name for one in catalogs]
        if catalog not in known:
            hint = f"known: {', '.join(known)}" if known else "name it under [[catalogs]]"
            raise InvalidConfiguration(f"{where}.catalog: there is no catalog {catalog!r}", hint=hint)
        namespace = _namespace(table.get("namespace"), where)
        mode = table.get("mode")
        if mode is not None and not (isinstance(mode, str) and MODE.accepts(mode)):
            raise InvalidConfiguration(f"{where}.mode: {mode!r} is not allowed", hint=f"allowed: {MODE.allowed}")
        properties = dict(layers.strings(("policies", "properties"), table.get("properties", {}), origin))
        enforce = table.get("enforce", False)
        said = str(enforce).lower() if isinstance(enforce, bool) else enforce
        if said not in tuple(Enforced):
            raise InvalidConfiguration(f"{where}.enforce: {enforce!r} is not allowed", hint=f"{', '.join(Enforced)}")
        rule = PolicyRule(str(catalog), namespace, _with_mode(mode, properties, where), Enforced(said))
        if (rule.catalog, namespace) in rules:
            raise InvalidConfiguration(f"{where}: there are two policies for {rule_origin(rule)}")
        _check_rule(rule, origin)
        rules[rule.catalog, namespace] = rule
    return tuple(rules.values())


def rule_origins(rules: Iterable[PolicyRule], origin: str) -> dict[str, str]:
    """Where the settings of ``[[policies]]`` come from, by dotted key."""
    return {rule_key(rule, name): origin for rule in rules for name in rule.properties}


def rule_key(rule: PolicyRule, name: str) -> str:
    """A setting of a rule for people: ``policies.lake.sales.icewright.mode``."""
    if not rule.namespace:
        return dotted(("catalogs", rule.catalog, "policy", name))
    return dotted(("policies", rule_origin(rule).removeprefix("namespace "), name))


def _namespace(found: Any, where: str) -> tuple[str, ...]:
    if isinstance(found, list) and found and all(isinstance(part, str) and part for part in found):
        return tuple(found)
    try:
        return tuple(split_parts(found)) if isinstance(found, str) else _no_namespace(where, found)
    except InvalidName as error:
        raise InvalidConfiguration(f"{where}.namespace: {error.message}") from error


def _no_namespace(where: str, found: Any) -> tuple[str, ...]:
    raise InvalidConfiguration(
        f"{where}.namespace: expected a name, found {found!r}",
        hint='write namespace = "a.b" or namespace = ["a", "b"]; a whole catalog has mode and policy in [[catalogs]]',
    )


def _with_mode(mode: str | None, properties: Mapping[str, str], where: str) -> dict[str, str]:
    """``mode = ...`` is short for the property ``icewright.mode``; both at once would be one too many."""
    if mode is None:
        return dict(properties)
    if POLICY_MODE_KEY in properties:
        raise InvalidConfiguration(f"{where}: mode and {POLICY_MODE_KEY} say the same thing; keep one of them")
    return {POLICY_MODE_KEY: mode, **properties}


def _check_rule(rule: PolicyRule, origin: str) -> None:
    for problem in rule_problems(rule):
        raise InvalidConfiguration(f"{origin}: {rule_key(rule, problem.key)}: {problem.problem}")
