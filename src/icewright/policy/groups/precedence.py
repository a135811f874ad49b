"""Which definition of a table's resource group counts, why the others do not, and which caps its tasks have by it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from icewright.core import wording
from icewright.model.iceberg.names import TableName
from icewright.model.policy.policies import Rule
from icewright.model.policy.resource_groups import DEFAULT_GROUP, OPEN_DEFAULT, Queue, ResourceGroup, TenantCaps
from icewright.policy.effective import policy_of
from icewright.policy.groups.queue_place import tenant_of
from icewright.policy.groups.queue_settings import GROUP_KEY
from icewright.policy.owners import owner_of

_BELOW: Final = "what policies say of a group is above the configuration, as a whole"


@dataclass(frozen=True, slots=True)
class GroupSource:
    """Groups that are defined together: by ``origin``, or where ``places`` says it more closely, by name."""

    origin: str
    groups: tuple[ResourceGroup, ...]
    is_configuration: bool = False
    places: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def place(self, name: str) -> str:
        """Where a group of it is defined."""
        return self.places.get(name, f"[groups.{name}] of {self.origin}" if self.is_configuration else self.origin)


@dataclass(frozen=True, slots=True)
class OverruledGroup:
    """Somebody who defines the group as well, and why that does not count."""

    origin: str
    why: str


@dataclass(frozen=True, slots=True)
class GroupWin:
    """The resource group of a table, who names it (``named_by``), and what it is.

    ``defined_by`` is the definition that counts, and ``group`` what that says, of all owners' caps only those of the
    table's own (``tenant``, empty for nobody); both are None where nobody defines it, so that nothing of it starts.
    ``tenant_caps`` are what the tasks of the table's owner may hold of it, None where that is all of it.
    """

    name: str
    named_by: str
    defined_by: str | None
    because: str
    over: tuple[OverruledGroup, ...]
    group: ResourceGroup | None
    tenant: str
    tenant_caps: TenantCaps | None


def applied_source(revision: int, groups: tuple[ResourceGroup, ...]) -> GroupSource:
    """The groups of a revision of the policies."""
    return GroupSource(f"revision {revision} of the policies", groups)


def defined(name: str, sources: Sequence[GroupSource]) -> Iterator[tuple[GroupSource | None, ResourceGroup]]:
    """All definitions of a group, the one that counts first; each counts whole. None defines what exists always."""
    for source in sources:
        yield from ((source, group) for group in source.groups if group.name == name)
    if name == DEFAULT_GROUP:
        yield None, OPEN_DEFAULT


def group_win(
    name: TableName, properties: Mapping[str, str], rules: Sequence[Rule], sources: Sequence[GroupSource]
) -> GroupWin:
    """The resource group of a table of that name, with these properties; ``sources`` from the top."""
    policy = policy_of(name, properties, rules)
    tenant = tenant_of(owner_of(name, properties, rules) or "")
    named_by, group_name = policy.origins[GROUP_KEY], policy.resource_group
    found = list(defined(group_name, sources))
    if not found:
        where = " nor ".join(source.origin for source in sources)
        because = f"it is not defined, neither {where}: no task of the table starts"
        return GroupWin(group_name, named_by, None, because, (), None, tenant, None)
    (winner, group), *others = found
    return GroupWin(
        group_name,
        named_by,
        "built in" if winner is None else winner.place(group_name),
        _because(winner, [source for source, _ in others if source is not None]),
        tuple(OverruledGroup(source.place(group_name), _BELOW) for source, _ in others if source is not None),
        replace(group, tenants=tuple(caps for caps in group.tenants if caps.tenant == tenant)),
        tenant,
        group.caps_of(tenant),
    )


def _because(winner: GroupSource | None, others: Sequence[GroupSource]) -> str:
    if winner is None:
        return "no definition sets more: it always exists, without caps"
    return "no other definition" if not others else "policies are above the configuration"


def optimizers_said(group: ResourceGroup) -> str:
    """Between which numbers of optimizers autotuning chooses, in words."""
    said = {queue: group.optimizers_of(queue) for queue in Queue}
    return ", ".join(f"{least:,} to {most:,} {queue}" for queue, (least, most) in said.items())


def caps_said(of: ResourceGroup | TenantCaps) -> str:
    """Its caps in words."""
    found = [] if of.tasks_max is None else [f"tasks {of.tasks_max:,}"]
    found += [] if of.cores is None else [f"cores {of.cores:,}"]
    found += [] if of.memory_bytes is None else [f"memory {wording.size(of.memory_bytes)}"]
    if isinstance(of, ResourceGroup):
        found += [] if of.applications_max is None else [f"Spark applications {of.applications_max:,}"]
        found += [] if of.optimizers_max is None else [f"optimizers {of.optimizers_max:,}"]
    return ", ".join(found) or "none"
