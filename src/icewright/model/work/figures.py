"""What lists show of a table: worked out by each look, and kept with what is known of it, so that lists ask nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.actions.actions import ActionKind
from icewright.model.policy.policy import Mode


@dataclass(frozen=True, slots=True)
class FiguresView:
    """The sums over all partitions. ``optimization_ratio`` weighs each partition by its data files.

    ``avoidable_files`` are the small files that merging can take away, all but one of each partition that has enough.
    """

    partitions: int
    data_files: int
    size_bytes: int
    records: int
    small_files: int
    small_bytes: int
    delete_files: int
    position_delete_files: int
    deletion_vectors: int
    equality_delete_files: int
    deleted_records: int
    formats: Mapping[str, int]
    optimization_ratio: float
    avoidable_files: int = 0


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """A plan in one line."""

    plan_id: str
    planned_at: Instant
    reason: Reason
    can_apply: bool
    data_files_after: int | None


class HealthPart(StrEnum):
    """What the health of a table is made of, in the order in which it is shown."""

    FILES = "files"
    DELETES = "deletes"
    METADATA = "metadata"
    SNAPSHOTS = "snapshots"
    LAYOUT = "layout"
    UPKEEP = "upkeep"
    FAILURES = "failures"


HEALTH_WEIGHTS: Final[Mapping[HealthPart, int]] = MappingProxyType(
    {
        HealthPart.FILES: 35,
        HealthPart.DELETES: 20,
        HealthPart.METADATA: 8,
        HealthPart.SNAPSHOTS: 7,
        HealthPart.LAYOUT: 10,
        HealthPart.UPKEEP: 5,
        HealthPart.FAILURES: 15,
    }
)
"""How much of 100 each part is: what each scan pays for first, then what goes wrong, then what costs storage."""

HEALTH_MAX: Final = 100
GOOD_HEALTH_MIN: Final = 90
FAIR_HEALTH_MIN: Final = 70


class Grade(StrEnum):
    """A health in one word: ``good`` from 90 on, ``fair`` from 70 on."""

    GOOD = "good"
    FAIR = "fair"
    POOR = "poor"

    @classmethod
    def of(cls, score: int) -> Grade:
        """The grade of a score."""
        if score >= GOOD_HEALTH_MIN:
            return cls.GOOD
        return cls.FAIR if score >= FAIR_HEALTH_MIN else cls.POOR


@dataclass(frozen=True, slots=True)
class HealthAction:
    """What would raise a part of the health: an action of icewright of that kind, or where it is null a person's."""

    kind: ActionKind | None
    text: str


@dataclass(frozen=True, slots=True)
class PartHealth:
    """One part of a health, from 0 to 100: 100 means exactly that nothing would raise it."""

    part: HealthPart
    score: int
    weight: int
    reason: Reason
    action: HealthAction | None


@dataclass(frozen=True, slots=True)
class TableHealth:
    """The health of a table, from 0 to 100: the mean of its parts by their weights, which add up to 100."""

    score: int
    grade: Grade
    parts: tuple[PartHealth, ...]

    @property
    def worst(self) -> HealthPart | None:
        """The part that costs the most points, None where none costs any."""
        costs = {part.part: (HEALTH_MAX - part.score) * part.weight for part in self.parts}
        worst = max(costs, key=lambda part: costs[part], default=None)
        return worst if worst is not None and costs[worst] else None


@dataclass(frozen=True, slots=True)
class PartChange:
    """One part of a health that changed."""

    part: HealthPart
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class HealthChange:
    """When a health last changed, from what to what, and which parts did."""

    at: Instant
    before: int
    after: int
    parts: tuple[PartChange, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Listed:
    """A table in a list, by its last look that came to a plan: ``mode`` is that of the policy of then.

    ``optimized_at`` is when icewright last rewrote something of it, ``last_task_at`` when a task of it last ended, and
    ``failures`` the most of one kind that failed since the last success of that kind. ``noted_at`` is when its series
    last got a point.
    """

    mode: Mode
    figures: FiguresView
    optimized_at: Instant | None
    plan: PlanSummary
    snapshots: int = 0
    health: TableHealth | None = None
    health_change: HealthChange | None = None
    last_task_at: Instant | None = None
    failures: int = 0
    noted_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """What a look saw of a table at one time."""

    at: Instant
    files: int
    bytes: int
    records: int
    small_files: int
    delete_files: int
    snapshots: int
    health: int | None
