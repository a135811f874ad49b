"""The step of an inventory from what is stored to what is there now, with the runs whose files it counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from icewright.catalogs.port import Catalog
from icewright.model.iceberg.inventory import ManifestKey, ManifestSummary, PartitionStatistics
from icewright.model.iceberg.layouts import Run, runs_of
from icewright.model.iceberg.tables import TableMetadata
from icewright.ports.store import InventoryUpdate

RUNS_REMEMBERED = 1_000
"""Runs kept of a table that have neither a live file nor a snapshot: a rollback may bring their files back."""


def updated(stored: Sequence[PartitionStatistics], update: InventoryUpdate) -> tuple[PartitionStatistics, ...]:
    """What the store has after an update, without asking it for all of it again."""
    by_partition = {statistics.partition: statistics for statistics in (*stored, *update.changed_partitions)}
    for partition in update.removed_partitions:
        by_partition.pop(partition, None)
    return tuple(by_partition[partition] for partition in sorted(by_partition))


def run_ids(partitions: Sequence[PartitionStatistics]) -> frozenset[int]:
    """The runs that have live files."""
    return frozenset(snapshot_id for statistics in partitions for snapshot_id in statistics.counts.runs)


def with_runs(
    update: InventoryUpdate,
    known: Mapping[int, Run],
    runs: Mapping[int, Run],
    metadata: TableMetadata,
    live: AbstractSet[int],
) -> InventoryUpdate:
    """The update with the runs that are new to the store, and those that it need not know any more, oldest first."""
    needed = live | runs_of(metadata).keys()
    others = sorted(runs.keys() - needed, key=lambda snapshot_id: (runs[snapshot_id].committed_at, snapshot_id))
    added = {snapshot_id: run for snapshot_id, run in runs.items() if known.get(snapshot_id) != run}
    return replace(update, added_runs=added, removed_runs=tuple(others[: max(0, len(others) - RUNS_REMEMBERED)]))


def summaries(
    catalog: Catalog, metadata: TableMetadata, keys: Sequence[ManifestKey], runs: AbstractSet[int]
) -> list[ManifestSummary]:
    """What manifests of the table's current snapshot say, as :meth:`Catalog.summarize` gives it."""
    snapshot = metadata.current_snapshot
    return [] if snapshot is None else list(catalog.summarize(metadata, snapshot, keys, runs))
