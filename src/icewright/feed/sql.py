"""The feed in an SQL database.

Numbers are the database's own, and on PostgreSQL they are given before their transactions end: a greater one may be
there before a smaller one. So whoever reads up to a number first waits until those have ended that may have a smaller
one (decision 0077). PostgreSQL leaves out the numbers of transactions that were rolled back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Engine, and_, delete, func, insert, or_, select, update

from icewright.core.clock import Clock
from icewright.core.times import Instant
from icewright.feed.schema import FEED_FORGOTTEN, feed
from icewright.model.events.feed import Fact, FeedEntry, FeedFilter, FeedPage
from icewright.store import transactions
from icewright.store.documents import digest, dump, load
from icewright.store.locks import TELLS, Lock, LockKind
from icewright.store.schema import counters
from icewright.store.transactions import await_writers, reading, require_locked, writing

_APPEND: Final = insert(feed).inline()
_ORDER: Final = Lock(LockKind.FEED)


class SqlFeed:
    """The port over an engine of :func:`icewright.store.engine.open_store`."""

    def __init__(self, engine: Engine, clock: Clock | None = None) -> None:
        self._engine, self._clock = engine, clock

    def tell(self, fact: Fact, key: str) -> bool:
        """See the port."""
        with writing(self._engine) as connection:
            if connection.scalar(select(feed.c.sequence).where(feed.c.once == digest(key))) is not None:
                return False
            connection.execute(insert(feed), _row(fact, transactions.now(connection, self._clock), digest(key)))
            return True

    def after(self, sequence: int, limit: int, only: FeedFilter) -> FeedPage:
        """See the port."""
        with reading(self._engine) as connection:
            last = last_entry(connection)
        if last <= sequence:
            return FeedPage((), sequence)
        await_writers(self._engine, _ORDER)
        behind = feed.c.sequence > sequence, feed.c.sequence <= last
        query = select(feed).where(*behind, *_matches(only)).order_by(feed.c.sequence).limit(limit)
        with reading(self._engine) as connection:
            rows = connection.execute(query).mappings().all()
        found = tuple(FeedEntry(row["sequence"], row["at"], load(Fact, row["fact"])) for row in rows)
        return FeedPage(found, found[-1].sequence if len(found) == limit else last)

    def last(self) -> int:
        """See the port. What is told later has a greater number, also by a transaction that has begun."""
        with reading(self._engine) as connection:
            found = last_entry(connection)
        await_writers(self._engine, _ORDER)
        return found

    def forgotten_through(self) -> int:
        """See the port."""
        with reading(self._engine) as connection:
            return _forgotten(connection)

    def forget(self, told_before: Instant, limit: int) -> int:
        """See the port."""
        oldest = select(feed.c.sequence, feed.c.at).order_by(feed.c.sequence).limit(limit)
        with writing(self._engine) as connection:
            old = [row.sequence for row in connection.execute(oldest) if row.at < told_before]
            if old:
                connection.execute(delete(feed).where(feed.c.sequence <= old[-1]))
                connection.execute(update(counters).where(counters.c.name == FEED_FORGOTTEN).values(value=old[-1]))
            return len(old)


def append(connection: Connection, *told: tuple[Fact, Instant]) -> None:
    """Tell what became of tasks, in the transaction that changes them."""
    if told:
        require_locked(connection, TELLS)
        connection.execute(_APPEND, [_row(fact, at, None) for fact, at in told])


def _row(fact: Fact, at: Instant, once: str | None) -> dict[str, Any]:
    return {"at": at, "kind": fact.fact.value, "parts": _parts(fact.parts), "once": once, "fact": dump(fact)}


def _parts(parts: tuple[str, ...]) -> str:
    """Catalog, namespace and name as JSON in ASCII: what is below begins as it does, but for the last bracket."""
    return json.dumps(parts, separators=(",", ":"), ensure_ascii=True)


def _matches(only: FeedFilter) -> Iterator[ColumnElement[bool]]:
    if only.kinds:
        yield feed.c.kind.in_(sorted(kind.value for kind in only.kinds))
    of_all = feed.c.parts == _parts(())
    if only.under:
        yield or_(of_all, *(_is_at(parts, itself=True) for parts in only.under))
    if only.within:
        yield or_(of_all, *(_is_at(scope, itself=len(scope) == 1) for scope in only.within))


def _is_at(parts: tuple[str, ...], *, itself: bool) -> ColumnElement[bool]:
    """Whether a fact is about what is below these, or they themselves: a range, since patterns would need escapes."""
    head = _parts(parts)[:-1]
    below = and_(feed.c.parts >= f"{head},", feed.c.parts < f"{head}-")
    return or_(feed.c.parts == f"{head}]", below) if itself else below


def last_entry(connection: Connection) -> int:
    """The greatest number that was given to a fact, also when it was forgotten."""
    return max(int(connection.scalar(select(func.max(feed.c.sequence))) or 0), _forgotten(connection))


def _forgotten(connection: Connection) -> int:
    return int(connection.scalar(select(counters.c.value).where(counters.c.name == FEED_FORGOTTEN)) or 0)
