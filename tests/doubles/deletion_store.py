"""Runs of deletions in memory: for tests and simulations, and as the plainest statement of the port."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

from icewright.audit.model import of_approval, of_files, of_run
from icewright.core.clock import Clock
from icewright.core.errors import Conflict, NotFound, StoreTaken
from icewright.core.times import Instant
from icewright.model.access.permissions import EVERYWHERE, Scopes
from icewright.model.actions.deletion import DeletionRun, Intent, IntentState, changed
from icewright.model.iceberg.names import TableId
from icewright.model.plans.approvals import Approval, ApprovalPlace
from icewright.model.work.retention import RowKind
from icewright.ports.deletions import HELD_STATES, OPEN_STATES, OVER_STATES, Tally
from tests.doubles.audit import MemoryAudit
from tests.doubles.names import MemoryNames
from tests.doubles.table_store import MemoryTableStore


class MemoryDeletionStore:
    """A :class:`~icewright.ports.deletions.DeletionStore` that is gone with the process. ``server`` is its epoch.

    ``names`` are those of the store of ``tables`` beside it, whose plans and tasks keep what is of them.
    """

    def __init__(
        self,
        clock: Clock,
        audit: MemoryAudit | None = None,
        names: MemoryNames | None = None,
        tables: MemoryTableStore | None = None,
    ) -> None:
        self.server = 1
        self._tables = MemoryTableStore(clock) if tables is None else tables
        self._names = MemoryNames() if names is None else names
        self._audit = audit or MemoryAudit(clock)
        self._clock = clock
        self._lock = threading.RLock()
        self._runs: dict[str, DeletionRun] = {}
        self._intents: dict[str, dict[int, Intent]] = {}
        self._approvals: dict[str, Approval] = {}
        self._changed_at: dict[str, Instant] = {}
        self._tables.has_removals = lambda table_id: any(run.table_id == table_id for run in [*self._runs.values()])

    def now(self) -> Instant:
        """See the port."""
        return self._clock.now()

    def epoch(self) -> int:
        """See the port."""
        return self.server

    def begin(self, run: DeletionRun, intents: Sequence[Intent]) -> DeletionRun:
        """See the port."""
        with self._lock:
            self._require(run.epoch)
            found = self._runs.get(run.run_id)
            if found is not None:
                if found.plan_hash != run.plan_hash:
                    raise Conflict(f"run {run.run_id} is of another plan")
                return found
            if any(one.is_open and one.table_id == run.table_id for one in self._runs.values()):
                raise Conflict(f"another run of table {run.table_id} is under way")
            self._runs[run.run_id], self._changed_at[run.run_id] = run, self._clock.now()
            self._intents[run.run_id] = {intent.number: intent for intent in intents}
            self._audit.append(of_run(run, len(intents)))
            return run

    def run(self, run_id: str) -> DeletionRun:
        """See the port."""
        with self._lock:
            found = self._runs.get(run_id)
        if found is None:
            raise NotFound(f"no run {run_id} of deletions")
        return found

    def runs(
        self, *, table_id: TableId | None = None, open_only: bool = False, limit: int, before: str | None = None
    ) -> Sequence[DeletionRun]:
        """See the port."""
        with self._lock:
            found = [
                run
                for run_id, run in sorted(self._runs.items(), reverse=True)
                if table_id in (None, run.table_id)
                and (run.is_open or not open_only)
                and (before is None or run_id < before)
            ]
        return found[:limit]

    def rest(self, run_id: str, epoch: int, next_at: Instant) -> None:
        """See the port."""
        with self._lock:
            self._require(epoch)
            self._runs[run_id] = replace(self.run(run_id), next_at=next_at)

    def close(self, run_id: str, epoch: int) -> None:
        """See the port."""
        with self._lock:
            self._require(epoch)
            run = self.run(run_id)
            if any(intent.state in OPEN_STATES for intent in self._intents[run_id].values()):
                raise Conflict(f"run {run_id} has files whose outcome is open")
            self._runs[run_id], self._changed_at[run_id] = replace(run, is_open=False), self._clock.now()

    def intents(
        self, run_id: str, states: frozenset[IntentState], *, limit: int, after: int | None = None
    ) -> Sequence[Intent]:
        """See the port."""
        with self._lock:
            found = sorted(self._intents.get(run_id, {}).items())
        return [intent for number, intent in found if intent.state in states and (after is None or number > after)][
            :limit
        ]

    def tally(self, run_id: str) -> Mapping[IntentState, Tally]:
        """See the port."""
        with self._lock:
            found = list(self._intents.get(run_id, {}).values())
        of_state = {state: [one.object.size_bytes for one in found if one.state is state] for state in IntentState}
        return {state: Tally(len(sizes), sum(sizes)) for state, sizes in of_state.items()}

    def change(self, epoch: int, changes: Sequence[Intent]) -> Sequence[Intent]:
        """See the port."""
        with self._lock:
            self._require(epoch)
            now = self._clock.now()
            become = [changed(self._stored(one), one, now) for one in changes]
            for one in become:
                self._intents[one.run_id][one.number] = one
                self._changed_at[one.run_id] = now
            self._audit.extend(of_files(become))
            return become

    def with_held(
        self, *, table_id: TableId | None = None, limit: int, before: str | None = None, within: Scopes = EVERYWHERE
    ) -> Sequence[str]:
        """See the port."""
        with self._lock:
            found = [
                run_id
                for run_id, intents in sorted(self._intents.items(), reverse=True)
                if (before is None or run_id < before)
                and table_id in (None, self._runs[run_id].table_id)
                and self._names.is_in(self._runs[run_id].table_id, within)
                and any(intent.state in HELD_STATES for intent in intents.values())
            ]
        return found[:limit]

    def approve(self, approval: Approval) -> Approval:
        """See the port."""
        with self._lock:
            if approval.plan_hash not in self._approvals:
                self._approvals[approval.plan_hash] = approval
                self._audit.append(of_approval(approval))
            return self._approvals[approval.plan_hash]

    def approval(self, plan_hash: str) -> Approval | None:
        """See the port."""
        with self._lock:
            return self._approvals.get(plan_hash)

    def approvals(
        self,
        *,
        table_id: TableId | None = None,
        limit: int,
        before: ApprovalPlace | None = None,
        within: Scopes = EVERYWHERE,
    ) -> Sequence[Approval]:
        """See the port."""
        with self._lock:
            found = sorted(self._approvals.values(), key=lambda one: (one.approved_at, one.plan_hash), reverse=True)
            return [
                one
                for one in found
                if (before is None or (one.approved_at, one.plan_hash) < (before.approved_at, before.plan_hash))
                and (table_id is None or (one.plan is not None and one.plan.table_id == table_id))
                and (within == EVERYWHERE or (one.plan is not None and self._names.is_in(one.plan.table_id, within)))
            ][:limit]

    def prune(self, changed_before: Instant, limit: int) -> int:
        """See the port."""
        with self._lock:
            removed = 0
            for run_id in sorted(self._runs, key=lambda one: (self._changed_at[one], one)):
                if self._changed_at[run_id] >= changed_before or not self._is_over(run_id):
                    continue
                intents = self._intents[run_id]
                for number in sorted(intents)[: limit - removed]:
                    del intents[number]
                    removed += 1
                if not intents:
                    del self._runs[run_id], self._intents[run_id], self._changed_at[run_id]
            return removed

    def prune_approvals(self, approved_before: Instant, limit: int) -> int:
        """See the port."""
        with self._lock:
            old = [
                one
                for one in self._approvals.values()
                if one.approved_at < approved_before
                and one.plan is not None
                and not self._tables.has_plan(one.plan.plan_id)
            ]
            old = sorted(old, key=lambda one: (one.approved_at, one.plan_hash))[:limit]
            for one in old:
                del self._approvals[one.plan_hash]
            return len(old)

    def ages(self) -> Mapping[RowKind, Sequence[Instant]]:
        """When removals last changed, once for each file that nothing more becomes of, and when plans were approved."""
        with self._lock:
            return {
                RowKind.REMOVALS: [
                    self._changed_at[run_id]
                    for run_id, intents in self._intents.items()
                    for intent in intents.values()
                    if intent.state in OVER_STATES and not self._runs[run_id].is_open
                ],
                RowKind.APPROVALS: [one.approved_at for one in self._approvals.values()],
            }

    def _is_over(self, run_id: str) -> bool:
        run = self._runs[run_id]
        is_done = not run.is_open and all(one.state in OVER_STATES for one in self._intents[run_id].values())
        return is_done and not self._tables.has_task(run_id) and not self._tables.is_worked_on(run.table_id)

    def _stored(self, intent: Intent) -> Intent:
        found = self._intents.get(intent.run_id, {}).get(intent.number)
        if found is None:
            raise NotFound(f"run {intent.run_id} has no file {intent.number}")
        return found

    def _require(self, epoch: int) -> None:
        if epoch != self.server:
            raise StoreTaken("another server leads now", hint="it continues what was begun")
