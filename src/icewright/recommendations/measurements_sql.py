"""What accepted recommendations have brought, in the store, with what is kept of the queries that judged them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from sqlalchemy import ColumnElement, Connection, Engine, RowMapping, insert, select

from icewright.core.times import Instant
from icewright.model.access.permissions import EVERYWHERE, Scopes
from icewright.model.iceberg.names import TableId
from icewright.model.queries.measurements import Effect, Measurement
from icewright.model.queries.recommendations import JudgedQuery
from icewright.recommendations.schema import judged_queries, measurements
from icewright.store.documents import dump, load
from icewright.store.scope_filters import of_tables_in
from icewright.store.table_rows import is_table
from icewright.store.transactions import reading, writing

JudgedQueries: TypeAlias = tuple[JudgedQuery, ...]


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
        found = self._of((measurements.c.recommendation_id == recommendation_id,), 1)
        return found[0] if found else None

    def effects(self) -> Mapping[Effect, int]:
        """How many recommendations were measured, by what was measured of each last."""
        kept = measurements.c
        query = select(kept.recommendation_id, kept.effect).order_by(kept.made_at, kept.task_id)
        with reading(self._engine) as connection:
            newest = {recommendation_id: Effect(effect) for recommendation_id, effect in connection.execute(query)}
        return Counter(newest.values())

    def of_table(self, table_id: TableId, limit: int = 100) -> Sequence[Measurement]:
        """Those of a table, the newest first."""
        return self._of(is_table(measurements, table_id), limit)

    def list(self, limit: int, within: Scopes = EVERYWHERE) -> Sequence[Measurement]:
        """Those of tables in scopes, the newest first."""
        return self._of(of_tables_in(within, measurements), limit)

    def _of(self, where: Iterable[ColumnElement[bool]], limit: int) -> Sequence[Measurement]:
        query = select(measurements).where(*where)
        query = query.order_by(measurements.c.made_at.desc(), measurements.c.task_id.desc()).limit(limit)
        with reading(self._engine) as connection:
            return [_measurement(row) for row in connection.execute(query).mappings()]


def _measurement(row: RowMapping) -> Measurement:
    return load(Measurement, row["measurement"])
