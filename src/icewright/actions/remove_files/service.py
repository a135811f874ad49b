"""Removing files as a task of the server's own: each attempt goes on where the last one stopped (decision 0037).

What decides about single files, and touches them, is the Deleter alone. Here its batches become an attempt of a task:
with a lease, a report and a verification as all others, and with an end, whatever became of the server.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from icewright.actions.remove_files.deleter import ASKED_FILES, NEEDED_ELSEWHERE, OUTDATED, RESTING, Batch, Deleter
from icewright.actions.remove_files.expired_files import LatelyEnded
from icewright.actions.remove_files.orphans.file_names import written_by
from icewright.actions.remove_files.orphans.gone_tables import GoneTables
from icewright.catalogs.table_files_port import TableFiles
from icewright.core import wording
from icewright.core.completeness import Partial
from icewright.core.errors import Conflict, NotAllowed, NotFound, Unavailable, Unreadable
from icewright.model.actions.actions import cause_of
from icewright.model.actions.deletion import Cause, DeletionRun, IntentState, plan_deletes
from icewright.model.actions.remove_files import RemoveExpiredFiles, RemoveExpiredFilesFigures, RemoveOrphanFiles
from icewright.model.actions.undo import RestoreFiles
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.plans.plans import Reason
from icewright.model.policy.resource_groups import SERVER_FILES
from icewright.model.work.breaker import UNVERIFIED, VERIFICATION_FAILED
from icewright.model.work.halts import Halt, halt_over
from icewright.model.work.jobs import Committed, Failed, Result
from icewright.model.work.tasks import REMOVING, RESTORING, Progress, Task
from icewright.ownership.needed_files import NeedsOf
from icewright.ports.carriers import MayGoOn
from icewright.ports.deletions import HELD_STATES, DeletionStore, IntentCount
from icewright.ports.store import TaskStore
from icewright.ports.telemetry import watched

HEADS_LOOKED_AT: Final = 20
_RUNS_A_PAGE: Final = 100
GONE_BATCHES: Final = 10
"""Of tables that are gone, so many batches are purged for one request."""
MANIFESTS_LOOKED_AT: Final = 200
"""Of so many refs, and in all so many manifests, it is seen behind a removal that they are where they were."""
REST_MS_MAX: Final = 10_000
"""How long nobody asks whether to go on, while files go no faster than they may."""
_Removal: TypeAlias = RemoveOrphanFiles | RemoveExpiredFiles


@dataclass(frozen=True, slots=True)
class OfGone:
    """What purges files of tables that are gone: a Deleter that asks ``tables`` in their place."""

    deleter: Deleter
    tables: GoneTables


@dataclass(frozen=True, slots=True)
class StorageClients:
    """What removes files of one catalog's tables; ``lock`` is held for each batch, since it is for one thread."""

    deleter: Deleter
    needs: NeedsOf
    files: TableFiles
    of_gone: OfGone | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)


