"""The ledger: accepted recommendations are measured, week by week, and what reads more than before is taken back.

All of it follows from rows: a server that dies between two steps takes the next one where it stopped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import structlog

from icewright.actions.analyze_queries.check import measurement_problem
from icewright.catalogs.port import Catalog
from icewright.core.clock import Clock
from icewright.core.errors import (
    IcewrightError,
    NotFound,
    StorageUnavailable,
    StoreUnavailable,
    Unavailable,
    Unreadable,
)
from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.analyze_queries import (
    AnalyzeQueries,
    AnalyzeQueriesPrediction,
    AnalyzeQueriesRequest,
    Measure,
)
from icewright.model.events.feed import Fact, FactKind
from icewright.model.iceberg.layouts import Curve
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.plans import Plan
from icewright.model.policy.policy import Mode, Policy
from icewright.model.queries.decisions import UNDECIDED, KeptRecommendation, RecommendationState
from icewright.model.queries.measurements import (
    Effect,
    FileSums,
    Measured,
    Measurement,
    PlannedReads,
    ScannedReads,
)
from icewright.model.queries.recommendations import (
    LEAVE,
    Candidate,
    Interval,
    LayoutChange,
    Prediction,
    Recommendation,
    Revert,
    Verdict,
)
from icewright.model.queries.templates import WEEK_MS
from icewright.model.work.lifecycle import LIVE_STATES
from icewright.model.work.tasks import Task
from icewright.ports.store import TableStore, TaskFilter, TaskStore
from icewright.queries.service import QueryLog
from icewright.recommendations import effects
from icewright.recommendations.carried_out import CarriedOut, carried_out, rewritten_by_others
from icewright.recommendations.service import Recommendations, properties_of
from icewright.recommendations.sql import SqlRecommendations

_log = structlog.get_logger("icewright.ledger")

STEP_MS: Final = 10 * 60_000
"""How often accepted recommendations are looked through."""
MEASURED_EVERY_MS: Final = WEEK_MS
TRIED_AGAIN_MS: Final = 24 * 3_600_000
REVERTED_MAX: Final = 1_000
"""Recommendations of a table that were taken back: those of years."""
AT_ONCE: Final = 20
"""Tables that are looked at in a row: what else has its turn in between is leases and commits."""
OTHERS_MAX: Final = 10
"""Tables of the catalog that a table is compared with: those that are read most."""
BY_ITSELF: Final = "icewright"
"""Who takes back what did not pay, in mode ``auto``."""
REGRESSED, REVERTED_BEFORE, OTHERS_REWROTE, NOT_MEASURED = (
    "regressed",
    "reverted-before",
    "rewritten-by-others",
    "not-measured",
)
_LEFT_TO_PEOPLE: Final = (RecommendationState.SNOOZED, RecommendationState.REJECTED)
_RESTED: Final = (*UNDECIDED, RecommendationState.ACCEPTING, RecommendationState.REJECTED)


class Measuring:
    """Judges what optimizers measured, and keeps it."""

    def __init__(
        self, store: SqlRecommendations, tasks: TaskStore, tables: TableStore, queries: QueryLog, clock: Clock
    ) -> None:
        self._store, self._tasks, self._tables, self._queries, self._clock = store, tasks, tables, queries, clock

    def keep(self, task: Task, action: AnalyzeQueries, found: Measured, metadata: TableMetadata) -> Reason | str:
        """Keep what a task has measured, and say what it came to; a text is why it must not be kept."""
        said, asked = task.prediction, action.measure
        if not isinstance(said, AnalyzeQueriesPrediction) or asked is None:
            raise TypeError(f"task {task.task_id} measures nothing")
        try:
            kept = self._store.get(asked.recommendation_id)
        except NotFound as error:
            return Reason(NOT_MEASURED, error.message)
        decision, carried = kept.decision, carried_out(self._tasks, kept, metadata)
        if kept.table_id != task.table_id or decision is None or kept.state is not RecommendationState.ACCEPTED:
            return Reason(NOT_MEASURED, f"{asked.recommendation_id} is not accepted for {task.table_name}")
        if carried is None or asked != _asked(kept, carried):
            text = "the table was rolled back meanwhile, or rewritten otherwise: this says nothing of the change"
            return Reason(NOT_MEASURED, text)
        judged = self._store.measurements.judged(kept.recommendation_id)
        is_same = self._analyzed_at(kept) == asked.before_snapshot_id
        problem = measurement_problem(found, action, said, judged if is_same else {})
        if problem is not None:
            return problem
        evidence = kept.recommendation.evidence
        planned = effects.planned(found, judged, FileSums(evidence.files, evidence.bytes))
        if not isinstance(kept.recommendation.candidate, LayoutChange):
            planned = _not_by_bounds(planned)
        scanned = self._scanned(kept, decision.at, carried)
        effect, reason = effects.together(planned, scanned)
        if rewritten_by_others(carried, metadata):
            text = f"others have rewritten files since, so that this is not the change's alone: {reason.text}"
            effect, reason = Effect.UNKNOWN, Reason(OTHERS_REWROTE, text)
        measurement = Measurement(
            kept.recommendation_id,
            kept.table_id,
            task.task_id,
            self._clock.now(),
            decision.at,
            carried.at,
            effect,
            reason,
            predicted_change(kept.recommendation),
            planned,
            scanned,
        )
        self._store.measurements.keep(measurement)
        return Reason("verified", f"{kept.recommendation.candidate}: {reason.text}", {"effect": effect.value})

    def _analyzed_at(self, kept: KeptRecommendation) -> int | None:
        """The snapshot that the recommendation was made from; None where its task is forgotten."""
        try:
            action = self._tasks.get(kept.task_id).action
        except NotFound:
            return None
        return action.base_snapshot_id if isinstance(action, AnalyzeQueries) else None

    def _scanned(self, kept: KeptRecommendation, accepted_at: Instant, carried: CarriedOut) -> ScannedReads:
        sums, now = self._queries.kept_sums, self._clock.now()
        if sums is None:
            return effects.scanned((), (), accepted_at, carried.at, now)
        since = accepted_at - (effects.WEEKS_MAX + 1) * WEEK_MS
        states = (RecommendationState.ACCEPTED, RecommendationState.REVERTED, RecommendationState.ACCEPTING)
        treated = {one.table_id for one in self._store.decided(*states) if one.at >= since}
        read = [
            one
            for one in sums.tables(since, 10 * OTHERS_MAX)
            if one.table_id.catalog == kept.table_id.catalog and one.table_id not in {*treated, kept.table_id}
        ]
        others = [sums.of_table(one.table_id, since) for one in read[:OTHERS_MAX]]
        return effects.scanned(sums.of_table(kept.table_id, since), others, accepted_at, carried.at, now)


def unless_reverted(found: Recommendation, table_id: TableId, store: SqlRecommendations) -> Recommendation:
    """What an analysis recommends, but to leave the table where just that was taken back, by queries of before then."""
    since = None if found.evidence.test is None else found.evidence.test.since
    for kept in store.in_state(RecommendationState.REVERTED, REVERTED_MAX, table_id):
        decision = kept.decision
        if decision is None or not is_same_change(kept.recommendation.candidate, found.candidate):
            continue
        if since is None or since < decision.at:
            text = (
                f"{found.candidate} was taken back ({kept.recommendation_id}), and queries from before that judge it "
                f"again: {found.reason.text}"
            )
            reason = Reason(REVERTED_BEFORE, text, found.reason.figures)
            return replace(found, verdict=Verdict.LEAVE, candidate=LEAVE, reason=reason, judged=())
    return found


def is_same_change(one: Candidate, other: Candidate) -> bool:
    """Whether both come to the same. Cuts of the same columns do: each analysis takes others from other queries."""
    if isinstance(one, LayoutChange) and isinstance(other, LayoutChange) and one.layout.curve is Curve.CUTS:
        columns = [{column.path for column in each.layout.columns} for each in (one, other)]
        return other.layout.curve is Curve.CUTS and columns[0] == columns[1]
    return one == other


def predicted_change(said: Recommendation) -> Interval | None:
    """What later queries were expected to read more, as a share of what they read then."""
    test: Prediction | None = None if said.chosen is None else said.chosen.test
    if test is None or not test.bytes_read_now:
        return None
    read = test.bytes_read
    return Interval(*(value / test.bytes_read_now - 1 for value in (read.low, read.mean, read.high)))


def _not_by_bounds(found: PlannedReads) -> PlannedReads:
    text = "bounds of files do not say what a property of the files brings: only what engines read does"
    return replace(found, effect=Effect.UNKNOWN, reason=Reason(effects.NOT_BY_BOUNDS, text))


@dataclass(frozen=True, slots=True)
class MeasuringTasks:
    """What the ledger has others do: plan what is asked for, and queue a plan."""

    plan: Callable[[TableName, AnalyzeQueriesRequest, TableId], Plan]
    apply: Callable[[str], Task]


class Ledger:
    """Has accepted recommendations measured, and takes back those that read more than before; by who leads."""

    def __init__(
        self,
        recommendations: Recommendations,
        catalogs: Mapping[str, Catalog],
        tables: TableStore,
        tasks: TaskStore,
        queries: QueryLog,
        policy: Callable[[TableMetadata], Policy],
        measuring: MeasuringTasks,
        clock: Clock,
    ) -> None:
        self._recommendations, self._catalogs, self._tables, self._tasks = recommendations, catalogs, tables, tasks
        self._queries, self._policy, self._measuring, self._clock = queries, policy, measuring, clock
        self._stepped_at: Instant | None = None
        self._left: deque[str] = deque()
        """Recommendations that are still to be looked at: their ids."""
        self._away: set[str] = set()
        """Catalogs that did not answer since it was begun to look through them: each is asked once."""

    def keep_ledger(self) -> None:
        """Look through accepted recommendations, if that is due; :data:`AT_ONCE` of them, and the rest next time.

        One that makes trouble stops no other, not even where the trouble passes through: who calls goes on behind it.
        """
        now = self._clock.now()
        if not self._recommendations.is_kept:
            return
        if not self._left:
            if self._stepped_at is not None and self._stepped_at <= now < self._stepped_at + STEP_MS:
                return
            self._left.extend(self._last_accepted())
            self._stepped_at = now
            self._away.clear()
        for _ in range(min(AT_ONCE, len(self._left))):
            recommendation_id = self._left.popleft()
            try:
                self._look(recommendation_id, now)
            except StoreUnavailable:
                self._left.appendleft(recommendation_id)
                raise

    def _last_accepted(self) -> list[str]:
        """Of several that were accepted of a table the last one: it has the files."""
        accepted = self._recommendations.store.decided(RecommendationState.ACCEPTED)
        found: dict[TableId, str] = {}
        for one in sorted(accepted, key=lambda one: one.at, reverse=True):
            found.setdefault(one.table_id, one.recommendation_id)
        return list(found.values())

    def _look(self, recommendation_id: str, now: Instant) -> None:
        try:
            kept = self._recommendations.store.get(recommendation_id)
        except NotFound:
            return  # it was forgotten meanwhile
        if kept.state is not RecommendationState.ACCEPTED or kept.table_id.catalog in self._away:
            return
        try:
            self._keep(kept, now)
        except StoreUnavailable:
            raise
        except IcewrightError as error:
            if isinstance(error, Unavailable) and not isinstance(error, (Unreadable, StorageUnavailable)):
                self._away.add(kept.table_id.catalog)
            table = str(kept.recommendation.table)
            _log.warning("a recommendation is not measured now", table=table, code=error.code, detail=error.message)

    def _keep(self, kept: KeptRecommendation, now: Instant) -> None:
        latest = self._recommendations.store.measurements.latest(kept.recommendation_id)
        if latest is not None and latest.effect is Effect.WORSE:
            self._take_back(kept, latest)
            return
        is_due = latest is None or not latest.made_at <= now < latest.made_at + MEASURED_EVERY_MS
        if is_due and self._queries.table is not None:
            self._measure(kept, now)

    def _measure(self, kept: KeptRecommendation, now: Instant) -> None:
        if self._is_tried(kept, now):
            return
        metadata = self._load(kept)
        if metadata is None or not is_in_force(kept, metadata):
            return
        done = carried_out(self._tasks, kept, metadata)
        if done is None:
            return
        measure = _asked(kept, done)
        if measure is None:
            return
        plan = self._measuring.plan(metadata.name, AnalyzeQueriesRequest(measure=measure), kept.table_id)
        if plan.actions:
            self._measuring.apply(plan.plan_id)

    def _is_tried(self, kept: KeptRecommendation, now: Instant) -> bool:
        """Whether its table is being analyzed, or measuring it was tried within a day."""
        for task in self._tasks.tasks(TaskFilter(None, kept.table_id, ActionKind.ANALYZE_QUERIES), limit=20):
            if task.state in LIVE_STATES:
                return True
            measure = task.action.measure if isinstance(task.action, AnalyzeQueries) else None
            is_ours = measure is not None and measure.recommendation_id == kept.recommendation_id
            if is_ours and task.created_at <= now < task.created_at + TRIED_AGAIN_MS:
                return True
        return False

    def _take_back(self, kept: KeptRecommendation, measurement: Measurement) -> None:
        """Recommend to go back, once; and do it where the owner lets icewright work by itself."""
        store, metadata = self._recommendations.store, self._load(kept)
        found = next((one for one in self._reverts(kept) if one.state in _RESTED), None)
        if metadata is None or (found is not None and found.state in _LEFT_TO_PEOPLE):
            return
        if found is not None and found.state is RecommendationState.ACCEPTING:
            if found.decision is not None and found.decision.by == BY_ITSELF:
                self._accept(found)  # its answer was lost
            return
        if not is_in_force(kept, metadata):
            return
        if found is None:
            said, now = _to_revert(kept, measurement), self._clock.now()
            found = store.get(store.keep(kept.table_id, measurement.task_id, now, said))
        is_auto = self._policy(metadata).mode is Mode.AUTO
        self._tell(kept, found, measurement, is_auto=is_auto)
        if is_auto:
            self._accept(found)

    def _accept(self, found: KeptRecommendation) -> None:
        def obstacle(_: TableMetadata, policy: Policy) -> Reason | None:
            text = "the mode of its table is not auto any more"
            return None if policy.mode is Mode.AUTO else Reason("mode-changed", text)

        self._recommendations.accept(found.recommendation_id, BY_ITSELF, obstacle=obstacle)

    def _reverts(self, kept: KeptRecommendation) -> Sequence[KeptRecommendation]:
        found = self._recommendations.store.list(limit=100, table_id=kept.table_id)
        return [one for one in found if _reverted_id(one) == kept.recommendation_id]

    def _tell(
        self, kept: KeptRecommendation, revert: KeptRecommendation, measurement: Measurement, *, is_auto: bool
    ) -> None:
        """Say it before it is done: a server that dies in between says it at least."""
        done = "icewright takes it back; files are not rewritten again for that"
        waits = f"{revert.recommendation_id} recommends to take it back"
        text = f"{kept.recommendation.candidate}: {measurement.reason.text}; {done if is_auto else waits}"
        figures = {"recommendation": kept.recommendation_id, "revert": revert.recommendation_id}
        record = self._tables.record(kept.table_id)
        name = kept.recommendation.table if record is None else record.name
        fact = Fact(FactKind.REGRESSED, kept.table_id.catalog, Reason(REGRESSED, text, figures), kept.table_id, name)
        self._tasks.feed.tell(fact, f"{FactKind.REGRESSED}/{revert.recommendation_id}/{is_auto}")

    def _load(self, kept: KeptRecommendation) -> TableMetadata | None:
        """The table; None where it is another one by now, or none."""
        record = self._tables.record(kept.table_id)
        catalog = None if record is None else self._catalogs.get(record.name.catalog)
        if record is None or catalog is None or record.dropped_at is not None:
            return None
        metadata = catalog.load(record.name)
        return metadata if metadata.table_id == kept.table_id else None


def is_in_force(kept: KeptRecommendation, metadata: TableMetadata) -> bool:
    """Whether what accepting it set is still set: what an owner changed since, or had set before, is not judged."""
    was = {} if kept.decision is None else kept.decision.was or {}
    wanted = accepted_properties(kept, was)
    return bool(wanted) and all(metadata.properties.get(key) == value for key, value in wanted.items())


def accepted_properties(kept: KeptRecommendation, was: Mapping[str, str | None]) -> dict[str, str | None]:
    """What accepting a recommendation has set, without what was so already."""
    wanted = properties_of(kept.recommendation)
    return {key: value for key, value in wanted.items() if key in was}


def _asked(kept: KeptRecommendation, done: CarriedOut) -> Measure | None:
    """How a recommendation is measured; None where it is not known of which snapshot it was accepted."""
    decision, window = kept.decision, kept.recommendation.evidence.test
    if decision is None or decision.snapshot_id is None:
        return None
    judged = (done.at, done.at) if window is None else (window.since, window.until)
    return Measure(kept.recommendation_id, decision.snapshot_id, *judged, done.at)


def _reverted_id(kept: KeptRecommendation) -> str | None:
    candidate = kept.recommendation.candidate
    return candidate.recommendation_id if isinstance(candidate, Revert) else None


def _to_revert(kept: KeptRecommendation, measurement: Measurement) -> Recommendation:
    said = kept.recommendation
    was = {} if kept.decision is None else kept.decision.was or {}
    text = f"What {kept.recommendation_id} set ({said.candidate}) has not paid: {measurement.reason.text}."
    caveat = Reason("not-rewritten", "Files stay as they are, until other work rewrites them.")
    return Recommendation(
        said.table,
        Verdict.REVERT,
        Reason(REGRESSED, text, {"measured_by": measurement.task_id}),
        Revert(kept.recommendation_id, was),
        said.evidence,
        said.rates,
        caveats=(caveat,),
    )
