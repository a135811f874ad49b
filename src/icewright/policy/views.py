"""What is shown of a table's policy, and of changes to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from icewright.model.iceberg.tables import TableMetadata
from icewright.model.policy.policies import Rule
from icewright.model.policy.policy import MODE_KEY, Mode, PolicyProblem
from icewright.policy.effective import effective_policy
from icewright.policy.schema_views import LayoutView, SettingView, layout_view, setting_views

SAID_OF_MODES: Mapping[Mode, str] = {
    Mode.OBSERVE: f"The table is only observed: nothing follows from this before {MODE_KEY} is approve or auto.",
    Mode.APPROVE: "Plans wait for a person to approve them.",
    Mode.AUTO: "Plans run without approval.",
}


@dataclass(frozen=True, slots=True)
class PolicyView:
    """The effective policy of a table: every value, where it comes from, and what cannot be used."""

    table: str
    uuid: str
    mode: Mode
    says: str
    """What follows from the mode."""
    settings: tuple[SettingView, ...]
    problems: tuple[PolicyProblem, ...]
    layout: LayoutView | None


@dataclass(frozen=True, slots=True)
class PropertyChange:
    """One property of a table before and after; None where it is not set."""

    key: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class PolicyChangeView:
    """A change of a table's properties: only said, or ``done``. ``policy`` is what is in effect with it."""

    changes: tuple[PropertyChange, ...]
    done: bool
    policy: PolicyView


def policy_view(table: TableMetadata, rules: Sequence[Rule]) -> PolicyView:
    """The policy of a table as it is."""
    policy = effective_policy(table, rules)
    return PolicyView(
        table=str(table.name),
        uuid=table.table_id.uuid,
        mode=policy.mode,
        says=SAID_OF_MODES[policy.mode],
        settings=setting_views(policy),
        problems=policy.problems,
        layout=layout_view(table, policy),
    )


def property_changes(table: TableMetadata, changes: Mapping[str, str | None]) -> tuple[PropertyChange, ...]:
    """What would differ, by property."""
    return tuple(PropertyChange(key, table.properties.get(key), value) for key, value in sorted(changes.items()))
