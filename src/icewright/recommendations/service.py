"""What people decide about recommendations. Accepting one sets properties of its table, and nothing of any other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Final, TypeAlias

from icewright.actions.analyze_queries.check import impossible
from icewright.catalogs.port import Catalog
from icewright.catalogs.properties_port import TableProperties
from icewright.core.clock import Clock
from icewright.core.errors import (
    Conflict,
    InvalidMessage,
    NotAllowed,
    NotFound,
    Rejected,
    TableReplaced,
    Unavailable,
    Unsupported,
)
from icewright.core.reasons import Reason
from icewright.model.access.permissions import Act
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.iceberg.writer_settings import CODEC_KEY, LEVEL_KEY
from icewright.model.policy.policy import Policy
from icewright.model.queries.decisions import UNDECIDED, Decision, KeptRecommendation, RecommendationState
from icewright.model.queries.measurements import Effect
from icewright.model.queries.recommendations import (
    Candidate,
    LayoutChange,
    PropertiesChange,
    Recommendation,
    Revert,
    Verdict,
)
from icewright.policy.property_changes import differing, with_changes
from icewright.policy.settings import BY_KEY, LAYOUT_CUTS_KEY, LAYOUT_KEY, LEVEL_1_SIZE_KEY
from icewright.ports.store import TableStore
from icewright.recommendations.sql import SqlRecommendations

SNOOZE_DAYS_MAX: Final = 365
WHY_LENGTH_MAX: Final = 1_000
LEVEL_1_BYTES_MIN: Final = 1024 * 1024
"""Level 1 at less would write files again for each commit."""
LATER_MAX: Final = 100
"""Accepted recommendations of a table, the newest, that are asked whether they came later."""
_OF_CODEC: Final = frozenset({CODEC_KEY, LEVEL_KEY})
"""They go back together: a level of one codec may be none of another, and writers would fail."""
_DAY_MS: Final = 24 * 3_600_000

Obstacle: TypeAlias = Callable[[TableMetadata, Policy], Reason | None]


class Recommendations:
    """Recommendations and decisions. Safe for use by several threads."""

    def __init__(
        self,
        store: SqlRecommendations | None,
        catalogs: Mapping[str, Catalog],
        tables: TableStore,
        properties: Mapping[str, TableProperties],
        policy: Callable[[TableMetadata], Policy],
        clock: Clock,
        wake: Callable[[TableName], None],
    ) -> None:
        """``properties`` change those of tables, by catalog; ``policy`` is the effective one of a table.

        ``wake`` has a table looked at. Without a ``store`` all is :class:`Unsupported`.
        """
        self._store, self._catalogs, self._tables, self._properties = store, catalogs, tables, properties
        self._policy, self._clock, self._wake = policy, clock, wake
        self._lock = threading.Lock()
        self._at_work: set[str] = set()

    @property
    def store(self) -> SqlRecommendations:
        """Where they are kept. Raises :class:`Unsupported`."""
        if self._store is None:
            raise Unsupported("this server keeps no recommendations")
        return self._store

    @property
    def is_kept(self) -> bool:
        """Whether there is a store."""
        return self._store is not None

    def effects(self) -> Mapping[Effect, int]:
        """How many accepted ones were measured, by what was measured of each last; nothing without a store."""
        return {} if self._store is None else self._store.measurements.effects()

    def accept(
        self,
        recommendation_id: str,
        by: str,
        *,
        of: Collection[RecommendationState] = (*UNDECIDED, RecommendationState.ACCEPTING),
        act: Act | None = None,
        obstacle: Obstacle | None = None,
    ) -> KeptRecommendation:
        """Set the properties that are recommended, and keep who said so, of one that is in a state ``of`` those.

        ``act`` is what the audit has of it, where no request is there already. ``obstacle`` says of the table as it is
        when its properties are to be set, and of its policy then, why they must not be.

        Raises ``NotFound``; :class:`NotAllowed` where there is nothing to do or a rule overrules it; ``Conflict`` where
        it is decided already or right now, or the table or its properties changed meanwhile; and what the catalog
        raises: then it is as it was, or :class:`~icewright.core.errors.OutcomeUnknown`: then it is accepted again to
        know. What is accepted already stays so.
        """
        with self._lock:
            if recommendation_id in self._at_work:
                raise Conflict(f"{recommendation_id} is being accepted", hint="ask again in a moment")
            self._at_work.add(recommendation_id)
        try:
            return self._accept(recommendation_id, by, of, act, obstacle)
        finally:
            with self._lock:
                self._at_work.remove(recommendation_id)

    def _accept(
        self,
        recommendation_id: str,
        by: str,
        of: Collection[RecommendationState],
        act: Act | None,
        obstacle: Obstacle | None,
    ) -> KeptRecommendation:
        kept = self.store.get(recommendation_id)
        wanted = properties_of(kept.recommendation)
        if not wanted:
            raise NotAllowed(
                f"{recommendation_id} recommends to leave the table as it is", hint="there is nothing to accept"
            )
        if kept.state is RecommendationState.ACCEPTED:
            return kept
        state = RecommendationState.ACCEPTING
        begun = Decision(state, by, self._clock.now())
        if kept.state is state and kept.decision is not None:  # it was begun before
            begun = replace(begun, was=kept.decision.was, snapshot_id=kept.decision.snapshot_id)
        # From here on nobody else decides: what is set, or may be, is never said to be rejected.
        self.store.decide(recommendation_id, begun, of=of)
        try:
            name, begun = self._set(kept, wanted, begun, obstacle)
        except (Rejected, Conflict, Unavailable):  # this time nothing was set
            if kept.state is not state or self._is_unset(kept, wanted):
                before = None if kept.state is state else kept.decision
                again = before or Decision(RecommendationState.OPEN, by, begun.at)
                self.store.decide(recommendation_id, again, of=(state,))
            raise
        if isinstance(kept.recommendation.candidate, Revert):
            self._reverted(kept.recommendation.candidate, by, kept.recommendation.reason.text)
        done = replace(begun, state=RecommendationState.ACCEPTED)
        accepted = self.store.decide(recommendation_id, done, of=(state, RecommendationState.ACCEPTED), act=act)
        self._wake(name)
        return accepted

    def reject(self, recommendation_id: str, by: str, why: str) -> KeptRecommendation:
        """Keep that it is not wanted. Raises ``NotFound``, ``Conflict`` and :class:`InvalidMessage`."""
        decision = Decision(RecommendationState.REJECTED, by, self._clock.now(), _text(why))
        return self.store.decide(recommendation_id, decision)

    def snooze(self, recommendation_id: str, by: str, days: int, why: str = "") -> KeptRecommendation:
        """Keep that it is to come again in so many days. Raises as :meth:`reject`."""
        if not 1 <= days <= SNOOZE_DAYS_MAX:
            raise InvalidMessage(f"{days} days", hint=f"1 to {SNOOZE_DAYS_MAX}")
        now = self._clock.now()
        until = now + days * _DAY_MS
        decision = Decision(RecommendationState.SNOOZED, by, now, _text(why) if why else "", until)
        return self.store.decide(recommendation_id, decision)

    def _set(
        self,
        kept: KeptRecommendation,
        wanted: Mapping[str, str | None],
        begun: Decision,
        obstacle: Obstacle | None,
    ) -> tuple[TableName, Decision]:
        """Set what is not so already, and keep what it was before that; the name of the table."""
        metadata = self._load(kept)
        candidate = kept.recommendation.candidate
        if isinstance(candidate, Revert):
            changes = self._still_set(metadata, candidate)
        else:
            changes = differing(metadata, self._with_effect(metadata, candidate, wanted))
        reason = obstacle(metadata, self._policy(metadata)) if changes and obstacle is not None else None
        if reason is not None:
            raise NotAllowed(f"{kept.recommendation_id} waits for a person: {reason.text}", hint="accept or reject it")
        was = {**(begun.was or {}), **{key: metadata.properties.get(key) for key in changes}}
        snapshot_id = metadata.current_snapshot_id if begun.snapshot_id is None else begun.snapshot_id
        begun = replace(begun, was=was, snapshot_id=snapshot_id)
        if changes:
            self.store.decide(kept.recommendation_id, begun, of=(begun.state,))
            self._properties[metadata.name.catalog].change(metadata, changes)
        return metadata.name, begun

    def _still_set(self, metadata: TableMetadata, candidate: Revert) -> dict[str, str | None]:
        """What goes back: properties that are as they were accepted. What their owner has changed since stays.

        Raises :class:`NotAllowed` where none is left, or where another recommendation was accepted since, whose
        properties these are now; nothing to change where all of it has gone back already.
        """
        kept = self.store.get(candidate.recommendation_id)
        self._check_is_last(kept)
        accepted = properties_of(kept.recommendation)
        own = metadata.properties
        found = {key: was for key, was in candidate.properties.items() if own.get(key) == accepted.get(key)}
        if any(own.get(key) != accepted[key] for key in _OF_CODEC & accepted.keys()):
            found = {key: was for key, was in found.items() if key not in _OF_CODEC}
        if not found and any(own.get(key) != was for key, was in candidate.properties.items()):
            raise NotAllowed(
                f"nothing of {candidate.recommendation_id} is set on {metadata.name} any more: its owner changed it",
                hint="reject this",
            )
        return differing(metadata, found)

    def _check_is_last(self, kept: KeptRecommendation) -> None:
        at = 0 if kept.decision is None else kept.decision.at
        for one in self.store.in_state(RecommendationState.ACCEPTED, LATER_MAX, kept.table_id):
            is_change = one.recommendation.verdict is Verdict.CHANGE and one.recommendation_id != kept.recommendation_id
            if is_change and one.decision is not None and one.decision.at > at:
                raise NotAllowed(
                    f"{one.recommendation_id} was accepted after {kept.recommendation_id}", hint="reject this"
                )

    def _reverted(self, candidate: Revert, by: str, why: str) -> None:
        """Keep that one was taken back."""
        accepted = self.store.get(candidate.recommendation_id)
        if accepted.state is RecommendationState.ACCEPTED and accepted.decision is not None:
            state = RecommendationState.REVERTED
            decision = replace(accepted.decision, state=state, by=by, at=self._clock.now(), why=why)
            self.store.decide(candidate.recommendation_id, decision, of=(RecommendationState.ACCEPTED,))

    def _is_unset(self, kept: KeptRecommendation, wanted: Mapping[str, str | None]) -> bool:
        """Whether it is known of one whose acceptance was begun before that nothing is set."""
        try:
            metadata = self._load(kept)
        except (NotFound, TableReplaced):
            return True
        except (Rejected, Conflict, Unavailable):
            return False
        return len(differing(metadata, wanted)) == len(wanted)

    def _load(self, kept: KeptRecommendation) -> TableMetadata:
        record = self._tables.record(kept.table_id)
        name = kept.recommendation.table if record is None else record.name
        catalog = self._catalogs.get(name.catalog)
        if catalog is None or name.catalog not in self._properties:
            raise NotAllowed(f"catalog {name.catalog} is not configured", hint="set the properties by the engine")
        metadata = catalog.load(name)
        if metadata.table_id != kept.table_id:
            raise TableReplaced(f"{name} is another table now")
        return metadata

    def _with_effect(
        self, metadata: TableMetadata, candidate: Candidate, wanted: Mapping[str, str | None]
    ) -> dict[str, str | None]:
        """What is to be set, without a size of Level 1 that is small enough already.

        Raises :class:`NotAllowed` where a rule is above the table's own property, which would change nothing.
        """
        problem = next(impossible(candidate, metadata), None)
        if problem is not None:
            raise NotAllowed(f"{metadata.name} has changed since: {problem}", hint="have its queries analyzed again")
        if not isinstance(candidate, LayoutChange):
            return dict(wanted)
        now, then = self._policy(metadata), self._policy(with_changes(metadata, wanted))
        if then.layout != candidate.layout:
            origin = then.origins.get(LAYOUT_KEY, "a rule")
            raise NotAllowed(
                f"{LAYOUT_KEY} of {metadata.name} is overruled by {origin}", hint="change the rule, or reject this"
            )
        is_small = now.level_1_size_bytes <= int(wanted.get(LEVEL_1_SIZE_KEY) or 0)
        return {key: value for key, value in wanted.items() if not (is_small and key == LEVEL_1_SIZE_KEY)}


def properties_of(said: Recommendation) -> dict[str, str | None]:
    """What accepting a recommendation sets; nothing where nothing is to be done.

    Level 1 puts files in order from a size on, which a table of small partitions never reaches by default: it is set to
    half of what a partition has on average, where that is less.
    """
    match said.candidate:
        case LayoutChange(layout):
            found: dict[str, str | None] = {LAYOUT_KEY: str(layout)}
            if layout.cuts is not None:
                found[LAYOUT_CUTS_KEY] = layout.cuts.text
            size_bytes = max(LEVEL_1_BYTES_MIN, said.evidence.bytes // max(1, said.evidence.partitions) // 2)
            if size_bytes < BY_KEY[LEVEL_1_SIZE_KEY].default:
                found[LEVEL_1_SIZE_KEY] = str(size_bytes)
            return found
        case PropertiesChange(properties):
            return dict(properties)
        case Revert(properties=back):
            return dict(back)
        case _:
            return {}


def _text(why: str) -> str:
    text = why.strip()
    if not text or len(text) > WHY_LENGTH_MAX or not text.isprintable():
        raise InvalidMessage("no reason is given", hint=f"why, in 1 to {WHY_LENGTH_MAX} characters on one line")
    return text
