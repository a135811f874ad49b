"""The rollback port over real catalogs: the ordinary update of a ref, with the place of ``main`` asserted.

A REST catalog asserts it itself; SQL and Hive Metastore compare and swap the whole metadata file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from icewright.actions.rollback.plan import is_signed, rollback_conflict
from icewright.catalogs.metadata.translated_errors import reading
from icewright.catalogs.pointers.rest_commits import RestCommits, main_updates
from icewright.catalogs.pointers.table_commits import commits_of, look, prepared, until_done
from icewright.core.clock import Clock
from icewright.core.errors import Conflict
from icewright.core.times import Instant
from icewright.model.actions.rollback import Rollback
from icewright.model.actions.undo import SIGNATURE_KEY
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.tables import MAIN_BRANCH

_CURRENT: Final = "current-snapshot-id"
_OF_CURRENT: Final = ("current-snapshot-timestamp-ms", "current-snapshot-summary")
"""What Iceberg keeps of the current snapshot in a Hive Metastore's table, for people."""


class PyIcebergRollbacks:
    """Sets ``main`` of the tables of one catalog."""

    def __init__(self, entry: CatalogEntry, clock: Clock) -> None:
        """Raises :class:`~icewright.core.errors.InvalidConfiguration` for an entry that cannot be used."""
        entry.check()
        self._commits = commits_of(entry)
        self._clock = clock

    def roll_back(
        self,
        name: TableName,
        table_id: TableId,
        action: Rollback,
        *,
        task_id: str,
        may_commit: Callable[[], None],
    ) -> None:
        """Carry out the action, in one commit that is signed by the task."""
        commits = self._commits

        def attempt() -> Callable[[], bool] | None:
            pointed, now = look(commits, name, table_id)
            if is_signed(task_id, now):
                return None
            reason = rollback_conflict(action, now)
            if reason is not None:
                raise Conflict(f"table {name} cannot be set to another snapshot: {reason.text}")
            if isinstance(commits, RestCommits):
                main = next(ref for ref in now.refs if ref.name == MAIN_BRANCH)
                asserted: Mapping[str, int | None] = {MAIN_BRANCH: action.base_snapshot_id}
                updates = main_updates(main, action.snapshot_id, {SIGNATURE_KEY: task_id})
                return partial(commits.commit, name, table_id.uuid, updates, asserted)
            at = max(self._clock.now(), now.updated_at)
            with reading(f"metadata of table {name} in {pointed.metadata_location}"):
                changed = with_main_at(pointed.metadata, action.snapshot_id, at, task_id)
            parameters: dict[str, str | None] = {_CURRENT: str(action.snapshot_id), SIGNATURE_KEY: task_id}
            parameters |= dict.fromkeys(_OF_CURRENT)
            return prepared(commits, name, pointed, changed, parameters, at)

        def is_done() -> bool:
            return is_signed(task_id, look(commits, name, table_id)[1])

        until_done(name, attempt, may_commit, is_done)


def with_main_at(metadata: Mapping[str, Any], snapshot_id: int, at: Instant, task_id: str) -> dict[str, Any]:
    """The metadata with ``main`` at another snapshot, logged and signed; the settings of ``main`` stay as they are."""
    refs = dict(metadata.get("refs") or {})
    refs[MAIN_BRANCH] = {"type": "branch", **refs.get(MAIN_BRANCH, {}), "snapshot-id": snapshot_id}
    return {
        **metadata,
        _CURRENT: snapshot_id,
        "refs": refs,
        "snapshot-log": [*(metadata.get("snapshot-log") or ()), {"timestamp-ms": at, "snapshot-id": snapshot_id}],
        "properties": {**(metadata.get("properties") or {}), SIGNATURE_KEY: task_id},
    }
