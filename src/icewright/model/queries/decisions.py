"""What became of a recommendation: it is open until it is decided, or a newer one of its table takes its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from icewright.core.times import Instant
from icewright.model.iceberg.names import TableId
from icewright.model.queries.recommendations import Recommendation


class RecommendationState(StrEnum):
    """Where a recommendation is."""

    OPEN = "open"
    SNOOZED = "snoozed"
    """Not now: it is open again from an instant on."""
    ACCEPTING = "accepting"
    """It is accepted, and the properties of the table are being set, or may be: accept it again to know."""
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    REVERTED = "reverted"
    """It was accepted, and read more than before: its properties were set back."""
    REPLACED = "replaced"
    """A newer one of the same table came before a decision."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision. ``until`` is of a snooze alone.

    ``was`` is what the properties that accepting it sets were before, None where there were none; and ``snapshot_id``
    the table's snapshot then.
    """

    state: RecommendationState
    by: str
    at: Instant
    why: str = ""
    until: Instant | None = None
    was: Mapping[str, str | None] | None = None
    snapshot_id: int | None = None


@dataclass(frozen=True, slots=True)
class KeptRecommendation:
    """A recommendation with what became of it. ``task_id`` is of the task that made it."""

    recommendation_id: str
    table_id: TableId
    task_id: str
    made_at: Instant
    recommendation: Recommendation
    state: RecommendationState = RecommendationState.OPEN
    decision: Decision | None = None

    def state_at(self, now: Instant) -> RecommendationState:
        """Where it is at an instant: a snooze that is over leaves it open."""
        is_over = self.decision is not None and (self.decision.until or 0) <= now
        return RecommendationState.OPEN if self.state is RecommendationState.SNOOZED and is_over else self.state


UNDECIDED: Final = (RecommendationState.OPEN, RecommendationState.SNOOZED)
"""Which decisions are still possible."""

RECOMMENDATION: Final = "recommendation"


def recommendation_of(task_id: str) -> str:
    """The id of what a task recommends: the same for the same task."""
    return f"{RECOMMENDATION}-{task_id.removeprefix('task-')}"
