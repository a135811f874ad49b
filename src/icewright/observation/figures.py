"""What the figures of a table are by a look at it: of each partition, their sums, and what lists show of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import fsum

from icewright.core.times import Instant
from icewright.inventory import histogram
from icewright.inventory.arithmetic import avoidable_files, optimization_ratio
from icewright.model.iceberg.inventory import PartitionStatistics
from icewright.model.plans.plans import Plan
from icewright.model.policy.policy import Policy
from icewright.model.work.figures import FiguresView, PlanSummary


@dataclass(frozen=True, slots=True)
class PartitionView:
    """One partition. ``optimization_ratio`` is 1.0 when merging has nothing left to do."""

    path: str
    spec_id: int
    values: str
    data_files: int
    size_bytes: int
    records: int
    small_files: int
    small_bytes: int
    delete_files: int
    position_delete_files: int
    deletion_vectors: int
    equality_delete_files: int
    deleted_records: int
    formats: Mapping[str, int]
    optimization_ratio: float
    written_at: Instant | None
    optimized_at: Instant | None
    avoidable_files: int = 0


def partition_view(
    statistics: PartitionStatistics, policy: Policy, optimized_at: Instant | None = None
) -> PartitionView:
    """One partition, small files and ratio by the table's own policy."""
    counts, threshold_bytes = statistics.counts, policy.small_file_size_bytes
    small_files, small_bytes = histogram.small(counts.sizes, threshold_bytes)
    return PartitionView(
        path=statistics.path,
        spec_id=statistics.partition.spec_id,
        values=statistics.partition.values,
        data_files=counts.data_files,
        size_bytes=counts.data_bytes,
        records=counts.records,
        small_files=small_files,
        small_bytes=small_bytes,
        delete_files=counts.delete_files,
        position_delete_files=counts.position_delete_files,
        deletion_vectors=counts.deletion_vectors,
        equality_delete_files=counts.equality_delete_files,
        deleted_records=counts.deleted_records,
        formats={kind.value: files for kind, files in counts.formats.items()},
        optimization_ratio=optimization_ratio(
            counts,
            small_file_size_bytes=threshold_bytes,
            target_file_size_bytes=policy.output_size_bytes_max,
            min_input_files=policy.min_input_files,
        ),
        written_at=statistics.written_at,
        optimized_at=optimized_at,
        avoidable_files=avoidable_files(
            counts,
            small_file_size_bytes=threshold_bytes,
            min_input_files=policy.min_input_files,
        ),
    )


def figures_view(partitions: Iterable[PartitionStatistics], policy: Policy) -> FiguresView:
    """The sums; one pass, so that partitions may come from a cursor."""
    sums = dict.fromkeys(_SUMMED, 0)
    formats: dict[str, int] = {}
    possible: list[float] = []
    count = 0
    for statistics in partitions:
        view = partition_view(statistics, policy)
        count += 1
        for name in _SUMMED:
            sums[name] += getattr(view, name)
        for kind, files in view.formats.items():
            formats[kind] = formats.get(kind, 0) + files
        possible.append(view.optimization_ratio * view.data_files)
    ratio = fsum(possible) / sums["data_files"] if sums["data_files"] else 1.0
    return FiguresView(partitions=count, formats=formats, optimization_ratio=ratio, **sums)


_SUMMED = (
    "data_files",
    "size_bytes",
    "records",
    "small_files",
    "small_bytes",
    "delete_files",
    "position_delete_files",
    "deletion_vectors",
    "equality_delete_files",
    "deleted_records",
    "avoidable_files",
)


def plan_summary(plan: Plan) -> PlanSummary:
    """A plan in one line."""
    after = None if plan.rewrite_prediction is None else plan.rewrite_prediction.data_files_after
    return PlanSummary(plan.plan_id, plan.planned_at, plan.reason, not plan.is_empty, after)
