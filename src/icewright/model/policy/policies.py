"""Policies as code: rules with names, applied together as a numbered revision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from icewright.core.times import Instant
from icewright.model.policy.policy import Enforced, PolicyRule
from icewright.model.policy.resource_groups import ResourceGroup

GROUPS_MAX: Final = 100
PATTERNS_MAX: Final = 100
"""Of one rule."""
TEXT_LENGTH_MAX: Final = 1_000
"""Of a pattern, a value or a note."""
NAME_LENGTH_MAX: Final = 100
PRIORITY_MAX: Final = 1_000_000
OWNER_KEY: Final = "owner"
"""The table property in which engines keep whose a table is."""


@dataclass(frozen=True, slots=True)
class RuleMatch:
    """Which tables a rule is for: those with a name of one of the patterns, and that owner, and all these properties.

    Patterns are dotted names with ``*`` for any characters of one part and ``**`` for one part or more; ``owner`` and
    the values of ``properties`` are texts with ``*``.
    """

    tables: tuple[str, ...]
    owner: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NamedRule:
    """Settings for the tables that it matches. Of two that set the same, the one of the higher priority wins."""

    name: str
    match: RuleMatch
    settings: Mapping[str, str]
    priority: int = 0
    note: str = ""
    enforce: Enforced = Enforced.NO


Rule = PolicyRule | NamedRule
"""What gives settings to a table beside its own properties."""


@dataclass(frozen=True, slots=True)
class Policies:
    """Everything that policy files say, together."""

    rules: tuple[NamedRule, ...]
    groups: tuple[ResourceGroup, ...] = ()


@dataclass(frozen=True, slots=True)
class PolicyRevision:
    """Policies as they were applied: numbers grow by one, from 1; 0 is before anything was."""

    number: int
    policies: Policies
    applied_at: Instant
    applied_by: str
    note: str = ""


NO_REVISION: Final = PolicyRevision(0, Policies(()), 0, "")


@dataclass(frozen=True, slots=True)
class NewRevision:
    """Policies that somebody wants to apply in place of all that are."""

    policies: Policies
    applied_by: str
    note: str = ""
