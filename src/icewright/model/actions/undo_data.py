"""Taking an expiry of data back where something was committed since: what lists show of it, and what it would bring.

The rows of the files that expired are inserted again, as new files, in one append. The action itself stands beside the
rewrite of data files (:class:`icewright.model.actions.actions.UndoExpireData`), of whose groups it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, TypeAlias

from icewright.core.reasons import Reason
from icewright.model.iceberg.tables import UNDONE_KEY

MOVED_FILES_MAX: Final = 1_000
"""Into so many partitions of another spec the rows of one group may go."""

SOURCE_KEY: Final = "source-snapshot-id"
"""Iceberg's, in the summary of a cherry-pick: whose new files it has."""
_ID_MAX: Final = 2**63 - 1
"""Of a snapshot, a long."""

SummaryOf: TypeAlias = Callable[[int], Mapping[str, str] | None]
"""The summary of a snapshot by its id, None where it has gone."""


@dataclass(frozen=True, slots=True)
class UndoExpireDataFigures:
    """What lists show of the action: everything but its files."""

    kind: ClassVar[Literal["undo_expire_data"]] = "undo_expire_data"
    base_snapshot_id: int
    undone_task_id: str
    groups: int
    files: int
    delete_files: int
    records: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class UndoExpireDataPrediction:
    """What carrying out the action would bring.

    ``records`` are the rows in the files that are read, of which ``delete_files`` remove ``deleted_records`` at most,
    and some at least where they are not 0. ``added_columns`` are null in all of them (or what the column's initial
    default says). There is no statement of Spark's that does it exactly.
    """

    kind: ClassVar[Literal["undo_expire_data"]] = "undo_expire_data"
    tag: str
    partitions: int
    files: int
    size_bytes: int
    records: int
    delete_files: int
    deleted_records: int
    added_columns: tuple[str, ...]
    is_moved: bool
    """Whether the rows go into partitions of another spec than they were in."""
    call: str = ""


def inserted_already(snapshot_id: int, task_id: str, summary_of: SummaryOf) -> Reason | None:
    """Why a snapshot added the rows of an expiry again, or may have; None where it did not.

    A cherry-pick adds the files of another snapshot and names it, but takes nothing over of what that says of itself
    (Iceberg's ``CherryPickOperation``). So that one is asked; where it has gone nobody knows what it was.
    """
    told, seen = str(snapshot_id), set[str]()
    while told not in seen:
        seen.add(told)
        is_id = told.isdecimal() and told.isascii() and len(told) <= len(str(_ID_MAX)) and int(told) <= _ID_MAX
        summary = summary_of(int(told)) if is_id else None
        if summary is None:
            text = f"snapshot {snapshot_id} is a cherry-pick of one that has expired: the rows may be there again"
            return Reason("source-gone", text, {"snapshot_id": snapshot_id})
        if summary.get(UNDONE_KEY) == task_id:
            text = f"snapshot {snapshot_id} inserted its rows again already"
            return Reason("there-already", text, {"snapshot_id": snapshot_id})
        told = summary.get(SOURCE_KEY, told)
    return None
