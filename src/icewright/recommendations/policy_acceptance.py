"""Accepting recommendations by policy: what clears the bar of its table's policy, and what no person decided on."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import structlog

from icewright.audit.acting import acting_as
from icewright.audit.model import POLICY
from icewright.core import wording
from icewright.core.clock import Clock
from icewright.core.errors import IcewrightError, Unavailable
from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.access.permissions import Act
from icewright.model.iceberg.names import TableId
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.policy.policy import Mode, Policy
from icewright.model.queries.decisions import KeptRecommendation, RecommendationState
from icewright.model.queries.recommendations import Recommendation, Revert, Verdict
from icewright.recommendations.ledger import accepted_properties, is_in_force, is_same_change
from icewright.recommendations.measurements_sql import SqlMeasurements
from icewright.recommendations.service import Recommendations, properties_of

_log = structlog.get_logger("icewright.recommendations")

HISTORY_MAX: Final = 1_000
"""Recommendations of a table that are looked through for decisions: those of years."""
RETRY_MS: Final = 24 * 3_600_000
"""How long a recommendation is left alone that was not accepted."""
_DECIDED: Final = (
    RecommendationState.REJECTED,
    RecommendationState.SNOOZED,
    RecommendationState.ACCEPTED,
    RecommendationState.REVERTED,
)


class PolicyAcceptance:
    """Accepts what clears the bar, with each look at a table. Safe for use by several threads."""

    def __init__(self, recommendations: Recommendations, clock: Clock) -> None:
        self._recommendations, self._clock = recommendations, clock
        self._lock = threading.Lock()
        self._left_alone: dict[str, Instant] = {}
        """Until when recommendations are left alone, by their ids."""

    def consider(self, metadata: TableMetadata, policy: Policy) -> None:
        """Accept the newest recommendation of a table where its policy says so.

        What was not accepted is considered again after :data:`RETRY_MS`, with the next look where the store or the
        catalog did not answer. No refusal passes through.
        """
        if not _wants(policy):
            return
        try:
            self._consider(metadata, policy)
        except IcewrightError as error:
            _log.warning("recommendation not accepted", table=str(metadata.name), code=error.code, detail=error.message)

    def is_open(self, table_id: TableId, policy: Policy) -> bool:
        """Whether :meth:`consider` would find something to decide. Raises ``Unavailable``."""
        newest = self._recommendations.store.newest(table_id) if _wants(policy) else None
        return newest is not None and _is_for_policy(newest)

    def _consider(self, metadata: TableMetadata, policy: Policy) -> None:
        store, now = self._recommendations.store, self._clock.now()
        newest = store.newest(metadata.table_id)
        if newest is None or not _is_for_policy(newest) or newest.recommendation.verdict is not Verdict.CHANGE:
            return
        with self._lock:
            self._left_alone = {one: until for one, until in self._left_alone.items() if until > now}
            if newest.recommendation_id in self._left_alone:
                return
            self._left_alone[newest.recommendation_id] = now + RETRY_MS
        before = [
            one
            for one in store.list(limit=HISTORY_MAX, table_id=metadata.table_id)
            if one.recommendation_id != newest.recommendation_id
        ]
        said = newest.recommendation
        reason = below_bar(said, policy) or decided_before(newest, before) or set_by_owner(said, before, metadata)
        reason = reason or not_measured(before, metadata, store.measurements)
        if reason is not None:
            _log.info("recommendation waits for a person", table=str(metadata.name), detail=reason.text)
            return
        act = Act(
            "recommendation.accepted",
            f"recommendation {newest.recommendation_id}",
            {"table": str(metadata.name), "change": str(said.candidate)[:200]},
        )

        def obstacle(present: TableMetadata, its: Policy) -> Reason | None:
            """As the table is when its properties are set: what was looked at may be older."""
            if not _wants(its):
                return Reason("policy-changed", "its policy accepts nothing any more")
            return below_bar(said, its) or set_by_owner(said, before, present)

        try:
            with acting_as(POLICY):
                accept = self._recommendations.accept
                accept(newest.recommendation_id, POLICY, of=(newest.state,), act=act, obstacle=obstacle)
        except Unavailable:
            with self._lock:
                self._left_alone.pop(newest.recommendation_id, None)
            raise
        _log.info("recommendation accepted", table=str(metadata.name), change=str(said.candidate))


def below_bar(said: Recommendation, policy: Policy) -> Reason | None:
    """Why a recommendation saves too little to be accepted by policy, by the unfavorable ends of its intervals."""
    test = None if said.chosen is None else said.chosen.test
    if said.verdict is not Verdict.CHANGE or test is None:
        return Reason("not-tested", "it was not tried on later queries")
    asked = policy.accept_min_saved_bytes_ratio
    if not 0 <= test.bytes_read.high <= (1 - asked) * test.bytes_read_now or not test.bytes_read_now:
        text = f"later queries read {test.bytes_read.high:.3g} of {test.bytes_read_now:.3g} bytes at most, and savings "
        text += f"of {asked:.0%} are asked for"
        return Reason("saves-too-little", text)
    saved_s, asked_s = test.saved_s_per_day.low, policy.accept_min_saved_cpu_s_per_day
    if not saved_s >= asked_s:
        text = f"it saves {saved_s:.3g} CPU seconds a day at least, and {asked_s:.3g} are asked for"
        return Reason("saves-too-little", text)
    return None


def decided_before(newest: KeptRecommendation, before: Iterable[KeptRecommendation]) -> Reason | None:
    """Why a person has to decide: the same change was rejected, snoozed, taken back, or accepted and then set back."""
    wanted = newest.recommendation.candidate
    for one in (newest, *before):
        decision = one.decision
        if decision is None or decision.state not in _DECIDED:
            continue
        is_accepted = decision.state is RecommendationState.ACCEPTED  # other cuts may take the place of those
        candidate = one.recommendation.candidate
        if candidate == wanted or (not is_accepted and is_same_change(candidate, wanted)):
            text = f"the same change was {decision.state} by {decision.by} at {wording.instant(decision.at)}"
            return Reason("decided-before", text)
    return None


def not_measured(
    before: Iterable[KeptRecommendation], metadata: TableMetadata, measurements: SqlMeasurements
) -> Reason | None:
    """Why the next change waits: the last one is in force, and nobody knows yet what it has brought.

    Until it is carried out an analysis tries on files of before it, so that each week another change may look better,
    and the table be rewritten by halves for ever.
    """
    accepted = [one for one in before if one.state is RecommendationState.ACCEPTED and _set_by(one)]
    last = max(accepted, key=lambda one: 0 if one.decision is None else one.decision.at, default=None)
    if last is None or not is_in_force(last, metadata) or measurements.latest(last.recommendation_id) is not None:
        return None
    return Reason("not-measured", f"{last.recommendation_id} was accepted, and is not carried out and measured yet")


def set_by_owner(said: Recommendation, before: Sequence[KeptRecommendation], metadata: TableMetadata) -> Reason | None:
    """Why a person has to decide: the table has a value of its own that no accepted recommendation has set."""
    accepted = [_set_by(one) for one in before if one.state is RecommendationState.ACCEPTED]
    for key, value in properties_of(said).items():
        own = metadata.properties.get(key)
        if own is not None and own != value and not any(_sets(one, key, own) for one in accepted):
            return Reason("set-by-owner", f"the table has {key} = {wording.quoted(own)} of its own")
    return None


def _set_by(kept: KeptRecommendation) -> Mapping[str, str | None]:
    """What accepting one has set; not what was so already, nor what it went back to: that is its owner's."""
    if isinstance(kept.recommendation.candidate, Revert):
        return {}
    was = (None if kept.decision is None else kept.decision.was) or {}
    return accepted_properties(kept, was)


def _wants(policy: Policy) -> bool:
    """Whether a policy accepts recommendations by itself."""
    return policy.accepts_recommendations and policy.mode is Mode.AUTO and not policy.problems


def _sets(properties: Mapping[str, str | None], key: str, value: str) -> bool:
    return properties.get(key) == value


def _is_for_policy(kept: KeptRecommendation) -> bool:
    """Whether it is open and no person has decided on it, or its acceptance by policy has no known end."""
    by = None if kept.decision is None else kept.decision.by
    return kept.state is RecommendationState.OPEN or (kept.state is RecommendationState.ACCEPTING and by == POLICY)
