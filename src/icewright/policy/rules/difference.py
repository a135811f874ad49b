"""What would differ for which tables if other policies were applied: rules, settings, and what to look at twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final

from icewright.actions.expire_data.settings import DATA_EXPIRES_KEY, DATA_SETTINGS
from icewright.actions.expire_snapshots.settings import EXPIRES_KEY, EXPIRY_SETTINGS, REMOVES_FILES_KEY
from icewright.actions.remove_files.orphans.settings import ORPHAN_SETTINGS, REMOVES_KEY
from icewright.core import wording
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.plans.plans import Reason
from icewright.model.policy.policies import NamedRule, Policies, Rule
from icewright.model.policy.policy import MODE_KEY, Mode
from icewright.model.policy.resource_groups import ResourceGroup
from icewright.model.policy.setting_values import value_text
from icewright.policy.effective import DEFAULT_ORIGIN, Layer, layers_of, saying
from icewright.policy.rules.name_patterns import name_pattern
from icewright.policy.rules.named_rules import RuleIndex
from icewright.policy.rules.pattern_index import PatternIndex
from icewright.policy.settings import BY_KEY

TABLES_SHOWN: Final = 20
"""Tables listed one by one; the others are counted."""
_NAMES_SHOWN: Final = 5
_SWITCHES: Final = (EXPIRES_KEY, REMOVES_FILES_KEY, REMOVES_KEY, DATA_EXPIRES_KEY)
"""What lets something leave a table, or its storage."""
_DELETING: Final = frozenset(one.key for one in (*EXPIRY_SETTINGS, *ORPHAN_SETTINGS, *DATA_SETTINGS)) | {MODE_KEY}


@dataclass(frozen=True, slots=True)
class RuleChange:
    """A rule that is ``added``, ``changed`` (in these ``fields``) or ``removed``; ``tables`` are those it is for."""

    name: str
    what: str
    fields: tuple[str, ...]
    tables: int


@dataclass(frozen=True, slots=True)
class GroupChange:
    """A resource group that is ``added``, ``changed`` (in these ``fields``) or ``removed``."""

    name: str
    what: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting of one table, before and after; None where there is no value."""

    key: str
    before: str | None
    after: str | None
    before_origin: str
    after_origin: str


@dataclass(frozen=True, slots=True)
class TableChange:
    """What differs for one table."""

    table: str
    uuid: str
    changes: tuple[SettingChange, ...]


