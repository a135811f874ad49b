"""What is shown of facts: to programs as flat documents, to people as one line with what to do about it."""

from __future__ import annotations

from dataclasses import dataclass

from icewright.core.times import Instant
from icewright.model.actions.actions import ActionKind
from icewright.model.events.feed import FactKind, FeedEntry
from icewright.model.plans.plans import Reason


@dataclass(frozen=True, slots=True)
class FactView:
    """A fact. What it is not about is null; one without a ``table`` is about its whole ``catalog``, or all servers.

    ``sequence`` grows; some numbers are left out. ``do`` is a command that tells more or does something about it.
    """

    sequence: int
    at: Instant
    kind: FactKind
    catalog: str
    table: str | None
    uuid: str | None
    task_id: str | None
    plan_id: str | None
    action: ActionKind | None
    attempt: int | None
    reason: Reason
    do: str


def fact_view(told: FeedEntry) -> FactView:
    """A fact of the feed as it is shown."""
    fact = told.fact
    return FactView(
        sequence=told.sequence,
        at=told.at,
        kind=fact.fact,
        catalog=fact.catalog,
        table=None if fact.table_name is None else str(fact.table_name),
        uuid=None if fact.table_id is None else fact.table_id.uuid,
        task_id=fact.task_id,
        plan_id=fact.plan_id,
        action=fact.action,
        attempt=fact.attempt,
        reason=fact.reason,
        do=_do(told),
    )


def _do(told: FeedEntry) -> str:
    """A command with nothing in it but ids of our own: names of strangers belong in no shell."""
    fact = told.fact
    if fact.fact in (FactKind.WAITS_FOR_APPROVAL, FactKind.REFUSED):
        return f"icewright approve {fact.plan_id} --show"
    if fact.fact in (FactKind.PAUSED, FactKind.RESUMED):
        return "icewright queue"
    if fact.fact is FactKind.REGRESSED:
        return f"icewright recommendations show {fact.reason.figures['revert']}"
    if fact.fact is FactKind.TUNED:
        return f"icewright autotune show {fact.reason.figures['decision']}"
    if fact.task_id is not None:
        return f"icewright tasks show {fact.task_id}"
    return "icewright status" if fact.table_id is None else "icewright tasks list"
