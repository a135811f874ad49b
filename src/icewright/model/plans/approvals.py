"""What people decided of plans that wait for a person, as values: who let which go, and who refused which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.actions.actions import ActionKind
from icewright.model.iceberg.names import TableId, TableName

REFUSED: Final = "plan-refused-by-a-person"
REFUSED_MS: Final = 7 * 86_400_000
"""How long after a refusal no other plan of that kind waits, as long as what it was made from is the same."""


@dataclass(frozen=True, slots=True)
class ApprovedPlan:
    """A plan as it was when somebody approved it, and why it had to wait; None where that was not known any more."""

    plan_id: str
    table_id: TableId
    table_name: TableName
    kind: ActionKind
    because: Reason | None
    roots: tuple[str, ...] = ()
    """The places of the table at that time, for a plan that removes files; none of before this was kept."""


@dataclass(frozen=True, slots=True)
class Approval:
    """Somebody's word that a plan may go, beyond the budget or for the first time; it is for this very plan.

    ``plan`` is None of one that was given before plans were kept with it: its hash alone says what it is for.
    """

    plan_hash: str
    approved_by: str
    approved_at: Instant
    plan: ApprovedPlan | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Somebody's word that a plan that waits must not go, and ``why``; it is for this very plan.

    ``snapshot_id`` and ``settings_digest`` are what the plan was made from: until these change, or for a while, no
    other plan of its kind is asked about.
    """

    plan_id: str
    plan_hash: str
    table_id: TableId
    table_name: TableName
    kind: ActionKind
    refused_by: str
    why: str
    refused_at: Instant
    snapshot_id: int | None
    settings_digest: str | None

    def reason(self) -> Reason:
        """What is said of a plan that was refused, and until when nobody is asked again."""
        figures: dict[str, int | str] = {"plan_id": self.plan_id, "refused_by": self.refused_by}
        figures["until"] = self.refused_at + REFUSED_MS
        return Reason(REFUSED, f"{self.refused_by} refused plan {self.plan_id}: {self.why}", figures)


@dataclass(frozen=True, slots=True)
class ApprovalPlace:
    """Where an approval is among all, by when it was given."""

    approved_at: Instant
    plan_hash: str
