"""What is kept of a table for all servers: its record, how its inventory moves, and what a look at it goes by."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Protocol

from icewright.core.servers import TableShare
from icewright.core.times import Instant
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.orphans import FinishedPass
from icewright.model.events.events import Reporting
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.inventory import ManifestKey, ManifestSummary, PartitionStatistics
from icewright.model.iceberg.layouts import Run
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.snapshot_sightings import Mark
from icewright.model.plans.approvals import Refusal
from icewright.model.plans.plans import Plan, Reason
from icewright.model.queries.decisions import KeptRecommendation
from icewright.model.work.figures import Listed
from icewright.model.work.storage import AccessRecord
from icewright.model.work.tasks import ListedTask
from icewright.model.work.why import Considered
from icewright.ports.findings import ExecutorExclusion


@dataclass(frozen=True, slots=True)
class TableRecord:
    """What the store knows of a table. ``problem`` is why it cannot be observed or planned, if so.

    ``marks`` tell when its snapshots were first seen, ``reporting`` how well its commits are reported.
    ``properties`` are the table's own, as far as policies may be matched with them
    (:func:`icewright.observation.observer.known_properties`); None while they are not known.
    ``storage_root`` is where its new files go, None on a local file system. ``considered`` is what was said of upkeep
    when it was looked into last, of each kind that may happen by itself. ``unparked_at`` is when a person last closed
    the breaker. ``listed`` is what lists show of it, None before a look that came to a plan. ``revision``
    grows with each write: 0 is that of a record which is not stored yet.
    """

    table_id: TableId
    name: TableName
    metadata_location: str
    snapshot_id: int | None
    format_version: int
    observed_at: Instant
    changed_at: Instant
    commit_interval_ms: int | None
    next_look_at: Instant
    plan_id: str | None
    problem: Reason | None
    dropped_at: Instant | None = None
    marks: tuple[Mark, ...] = ()
    reporting: Reporting | None = None
    properties: Mapping[str, str] | None = None
    storage_root: str | None = None
    considered: tuple[Considered, ...] = ()
    unparked_at: Instant | None = None
    listed: Listed | None = None
    revision: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class InventoryUpdate:
    """The inventory of a table moved to another snapshot, in one transaction.

    Runs are by the snapshots that added them.
    """

    record: TableRecord
    added_manifests: Sequence[ManifestSummary]
    removed_manifests: Sequence[ManifestKey]
    changed_partitions: Sequence[PartitionStatistics]
    removed_partitions: Sequence[Partition]
    added_runs: Mapping[int, Run] = field(default_factory=dict)
    removed_runs: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class WaitingPlan:
    """A plan that a person has to approve before anything happens, and since when and why it waits."""

    plan_id: str
    table_id: TableId
    table_name: TableName
    kind: ActionKind
    reason: Reason
    since: Instant


@dataclass(frozen=True, slots=True)
class StoredTable:
    """What is stored of a table that observing it goes on from; nothing of a table without a ``record``.

    ``exclusions`` are by their codes. ``access`` is what is known of the storage that the record names, and
    ``is_asked`` whether that is a question to optimizers. ``is_queried`` is whether queries of it may be counted.
    """

    record: TableRecord | None = None
    manifests: Sequence[ManifestKey] = ()
    partitions: Sequence[PartitionStatistics] = ()
    runs: Mapping[int, Run] = field(default_factory=dict)
    exclusions: Mapping[str, ExecutorExclusion] = field(default_factory=dict)
    access: AccessRecord | None = None
    is_asked: bool = False
    is_queried: bool = True


@dataclass(frozen=True, slots=True)
class BeforeLook:
    """All that a look at a table goes by, as of its beginning.

    ``now`` is by the store's clock. ``tasks`` are the table's latest, newest first, as many as
    :data:`~icewright.model.work.breaker.TASKS_LOOKED_AT`; ``plan`` is its present one. ``waits`` and ``refusals`` are
    its plans that wait and the latest that were refused, by the kinds of their actions. ``analyzed`` is the newest
    recommendation for it, ``passed`` the last finished search for its orphan files. ``policies`` is the present
    revision of the policies, None where this store does not keep them; ``restored_at`` when the store was restored.
    """

    stored: StoredTable
    now: Instant
    plan: Plan | None = None
    tasks: Sequence[ListedTask] = ()
    waits: Mapping[ActionKind, WaitingPlan] = field(default_factory=dict)
    refusals: Mapping[ActionKind, Refusal] = field(default_factory=dict)
    analyzed: KeptRecommendation | None = None
    passed: FinishedPass | None = None
    restored_at: Instant | None = None
    policies: int | None = None

    @property
    def record(self) -> TableRecord | None:
        """What is known of the table; None before its first look."""
        return self.stored.record


@dataclass(frozen=True, slots=True)
class DueLook:
    """A table that is to be looked at, with what tells when it is looked at next; see ``TableRecord``."""

    table_id: TableId
    name: TableName
    revision: int
    next_look_at: Instant
    changed_at: Instant
    commit_interval_ms: int | None


@dataclass(frozen=True, slots=True)
class LaterLook:
    """When a table is looked at next, if its record is still of that revision."""

    table_id: TableId
    revision: int
    at: Instant


@dataclass(frozen=True, slots=True)
class SinceLooks:
    """What a look goes by of tables, as far as the store tells of many at once that it has changed.

    ``tasks`` are the ids and versions of the latest tasks of each table, as many as :attr:`BeforeLook.tasks`, and of
    all that have not ended. ``remarked`` are the tables with an exclusion, a refused plan or a recommendation.
    ``access`` is when it was decided, of storages by their catalogs and roots, about which
    nobody is asked. ``now`` and ``policies`` are as in :class:`BeforeLook`.
    """

    now: Instant
    policies: int | None
    tasks: Mapping[TableId, frozenset[tuple[str, int]]]
    access: Mapping[tuple[str, str], Instant]
    remarked: AbstractSet[TableId]


class Looks(Protocol):
    """One transaction each. Raises :class:`~icewright.core.errors.Unavailable`."""

    def before_look(self, name: TableName, *, is_new: bool = False) -> BeforeLook:
        """Of the table that was last seen under that name and is not known to be dropped.

        ``is_new`` is whether none is expected to be known: it costs less then, and more where one is.
        """

    def before_look_at(self, table_id: TableId) -> BeforeLook:
        """Of that table, whatever its name was."""

    def due(self, now: Instant, limit: int, share: TableShare | None = None) -> Sequence[DueLook]:
        """Tables of a share, not known to be dropped, whose ``next_look_at`` has come, longest overdue first."""

    def since_looks(self, table_ids: Collection[TableId], roots: Collection[tuple[str, str]]) -> SinceLooks:
        """What may have changed since looks at these tables, and of the storages with these catalogs and roots."""

    def look_later(self, looks: Sequence[LaterLook], *, policies: int | None = None) -> None:
        """Have tables looked at later than planned, those of which nobody has written the record since: in one step.

        It is no write of theirs: their revisions stay. Whoever wished for a look meanwhile gets it. With ``policies``,
        only if that is still the present revision of the policies.
        """
