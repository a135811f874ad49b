"""Level 1: what has gathered since the last Level 1 becomes a run of its own, in the order of the layout.

Files that are in order already are never touched, so that a byte is written once by it. Files that no two or more
overlap, as data that comes in by time does under ``sort(time)``, need no Level 1: they are as good as a run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from icewright.actions.rewrite_data_files.layouts.depth import IN_ORDER_DEPTH, overlap_depth
from icewright.actions.rewrite_data_files.layouts.ordering import Ordering
from icewright.actions.rewrite_data_files.layouts.pieces import NoPiece, Piece, PieceBounds, in_span_order
from icewright.core import wording
from icewright.model.iceberg.files import DataFile
from icewright.model.plans.plans import Reason, Verdict
from icewright.model.policy.policy import Policy

TOO_LITTLE: Final = "too-little-to-order"


def level_1_piece(
    files: Sequence[DataFile],
    ordering: Ordering,
    policy: Policy,
    bounds: PieceBounds,
    age: Callable[[DataFile], Any],
) -> Piece | NoPiece:
    """What one task puts in order of a partition that is due; ``files`` are those of it that are old enough.

    Of more than a task may read, the files that come first by the leading column, else by ``age``.
    """
    unordered = [file for file in files if not ordering.has(file)]
    fitting = [file for file in unordered if bounds.fits(file)]
    size_bytes = sum(file.size_bytes for file in fitting)
    if size_bytes < policy.level_1_size_bytes:
        return _too_little(len(unordered) - len(fitting), size_bytes, policy)
    if ordering.lead is not None and overlap_depth(file.span for file in unordered) <= IN_ORDER_DEPTH:
        text = f"its {wording.count(len(unordered), 'file')} from other writers are in the order of {ordering.said}"
        return NoPiece(Verdict.LEAVE, Reason("in-order", f"{text} already: no value is in more than two of them"))
    by_span = ordering.lead is not None and all(file.span is not None for file in fitting)
    piece = bounds.first(sorted(fitting, key=in_span_order if by_span else age))
    return Piece(piece, following=len(fitting) - len(piece))


def _too_little(too_large: int, size_bytes: int, policy: Policy) -> NoPiece:
    least = wording.size(policy.level_1_size_bytes)
    if not too_large:
        text = f"{wording.size(size_bytes)} are old enough to be put in order, which is done from {least} on"
        return NoPiece(Verdict.LEAVE, Reason(TOO_LITTLE, text))
    limit = wording.size(policy.max_task_size_bytes)
    text = f"{wording.count(too_large, 'file')} not in order, each larger than a task may read ({limit})"
    return NoPiece(Verdict.REFUSE, Reason("file-too-large", text, {"files_too_large": too_large}))
