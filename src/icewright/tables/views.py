"""What is shown of tables, for the command line and the API alike: built from domain values by reading alone.

Each view is flat, complete and serialisable (:mod:`icewright.core.codec`); names of fields are part of the public
interface. Lists that can be long (partitions, manifests, files) come one element at a time. Ids of snapshots are texts:
JavaScript reads no number of 64 bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from icewright.core.times import Instant
from icewright.model.iceberg.files import DataFile, Partition
from icewright.model.iceberg.inventory import ManifestSummary, PartitionStatistics
from icewright.model.iceberg.tables import Operation, Snapshot, TableMetadata
from icewright.model.plans.observation import Observation
from icewright.model.policy.policy import Mode, Policy, PolicyProblem
from icewright.model.work.figures import FiguresView
from icewright.observation.figures import figures_view
from icewright.ownership.location_views import PlaceView
from icewright.policy.schema_views import (
    ColumnView,
    LayoutView,
    SettingView,
    columns,
    layout_view,
    setting_views,
    sort_order_text,
    spec_text,
)


@dataclass(frozen=True, slots=True)
class SnapshotPlace:
    """Where a snapshot is in the list of its table's, the newest first."""

    committed_at: Instant
    sequence_number: int
    snapshot_id: int

    def is_behind(self, other: SnapshotPlace) -> bool:
        """Whether it comes later in the list than another one, which may have expired meanwhile."""
        return self._key > other._key

    @property
    def _key(self) -> tuple[int, int, int]:
        return -self.committed_at, -self.sequence_number, self.snapshot_id


@dataclass(frozen=True, slots=True)
class SnapshotView:
    """One snapshot; ``is_ancestor`` tells whether the current state was built on it."""

    snapshot_id: str
    parent_id: str | None
    sequence_number: int
    committed_at: Instant
    operation: str | None
    is_current: bool
    is_ancestor: bool
    refs: tuple[str, ...]
    task_id: str | None
    summary: Mapping[str, str]

    @property
    def place(self) -> SnapshotPlace:
        """Where it is in the list."""
        return SnapshotPlace(self.committed_at, self.sequence_number, int(self.snapshot_id))


@dataclass(frozen=True, slots=True)
class RefView:
    """One branch or tag; ``committed_at`` is None where its snapshot is gone."""

    name: str
    type: str
    snapshot_id: str
    committed_at: Instant | None
    max_ref_age_ms: int | None
    max_snapshot_age_ms: int | None
    min_snapshots_to_keep: int | None


@dataclass(frozen=True, slots=True)
class ManifestView:
    """One manifest of the current snapshot, and what its live entries add up to."""

    path: str
    content: str
    length_bytes: int
    added_snapshot_id: str
    partitions: int
    data_files: int
    size_bytes: int
    records: int
    delete_files: int
    removed_files: int


@dataclass(frozen=True, slots=True)
class FileView:
    """One live data file of the current snapshot."""

    path: str
    partition: str
    spec_id: int
    format: str
    size_bytes: int
    records: int
    is_small: bool
    snapshot_id: str
    data_sequence_number: int


@dataclass(frozen=True, slots=True)
class TableView:
    """One table as of its current snapshot; ``place`` as it was last seen, beside all other tables that are known.

    Data files below ``small_file_size_bytes`` are small.
    """

    name: str
    catalog: str
    uuid: str
    format_version: int
    location: str
    metadata_location: str
    observed_at: Instant
    updated_at: Instant
    current_snapshot_id: str | None
    snapshots: int
    figures: FiguresView
    written_at: Instant | None
    optimized_at: Instant | None
    commit_interval_ms: int | None
    mode: Mode
    policy: tuple[SettingView, ...]
    policy_problems: tuple[PolicyProblem, ...]
    partition_spec: str
    sort_order: str
    layout: LayoutView | None
    refs: tuple[RefView, ...]
    columns: tuple[ColumnView, ...]
    place: PlaceView
    small_file_size_bytes: int


