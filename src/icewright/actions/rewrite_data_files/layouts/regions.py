"""Regions: what one task puts in order of a partition under a curve that no task may read as a whole.

Where files lie is told by their bounds, each end being taken for its rank among the ends of all. The files of Level 1
runs are divided by their middles, column by column and half by half as in a k-d tree (Bentley 1975), until a part fits
into a task: such a part has files of many runs that lie near each other, and becomes one run. First comes the part by
which lookups gain most, as the slices of the curve predict it; one by which they gain little is left.

What Level 2 has made is left alone, as Delta's liquid clustering leaves its full cubes, until as many runs of Level 1
as Level 2 asks for came after it. Then a task takes it along with what is new where that is, the latest first, as long
as it is at most :data:`OLDER_BYTES_MAX` times as many bytes. So a byte of Level 1 has at most so many others written
again for it, however large the partition. The price is that layers of Level 2 come to lie on each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil
from typing import Final, TypeAlias

from icewright.actions.rewrite_data_files.layouts.lookups import by_column
from icewright.actions.rewrite_data_files.layouts.ordering import Ordering
from icewright.actions.rewrite_data_files.layouts.pieces import PieceBounds, output_files
from icewright.actions.rewrite_data_files.layouts.slices import opened
from icewright.model.iceberg.files import DataFile
from icewright.model.iceberg.layouts import Layout
from icewright.model.policy.policy import Policy

OLDER_BYTES_MAX: Final = 4
"""Times the bytes of Level 1 in a piece: what Level 2 has made and a piece takes along."""
GAIN_MIN: Final = 1.1
"""Times as many files as afterwards must be opened before, or nothing is done."""

_Middles: TypeAlias = Mapping[str, tuple[int, ...]]
"""By path: the ranks of the least and of the greatest value together, for each column."""


def region(files: Sequence[DataFile], ordering: Ordering, bounds: PieceBounds, policy: Policy) -> tuple[DataFile, ...]:
    """The files that are put in order together; none where lookups would gain little by that."""
    fresh = [file for file in files if file.snapshot_id in ordering.level_1 and bounds.fits(file)]
    older = _at_most(_older(files, ordering, bounds, policy.level_2_runs), ordering, fresh)
    middles = _middles([*fresh, *older], len(ordering.layout.fields))
    best: tuple[float, list[DataFile]] = (0.0, [])
    for part in _parts([*fresh, *older], bounds, middles):
        new = [file for file in part if file.snapshot_id in ordering.level_1]
        others = [file for file in part if file.snapshot_id not in ordering.level_1]
        piece = [*new, *_at_most(others, ordering, new)]
        gain = _gain(piece, ordering.layout, policy) if new else 0.0
        best = max(best, (gain, piece), key=lambda found: found[0])
    return tuple(best[1])


def _gain(files: Sequence[DataFile], layout: Layout, policy: Policy) -> float:
    """How many files fewer lookups open, on the mean over a column's values, all columns together; 0 for few."""
    before = sum(column.mean for column in by_column(files, layout))
    after = sum(
        column.mean for column in opened(layout.curve, [None] * len(layout.fields), output_files(files, policy))
    )
    return before - after if before >= GAIN_MIN * after else 0.0


def _older(files: Sequence[DataFile], ordering: Ordering, bounds: PieceBounds, level_2_runs: int) -> list[DataFile]:
    """The files in order that are of no Level 1, after which so many runs of Level 1 came."""
    came = sorted(ordering.committed_at[run] for run in ordering.level_1 & {file.snapshot_id for file in files})
    if len(came) < level_2_runs:
        return []
    before = came[-level_2_runs]
    others = (file for file in files if ordering.has(file) and file.snapshot_id not in ordering.level_1)
    return [file for file in others if ordering.committed_at[file.snapshot_id] < before and bounds.fits(file)]


def _at_most(older: Iterable[DataFile], ordering: Ordering, fresh: Iterable[DataFile]) -> list[DataFile]:
    """The files of the latest runs, as many runs as are allowed for what is new."""
    left = OLDER_BYTES_MAX * sum(file.size_bytes for file in fresh)
    runs: dict[int, list[DataFile]] = {}
    for file in older:
        runs.setdefault(file.snapshot_id, []).append(file)
    taken: list[DataFile] = []
    for run in sorted(runs, key=lambda run: (ordering.committed_at[run], run), reverse=True):
        left -= sum(file.size_bytes for file in runs[run])
        if left < 0:
            break
        taken += runs[run]
    return taken


def _middles(files: Sequence[DataFile], columns: int) -> _Middles:
    """A file without bounds of a column lies in the middle of it."""
    sides: list[list[int]] = []
    for place in range(columns):
        spans = [file.spans[place] if place < len(file.spans) else None for file in files]
        ends = sorted({end for span in spans if span is not None for end in span})
        ranks = {end: rank for rank, end in enumerate(ends)}
        unknown = max(0, len(ends) - 1)
        sides.append([unknown if span is None else ranks[span[0]] + ranks[span[1]] for span in spans])
    return {file.path: middle for file, middle in zip(files, zip(*sides, strict=True), strict=True)}


def _parts(files: list[DataFile], bounds: PieceBounds, middles: _Middles) -> Iterator[list[DataFile]]:
    """The files in parts that fit into a task, each about as large as it may be."""
    left = [files]
    while left:
        part = left.pop()
        if len(bounds.first(part)) < len(part):
            left += reversed(_halves(part, bounds, middles))
        elif part:
            yield part


def _halves(files: list[DataFile], bounds: PieceBounds, middles: _Middles) -> tuple[list[DataFile], list[DataFile]]:
    """Divided across the column in which their middles reach farthest, so that the first half fills whole tasks."""
    size_bytes = sum(file.size_bytes for file in files)
    tasks = max(2, ceil(size_bytes / bounds.size_bytes_max), ceil(len(files) / bounds.files_max))
    columns = list(zip(*(middles[file.path] for file in files), strict=True))
    widest = max(range(len(columns)), key=lambda place: (max(columns[place]) - min(columns[place]), -place))
    ordered = sorted(files, key=lambda file: (middles[file.path][widest], middles[file.path], file.path))
    share, end, so_far = size_bytes * (tasks // 2) / tasks, 0, 0
    while end < len(ordered) - 1 and (end == 0 or so_far + ordered[end].size_bytes <= share):
        so_far, end = so_far + ordered[end].size_bytes, end + 1
    return ordered[:end], ordered[end:]
