"""Which partitions icewright has optimized, and when: read from the table's own snapshots, so it holds anywhere."""

from __future__ import annotations

from collections.abc import Mapping

from icewright.catalogs.port import Catalog
from icewright.core.times import Instant
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.tables import TableMetadata

REWRITES_LOOKED_AT = 50
"""Our latest commits that are looked into; each costs the manifests that it added."""


def optimized_at(catalog: Catalog, metadata: TableMetadata) -> Mapping[Partition, Instant]:
    """The time of the last of our commits that replaced files, by partition.

    As far back as the table keeps its snapshots, at most :data:`REWRITES_LOOKED_AT` commits. Raises what
    :meth:`~icewright.catalogs.port.Catalog.summarize` raises.
    """
    found: dict[Partition, Instant] = {}
    ours = [snapshot for snapshot in metadata.ancestors() if snapshot.task_id is not None]
    for snapshot in ours[:REWRITES_LOOKED_AT]:
        keys = [k for k in catalog.manifests(metadata, snapshot) if k.added_snapshot_id == snapshot.snapshot_id]
        for summary in catalog.summarize(metadata, snapshot, keys):
            for partition, share in summary.partitions.items():
                if share.removed_files:
                    found[partition] = max(found.get(partition, 0), snapshot.committed_at)
    return found
