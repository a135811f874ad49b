"""Triggers: when the small files of a partition are merged, told from its statistics, so that no file is read in vain.

A trigger has an opinion of one partition: that it fires, with its rule and numbers, and which files are then left to
the packing; or what is missing, and when time alone would make it fire. Deletes are no matter of triggers: files with
too many of them are rewritten under each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Final

from icewright.actions.rewrite_data_files.triggers.cost_benefit import cost_benefit
from icewright.actions.rewrite_data_files.triggers.tiered import tiered
from icewright.actions.rewrite_data_files.triggers.trigger_result import (
    Rule,
    Small,
    TriggerResult,
    not_before,
    nothing_to_merge,
)
from icewright.core import wording
from icewright.core.times import Instant
from icewright.inventory import histogram
from icewright.inventory.commit_rate import arrival_bytes_per_ms
from icewright.model.iceberg.files import FileContent, Partition
from icewright.model.iceberg.inventory import ManifestKey, ManifestSummary, PartitionStatistics
from icewright.model.iceberg.tables import Snapshot, TableMetadata
from icewright.model.plans.observation import Observation
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import Policy, Trigger

WITH_INTERVALS: Final = frozenset({Trigger.MSE, Trigger.TIERED})
"""Triggers that ask when a partition was last rewritten."""

CLOCK_AHEAD_MS_MAX: Final = 60_000
"""How far ahead of ours the clock of an optimizer may be; what is dated later is not believed."""

FULL_SOON_MS: Final = 600_000
"""``levels`` waits for a file to be filled that is full within this: ten minutes, as fresh as merged data has to be."""

LATE_MS: Final = 60_000
"""As long as young files are left out."""

MANY_GROUPS: Final = 10
"""It does not wait where there are small files for so many groups: readers open each of them."""

SMALL_FILES: Final = "small-files"
"""The reason of a candidate under the trigger ``levels``: there are enough small files."""


@dataclass(frozen=True, slots=True)
class Judge:
    """The trigger of one table at one moment.

    ``rewritten_at`` has the partitions that a commit of ours rewrote lately; ``arrival_bytes_per_ms`` is how fast data
    comes into the table, None where nobody can tell.
    """

    policy: Policy
    now: Instant
    rewritten_at: Mapping[Partition, Instant]
    arrival_bytes_per_ms: float | None

    @classmethod
    def of(cls, observation: Observation, policy: Policy, now: Instant) -> Judge:
        """The trigger that the policy names."""
        return cls(policy, now, observation.rewritten_at, arrival_bytes_per_ms(observation.metadata))

    def judge_partition(self, statistics: PartitionStatistics) -> TriggerResult:
        """What the trigger says of a partition."""
        match self.policy.trigger:
            case Trigger.LEVELS:
                return levels(statistics, self.policy, self.arrival_bytes_per_ms, self.now)
            case Trigger.MSE:
                return mse(statistics, self.policy, self.rewritten_at.get(statistics.partition), self.now)
            case Trigger.TIERED:
                return tiered(statistics, self.policy, self.rewritten_at.get(statistics.partition), self.now)
            case Trigger.COST_BENEFIT:
                return cost_benefit(statistics, self.policy, self.arrival_bytes_per_ms, self.now)


def our_commits(metadata: TableMetadata, manifests: Iterable[ManifestKey], now: Instant) -> Mapping[int, Instant]:
    """The commits of ours that added some of these manifests, and when, by snapshot id.

    Not those that rewrote manifests, which wrote to no partition.
    """
    adding = {key.added_snapshot_id for key in manifests}
    return {
        snapshot.snapshot_id: snapshot.committed_at
        for snapshot in metadata.snapshots
        if snapshot.task_id is not None
        and not _moved_entries_alone(snapshot)
        and snapshot.snapshot_id in adding
        and snapshot.committed_at <= now + CLOCK_AHEAD_MS_MAX
    }


def _moved_entries_alone(snapshot: Snapshot) -> bool:
    files = (snapshot.summary.get(key, "0") for key in ("added-data-files", "deleted-data-files"))
    return "manifests-replaced" in snapshot.summary and all(count == "0" for count in files)


def rewritten_at(commits: Mapping[int, Instant], summaries: Iterable[ManifestSummary]) -> Mapping[Partition, Instant]:
    """When our ``commits`` last wrote to each partition, as far as the live manifests tell.

    Told by the table itself, so it is right after restarts and rollbacks. A commit whose manifests were merged with
    others since, or whose snapshot has expired, is forgotten: then a partition is due somewhat earlier.
    """
    latest: dict[Partition, Instant] = {}
    for summary in summaries:
        at = commits.get(summary.key.added_snapshot_id)
        if at is None or summary.content is not FileContent.DATA:
            continue
        for partition, share in summary.partitions.items():
            if share.counts.data_files:
                latest[partition] = max(at, latest.get(partition, at))
    return latest


def levels(
    statistics: PartitionStatistics, policy: Policy, arrival_bytes_per_ms: float | None, now: Instant
) -> TriggerResult:
    """Fires from ``min_input_files`` small files on, where merging them makes fewer.

    But not while data comes so fast that what is there soon fills a file: it would be written again right then. So a
    few files wait for as long as that takes, counted from the last write, and many do not wait.
    """
    small, files = Small.of(statistics, policy), statistics.counts.data_files
    nothing = nothing_to_merge(files, small, policy, policy.min_input_files)
    if nothing is not None:
        return TriggerResult(nothing)
    full_at = _full_at(statistics, small, policy, arrival_bytes_per_ms)
    if full_at is not None and now < full_at and small.files < MANY_GROUPS * policy.min_input_files:
        text = f"{small.said} of {files:,}; as fast as data comes they fill a file by {wording.instant(full_at)}"
        return TriggerResult(Reason("full-soon", text, small.figures), until=full_at)
    reason = Reason(SMALL_FILES, f"{small.said} of {files:,}", small.figures)
    return TriggerResult(reason, Rule(policy.min_input_files), small.after(files))


def _full_at(
    statistics: PartitionStatistics, small: Small, policy: Policy, arrival_bytes_per_ms: float | None
) -> Instant | None:
    """Until when the small files of a partition should fill one, where that is soon; None else, or if they do already.

    Twice as long after its last write as the latest rate says, and some: writers are not that regular, and the youngest
    files are not merged yet.
    """
    missing = policy.small_file_size_bytes - small.size_bytes
    if not arrival_bytes_per_ms or missing <= 0 or statistics.written_at is None:
        return None
    wait_ms = ceil(missing / arrival_bytes_per_ms)
    return statistics.written_at + 2 * wait_ms + LATE_MS if wait_ms <= FULL_SOON_MS else None


def mse(statistics: PartitionStatistics, policy: Policy, rewritten_at: Instant | None, now: Instant) -> TriggerResult:
    """Fires when file sizes are too far below their target, at most once in an interval for a partition.

    With n files of sizes s_i, all files of the partition, and the target T::

        error = sqrt( 1/n * SUM_i (T - min(s_i, T))**2 ) / T,    fires iff error >= ratio

    The mean squared error is that of Netflix's AutoOptimize ("partition entropy", 2020) and of AutoComp's trait "file
    entropy" (Gruenheid et al., SIGMOD 2025): files above the target are as good as the target. Tencent's TBDS publishes
    the method, checked hourly for 128 MB and 20 %, but not of what the 20 % are; here they are of the target, which
    makes the root the thing to compare, as Apache Amoro does with a tolerance in bytes (``mse >= tolerance**2``,
    its ``MetadataBasedEvaluationEvent``; it takes the mean over the files below 0.75 T, and their distance from that).
    Scaling all sizes and the target changes nothing.
    """
    target, files = policy.output_size_bytes_max, statistics.counts.data_files
    small = Small.of(statistics, policy)
    nothing = nothing_to_merge(files, small, policy, 2)
    if nothing is not None:
        return TriggerResult(nothing)
    error = sqrt(histogram.mean_square_shortfall(statistics.counts.sizes, target)) / target
    said = f"its {wording.count(files, 'file')} are {error:.0%} of {wording.size(target)} too small (root mean square)"
    figures = {**small.figures, "size_error": round(error, 4), "size_error_from": policy.mse_ratio}
    if error < policy.mse_ratio:
        return TriggerResult(Reason("size-error-low", f"{said}; merged from {policy.mse_ratio:.0%} on", figures))
    due_at = None if rewritten_at is None else rewritten_at + policy.mse_interval_ms
    if due_at is not None and now < due_at:
        return TriggerResult(Reason("interval", f"{said}; {not_before(rewritten_at, due_at)}", figures), until=due_at)
    rule = Rule(2, allow_dominated=True)
    return TriggerResult(Reason("size-error", f"{said}; {small.said}", figures), rule, small.after(files))
