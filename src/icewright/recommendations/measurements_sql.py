"""What accepted recommendations have brought, in the store, with what is kept of the queries that judged them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from sqlalchemy import ColumnElement, Connection, Engine, RowMapping, and_, func, insert, or_, select

from icewright.core.times import Instant
from icewright.model.iceberg.names import TableId
from icewright.model.queries.measurements import Effect, Measurement
from icewright.model.queries.recommendations import JudgedQuery
from icewright.recommendations.schema import judged_queries, measurements
from icewright.store.documents import dump, load
from icewright.store.table_rows import is_table
from icewright.store.transactions import reading, writing

JudgedQueries: TypeAlias = tuple[JudgedQuery, ...]

_NEWER: Final = measurements.alias("newer")
_IS_NEWEST: Final = ~(
    select(_NEWER.c.task_id)
    .where(
        _NEWER.c.recommendation_id == measurements.c.recommendation_id,
        or_(
            _NEWER.c.made_at > measurements.c.made_at,
            and_(_NEWER.c.made_at == measurements.c.made_at, _NEWER.c.task_id > measurements.c.task_id),
        ),
    )
    .correlate(measurements)
    .exists()
)


def keep_judged(
    connection: Connection, recommendation_id: str, table_id: TableId, queries: Sequence[JudgedQuery], made_at: Instant
) -> None:
    """Keep what queries opened when they judged a recommendation."""
    row = {
        "recommendation_id": recommendation_id,
        "catalog": table_id.catalog,
        "table_uuid": table_id.uuid,
        "made_at": made_at,
        "queries": dump(tuple(queries)),
    }
    connection.execute(insert(judged_queries).values(row))


class SqlMeasurements:
    """Measurements. Safe for use by several threads, and by several servers.

    All methods raise :class:`~icewright.core.errors.Unavailable` when the store does not answer.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def judged(self, recommendation_id: str) -> Mapping[str, JudgedQuery]:
        """What queries opened when they judged a recommendation, by their keys; nothing where nothing is kept."""
        query = select(judged_queries.c.queries).where(judged_queries.c.recommendation_id == recommendation_id)
        with reading(self._engine) as connection:
            found = connection.scalar(query)
        return {} if found is None else {one.key: one for one in load(JudgedQueries, found)}

    def keep(self, measurement: Measurement) -> None:
        """Keep what a task has measured; what it measured before stays as it was kept."""
        row = {
            "task_id": measurement.task_id,
            "recommendation_id": measurement.recommendation_id,
            "catalog": measurement.table_id.catalog,
            "table_uuid": measurement.table_id.uuid,
            "made_at": measurement.made_at,
            "effect": measurement.effect.value,
            "measurement": dump(measurement),
        }
        with writing(self._engine) as connection:
            known = select(measurements.c.task_id).where(measurements.c.task_id == measurement.task_id)
            if connection.scalar(known) is None:
                connection.execute(insert(measurements).values(row))

    def latest(self, recommendation_id: str) -> Measurement | None:
        """The newest one of a recommendation."""
        found = self.of_recommendation(recommendation_id, 1)
        return found[0] if found else None

    def of_recommendation(self, recommendation_id: str, limit: int = 100) -> Sequence[Measurement]:
        """Those of a recommendation, the newest first."""
        return self._of((measurements.c.recommendation_id == recommendation_id,), limit)

    def newest_of_table(self, table_id: TableId) -> Mapping[str, Measurement]:
        """The newest one of each recommendation of a table, by its id."""
        return {one.recommendation_id: one for one in self._of((*is_table(measurements, table_id), _IS_NEWEST), 100)}

    def effects(self) -> Mapping[Effect, int]:
        """How many recommendations were measured, by what was measured of each last."""
        query = select(measurements.c.effect, func.count()).where(_IS_NEWEST).group_by(measurements.c.effect)
        with reading(self._engine) as connection:
            return {Effect(effect): count for effect, count in connection.execute(query)}

    def _of(self, where: Iterable[ColumnElement[bool]], limit: int) -> Sequence[Measurement]:
        query = select(measurements).where(*where)
        query = query.order_by(measurements.c.made_at.desc(), measurements.c.task_id.desc()).limit(limit)
        with reading(self._engine) as connection:
            return [_measurement(row) for row in connection.execute(query).mappings()]


def _measurement(row: RowMapping) -> Measurement:
    return load(Measurement, row["measurement"])
