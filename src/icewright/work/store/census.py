"""What the stores count of everything they have: sums that are added to, and counts that need no scan of all tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache

from sqlalchemy import Connection, TextClause, func, select, text

from icewright.core.times import Instant
from icewright.events.schema import WAITS, inbox
from icewright.model.actions.actions import ActionKind
from icewright.model.iceberg.names import TableName
from icewright.model.work.jobs import OptimizerHello
from icewright.model.work.lifecycle import LIVE_STATES
from icewright.model.work.optimizers import Submitter
from icewright.model.work.tasks import TaskState
from icewright.model.work.totals import Total, TotalKey
from icewright.ports.census import TableCensus, TaskCensus, WaitingTask
from icewright.store.documents import load
from icewright.store.schema import optimizers, state_is, tables, tasks, totals
from icewright.store.servers_schema import submitters
from icewright.store.transactions import server_epoch


def add_to_totals(connection: Connection, *steps: Mapping[TotalKey, int]) -> None:
    """Add to totals what steps add, in one statement: whoever claims a task has others wait behind it.

    In the order of their names: others who add to the same ones wait until the transaction ends, and not both.
    """
    amounts: Counter[TotalKey] = Counter()
    for step in steps:
        amounts.update(step)
    if amounts:
        values = {
            f"{name}{number}": value
            for number, (key, amount) in enumerate(sorted(amounts.items()))
            for name, value in zip(("total", "kind", "by", "amount"), (*key, amount), strict=True)
        }
        connection.execute(_adding(len(amounts)), values)


@cache
def _adding(count: int) -> TextClause:
    """The statement that adds to so many totals; SQLite and PostgreSQL read it alike."""
    rows = ", ".join(f"(:total{number}, :kind{number}, :by{number}, :amount{number})" for number in range(count))
    return text(
        f'INSERT INTO totals (total, kind, "by", amount) VALUES {rows} '  # noqa: S608 - names of parameters alone
        'ON CONFLICT (total, kind, "by") DO UPDATE SET amount = totals.amount + excluded.amount'
    )


def task_census(connection: Connection, now: Instant, oldest_max: int) -> TaskCensus:
    """See :meth:`icewright.ports.store.TaskStore.census`. Tasks that have ended are not read."""
    live = state_is(*LIVE_STATES)
    counted = select(tasks.c.state, tasks.c.kind, func.count()).where(live).group_by(tasks.c.state, tasks.c.kind)
    oldest = (
        select(tasks.c.table_name, tasks.c.kind, tasks.c.state, tasks.c.created_at)
        .where(live)
        .order_by(tasks.c.created_at, tasks.c.task_id)
        .limit(oldest_max)
    )
    return TaskCensus(
        now=now,
        live={(TaskState(state), ActionKind(kind)): count for state, kind, count in connection.execute(counted)},
        oldest=[
            WaitingTask(load(TableName, name), ActionKind(kind), TaskState(state), created_at)
            for name, kind, state, created_at in connection.execute(oldest)
        ],
        totals={
            TotalKey(Total(total), kind, by): amount
            for total, kind, by, amount in connection.execute(select(totals))
            if total in tuple(Total)  # a newer server beside this one may count more
        },
        epoch=server_epoch(connection),
    )


def table_census(connection: Connection) -> TableCensus:
    """See :meth:`icewright.ports.store.TableStore.census`."""
    present = tables.c.dropped_at.is_(None)
    known, put_aside, next_look_at = connection.execute(
        select(func.count(), func.count(tables.c.problem), func.min(tables.c.next_look_at)).where(present)
    ).one()
    waiting, oldest_event_at = connection.execute(
        select(func.count(), func.min(inbox.c.received_at)).where(WAITS)
    ).one()
    seen: dict[str, list[Instant]] = {}
    for hello, seen_at in connection.execute(select(optimizers.c.hello, optimizers.c.seen_at)):
        seen.setdefault(load(OptimizerHello, hello).resource_group, []).append(seen_at)
    asked: dict[str, list[Instant]] = {}
    for submitter, asked_at in connection.execute(select(submitters.c.submitter, submitters.c.asked_at)):
        asked.setdefault(load(Submitter, submitter).resource_group, []).append(asked_at)
    return TableCensus(
        tables=known,
        put_aside=put_aside,
        next_look_at=next_look_at,
        events_waiting=waiting,
        oldest_event_at=oldest_event_at,
        seen_at={group: sorted(times) for group, times in sorted(seen.items())},
        asked_at={group: sorted(times) for group, times in sorted(asked.items())},
    )
