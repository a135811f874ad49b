"""What waits for optimizers, for whoever starts them only then."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from icewright.domain.optimizers import Backlog
from icewright.ports.store import TableStore, TaskStore
from icewright.services.access import AccessBook

SEEN_MS: Final = 300_000
"""How lately an optimizer must have been heard of to be told of; those that live say hello every few seconds."""


class Backlogs:
    """Asks the store; nothing changes by it."""

    def __init__(
        self, tasks: TaskStore, tables: TableStore, access: AccessBook, catalog_names: Collection[str]
    ) -> None:
        self._tasks, self._tables, self._access = tasks, tables, access
        self._catalog_names = frozenset(catalog_names)

    def of(self, resource_group: str, catalogs: frozenset[str]) -> Backlog:
        """What waits right now for optimizers of a group that reach these catalogs."""
        reached = self._catalog_names & catalogs
        since_at = self._tasks.now() - SEEN_MS
        seen = [one for one in self._tables.optimizers() if one.hello.resource_group == resource_group]
        return Backlog(
            self._tasks.claimable(resource_group, reached),
            self._access.wanted(reached),
            {one.hello.optimizer_id: one.seen_at for one in seen if one.seen_at > since_at},
        )
