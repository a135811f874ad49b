"""Recommendations as the API shows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from icewright.core.times import Instant
from icewright.model.queries.decisions import Decision, KeptRecommendation, RecommendationState
from icewright.model.queries.recommendations import Recommendation, Verdict
from icewright.recommendations.service import properties_of


@dataclass(frozen=True, slots=True)
class RecommendationSummary:
    """A recommendation in lists.

    ``change`` says it in words; ``bytes_share`` is what later queries would read of what they read now, null where
    nothing was tried on them.
    """

    recommendation_id: str
    table: str
    catalog: str
    uuid: str
    made_at: Instant
    state: RecommendationState
    verdict: Verdict
    change: str
    reason: str
    bytes_share: float | None
    decision: Decision | None


@dataclass(frozen=True, slots=True)
class RecommendationView:
    """A recommendation in full. ``properties`` are what accepting it sets on the table."""

    summary: RecommendationSummary
    task_id: str
    properties: Mapping[str, str | None]
    recommendation: Recommendation


def recommendation_summary(kept: KeptRecommendation, now: Instant) -> RecommendationSummary:
    """One of a list."""
    said = kept.recommendation
    tested = None if said.chosen is None else said.chosen.test
    return RecommendationSummary(
        kept.recommendation_id,
        str(said.table),
        kept.table_id.catalog,
        kept.table_id.uuid,
        kept.made_at,
        kept.state_at(now),
        said.verdict,
        str(said.candidate),
        said.reason.text,
        None if tested is None else tested.bytes_share,
        kept.decision,
    )


def recommendation_view(kept: KeptRecommendation, now: Instant) -> RecommendationView:
    """All of it."""
    said = kept.recommendation
    return RecommendationView(recommendation_summary(kept, now), kept.task_id, properties_of(said), said)
