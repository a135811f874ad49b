"""The words of an action that the server carries out and that commits nothing: the snapshots of a table are counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from icewright.model.actions.traits import ActionTraits, RunsOn


@dataclass(frozen=True, slots=True)
class CountSnapshotsFigures:
    """What lists show of the action."""

    kind: ClassVar[Literal["count_snapshots"]] = "count_snapshots"
    base_snapshot_id: int


@dataclass(frozen=True, slots=True)
class CountSnapshots:
    """Count the snapshots of a table that still has ``base_snapshot_id``."""

    kind: ClassVar[Literal["count_snapshots"]] = "count_snapshots"
    base_snapshot_id: int

    @property
    def figures(self) -> CountSnapshotsFigures:
        """The action for lists."""
        return CountSnapshotsFigures(self.base_snapshot_id)


@dataclass(frozen=True, slots=True)
class CountSnapshotsPrediction:
    """How many snapshots there are as the plan is made; ``call`` is empty, since no procedure of Iceberg's counts."""

    kind: ClassVar[Literal["count_snapshots"]] = "count_snapshots"
    snapshots: int
    call: str = ""


@dataclass(frozen=True, slots=True)
class AskedCountSnapshots:
    """Count the snapshots of a table."""

    kind: ClassVar[Literal["count_snapshots"]] = "count_snapshots"


TRAITS: Final = ActionTraits(
    CountSnapshots,
    CountSnapshotsFigures,
    CountSnapshotsPrediction,
    names=lambda _action: 1,
    runs_on=RunsOn.SERVER,
    asked=AskedCountSnapshots,
)
