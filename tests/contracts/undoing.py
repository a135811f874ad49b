"""What tests of undoing expiries have in common: a shelf for what was taken, and the action that puts it back."""

from __future__ import annotations

from icewright.actions.undo.expiry_undo import UndoDecision, decide_undo
from icewright.model.actions.expire_snapshots import ExpireSnapshots
from icewright.model.actions.undo import UndoExpiry
from icewright.model.iceberg.tables import TableMetadata
from icewright.policy.effective import effective_policy
from icewright.ports.snapshot_expiry import SnapshotExpiry

EXPIRED, UNDOING = "task-expired", "task-undoing"
FOR_EVER = 1 << 62


class Shelf:
    """Keeps what the latest expiry took."""

    def __init__(self) -> None:
        self.content = b""

    def keep(self, content: bytes) -> None:
        self.content = content


def decided(expiry: SnapshotExpiry, now: TableMetadata, action: ExpireSnapshots, content: bytes) -> UndoDecision:
    """What of an expiry would come back into the table."""
    taken = expiry.read_taken(now.name, content)
    return decide_undo(EXPIRED, action, taken, now, effective_policy(now, ()), FOR_EVER)


def whole_undo(now: TableMetadata, action: ExpireSnapshots) -> UndoExpiry:
    """The action that puts all of an expiry back, whatever the table is by now."""
    return UndoExpiry(EXPIRED, now.current_snapshot_id, action.snapshot_ids, action.refs_removed, FOR_EVER)
