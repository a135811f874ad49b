"""What queries of tables took, in the store: sums by table, week and template, each query once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from sqlalchemy import Connection, Engine, Float, and_, cast, delete, func, insert, select, update

from icewright.core.times import Instant
from icewright.events.schema import event_cursors
from icewright.model.access.permissions import EVERYWHERE, Scopes
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.queries.templates import OTHER_TEMPLATES, Sums, Template, TemplateWeek
from icewright.queries.schema import query_templates
from icewright.store import transactions
from icewright.store.documents import dump, load
from icewright.store.schema import tables
from icewright.store.scope_filters import records_in
from icewright.store.table_rows import is_one_of, is_table
from icewright.store.transactions import asking, reading, writing

TEMPLATES_MAX: Final = 1_000
"""Templates of one table and week that are counted apart; queries of others are summed together."""
ROWS_MAX: Final = 5_000
"""Templates and weeks of a table that are read at once."""
_KEYS_AT_ONCE: Final = 200
_Key: TypeAlias = tuple[TableId, Instant, str]


@dataclass(frozen=True, slots=True)
class TableReads:
    """How often a table was read, and what was read of it as far as engines said so."""

    table_id: TableId
    name: TableName
    queries: int
    bytes_read: int


class SqlQuerySums:
    """Sums of queries. Safe for use by several threads, and by several servers.

    All methods raise :class:`~icewright.core.errors.Unavailable` when the store does not answer.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def position(self, spool_id: str) -> int:
        """Up to where queries of a spool are counted."""
        with reading(self._engine) as connection:
            return _position(connection, spool_id)

    def add(self, spool_id: str, after: int, through: int, weeks: Iterable[TemplateWeek]) -> bool:
        """Add queries of a spool between two places, and say whether it was this call that did: each counts once."""
        with writing(self._engine) as connection:
            if _position(connection, spool_id) != after:
                return False
            for week in _merged(weeks).values():
                _add(connection, week)
            name = _cursor(spool_id)
            values = {"position": through, "updated_at": transactions.now(connection)}
            moved = update(event_cursors).where(event_cursors.c.name == name).values(values)
            if connection.execute(moved).rowcount == 0:
                connection.execute(insert(event_cursors).values(name=name, **values))
            return True

    def of_table(self, table_id: TableId, since: Instant) -> Sequence[TemplateWeek]:
        """Templates of the weeks that began at ``since`` or later; the dearest first: by bytes, then by queries.

        The first :data:`ROWS_MAX` of them.
        """
        kept = query_templates.c
        query = select(query_templates).where(*is_table(query_templates, table_id), kept.week_at >= since)
        query = query.order_by(kept.bytes_read.desc(), kept.queries.desc(), kept.week_at, kept.fingerprint)
        query = query.limit(ROWS_MAX)
        with reading(self._engine) as connection:
            return [
                TemplateWeek(table_id, row["week_at"], load(Template, row["template"]), load(Sums, row["sums"]))
                for row in connection.execute(query).mappings()
            ]

    def queries_of(self, table_id: TableId, since: Instant) -> int:
        """How many queries of a table there were in the weeks since then."""
        kept = query_templates.c
        query = select(func.sum(cast(kept.queries, Float)))
        query = query.where(*is_table(query_templates, table_id), kept.week_at >= since)
        with reading(self._engine) as connection:
            return int(connection.scalar(query) or 0)

    def weeks_of(self, table_id: TableId, since: Instant) -> Mapping[Instant, int]:
        """How many queries of a table there were in each week since then that has any, by its beginning."""
        kept = query_templates.c
        query = select(kept.week_at, func.sum(cast(kept.queries, Float)))
        query = query.where(*is_table(query_templates, table_id), kept.week_at >= since).group_by(kept.week_at)
        with asking(self._engine, beside=True) as connection:
            return {int(week_at): int(queries) for week_at, queries in connection.execute(query)}

    def tables(self, since: Instant, limit: int, within: Scopes = EVERYWHERE) -> Sequence[TableReads]:
        """Tables in scopes that were read in the weeks since then, those of most bytes first."""
        kept = query_templates.c
        sums = func.sum(cast(kept.bytes_read, Float)), func.sum(cast(kept.queries, Float))  # the sum may be any
        same = and_(tables.c.catalog == kept.catalog, tables.c.table_uuid == kept.table_uuid)
        query = select(kept.catalog, kept.table_uuid, tables.c.name, *sums).join(tables, same)
        query = query.where(kept.week_at >= since, tables.c.dropped_at.is_(None), *records_in(within))
        query = query.group_by(kept.catalog, kept.table_uuid, tables.c.name)
        query = query.order_by(sums[0].desc(), sums[1].desc(), kept.catalog, kept.table_uuid).limit(limit)
        with reading(self._engine) as connection:
            return [
                TableReads(TableId(catalog, uuid), load(TableName, name), int(queries), int(bytes_read))
                for catalog, uuid, name, bytes_read, queries in connection.execute(query)
            ]

    def prune(self, before: Instant, limit: int) -> int:
        """Forget sums of weeks that began before then, the oldest first; how many there were.

        Also up to where spools were counted of which nothing was counted since: they are gone, or have nothing waiting.
        """
        kept = query_templates.c
        keys = (kept.catalog, kept.table_uuid, kept.week_at, kept.fingerprint)
        with writing(self._engine) as connection:
            query = select(*keys).where(kept.week_at < before).order_by(kept.week_at).limit(limit)
            found = connection.execute(query).all()
            for start in range(0, len(found), _KEYS_AT_ONCE):
                these = found[start : start + _KEYS_AT_ONCE]
                connection.execute(delete(query_templates).where(is_one_of(keys, these)))
            idle = event_cursors.c.name.like(f"{_CURSOR}%"), event_cursors.c.updated_at < before
            names = select(event_cursors.c.name).where(*idle).order_by(event_cursors.c.name).limit(limit)
            gone = list(connection.scalars(names))
            if gone:
                connection.execute(delete(event_cursors).where(event_cursors.c.name.in_(gone)))
            return len(found)


