"""icewright's upkeep in a process of its own: ``python -m benchmarks.upkeep <catalog entry> <state>``.

It is told on standard input: each line is what to do, as JSON, and so is each answer. All imports are done by the first
of them, as a server has done them. A pass over orphans has its store in SQLite, and local files, under a clock that is
told. An expiry is carried out as the server does it: observed, planned, checked, queued, claimed, committed and
verified, with stores in memory.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from icewright.actions.expire_snapshots.expirer import Expirer
from icewright.actions.expire_snapshots.iceberg import PyIcebergExpiry
from icewright.actions.remove_files.orphans.foreign_metadata import MetadataUuids
from icewright.actions.remove_files.orphans.service import OrphanFinder, OrphansFound, OrphansRefused
from icewright.actions.remove_files.orphans.sightings_sql import SqlSightings
from icewright.actions.undo.undo_records_sql import SqlUndoRecordStore
from icewright.catalogs.local_spool import open_disk_spool
from icewright.catalogs.pointers.catalog import PyIcebergCatalog
from icewright.catalogs.pointers.table_files import PyIcebergTableFiles
from icewright.catalogs.storage.local import LocalObjects
from icewright.core.codec import loads
from icewright.core.completeness import Gaps
from icewright.core.system_clock import SystemClock, SystemIds
from icewright.maintenance.dispatch.server_tasks import ServerTaskRunner
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.expire_snapshots import ExpireSnapshotsRequest
from icewright.model.actions.remove_files import OrphanPolicy
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.locations import Aliases
from icewright.model.iceberg.names import TableName
from icewright.model.work.tasks import Task, TaskState
from icewright.notifications.message_store import SqlMessages
from icewright.notifications.service import MessageDelivery
from icewright.ownership.model import Place
from icewright.server.control import build_control_plane
from icewright.store.engine import open_store
from icewright.work.autotune.sql import SqlDecisions
from icewright.work.store.table_store import SqlTableStore
from icewright.work.store.task_store import SqlTaskStore
from tests.doubles.clock import ManualClock
from tests.doubles.removals import removal_ports
from tests.lakes.stores import new_store

READY: Final = "ready"
LOOK: Final = "look"
EXPIRE: Final = "expire"
VERIFIED: Final = "verified"
"""The reason of a task whose table was looked at, and found to be as it should be."""


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What can be asked for; all arguments and answers are JSON values."""

    entry: CatalogEntry
    state: Path

    def look(self, table: list[str], uuid: str, root: str, at: int) -> dict[str, Any]:
        """A pass over a table's orphans, at an instant: the paths that may go, and what was counted."""
        name, clock = self._name(table), ManualClock(at)
        place = Place(name, uuid, (Aliases().canonical(root).rstrip("/") + "/",), ())
        engine = open_store(f"sqlite:///{self.state}/sightings.db")
        finder = OrphanFinder(
            PyIcebergTableFiles(self.entry),
            LocalObjects(clock),
            SqlSightings(engine, clock),
            open_disk_spool,
            aliases=Aliases(),
            uuids=MetadataUuids(),
        )
        found = finder.look(name, lambda _metadata: Gaps().judge(place), OrphanPolicy())
        engine.dispose()
        match found:
            case OrphansRefused(reason, gaps):
                raise RuntimeError(f"the pass was refused: {reason.text} {gaps}")
            case OrphansFound():
                return {
                    "paths": [] if found.action is None else [file.path for file in found.action.files],
                    "orphans": found.orphans.files,
                    "listed": found.listed.files,
                    "kept": dict(found.kept),
                }

    def expire(self, table: list[str], older_than: str, retain_last: int) -> dict[str, Any]:
        """Have snapshots expire that are older than a duration, such as ``P5D``: the reason that the plan gave."""
        name, clock = self._name(table), SystemClock()
        store = new_store()
        tasks, kept = SqlTaskStore(store), SqlUndoRecordStore(store)
        expiries = {self.entry.name: PyIcebergExpiry(self.entry, clock)}
        plane = build_control_plane(
            {self.entry.name: PyIcebergCatalog(self.entry)},
            SqlTableStore(store),
            tasks,
            clock,
            SystemIds(clock),
            removal_ports(store, clock),
            kept,
            MessageDelivery(SqlMessages(store)),
            expiries=expiries,
            decisions=SqlDecisions(store),
        )
        plane.maintainer.look(name)
        plan = plane.maintainer.plan_asked(name, ExpireSnapshotsRequest(older_than, retain_last))
        if not plan.actions:
            raise RuntimeError(f"nothing was planned: {plan.reason.text}")
        plane.dispatcher.apply(plan.plan_id)
        carriers = {ActionKind.EXPIRE_SNAPSHOTS: Expirer(expiries, tasks, kept)}
        (task,) = ServerTaskRunner(plane.dispatcher, carriers, clock).work(2, lambda: frozenset(plane.catalogs))
        require_verified(plane.verifier.verify(task))
        return {"said": plan.reason.text}

    def _name(self, table: list[str]) -> TableName:
        return TableName(self.entry.name, tuple(table[:-1]), table[-1])


def require_verified(task: Task) -> None:
    """Whether a table was found to be as its task should leave it. To succeed is not enough.

    A task succeeds as well when there was nothing to compare its table with. Raises ``RuntimeError``.
    """
    code = None if task.outcome is None else task.outcome.reason.code
    if task.state is not TaskState.SUCCEEDED or code != VERIFIED:
        raise RuntimeError(f"the task was not verified: {task.state}, {task.outcome}")


def main(entry: str, state: str) -> None:
    """Answer until standard input ends."""
    upkeep = Upkeep(loads(CatalogEntry, entry), Path(state))
    works: dict[str, Callable[..., dict[str, Any]]] = {READY: dict, LOOK: upkeep.look, EXPIRE: upkeep.expire}
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(works[asked.pop("do")](**asked)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
