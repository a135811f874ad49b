"""Opinions: what triggers say of a partition, and which of its files are then left to the packing."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import ceil
from typing import Final

from icewright.actions.rewrite_data_files.packing import GROWTH
from icewright.core import wording
from icewright.core.times import Instant
from icewright.inventory import histogram
from icewright.model.iceberg.files import DataFile
from icewright.model.iceberg.inventory import PartitionStatistics
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import Policy

GATHERING: Final = "gathering"
"""The reason of a partition whose files wait for what else comes."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Which small files of a partition are packed, and how.

    ``allow_dominated``: also where one of them holds most of the bytes, before the partition has settled.
    ``apart_bytes``: those of at most this size and those above it are packed each for themselves. ``bucket_max``: only
    files up to this bucket of the size histogram. ``leaves_newest``: the last ones in the order are left where they
    fill no file. ``growth_most`` is that of :func:`~.packing.pack`.
    """

    min_input_files: int
    allow_dominated: bool = False
    apart_bytes: int | None = None
    bucket_max: int | None = None
    leaves_newest: bool = False
    growth_most: int = GROWTH

    def parts(self, ordered: Sequence[DataFile], burdened: AbstractSet[str]) -> list[list[DataFile]]:
        """The files that may be packed together, each part in the given order.

        ``burdened`` are the paths of files that are rewritten for their deletes, also where the rule leaves them out.
        """
        taken = [file for file in ordered if self._takes(file)]
        left = [file for file in ordered if not self._takes(file) and file.path in burdened]
        if self.apart_bytes is None:
            return [part for part in (taken, left) if part]
        low = [file for file in taken if file.size_bytes <= self.apart_bytes]
        high = [file for file in taken if file.size_bytes > self.apart_bytes]
        return [part for part in (low, high, left) if part]

    def _takes(self, file: DataFile) -> bool:
        return self.bucket_max is None or histogram.bucket(file.size_bytes) <= self.bucket_max


DELETES_ONLY = Rule(2, bucket_max=-2)
"""No file is packed for its size."""


@dataclass(frozen=True, slots=True)
class TriggerResult:
    """What a trigger says of a partition: with a rule it fires, and this many files are expected afterwards.

    ``until`` is when it would fire if nothing came, where it does not and ever would; with a rule that leaves the
    newest, from when on it would leave them no more.
    """

    reason: Reason
    rule: Rule | None = None
    files_after: int = 0
    until: Instant | None = None

    @property
    def waiting(self) -> Reason:
        """Why files wait until then."""
        if self.rule is None:
            return self.reason
        text = f"{self.reason.text}; what fills no file waits while data comes"
        return Reason(GATHERING, text, self.reason.figures)


@dataclass(frozen=True, slots=True)
class Small:
    """The small files of a partition, and as how many files their bytes would fit."""

    files: int
    size_bytes: int
    merged_files: int

    @classmethod
    def of(cls, statistics: PartitionStatistics, policy: Policy) -> Small:
        """What is small by the policy."""
        files, size_bytes = histogram.small(statistics.counts.sizes, policy.small_file_size_bytes)
        return cls(files, size_bytes, max(1, ceil(size_bytes / policy.output_size_bytes_max)))

    def after(self, files: int) -> int:
        """How many of a partition's files there will be when they are merged."""
        return files - self.files + self.merged_files

    @property
    def said(self) -> str:
        """``8 small files (8.0 MiB)``."""
        return f"{wording.count(self.files, 'small file')} ({wording.size(self.size_bytes)})"

    @property
    def figures(self) -> dict[str, int | float | str]:
        """For programs."""
        return {"small_files": self.files, "small_bytes": self.size_bytes}


def nothing_to_merge(files: int, small: Small, policy: Policy, least: int) -> Reason | None:
    """Why merging the small files of a partition gains nothing under any trigger; ``least`` files make a merge."""
    limit = wording.size(policy.small_file_size_bytes)
    figures = {"small_files": small.files}
    if small.files == 0:
        return Reason("no-small-files", f"none of {wording.count(files, 'file')} is below {limit}", figures)
    if small.files < least:
        of_all = f"{small.files:,} of {wording.count(files, 'file')} below {limit}"
        return Reason("few-small-files", f"{of_all}; they are merged from {least:,} on", figures)
    if small.merged_files >= small.files:
        text = f"merging its {wording.count(small.files, 'small file')} would make as many files again"
        return Reason("no-gain", text, figures)
    return None


def not_before(rewritten_at: Instant | None, due_at: Instant) -> str:
    """When a partition that has to wait for its interval is due."""
    last = "" if rewritten_at is None else f"rewritten at {wording.instant(rewritten_at)}, "
    return f"{last}not again before {wording.instant(due_at)}"
