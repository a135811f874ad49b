"""The audit in an SQL database, and the one line by which other stores write into it within their own transactions.

Entries are written with what they tell of, and linked into the chain later, many at once: by whoever reads the audit,
and by the server that leads in each round. So nobody waits for the end of the chain who writes one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Engine, bindparam, delete, func, insert, select

from icewright.audit.acting import acting
from icewright.audit.model import GENESIS, AuditEntry, Head, link, pruned
from icewright.core.clock import Clock
from icewright.core.times import Instant
from icewright.model.access.permissions import Act, Detail
from icewright.store import transactions
from icewright.store.documents import dump, load, text_of
from icewright.store.locks import Lock, LockKind
from icewright.store.schema_access import audit, audit_start, unlinked_audit
from icewright.store.transactions import reading, writing

_DETAIL: Final[Any] = Detail
LINKED_AT_ONCE: Final = 1_000
"""Entries that one transaction links."""
_CHAIN: Final = (Lock(LockKind.AUDIT),)
_FIRST: Final = select(unlinked_audit).order_by(unlinked_audit.c.number).limit(LINKED_AT_ONCE)
_LINKED: Final = delete(unlinked_audit).where(unlinked_audit.c.number.in_(bindparam("numbers", expanding=True)))


def record(connection: Connection, at: Instant, *acts: Act | None) -> None:
    """Write entries in the transaction of what they tell of; None is nothing to write."""
    rows = [
        {
            "at": at,
            "principal": dump(acting()),
            "action": act.action,
            "resource": dump(act.resource),
            "detail": dump(dict(act.detail)),
        }
        for act in acts
        if act is not None
    ]
    if rows:
        connection.execute(insert(unlinked_audit).inline(), rows)


class SqlAudit:
    """What was done by whom: entries are only ever added, and chained (:mod:`icewright.audit.model`).

    Stores of tasks, deletions and tokens write their entries themselves, in the transaction of the change. All methods
    raise :class:`~icewright.core.errors.Unavailable` when the store does not answer: then nothing may be done.

    Time is the database's unless ``clock`` is given.
    """

    def __init__(self, engine: Engine, clock: Clock | None = None) -> None:
        self._engine = engine
        self._clock = clock

    def append(self, act: Act) -> None:
        """Write an entry for :func:`acting`, at the store's time."""
        with writing(self._engine, ()) as connection:
            record(connection, transactions.now(connection, self._clock), act)

    def link(self) -> None:
        """Link the entries that were written, in the order in which they were."""
        while True:
            with reading(self._engine) as connection:
                if connection.execute(_FIRST.limit(1)).first() is None:
                    return
            with writing(self._engine, _CHAIN) as connection:
                _link(connection)

    def entries(self, *, limit: int, after: int) -> Sequence[AuditEntry]:
        """Entries by number, those behind ``after``."""
        self.link()
        with reading(self._engine) as connection:
            return _entries(
                connection, select(audit).where(audit.c.number > after).order_by(audit.c.number).limit(limit)
            )

    def latest(self, *, limit: int, before: int | None = None) -> Sequence[AuditEntry]:
        """Entries, the newest first, those before a number if it is given."""
        self.link()
        query = select(audit).order_by(audit.c.number.desc()).limit(limit)
        if before is not None:
            query = query.where(audit.c.number < before)
        with reading(self._engine) as connection:
            return _entries(connection, query)

    def start(self) -> Head:
        """What the first entry that is there follows: the checkpoint behind which the chain begins."""
        with reading(self._engine) as connection:
            return _start(connection)

    def head(self) -> Head:
        """The end of the chain."""
        self.link()
        with reading(self._engine) as connection:
            return _head(connection)

    def prune(self, before: Instant, limit: int) -> int:
        """Forget at most so many entries of before an instant, the oldest first, and write an entry that says so.

        The latest entry stays. How many were forgotten.
        """
        self.link()
        with writing(self._engine, _CHAIN) as connection:
            first = _start(connection).number
            # The clock may have gone back in between: what goes ends before the first entry that is young enough.
            young = connection.scalar(select(func.min(audit.c.number)).where(audit.c.at >= before))
            last = min(_head(connection).number - 1, first + limit, *(() if young is None else (young - 1,)))
            if last <= first:
                return 0
            (entry,) = _entries(connection, select(audit).where(audit.c.number == last))
            connection.execute(delete(audit).where(audit.c.number <= last))
            connection.execute(delete(audit_start))
            connection.execute(insert(audit_start).values(number=entry.number, hash=entry.hash))
            said = link(_head(connection), transactions.now(connection, self._clock), acting(), pruned(entry.head))
            connection.execute(insert(audit).values(_row(said)))
            return last - first


def _link(connection: Connection) -> None:
    rows, head, found = connection.execute(_FIRST).mappings().all(), _head(connection), []
    for row in rows:
        act = Act(row["action"], text_of(row["resource"]), load(_DETAIL, row["detail"]))
        entry = link(head, row["at"], text_of(row["principal"]), act)
        head = entry.head
        found.append(_row(entry))
    if found:
        connection.execute(insert(audit), found)
        # By their numbers: a transaction that ends meanwhile may have taken one that lies between them.
        connection.execute(_LINKED, {"numbers": [row["number"] for row in rows]})


def _start(connection: Connection) -> Head:
    row = connection.execute(select(audit_start.c.number, audit_start.c.hash)).one_or_none()
    return GENESIS if row is None else Head(row.number, row.hash)


def _head(connection: Connection) -> Head:
    query = select(audit.c.number, audit.c.hash).order_by(audit.c.number.desc()).limit(1)
    row = connection.execute(query).one_or_none()
    return _start(connection) if row is None else Head(row.number, row.hash)


def _entries(connection: Connection, query: Any) -> list[AuditEntry]:
    return [_entry(row) for row in connection.execute(query).mappings()]


def _row(entry: AuditEntry) -> dict[str, Any]:
    return {
        "number": entry.number,
        "at": entry.at,
        "principal": dump(entry.principal),
        "action": entry.action,
        "resource": dump(entry.resource),
        "detail": dump(entry.detail),
        "previous": entry.previous,
        "hash": entry.hash,
    }


def _entry(row: Mapping[Any, Any]) -> AuditEntry:
    return AuditEntry(
        number=row["number"],
        at=row["at"],
        principal=text_of(row["principal"]),
        action=row["action"],
        resource=text_of(row["resource"]),
        detail=load(_DETAIL, row["detail"]),
        previous=row["previous"],
        hash=row["hash"],
    )
