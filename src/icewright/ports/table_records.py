"""What is kept of a table for all servers: its record, and how its inventory moves from one snapshot to the next."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from icewright.core.times import Instant
from icewright.model.actions.actions import ActionKind
from icewright.model.events.events import Reporting
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.inventory import ManifestKey, ManifestSummary, PartitionStatistics
from icewright.model.iceberg.layouts import Run
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.snapshot_sightings import Mark
from icewright.model.plans.plans import Reason
from icewright.model.work.figures import Listed
from icewright.model.work.why import Considered


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
