"""Setting the branch ``main`` back to one of its ancestors: the action, what lists show of it, and what it would bring.

Nothing leaves the metadata: the snapshots that ``main`` was at stay until somebody lets them expire, and as long as
they are there ``main`` can be set forward again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from icewright.core.times import Instant


@dataclass(frozen=True, slots=True)
class RollbackFigures:
    """What lists show of the action."""

    kind: ClassVar[Literal["rollback_to_snapshot"]] = "rollback_to_snapshot"
    base_snapshot_id: int
    snapshot_id: int
    undone_task_id: str | None


@dataclass(frozen=True, slots=True)
class Rollback:
    """Set ``main`` from ``base_snapshot_id``, where it has to be at the commit, to ``snapshot_id``.

    Back to an ancestor; or, with the ``undone_task_id`` of an earlier rollback, forward again to where that took it
    from.
    """

    kind: ClassVar[Literal["rollback_to_snapshot"]] = "rollback_to_snapshot"
    base_snapshot_id: int
    snapshot_id: int
    undone_task_id: str | None = None

    @property
    def figures(self) -> RollbackFigures:
        """The action for lists."""
        return RollbackFigures(self.base_snapshot_id, self.snapshot_id, self.undone_task_id)


@dataclass(frozen=True, slots=True)
class Commits:
    """Commits of one kind by one writer, by what their summaries say; rows are of those that say a number."""

    operation: str
    writer: str
    commits: int
    added_records: int
    deleted_records: int


@dataclass(frozen=True, slots=True)
class RollbackPrediction:
    """What carrying out the action would bring, exactly.

    ``commits`` are those that ``main`` loses, or gets back when it is set forward. ``committed_at`` is when the
    snapshot was committed that ``main`` is to be at. ``call`` is Iceberg's own, which asks nothing; ``undo`` says how
    it is taken back.
    """

    kind: ClassVar[Literal["rollback_to_snapshot"]] = "rollback_to_snapshot"
    committed_at: Instant
    snapshots: int
    commits: tuple[Commits, ...]
    is_forward: bool
    call: str
    undo: str
