"""What is due of removing files, by itself: passes, removals, and looking after what is in quarantine (decision 0037).

All of it takes minutes where tables are large. So it has a thread of its own, in which one thing is done after the
other; the loop only tells which tables want a pass.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

import structlog

from icewright.actions.remove_files.clock_watch import ClockWatch
from icewright.actions.remove_files.expired_files import EXPIRIES_LOOKED_AT, GRACE_MS, ExpiredFilesPlanner, ended_lately
from icewright.actions.remove_files.orphans.plan import DOUBTFUL
from icewright.actions.remove_files.orphans.planner import OrphanPlanner
from icewright.actions.remove_files.orphans.sightings_sql import SqlSightings
from icewright.actions.remove_files.service import Remover
from icewright.approvals.service import RESTORED_SINCE, Approvals
from icewright.core.errors import IcewrightError, NotFound, StoreUnavailable
from icewright.core.times import NEVER, Instant
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.deletion import IntentState
from icewright.model.actions.remove_files import RemoveExpiredFilesFigures, RemoveExpiredFilesPrediction
from icewright.model.actions.undo import UNDO_WINDOW_MS, UndoExpiryFigures
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.plans.plans import Plan, Reason
from icewright.model.policy.policy import Mode, Policy
from icewright.model.policy.time_windows import window_of
from icewright.model.work.breaker import DEFAULT_THRESHOLDS, TASKS_LOOKED_AT, Thresholds, is_half_open, parked
from icewright.model.work.tasks import TERMINAL_STATES, ListedTask, TaskState
from icewright.plans.upkeep_due import UPKEEP_PRIORITY
from icewright.plans.window import closed
from icewright.ports.carriers import ServerQueue, ServerTasks
from icewright.ports.deletions import DeletionStore
from icewright.ports.store import TaskFilter, TaskStore
from icewright.ports.table_records import BeforeLook

_log = structlog.get_logger("icewright.removals")

PASS_INTERVAL_MS: Final = 20 * 3_600_000
"""How often orphan files of a table are looked for by itself, from the end of one pass on: once a day, also within a
window that opens a day after it did last."""
TEND_INTERVAL_MS: Final = 24 * 3_600_000
"""How often it is seen whether a table needs something of its quarantine, and what has been there for long enough."""
TEND_AGAIN_MS: Final = 3_600_000
"""How soon that is tried again where it could not be told."""
TEND_LOOK_MS: Final = 5 * 60_000
"""How often the store is asked which runs have something in quarantine: there may be tens of thousands."""
BUSY_WAIT_S: Final = 10
"""How long a person waits while files of the same catalog are being moved."""
PAGE_BATCHES: Final = 10
"""Of so many batches, a thousand files, a person hears the end before the next ones."""
PAGE_MS: Final = 5_000
"""How long a page goes on to take a further batch: it is an answer to a request, and what hangs up in front of us
gives up after a minute or less. The first batch takes as long as reading the table's metadata does."""
TASKS_A_ROUND: Final = 20
TABLES_A_ROUND: Final = 100
"""Of so many tables it is asked in one round whether files of expired snapshots are due, until they are of one."""
RUNS_A_PAGE: Final = 100
_FIRST: Final = Reason("first-removal", "no file of this table was ever removed: review the plan, and approve it")
_TAKEN_BACK: Final = Reason(
    "taken-back", "files that were removed have been put back since: review the new plan, and approve it"
)
_ENDED: Final = Reason("task-ended", "the task ended before it came to this file")
_CAME_TO_NOTHING: Final = frozenset({TaskState.CANCELLED, TaskState.SUPERSEDED})


@dataclass(frozen=True, slots=True)
class Plans:
    """What plans removals, by why files go, and what watches the clock by which they grow old."""

    orphans: OrphanPlanner
    expired: ExpiredFilesPlanner
    watch: ClockWatch


@dataclass(frozen=True, slots=True)
class LookedAfter:
    """How far a person has had it looked after what is in quarantine, from the ``newest_run_id`` of the table on.

    The files of ``run_id`` up to the number ``after`` were, and of all later runs. ``is_held_up``: some of the run's
    could not be, so that no earlier run is looked after.
    """

    newest_run_id: str
    run_id: str
    after: int | None
    is_held_up: bool


