"""Setting the branch ``main`` back to one of its ancestors: the action, what lists show of it, and what it would bring.

Nothing leaves the metadata: the snapshots that ``main`` was at stay until somebody lets them expire, and as long as
they are there ``main`` can be set forward again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from icewright.core.times import Instant
from icewright.model.access.permissions import Permission
from icewright.model.actions.traits import ActionTraits, RunsOn


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


@dataclass(frozen=True, slots=True)
class RollbackRequest:
    """Set ``main`` back to a snapshot, or to the latest one before an instant; exactly one of the two is given.

    ``to_time`` is an instant with its zone, as ISO 8601 has it (``2026-11-22T10:00:00Z``).
    """

    kind: ClassVar[Literal["rollback_to_snapshot"]] = "rollback_to_snapshot"
    to_snapshot: int | None = None
    to_time: str | None = None


TRAITS: Final = ActionTraits(
    Rollback,
    RollbackFigures,
    RollbackPrediction,
    names=lambda _action: 0,
    permission=Permission.REMOVE,
    runs_on=RunsOn.SERVER,
    asked=RollbackRequest,
    settings=frozenset(),
)
