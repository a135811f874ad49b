"""Recommendations in the store: each once, the newest of a table in place of the one before, one decision at a time."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import ColumnElement, Engine, RowMapping, and_, delete, insert, or_, select, update

from icewright.audit.sql import record
from icewright.core.errors import Conflict, NotFound
from icewright.core.times import Instant
from icewright.model.access.permissions import EVERYWHERE, Act, Scopes
from icewright.model.iceberg.names import TableId
from icewright.model.queries.decisions import (
    RECOMMENDATION,
    UNDECIDED,
    Decision,
    KeptRecommendation,
    RecommendationState,
    recommendation_of,
)
from icewright.model.queries.recommendations import Recommendation, Verdict
from icewright.recommendations.measurements_sql import SqlMeasurements, keep_judged
from icewright.recommendations.schema import judged_queries, measurements, recommendations
from icewright.store import transactions
from icewright.store.documents import dump, load, load_optional
from icewright.store.scope_filters import ids_like, of_tables_in
from icewright.store.table_rows import is_table
from icewright.store.transactions import reading, writing

_REVERT: Final = Verdict.REVERT.value


class SqlRecommendations:
    """Recommendations. Safe for use by several threads, and by several servers.

    All methods raise :class:`~icewright.core.errors.Unavailable` when the store does not answer.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def measurements(self) -> SqlMeasurements:
        """What accepted ones have brought."""
        return SqlMeasurements(self._engine)

    def keep(self, table_id: TableId, task_id: str, made_at: Instant, recommendation: Recommendation) -> str:
        """Keep what a task recommends, and give its id; those of the table that nobody decided on are replaced.

        What the task recommended before stays as it was kept.
        """
        found, kept = recommendation_of(task_id), recommendations.c
        is_revert = recommendation.verdict is Verdict.REVERT
        with writing(self._engine) as connection:
            if connection.scalar(select(kept.task_id).where(kept.recommendation_id == found)) is None:
                open_ones = (*is_table(recommendations, table_id), _is_in(*UNDECIDED))
                # What did not pay stays to be taken back, whatever is found since.
                others = kept.verdict == recommendation.verdict.value if is_revert else kept.verdict != _REVERT
                replaced = update(recommendations).where(*open_ones, others)
                connection.execute(replaced.values(state=RecommendationState.REPLACED.value))
                if recommendation.judged:
                    keep_judged(connection, found, table_id, recommendation.judged, made_at)
                row = {
                    "recommendation_id": found,
                    "catalog": table_id.catalog,
                    "table_uuid": table_id.uuid,
                    "task_id": task_id,
                    "made_at": made_at,
                    "verdict": recommendation.verdict.value,
                    "recommendation": dump(replace(recommendation, judged=())),
                    "state": RecommendationState.OPEN.value,
                }
                connection.execute(insert(recommendations).values(row))
        return found

    def get(self, recommendation_id: str) -> KeptRecommendation:
        """One of them. Raises :class:`NotFound`."""
        query = select(recommendations).where(recommendations.c.recommendation_id == recommendation_id)
        with reading(self._engine) as connection:
            row = connection.execute(query).mappings().one_or_none()
        if row is None:
            raise NotFound(
                f"no recommendation {recommendation_id}", hint="`icewright recommendations list` lists those there are"
            )
        return kept_recommendation(row)

    def newest(self, table_id: TableId) -> KeptRecommendation | None:
        """The newest one of a table, None where there is none."""
        return next(iter(self.list(limit=1, table_id=table_id)), None)

    def list(
        self,
        *,
        limit: int,
        before: tuple[Instant, str] | None = None,
        table_id: TableId | None = None,
        only_open: bool = False,
        within: Scopes = EVERYWHERE,
    ) -> Sequence[KeptRecommendation]:
        """Those of tables in scopes, the newest first.

        ``only_open`` leaves out those that are decided, replaced, or recommend to leave the table as it is; snoozed
        ones are among the rest, whose state says until when.
        """
        kept = recommendations.c
        query = select(recommendations).where(*of_tables_in(within, recommendations))
        if table_id is not None:
            query = query.where(*is_table(recommendations, table_id))
        if only_open:
            is_open = _is_in(*UNDECIDED, RecommendationState.ACCEPTING)  # accepted again where nothing ended it
            query = query.where(is_open, kept.verdict != Verdict.LEAVE.value)
        if before is not None:
            at, recommendation_id = before
            earlier = and_(kept.made_at == at, kept.recommendation_id < recommendation_id)
            query = query.where(or_(kept.made_at < at, earlier))
        query = query.order_by(kept.made_at.desc(), kept.recommendation_id.desc()).limit(limit)
        with reading(self._engine) as connection:
            return [kept_recommendation(row) for row in connection.execute(query).mappings()]

    def in_state(self, state: RecommendationState, limit: int, table_id: TableId) -> Sequence[KeptRecommendation]:
        """Those of a table in a state, the newest first."""
        kept = recommendations.c
        query = select(recommendations).where(_is_in(state), *is_table(recommendations, table_id))
        query = query.order_by(kept.made_at.desc(), kept.recommendation_id.desc()).limit(limit)
        with reading(self._engine) as connection:
            return [kept_recommendation(row) for row in connection.execute(query).mappings()]

    def decided(self, *states: RecommendationState) -> Sequence[DecidedOn]:
        """Which changes are in any of these states, of all tables, the newest first; without what they say."""
        kept = recommendations.c
        query = select(kept.recommendation_id, kept.catalog, kept.table_uuid, kept.decision)
        query = query.where(_is_in(*states), kept.verdict == Verdict.CHANGE.value)
        query = query.order_by(kept.made_at.desc(), kept.recommendation_id.desc())
        with reading(self._engine) as connection:
            rows = connection.execute(query).mappings().all()
        return [
            DecidedOn(row["recommendation_id"], TableId(row["catalog"], row["table_uuid"]), decision.at)
            for row in rows
            if (decision := load_optional(Decision, row["decision"])) is not None
        ]

    def decide(
        self,
        recommendation_id: str,
        decision: Decision,
        *,
        of: Collection[RecommendationState] = UNDECIDED,
        act: Act | None = None,
    ) -> KeptRecommendation:
        """Keep a decision about one that is in a state ``of`` those; ``act`` is written into the audit with it.

        Raises :class:`NotFound`, and :class:`Conflict` where it is in another one.
        """
        kept = recommendations.c
        with writing(self._engine) as connection:
            query = select(recommendations).where(kept.recommendation_id == recommendation_id)
            row = connection.execute(query).mappings().one_or_none()
            if row is None:
                raise NotFound(f"no recommendation {recommendation_id}")
            before = kept_recommendation(row)
            if before.state not in of:
                by = "" if before.decision is None else f" by {before.decision.by}"
                again = f"`icewright recommend {before.recommendation.table}` makes a new one"
                raise Conflict(f"{recommendation_id} is {before.state}{by}", hint=again)
            changed = update(recommendations).where(kept.recommendation_id == recommendation_id)
            connection.execute(changed.values(state=decision.state.value, decision=dump(decision)))
            if act is not None:
                record(connection, transactions.now(connection, None), act)
        return self.get(recommendation_id)

    def ids_like(self, part: str, within: Scopes, limit: int) -> Sequence[str]:
        """Ids that begin or end with ``part``, of tables in scopes."""
        with reading(self._engine) as connection:
            query = ids_like(recommendations.c.recommendation_id, RECOMMENDATION, part, within, limit)
            return list(connection.scalars(query))

    def prune(self, before: Instant, limit: int) -> int:
        """Forget those that were made before then, the oldest first; how many there were."""
        kept = recommendations.c
        with writing(self._engine) as connection:
            query = select(kept.recommendation_id).where(kept.made_at < before).order_by(kept.made_at).limit(limit)
            found = list(connection.scalars(query))
            for rows in (judged_queries, measurements, recommendations) if found else ():
                connection.execute(delete(rows).where(rows.c.recommendation_id.in_(found)))
            return len(found)


@dataclass(frozen=True, slots=True)
class DecidedOn:
    """A recommendation, its table, and when it was decided."""

    recommendation_id: str
    table_id: TableId
    at: Instant


def kept_recommendation(row: RowMapping) -> KeptRecommendation:
    """A row of ``recommendations`` as what it says."""
    return KeptRecommendation(
        row["recommendation_id"],
        TableId(row["catalog"], row["table_uuid"]),
        row["task_id"],
        row["made_at"],
        load(Recommendation, row["recommendation"]),
        RecommendationState(row["state"]),
        load_optional(Decision, row["decision"]),
    )


def _is_in(*states: RecommendationState) -> ColumnElement[bool]:
    return recommendations.c.state.in_([state.value for state in states])