def table_view(
    metadata: TableMetadata,
    policy: Policy,
    partitions: Sequence[PartitionStatistics],
    *,
    observed_at: Instant,
    commit_interval_ms: int | None,
    place: PlaceView,
) -> TableView:
    """The whole table."""
    return TableView(
        name=str(metadata.name),
        catalog=metadata.name.catalog,
        uuid=metadata.table_id.uuid,
        format_version=metadata.format_version,
        location=metadata.location,
        metadata_location=metadata.metadata_location,
        observed_at=observed_at,
        updated_at=metadata.updated_at,
        current_snapshot_id=id_text(metadata.current_snapshot_id),
        snapshots=len(metadata.snapshots),
        figures=figures_view(partitions, policy),
        written_at=written_at(metadata),
        optimized_at=_latest(s for s in metadata.ancestors() if s.task_id is not None),
        commit_interval_ms=commit_interval_ms,
        mode=policy.mode,
        policy=setting_views(policy),
        policy_problems=policy.problems,
        partition_spec=spec_text(metadata, metadata.spec(metadata.default_spec_id)),
        sort_order=sort_order_text(metadata, metadata.sort_order),
        layout=layout_view(metadata, policy),
        refs=ref_views(metadata),
        columns=columns(metadata.schema),
        place=place,
        small_file_size_bytes=policy.small_file_size_bytes,
    )


def id_text(snapshot_id: int | None) -> str | None:
    """The id of a snapshot as views have it."""
    return None if snapshot_id is None else str(snapshot_id)


def written_at(metadata: TableMetadata) -> Instant | None:
    """When something was last written that was no rewrite, as far back as snapshots are kept."""
    return _latest(s for s in metadata.ancestors() if s.operation is not Operation.REPLACE)


def observed_table_view(observation: Observation, policy: Policy, place: PlaceView) -> TableView:
    """The whole table as it was just observed."""
    return table_view(
        observation.metadata,
        policy,
        observation.inventory.partitions,
        observed_at=observation.observed_at,
        commit_interval_ms=observation.commit_interval_ms,
        place=place,
    )


def snapshot_views(metadata: TableMetadata) -> tuple[SnapshotView, ...]:
    """All snapshots that the metadata has, newest first."""
    lineage = frozenset(snapshot.snapshot_id for snapshot in metadata.ancestors())
    refs: dict[int, list[str]] = {}
    for ref in metadata.refs:
        refs.setdefault(ref.snapshot_id, []).append(ref.name)
    return tuple(
        SnapshotView(
            snapshot_id=str(snapshot.snapshot_id),
            parent_id=id_text(snapshot.parent_id),
            sequence_number=snapshot.sequence_number,
            committed_at=snapshot.committed_at,
            operation=None if snapshot.operation is None else snapshot.operation.value,
            is_current=snapshot.snapshot_id == metadata.current_snapshot_id,
            is_ancestor=snapshot.snapshot_id in lineage,
            refs=tuple(sorted(refs.get(snapshot.snapshot_id, ()))),
            task_id=snapshot.task_id,
            summary=snapshot.summary,
        )
        for snapshot in sorted(metadata.snapshots, key=lambda s: (-s.committed_at, -s.sequence_number, s.snapshot_id))
    )


def ref_views(metadata: TableMetadata) -> tuple[RefView, ...]:
    """All branches and tags, by name."""
    committed_at = {snapshot.snapshot_id: snapshot.committed_at for snapshot in metadata.snapshots}
    return tuple(
        RefView(
            name=ref.name,
            type=ref.kind.value,
            snapshot_id=str(ref.snapshot_id),
            committed_at=committed_at.get(ref.snapshot_id),
            max_ref_age_ms=ref.max_ref_age_ms,
            max_snapshot_age_ms=ref.max_snapshot_age_ms,
            min_snapshots_to_keep=ref.min_snapshots_to_keep,
        )
        for ref in sorted(metadata.refs, key=lambda ref: ref.name)
    )


def manifest_view(summary: ManifestSummary) -> ManifestView:
    """One manifest."""
    shares = summary.partitions.values()
    return ManifestView(
        path=summary.key.path,
        content=summary.content.value,
        length_bytes=summary.key.length_bytes,
        added_snapshot_id=str(summary.key.added_snapshot_id),
        partitions=len(summary.partitions),
        data_files=sum(share.counts.data_files for share in shares),
        size_bytes=sum(share.counts.data_bytes for share in shares),
        records=sum(share.counts.records for share in shares),
        delete_files=sum(share.counts.delete_files for share in shares),
        removed_files=sum(share.removed_files for share in shares),
    )


def file_view(file: DataFile, paths: Mapping[Partition, str], policy: Policy) -> FileView:
    """One data file; ``paths`` are its table's partitions in words."""
    return FileView(
        path=file.path,
        partition=paths[file.partition],
        spec_id=file.partition.spec_id,
        format=file.file_format.value,
        size_bytes=file.size_bytes,
        records=file.record_count,
        is_small=file.size_bytes < policy.small_file_size_bytes,
        snapshot_id=str(file.snapshot_id),
        data_sequence_number=file.data_sequence_number,
    )


def _latest(snapshots: Iterable[Snapshot]) -> Instant | None:
    return max((snapshot.committed_at for snapshot in snapshots), default=None)
