"""Taking an expiry of snapshots back: the action, what lists show of it, and what it would bring.

What a task took is kept before it is taken (:class:`Kept`), so that nothing depends on files that writers may delete.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from icewright.core.errors import Unsupported
from icewright.core.times import Instant
from icewright.model.actions.expire_snapshots import RefAt
from icewright.model.iceberg.names import TableId, TableName

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
            hint="what cannot be kept could not be undone: let fewer snapshots expire at a time (a greater age)",
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
