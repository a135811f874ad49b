"""Looking for oneself: what the table says about a task, whatever its optimizer said or could not say.

Nothing here trusts a report. Whether a task took effect is told by the snapshot that carries its id; whether it kept
the rows, by the manifests of that snapshot and of its parent (:mod:`icewright.maintenance.dispatch.verification`).
"""

from __future__ import annotations

from contextlib import suppress

from icewright.actions.expire_snapshots.expirer import Expirer
from icewright.actions.remove_files.service import Remover
from icewright.core.errors import NotFound, Unreadable
from icewright.core.fault_points import Fault, fault
from icewright.maintenance.dispatch.dispatcher import Dispatcher
from icewright.maintenance.dispatch.verification import COMMIT_NOT_FOUND, Verification
from icewright.maintenance.registry.effects import reported_snapshot
from icewright.maintenance.registry.planning import effect_of
from icewright.maintenance.registry.services import verify
from icewright.maintenance.undoer import Undoer
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.plans import Reason
from icewright.model.work.breaker import UNVERIFIED, VERIFICATION_FAILED
from icewright.model.work.tasks import AttemptState, Outcome, Task, TaskState
from icewright.observation.observer import Observer
from icewright.ports.store import Change, TableStore, TaskStore
from icewright.ports.telemetry import watched
from icewright.recommendations.ledger import Measuring
from icewright.recommendations.sql import SqlRecommendations

VERIFY_TIMEOUT_MS = 60 * 60 * 1000
"""How long a commit may stay unverified because its table cannot be read. Meanwhile nothing else is done to it."""

MISSING_TABLE_TIMEOUT_MS = 15 * 60 * 1000
"""How long a table that is not there under its name may turn up under another, before its commit stays unverified."""

_NOT_AS_IT_SHOULD_BE = frozenset({COMMIT_NOT_FOUND, VERIFICATION_FAILED})


class Verifier:
    """Settles tasks in doubt, and verifies those that are reported as committed."""

    def __init__(
        self,
        tasks: TaskStore,
        tables: TableStore,
        observer: Observer,
        dispatcher: Dispatcher,
        expirer: Expirer,
        undoer: Undoer,
        remover: Remover,
        recommendations: SqlRecommendations | None = None,
        *,
        measuring: Measuring | None = None,
    ) -> None:
        self._tasks, self._tables, self._observer, self._dispatcher = tasks, tables, observer, dispatcher
        self._remover = remover
        self._verification = Verification(
            tasks, observer, expirer.problem, undoer.problem, remover.outcome, recommendations, measuring
        )

    def settle(self, task: Task) -> Task:
        """Decide a task in doubt by looking into the table; the task itself when it is too early to say.

        Raises :class:`~icewright.core.errors.Unavailable` when the table cannot be looked at: then nothing changes.
        """
        if self._tasks.now() - task.updated_at < self._dispatcher.lease_ms:
            return task  # a commit that was under way when its attempt was lost may still arrive
        with watched("settle", task):
            change = self._settlement(task)
        fault(Fault.SETTLE_BEFORE)
        settled = self._tasks.change(change)
        fault(Fault.SETTLE_AFTER)
        return settled

    def _settlement(self, task: Task) -> Change:
        metadata = self._load(task)
        if metadata is None:
            reason = Reason("table-gone", f"{task.table_name} was dropped or replaced by another table")
            return _change(task, TaskState.SUPERSEDED, Outcome(reason))
        effect = effect_of(task, metadata)
        if effect is not None:
            own = effect.attempt is None or effect.attempt == task.attempt
            outcome = Outcome(Reason("found", effect.text), effect.snapshot_id)
            return _change(task, TaskState.COMMITTED, outcome, AttemptState.COMMITTED if own else None)
        return self._dispatcher.endings.not_committed(task, self._remover.broken_off(task))

    def verify(self, task: Task) -> Task:
        """Check a committed task against the table; the task itself while its table may have been renamed.

        Raises as :meth:`settle` does; of a table that stays unreadable for :data:`VERIFY_TIMEOUT_MS`, nothing more
        is hoped for.
        """
        try:
            with watched("verify", task):
                change = self._verified(task)
        except Unreadable as error:
            if self._tasks.now() - task.updated_at < VERIFY_TIMEOUT_MS:
                raise
            reason = Reason(UNVERIFIED, f"the commit was reported, but cannot be verified: {error.message}")
            change = _change(task, TaskState.FAILED, Outcome(reason, reported_snapshot(task)))
        if change is None:
            return task
        fault(Fault.VERIFY_BEFORE)
        verified = self._tasks.change(change)
        fault(Fault.VERIFY_AFTER)
        return verified

    def _verified(self, task: Task) -> Change | None:
        metadata = self._load(task)
        if metadata is None and self._tasks.now() - task.updated_at < MISSING_TABLE_TIMEOUT_MS:
            return None
        if metadata is None:
            reason = Reason(UNVERIFIED, "the commit was reported, but its table was dropped before it was verified")
            return _change(task, TaskState.FAILED, Outcome(reason, reported_snapshot(task)))
        outcome = verify(self._verification, task, metadata)
        state = TaskState.FAILED if outcome.reason.code in _NOT_AS_IT_SHOULD_BE else TaskState.SUCCEEDED
        return _change(task, state, outcome)

    def _load(self, task: Task) -> TableMetadata | None:
        """The table of the task, under its new name where that is known; None when there is no such table any more.

        Raises ``NotFound`` when the catalog is not configured any more: that says nothing about the table.
        """
        catalog = self._observer.catalog(task.table_name.catalog)
        record = self._tables.record(task.table_id)
        for name in dict.fromkeys((task.table_name, task.table_name if record is None else record.name)):
            with suppress(NotFound):
                metadata = catalog.load(name)
                if metadata.table_id == task.table_id:
                    return metadata
        return None


def _change(task: Task, state: TaskState, outcome: Outcome, attempt_state: AttemptState | None = None) -> Change:
    return Change(task.task_id, task.version, state, outcome, attempt_state)
