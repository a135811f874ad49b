"""What a table is, as its Iceberg metadata says: always *as of* one metadata file.

Field names follow the Iceberg table spec (v3, "Table Metadata"). Instants are milliseconds since the Unix epoch
in UTC, as in the spec.

Statistics files ("Table Statistics", "Partition Statistics") are each of one snapshot, and say what readers may plan by
and need not. No commit but one that sets or removes them touches them, and when their snapshot expires they leave the
metadata with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias

from icewright.core.times import Instant
from icewright.model.iceberg.names import TableId, TableName

Json: TypeAlias = Mapping[str, Any]
"""A JSON object as ``json.loads`` gives it, not to be changed."""

MAIN_BRANCH = "main"
_GC_KEY = "gc.enabled"
_DIGITS_MAX = 18
"""Of a number in a summary: below a long's most."""

ROW_LINEAGE_SINCE = 3
"""The format version from which on every row has an id (spec, "Row Lineage")."""

# Keys under which icewright signs its commits in the snapshot summary.
TASK_ID_KEY = "icewright.task-id"
ATTEMPT_KEY = "icewright.attempt"
PROOF_KEY = "icewright.proof"
LEVEL_KEY = "icewright.level"
LAYOUT_KEY = "icewright.layout"
UNDONE_KEY = "icewright.undone-task-id"
"""Of which task a commit takes back what it did."""
GROUPS_KEY = "icewright.groups"
"""Which groups of its action a commit is of (:func:`.group_ids.group_ids_text`); all where it is not
there."""


class Operation(StrEnum):
    """What a snapshot did, in the spec's words."""

    APPEND = "append"
    REPLACE = "replace"
    OVERWRITE = "overwrite"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One snapshot. ``sequence_number`` is 0 in v1 tables; ``operation`` is None where the writer left it out."""

    snapshot_id: int
    parent_id: int | None
    sequence_number: int
    committed_at: Instant
    operation: Operation | None
    manifest_list: str
    schema_id: int | None
    summary: Mapping[str, str]

    @property
    def task_id(self) -> str | None:
        """The icewright task that made this snapshot, if one did."""
        return self.summary.get(TASK_ID_KEY)

    @property
    def attempt(self) -> int | None:
        """The number of the attempt that made this snapshot, None where it does not say a number."""
        return self.number(ATTEMPT_KEY)

    def number(self, key: str) -> int | None:
        """A number of the summary, None where it has none that can be one: summaries are written by strangers."""
        said = self.summary.get(key, "")
        return int(said) if said.isdecimal() and said.isascii() and len(said) <= _DIGITS_MAX else None


class RefKind(StrEnum):
    """Branches move, tags do not."""

    BRANCH = "branch"
    TAG = "tag"


@dataclass(frozen=True, slots=True)
class Ref:
    """A named reference to a snapshot."""

    name: str
    kind: RefKind
    snapshot_id: int
    max_ref_age_ms: int | None = None
    max_snapshot_age_ms: int | None = None
    min_snapshots_to_keep: int | None = None


@dataclass(frozen=True, slots=True)
class LoggedSnapshot:
    """That a snapshot became the current one (spec, "Snapshot Log")."""

    at: Instant
    snapshot_id: int


@dataclass(frozen=True, slots=True)
class LoggedMetadata:
    """An earlier metadata file, and when it was written (spec, "Metadata Log")."""

    at: Instant
    location: str


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One field of a partition spec; ``transform`` as the spec writes it, e.g. ``month`` or ``bucket[16]``."""

    source_id: int
    field_id: int
    name: str
    transform: str


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """A partition spec; without fields (or with ``void`` alone) the table is unpartitioned under it."""

    spec_id: int
    fields: tuple[PartitionField, ...]

    @property
    def is_unpartitioned(self) -> bool:
        """Whether every file under this spec lies in the one empty partition."""
        return all(field.transform == "void" for field in self.fields)


@dataclass(frozen=True, slots=True)
class SortField:
    """One field of a sort order: direction ``asc``/``desc``, null order ``nulls-first``/``nulls-last``."""

    source_id: int
    transform: str
    direction: str
    null_order: str


