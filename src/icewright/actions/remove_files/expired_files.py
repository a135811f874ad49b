"""Files that expiries of ours left to nobody: what the expired snapshots needed, without what the table needs now.

What an expiry took was written down before it was taken (``ports/kept.py``), so that nothing has to be listed. What is
needed now is read anew from all metadata. A file at such a path that was written after the expiry is another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from itertools import islice
from typing import Final

from icewright.actions.remove_files.orphans.foreign_metadata import (
    ForeignMetadata,
    MetadataUuids,
    TablesAround,
    metadata_beside,
)
from icewright.catalogs.objects import Objects
from icewright.catalogs.table_files_port import TableFiles
from icewright.core import wording
from icewright.core.clock import Ids
from icewright.core.completeness import Partial
from icewright.core.errors import Conflict, InvalidLocation, TableReplaced, Unavailable, Unreadable, Unsupported
from icewright.core.times import Instant
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.deletion import GRACE_FLOOR_MS, Candidate, Cause
from icewright.model.actions.expire_snapshots import ExpireSnapshots
from icewright.model.actions.remove_files import FILES_MAX, RemoveExpiredFiles, RemoveExpiredFilesPrediction
from icewright.model.iceberg.locations import Aliases, CanonicalPath
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.plans import Plan, Reason
from icewright.model.policy.policy import Policy
from icewright.model.work.tasks import TERMINAL_STATES, ListedTask, Task
from icewright.ownership.claims import claim
from icewright.ownership.model import GoneUuid, Missing, Place
from icewright.ownership.needed_files import NeedsOf
from icewright.plans.repository import keep_plan
from icewright.plans.standalone_plan import Decided, build_standalone_plan
from icewright.ports.snapshot_expiry import SnapshotExpiry
from icewright.ports.store import TableStore, TaskFilter, TaskStore
from icewright.ports.undo_records import UndoRecordStore

PATHS_MAX: Final = 500_000
"""Files of expired snapshots that are looked at in one go, some 150 MB; what is beyond is left to other searches."""
GRACE_MS: Final = GRACE_FLOOR_MS[Cause.EXPIRED]
"""How long after the verification of an expiry its files are left alone."""
EXPIRIES_LOOKED_AT: Final = 200
"""The latest expiries of a table: one an hour at most, for a week."""
LatelyEnded = tuple[str, Instant]
"""An expiry, and when it was changed last."""


def ended_lately(expiries: Iterable[ListedTask], now: Instant) -> list[ListedTask]:
    """Expiries that ended less than a grace period ago or have not ended, whatever became of them.

    What they took may have been needed until they took it.
    """
    return [one for one in expiries if one.updated_at > now - GRACE_MS or one.state not in TERMINAL_STATES]


@dataclass(frozen=True, slots=True)
class ExpiredDoors:
    """What is asked about the files of one catalog's tables."""

    files: TableFiles
    objects: Objects
    expiry: SnapshotExpiry
    needs: NeedsOf
    aliases: Aliases
    uuids: MetadataUuids
    limits: tuple[str, ...] = ()
    """Where tables of the catalog may lie."""
    gone: Callable[[TableMetadata], tuple[GoneUuid, ...]] = lambda _: ()
    """The tables that were declared gone from the place of one, and that no table has become, as far as is known."""
    elsewhere: Callable[[], Sequence[Missing]] = tuple
    """The catalogs that other servers alone have: as long as there are any, no file may be removed."""


