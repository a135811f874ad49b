"""Pieces: the files of one partition that a task of Level 1 or 2 puts in order together, or why there are none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from icewright.actions.rewrite_data_files.estimates import bytes_within
from icewright.inventory.row_removals import OVERHEAD_MS
from icewright.model.actions.actions import Executor
from icewright.model.iceberg.files import DataFile
from icewright.model.plans.plans import Reason, Verdict
from icewright.model.policy.policy import Policy


@dataclass(frozen=True, slots=True)
class Piece:
    """Files to be put in order together; ``following`` more of the partition are left to later tasks."""

    files: tuple[DataFile, ...]
    following: int = 0


@dataclass(frozen=True, slots=True)
class NoPiece:
    """Why nothing of a partition is put in order now: ``leave``, ``wait`` or ``refuse``."""

    verdict: Verdict
    reason: Reason


@dataclass(frozen=True, slots=True)
class PieceBounds:
    """What one task may read: its memory is bounded by Spark, which spills to disk; its time and its commit by this.

    ``references`` counts the delete files that apply to a file.
    """

    files_max: int
    size_bytes_max: int
    references_max: int
    references: Callable[[DataFile], int]

    def first(self, ordered: Sequence[DataFile]) -> tuple[DataFile, ...]:
        """The files that come first, up to the first that does not fit."""
        end = next((end for _, end in self.windows(ordered)), 0)
        return tuple(ordered[:end])

    def windows(self, ordered: Sequence[DataFile]) -> Iterator[tuple[int, int]]:
        """For each file in order its position, and that of the first file behind it that does not fit any more."""
        end = size_bytes = references = 0
        for start, file in enumerate(ordered):
            while end < len(ordered) and end - start < self.files_max:
                its = self.references(ordered[end])
                over = size_bytes + ordered[end].size_bytes > self.size_bytes_max
                if over or (end > start and references + its > self.references_max):
                    break
                size_bytes, references, end = size_bytes + ordered[end].size_bytes, references + its, end + 1
            yield start, end
            if end > start:
                size_bytes, references = size_bytes - file.size_bytes, references - self.references(file)
            else:
                end += 1

    def fits(self, file: DataFile) -> bool:
        """Whether a task may read the file at all."""
        return file.size_bytes <= self.size_bytes_max


def hurried(
    bounds: PieceBounds, files: Sequence[DataFile], task_ms_max: float, pace: float, policy: Policy
) -> PieceBounds:
    """The bounds of what of ``files`` can be put in order in so much time.

    Never of fewer bytes than a Level 1 is made of: shorter runs would be more runs, and bytes would be written more
    often. And every file fits that did.
    """
    size_bytes = bytes_within(task_ms_max / pace - OVERHEAD_MS, Executor.SHUFFLE, policy)
    least = max((file.size_bytes for file in files), default=0)
    size_bytes_max = min(bounds.size_bytes_max, max(size_bytes, policy.level_1_size_bytes, least))
    return replace(bounds, size_bytes_max=int(size_bytes_max))


def output_files(files: Sequence[DataFile], policy: Policy) -> int:
    """As many files as hold the bytes at the target size; never more than there are rows."""
    size_bytes, records = sum(file.size_bytes for file in files), sum(file.record_count for file in files)
    return max(1, min(ceil(size_bytes / policy.target_file_size_bytes), records))


def in_span_order(file: DataFile) -> tuple[Any, ...]:
    """For sorting files by what their rows span, and then by age."""
    return (file.span, file.data_sequence_number, file.path)
