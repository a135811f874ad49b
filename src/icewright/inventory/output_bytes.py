"""How many bytes a rewrite will write: those read, without what is deleted, without what every file has once.

Beyond that only experience helps: how well rows compress in another order, or in larger files, no manifest tells. So
what is modelled is multiplied by what the latest commits of the table wrote for each byte that was modelled for them,
level by level and executor by executor; the fewer of them there are, the nearer that is to one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from icewright.core import wording
from icewright.model.actions.actions import FileGroup, RewriteDataFiles
from icewright.model.iceberg.column_types import all_fields, children
from icewright.model.iceberg.files import FileContent
from icewright.model.iceberg.layouts import Level
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.observation import Observation, Written
from icewright.model.plans.plans import Reason

FILE_BYTES: Final = 500
COLUMN_BYTES: Final = 280
"""Of a Parquet file, whatever its rows: 5,103 bytes were measured for one row of 16 columns (TPC-H's lineitem), zstd. A
footer names each column, with its statistics, in each row group; and each page has a header."""
OVERHEAD_MAX: Final = 0.5
"""The most of a file that is taken for what every file has once: the smallest may hold the shortest of rows."""


@dataclass(frozen=True, slots=True)
class OutputBytes:
    """``modelled`` without experience, ``expected`` with it, and why."""

    modelled: int
    expected: int
    reason: Reason


def output_bytes(observation: Observation, action: RewriteDataFiles) -> OutputBytes:
    """The bytes that an action writes."""
    each_file = file_bytes(observation.metadata)
    modelled = [modelled_bytes(group, each_file) for group in action.groups]
    times = [ratio(_of(observation.written, action.level, group)) for group in action.groups]
    expected = sum(round(bytes_ * by) for bytes_, by in zip(modelled, times, strict=True))
    return OutputBytes(sum(modelled), expected, _reason(observation, action, sum(modelled), expected, each_file))


def modelled_bytes(group: FileGroup, each_file: int) -> int:
    """The bytes of a group without those of deleted rows, and of as many files as it has more than it will have.

    Rows are taken as equally large. Nobody knows how many rows equality deletes delete, nor, of rows that move to
    another spec, into how many files.
    """
    rows = group.record_count
    if not rows:
        return 0
    by_position = (one for one in group.delete_files if one.content is not FileContent.EQUALITY_DELETES)
    left = max(0, rows - sum(delete.record_count for delete in by_position))
    overheads = [min(each_file, int(OVERHEAD_MAX * file.size_bytes)) for file in group.files]
    of_rows = (group.size_bytes - sum(overheads)) * left // rows
    made = group.output_files if group.output_spec_id is None else min(group.output_files, len(group.files))
    return min(group.size_bytes, of_rows + max(overheads) * made) if left else 0


def file_bytes(metadata: TableMetadata) -> int:
    """What every Parquet file of a table has once."""
    columns = sum(not children(field["type"]) for _, field in all_fields(metadata.schema.fields))
    return FILE_BYTES + COLUMN_BYTES * columns


def ratio(written: Written | None) -> float:
    """The bytes to be expected for one that is modelled: as if one more commit had written just what was modelled."""
    if written is None or not written.modelled_bytes:
        return 1.0
    one_more = written.modelled_bytes / written.commits
    return (written.output_bytes + one_more) / (written.modelled_bytes + one_more)


def _of(written: Sequence[Written], level: Level, group: FileGroup) -> Written | None:
    return next((one for one in written if (one.level, one.executor) == (level, group.executor)), None)


def _reason(observation: Observation, action: RewriteDataFiles, modelled: int, expected: int, each_file: int) -> Reason:
    text = f"of {wording.size(action.input_bytes)} read"
    text += " without deleted rows" if any(group.delete_files for group in action.groups) else ""
    if action.output_files < action.input_files:
        text += f", with {wording.count(action.output_files, 'file')} for {action.input_files:,}, each of which has "
        text += f"about {wording.size(each_file)} for any rows"
    figures: dict[str, int | float | str] = {"modelled_bytes": modelled, "file_bytes": each_file}
    executors = sorted({group.executor for group in action.groups})
    for one in observation.written:
        if one.level is action.level and one.executor in executors:
            times = round(ratio(one), 3)
            text += f"; times {times} for {one.executor}, since its latest {wording.count(one.commits, 'commit')} of "
            text += f"{one.level} wrote {wording.size(one.output_bytes)} where {wording.size(one.modelled_bytes)} "
            text += "were modelled"
            figures[f"ratio_{one.executor}"] = times
    return Reason("output-bytes", text, {**figures, "expected_bytes": expected})