@dataclass(frozen=True, slots=True)
class SortOrder:
    """A sort order; order 0 has no fields and means unsorted."""

    order_id: int
    fields: tuple[SortField, ...]


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema: ``fields`` is the spec's JSON of its struct, untouched."""

    schema_id: int
    fields: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class TableMetadata:
    """A table as of ``metadata_location``."""

    table_id: TableId
    name: TableName
    metadata_location: str
    location: str
    format_version: int
    updated_at: Instant
    current_snapshot_id: int | None
    snapshots: tuple[Snapshot, ...]
    refs: tuple[Ref, ...]
    schemas: tuple[Schema, ...]
    current_schema_id: int
    specs: tuple[PartitionSpec, ...]
    default_spec_id: int
    sort_order: SortOrder
    properties: Mapping[str, str]
    has_uuid: bool = True
    """False for a table of old without one: its id is made up of name and location, and it is only observed."""
    snapshot_log: tuple[LoggedSnapshot, ...] = ()
    metadata_log: tuple[LoggedMetadata, ...] = ()
    """Both in their order, the oldest first, as far back as they are kept."""
    statistics: tuple[StatisticsFile, ...] = ()
    partition_statistics: tuple[PartitionStatisticsFile, ...] = ()
    statistics_problem: str = ""
    """Why it is not known which statistics there are; nothing else depends on them."""

    @property
    def schema(self) -> Schema:
        """The current schema."""
        return next(schema for schema in self.schemas if schema.schema_id == self.current_schema_id)

    @property
    def collects_garbage(self) -> bool:
        """Whether its owner lets files go that its own metadata does not need, by ``gc.enabled``.

        As Java's ``Boolean.parseBoolean``, by which Iceberg reads properties: anything but ``true`` is false.
        """
        return self.properties.get(_GC_KEY, "true").lower() == "true"

    def snapshot(self, snapshot_id: int | None) -> Snapshot | None:
        """The snapshot of that id, or None when it is gone (or none is asked for)."""
        return next((s for s in self.snapshots if s.snapshot_id == snapshot_id), None)

    @property
    def current_snapshot(self) -> Snapshot | None:
        """The snapshot that readers see, None before the first commit."""
        return self.snapshot(self.current_snapshot_id)

    def spec(self, spec_id: int) -> PartitionSpec:
        """The partition spec of that id; KeyError when the metadata has none."""
        for spec in self.specs:
            if spec.spec_id == spec_id:
                return spec
        raise KeyError(spec_id)

    def statistics_of(self, snapshot_id: int) -> StatisticsFile | None:
        """The statistics file of a snapshot, None where it has none."""
        return next((one for one in reversed(self.statistics) if one.snapshot_id == snapshot_id), None)

    def partition_statistics_of(self, snapshot_id: int) -> PartitionStatisticsFile | None:
        """The partition statistics file of a snapshot, None where it has none."""
        return next((one for one in reversed(self.partition_statistics) if one.snapshot_id == snapshot_id), None)

    def ancestors(self, snapshot_id: int | None = None) -> tuple[Snapshot, ...]:
        """The lineage of a snapshot (the current one by default), newest first, as far back as it is kept."""
        by_id = {snapshot.snapshot_id: snapshot for snapshot in self.snapshots}
        lineage: list[Snapshot] = []
        newest = self.current_snapshot_id if snapshot_id is None else snapshot_id
        at = None if newest is None else by_id.get(newest)
        while at is not None and len(lineage) < len(by_id):
            lineage.append(at)
            at = by_id.get(at.parent_id) if at.parent_id is not None else None
        return tuple(lineage)

    def snapshot_of_task(self, task_id: str, attempt: int | None = None) -> Snapshot | None:
        """The newest snapshot that a task (that ``attempt`` of it, where one is given) committed, None without one.

        On any ref, also when it was rolled back since: the truth about whether the task took effect.
        """
        for snapshot in reversed(self.snapshots):
            if snapshot.task_id == task_id and attempt in (None, snapshot.attempt):
                return snapshot
        return None


THETA_SKETCH: Final = "apache-datasketches-theta-v1"
"""The type of a blob that estimates how many distinct values its one field has (Puffin spec)."""
NDV_KEY: Final = "ndv"
"""The property of such a blob that has the estimate, in decimal digits."""


@dataclass(frozen=True, slots=True)
class StatisticsBlob:
    """A blob of a Puffin file, as the metadata describes it."""

    type: str
    snapshot_id: int
    sequence_number: int
    field_ids: tuple[int, ...]
    properties: Mapping[str, str]

    @property
    def ndv(self) -> int | None:
        """How many distinct values its field has, about; None where it does not say a number."""
        said = self.properties.get(NDV_KEY, "")
        return int(said) if said.isdecimal() and said.isascii() and len(said) < 20 else None  # noqa: PLR2004 - a long

    @property
    def sketched_field(self) -> int | None:
        """The field whose distinct values it estimates; None for a blob of any other kind."""
        return self.field_ids[0] if self.type == THETA_SKETCH and len(self.field_ids) == 1 else None


@dataclass(frozen=True, slots=True)
class StatisticsFile:
    """The Puffin file with the statistics of one snapshot; there is at most one of each."""

    snapshot_id: int
    path: str
    size_bytes: int
    footer_size_bytes: int
    blobs: tuple[StatisticsBlob, ...]

    @property
    def sketched_fields(self) -> frozenset[int]:
        """The fields whose distinct values it estimates."""
        return frozenset(blob.sketched_field for blob in self.blobs if blob.sketched_field is not None)


@dataclass(frozen=True, slots=True)
class PartitionStatisticsFile:
    """The file with one row per partition of one snapshot; there is at most one of each."""

    snapshot_id: int
    path: str
    size_bytes: int
