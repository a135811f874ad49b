"""The expiry port over real catalogs: a new metadata file and a moved pointer, or a REST catalog's commit.

SQL and Hive Metastore compare and swap the whole metadata file, so that nothing can come in between. A REST catalog
checks what it is asked to and no more: that every ref is where it was. It drops refs at snapshots that it removes, so
that a tag which is made in the moment between our look and its commit would be lost; nothing can be asked against a
name that nobody knows yet. That is found afterwards, by the metadata file that the commit was made on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from icewright.actions.expire_snapshots.commit import expiry_conflict, is_expired
from icewright.actions.expire_snapshots.next_snapshots import taken_by, with_snapshots, without_snapshots
from icewright.actions.undo.expiry_undo import is_undone, undo_conflict
from icewright.catalogs.metadata.bounded_reader import METADATA_BYTES_MAX, unpack_gzip
from icewright.catalogs.metadata.metadata import parse_metadata
from icewright.catalogs.metadata.referenced_files import parse_roots
from icewright.catalogs.metadata.translated_errors import reading
from icewright.catalogs.pointers.rest_commits import RestCommits, expiry_updates
from icewright.catalogs.pointers.table_commits import checked, commits_of, look, prepared, state, until_done
from icewright.core.clock import Clock
from icewright.core.errors import Conflict, NotAllowed, Unreadable
from icewright.inventory.commit_search import commit_in_log
from icewright.model.actions.expire_snapshots import ExpireSnapshots, Hold
from icewright.model.actions.undo import SIGNATURE_KEY, UndoExpiry
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.reachable_files import Roots
from icewright.model.iceberg.tables import MAIN_BRANCH, TableMetadata
from icewright.ports.snapshot_expiry import Expired

_SNAPSHOT_COUNT = "snapshot-count"
"""What Iceberg keeps of the snapshots in a Hive Metastore's table, for people."""


class PyIcebergExpiry:
    """Expires snapshots of the tables of one catalog."""

    def __init__(self, entry: CatalogEntry, clock: Clock) -> None:
        """Raises :class:`~icewright.core.errors.InvalidConfiguration` for an entry that cannot be used."""
        entry.check()
        self._commits = commits_of(entry)
        self._clock = clock

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

        def attempt() -> Callable[[], bool] | None:
            pointed, now = look(self._commits, name, table_id)
            if is_expired(action, now):
                return None
            reason = expiry_conflict(action, now, kept)
            if reason is not None:
                raise Conflict(f"snapshots of table {name} cannot expire as planned: {reason.text}")
            with reading(f"metadata of table {name} in {pointed.metadata_location}"):
                taken = taken_by(pointed.metadata, pointed.metadata_location, action)
            keep(taken)
            if isinstance(self._commits, RestCommits):
                refs: dict[str, int | None] = {ref.name: ref.snapshot_id for ref in now.refs}
                refs.setdefault(MAIN_BRANCH, None)
                return partial(self._commits.commit, name, table_id.uuid, expiry_updates(action, now), refs)
            with reading(f"metadata of table {name} in {pointed.metadata_location}"):
                changed = without_snapshots(pointed.metadata, action)
            parameters = {_SNAPSHOT_COUNT: str(len(changed["snapshots"]))}
            return prepared(self._commits, name, pointed, changed, parameters, self._clock.now())

        until_done(name, attempt, may_commit, lambda: is_expired(action, look(self._commits, name, table_id)[1]))

    def commit_of(self, name: TableName, table_id: TableId, action: ExpireSnapshots) -> Expired | None:
        """The commit that carried the action out: found by halving the log of metadata files, a handful of reads."""
        now = checked(name, table_id, self._commits.load(name))
        if not is_expired(action, now):
            return None
        places = [entry.location for entry in now.metadata_log]
        try:
            before, after = commit_in_log(
                places,
                action.base_metadata_location,
                now,
                partial(state, self._commits, now),
                partial(is_expired, action),
            )
        except Unreadable:
            return Expired(None, now)  # writers may delete the files of their log
        return Expired(before, after)

    def read_taken(self, name: TableName, content: bytes) -> TableMetadata:
        """What an expiry took: its snapshots and refs alone, with the schemas and specs of then."""
        return self._read_taken(name, content)[1]

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
        commits = self._commits
        if isinstance(commits, RestCommits):
            raise NotAllowed(
                f"the catalog of table {name} takes no old snapshots back",
                hint="register the metadata file of before as a second table",
            )
        taken, kept = self._read_taken(name, content)

        def attempt() -> Callable[[], bool] | None:
            pointed, now = look(self._commits, name, table_id)
            if is_undone(action, task_id, now):
                return None
            reason = undo_conflict(action, kept, now)
            if reason is not None:
                raise Conflict(f"snapshots of table {name} cannot be put back: {reason.text}")
            with reading(f"what was kept of table {name}"):
                changed = with_snapshots(pointed.metadata, taken, action, task_id)
                after = parse_metadata(changed, name=name, metadata_location=pointed.metadata_location)
                roots = parse_roots(changed, after)
            missing = first_missing(roots)
            if missing is not None:
                said = f"snapshots of table {name} cannot be put back: {missing} is not there any more"
                raise Conflict(f"{said}; where it was removed as an orphan, undo that removal first")
            parameters = {_SNAPSHOT_COUNT: str(len(changed["snapshots"])), SIGNATURE_KEY: task_id}
            return prepared(commits, name, pointed, changed, parameters, self._clock.now())

        def is_done() -> bool:
            return is_undone(action, task_id, look(self._commits, name, table_id)[1])

        until_done(name, attempt, may_commit, is_done)

    def _read_taken(self, name: TableName, content: bytes) -> tuple[Mapping[str, Any], TableMetadata]:
        with reading(f"what was kept of table {name}"):
            taken = json.loads(unpack_gzip(content, f"what was kept of table {name}", METADATA_BYTES_MAX))
            return taken, parse_metadata(taken["metadata"], name=name, metadata_location=taken["metadata-location"])