class Remover:
    """Carries out removals on the tables of all catalogs that have a quarantine."""

    def __init__(
        self,
        hands: Mapping[str, StorageClients],
        store: DeletionStore,
        tasks: TaskStore,
        pause: Callable[[int], None],
        name_of: Callable[[TableId], TableName | None],
        require_grace: Callable[[Task, set[LatelyEnded]], None],
        tell_back: Callable[[DeletionRun, Reason], None],
    ) -> None:
        """``pause`` waits for so many ms, while files go no faster than they may.

        ``name_of`` tells what a table is called by now, None where nobody knows. For ``require_grace`` see
        :meth:`.ExpiredFilesPlanner.require_grace`. ``tell_back`` is told why files of a
        run came back that another table needs.
        """
        self._hands, self._store, self._tasks, self._require_grace = dict(hands), store, tasks, require_grace
        self._pause, self._name_of, self._tell_back = pause, name_of, tell_back

    @property
    def catalogs(self) -> frozenset[str]:
        """Those on whose tables files can be removed."""
        return frozenset(self._hands)

    def carry_out(self, task: Task, may_commit: MayGoOn) -> Result:
        """Move files into quarantine, those that may still go; or put them back. See ``Carrier``.

        Raises :class:`Conflict` where the table needs one of them by now, and ``Unavailable`` while that is not known.
        """
        hands = self.of(task.table_name.catalog)
        match task.action:
            case RemoveOrphanFiles() | RemoveExpiredFiles() as action:
                self._remove(hands, task, action, may_commit)
            case RestoreFiles() as action:
                self._restore(hands, action, may_commit)
                if (left := self._not_back(action)) is not None:
                    return left
            case action:
                raise TypeError(f"task {task.task_id} moves no files: {action.kind}")
        problem = self._unreadable(hands, task)
        return Committed(None) if problem is None else Failed(VERIFICATION_FAILED, problem, retryable=False)

    def outcome(self, task: Task) -> Reason:
        """What became of the files of a task that was reported as done, by what is written down of each."""
        run_id = task.action.undone_task_id if isinstance(task.action, RestoreFiles) else task.task_id
        try:
            run, tally = self._store.run(run_id), self._store.count_intents(run_id)
        except NotFound:
            return Reason(UNVERIFIED, "nothing is written down of the removal any more")
        if run.is_open or tally[IntentState.UNKNOWN].files:
            return Reason(UNVERIFIED, "it was reported as done, and it is not known what became of all files")
        return _restored(tally) if isinstance(task.action, RestoreFiles) else _removed(tally)

    def broken_off(self, task: Task) -> str | None:
        """How far a task came that moves files, and whose attempt told nothing any more; None for all others."""
        if not isinstance(task.action, RemoveOrphanFiles | RemoveExpiredFiles | RestoreFiles):
            return None
        run_id = task.action.undone_task_id if isinstance(task.action, RestoreFiles) else task.task_id
        tally = self._store.count_intents(run_id)
        files = sum(one.files for one in tally.values())
        held = tally[IntentState.QUARANTINED].files + tally[IntentState.PURGED].files
        unknown = tally[IntentState.UNKNOWN].files
        lost = f", {unknown:,} yet to be looked up" if unknown else ""
        of_all = wording.count(files, "file")
        return f"of {of_all} {held:,} in quarantine, {files - held - unknown:,} at their places{lost}"

    def held(self, run_id: str) -> tuple[IntentCount, IntentCount]:
        """What of a run is in quarantine, and what was purged. Raises ``NotFound``."""
        self._store.run(run_id)
        tally = self._store.count_intents(run_id)
        return tally[IntentState.QUARANTINED], tally[IntentState.PURGED]

    def _remove(self, hands: StorageClients, task: Task, action: _Removal, may_commit: MayGoOn) -> None:
        seen: set[LatelyEnded] = set()
        self._require_grace(task, seen)
        with hands.lock:
            total = self._begun(hands, task, action)

        def may_go_on() -> None:
            self._require_grace(task, seen)
            left = self._store.count_intents(task.task_id)[IntentState.PLANNED].files
            may_commit(Progress(REMOVING, total - left, total))

        while True:
            with hands.lock, watched("removal", task):
                batch = hands.deleter.advance(task.task_id, may_go_on)
            run = self._store.run(task.task_id)
            self._tell(run, batch)
            if batch.is_done or not run.is_open:
                return
            if batch.waits is not None and batch.waits.code not in (RESTING, OUTDATED):
                raise Unavailable(f"the removal waits: {batch.waits.text}")
            rest_ms = run.next_at - self._store.now()
            if rest_ms > 0:
                self._pause(min(rest_ms, REST_MS_MAX))
                may_go_on()

    def _restore(self, hands: StorageClients, action: RestoreFiles, may_commit: MayGoOn) -> None:
        def may_go_on() -> None:
            left = self._held_files(action.undone_task_id)
            may_commit(Progress(RESTORING, max(0, action.files - left), action.files))

        self._put_back(hands, action.undone_task_id, may_go_on)

    def _put_back(self, hands: StorageClients, run_id: str, may_go_on: Callable[[], None]) -> None:
        """Put back all of a run that can be; ``may_go_on`` is called before each batch. Raises ``Unavailable``."""
        after: int | None = None
        while True:
            may_go_on()
            with hands.lock:
                batch = hands.deleter.undo(run_id, after)
            if batch.waits is not None:
                raise Unavailable(f"not all files could be put back: {batch.waits.text}")
            if batch.is_done:
                return
            after = batch.after

    def _held_files(self, run_id: str) -> int:
        return self._store.count_intents(run_id)[IntentState.QUARANTINED].files

    def _not_back(self, action: RestoreFiles) -> Failed | None:
        """Which files could not be put back, and why the first of them could not; None when all are back."""
        held = frozenset({IntentState.QUARANTINED})
        first = self._store.intents(action.undone_task_id, held, limit=1)
        if not first:
            return None
        left = self._held_files(action.undone_task_id)
        why = "" if first[0].why is None else f": {first[0].why.text}"
        return Failed("not-all-back", f"{wording.count(left, 'file')} could not be put back{why}", retryable=False)

    def bring_back(self, expiry: Task, may_go_on: MayGoOn) -> None:
        """Put back all that was removed because of an expiry, before its snapshots come back.

        ``may_go_on`` is told before each batch; what it raises passes through. Raises :class:`Conflict` when a file
        cannot come back, and ``Unavailable``.
        """
        before: str | None = None
        while page := self._store.runs(table_id=expiry.table_id, limit=_RUNS_A_PAGE, before=before):
            for run in page:
                if run.cause is Cause.EXPIRED and self._is_of(run.run_id, expiry.task_id):
                    self._bring_back(run.run_id, may_go_on)
            before = page[-1].run_id

    def _is_of(self, run_id: str, expiry_task_id: str) -> bool:
        try:
            figures = self._tasks.head(run_id).figures
        except NotFound:  # forgotten with its files: these were purged long ago
            return False
        return isinstance(figures, RemoveExpiredFilesFigures) and expiry_task_id in figures.expiry_task_ids

    def _bring_back(self, run_id: str, may_go_on: MayGoOn) -> None:
        total = self._held_files(run_id)
        if not total:
            return

        def tell() -> None:
            may_go_on(Progress(RESTORING, max(0, total - self._held_files(run_id)), total))

        self._put_back(self._hands_of(run_id), run_id, tell)
        if left := self._held_files(run_id):
            raise Conflict(f"{wording.count(left, 'file')} cannot be restored: other files are at their paths now")

    def halt_of(self, table_id: TableId) -> Halt | None:
        """What keeps files of a table where they are, since a person said so; None where nobody did."""
        return halt_over(self._tasks.halts.present(), SERVER_FILES, table_id)

    def tend(self, run_id: str, after: int | None = None, *, wait_s: float = -1) -> Batch:
        """Look after what is in quarantine, at most a batch; see :meth:`Deleter.tend`. Raises ``NotFound``.

        Raises :class:`NotAllowed` while that is halted, and ``Unavailable`` where something else is done with files of
        the catalog for longer than ``wait_s``; below 0 it is waited for, however long it takes.
        """
        run = self._store.run(run_id)
        self._require_going_on(run.table_id)
        hands = self.of(run.table_name.catalog)
        if not hands.lock.acquire(timeout=wait_s):
            raise Unavailable(f"files of catalog {run.table_name.catalog} are being moved; ask again later")
        try:
            batch = hands.deleter.tend(run_id, after, name=self._name_now(run))
        finally:
            hands.lock.release()
        self._tell(run, batch)
        return batch

    def _tell(self, run: DeletionRun, batch: Batch) -> None:
        back = [one.why for one in batch.changed if one.state is IntentState.RESTORED and one.why is not None]
        if back and back[0].code == NEEDED_ELSEWHERE:
            text = f"{wording.count(len(back), 'file')} came back from quarantine: {back[0].text}"
            self._tell_back(run, Reason(NEEDED_ELSEWHERE, text, {"files": len(back)}))

    def purge_gone(self, run_id: str, *, wait_s: float) -> Batch:
        """Purge files of a table that is gone, by a person's word: some batches of what was there for its window.

        Nothing goes while anybody may need it (:mod:`.gone_tables`); ``waits`` says who. Raises as
        :meth:`tend`, and :class:`NotAllowed` where the table is there.
        """
        run = self._store.run(run_id)
        hands = self.of(run.table_name.catalog)
        if hands.of_gone is None:
            raise NotAllowed(f"nothing of dropped tables is purged in catalog {run.table_name.catalog!r}")
        if not hands.lock.acquire(timeout=wait_s):
            raise Unavailable(f"files of catalog {run.table_name.catalog} are being moved; ask again later")
        try:
            hands.of_gone.tables.turn_to(run, self._held_paths(run_id))
            batch = Batch()
            for _ in range(GONE_BATCHES):
                self._require_going_on(run.table_id)
                batch = hands.of_gone.deleter.tend(run_id, batch.after, name=self._name_now(run))
                self._tell(run, batch)
                if batch.is_done or batch.waits is not None:
                    break
            return batch
        finally:
            hands.lock.release()

    def _require_going_on(self, table_id: TableId) -> None:
        halt = self.halt_of(table_id)
        if halt is not None:
            raise NotAllowed(halt.reason().text, hint="`icewright queue resume` resumes it")

    def _held_paths(self, run_id: str) -> Iterator[CanonicalPath]:
        after: int | None = None
        while page := self._store.intents(run_id, HELD_STATES, limit=ASKED_FILES, after=after):
            yield from (intent.object.path for intent in page)
            after = page[-1].number

    def leave(self, run_id: str, reason: Reason) -> Batch:
        """Touch nothing more of a run whose task has ended; see :meth:`Deleter.leave`. Raises ``NotFound``."""
        hands = self._hands_of(run_id)
        with hands.lock:
            return hands.deleter.leave(run_id, reason)

    def of(self, catalog: str) -> StorageClients:
        """What removes files of a catalog. Raises :class:`NotAllowed` where nothing does."""
        if catalog not in self._hands:
            raise NotAllowed(
                f"no file of catalog {catalog!r} is ever removed: it has no quarantine",
                hint=f"name a place outside of all tables under catalogs.{catalog}.quarantine",
            )
        return self._hands[catalog]

    def _name_now(self, run: DeletionRun) -> TableName:
        """What the table of a run is called by now: it may have been renamed since."""
        return self._name_of(run.table_id) or run.table_name

    def _hands_of(self, run_id: str) -> StorageClients:
        return self.of(self._store.run(run_id).table_name.catalog)

    def _begun(self, hands: StorageClients, task: Task, action: _Removal) -> int:
        """Write down what a task intends, unless an attempt before this one did so; how many files there are."""
        with suppress(NotFound):
            self._store.run(task.task_id)
            return len(action.files)
        known = hands.needs(task.table_name, [candidate.object.path for candidate in action.candidates])
        if isinstance(known, Partial):
            said = known.gaps[0].reason.text if known.gaps else "a part of it could not be read"
            raise Unavailable(f"not all that the table needs is known: {said}")
        if known.value.table_id != task.table_id:
            raise Conflict(f"{task.table_name} is another table now")
        try:
            plan = plan_deletes(
                known,
                cause_of(action),
                action.candidates,
                plan_id=task.plan_id,
                table_name=task.table_name,
                planned_at=action.as_of,
                grace_ms=action.age_min_ms if isinstance(action, RemoveOrphanFiles) else None,
                bytes_max=action.listed_table_bytes if isinstance(action, RemoveOrphanFiles) else None,
                doubtful=_doubtful(action),
            )
        except NotAllowed as error:
            raise Conflict(error.message, hint="plan again") from error
        token = None if task.lease is None else task.lease.fencing_token
        hands.deleter.begin(plan, task.task_id, fencing_token=token)
        return len(action.files)

    def _unreadable(self, hands: StorageClients, task: Task) -> str | None:
        """What of the table's metadata is not there behind a removal; None when all that was looked at is."""
        table = hands.files.roots(task.table_name).metadata
        if table.table_id != task.table_id:
            return None
        try:
            paths: dict[str, None] = {}
            for ref in table.refs[:HEADS_LOOKED_AT]:
                snapshot = table.snapshot(ref.snapshot_id)
                if snapshot is not None:
                    listed = hands.files.manifests(table, snapshot.manifest_list).manifests
                    paths.update(dict.fromkeys(manifest.path for manifest in listed))
            for path in list(paths)[:MANIFESTS_LOOKED_AT]:
                hands.files.size_bytes(table, path)
        except Unreadable as error:
            return f"after the removal, the table cannot be read as before: {error.message}"
        return None


