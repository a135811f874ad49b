"""What a commit of statistics did to its table, by the table's own log of metadata files.

The commit is that between the newest state without the files and the oldest with them. Whatever else it changed is an
alarm. Whether the files hold what they should, the job has proved before the commit.
"""

from __future__ import annotations

from functools import partial

from icewright.actions.compute_statistics.commit import computed, problem_of_statistics
from icewright.catalogs.port import Catalog
from icewright.core import wording
from icewright.core.errors import Unreadable
from icewright.inventory.commit_search import commit_in_log
from icewright.model.actions.compute_statistics import ComputeStatistics
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.plans import Reason


def problem_of_commit(catalog: Catalog, metadata: TableMetadata, action: ComputeStatistics) -> Reason | None:
    """What is wrong with the commit that set the statistics which the table has now; None where nothing is."""
    try:
        before, after = commit_in_log(
            [entry.location for entry in metadata.metadata_log],
            action.base_metadata_location,
            metadata,
            partial(catalog.earlier, metadata),
            lambda state: computed(action, state) is not None,
        )
    except Unreadable:  # writers may delete the files of their log
        before, after = None, metadata
    return problem_of_statistics(before, after, action)


def verified_statistics(action: ComputeStatistics, metadata: TableMetadata) -> Reason:
    """What a commit brought that is as it should be."""
    figures: dict[str, int | float | str] = {"columns": len(action.columns), "records": action.records}
    said = []
    there = metadata.statistics_of(action.base_snapshot_id)
    if action.columns and there is not None:
        figures |= {"blobs": len(there.blobs), "statistics_bytes": there.size_bytes}
        said.append(f"distinct values of {wording.count(len(action.columns), 'column')}")
    of_partitions = metadata.partition_statistics_of(action.base_snapshot_id)
    if action.partition_totals is not None and of_partitions is not None:
        figures["partition_statistics_bytes"] = of_partitions.size_bytes
        said.append("figures of its partitions")
    return Reason("verified", f"snapshot {action.base_snapshot_id} has {' and '.join(said)}", figures)
