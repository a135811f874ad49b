"""Policy files: YAML that people keep in git, read into rules; what is wrong is told with file, line and column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from icewright.core import wording
from icewright.core.errors import InvalidConfiguration, InvalidResourceGroup
from icewright.model.policy.policies import NamedRule, Policies, RuleMatch
from icewright.model.policy.policy import Enforced
from icewright.model.policy.resource_groups import ResourceGroup
from icewright.policy.groups.text import Written, group_of
from icewright.policy.rules.named_rules import faults
from icewright.policy.rules.yaml_tree import Fields, Items, Node, Place, Text, read_yaml

VERSION: Final = "1"
SUFFIXES: Final = (".yaml", ".yml")
FILES_MAX: Final = 1_000
_FILE_KEYS: Final = ("version", "rules", "groups")
_RULE_KEYS: Final = ("name", "match", "priority", "enforce", "settings", "note")
_MATCH_KEYS: Final = ("tables", "owner", "properties")
_PRIORITY_LENGTH_MAX: Final = 10


@dataclass
class _Read:
    """A rule, and where its parts stand, by the path to them within the rule."""

    rule: NamedRule
    places: dict[tuple[str | int, ...], Place] = field(default_factory=dict)

    def place(self, path: tuple[str | int, ...]) -> Place:
        """Where a part stands, or else the smallest part around it that stands somewhere."""
        return next(self.places[path[:end]] for end in range(len(path), -1, -1) if path[:end] in self.places)


@dataclass(frozen=True, slots=True)
class PolicyFiles:
    """What policy files say together, and where each resource group is defined in them, by its name."""

    policies: Policies
    group_places: Mapping[str, str]


def read_policies(paths: Sequence[Path]) -> Policies:
    """What :func:`read_policy_files` says, without where it stands."""
    return read_policy_files(paths).policies


def read_policy_files(paths: Sequence[Path]) -> PolicyFiles:
    """All that files say together, and the files of folders. In which order they are given does not matter.

    Raises ``InvalidConfiguration`` for the first thing that is wrong.
    """
    files = [read_yaml(file) for file in policy_files(paths)]
    found = [rule for node in files for rule in _rules(node)]
    found.sort(key=lambda read: read.rule.name)
    read = sorted((one for node in files for one in _groups(node)), key=lambda one: one[0].name)
    policies = Policies(tuple(read.rule for read in found), tuple(group for group, _ in read))
    for fault in faults(policies):
        if fault.path[0] == "rules" and len(fault.path) > 1 and isinstance(fault.path[1], int):
            raise found[fault.path[1]].place(fault.path[2:]).error(fault.text, fault.hint)
        raise InvalidConfiguration(fault.text, hint=fault.hint)
    return PolicyFiles(policies, {group.name: str(place) for group, place in read})


def policy_files(paths: Sequence[Path]) -> list[Path]:
    """The files themselves; of a folder and those below, what is called ``*.yaml`` or ``*.yml``. Each file once."""
    found: dict[Path, Path] = {}
    for path in paths:
        files = sorted(_below(path)) if path.is_dir() else [path]
        if not files:
            hint = "policy files are called *.yaml or *.yml"
            raise InvalidConfiguration(f"{path}: there is no policy file in the folder", hint=hint)
        found.update({file.resolve(): file for file in files})
    if len(found) > FILES_MAX:
        raise InvalidConfiguration(f"more than {FILES_MAX:,} policy files", hint="is that the folder that was meant?")
    return list(found.values())


def fields_of(node: Node, allowed: Sequence[str], required: Sequence[str], what: str) -> Fields:
    """A map with these keys alone. Raises ``InvalidConfiguration``."""
    if not isinstance(node, Fields):
        raise node.place.error(f"expected {what} with the keys {', '.join(allowed)}")
    for key, place in node.keys.items():
        if key not in allowed:
            raise place.error(f"there is no key {wording.quoted(key)} in {what}", f"known: {', '.join(allowed)}")
    missing = next((key for key in required if key not in node.fields), None)
    if missing is not None:
        raise node.place.error(f"{what} needs the key {missing}", f"known: {', '.join(allowed)}")
    return node


def text_of(node: Node, what: str) -> str:
    """A text. Raises ``InvalidConfiguration``."""
    if not isinstance(node, Text):
        raise node.place.error(f"expected {what}, found a {'list' if isinstance(node, Items) else 'map'}")
    return node.text


def texts_of(node: Node, what: str) -> dict[str, str]:
    """A map of texts. Raises ``InvalidConfiguration``."""
    if not isinstance(node, Fields):
        raise node.place.error(f"expected {what}", "write one line each: `key: value`")
    return {key: text_of(value, "a value") for key, value in node.fields.items()}


def check_version(found: Fields) -> None:
    """Raises ``InvalidConfiguration`` for a version that is not known here."""
    if text_of(found.fields["version"], "a version") != VERSION:
        raise found.fields["version"].place.error("the version is not known", f"write `version: {VERSION}`")


def _below(folder: Path) -> Iterator[Path]:
    for file in folder.rglob("*"):
        if file.suffix in SUFFIXES and file.is_file() and not any(p[0] == "." for p in file.relative_to(folder).parts):
            yield file


def _rules(node: Node) -> Iterator[_Read]:
    found = fields_of(node, _FILE_KEYS, ("version",), "a policy file")
    check_version(found)
    rules = found.fields.get("rules")
    if rules is None:
        return
    if not isinstance(rules, Items):
        raise rules.place.error("expected a list of rules", "each begins with `- name: ...`")
    for one in rules.items:
        yield _rule(one)


def _groups(node: Node) -> Iterator[tuple[ResourceGroup, Place]]:
    groups = fields_of(node, _FILE_KEYS, ("version",), "a policy file").fields.get("groups")
    if groups is None:
        return
    if not isinstance(groups, Fields):
        raise groups.place.error("expected a map of resource groups", "each begins with `NAME:`")
    for name, one in groups.fields.items():
        written = _written(one)
        try:
            yield group_of(name, written if isinstance(written, Mapping) else {}), groups.keys[name]
        except InvalidResourceGroup as error:
            raise one.place.error(error.message, error.hint) from error


def _written(node: Node) -> Written:
    if isinstance(node, Fields):
        return {key: _written(value) for key, value in node.fields.items()}
    return [_written(one) for one in node.items] if isinstance(node, Items) else node.text


def _rule(node: Node) -> _Read:
    found = fields_of(node, _RULE_KEYS, ("name", "match", "settings"), "a rule")
    fields = found.fields
    places: dict[tuple[str | int, ...], Place] = {(): found.place}
    for key, value in fields.items():
        places[(key,)] = value.place
    match = _match(fields["match"], places)
    settings = texts_of(fields["settings"], "settings")
    _note_fields(("settings",), fields["settings"], places)
    note = text_of(fields["note"], "a note") if "note" in fields else ""
    name, enforce = text_of(fields["name"], "a name"), _enforce(fields)
    rule = NamedRule(name, match, settings, _priority(fields), note.strip(), enforce)
    return _Read(rule, places)


def _match(node: Node, places: dict[tuple[str | int, ...], Place]) -> RuleMatch:
    found = fields_of(node, _MATCH_KEYS, ("tables",), "match")
    tables = found.fields["tables"]
    if not isinstance(tables, Items):
        raise tables.place.error("expected a list of patterns", 'write one a line: `- "lake.sales.*"`')
    places["match", "tables"] = tables.place
    for number, one in enumerate(tables.items):
        places["match", "tables", number] = one.place
    owner = found.fields.get("owner")
    if owner is not None:
        places["match", "owner"] = owner.place
    properties = found.fields.get("properties")
    if properties is not None:
        _note_fields(("match", "properties"), properties, places)
    return RuleMatch(
        tuple(text_of(one, "a pattern") for one in tables.items),
        None if owner is None else text_of(owner, "an owner"),
        {} if properties is None else texts_of(properties, "properties"),
    )


def _priority(fields: Mapping[str, Node]) -> int:
    if "priority" not in fields:
        return 0
    text = text_of(fields["priority"], "a priority")
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _PRIORITY_LENGTH_MAX):
        raise fields["priority"].place.error(f"{wording.quoted(text)} is no priority", "a whole number: `priority: 10`")
    return int(text)


def _enforce(fields: Mapping[str, Node]) -> Enforced:
    if "enforce" not in fields:
        return Enforced.NO
    text = text_of(fields["enforce"], "whether it is enforced")
    if text not in tuple(Enforced):
        hint = f"one of {', '.join(Enforced)}"
        raise fields["enforce"].place.error(f"{wording.quoted(text)} does not say whether it is enforced", hint)
    return Enforced(text)


def _note_fields(head: tuple[str | int, ...], node: Node, places: dict[tuple[str | int, ...], Place]) -> None:
    """Where the keys and the values of a map stand: what is wrong with either is told at the value."""
    if isinstance(node, Fields):
        for key, value in node.fields.items():
            places[*head, key] = value.place