class QuarantineScheduler:
    """Rounds of the thread that removes files, one at a time. :meth:`want` may be called by others meanwhile."""

    def __init__(
        self,
        housekeeper: ServerTasks,
        remover: Remover,
        plans: Plans,
        approvals: Approvals,
        dispatcher: ServerQueue,
        tasks: TaskStore,
        store: DeletionStore,
        sightings: SqlSightings,
    ) -> None:
        self._housekeeper, self._remover, self._plans = housekeeper, remover, plans
        self._approvals, self._dispatcher, self._tasks = approvals, dispatcher, tasks
        self._store, self._sightings = store, sightings
        self._lock = threading.Lock()
        self._wanted: OrderedDict[TableId, TableName] = OrderedDict()
        self._expired: OrderedDict[TableId, TableName] = OrderedDict()
        """Tables of which the files of expired snapshots may go."""
        self._limits: dict[TableId, Thresholds] = {}
        """Of the breakers of tables for which anything may be removed."""
        self._looked: dict[TableId, Instant] = {}
        """When such files were looked for last."""
        self._tried: dict[TableId, Instant] = {}
        """When a pass over a table began last, by the store's clock: what came to nothing is not repeated at once."""
        self._tended: dict[str, tuple[TableId, Instant]] = {}
        """Whose files a run has in quarantine, and when it was looked after them last."""
        self._tended_at: Instant | None = None
        """When it was looked last which runs have something in quarantine."""
        self._left: dict[str, Instant] = {}
        """When it was tried last to let a run end."""

    def want(
        self, table_id: TableId, name: TableName, policy: Policy, limits: Thresholds, found: BeforeLook
    ) -> Instant | None:
        """A table was looked at: remember it for what is due, if its owner lets us, and its window is open.

        ``limits`` are those of its breaker, ``found`` is what the look went by. Gives until when no other look at a
        table that stays as it is has anything to tell, None where one may at any time: files that an expiry left are
        due some time after it, and again where their search failed.
        """
        if policy.mode is not Mode.AUTO or name.catalog not in self._remover.catalogs:
            return NEVER
        due_at = self._due_at(table_id, found) if policy.removes_orphan_files else NEVER
        orphans, leaves = due_at <= found.now, policy.removes_expired_files
        if (orphans or leaves) and closed(window_of(policy), found.now) is None:
            with self._lock:
                self._limits[table_id] = limits
                if orphans:
                    self._wanted.setdefault(table_id, name)
                if leaves:
                    self._expired.setdefault(table_id, name)
        lately = [task for task in found.tasks if found.now - task.updated_at < UNDO_WINDOW_MS]
        expired = any(task.kind is ActionKind.EXPIRE_SNAPSHOTS for task in lately) or len(lately) >= TASKS_LOOKED_AT
        return None if orphans or (leaves and expired) else due_at

    def steps(self, catalogs: Callable[[], frozenset[str]], wake: Callable[[], None]) -> Iterator[Callable[[], None]]:
        """What is to be done in one round, each to be called; only tables of these catalogs are touched.

        ``wake`` is called when there is something to be verified.
        """

        def remove_files() -> None:
            for task in self._housekeeper.work(TASKS_A_ROUND, catalogs):
                _log.info("files removed", task=task.task_id, table=str(task.table_name), state=task.state.value)
                wake()

        def look_for_orphans() -> None:
            self._pass_over_next(catalogs())

        def tend_quarantine() -> None:
            self._tend(catalogs())

        def look_for_expired() -> None:
            self._look_for_expired(catalogs())

        yield remove_files
        yield self._leave_ended
        yield tend_quarantine
        yield look_for_expired
        yield look_for_orphans

    def _due_at(self, table_id: TableId, found: BeforeLook) -> Instant:
        """When orphan files of a table are looked for next; what a clock that was set back noted does not count."""
        at = (self._tried.get(table_id), None if found.passed is None else found.passed.finished_at)
        return max((one + PASS_INTERVAL_MS for one in at if one is not None and one <= found.now), default=found.now)

    def _pass_over_next(self, catalogs: frozenset[str]) -> None:
        """One pass over the table that has waited for the longest time, of those that can be asked."""
        found = self._next(self._wanted, catalogs)
        if found is None:
            return
        table_id, name = found
        self._tried[table_id] = self._sightings.now()
        try:
            plan = self._plans.orphans.plan(name, table_id=table_id)
        except NotFound as error:  # dropped or renamed since it was looked at
            _log.info("table gone", table=str(name), detail=error.message)
            return
        _log.info("orphans looked for", table=str(name), plan=plan.plan_id, found=plan.reason.text)
        if not plan.is_empty:
            self._queue(plan)

    def _look_for_expired(self, catalogs: frozenset[str]) -> None:
        """What the expired snapshots of one table have left to nobody; of most tables nothing is due."""
        now = self._tasks.now()
        for _ in range(TABLES_A_ROUND):
            found = self._next(self._expired, catalogs)
            if found is None:
                return
            looked = self._looked.get(found[0])
            if looked is not None and looked <= now < looked + PASS_INTERVAL_MS:
                continue
            due, lately = self._due_expiries(found[0], now)
            if due:
                self._looked[found[0]] = now
                self._remove_left(*found, due, lately)
                return

    def _next(
        self, waiting: OrderedDict[TableId, TableName], catalogs: frozenset[str]
    ) -> tuple[TableId, TableName] | None:
        """The table that has waited for the longest time, of those that can be asked; it waits no more."""
        with self._lock:
            found = next((one for one in waiting.items() if one[1].catalog in catalogs), None)
            if found is not None:
                del waiting[found[0]]
            return found

    def _remove_left(self, table_id: TableId, name: TableName, due: Sequence[str], lately: Sequence[str]) -> None:
        try:
            plan = self._plans.expired.plan(name, table_id, due, lately)
        except NotFound as error:
            _log.info("table gone", table=str(name), detail=error.message)
            return
        if plan is not None:
            _log.info("files of expired snapshots found", table=str(name), plan=plan.plan_id, found=plan.reason.text)
            self._queue(plan)

    def _due_expiries(self, table_id: TableId, now: Instant) -> tuple[list[str], list[str]]:
        """Expiries that were verified a grace period ago, whose files nobody has removed, and that stand.

        And those since then.
        """

        def of(kind: ActionKind) -> Sequence[ListedTask]:
            return self._tasks.listed(TaskFilter(table_id=table_id, kind=kind), limit=EXPIRIES_LOOKED_AT)

        taken: set[str] = set()
        for removal in of(ActionKind.REMOVE_EXPIRED_FILES):
            said = removal.prediction
            more = isinstance(said, RemoveExpiredFilesPrediction) and said.left_for_later
            over = removal.state in _CAME_TO_NOTHING or (more and removal.state is TaskState.SUCCEEDED)
            if isinstance(removal.figures, RemoveExpiredFilesFigures) and not over:
                taken.update(removal.figures.expiry_task_ids)
        for undo in of(ActionKind.UNDO_EXPIRE_SNAPSHOTS):
            if isinstance(undo.figures, UndoExpiryFigures) and undo.state not in _CAME_TO_NOTHING:
                taken.add(undo.figures.undone_task_id)
        expiries = of(ActionKind.EXPIRE_SNAPSHOTS)
        due = [
            expiry.task_id
            for expiry in expiries
            if expiry.state is TaskState.SUCCEEDED
            and expiry.outcome is not None
            and expiry.outcome.reason.code == "verified"
            and GRACE_MS <= now - expiry.updated_at < UNDO_WINDOW_MS
            and expiry.task_id not in taken
        ]
        return due, [one.task_id for one in ended_lately(expiries, now)]

    def _queue(self, plan: Plan) -> None:
        """Queue what a pass found; or let it wait for a person, the first time and beyond the budget."""
        if plan.mode is not Mode.AUTO:
            return
        (action,) = plan.actions
        only = TaskFilter(table_id=plan.table_id, kind=ActionKind(action.kind))
        latest, limits = self._tasks.listed(only, limit=TASKS_LOOKED_AT), self._limits.get(plan.table_id)
        state = latest, self._tasks.now(), limits or DEFAULT_THRESHOLDS
        if parked(*state) is not None:
            return
        if self._approvals.refused(plan.table_id, ActionKind(action.kind), plan.settings_digest, None) is not None:
            return  # nor does a part of what was refused go by itself
        missing, wanted = self._approvals.missing(plan), self._person_wanted(plan)
        sure: Plan | None = None
        if missing is not None and missing.code == DOUBTFUL and wanted is None:
            sure, plan = self._plans.orphans.parted(plan)
        if missing is not None or wanted is not None:
            self._approvals.wait(plan, missing or wanted or _FIRST)
            if sure is None:
                return
            plan = sure
        tries = 1 if is_half_open(*state) else None
        self._dispatcher.enqueue(plan, priority=UPKEEP_PRIORITY, attempts_max=tries)

    def _person_wanted(self, plan: Plan) -> Reason | None:
        """Why a table's removal is a person's to begin: there was none yet, or files came back since the last one.

        Or it is in a place where nobody approved one, or of a catalog whose tables may lie anywhere: whoever owns a
        table says where it lies.
        """
        table_id = plan.table_id
        last = self._store.runs(table_id=table_id, limit=1)
        if not last:
            return _FIRST
        if (reason := self._approvals.other_place(plan)) is not None:
            return reason
        restored_at = self._tasks.restored_at()
        if restored_at is not None and last[0].begun_at < restored_at:
            return RESTORED_SINCE
        undone = self._tasks.listed(TaskFilter(table_id=table_id, kind=ActionKind.RESTORE_FILES), limit=1)
        is_undone = bool(undone) and undone[0].task_id > last[0].run_id  # both begin with the time
        needed = self._store.count_intents(last[0].run_id)[IntentState.RESTORED].files
        return _TAKEN_BACK if is_undone or needed else None

    def _leave_ended(self) -> None:
        """Let runs end whose tasks have ended without them: by a person's word, or after too many tries.

        One that cannot end, since nobody knows where a file is, has each such file looked for: not in every round.
        """
        now, before = self._store.now(), None
        self._left = {run_id: at for run_id, at in self._left.items() if at <= now < at + TEND_AGAIN_MS}
        while page := self._store.runs(open_only=True, limit=RUNS_A_PAGE, before=before):
            for run in page:
                if run.table_name.catalog not in self._remover.catalogs or run.run_id in self._left:
                    continue
                if self._has_ended(run.run_id):
                    self._left[run.run_id] = now
                    self._leave(run.run_id)
            before = page[-1].run_id

    def _leave(self, run_id: str) -> None:
        """Let a run end. What keeps it from that keeps no other run from it."""
        try:
            while (left := self._remover.leave(run_id, _ENDED)).waits is None and not left.is_done:
                pass
        except StoreUnavailable:
            raise
        except IcewrightError as error:
            _log.warning("removal not ended", run=run_id, detail=error.message)

    def _has_ended(self, task_id: str) -> bool:
        try:
            return self._tasks.head(task_id).state in TERMINAL_STATES
        except NotFound:
            return True

    def _tend(self, catalogs: frozenset[str]) -> None:
        """Put back what tables need by now, and purge what has been in quarantine for long enough.

        All that is held of one table in one go, newest first: of two files that had the same path, the later one is
        what a writer last saw. What keeps it from one table keeps it from no other.
        """
        now = self._store.now()
        if self._tended_at is not None and self._tended_at <= now < self._tended_at + TEND_LOOK_MS:
            return
        self._plans.watch.graces_since()  # noted also while nothing is removed
        self._tended_at, held = now, list(self._held())
        self._tended = {run_id: self._tended[run_id] for run_id, _ in held if run_id in self._tended}
        due = {table_id for run_id, table_id in held if self._is_to_be_tended(run_id, now)}
        for run_id, table_id in held:
            if table_id not in due or table_id.catalog not in catalogs & self._remover.catalogs:
                continue
            if self._remover.halt_of(table_id) is not None:
                continue  # no news: whoever halted it knows
            try:
                waits = self._look_after(run_id)
            except StoreUnavailable:
                raise
            except IcewrightError as error:
                waits = Reason(error.code, error.message)
            self._tended[run_id] = table_id, now
            if waits is not None:
                _log.warning("quarantine not looked after", run=run_id, code=waits.code, detail=waits.text)
                due.discard(table_id)
                again = now - TEND_INTERVAL_MS + TEND_AGAIN_MS
                self._tended.update({one: (table_id, again) for one, of in held if of == table_id})

    def _held(self) -> Iterator[tuple[str, TableId]]:
        """Runs with something in quarantine, newest first, and whose it is."""
        for run_id in self._holding():
            known = self._tended.get(run_id)
            yield run_id, self._store.run(run_id).table_id if known is None else known[0]

    def _holding(self, table_id: TableId | None = None) -> Iterator[str]:
        """Runs with something in quarantine, of one table or of all, newest first."""
        before: str | None = None
        while page := self._store.with_held(table_id=table_id, limit=RUNS_A_PAGE, before=before):
            yield from page
            before = page[-1]

    def _is_to_be_tended(self, run_id: str, now: Instant) -> bool:
        tended = self._tended.get(run_id)
        return tended is None or not tended[1] <= now < tended[1] + TEND_INTERVAL_MS

    def tend(self, run_id: str, since: LookedAfter | None = None) -> tuple[Reason | None, LookedAfter | None]:
        """Look after what a run has in quarantine now, and before it its table's later runs: some files at a time.

        Tells what kept it from any of these files, or what keeps some beyond their time, and where to go on; None when
        that was all. ``since`` is where the last page ended: without it, and where a later run has come since, it
        begins anew. Whatever is left in between, each page is whole by itself. Raises ``NotFound``, and ``Unavailable``
        where files of the catalog are being moved for longer than a person waits.
        """
        table_id = self._store.run(run_id).table_id
        runs = [*takewhile(lambda one: one > run_id, self._holding(table_id)), run_id]
        newest = runs[0]
        if since is not None and since.newest_run_id >= newest:
            newest, runs = since.newest_run_id, [one for one in runs if one <= since.run_id]
        until, batches = self._store.now() + PAGE_MS, 0
        waits: Reason | None = None
        kept: Reason | None = None
        for one in runs:
            goes_on = since is not None and since.run_id == one
            after, is_held_up = (since.after, since.is_held_up) if since is not None and goes_on else (None, False)
            while True:
                if batches and (batches >= PAGE_BATCHES or self._store.now() >= until):
                    return waits or kept, LookedAfter(newest, one, after, is_held_up)
                batch = self._remover.tend(one, after, wait_s=BUSY_WAIT_S)
                batches, kept = batches + 1, kept or batch.kept
                waits, after, is_held_up = waits or batch.waits, batch.after, is_held_up or batch.waits is not None
                if batch.is_done or after is None:
                    break
            if is_held_up:
                break
        return waits or kept, None

    def purge_gone(self, run_id: str, purged_by: str) -> Reason | None:
        """Purge some of what a run has in quarantine of a table that is gone; tells what kept it from that.

        Raises as :meth:`Remover.purge_gone`.
        """
        _log.warning("files of a dropped table are purged", run=run_id, by=purged_by)
        return self._remover.purge_gone(run_id, wait_s=BUSY_WAIT_S).waits

    def _look_after(self, run_id: str) -> Reason | None:
        after: int | None = None
        waits: Reason | None = None
        kept: Reason | None = None
        while True:
            batch = self._remover.tend(run_id, after)
            waits, kept, after = waits or batch.waits, kept or batch.kept, batch.after
            if batch.is_done or after is None:
                break
        if kept is not None:
            _log.warning("files stay in quarantine", run=run_id, code=kept.code, detail=kept.text)
        return waits
