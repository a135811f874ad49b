"""What waits for optimizers, for whoever starts them only then."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from icewright.core.times import Instant
from icewright.model.actions.actions import EVERY_KIND, OPTIMIZER_ACTIONS, ActionKind, understood
from icewright.model.work.admission import Holding
from icewright.model.work.optimizers import Backlog, BacklogRequest, SeenSubmitter, Submitter
from icewright.observation.access import AccessBook
from icewright.policy.groups.definitions import Groups
from icewright.ports.store import TableStore, TaskStore
from icewright.work.halts.rules import catalogs_going_on

SEEN_MS: Final = 300_000
"""How lately an optimizer must have been heard of to be told of; those that live say hello every few seconds."""

_NOTHING: Final[Mapping[str, int]] = MappingProxyType({})
_BY_OPTIMIZERS: Final = understood(OPTIMIZER_ACTIONS)
NOTED_MS: Final = 10_000
"""How old it may be when a submitter is said to have asked: they ask every two seconds, and each note is a write."""


class Backlogs:
    """Asks the store; nothing changes by it but that it is noted who starts applications."""

    def __init__(
        self, tasks: TaskStore, tables: TableStore, access: AccessBook, groups: Groups, catalog_names: Collection[str]
    ) -> None:
        self._tasks, self._tables, self._access, self._groups = tasks, tables, access, groups
        self._catalog_names = frozenset(catalog_names)

    def of(self, asked: BacklogRequest, catalogs: frozenset[str], *, is_resident: bool = False) -> Backlog:
        """What waits right now for applications that reach these catalogs and may start, as claims would say.

        ``is_resident`` says that they stay, as optimizers do that the group has a cap for.
        """
        group, now = asked.resource_group, self._tasks.now()
        self._note(asked, self._catalog_names & catalogs, now)
        halted = [halt.part for halt in self._tasks.halts.present()]
        reached = catalogs_going_on(halted, group, self._catalog_names & catalogs)
        seen = [one for one in self._tables.optimizers() if one.hello.resource_group == group]
        holding = Holding(asked.cores, asked.memory_bytes, is_resident)
        since_at, terms = now - SEEN_MS, self._groups.terms(group, holding, frozenset(asked.queues), self._tasks.now)
        terms = replace(terms, understood=understood_in(self._tables, group, self._tasks.now, asked.actions))
        return Backlog(
            self._tasks.claimable(group, reached, terms, understood(asked.actions)),
            self._access.count_questions(reached),
            {one.hello.optimizer_id: one.seen_at for one in seen if one.seen_at > since_at},
        )

    def _note(self, asked: BacklogRequest, catalogs: frozenset[str], now: Instant) -> None:
        """Note who asks, unless it says nothing new since a moment ago."""
        if asked.submitting is None:
            return
        size = (asked.cores, asked.memory_bytes)
        present = Submitter(
            asked.submitting, asked.resource_group, tuple(sorted(catalogs)), asked.queues, *size, asked.actions
        )
        book = self._tables.submitters
        if not any(one.submitter == present and one.asked_at > now - NOTED_MS for one in book.noted()):
            book.note(present)


def submitters_of(tables: TableStore, group: str, now: Instant) -> Sequence[SeenSubmitter]:
    """Those that asked lately what waits in a resource group, the one that asked last first."""
    found = [one for one in tables.submitters.noted() if one.submitter.resource_group == group]
    return sorted((one for one in found if one.asked_at > now - SEEN_MS), key=lambda one: -one.asked_at)


def understood_in(
    tables: TableStore, group: str, now: Callable[[], Instant], asking: Mapping[str, int] = _NOTHING
) -> frozenset[ActionKind]:
    """The kinds of actions that a resource group carries out: whoever asks, and all that were heard of lately.

    Every kind where the one who asks announces all that optimizers carry out, which takes no look into the store.
    """
    found = understood(asking)
    if found < _BY_OPTIMIZERS:
        at = now()
        others = [one.hello for one in tables.optimizers() if one.seen_at > at - SEEN_MS]
        found = found.union(*(understood(one.actions) for one in others if one.resource_group == group))
        found = found.union(*(understood(one.submitter.actions) for one in submitters_of(tables, group, at)))
    return EVERY_KIND if found >= _BY_OPTIMIZERS else found
