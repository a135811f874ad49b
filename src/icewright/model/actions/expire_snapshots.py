"""Expiring snapshots: the action, what lists show of it, and what it would bring.

Metadata alone: snapshots and refs leave the table's metadata, and no file is touched. Files that nothing needs any
more are somebody else's business, later, as the difference of two sets of reachable files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from icewright.core.times import Instant
from icewright.model.access.permissions import Permission
from icewright.model.actions.traits import ActionTraits, RunsOn
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import Ref, RefKind

RETAIN_LAST_MIN: Final = 1
"""A branch never loses the snapshot that it is at."""

SNAPSHOTS_MAX: Final = 50_000
"""The most snapshots that one action removes, about 1 MB of ids; what is left over is for the next one."""


MAX_HOLD_MS: Final = 2_592_000_000
"""How long a consumer that is not heard of keeps snapshots: 30 days."""


@dataclass(frozen=True, slots=True)
class ExpiryRule:
    """What ``expire_snapshots`` may be asked for: ``older_than_ms`` is an age, 0 for any.

    ``retain_last`` is how many snapshots of each branch stay whatever their age; None is what the table says itself.
    Branches with settings of their own follow those.
    """

    older_than_ms: int
    retain_last: int | None = None


@dataclass(frozen=True, slots=True)
class Hold:
    """``by``, in words for people, needs a snapshot and all that came after it."""

    by: str
    snapshot_id: int


@dataclass(frozen=True, slots=True)
class RefAt:
    """A branch or tag, and the snapshot that it was seen at."""

    name: str
    kind: RefKind
    snapshot_id: int

    @classmethod
    def of(cls, ref: Ref) -> RefAt:
        """Where a ref is."""
        return cls(ref.name, ref.kind, ref.snapshot_id)


@dataclass(frozen=True, slots=True)
class ExpireSnapshotsFigures:
    """What lists show of the action: everything but the ids, which may be many thousands."""

    kind: ClassVar[Literal["expire_snapshots"]] = "expire_snapshots"
    base_snapshot_id: int | None
    snapshots: int
    refs: int
    retained: int
    older_than_ms: int
    retain_last: int


@dataclass(frozen=True, slots=True)
class ExpireSnapshots:
    """Remove these snapshots and these refs from the metadata of a table, in one commit.

    ``snapshot_ids`` ascend by age, the oldest first. ``refs_seen`` are all refs of the table as it was planned from,
    ``refs_removed`` among them those that go; ``retained_snapshot_ids`` are all other snapshots that it had then.
    ``rule`` is what was applied, with a number of snapshots to retain, at the instant ``as_of``; at the commit it is
    applied again to what the table is by then, with ``max_hold_ms`` as how long a consumer that is not heard of keeps
    snapshots. A snapshot that would be kept then, or a ref that is gone, refuses the whole action; snapshots and refs
    that came meanwhile do not.
    """

    kind: ClassVar[Literal["expire_snapshots"]] = "expire_snapshots"
    base_metadata_location: str
    base_snapshot_id: int | None
    snapshot_ids: tuple[int, ...]
    refs_removed: tuple[RefAt, ...]
    refs_seen: tuple[RefAt, ...]
    retained_snapshot_ids: tuple[int, ...]
    rule: ExpiryRule
    as_of: Instant
    max_hold_ms: int = MAX_HOLD_MS

    @property
    def figures(self) -> ExpireSnapshotsFigures:
        """The action without its ids."""
        return ExpireSnapshotsFigures(
            base_snapshot_id=self.base_snapshot_id,
            snapshots=len(self.snapshot_ids),
            refs=len(self.refs_removed),
            retained=len(self.retained_snapshot_ids),
            older_than_ms=self.rule.older_than_ms,
            retain_last=self.rule.retain_last or RETAIN_LAST_MIN,
        )


@dataclass(frozen=True, slots=True)
class ExpireSnapshotsPrediction:
    """What carrying out the action would bring, exactly.

    ``manifest_lists`` are those of the snapshots that go. ``call`` is the Spark statement that comes nearest.
    ``can_be_undone`` is whether the table's catalog allows it; ``undo`` says in words how. ``second_table`` is what an
    undo registers, where the catalog takes no old snapshots back.
    """

    kind: ClassVar[Literal["expire_snapshots"]] = "expire_snapshots"
    snapshots_before: int
    snapshots_after: int
    refs_removed: tuple[str, ...]
    manifest_lists: int
    call: str
    can_be_undone: bool
    undo: str
    second_table: TableName | None = None


@dataclass(frozen=True, slots=True)
class ExpireSnapshotsRequest:
    """Expire snapshots, and do nothing else. What is not said, the table's policy says.

    ``older_than`` is an age as an ISO-8601 duration (``P5D``), never an instant; ``retain_last`` how many snapshots of
    each branch stay whatever their age, at least 1.
    """

    kind: ClassVar[Literal["expire_snapshots"]] = "expire_snapshots"
    older_than: str | None = None
    retain_last: int | None = None


TRAITS: Final = ActionTraits(
    ExpireSnapshots,
    ExpireSnapshotsFigures,
    ExpireSnapshotsPrediction,
    names=lambda action: len(action.snapshot_ids) + len(action.retained_snapshot_ids),
    permission=Permission.REMOVE,
    runs_on=RunsOn.SERVER,
    taken_back_by=("undo_expire_snapshots",),
    asked=ExpireSnapshotsRequest,
    settings=frozenset({"ignore_other_optimizers", "max_snapshot_age_ms", "min_snapshots_to_keep", "max_hold_ms"}),
)
