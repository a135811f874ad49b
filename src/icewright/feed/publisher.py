"""Facts that are no task's, for the feed: parked and unreadable tables, plans that wait, catalogs that are away.

Each is told once, by a key that any server would give it. A server that dies between a change and its tidings leaves
them out, and the next look, round or plan tells them; what becomes of tasks, and that a plan was refused, is told by
the store itself.
"""

from __future__ import annotations

from typing import Final

from icewright.core.clock import Clock
from icewright.core.errors import Unreadable
from icewright.core.times import Instant
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.deletion import DeletionRun
from icewright.model.events.feed import Fact, FactKind
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.plans.plans import Reason
from icewright.model.work.breaker import PARKED
from icewright.ports.feed import Feed
from icewright.ports.store import WaitingPlan

OUTAGE_REPORTED_MS: Final = 60_000
"""How long a catalog does not answer before anybody is told: a restart is no news."""
_DAY_MS: Final = 86_400_000


class FeedPublisher:
    """Tells what the services find out. Safe for use by several threads."""

    def __init__(self, feed: Feed, clock: Clock) -> None:
        self._feed, self._clock = feed, clock
        self._away: dict[str, tuple[Instant, str | None]] = {}
        """Catalogs that do not answer: since when, and by which key that was told."""

    def problem(self, table_id: TableId, name: TableName, before: Reason | None, problem: Reason | None) -> None:
        """A table has a problem, and had ``before``: told where it has come anew and somebody should know."""
        if problem is None or problem == before:
            return
        if problem.code == PARKED:
            self._tell(FactKind.PARKED, table_id, name, problem, f"{problem.figures.get('until')}")
        elif problem.code == Unreadable.code and (before is None or before.code != problem.code):
            self._tell(FactKind.DATA_AT_RISK, table_id, name, problem, f"{self._clock.now() // _DAY_MS}")

    def waits(self, waiting: WaitingPlan) -> None:
        """A plan waits for a person."""
        kind, reason = FactKind.WAITS_FOR_APPROVAL, waiting.reason
        self._tell(kind, waiting.table_id, waiting.table_name, reason, "", waiting.plan_id, waiting.kind)

    def came_back(self, run: DeletionRun, reason: Reason) -> None:
        """Files of a table were put back since another table needs them."""
        self._tell(FactKind.DATA_AT_RISK, run.table_id, run.table_name, reason, f"{run.run_id}/{self._clock.now()}")

    def away(self, catalog: str, text: str) -> None:
        """A catalog did not answer."""
        now = self._clock.now()
        since, key = self._away.setdefault(catalog, (now, None))
        if key is None and now - since >= OUTAGE_REPORTED_MS:
            key = f"{FactKind.CATALOG_AWAY}/{catalog}/{since}"
            self._feed.tell(Fact(FactKind.CATALOG_AWAY, catalog, Reason("unavailable", text, {"since": since})), key)
            self._away[catalog] = since, key

    def answers(self, catalog: str) -> None:
        """A catalog answered; told where it was told that it did not."""
        if catalog not in self._away:
            return
        since, key = self._away[catalog]
        if key is not None:
            reason = Reason("answers", "the catalog answers again", {"away_ms": self._clock.now() - since})
            self._feed.tell(Fact(FactKind.CATALOG_BACK, catalog, reason), f"{key}/back")
        self._away.pop(catalog, None)

    def _tell(
        self,
        kind: FactKind,
        table_id: TableId,
        name: TableName,
        reason: Reason,
        once: str,
        plan_id: str | None = None,
        action: ActionKind | None = None,
    ) -> None:
        fact = Fact(kind, table_id.catalog, reason, table_id, name, plan_id=plan_id, action=action)
        self._feed.tell(fact, f"{kind}/{table_id}/{plan_id or ''}/{once}")
