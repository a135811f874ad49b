"""The store of what was intended to be deleted, and of what became of it. Durable before anything is touched."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from icewright.core.times import Instant
from icewright.model.access.permissions import EVERYWHERE, Scopes
from icewright.model.actions.deletion import DeletionRun, Intent, IntentState
from icewright.model.iceberg.names import TableId
from icewright.model.plans.approvals import Approval, ApprovalPlace

OVER_STATES: Final = frozenset({IntentState.PURGED, IntentState.RESTORED, IntentState.SKIPPED})
OPEN_STATES: Final = frozenset({IntentState.PLANNED, IntentState.UNKNOWN})
HELD_STATES: Final = frozenset({IntentState.QUARANTINED, IntentState.UNKNOWN})


@dataclass(frozen=True, slots=True)
class IntentCount:
    """Files of a run that are in one state."""

    files: int
    bytes: int


class DeletionStore(Protocol):
    """Runs and their intents. Every method is one transaction; instants are by the store's own clock.

    Raises :class:`~icewright.core.errors.Unavailable` when the store does not answer. What writes of runs and
    files takes the epoch of its server and raises :class:`~icewright.core.errors.StoreTaken` when that is not the
    present one. Approvals are people's, and come in at any server.
    """

    def now(self) -> Instant:
        """The store's clock."""

    def epoch(self) -> int:
        """How many servers have held the store so far; only the latest may write."""

    def begin(self, run: DeletionRun, intents: Sequence[Intent]) -> DeletionRun:
        """Write a run and all its intents, in one transaction. Doing so again changes nothing and gives what is there.

        Raises :class:`~icewright.core.errors.Conflict` when the id is that of a run of another plan, and when
        another run of the table is open.
        """

    def run(self, run_id: str) -> DeletionRun:
        """A run. Raises :class:`~icewright.core.errors.NotFound`."""

    def runs(
        self, *, table_id: TableId | None = None, open_only: bool = False, limit: int, before: str | None = None
    ) -> Sequence[DeletionRun]:
        """Runs, newest first by id; ``before`` is the id that the last page ended with."""

    def rest(self, run_id: str, epoch: int, next_at: Instant) -> None:
        """Let nothing of a run be quarantined before an instant."""

    def close(self, run_id: str, epoch: int) -> None:
        """Mark a run as not open. Raises ``Conflict`` while an intent is planned or unknown."""

    def intents(
        self, run_id: str, states: frozenset[IntentState], *, limit: int, after: int | None = None
    ) -> Sequence[Intent]:
        """Intents of a run in some states, by number; ``after`` is the number that the last page ended with."""

    def count_intents(self, run_id: str) -> Mapping[IntentState, IntentCount]:
        """What became of a run's files; every state is there."""

    def change(self, epoch: int, changes: Sequence[Intent]) -> Sequence[Intent]:
        """Write intents as they have become, all of them or none; gives them with their new versions.

        ``changed_at`` and the version are the store's. Raises ``Conflict`` when one is not of the version that was
        read, and :class:`~icewright.core.errors.NotAllowed` for a step that ``INTENT_TRANSITIONS`` does not have.
        """

    def with_held(
        self, *, table_id: TableId | None = None, limit: int, before: str | None = None, within: Scopes = EVERYWHERE
    ) -> Sequence[str]:
        """Ids of runs, of one table or of all, with files in quarantine or with steps of unknown outcome, newest first.

        ``within``: of tables in these scopes, by their records.
        In this order they are to be looked after: of two files that had the same path one after the other, the later
        one is what a writer last saw. ``before`` is the id that the last page ended with.
        """

    def approve(self, approval: Approval) -> Approval:
        """Remember an approval; the first one for a plan stays, and is given back.

        Raises :class:`~icewright.core.errors.Conflict` for a plan that was refused.
        """

    def approval(self, plan_hash: str) -> Approval | None:
        """Who approved a plan."""

    def approvals(
        self,
        *,
        table_id: TableId | None = None,
        limit: int,
        before: ApprovalPlace | None = None,
        within: Scopes = EVERYWHERE,
    ) -> Sequence[Approval]:
        """Approvals of plans of one table or of all, the latest first, those behind a place.

        ``within``: of tables in these scopes, by their records.
        """

    def prune(self, changed_before: Instant, limit: int) -> int:
        """Forget at most so many files of runs that are over, those that changed longest ago first; how many.

        A run goes with the last of its files. Over is one that is not open, with no file that is planned, unknown or
        in quarantine, that did not change since ``changed_before``, by the store's clock, whose task is forgotten, and
        whose table has no task that has not ended.
        """

    def prune_approvals(self, approved_before: Instant, limit: int) -> int:
        """Forget at most so many approvals, the oldest first, of plans that are not there any more; how many.

        One that does not say of which plan it is stays.
        """
