"""The inbox of commit events in the store: many at once, each snapshot of a table once, whatever channel it came by."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, TypeVar

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Executable,
    RowMapping,
    Select,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    union_all,
    update,
)

from icewright.core.errors import InboxFull, InboxShareFull, NotFound
from icewright.core.reasons import Reason
from icewright.core.servers import TableShare
from icewright.core.times import Instant
from icewright.events.schema import WAITS, inbox
from icewright.model.access.permissions import EVERYWHERE, Scopes
from icewright.model.events.events import (
    Channel,
    ChannelFigures,
    CommitEvent,
    EventFigures,
    EventState,
    Lag,
    ReportedCommits,
    StoredEvent,
    UnreportedTable,
)
from icewright.model.events.messages import RETRY_AFTER_MS, TRIES_MAX
from icewright.model.iceberg.names import TableName
from icewright.ports.inbox import EventFilter
from icewright.store.documents import digest, dump, load, load_optional
from icewright.store.schema import tables
from icewright.store.scope_filters import in_buckets, records_in, share_values
from icewright.store.table_rows import is_one_of

K = TypeVar("K")

_DONE: Final = (
    update(inbox)
    .where(inbox.c.event_id == bindparam("done_id"), inbox.c.done_at.is_(None))
    .values(
        done_at=bindparam("now"),
        committed_at=func.coalesce(bindparam("committed", type_=BigInteger), inbox.c.committed_at),
    )
)
"""One event after the other, in the order of their ids: two may be at the same ones at once."""
KEYS_AT_ONCE: Final = 400
"""Keys that one query asks for: every database allows two parameters for each."""
_IN_STATE: Final[Mapping[EventState, ColumnElement[bool]]] = {
    EventState.WAITING: WAITS,
    EventState.PARKED: and_(inbox.c.done_at.is_(None), inbox.c.parked_at.is_not(None)),
    EventState.DONE: inbox.c.done_at.is_not(None),
}


def receive(
    connection: Connection,
    events: Iterable[CommitEvent],
    channel: Channel,
    reporter: str,
    now: Instant,
    *,
    waiting_max: int,
    share_max: int,
) -> int:
    """Put events into the inbox, and say how many were new. Nobody else adds events of their tables meanwhile.

    Raises :class:`InboxFull` and :class:`InboxShareFull`.
    """
    rows: dict[Any, dict[str, Any]] = {}
    for number, event in enumerate(events):
        name_digest = digest(event.table_name)
        key = (name_digest, event.snapshot_id) if event.snapshot_id is not None else number
        row = {
            "name_digest": name_digest,
            "snapshot_id": event.snapshot_id,
            "event": dump(event),
            "channel": channel.value,
            "received_at": now,
            "reporter": reporter,
            "catalog": event.table_name.catalog,
        }
        rows.setdefault(key, row)
    for keys in _chunks([key for key in rows if isinstance(key, tuple)]):
        columns = (inbox.c.name_digest, inbox.c.snapshot_id)
        for found in connection.execute(select(*columns).where(is_one_of(columns, keys))):
            del rows[tuple(found)]
    if rows:
        wait, of_reporter = _count(connection, reporter, waiting_max)
        if wait >= waiting_max:
            raise InboxFull(waiting_max)
        if of_reporter + len(rows) > share_max:
            raise InboxShareFull(share_max)
        connection.execute(insert(inbox), list(rows.values()))
    return len(rows)


def waiting(connection: Connection, limit: int) -> Sequence[StoredEvent]:
    """Events not worked on yet and not parked, oldest first."""
    query = select(inbox).where(WAITS).order_by(inbox.c.event_id).limit(limit)
    return [_event_of(row) for row in connection.execute(query).mappings()]


def reported_tables(
    connection: Connection,
    limit: int,
    now: Instant,
    *,
    known: bool | None,
    tried: bool,
    without: Collection[str],
    share: TableShare | None,
) -> Sequence[TableName]:
    """See the port."""
    values: dict[str, Any] = {"most": limit, **share_values(share)}
    query = _reported_tables(known=known, tried=tried, leaves_out=bool(without), shared="beginnings" in values)
    if tried:
        values |= {_before(tries): now - after_ms for tries, after_ms in enumerate(RETRY_AFTER_MS, start=1)}
    if without:
        values["without"] = sorted(without)
    found = connection.scalars(query, values)
    return list(dict.fromkeys(load(CommitEvent, event).table_name for event in found))


@cache
def _reported_tables(*, known: bool | None, tried: bool, leaves_out: bool, shared: bool) -> Select[Any]:
    """One pass over an index of what waits, however many events there are of a table.

    Made once for each kind of question: a server asks in every round, and the query takes longer to make than to run.
    """
    due = or_(
        *(
            and_(inbox.c.tries == tries, inbox.c.tried_at <= bindparam(_before(tries)))
            for tries in range(1, len(RETRY_AFTER_MS) + 1)
        )
    )
    query = select(inbox.c.reporter, inbox.c.name_digest, func.min(inbox.c.event_id).label("first"))
    query = query.where(WAITS, due if tried else inbox.c.tries == 0)
    if leaves_out:
        query = query.where(inbox.c.catalog.not_in(bindparam("without", expanding=True)))
    if shared:
        query = query.where(in_buckets(inbox.c.name_digest))
    told = query.group_by(inbox.c.reporter, inbox.c.name_digest).subquery()
    chosen = select(
        told.c.first, func.row_number().over(partition_by=told.c.reporter, order_by=told.c.first).label("turn")
    )
    if known is not None:
        same = exists().where(tables.c.name_digest == told.c.name_digest, tables.c.dropped_at.is_(None))
        chosen = chosen.where(same if known else ~same)
    turns = chosen.subquery()
    rows = select(inbox.c.event).join(turns, inbox.c.event_id == turns.c.first)
    return rows.order_by(turns.c.turn, turns.c.first).limit(bindparam("most"))


def _before(tries: int) -> str:
    """The parameter for when an event must have been tried last that was tried so often."""
    return f"before_{tries}"


def reported_by_name(connection: Connection, name: TableName) -> Mapping[int, int | None]:
    """See the port."""
    query = select(inbox.c.event_id, inbox.c.snapshot_id).where(
        inbox.c.name_digest == digest(name), inbox.c.done_at.is_(None)
    )
    return {row.event_id: row.snapshot_id for row in connection.execute(query)}


def event(connection: Connection, event_id: int) -> StoredEvent:
    """See the port."""
    row = connection.execute(select(inbox).where(inbox.c.event_id == event_id)).mappings().one_or_none()
    if row is None:
        raise NotFound(f"no event {event_id}", hint="`icewright events list` lists those that are kept")
    return _event_of(row)


def remove(connection: Connection, event_id: int) -> None:
    """See the port."""
    event(connection, event_id)
    connection.execute(delete(inbox).where(inbox.c.event_id == event_id))


def received(connection: Connection, only: EventFilter, limit: int, before: int | None) -> Sequence[StoredEvent]:
    """Events that are kept, newest first."""
    query = select(inbox).where(*_of_tables(only.within)).order_by(inbox.c.event_id.desc()).limit(limit)
    if only.state is not None:
        query = query.where(_IN_STATE[only.state])
    if only.channel is not None:
        query = query.where(inbox.c.channel == only.channel.value)
    if only.table_name is not None:
        query = query.where(inbox.c.name_digest == digest(only.table_name))
    if before is not None:
        query = query.where(inbox.c.event_id < before)
    return [_event_of(row) for row in connection.execute(query).mappings()]


def done(connection: Connection, event_ids: Sequence[int], committed_at: Mapping[int, Instant], now: Instant) -> None:
    """Mark events as worked on, with when the table says that their snapshots were committed."""
    rows = [{"done_id": one, "committed": committed_at.get(one)} for one in sorted(event_ids)]
    connection.execute(_DONE, [{**row, "now": now} for row in rows])


def tried(connection: Connection, event_ids: Sequence[int], trouble: Reason, now: Instant, *, counts: bool) -> None:
    """Note a try that came to nothing, with why; as many as are too many park the event."""
    said: dict[str, Any] = {"tried_at": now, "trouble": dump(trouble)}
    if counts:
        said["tries"] = inbox.c.tries + 1
        said["parked_at"] = case((inbox.c.tries + 1 >= TRIES_MAX, now), else_=inbox.c.parked_at)
    for ids in _chunks(sorted(event_ids)):
        connection.execute(update(inbox).where(inbox.c.event_id.in_(_open(ids))).values(**said))


def _open(event_ids: Sequence[int]) -> Select[tuple[int]]:
    """Those of the events that are not done, locked in the order of their ids, as in :data:`_DONE`."""
    query = select(inbox.c.event_id).where(inbox.c.event_id.in_(event_ids), inbox.c.done_at.is_(None))
    return query.order_by(inbox.c.event_id).with_for_update()


def reported_commits(
    connection: Connection, name: TableName, snapshot_ids: Sequence[int], since: Instant
) -> ReportedCommits:
    """Which of the snapshots events told of, and whether one told of the table alone since an instant."""
    same = inbox.c.name_digest == digest(name)
    alone = inbox.c.snapshot_id.is_(None), inbox.c.channel != Channel.LISTING.value, inbox.c.received_at >= since
    told = select(inbox.c.snapshot_id, inbox.c.channel)
    first = told.where(same, *alone).order_by(inbox.c.event_id).limit(1).subquery()
    of_each = [told.where(same, inbox.c.snapshot_id.in_(ids)) for ids in _chunks(snapshot_ids)]
    found: dict[int | None, Channel] = {}
    queries: tuple[Executable, ...] = (union_all(select(first), *of_each[:1]), *of_each[1:])
    for query in queries:
        found.update({snapshot_id: Channel(channel) for snapshot_id, channel in connection.execute(query)})
    of_all = found.pop(None, None)
    return ReportedCommits({one: channel for one, channel in found.items() if one is not None}, of_all)


def figures(connection: Connection, limit: int, within: Scopes = EVERYWHERE) -> EventFigures:
    """How events come in, and the ``limit`` tables with most commits that only the sweep found."""
    present, ours = _present(within), _of_tables(within)
    waits = WAITS
    to_receipt = _not_negative(inbox.c.received_at - inbox.c.committed_at)
    to_look = _not_negative(inbox.c.done_at - inbox.c.received_at)
    query = (
        select(
            inbox.c.channel,
            func.count().label("events"),
            func.sum(case((waits, 1), else_=0)).label("waiting"),
            func.min(case((waits, inbox.c.received_at))).label("oldest"),
            *_lag("receipt", to_receipt),
            *_lag("look", to_look),
        )
        .where(*ours)
        .group_by(inbox.c.channel)
        .order_by(inbox.c.channel)
    )
    channels = tuple(
        ChannelFigures(
            Channel(row["channel"]),
            row["events"],
            int(row["waiting"]),
            row["oldest"],
            _lag_of(row, "receipt"),
            _lag_of(row, "look"),
        )
        for row in connection.execute(query).mappings()
    )
    sums = connection.execute(
        select(func.sum(tables.c.commits_told), func.sum(tables.c.commits_sweep_only)).where(*present)
    ).one()
    least = (
        select(tables.c.name, tables.c.commits_told, tables.c.commits_sweep_only)
        .where(*present, tables.c.commits_sweep_only > 0)
        .order_by(tables.c.commits_sweep_only.desc(), tables.c.catalog, tables.c.table_uuid)
        .limit(limit)
    )
    return EventFigures(
        channels,
        int(sums[0] or 0),
        int(sums[1] or 0),
        tuple(UnreportedTable(load(TableName, name), told, alone) for name, told, alone in connection.execute(least)),
    )


def _count(connection: Connection, reporter: str, most: int) -> tuple[int, int]:
    """How many events wait, counted no further than ``most``, and how many of these are of a reporter."""
    found = select(inbox.c.reporter).where(WAITS).limit(most).subquery()
    of_it = func.sum(case((found.c.reporter == reporter, 1)))
    wait, of_reporter = connection.execute(select(func.count(), of_it)).one()
    return wait, int(of_reporter or 0)


def _present(within: Scopes) -> tuple[ColumnElement[bool], ...]:
    return (tables.c.dropped_at.is_(None), *records_in(within))


def _of_tables(within: Scopes) -> tuple[ColumnElement[bool], ...]:
    """The condition that an event is of a table that is known in one of these scopes; none where all are."""
    if within == EVERYWHERE:
        return ()
    return (inbox.c.name_digest.in_(select(tables.c.name_digest).where(*_present(within))),)


def _chunks(keys: Sequence[K]) -> Iterator[Sequence[K]]:
    for start in range(0, len(keys), KEYS_AT_ONCE):
        yield keys[start : start + KEYS_AT_ONCE]


def _not_negative(span: ColumnElement[int]) -> ColumnElement[int]:
    """Two clocks may disagree; nothing came in before it happened."""
    return case((span < 0, 0), else_=span)


def _lag(name: str, span: ColumnElement[int]) -> tuple[ColumnElement[Any], ...]:
    return (
        func.count(span).label(f"{name}_events"),
        func.avg(span).label(f"{name}_mean"),
        func.max(span).label(f"{name}_max"),
    )


def _lag_of(row: RowMapping, name: str) -> Lag | None:
    events = row[f"{name}_events"]
    return Lag(events, round(row[f"{name}_mean"]), row[f"{name}_max"]) if events else None


def _event_of(row: RowMapping) -> StoredEvent:
    return StoredEvent(
        row["event_id"],
        load(CommitEvent, row["event"]),
        row["received_at"],
        row["done_at"],
        Channel(row["channel"]),
        row["committed_at"],
        row["tries"],
        row["tried_at"],
        load_optional(Reason, row["trouble"]),
        row["parked_at"],
    )
