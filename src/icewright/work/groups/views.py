"""Resource groups as people see them: what each is by now, what is held of it, what waits in it, and what keeps it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from icewright.core.errors import NotFound
from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.policy.resource_groups import OWN, ResourceGroup
from icewright.model.work.admission import Facts, InLane, Refusal, Use
from icewright.model.work.halts import PartKind
from icewright.model.work.optimizers import SeenSubmitter
from icewright.policy.groups.definitions import Groups, Origin
from icewright.ports.store import TableStore, TaskStore
from icewright.work.groups.admission import summed
from icewright.work.halts.service import Halting, HaltView
from icewright.work.optimizers.backlog import SEEN_MS, submitters_of

LANES_SHOWN: Final = 1_000
"""A lane for each owner: there may be more of them than anybody reads."""


@dataclass(frozen=True, slots=True)
class Held:
    """What the running tasks of a group hold together, as claims count it.

    ``applications`` are the Spark applications with such a task, ``optimizers`` those of them that stay.
    """

    tasks: int
    cores: int
    memory_bytes: int
    applications: int
    optimizers: int


@dataclass(frozen=True, slots=True)
class GroupView:
    """A resource group as it stands.

    ``definition`` is null of those that nobody defines, ``revision`` that of the policies where they say what it is.
    ``optimizers`` are those heard of within five minutes, ``submitters`` those that asked for work of it within them:
    they start an application for each task that waits. ``refused`` is why it takes no task at all now, whoever asks,
    until ``refused_until`` where that is known; ``halts`` are those of it and of everything.
    """

    name: str
    origin: Origin
    revision: int | None
    definition: ResourceGroup | None
    held: Held
    waiting: int
    optimizers: int
    submitters: tuple[SeenSubmitter, ...]
    refused: Reason | None
    refused_until: Instant | None
    halts: tuple[HaltView, ...]


@dataclass(frozen=True, slots=True)
class GroupDocument:
    """A resource group with who holds what of it, and what waits in its lanes, the longest first.

    ``lanes_left_out`` are further ones, of more owners than are shown.
    """

    group: GroupView
    uses: tuple[Use, ...]
    lanes: tuple[InLane, ...]
    lanes_left_out: int


class GroupViews:
    """Asks the store; nothing changes by it."""

    def __init__(self, tasks: TaskStore, tables: TableStore, groups: Groups, halting: Halting) -> None:
        self._tasks, self._tables, self._groups, self._halting = tasks, tables, groups, halting

    def defined(self) -> frozenset[str]:
        """The names of groups that are defined, and of the default one; not of those that optimizers alone name."""
        return frozenset(self.definitions())

    def definitions(self) -> Mapping[str, ResourceGroup]:
        """The groups that are defined, and the default one, by name."""
        return self._groups.present()

    def views(self, *, limit: int, after: str | None = None) -> Sequence[GroupView]:
        """Groups by name, those behind one of them."""
        names = sorted(name for name in self._halting.groups() if after is None or name > after)[:limit]
        halts = self._halting.views() if names else ()
        return [self._view(name, self._tasks.facts(name), self._tasks.lanes(name), halts) for name in names]

    def document(self, name: str) -> GroupDocument:
        """One group in full. Raises ``NotFound``."""
        known = self._halting.groups()
        if name not in known:
            raise NotFound(f"there is no resource group {name!r}", hint=f"known are {', '.join(sorted(known))}")
        facts, lanes = self._tasks.facts(name), self._tasks.lanes(name)
        view = self._view(name, facts, lanes, self._halting.views())
        left_out = max(0, len(lanes) - LANES_SHOWN)
        return GroupDocument(view, facts.uses, tuple(lanes[:LANES_SHOWN]), left_out)

    def _view(self, name: str, facts: Facts, lanes: Sequence[InLane], halts: Sequence[HaltView]) -> GroupView:
        origin, revision = self._groups.origin(name)
        refusal = self._refused(name)
        return GroupView(
            name=name,
            origin=origin,
            revision=revision,
            definition=self._groups.present().get(name),
            held=_held(facts.uses),
            waiting=sum(lane.waiting for lane in lanes),
            optimizers=self._seen(name),
            submitters=tuple(submitters_of(self._tables, name, self._tasks.now())),
            refused=None if refusal is None else refusal.reason,
            refused_until=None if refusal is None else refusal.until,
            halts=tuple(one for one in halts if _concerns(one, name)),
        )

    def _refused(self, name: str) -> Refusal | None:
        return None if name in OWN else self._groups.refused(name, self._tasks.now)

    def _seen(self, name: str) -> int:
        since = self._tasks.now() - SEEN_MS
        return sum(one.hello.resource_group == name and one.seen_at > since for one in self._tables.optimizers())


def _held(uses: Sequence[Use]) -> Held:
    found, there = summed(uses), {use.optimizer_id: use.is_resident for use in uses}
    return Held(found.tasks, found.cores, found.memory_bytes, len(there), sum(there.values()))


def _concerns(halt: HaltView, name: str) -> bool:
    return halt.kind is PartKind.EVERYTHING or (halt.kind is PartKind.GROUP and halt.name == name)
