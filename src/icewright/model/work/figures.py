"""What lists show of a table: worked out by each look, and kept with what is known of it, so that lists ask nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.policy.policy import Mode


@dataclass(frozen=True, slots=True)
class FiguresView:
    """The sums over all partitions. ``optimization_ratio`` weighs each partition by its data files."""

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


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """A plan in one line."""

    plan_id: str
    planned_at: Instant
    reason: Reason
    can_apply: bool
    data_files_after: int | None


@dataclass(frozen=True, slots=True)
class Listed:
    """A table in a list, by its last look that came to a plan: ``mode`` is that of the policy of then.

    ``optimized_at`` is when icewright last rewrote something of it.
    """

    mode: Mode
    figures: FiguresView
    optimized_at: Instant | None
    plan: PlanSummary
