"""Groups of files that are moved to the current partition spec: all files of a partition of an older one.

Files beside each other by the column that the new spec goes by share its partitions, so that a group of them makes few
files. A group may read more than one merge, since it becomes many files; it never makes more than a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from icewright.actions.rewrite_data_files.packing import Run
from icewright.core import wording
from icewright.inventory.specs import PARTITIONS_MAX, Moves
from icewright.model.iceberg.files import DataFile
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import Policy


@dataclass(frozen=True, slots=True)
class Moved:
    """Files to be moved together, and the most files that they become."""

    files: Run
    output_files: int


@dataclass(frozen=True, slots=True)
class MovingBounds:
    """What a group may be, and a task, which has one group at least."""

    files_max: int
    outputs_max: int
    size_bytes_max: int
    target_file_size_bytes: int
    references_max: int

    @classmethod
    def of(cls, policy: Policy, references_max: int) -> MovingBounds:
        """The bounds that a policy gives."""
        return cls(
            files_max=min(policy.max_file_group_files, policy.max_task_files),
            outputs_max=min(PARTITIONS_MAX, policy.max_task_files),
            size_bytes_max=policy.max_task_size_bytes,
            target_file_size_bytes=policy.target_file_size_bytes,
            references_max=references_max,
        )

    def refusal(self, file: DataFile, made: int | None) -> Reason | None:
        """Why a file cannot be moved, which becomes that many files by itself; None where it can."""
        if file.size_bytes > self.size_bytes_max:
            limit = wording.size(self.size_bytes_max)
            text = f"its {wording.size(file.size_bytes)} are more than a task may read ({limit})"
            return Reason("file-too-large", text)
        if made is not None and min(made, file.record_count) > self.outputs_max:
            text = f"its rows may belong to {made:,} partitions of the current spec, and one group makes "
            return Reason("many-partitions", f"{text}{self.outputs_max:,} at most", {"partitions": made})
        return None

    def fits(self, files: int, rows: int, size_bytes: int, references: int, made: int | None) -> bool:
        """Whether files may be moved together: no more bytes than fill as many files as they become."""
        room = self.target_file_size_bytes * (1 if made is None else self.output_files(rows, made))
        return (
            files <= self.files_max
            and size_bytes <= min(self.size_bytes_max, room)
            and references <= self.references_max
            and (made is None or made <= self.outputs_max)
        )

    def output_files(self, rows: int, made: int | None) -> int:
        """The most files that so many rows become: no file is without any."""
        return max(1, min(self.outputs_max if made is None else made, self.outputs_max, rows))


def moving_groups(
    files: Sequence[DataFile], moves: Moves, bounds: MovingBounds, delete_files_of: Callable[[DataFile], int]
) -> tuple[list[Moved], list[Reason]]:
    """The groups of the files of one older partition, given in their order; and why some cannot be moved.

    Every file is in one group, or refused.
    """
    spans = {file.path: moves.span(file) for file in files}
    if any(span is None for span in spans.values()):
        moves = replace(moves, spanned=None)

    def by_span(file: DataFile) -> tuple[Any, ...]:
        return (spans[file.path], file.data_sequence_number, file.path)

    def end(file: DataFile) -> tuple[Any, ...]:
        return tuple((spans[file.path] or ((), ()))[1])  # all alike where nobody knows

    ordered = files if moves.spanned is None else sorted(files, key=by_span)
    groups: list[Moved] = []
    refused: list[Reason] = []
    run: list[DataFile] = []
    farthest: list[DataFile] = []
    rows = size_bytes = references = 0
    for file in ordered:
        reason = bounds.refusal(file, moves.partitions_made((file,)))
        if reason is not None:
            refused.append(reason)
            continue
        rows += file.record_count
        size_bytes += file.size_bytes
        references += delete_files_of(file)
        # Two files tell what all of a run reach over: the first, and the one that ends last.
        reach = [*run[:1], *farthest, file]
        if run and not bounds.fits(len(run) + 1, rows, size_bytes, references, moves.partitions_made(reach)):
            groups.append(_moved(run, farthest, moves, bounds))
            run, farthest, rows = [], [], file.record_count
            size_bytes, references = file.size_bytes, delete_files_of(file)
        run.append(file)
        farthest = [max((*farthest, file), key=end)]
    if run:
        groups.append(_moved(run, farthest, moves, bounds))
    return groups, refused


def _moved(run: Sequence[DataFile], farthest: Sequence[DataFile], moves: Moves, bounds: MovingBounds) -> Moved:
    made = moves.partitions_made([run[0], *farthest])
    return Moved(tuple(run), bounds.output_files(sum(file.record_count for file in run), made))