_CURSOR: Final = "queries:"


def _cursor(spool_id: str) -> str:
    return f"{_CURSOR}{spool_id}"


def _position(connection: Connection, spool_id: str) -> int:
    query = select(event_cursors.c.position).where(event_cursors.c.name == _cursor(spool_id))
    return int(connection.scalar(query) or 0)


def _merged(weeks: Iterable[TemplateWeek]) -> Mapping[_Key, TemplateWeek]:
    found: dict[_Key, TemplateWeek] = {}
    for week in weeks:
        key = (week.table_id, week.week_at, week.template.fingerprint)
        known = found.get(key)
        found[key] = week if known is None else replace(known, sums=known.sums + week.sums)
    return found


def _add(connection: Connection, week: TemplateWeek) -> None:
    """Add to what is kept; to what stands for the others where the table has too many templates in this week."""
    kept, fingerprint = query_templates.c, week.template.fingerprint
    of_week = (*is_table(query_templates, week.table_id), kept.week_at == week.week_at)
    known = connection.scalar(select(kept.sums).where(*of_week, kept.fingerprint == fingerprint))
    if known is None and week.template != OTHER_TEMPLATES:
        number = connection.scalar(select(func.count()).select_from(query_templates).where(*of_week)) or 0
        if number >= TEMPLATES_MAX:
            _add(connection, replace(week, template=OTHER_TEMPLATES))
            return
    sums = week.sums if known is None else load(Sums, known) + week.sums
    values = {"sums": dump(sums), "queries": sums.queries, "bytes_read": sums.bytes_read}
    if known is not None:
        connection.execute(update(query_templates).where(*of_week, kept.fingerprint == fingerprint).values(values))
        return
    row = {
        "catalog": week.table_id.catalog,
        "table_uuid": week.table_id.uuid,
        "week_at": week.week_at,
        "fingerprint": fingerprint,
        "template": dump(week.template),
    }
    connection.execute(insert(query_templates).values(row | values))
