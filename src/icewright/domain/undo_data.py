"""Taking an expiry of data back where something was committed since: what lists show of it, and what it would bring.

The rows of the files that expired are inserted again, as new files, in one append. The action itself stands beside the
rewrite of data files (:class:`icewright.domain.actions.UndoExpireData`), of whose groups it is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

MOVED_FILES_MAX: Final = 1_000
"""Into so many partitions of another spec the rows of one group may go."""


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