@dataclass(frozen=True, slots=True)
class PolicyDifference:
    """What applying policies changes against revision ``revision``.

    ``tables_known`` are the tables that the server has seen, ``tables_changed`` those of them with another value of
    a setting, of which ``tables`` are the first by name; ``settings`` counts them by setting. ``warnings`` are what
    a person should read before anything else.
    """

    revision: int
    rules: tuple[RuleChange, ...]
    tables_known: int
    tables_changed: int
    settings: Mapping[str, int]
    tables: tuple[TableChange, ...]
    warnings: tuple[Reason, ...]
    groups: tuple[GroupChange, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to apply."""
        return not self.rules and not self.groups


class Comparison:
    """Compares policies table by table, as they come; asked for the difference after the last one."""

    def __init__(self, before: Policies, after: Policies, configured: Sequence[Rule]) -> None:
        """``configured`` are the rules of the configuration, below both."""
        self._before = RuleIndex((*before.rules, *configured))
        self._after = RuleIndex((*after.rules, *configured))
        self._groups = before.groups, after.groups
        old, new = ({rule.name: rule for rule in one.rules} for one in (before, after))
        self._changes = {
            name: (old.get(name), new.get(name)) for name in sorted(old | new) if old.get(name) != new.get(name)
        }
        touched = [rule for pair in self._changes.values() for rule in pair if rule is not None]
        self._touched = RuleIndex(touched)
        self._present = RuleIndex(rule for old, new in self._changes.values() if (rule := new or old))
        self._keys = sorted({key for rule in touched for key in rule.settings} | _DELETING)
        self._known = self._unknown = self._changed = 0
        self._matched: Counter[str] = Counter()
        self._patterns = {
            (rule.name, text): 0 for _, rule in self._changes.values() if rule for text in rule.match.tables
        }
        self._names = PatternIndex((name_pattern(text), (name, text)) for name, text in self._patterns)
        self._settings: Counter[str] = Counter()
        self._shown: list[TableChange] = []
        self._auto: list[str] = []
        self._deleting: list[str] = []
        self.affected: list[TableId] = []
        """Tables that a changed rule is for, or may be: they are to be looked at."""

    def add(self, table_id: TableId, name: TableName, properties: Mapping[str, str] | None) -> None:
        """One more table that is known; with None, its properties are not."""
        self._known += 1
        for matched in self._names.matches(name):
            self._patterns[matched] += 1
        if properties is None:
            if self._touched.may_concern(name):
                self._unknown += 1
                self.affected.append(table_id)
            return
        self._matched.update(one.rule.name for one in self._present.concerning(name, properties))
        if self._touched.concerning(name, properties):
            self.affected.append(table_id)
            self._compare(table_id, name, properties)

    def _compare(self, table_id: TableId, name: TableName, properties: Mapping[str, str]) -> None:
        before = _values(layers_of(name, properties, self._before), self._keys)
        after = _values(layers_of(name, properties, self._after), self._keys)
        changes = tuple(
            SettingChange(key, before[key].text, after[key].text, before[key].origin, after[key].origin)
            for key in self._keys
            if before[key].text != after[key].text
        )
        if not changes:
            return
        self._changed += 1
        self._settings.update(change.key for change in changes)
        _keep_first(self._shown, TableChange(str(name), table_id.uuid, changes))
        if after[MODE_KEY].text != Mode.AUTO:
            return
        if before[MODE_KEY].text != Mode.AUTO:
            self._auto.append(str(name))
        deletes = any(after[key].text == "true" for key in _SWITCHES)
        if deletes and any(change.key in _DELETING for change in changes):
            self._deleting.append(str(name))

    def difference(self, revision: int) -> PolicyDifference:
        """All of it, against that revision."""
        return PolicyDifference(
            revision=revision,
            rules=tuple(self._rule_changes()),
            tables_known=self._known,
            tables_changed=self._changed,
            settings=dict(sorted(self._settings.items())),
            tables=tuple(self._shown),
            warnings=tuple(self._warnings()),
            groups=tuple(self._group_changes()),
        )

    def _rule_changes(self) -> Iterator[RuleChange]:
        for name, (old, new) in self._changes.items():
            what = "added" if old is None else "removed" if new is None else "changed"
            differing = [
                one.name
                for one in fields(NamedRule)
                if old is not None and new is not None and getattr(old, one.name) != getattr(new, one.name)
            ]
            yield RuleChange(name, what, tuple(differing), self._matched[name])

    def _group_changes(self) -> Iterator[GroupChange]:
        old, new = ({group.name: group for group in one} for one in self._groups)
        for name in sorted(old | new):
            before, after = old.get(name), new.get(name)
            if before == after:
                continue
            what = "added" if before is None else "removed" if after is None else "changed"
            differing = [
                one.name
                for one in fields(ResourceGroup)
                if before is not None and after is not None and getattr(before, one.name) != getattr(after, one.name)
            ]
            yield GroupChange(name, what, tuple(differing))

    def _warnings(self) -> Iterator[Reason]:
        yield from _tables_warning("becomes-auto", self._auto, "become auto: plans run without approval")
        said = "may lose snapshots, data or files automatically, or sooner than now"
        yield from _tables_warning("may-delete", self._deleting, said)
        for (name, text), hits in self._patterns.items():
            if not hits:
                yield Reason("matches-nothing", f"rule {name}: the pattern {text} matches no table that is known")
            elif hits == self._known or name_pattern(text).is_everything:
                said = f"rule {name}: the pattern {text} matches everything: {wording.count(hits, 'table')}"
                yield Reason("matches-everything", f"{said} of {self._known:,}", {"tables": hits})
        if self._unknown:
            said = "not looked at yet by this version, so what changes for them is not counted"
            yield Reason("not-known", f"{wording.count(self._unknown, 'table')} {said}", {"tables": self._unknown})


@dataclass(frozen=True, slots=True)
class _Value:
    """What is in effect of a setting, as text; of one that cannot be used, nothing is."""

    text: str | None
    origin: str


def _values(layers: Sequence[Layer], keys: Sequence[str]) -> Mapping[str, _Value]:
    return {key: _value(layers, key) for key in keys}


def _value(layers: Sequence[Layer], key: str) -> _Value:
    setting = BY_KEY[key]
    layer = next(iter(saying(key, layers)), None)
    if layer is None:
        default = setting.default
        return _Value(None if default is None else value_text(setting, default), DEFAULT_ORIGIN)
    try:
        return _Value(value_text(setting, setting.parse(layer.properties[key])), layer.origin)
    except ValueError:
        return _Value(None, layer.origin)


def _tables_warning(code: str, names: Sequence[str], said: str) -> Iterator[Reason]:
    if names:
        first = ", ".join(wording.cut(name) for name in sorted(names)[:_NAMES_SHOWN])
        more = ", ..." if len(names) > _NAMES_SHOWN else ""
        text = f"{wording.count(len(names), 'table')} {said} ({first}{more})"
        yield Reason(code, text, {"tables": len(names)})


def _keep_first(shown: list[TableChange], change: TableChange) -> None:
    """Keep the first by name."""
    if len(shown) < TABLES_SHOWN or change.table < shown[-1].table:
        shown.append(change)
        shown.sort(key=lambda one: one.table)
        del shown[TABLES_SHOWN:]
