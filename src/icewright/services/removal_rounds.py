"""What is due of removing files, by itself: passes, removals, and looking after what is in quarantine (decision 0037).

All of it takes minutes where tables are large. So it has a thread of its own, in which one thing is done after the
other; the loop only tells which tables want a pass.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Final

import structlog

from icewright.domain.actions import ActionKind
from icewright.domain.errors import NotFound
from icewright.domain.names import TableId, TableName
from icewright.domain.plans import Plan, Reason
from icewright.domain.policy import Mode, Policy
from icewright.domain.tables import Instant, TableMetadata
from icewright.domain.tasks import TERMINAL_STATES
from icewright.planning.windows import window_of
from icewright.ports.deletions import DeletionStore
from icewright.ports.sightings import Sightings
from icewright.ports.store import TaskFilter, TaskStore
from icewright.scheduling.breaker import FAILURES_MAX, parked
from icewright.scheduling.upkeep import UPKEEP_PRIORITY
from icewright.services.approvals import Approvals
from icewright.services.dispatcher import Dispatcher
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
RUNS_A_PAGE: Final = 100
_FIRST: Final = Reason("first-removal", "no file of this table was ever removed: look at what would go, and approve it")
_ENDED: Final = Reason("task-ended", "the task ended before it came to this file")


class RemovalRounds:
    """Rounds of the thread that removes files, one at a time. :meth:`want` may be called by others meanwhile."""

    def __init__(
        self,
        housekeeper: Housekeeper,
        remover: Remover,
        planner: OrphanPlanner,
        approvals: Approvals,
        dispatcher: Dispatcher,
        tasks: TaskStore,
        store: DeletionStore,
        sightings: Sightings,
    ) -> None:
        self._housekeeper, self._remover, self._planner = housekeeper, remover, planner
        self._approvals, self._dispatcher, self._tasks = approvals, dispatcher, tasks
        self._store, self._sightings = store, sightings
        self._lock = threading.Lock()
        self._wanted: OrderedDict[TableId, TableName] = OrderedDict()
        self._tried: dict[TableId, Instant] = {}
        """When a pass over a table began last, by the store's clock: what came to nothing is not repeated at once."""
        self._tended: dict[str, Instant] = {}

    def want(self, metadata: TableMetadata, policy: Policy) -> None:
        """A table was looked at: remember it for a pass, if one is due, its owner lets us, and its window is open."""
        if not policy.removes_orphan_files or policy.mode is not Mode.AUTO:
            return
        if metadata.name.catalog not in self._remover.catalogs or not self._is_due(metadata.table_id):
            return
        if closed(window_of(policy), self._tasks.now()) is not None:
            return
        with self._lock:
            self._wanted.setdefault(metadata.table_id, metadata.name)

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

        yield remove_files
        yield self._leave_ended
        yield tend_quarantine
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
        plan = self._planner.plan(name, table_id=table_id)
        _log.info("orphans looked for", table=str(name), plan=plan.plan_id, found=plan.reason.text)
        if not plan.is_empty:
            self._queue(plan)

    def _queue(self, plan: Plan) -> None:
        """Queue what a pass found; or let it wait for a person, the first time and beyond the budget."""
        if plan.mode is not Mode.AUTO:
            return
        latest = self._tasks.listed(TaskFilter(table_id=plan.table_id, kind=_KIND), limit=FAILURES_MAX)
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


_KIND: Final = ActionKind.REMOVE_ORPHAN_FILES
