"""Resource groups: how much of a cluster the tasks of some tables may take at once, and when.

A cap that is None does not hold anything back. The group ``default`` exists always; as long as nobody says more of it,
it has no caps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from icewright.core.errors import InvalidResourceGroup
from icewright.core.times import Window
from icewright.model.actions.actions import Action, traits_of
from icewright.model.actions.traits import RunsOn

DEFAULT_GROUP: Final = "default"
"""The group of tables for which nobody named another one."""
SERVER: Final = "server"
"""The resource group of what the server carries out itself, and the name under which it does."""
SERVER_FILES: Final = "server-files"
"""The same of what removes files: it may take hours, so that it must be in nobody's way."""
OWN: Final = (SERVER, SERVER_FILES)
"""Names that no optimizer may have."""
RESERVED_GROUPS: Final = frozenset(OWN)
"""Names under which the server itself works."""
TENANT_LENGTH_MAX: Final = 100
TENANTS_MAX: Final = 1_000
WINDOWS_MAX: Final = 20
OPTIMIZERS_MAX: Final = 1_000
"""Of one queue of a group, by autotuning."""
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}\Z")


class Queue(StrEnum):
    """In which of the two queues of its group a task waits."""

    NORMAL = "normal"
    LARGE = "large"
    """For tables whose work lately got too little memory."""


EVERY_QUEUE: Final = frozenset(Queue)


def _cap_problem(key: str, cap: int | None) -> Iterator[str]:
    if cap is not None and cap < 1:
        yield f"{key}: must be 1 or more; leave it out for no cap"


@dataclass(frozen=True, slots=True)
class TenantCaps:
    """What the tasks of one tenant may hold together, of what their group may."""

    tenant: str
    cores: int | None = None
    memory_bytes: int | None = None
    tasks_max: int | None = None


@dataclass(frozen=True, slots=True)
class ResourceGroup:
    """What the tasks of a group may hold at once.

    ``tasks_max`` counts its running tasks, ``cores`` and ``memory_bytes`` are sums over them. ``applications_max``
    counts the Spark applications with such a task (an optimizer is one, a task that has an application of its own is
    one), ``optimizers_max`` those of them that are resident. Tasks start while any of ``windows`` is open, at any time
    where there is none. ``large_share`` is the part of the group that the large queue may take, and has a right to.
    ``normal_min`` to ``normal_max`` optimizers of the normal queue are there by autotuning, and ``large_min`` to
    ``large_max`` of the large one.

    Raises :class:`~icewright.core.errors.InvalidResourceGroup`; whether a window can be read is for planning to tell.
    """

    name: str
    cores: int | None = None
    memory_bytes: int | None = None
    applications_max: int | None = None
    optimizers_max: int | None = None
    windows: tuple[Window, ...] = ()
    large_share: float = 0.2
    tenants: tuple[TenantCaps, ...] = ()
    tasks_max: int | None = None
    normal_min: int = 1
    normal_max: int = 2
    large_min: int = 0
    large_max: int = 1

    def __post_init__(self) -> None:
        """Refuse what is no group."""
        if _NAME.match(self.name) is None or self.name in RESERVED_GROUPS:
            reserved = ", ".join(sorted(RESERVED_GROUPS))
            raise InvalidResourceGroup(
                f"{self.name[:80]!r} is no name of a resource group",
                hint=f"letters, digits, _, . and -, at most 63, none of {reserved}",
            )
        for problem in self._problems():
            raise InvalidResourceGroup(f"resource group {self.name}: {problem}")

    def caps_of(self, tenant: str) -> TenantCaps | None:
        """The caps of one tenant, None where it has none of its own."""
        return next((caps for caps in self.tenants if caps.tenant == tenant), None)

    def optimizers_of(self, queue: Queue) -> tuple[int, int]:
        """The least and the most optimizers of a queue, by autotuning."""
        return (self.normal_min, self.normal_max) if queue is Queue.NORMAL else (self.large_min, self.large_max)

    def _problems(self) -> Iterator[str]:
        for key in ("cores", "memory_bytes", "applications_max", "optimizers_max", "tasks_max"):
            yield from _cap_problem(key, getattr(self, key))
        if not 0 < self.large_share < 1:  # also of what is no number
            yield "large_share: must be more than 0 and less than 1"
        for queue in Queue:
            least, most = self.optimizers_of(queue)
            if not 0 <= least <= most <= OPTIMIZERS_MAX:
                yield f"{queue}_min and {queue}_max: 0 to {OPTIMIZERS_MAX}, the maximum not below the minimum"
        if len(self.windows) > WINDOWS_MAX:
            yield f"windows: more than {WINDOWS_MAX}"
        if any(window.duration_ms <= 0 for window in self.windows):
            yield "windows: each must be open for some time"
        yield from self._tenant_problems()

    def _tenant_problems(self) -> Iterator[str]:
        if len(self.tenants) > TENANTS_MAX:
            yield f"tenants: more than {TENANTS_MAX}"
        for caps in self.tenants:
            if not 0 < len(caps.tenant) <= TENANT_LENGTH_MAX:
                yield f"tenants: a name has 1 to {TENANT_LENGTH_MAX} characters"
            yield from _cap_problem(f"tenants.{caps.tenant}.cores", caps.cores)
            yield from _cap_problem(f"tenants.{caps.tenant}.memory_bytes", caps.memory_bytes)
            yield from _cap_problem(f"tenants.{caps.tenant}.tasks_max", caps.tasks_max)
        names = sorted(caps.tenant for caps in self.tenants)
        yield from (f"tenants: {one} is there twice" for one, other in pairwise(names) if one == other)


OPEN_DEFAULT: Final = ResourceGroup(DEFAULT_GROUP)
"""The group that exists always, as it is while nobody says more of it."""


def with_default(groups: Mapping[str, ResourceGroup]) -> Mapping[str, ResourceGroup]:
    """The groups by their names, with the one that exists always."""
    return MappingProxyType({DEFAULT_GROUP: OPEN_DEFAULT, **groups})


_GROUPS: Final = {RunsOn.OPTIMIZER: DEFAULT_GROUP, RunsOn.SERVER: SERVER, RunsOn.SERVER_FILES: SERVER_FILES}


def resource_group(action: Action) -> str:
    """Whose turn an action is: the optimizers', or the server's own."""
    return _GROUPS[traits_of(action.kind).runs_on]
