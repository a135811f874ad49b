"""Packing: which small files of one partition become one file.

Files are brought into an order (the table's sort order if all files can follow it, else by age), and only neighbours
in that order are merged, because packing by size alone mixes value ranges and destroys what clustering there is.

Two rules decide whether a run of neighbours is merged, and they bound how often a byte is written again:
either the result is no longer small, and never looked at again; or it has at least ``min_input_files`` files and no
file in it holds more than half of its bytes (of n files of a busy writer 4/n of them, down to a fifth). By the second
rule the file that a byte lives in at least doubles with each merge, so a byte of a table that is appended to for ever
is rewritten at most log2(target / first size) times, plus once. A partition that has settled gets one merge without the
second rule. Without that rule, the one large file of a partition would be rewritten for every handful of small
newcomers: the write amplification of merging everything small each time grows linearly with target / first size.

A file with too many deletes is rewritten in any case: with its neighbours where that is worth it by these rules, else
with those beside it that have too many as well, or alone. It is paid for by the deletes that readers need not apply
any more, and cannot go on for ever: the file that it becomes has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, TypeAlias

from icewright.core.times import Instant
from icewright.model.iceberg.files import DataFile
from icewright.model.policy.policy import Policy

Run: TypeAlias = tuple[DataFile, ...]

GROWTH: Final = 2
"""How many times as large as its largest file a merged one is at least."""
GROWTH_OF_MANY: Final = 5
"""The same of many files of a busy writer: a quarter of their number, up to this. Among many newcomers, one merged
before waits for others of its size. Chosen on the training traces of B2."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a group may be. ``files_max`` and ``size_bytes_max`` bound what it reads."""

    files_max: int
    size_bytes_max: int
    small_file_size_bytes: int
    min_input_files: int

    @classmethod
    def of(cls, policy: Policy) -> Bounds:
        """The bounds that a policy gives: a group fits into a task in any case."""
        return cls(
            files_max=min(policy.max_file_group_files, policy.max_task_files),
            size_bytes_max=policy.output_size_bytes_max,
            small_file_size_bytes=policy.small_file_size_bytes,
            min_input_files=policy.min_input_files,
        )


def in_order(files: Sequence[DataFile], added_at: Mapping[int, Instant]) -> list[DataFile]:
    """The files of one partition, neighbours beside each other.

    By the lower bounds in the table's sort order when all files have them; else by age: data sequence number, then
    (all are 0 in v1 tables) the time of the adding snapshot. Paths settle ties, so the input's order plays no part.
    """
    by_sort_order = all(file.sort_key is not None for file in files)
    key: Callable[[DataFile], Any] = _sort_order if by_sort_order else lambda file: age(file, added_at)
    return sorted(files, key=key)


def pack(
    ordered: Sequence[DataFile],
    bounds: Bounds,
    *,
    allow_dominated: bool,
    burdened: AbstractSet[str] = frozenset(),
    leaves_newest: bool = False,
    growth_most: int = GROWTH,
) -> tuple[Run, ...]:
    """The groups worth merging among files in order; what is in none is left as it is.

    ``allow_dominated`` waives the rule of half of the bytes, for the last merge of a partition that has settled.
    ``burdened`` are the paths of files with too many deletes. ``leaves_newest``: what comes last waits until it fills
    a file, and is rewritten for its deletes alone; but not where the oldest file is in it, as it may be in a sort
    order, where it could be the last for ever.
    """
    groups: list[Run] = []
    runs = _filled(ordered, bounds)
    leaves_last = leaves_newest and bool(runs) and (len(runs) == 1 or _oldest(ordered) not in runs[-1])
    for run in runs:
        is_left = leaves_last and run is runs[-1] and not _fills(run, bounds)
        worthwhile = [] if is_left else _worthwhile(run, bounds, growth_most, allow_dominated=allow_dominated)
        groups.extend(_with_burdened(run, worthwhile, burdened))
    return tuple(groups)


def _with_burdened(run: Run, groups: Sequence[Run], burdened: AbstractSet[str]) -> list[Run]:
    """The groups of a run in its order, and between them groups of the burdened files that are in none."""
    group_of = {file.path: group for group in groups for file in group}
    parts = groupby(run, key=lambda file: _part(file, group_of, burdened))
    return [tuple(files) for (in_group, _), files in parts if in_group]


def _part(file: DataFile, group_of: Mapping[str, Run], burdened: AbstractSet[str]) -> tuple[bool, str]:
    """What tells the parts of a run apart: whether it becomes a group, and the first path where it is one already."""
    group = group_of.get(file.path)
    return (True, group[0].path) if group is not None else (file.path in burdened, "")


def _sort_order(file: DataFile) -> tuple[Any, ...]:
    return (file.sort_key, file.data_sequence_number, file.path)


def age(file: DataFile, added_at: Mapping[int, Instant]) -> tuple[int, Instant, str]:
    """What files are ordered by that came in one after the other."""
    return (file.data_sequence_number, added_at.get(file.snapshot_id, 0), file.path)


def _oldest(files: Sequence[DataFile]) -> DataFile:
    return min(files, key=lambda file: (file.data_sequence_number, file.path))


def _filled(ordered: Sequence[DataFile], bounds: Bounds) -> list[Run]:
    """Neighbours taken together until the next one does not fit."""
    runs: list[Run] = []
    run: list[DataFile] = []
    size_bytes = 0
    for file in ordered:
        if run and (len(run) == bounds.files_max or size_bytes + file.size_bytes > bounds.size_bytes_max):
            runs.append(tuple(run))
            run, size_bytes = [], 0
        run.append(file)
        size_bytes += file.size_bytes
    if run:
        runs.append(tuple(run))
    return runs


def _fills(run: Run, bounds: Bounds) -> bool:
    """Whether a run becomes a file that is no longer small."""
    return len(run) > 1 and sum(file.size_bytes for file in run) >= bounds.small_file_size_bytes


def _worthwhile(run: Run, bounds: Bounds, growth_most: int, *, allow_dominated: bool) -> list[Run]:
    """The run if it is worth merging; else, if one large file is in the way, what is worth it on either side of it."""
    if _fills(run, bounds):
        return [run]
    if len(run) < bounds.min_input_files:
        return []
    largest = max(range(len(run)), key=lambda index: run[index].size_bytes)
    growth = max(GROWTH, min(growth_most, len(run) / 4))
    if allow_dominated or growth * run[largest].size_bytes <= sum(file.size_bytes for file in run):
        return [run]
    sides = (run[:largest], run[largest + 1 :])  # each has less than half of the bytes, so this ends soon
    return [group for side in sides for group in _worthwhile(side, bounds, growth_most, allow_dominated=False)]
