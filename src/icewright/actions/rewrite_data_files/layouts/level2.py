"""Level 2: the whole partition is put in order anew when too many runs of Level 1 lie side by side in it.

A partition that fits into one task becomes one run. A larger one is put in order piece by piece where its layout sorts
by a column: files that follow each other by their least value, as many as a task may read, first where most bytes of
Level 1 runs are. What comes out of a piece overlaps at most the edges of its neighbours, so that the pieces together
are as good as one run, but for a file or two at each edge. Each piece takes files of Level 1 away and none brings them
back, so this ends; a run that comes meanwhile begins nothing anew where pieces are done.

Under a curve no one column tells pieces apart; there they are regions (:mod:`.regions`).
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nsmallest
from itertools import accumulate

from icewright.actions.rewrite_data_files.layouts.depth import IN_ORDER_DEPTH, overlap_depth
from icewright.actions.rewrite_data_files.layouts.ordering import Ordering
from icewright.actions.rewrite_data_files.layouts.pieces import NoPiece, Piece, PieceBounds, in_span_order
from icewright.actions.rewrite_data_files.layouts.regions import region
from icewright.core import wording
from icewright.model.iceberg.files import DataFile
from icewright.model.plans.plans import Reason, Verdict
from icewright.model.policy.policy import Policy

PIECES_TRIED = 100
"""Pieces whose overlap is looked into, those with most bytes of Level 1 first."""


def level_2_piece(
    files: Sequence[DataFile], ordering: Ordering, policy: Policy, bounds: PieceBounds, *, fits: bool
) -> Piece | NoPiece:
    """What one task puts in order of a partition that is due; ``files`` are those of it that are old enough.

    ``fits`` tells whether a task may read the partition as a whole.
    """
    by_column = ordering.lead is not None
    depth = overlap_depth(file.span for file in files) if by_column else len(files)
    if depth <= _depth_in_order(policy):
        text = f"its {wording.count(len(files), 'file')} are in the order of {ordering.said} already"
        text += f": no value is in more than {wording.count(depth, 'file')}"
        return NoPiece(Verdict.LEAVE, Reason("in-order", text, {"overlap_depth": depth}))
    if len(files) > 1 and len(bounds.first(files)) == len(files) and (fits or by_column):
        return Piece(tuple(files))
    if not by_column:
        return _region(files, ordering, policy, bounds)
    known = [file for file in files if file.span is not None and bounds.fits(file)]
    piece = _best(sorted(known, key=in_span_order), ordering, bounds, _depth_in_order(policy))
    if piece:
        return Piece(piece, following=len(files) - len(piece))
    return _too_large(files, policy, "no part of it overlaps")


def _region(files: Sequence[DataFile], ordering: Ordering, policy: Policy, bounds: PieceBounds) -> Piece | NoPiece:
    piece = region(files, ordering, bounds, policy)
    if piece:
        return Piece(piece, following=sum(_counts(file, ordering) for file in set(files) - set(piece)))
    if not any(_counts(file, ordering) and bounds.fits(file) for file in files):
        return _too_large(files, policy, "no file of a run of Level 1 is less than that")
    text = f"lookups would open hardly fewer files by sorting parts of it again by {ordering.said}, each as "
    text += f"large as a task may read ({policy.max_task_files:,} files, {wording.size(policy.max_task_size_bytes)})"
    return NoPiece(Verdict.LEAVE, Reason("in-order", text))


def _too_large(files: Sequence[DataFile], policy: Policy, why: str) -> NoPiece:
    size_bytes = sum(file.size_bytes for file in files)
    text = (
        f"its {wording.count(len(files), 'file')} ({wording.size(size_bytes)}) are more than a task may read "
        f"({policy.max_task_files:,} files, {wording.size(policy.max_task_size_bytes)}), and {why}"
    )
    return NoPiece(Verdict.REFUSE, Reason("partition-too-large", text, {"files": len(files), "bytes": size_bytes}))


def _depth_in_order(policy: Policy) -> int:
    """Where two runs are enough, two files on top of each other are too many."""
    return min(IN_ORDER_DEPTH, policy.level_2_runs - 1)


def _best(ordered: Sequence[DataFile], ordering: Ordering, bounds: PieceBounds, depth: int) -> tuple[DataFile, ...]:
    """The piece with most bytes of Level 1 runs whose files overlap; nothing where none has any."""
    level_1_bytes = [0, *accumulate(file.size_bytes if _counts(file, ordering) else 0 for file in ordered)]
    weighed = [(level_1_bytes[start] - level_1_bytes[end], start, end) for start, end in bounds.windows(ordered)]
    tried = nsmallest(PIECES_TRIED, (piece for piece in weighed if piece[0] < 0))
    pieces = (tuple(ordered[start:end]) for _, start, end in tried)
    return next((one for one in pieces if overlap_depth(file.span for file in one) > depth), ())


def _counts(file: DataFile, ordering: Ordering) -> bool:
    return file.snapshot_id in ordering.level_1
