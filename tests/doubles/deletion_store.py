"""Runs of deletions in memory, for the simulation and what shares its files.

It forgets nothing, and writes no audit.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

from icewright.core.clock import Clock
from icewright.core.errors import Conflict, NotFound, StoreTaken
from icewright.core.times import Instant
from icewright.model.access.permissions import EVERYWHERE, Scope, Scopes, covers
from icewright.model.actions.deletion import DeletionRun, Intent, IntentState, changed
from icewright.model.iceberg.names import TableId
from icewright.model.plans.approvals import Approval, ApprovalPlace
from icewright.ports.deletions import HELD_STATES, OPEN_STATES, IntentCount


class MemoryDeletionStore:
    """A :class:`~icewright.ports.deletions.DeletionStore` that is gone with the process. ``server`` is its epoch."""

    def __init__(self, clock: Clock) -> None:
        self.server = 1
        self._clock = clock
        self._lock = threading.RLock()
        self._runs: dict[str, DeletionRun] = {}
        self._intents: dict[str, dict[int, Intent]] = {}
        self._approvals: dict[str, Approval] = {}

    def now(self) -> Instant:
        return self._clock.now()

    def epoch(self) -> int:
        return self.server

    def begin(self, run: DeletionRun, intents: Sequence[Intent]) -> DeletionRun:
        with self._lock:
            self._require(run.epoch)
            found = self._runs.get(run.run_id)
            if found is not None:
                if found.plan_hash != run.plan_hash:
                    raise Conflict(f"run {run.run_id} is of another plan")
                return found
            if any(one.is_open and one.table_id == run.table_id for one in self._runs.values()):
                raise Conflict(f"another run of table {run.table_id} is under way")
            self._runs[run.run_id] = run
            self._intents[run.run_id] = {intent.number: intent for intent in intents}
            return run

    def run(self, run_id: str) -> DeletionRun:
        with self._lock:
            found = self._runs.get(run_id)
        if found is None:
            raise NotFound(f"no run {run_id} of deletions")
        return found

    def runs(
        self, *, table_id: TableId | None = None, open_only: bool = False, limit: int, before: str | None = None
    ) -> Sequence[DeletionRun]:
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
        with self._lock:
            self._require(epoch)
            self._runs[run_id] = replace(self.run(run_id), next_at=next_at)

    def close(self, run_id: str, epoch: int) -> None:
        with self._lock:
            self._require(epoch)
            run = self.run(run_id)
            if any(intent.state in OPEN_STATES for intent in self._intents[run_id].values()):
                raise Conflict(f"run {run_id} has files whose outcome is open")
            self._runs[run_id] = replace(run, is_open=False)

    def intents(
        self, run_id: str, states: frozenset[IntentState], *, limit: int, after: int | None = None
    ) -> Sequence[Intent]:
        with self._lock:
            found = sorted(self._intents.get(run_id, {}).items())
        return [intent for number, intent in found if intent.state in states and (after is None or number > after)][
            :limit
        ]

    def count_intents(self, run_id: str) -> Mapping[IntentState, IntentCount]:
        with self._lock:
            found = list(self._intents.get(run_id, {}).values())
        of_state = {state: [one.object.size_bytes for one in found if one.state is state] for state in IntentState}
        return {state: IntentCount(len(sizes), sum(sizes)) for state, sizes in of_state.items()}

    def change(self, epoch: int, changes: Sequence[Intent]) -> Sequence[Intent]:
        with self._lock:
            self._require(epoch)
            now = self._clock.now()
            become = [changed(self._stored(one), one, now) for one in changes]
            for one in become:
                self._intents[one.run_id][one.number] = one
            return become

    def with_held(
        self, *, table_id: TableId | None = None, limit: int, before: str | None = None, within: Scopes = EVERYWHERE
    ) -> Sequence[str]:
        with self._lock:
            found = [
                run_id
                for run_id, intents in sorted(self._intents.items(), reverse=True)
                if (before is None or run_id < before)
                and table_id in (None, self._runs[run_id].table_id)
                and covers(within, Scope.of(self._runs[run_id].table_name))
                and any(intent.state in HELD_STATES for intent in intents.values())
            ]
        return found[:limit]

    def approve(self, approval: Approval) -> Approval:
        with self._lock:
            if approval.plan_hash not in self._approvals:
                self._approvals[approval.plan_hash] = approval
            return self._approvals[approval.plan_hash]

    def approval(self, plan_hash: str) -> Approval | None:
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
        assert within == EVERYWHERE, "nobody in the simulation sees a part"
        with self._lock:
            found = sorted(self._approvals.values(), key=lambda one: (one.approved_at, one.plan_hash), reverse=True)
            return [
                one
                for one in found
                if (before is None or (one.approved_at, one.plan_hash) < (before.approved_at, before.plan_hash))
                and (table_id is None or (one.plan is not None and one.plan.table_id == table_id))
            ][:limit]

    def prune(self, changed_before: Instant, limit: int) -> int:
        """Nothing: the simulation is shorter than removals are kept."""
        del changed_before, limit
        return 0

    def prune_approvals(self, approved_before: Instant, limit: int) -> int:
        """Nothing, as :meth:`prune`."""
        del approved_before, limit
        return 0

    def _stored(self, intent: Intent) -> Intent:
        found = self._intents.get(intent.run_id, {}).get(intent.number)
        if found is None:
            raise NotFound(f"run {intent.run_id} has no file {intent.number}")
        return found

    def _require(self, epoch: int) -> None:
        if epoch != self.server:
            raise StoreTaken("another server leads now", hint="it continues what was begun")
