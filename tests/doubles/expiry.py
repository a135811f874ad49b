"""The expiry port over the catalog in memory, which compares and swaps a table as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from icewright.actions.expire_snapshots.commit import expiry_conflict, is_expired, trimmed
from icewright.actions.undo.expiry_undo import is_undone, only_back, undo_conflict
from icewright.core.codec import dumps, loads
from icewright.core.errors import Conflict, InvalidMessage, TableReplaced, Unreadable
from icewright.model.actions.expire_snapshots import ExpireSnapshots, Hold, RefAt
from icewright.model.actions.undo import SIGNATURE_KEY, UndoExpiry
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.reachable_files import Roots
from icewright.model.iceberg.tables import LoggedSnapshot, TableMetadata
from icewright.ports.snapshot_expiry import Expired
from tests.doubles.catalog import MemoryCatalog
from tests.doubles.lake import MemoryTable
from tests.doubles.tables import without_statistics

_TRIES_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class _Taken:
    """What an expiry took, in the table of then; and what was left of the log began with ``log_next``."""

    table: TableMetadata
    log_next: LoggedSnapshot | None


class MemoryExpiry:
    """Expires snapshots of a catalog in memory."""

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
        keep: Callable[[bytes], None],
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
            keep(dumps(_taken(action, now)).encode("ascii"))
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

    def read_taken(self, name: TableName, content: bytes) -> TableMetadata:
        """What an expiry took."""
        return replace(_read(content).table, name=name)

    def put_back(
        self,
        name: TableName,
        table_id: TableId,
        action: UndoExpiry,
        content: bytes,
        *,
        task_id: str,
        may_commit: Callable[[], None],
        first_missing: Callable[[Roots], str | None],
    ) -> None:
        """Put what an expiry took back into the metadata as it is now."""
        taken = _read(content)
        change = partial(_with, action, taken, task_id)

        def changed(table: MemoryTable) -> MemoryTable:
            return replace(table, metadata=change(table.metadata))

        for _ in range(_TRIES_MAX):
            now = self._now(name, table_id)
            if is_undone(action, task_id, now):
                return
            reason = undo_conflict(action, taken.table, now)
            if reason is not None:
                raise Conflict(f"snapshots of table {name} cannot be put back: {reason.text}")
            missing = first_missing(Roots(change(now), ()))
            if missing is not None:
                raise Conflict(f"snapshots of table {name} cannot be put back: {missing} is not there any more")
            may_commit()
            if self._catalog.swap(name, now.metadata_location, changed) is not None:
                return
        raise Conflict(f"table {name} is committed to all the time")

    def _now(self, name: TableName, table_id: TableId) -> TableMetadata:
        now = self._catalog.load(name)
        if now.table_id != table_id:
            raise TableReplaced(f"{name} is another table now")
        return now


def _without(action: ExpireSnapshots, table: MemoryTable) -> MemoryTable:
    gone, refs = frozenset(action.snapshot_ids), frozenset(action.refs_removed)
    metadata = replace(
        table.metadata,
        snapshots=tuple(one for one in table.metadata.snapshots if one.snapshot_id not in gone),
        refs=tuple(ref for ref in table.metadata.refs if RefAt.of(ref) not in refs),
        snapshot_log=tuple(trimmed(table.metadata.snapshot_log, lambda entry: entry.snapshot_id, gone)),
    )
    metadata = without_statistics(metadata, gone)
    return replace(table, metadata=metadata)  # what is in manifest lists stays: files are not touched


def _taken(action: ExpireSnapshots, now: TableMetadata) -> _Taken:
    gone = frozenset(action.snapshot_ids)
    left = trimmed(now.snapshot_log, lambda entry: entry.snapshot_id, gone)
    cut = now.snapshot_log[: len(now.snapshot_log) - len(left)]
    table = replace(
        now,
        current_snapshot_id=None,
        snapshots=tuple(one for one in now.snapshots if one.snapshot_id in gone),
        refs=tuple(ref for ref in now.refs if RefAt.of(ref) in action.refs_removed),
        snapshot_log=cut,
        statistics=tuple(one for one in now.statistics if one.snapshot_id in gone),
        partition_statistics=tuple(one for one in now.partition_statistics if one.snapshot_id in gone),
    )
    return _Taken(table, left[0] if left else None)


def _read(content: bytes) -> _Taken:
    try:
        return loads(_Taken, content)
    except InvalidMessage as error:
        raise Unreadable(f"what was kept cannot be read: {error.message}") from error


def _with(action: UndoExpiry, taken: _Taken, task_id: str, now: TableMetadata) -> TableMetadata:
    back = only_back(action, taken.table)
    snapshots = sorted((*now.snapshots, *back.snapshots), key=lambda one: (one.sequence_number, one.committed_at))
    known, ids = {one.snapshot_id for one in snapshots}, {one.snapshot_id for one in back.snapshots}
    log, cut = now.snapshot_log, taken.table.snapshot_log
    goes_on = taken.log_next is None or log[:1] == (taken.log_next,)
    if goes_on and {entry.snapshot_id for entry in cut} <= known:
        log = (*cut, *log)
    return replace(
        now,
        snapshots=tuple(snapshots),
        refs=tuple(sorted((*now.refs, *back.refs), key=lambda ref: ref.name)),
        snapshot_log=log,
        properties={**now.properties, SIGNATURE_KEY: task_id},
        statistics=(*now.statistics, *(one for one in taken.table.statistics if one.snapshot_id in ids)),
        partition_statistics=(
            *now.partition_statistics,
            *(one for one in taken.table.partition_statistics if one.snapshot_id in ids),
        ),
    )