def _doubtful(action: _Removal) -> int:
    """How many files a person must have seen; by their names once more, whatever the plan says of them."""
    if isinstance(action, RemoveExpiredFiles):
        return 0
    return sum(file.doubt is not None or written_by(CanonicalPath(file.path)) is None for file in action.files)


def _removed(tally: Mapping[IntentState, IntentCount]) -> Reason:
    held, gone = tally[IntentState.QUARANTINED], tally[IntentState.PURGED]
    files, size_bytes = held.files + gone.files, held.bytes + gone.bytes
    left, back = tally[IntentState.SKIPPED].files, tally[IntentState.RESTORED].files
    figures = {"files_removed": files, "bytes_removed": size_bytes, "files_left": left, "files_back": back}
    text = f"{wording.count(files, 'file')} ({wording.size(size_bytes)}) moved into quarantine"
    text += f", {left:,} left where they are" if left else ""
    text += f", {back:,} put back, since the table needs them" if back else ""
    return Reason("verified", text, figures)


def _restored(tally: Mapping[IntentState, IntentCount]) -> Reason:
    back, gone = tally[IntentState.RESTORED], tally[IntentState.PURGED]
    figures = {"files_back": back.files, "bytes_back": back.bytes, "files_purged": gone.files}
    text = f"{wording.count(back.files, 'file')} ({wording.size(back.bytes)}) put back"
    text += f", {gone.files:,} had been purged" if gone.files else ""
    return Reason("verified", text, figures)
