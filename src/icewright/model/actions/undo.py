"""Taking back what went, snapshots, data and files: the actions, what lists show of them, and what they would bring.

What a task took of snapshots is kept before it is taken (:class:`Kept`), so that nothing depends on files that writers
may delete. Where something was committed since data expired, the rows of its files are inserted again, as new files, in
one append; that action stands beside the rewrite of data files
(:class:`icewright.model.actions.actions.UndoExpireData`), of whose groups it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, TypeAlias

from icewright.core.errors import Unsupported
from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.access.permissions import Permission
from icewright.model.actions.expire_snapshots import RefAt
from icewright.model.actions.traits import ActionTraits, RunsOn
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.tables import UNDONE_KEY

UNDO_WINDOW_MS: Final = 7 * 24 * 3_600_000
"""How long after it was verified a task can be undone; as long as deleted files wait in quarantine at least."""

UNDO_KEPT_MS: Final = UNDO_WINDOW_MS + 24 * 3_600_000
"""How long it is kept what a task took: it is written down before the commit, which is verified within a day."""

KEPT_BYTES_MAX: Final = 16 * 1024 * 1024
"""The most that is kept of one task, compressed: some 150 MB of metadata."""

SIGNATURE_KEY: Final = "icewright.signed-by"
"""The table property by which a commit that makes no snapshot says of which task it is; the latest one stays."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What a task takes from a table's metadata, as its adapter wrote it down right before. Opaque to all others."""

    task_id: str
    table_id: TableId
    kept_at: Instant
    content: bytes


def check_size(kept: Kept) -> None:
    """Raises :class:`~icewright.core.errors.Unsupported` for more than :data:`KEPT_BYTES_MAX`."""
    if len(kept.content) > KEPT_BYTES_MAX:
        raise Unsupported(
            f"what task {kept.task_id} takes is {len(kept.content):,} bytes, and {KEPT_BYTES_MAX:,} can be kept",
            hint="what cannot be kept could not be undone: expire fewer snapshots at a time (a greater age)",
        )


@dataclass(frozen=True, slots=True)
class UndoExpiryFigures:
    """What lists show of the action: everything but the ids."""

    kind: ClassVar[Literal["undo_expire_snapshots"]] = "undo_expire_snapshots"
    base_snapshot_id: int | None
    undone_task_id: str
    snapshots: int
    refs: int


@dataclass(frozen=True, slots=True)
class SecondTable:
    """A table that is to be registered beside another, from the metadata file of right before that one's expiry."""

    name: TableName
    metadata_location: str


@dataclass(frozen=True, slots=True)
class UndoExpiry:
    """Put these snapshots and refs back into the metadata of a table, in one commit, as a task took them from it.

    All of them, or none: what is there already, or is there otherwise, is not named. ``snapshot_ids`` ascend by age.
    ``base_snapshot_id`` is what was current when this was planned; commits of others since are fine. Not to be
    committed after ``until``. With a ``second``, they come back as that table, and their own stays as it is.
    """

    kind: ClassVar[Literal["undo_expire_snapshots"]] = "undo_expire_snapshots"
    undone_task_id: str
    base_snapshot_id: int | None
    snapshot_ids: tuple[int, ...]
    refs: tuple[RefAt, ...]
    until: Instant
    second: SecondTable | None = None

    @property
    def figures(self) -> UndoExpiryFigures:
        """The action without its ids."""
        return UndoExpiryFigures(
            base_snapshot_id=self.base_snapshot_id,
            undone_task_id=self.undone_task_id,
            snapshots=len(self.snapshot_ids),
            refs=len(self.refs),
        )


@dataclass(frozen=True, slots=True)
class UndoExpiryPrediction:
    """What carrying out the action would bring, exactly. There is no statement of Spark's for it.

    With a ``second``, the table stays as it is, and ``snapshots_after`` are those of the second one.
    """

    kind: ClassVar[Literal["undo_expire_snapshots"]] = "undo_expire_snapshots"
    snapshots_before: int
    snapshots_after: int
    refs_back: tuple[str, ...]
    until: Instant
    call: str = ""
    second: SecondTable | None = None


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


TRAITS: Final = ActionTraits(
    UndoExpiry,
    UndoExpiryFigures,
    UndoExpiryPrediction,
    names=lambda action: len(action.snapshot_ids),
    permission=Permission.UNDO,
    runs_on=RunsOn.SERVER,
    settings=frozenset(),
)


@dataclass(frozen=True, slots=True)
class RestoreFilesFigures:
    """What lists show of the action. It goes by files, and by no snapshot."""

    kind: ClassVar[Literal["restore_files"]] = "restore_files"
    undone_task_id: str
    files: int
    size_bytes: int
    base_snapshot_id: int | None = None


@dataclass(frozen=True, slots=True)
class RestoreFiles:
    """Put back all that a task moved into quarantine and that is still there, each byte for byte to its own place.

    ``files`` and ``size_bytes`` are what was there when it was planned. What cannot come back, since something else is
    at its place by now, stays in quarantine.
    """

    kind: ClassVar[Literal["restore_files"]] = "restore_files"
    undone_task_id: str
    files: int
    size_bytes: int

    @property
    def figures(self) -> RestoreFilesFigures:
        """The action itself: it names no file."""
        return RestoreFilesFigures(self.undone_task_id, self.files, self.size_bytes)


@dataclass(frozen=True, slots=True)
class RestoreFilesPrediction:
    """What carrying out the action would bring. ``purged_files`` are gone for good; no Spark statement comes near."""

    kind: ClassVar[Literal["restore_files"]] = "restore_files"
    files: int
    size_bytes: int
    purged_files: int
    call: str = ""


RESTORE_FILES_TRAITS: Final = ActionTraits(
    RestoreFiles,
    RestoreFilesFigures,
    RestoreFilesPrediction,
    names=lambda _action: 0,
    permission=Permission.UNDO,
    runs_on=RunsOn.SERVER_FILES,
    in_mode_observe=True,
    settings=frozenset(),
)
