"""Triggers: when the small files of a partition are merged, told from its statistics, so that no file is read in vain.

A trigger has an opinion of one partition: that it fires, with its rule and numbers, and which files are then left to
the packing; or what is missing, and when time alone would make it fire. Deletes are no matter of triggers: files with
too many of them are rewritten under each.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Final

from icewright.actions.rewrite_data_files.packing import GROWTH_OF_MANY
from icewright.actions.rewrite_data_files.triggers.cost_benefit import NOT_WORTH_IT, cost_benefit
from icewright.actions.rewrite_data_files.triggers.tiered import tiered
from icewright.actions.rewrite_data_files.triggers.trigger_result import (
    GATHERING,
    Rule,
    Small,
    TriggerResult,
    not_before,
    nothing_to_merge,
)
from icewright.core import wording
from icewright.core.times import Instant
from icewright.inventory import histogram
from icewright.inventory.arithmetic import avoidable_files
from icewright.inventory.commit_rate import arrival_bytes_per_ms, commits_since
from icewright.model.iceberg.files import FileContent, Partition
from icewright.model.iceberg.inventory import ManifestKey, ManifestSummary, PartitionStatistics
from icewright.model.iceberg.tables import Snapshot, TableMetadata
from icewright.model.plans.observation import Observation
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import Policy, Trigger

WITH_INTERVALS: Final = frozenset({Trigger.MSE, Trigger.TIERED})
"""Triggers that always ask when a partition was last rewritten."""

CLOCK_AHEAD_MS_MAX: Final = 60_000
"""How far ahead of ours the clock of an optimizer or a writer may be; what is dated later is not believed."""

GATHER_MS: Final = 900_000
"""``levels`` lets the files of a busy writer gather for half as long to this long: a merge of many costs less than
several of few, and a quarter of an hour is as long as merging may take (the bound of benchmark B12)."""

GATHERED_FILES: Final = 200
"""From so many small files on it does not wait: readers open each of them."""

QUIET_MS: Final = 60_000
"""Data still comes to a partition for so long after its last commit, and for two commit intervals at least."""

_SPAN_MS: Final = GATHER_MS // 2

SMALL_FILES: Final = "small-files"
"""The reason of a candidate under the trigger ``levels``: there are enough small files."""


@dataclass(frozen=True, slots=True)
class Rhythm:
    """Of a writer whose commits follow each other so fast that several of them can be merged at once.

    ``commits`` are the latest, newest first, without those dated ahead; ``offset_ms`` is where the table's spans of
    time begin, so that not all tables are due at the same moment, but all partitions of a table are.
    """

    interval_ms: int
    commits: tuple[Instant, ...]
    offset_ms: int

    @classmethod
    def of(cls, observation: Observation, now: Instant) -> Rhythm | None:
        """None unless somebody has written for :data:`~.commit_rate.RHYTHM_MS`, and at least twice in a span.

        Also where rows are removed, with whose writers larger merges would collide more often.
        """
        metadata, interval_ms = observation.metadata, observation.commit_interval_ms
        if interval_ms is None or interval_ms > _SPAN_MS or observation.removals.any:
            return None
        if arrival_bytes_per_ms(metadata) is None:
            return None
        offset_ms = zlib.crc32(metadata.table_id.uuid.encode()) % _SPAN_MS
        commits = (at for at in commits_since(metadata, now - 2 * GATHER_MS) if at <= now + CLOCK_AHEAD_MS_MAX)
        return cls(interval_ms, tuple(commits), offset_ms)

    def due_at(self, rewritten_at: Instant | None) -> Instant:
        """When the files that came since are merged, however few: the end of a span, half of one later at least."""
        since = 0 if rewritten_at is None else rewritten_at
        first_at = min((at for at in self.commits if at > since), default=since)
        return -(-(first_at + _SPAN_MS - self.offset_ms) // _SPAN_MS) * _SPAN_MS + self.offset_ms

    def quiet_at(self, written_at: Instant) -> Instant:
        """From when on a partition gets no more data, as far as anybody can tell."""
        return written_at + max(QUIET_MS, 2 * self.interval_ms)


def asks_for_rewrites(observation: Observation, policy: Policy, now: Instant) -> bool:
    """Whether the trigger asks when partitions were last rewritten."""
    levels_asks = policy.trigger is Trigger.LEVELS and Rhythm.of(observation, now) is not None
    return levels_asks or policy.trigger in WITH_INTERVALS


@dataclass(frozen=True, slots=True)
class Judge:
    """The trigger of one table at one moment.

    ``rewritten_at`` has the partitions that a commit of ours rewrote lately; ``arrival_bytes_per_ms`` is how fast data
    comes into the table, None where nobody can tell. ``rhythm`` is that of a busy writer, None where there is none.
    """

    policy: Policy
    now: Instant
    rewritten_at: Mapping[Partition, Instant]
    arrival_bytes_per_ms: float | None
    rhythm: Rhythm | None

    @classmethod
    def of(cls, observation: Observation, policy: Policy, now: Instant) -> Judge:
        """The trigger that the policy names."""
        metadata = observation.metadata
        rhythm = Rhythm.of(observation, now)
        return cls(policy, now, observation.rewritten_at, arrival_bytes_per_ms(metadata), rhythm)

    def judge_partition(self, statistics: PartitionStatistics) -> TriggerResult:
        """What the trigger says of a partition."""
        match self.policy.trigger:
            case Trigger.LEVELS:
                rewritten_at = self.rewritten_at.get(statistics.partition)
                return levels(statistics, self.policy, self.rhythm, rewritten_at, self.now)
            case Trigger.MSE:
                return mse(statistics, self.policy, self.rewritten_at.get(statistics.partition), self.now)
            case Trigger.TIERED:
                return tiered(statistics, self.policy, self.rewritten_at.get(statistics.partition), self.now)
            case Trigger.COST_BENEFIT:
                return cost_benefit(statistics, self.policy, self.arrival_bytes_per_ms, self.now)


def unworthy_files(observation: Observation, policy: Policy, now: Instant) -> int:
    """How many files merging would take away where the trigger says that it costs more than readers would save."""
    if policy.trigger is not Trigger.COST_BENEFIT:
        return 0
    judge = Judge.of(observation, policy, now)
    return sum(
        avoidable_files(
            statistics.counts,
            small_file_size_bytes=policy.small_file_size_bytes,
            min_input_files=policy.min_input_files,
        )
        for statistics in observation.inventory.partitions
        if judge.judge_partition(statistics).reason.code == NOT_WORTH_IT
    )


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
    statistics: PartitionStatistics, policy: Policy, rhythm: Rhythm | None, rewritten_at: Instant | None, now: Instant
) -> TriggerResult:
    """Fires from ``min_input_files`` small files on, where merging them makes fewer.

    Files of a busy writer gather first: until :meth:`Rhythm.due_at`, or until there are many. Where they fill a file by
    then, and more is coming, full files are made, and what does not fill one waits for what comes: it would be written
    again right then.
    """
    small, files = Small.of(statistics, policy), statistics.counts.data_files
    nothing = nothing_to_merge(files, small, policy, policy.min_input_files)
    if nothing is not None:
        return TriggerResult(nothing)
    reason = Reason(SMALL_FILES, f"{small.said} of {files:,}", small.figures)
    if rhythm is None or statistics.written_at is None:
        return TriggerResult(reason, Rule(policy.min_input_files), small.after(files))
    due_at = rhythm.due_at(rewritten_at)
    if now < due_at and small.files < GATHERED_FILES:
        text = f"{small.said} of {files:,}; merged with what comes by {wording.instant(due_at)}"
        return TriggerResult(Reason(GATHERING, text, small.figures), until=due_at)
    full = small.size_bytes // policy.output_size_bytes_max
    quiet_at = rhythm.quiet_at(statistics.written_at)
    is_coming = full > 0 and now < quiet_at
    merged = small.files * full * policy.output_size_bytes_max // small.size_bytes if is_coming else 0
    after = files - merged + full if is_coming else small.after(files)
    rule = Rule(policy.min_input_files, leaves_newest=is_coming, growth_most=GROWTH_OF_MANY)
    return TriggerResult(reason, rule, after, quiet_at if is_coming else None)


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