class ExpiredFilesPlanner:
    """Makes plans of removing the files of expired snapshots, and keeps them in the store. For one thread."""

    def __init__(
        self,
        doors: Mapping[str, ExpiredDoors],
        kept: UndoRecordStore,
        tables: TableStore,
        tasks: TaskStore,
        ids: Ids,
        policy: Callable[[TableMetadata], Policy],
    ) -> None:
        """``doors`` are by the names of their catalogs; without one, nothing is planned for a catalog."""
        self._doors, self._kept, self._tables = dict(doors), kept, tables
        self._tasks, self._ids, self._policy = tasks, ids, policy

    def plan(
        self, name: TableName, table_id: TableId, task_ids: Sequence[str], lately: Sequence[str] = ()
    ) -> Plan | None:
        """The plan of what may go of these verified expiries; None where nothing may.

        ``lately`` are expiries since a grace period ago: what they took was needed until then, and stays. Raises
        ``TableReplaced`` where the name leads to another table, and ``Unavailable`` where not all is known that the
        table needs, or needed until lately, where metadata of another table, or of a copy, lies among its own, and
        where other servers have catalogs that this one lacks.
        """
        doors = self._doors.get(name.catalog)
        if doors is None:
            return None
        now = doors.files.roots(name).metadata
        if now.table_id != table_id:
            raise TableReplaced(f"{name} is another table now")
        left = self._left(doors, now, task_ids, lately)
        if not left:
            return None
        if elsewhere := doors.elsewhere():
            raise Unavailable(f"files of expired snapshots of {name} stay: {elsewhere[0].reason.text}")
        try:
            _require_no_copy(doors, now)
        except Unsupported as error:
            raise Unavailable(f"files of expired snapshots of {name} stay: {error.message}", hint=error.hint) from error
        known = doors.needs(name, left)
        if isinstance(known, Partial):
            said = known.gaps[0].reason.text if known.gaps else "a part of it could not be read"
            raise Unavailable(f"not all that the table needs is known: {said}")
        needs = known.value
        if needs.table_id != table_id:
            raise TableReplaced(f"{name} is another table now")
        candidates, later, gone = self._candidates(doors, left, needs.needed)
        if not candidates:
            return None
        action = RemoveExpiredFiles(
            base_metadata_location=needs.metadata_location,
            base_snapshot_id=now.current_snapshot_id,
            expiry_task_ids=tuple(task_ids),
            files=tuple(candidates),
            as_of=self._tasks.now(),
        )
        prediction = RemoveExpiredFilesPrediction(len(candidates), action.size_bytes, len(needs.needed), gone, later)
        return self._keep(now, action, prediction)

    def require_grace(self, task: Task, seen: set[LatelyEnded]) -> None:
        """Make sure that no expiry took the last need of a file of a planned removal less than a grace period ago.

        A removal may wait for days, for a person or for its turn. Snapshots may have come back meanwhile, and expired
        once more: then their files have their day from then on. ``seen`` are expiries that this was asked of before;
        those that were asked of now are added. Raises :class:`~icewright.core.errors.Conflict` with such a file, and
        ``Unavailable`` where it cannot be told.
        """
        action, doors = task.action, self._doors.get(task.table_name.catalog)
        if not isinstance(action, RemoveExpiredFiles):
            return
        if doors is None:
            raise Unavailable(f"this server does not know the latest expiries in catalog {task.table_name.catalog}")
        latest = self._tasks.listed(
            TaskFilter(table_id=task.table_id, kind=ActionKind.EXPIRE_SNAPSHOTS), limit=EXPIRIES_LOOKED_AT
        )
        lately = {(one.task_id, one.updated_at) for one in ended_lately(latest, self._tasks.now())} - seen
        if not lately:
            return
        now, paths = doors.files.roots(task.table_name).metadata, {one.object.path for one in action.files}
        if now.table_id != task.table_id:
            return  # which the Deleter says, file by file
        for task_id, _ in sorted(lately):
            for path in self._needed_then(doors, now, self._tasks.get(task_id), in_full=True):
                if path in paths:
                    raise Conflict(
                        f"{path} was needed until {task_id} expired its snapshots, less than "
                        f"{wording.duration(GRACE_MS)} ago",
                        hint="it is planned again afterwards",
                    )
        seen |= lately

    def _left(
        self, doors: ExpiredDoors, now: TableMetadata, task_ids: Sequence[str], lately: Sequence[str]
    ) -> dict[CanonicalPath, Instant]:
        """What expiries took the last need of, and when; nothing that was needed until ``lately``."""
        left: dict[CanonicalPath, Instant] = {}
        for task in [self._tasks.get(task_id) for task_id in task_ids]:
            for path in islice(self._needed_then(doors, now, task), PATHS_MAX - len(left)):
                left[path] = max(left.get(path, 0), task.updated_at)
        for task in [self._tasks.get(task_id) for task_id in lately] if left else ():
            for path in self._needed_then(doors, now, task, in_full=True):
                left.pop(path, None)
        return left

    def _needed_then(
        self, doors: ExpiredDoors, now: TableMetadata, task: Task, *, in_full: bool = False
    ) -> Iterator[CanonicalPath]:
        """The files that the snapshots needed which an expiry took; nothing where that is not kept any more.

        Manifests that the table's current snapshot has as well are passed over: what is in them is needed. What cannot
        be read makes fewer files, which are left to the search for orphans; ``in_full`` raises ``Unreadable`` then.
        """
        kept = self._kept.kept(task.task_id)
        if kept is None or not isinstance(task.action, ExpireSnapshots) or kept.table_id != task.table_id:
            return
        taken = doors.expiry.read_taken(now.name, kept.content)
        wanted = set(task.action.snapshot_ids)
        current = now.current_snapshot
        of_now = () if current is None else doors.files.manifests(now, current.manifest_list).manifests
        seen = {manifest.path for manifest in of_now}
        for snapshot in taken.snapshots:
            if snapshot.snapshot_id not in wanted or not snapshot.manifest_list:
                continue
            yield from _canonical(doors.aliases, snapshot.manifest_list)
            with nullcontext() if in_full else suppress(Unreadable):
                for manifest in doors.files.manifests(taken, snapshot.manifest_list).manifests:
                    if manifest.path not in seen:
                        seen.add(manifest.path)
                        yield from _canonical(doors.aliases, manifest.path)
                        for file in doors.files.live_files(taken, manifest):
                            yield from _canonical(doors.aliases, file.path)

    def _candidates(
        self, doors: ExpiredDoors, left: Mapping[CanonicalPath, Instant], needed: frozenset[CanonicalPath]
    ) -> tuple[list[Candidate], int, int]:
        """What may go, how many more may go later, and how many are gone or were written since."""
        unneeded = [path for path in left if path not in needed]
        found: list[Candidate] = []
        gone = 0
        for path in unneeded:
            if len(found) == FILES_MAX:
                break
            listed = doors.objects.stat(path)
            if listed is None or listed.modified_at is None or listed.modified_at > left[path]:
                gone += 1
                continue
            found.append(Candidate(listed, left[path]))
        return found, len(unneeded) - len(found) - gone, gone

    def _keep(
        self, metadata: TableMetadata, action: RemoveExpiredFiles, prediction: RemoveExpiredFilesPrediction
    ) -> Plan:
        files = f"{wording.count(len(action.files), 'file')} ({wording.size(action.size_bytes)})"
        figures = {"files": len(action.files), "bytes": action.size_bytes}
        reason = Reason("remove-expired-files", f"expired snapshots have left {files} that nothing needs", figures)
        decided = Decided(reason, action, prediction)
        plan = build_standalone_plan(
            self._ids.new("plan"), metadata, self._policy(metadata), decided, action.as_of, asked=False
        )
        return keep_plan(self._tables, plan)


def _require_no_copy(doors: ExpiredDoors, table: TableMetadata) -> None:
    """Make sure that no other table's metadata lies beside the table's, or around it.

    A copy of it may need what expired here, and so may a table of another format. One that was declared gone does not.
    Whether either is committed to is asked once more before each batch.
    """
    roots = claim(table, doors.aliases).roots
    place = Place(table.name, table.table_id.uuid.strip().lower(), roots, (), gone=doors.gone(table))
    foreign = ForeignMetadata(doors.objects, place, doors.uuids, table, doors.aliases)
    for entry in metadata_beside(doors.objects, place, table, doors.aliases):
        foreign.look(entry)
    found = foreign.findings()
    if not found:  # a table of another format has the same files, and goes by metadata of its own
        around = TablesAround(doors.objects, doors.uuids, doors.aliases, doors.limits).refusal(place)
        found = () if around is None else (around,)
    if found:
        raise Unavailable(f"files of expired snapshots of {table.name} stay: {found[0].text}")


def _canonical(aliases: Aliases, path: str) -> Iterator[CanonicalPath]:
    """The path in canonical form; what is none stays where it is."""
    try:
        yield aliases.canonical(path)
    except InvalidLocation:
        return
