"""The trigger ``tiered``: minor, major and full, by Apache Amoro's rules."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from icewright.actions.rewrite_data_files.triggers.trigger_result import Rule, Small, TriggerResult, not_before
from icewright.core import wording
from icewright.core.times import Instant
from icewright.inventory import histogram
from icewright.model.iceberg.inventory import PartitionStatistics, SizeHistogram
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import Policy

_PAIR = 2
"""The fewest files of which merging makes fewer."""


def tiered(
    statistics: PartitionStatistics, policy: Policy, rewritten_at: Instant | None, now: Instant
) -> TriggerResult:
    """Fires by the rules of Apache Amoro (0.9, ``CommonPartitionEvaluator``) for files without deletes.

    A *fragment* has at most target / fragment-ratio bytes; an *undersized* file more than that, and less than what is
    small (Amoro's ``min-target-size-ratio``, 0.75, is our ``min-file-size-ratio``). Then

    - *full* (its interval is over): there are two fragments or two undersized files; all are packed together;
    - else *major*: undersized files have the bytes of a target together, and the two smallest of them fit into one;
    - or *minor*: fragments and equality deletes are ``minor-file-count`` together, or two and the interval is over.

    In minor and major, fragments are packed among themselves, and undersized files among themselves. Different here:
    the interval is that of the partition and not of the table, and counts from its last rewrite of any kind; full is
    once in each span of its interval since 1970, since a table does not tell when the last full one was; files that
    have reached the target are left (``full.rewrite-all-files`` is Level 2's matter); bins are filled in the order of
    the files; and deletes are folded in by the thresholds that hold under each trigger.
    """
    files, target = statistics.counts.data_files, policy.output_size_bytes_max
    fragment_bytes = min(target // policy.tiered_fragment_ratio, policy.small_file_size_bytes - 1)
    tiers = _Tiers.of(statistics, fragment_bytes, policy.small_file_size_bytes)
    said = f"{tiers.said(fragment_bytes)} of {files:,}"
    full_at = _full_at(policy, rewritten_at)
    if full_at is not None and full_at <= now:
        if not tiers.several:
            return TriggerResult(Reason("no-tier", f"{said}; full from two of either on", tiers.figures))
        small = Small.of(statistics, policy)
        return TriggerResult(Reason("full", said, tiers.figures), Rule(_PAIR, allow_dominated=True), small.after(files))
    minor_at = 0 if rewritten_at is None else rewritten_at + policy.tiered_minor_interval_ms + 1
    tier = tiers.fires(policy, target, interval_over=minor_at <= now)
    if tier is not None:
        rule = Rule(_PAIR, allow_dominated=True, apart_bytes=fragment_bytes)
        return TriggerResult(Reason(tier, said, tiers.figures), rule, max(1, files - tiers.fewer(target)))
    text = (
        f"{said}; minor from {policy.tiered_minor_files:,} fragments on, major from {wording.size(target)} undersized"
    )
    # Once full is due there is no minor any more, as with Amoro; what full asks for may not be there then.
    is_overtaken = full_at is not None and full_at <= minor_at and not tiers.several
    due_at = [minor_at] if tiers.together >= _PAIR and not is_overtaken else []
    due_at += [full_at] if full_at is not None and tiers.several else []
    if not due_at:
        return TriggerResult(Reason("no-tier", text, tiers.figures))
    text += f"; {not_before(rewritten_at, min(due_at))}"
    return TriggerResult(Reason("interval", text, tiers.figures), until=min(due_at))


@dataclass(frozen=True, slots=True)
class _Tiers:
    """The small files of a partition in Amoro's classes."""

    fragments: int
    fragment_bytes: int
    undersized: int
    undersized_bytes: int
    smallest_two_bytes: float
    equality_deletes: int

    @classmethod
    def of(cls, statistics: PartitionStatistics, fragment_bytes: int, small_bytes: int) -> _Tiers:
        sizes = statistics.counts.sizes
        fragments, small = histogram.upto(sizes, fragment_bytes), histogram.upto(sizes, small_bytes - 1)
        undersized = small[0] - fragments[0], small[1] - fragments[1]
        return cls(*fragments, *undersized, _two(sizes, fragment_bytes), statistics.counts.equality_delete_files)

    @property
    def together(self) -> int:
        """What minor counts."""
        return self.fragments + self.equality_deletes

    @property
    def several(self) -> bool:
        """What full asks for."""
        return max(self.fragments, self.undersized) >= _PAIR

    def fires(self, policy: Policy, target: int, *, interval_over: bool) -> str | None:
        """``major`` or ``minor``, None where neither does."""
        if self.undersized_bytes >= target and self.smallest_two_bytes <= target:
            return "major"
        enough = self.together >= policy.tiered_minor_files
        return "minor" if enough or (self.together >= _PAIR and interval_over) else None

    def fewer(self, target: int) -> int:
        """How many files fewer there will be when each class is packed for itself."""
        classes = (self.fragments, self.fragment_bytes), (self.undersized, self.undersized_bytes)
        return sum(max(0, files - max(1, ceil(size_bytes / target))) for files, size_bytes in classes)

    def said(self, limit_bytes: int) -> str:
        fragments = f"{wording.count(self.fragments, 'fragment')} of at most {wording.size(limit_bytes)}"
        fragments += f", {wording.count(self.equality_deletes, 'equality delete')}" if self.equality_deletes else ""
        return (
            f"{fragments} and {wording.count(self.undersized, 'undersized file')} "
            f"({wording.size(self.undersized_bytes)})"
        )

    @property
    def figures(self) -> dict[str, int | float | str]:
        return {
            "fragments": self.fragments,
            "fragment_bytes": self.fragment_bytes,
            "undersized_files": self.undersized,
            "undersized_bytes": self.undersized_bytes,
            "equality_delete_files": self.equality_deletes,
        }


def _two(sizes: SizeHistogram, above_bytes: int) -> float:
    """The bytes of the two smallest files above a size, by the mean sizes of their buckets."""
    smallest: list[float] = []
    for _, (files, size_bytes) in sorted(sizes.buckets.items()):
        if size_bytes > above_bytes * files:
            smallest += [size_bytes / files] * min(files, _PAIR)
        if len(smallest) >= _PAIR:
            return smallest[0] + smallest[1]
    return float("inf")


def _full_at(policy: Policy, rewritten_at: Instant | None) -> Instant | None:
    """When a full one is due after the last rewrite of a partition, None for never."""
    interval_ms = policy.tiered_full_interval_ms
    if interval_ms is None:
        return None
    if rewritten_at is None or interval_ms == 0:
        return 0
    return (rewritten_at // interval_ms + 1) * interval_ms
