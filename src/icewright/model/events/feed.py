"""The feed: what people and programs are told of, one numbered fact after the other, never changed.

What becomes of a task is told in the same transaction that changes the task, so nothing happens that is not told and
nothing is told that did not happen. Numbers grow in the order of commits; some are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.actions.actions import ActionKind
from icewright.model.iceberg.names import TableId, TableName


class FactKind(StrEnum):
    """What a fact is about. The first seven are of tasks."""

    QUEUED = "queued"
    """A task waits: a new one, or one that is to be tried again."""
    STARTED = "started"
    """An attempt at a task has begun."""
    SUCCEEDED = "succeeded"
    """A task is done, as its table shows; the reason has what it brought."""
    FAILED = "failed"
    """A task has failed permanently."""
    SUPERSEDED = "superseded"
    """A task has become pointless: its table moved on, or its owner does not want it any more."""
    CANCELLED = "cancelled"
    DATA_AT_RISK = "data-at-risk"
    """Somebody must look: a commit is not what it should be or cannot be verified, or a table cannot be read."""
    PARKED = "parked"
    """The breaker has opened: nothing more is queued for a table for a day."""
    WAITS_FOR_APPROVAL = "waits-for-approval"
    """A plan waits for a person."""
    REFUSED = "refused"
    """Somebody refused a plan that waited; the reason says who and why."""
    REGRESSED = "regressed"
    """Queries read more than before a recommendation was accepted: it is taken back, or that is recommended."""
    CATALOG_AWAY = "catalog-away"
    """A catalog has not answered for a while; its tables and tasks wait."""
    CATALOG_BACK = "catalog-back"
    LEADER_CHANGED = "leader-changed"
    """A server leads that did not before; a fact of no catalog."""
    PAUSED = "paused"
    """Somebody paused, drains or stopped a table, a catalog, a resource group or everything; the reason says which."""
    RESUMED = "resumed"
    """Somebody let it go on."""
    TUNED = "tuned"
    """A decision about optimizers or their memory was made, held, released or has ended; a fact of no catalog."""


FOR_EVERYBODY: Final = frozenset({FactKind.PAUSED, FactKind.RESUMED})


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that happened. What it is not about is None; a fact of no table is about its ``catalog`` as a whole.

    One of the servers has the empty ``catalog``: whoever may read everything is told of it. So has one of all catalogs
    that is for everybody (``FOR_EVERYBODY``), whatever they ask for and may see.
    """

    fact: FactKind
    catalog: str
    reason: Reason
    table_id: TableId | None = None
    table_name: TableName | None = None
    task_id: str | None = None
    plan_id: str | None = None
    action: ActionKind | None = None
    attempt: int | None = None

    @property
    def parts(self) -> tuple[str, ...]:
        """Catalog, namespace and name, as far as it is about these; nothing where it is for everybody."""
        if not self.catalog and self.fact in FOR_EVERYBODY:
            return ()
        return (self.catalog,) if self.table_name is None else (self.table_name.catalog, *self.table_name.path)


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """A fact in the feed, with its number and when it was told, by the store's clock."""

    sequence: int
    at: Instant
    fact: Fact


@dataclass(frozen=True, slots=True)
class FeedFilter:
    """Which facts to read; what is empty does not restrict.

    ``under``: of catalogs, namespaces with all below, tables. ``within``: of these scopes alone, each a catalog or a
    namespace with all below; the table of the same name is not in it. What is about all catalogs is in all of these.
    """

    kinds: frozenset[FactKind] = frozenset()
    under: tuple[tuple[str, ...], ...] = ()
    within: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class FeedPage:
    """Facts in their order; ``through`` is the last number that was looked at, to go on from."""

    told: tuple[FeedEntry, ...]
    through: int
