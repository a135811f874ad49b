"""The expiry port over the catalog in memory, which compares and swaps a table as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Final

from icewright.adapters.memory.catalog import MemoryCatalog
from icewright.adapters.memory.lake import MemoryTable
from icewright.domain.errors import Conflict, TableReplaced
from icewright.domain.expire_snapshots import ExpireSnapshots, Hold, RefAt
from icewright.domain.names import TableId, TableName
from icewright.domain.tables import Snapshot, TableMetadata
from icewright.planning.expiry_commit import expiry_conflict, is_expired, trimmed
from icewright.planning.expiry_undo import is_back, lost_refs, lost_snapshots, undo_conflict
from icewright.ports.expiry import Expired

_TRIES_MAX: Final = 10


class MemoryExpiry:
    """Expires snapshots of a catalog in memory, and keeps what each action took for whoever wants it back."""

    def __init__(self, catalog: MemoryCatalog) -> None:
        self._catalog = catalog
        self._taken: dict[ExpireSnapshots, tuple[MemoryTable, MemoryTable]] = {}
        """The table right before the commit, and right behind it."""

    def expire(
        self,
        name: TableName,
        table_id: TableId,
        action: ExpireSnapshots,
        *,
        may_commit: Callable[[], None],
        holds: Iterable[Hold] = (),
    ) -> None:
        """Carry out the action, in one commit, or do nothing."""
        kept = tuple(holds)
        for _ in range(_TRIES_MAX):
            now = self._now(name, table_id)
            if is_expired(action, now):
                return
            reason = expiry_conflict(action, now, kept)
            if reason is not None:
                raise Conflict(f"snapshots of table {name} cannot expire as planned: {reason.text}")
            may_commit()
            swapped = self._catalog.swap(name, now.metadata_location, partial(_without, action))
            if swapped is not None:
                self._taken[action] = swapped
                return
        raise Conflict(f"table {name} is committed to all the time")

    def commit_of(self, name: TableName, table_id: TableId, action: ExpireSnapshots) -> Expired | None:
        """The commit that carried the action out."""
        now = self._now(name, table_id)
        if not is_expired(action, now):
            return None
        if action not in self._taken:
            return Expired(None, now)
        before, after = self._taken[action]
        return Expired(before.metadata, after.metadata)

    def put_back(
        self,
        name: TableName,
        table_id: TableId,
        action: ExpireSnapshots,
        *,
        may_commit: Callable[[], None],
        first_missing: Callable[[TableMetadata, tuple[Snapshot, ...]], str | None],
    ) -> None:
        """Put what the action removed back into the metadata as it is now."""
        for _ in range(_TRIES_MAX):
            now = self._now(name, table_id)
            if is_back(action, now):
                return
            if action not in self._taken:
                raise Conflict(f"nothing of table {name} was expired by this action")
            base, _ = self._taken[action]
            reason = undo_conflict(action, base.metadata, now)
            if reason is not None:
                raise Conflict(f"snapshots of table {name} cannot be put back: {reason.text}")
            missing = first_missing(base.metadata, lost_snapshots(action, base.metadata))
            if missing is not None:
                raise Conflict(f"snapshots of table {name} cannot be put back: {missing} is not there any more")
            may_commit()
            if self._catalog.swap(name, now.metadata_location, partial(_with, action, base)) is not None:
                return
        raise Conflict(f"table {name} is committed to all the time")

    def _now(self, name: TableName, table_id: TableId) -> TableMetadata:
        now = self._catalog.load(name)
        if now.table_id != table_id:
            raise TableReplaced(f"{name} is another table by now")
        return now


def _without(action: ExpireSnapshots, table: MemoryTable) -> MemoryTable:
    gone, refs = frozenset(action.snapshot_ids), frozenset(action.refs_removed)
    metadata = replace(
        table.metadata,
        snapshots=tuple(one for one in table.metadata.snapshots if one.snapshot_id not in gone),
        refs=tuple(ref for ref in table.metadata.refs if RefAt.of(ref) not in refs),
        snapshot_log=tuple(trimmed(table.metadata.snapshot_log, lambda entry: entry.snapshot_id, gone)),
    )
    manifests = {one: listed for one, listed in table.manifests.items() if one not in gone}
    return replace(table, metadata=metadata, manifests=manifests)


def _with(action: ExpireSnapshots, base: MemoryTable, table: MemoryTable) -> MemoryTable:
    back = lost_snapshots(action, base.metadata)
    snapshots = sorted((*table.metadata.snapshots, *back), key=lambda one: (one.sequence_number, one.committed_at))
    refs = sorted((*table.metadata.refs, *lost_refs(action, base.metadata)), key=lambda ref: ref.name)
    log, old = table.metadata.snapshot_log, base.metadata.snapshot_log
    left = tuple(trimmed(old, lambda entry: entry.snapshot_id, frozenset(action.snapshot_ids)))
    whole = (*old, *log[len(left) :]) if log[: len(left)] == left else log
    metadata = replace(table.metadata, snapshots=tuple(snapshots), refs=tuple(refs), snapshot_log=whole)
    returned = {one.snapshot_id: base.manifests[one.snapshot_id] for one in back}
    return replace(table, metadata=metadata, manifests={**table.manifests, **returned})
