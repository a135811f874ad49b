"""What is due of removing files, by itself: passes, removals, and looking after what is in quarantine (decision 0037).

All of it takes minutes where tables are large. So it has a thread of its own, in which one thing is done after the
other; the loop only tells which tables want a pass.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from icewright.domain.actions import ActionKind
from icewright.domain.errors import NotFound
from icewright.domain.names import TableId, TableName
from icewright.domain.plans import Plan, Reason
from icewright.domain.policy import Mode, Policy
from icewright.domain.remove_expired_files import RemoveExpiredFilesFigures
from icewright.domain.tables import Instant, TableMetadata
from icewright.domain.tasks import TERMINAL_STATES, ListedTask, TaskState
from icewright.domain.undo import UNDO_WINDOW_MS, UndoExpiryFigures
from icewright.planning.windows import window_of
from icewright.ports.deletions import DeletionStore
from icewright.ports.sightings import Sightings
from icewright.ports.store import TaskFilter, TaskStore
from icewright.scheduling.breaker import FAILURES_MAX, parked
from icewright.scheduling.upkeep import UPKEEP_PRIORITY
from icewright.services.approvals import Approvals
from icewright.services.dispatcher import Dispatcher
from icewright.services.expired_files import GRACE_MS, ExpiredFilesPlanner
from icewright.services.housekeeper import Housekeeper
from icewright.services.maintenance import closed
from icewright.services.orphan_planner import OrphanPlanner
from icewright.services.removals import Remover

_log = structlog.get_logger("icewright.removals")

PASS_INTERVAL_MS: Final = 20 * 3_600_000
"""How often orphan files of a table are looked for by itself, from the end of one pass on: once a day, also within a
window that opens a day after it did last."""
TEND_INTERVAL_MS: Final = 24 * 3_600_000
"""How often it is seen whether a table needs something of its quarantine, and what has been there for long enough."""
TASKS_A_ROUND: Final = 20
EXPIRIES_LOOKED_AT: Final = 200
"""The latest expiries of a table: one an hour at most, for a week."""
RUNS_A_PAGE: Final = 100
_FIRST: Final = Reason("first-removal", "no file of this table was ever removed: look at what would go, and approve it")
_ENDED: Final = Reason("task-ended", "the task ended before it came to this file")


_CAME_TO_NOTHING: Final = frozenset({TaskState.CANCELLED, TaskState.SUPERSEDED})


@dataclass(frozen=True, slots=True)
class Plans:
    """What plans removals, by why files go."""

    orphans: OrphanPlanner
    expired: ExpiredFilesPlanner


class RemovalRounds:
    """Rounds of the thread that removes files, one at a time. :meth:`want` may be called by others meanwhile."""

    def __init__(
        self,
        housekeeper: Housekeeper,
        remover: Remover,
        plans: Plans,
        approvals: Approvals,
        dispatcher: Dispatcher,
        tasks: TaskStore,
        store: DeletionStore,
        sightings: Sightings,
    ) -> None:
        self._housekeeper, self._remover, self._plans = housekeeper, remover, plans
        self._approvals, self._dispatcher, self._tasks = approvals, dispatcher, tasks
        self._store, self._sightings = store, sightings
        self._lock = threading.Lock()
        self._wanted: OrderedDict[TableId, TableName] = OrderedDict()
        self._expired: OrderedDict[TableId, TableName] = OrderedDict()
        """Tables of which the files of expired snapshots may go."""
        self._looked: dict[TableId, Instant] = {}
        """When such files were looked for last."""
        self._tried: dict[TableId, Instant] = {}
        """When a pass over a table began last, by the store's clock: what came to nothing is not repeated at once."""
        self._tended: dict[str, Instant] = {}

    def want(self, metadata: TableMetadata, policy: Policy) -> None:
        """A table was looked at: remember it for what is due, if its owner lets us, and its window is open."""
        if policy.mode is not Mode.AUTO or metadata.name.catalog not in self._remover.catalogs:
            return
        orphans = policy.removes_orphan_files and self._is_due(metadata.table_id)
        if not (orphans or policy.removes_expired_files) or closed(window_of(policy), self._tasks.now()) is not None:
            return
        with self._lock:
            if orphans:
                self._wanted.setdefault(metadata.table_id, metadata.name)
            if policy.removes_expired_files:
                self._expired.setdefault(metadata.table_id, metadata.name)

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

    def _is_due(self, table_id: TableId) -> bool:
        now, last = self._sightings.now(), self._sightings.finished(table_id)
        at = [self._tried.get(table_id), None if last is None else last.finished_at]
        return not any(one is not None and one <= now < one + PASS_INTERVAL_MS for one in at)

    def _pass_over_next(self, catalogs: frozenset[str]) -> None:
        """One pass over the table that has waited for the longest time, of those that can be asked."""
        with self._lock:
            found = next((one for one in self._wanted.items() if one[1].catalog in catalogs), None)
            if found is None:
                return
            del self._wanted[found[0]]
        table_id, name = found
        self._tried[table_id] = self._sightings.now()
        plan = self._plans.orphans.plan(name, table_id=table_id)
        _log.info("orphans looked for", table=str(name), plan=plan.plan_id, found=plan.reason.text)
        if not plan.is_empty:
            self._queue(plan)

    def _look_for_expired(self, catalogs: frozenset[str]) -> None:
        """What the expired snapshots of one table have left to nobody."""
        now = self._tasks.now()
        with self._lock:
            found = next((one for one in self._expired.items() if one[1].catalog in catalogs), None)
            if found is None:
                return
            del self._expired[found[0]]
        table_id, name = found
        looked = self._looked.get(table_id)
        if looked is not None and looked <= now < looked + PASS_INTERVAL_MS:
            return
        due = self._due_expiries(table_id, now)
        if not due:
            return
        self._looked[table_id] = now
        plan = self._plans.expired.plan(name, table_id, due)
        if plan is not None:
            _log.info("files of expired snapshots found", table=str(name), plan=plan.plan_id, found=plan.reason.text)
            self._queue(plan)

    def _due_expiries(self, table_id: TableId, now: Instant) -> list[str]:
        """Expiries that were verified a grace period ago, whose files nobody has removed, and that stand."""

        def of(kind: ActionKind) -> Sequence[ListedTask]:
            return self._tasks.listed(TaskFilter(table_id=table_id, kind=kind), limit=EXPIRIES_LOOKED_AT)

        taken: set[str] = set()
        for removal in of(ActionKind.REMOVE_EXPIRED_FILES):
            if isinstance(removal.figures, RemoveExpiredFilesFigures) and removal.state not in _CAME_TO_NOTHING:
                taken.update(removal.figures.expiry_task_ids)
        for undo in of(ActionKind.UNDO_EXPIRE_SNAPSHOTS):
            if isinstance(undo.figures, UndoExpiryFigures) and undo.state not in _CAME_TO_NOTHING:
                taken.add(undo.figures.undone_task_id)
        return [
            expiry.task_id
            for expiry in of(ActionKind.EXPIRE_SNAPSHOTS)
            if expiry.state is TaskState.SUCCEEDED
            and expiry.outcome is not None
            and expiry.outcome.reason.code == "verified"
            and GRACE_MS <= now - expiry.updated_at < UNDO_WINDOW_MS
            and expiry.task_id not in taken
        ]

    def _queue(self, plan: Plan) -> None:
        """Queue what a pass found; or let it wait for a person, the first time and beyond the budget."""
        if plan.mode is not Mode.AUTO:
            return
        (action,) = plan.actions
        only = TaskFilter(table_id=plan.table_id, kind=ActionKind(action.kind))
        latest = self._tasks.listed(only, limit=FAILURES_MAX)
        if parked(latest, self._tasks.now()) is not None:
            return
        first = None if self._store.runs(table_id=plan.table_id, limit=1) else _FIRST
        reason = self._approvals.missing(plan) or first
        if reason is not None:
            self._approvals.wait(plan, reason)
            _log.info("plan waits for approval", table=str(plan.table_name), plan=plan.plan_id, because=reason.text)
            return
        self._dispatcher.enqueue(plan, priority=UPKEEP_PRIORITY)

    def _leave_ended(self) -> None:
        """Let runs end whose tasks have ended without them: by a person's word, or after too many tries."""
        before: str | None = None
        while page := self._store.runs(open_only=True, limit=RUNS_A_PAGE, before=before):
            for run in page:
                if run.table_name.catalog in self._remover.catalogs and self._has_ended(run.run_id):
                    while (left := self._remover.leave(run.run_id, _ENDED)).waits is None and not left.is_done:
                        pass
            before = page[-1].run_id

    def _has_ended(self, task_id: str) -> bool:
        try:
            return self._tasks.get(task_id).state in TERMINAL_STATES
        except NotFound:
            return True

    def _tend(self, catalogs: frozenset[str]) -> None:
        """Put back what tables need by now, and purge what has been in quarantine for long enough."""
        now, before = self._store.now(), None
        while page := self._store.with_held(limit=RUNS_A_PAGE, before=before):
            for run_id in page:
                tended = self._tended.get(run_id)
                due = tended is None or not tended <= now < tended + TEND_INTERVAL_MS
                if due and self._store.run(run_id).table_name.catalog in catalogs & self._remover.catalogs:
                    self._tended[run_id] = now
                    self.tend(run_id)
            before = page[-1]

    def tend(self, run_id: str) -> Reason | None:
        """Look after all that a run has in quarantine now; tells what kept it from that. Raises ``NotFound``."""
        after: int | None = None
        waits: Reason | None = None
        while True:
            batch = self._remover.tend(run_id, after)
            waits, after = waits or batch.waits, batch.after
            if batch.is_done or after is None:
                return waits
