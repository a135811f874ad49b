"""What attempts log, a row for each attempt that sent any: written with its heartbeats and its report."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    delete,
    insert,
    select,
    tuple_,
    update,
)

from icewright.core.errors import Unreadable
from icewright.core.times import Instant
from icewright.model.work.tasks import LogLines
from icewright.store.documents import pack, unpack
from icewright.store.schema_access import Key, metadata

table = Table(
    "task_logs",
    metadata,
    Column("task_id", Key, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("written_at", BigInteger, nullable=False),
    Column("lines", LargeBinary, nullable=False),
    PrimaryKeyConstraint("task_id", "attempt", name="pk_task_logs"),
    ForeignKeyConstraint(["task_id"], ["tasks.task_id"], name="fk_task_logs_task"),
)
Index("ix_task_logs_written", table.c.written_at)


def add(connection: Connection, task_id: str, attempt: int, more: LogLines, now: Instant) -> None:
    """Keep more lines of an attempt; what is sent again changes nothing. The caller holds the lock of the task."""
    of_it = (table.c.task_id == task_id, table.c.attempt == attempt)
    found = connection.scalar(select(table.c.lines).where(*of_it))
    before = None if found is None else _readable(found)
    lines = more if before is None else before.followed_by(more)
    values = {"written_at": now, "lines": pack(lines)}
    if found is None:
        connection.execute(insert(table).values(task_id=task_id, attempt=attempt, **values))
    elif lines is not before:
        connection.execute(update(table).where(*of_it).values(values))


def log_of(connection: Connection, task_id: str, attempt: int) -> LogLines | None:
    """The lines of an attempt, None where there are none."""
    found = connection.scalar(select(table.c.lines).where(table.c.task_id == task_id, table.c.attempt == attempt))
    return None if found is None else _readable(found)


def prune(connection: Connection, written_before: Instant, limit: int) -> int:
    """Delete at most so many logs that were last written before, the oldest first; how many."""
    key, at = (table.c.task_id, table.c.attempt), table.c.written_at
    old = select(*key).where(at < written_before).order_by(at).limit(limit)
    found = [tuple(row) for row in connection.execute(old)]
    if found:
        connection.execute(delete(table).where(tuple_(*key).in_(found), at < written_before))
    return len(found)


def _readable(stored: bytes) -> LogLines | None:
    """Lines as they are stored; none of what another release wrote: no task waits for its log."""
    try:
        return unpack(LogLines, stored)
    except Unreadable:
        return None
