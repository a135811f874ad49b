"""The queries of the queue: small steps that a transaction of :mod:`icewright.work.store.task_store` is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, bindparam, insert, null, select, union_all, update

from icewright.core.errors import Conflict, NotFound, Unreadable
from icewright.feed import sql as feed
from icewright.feed.task_events import fact_of
from icewright.model.iceberg.names import TableId
from icewright.model.work import lifecycle
from icewright.model.work.tasks import TERMINAL_STATES, Attempt, ListedTask, Task, TaskState
from icewright.ports.store import TaskFilter
from icewright.store.schema import (
    FENCING_TOKEN,
    attempts,
    counters,
    state_is,
    task_actions,
    task_history,
    tasks,
)
from icewright.store.scope_filters import of_tables_in
from icewright.work.store.census import add_to_totals
from icewright.work.store.task_rows import (
    action_row,
    attempt_of,
    attempt_row,
    history_row,
    is_action_kept,
    listed_of,
    task_columns,
    task_of,
    task_row,
)
from icewright.work.store.task_totals import added

WHOLE = select(tasks, task_actions.c.digest).select_from(tasks.outerjoin(task_actions))
"""Tasks with the digests of their actions; the actions themselves are read by :func:`whole` where they are needed."""


_BY_ID: Final = WHOLE.where(tasks.c.task_id.in_(bindparam("task_ids", expanding=True)))
_PACKED: Final = select(task_actions.c.task_id, task_actions.c.digest, task_actions.c.action).where(
    task_actions.c.task_id.in_(bindparam("task_ids", expanding=True))
)
LATEST_ATTEMPTS: Final = (
    select(
        *(column for column in attempts.c if column.name not in {"progress", "report"}),
        null().label("progress"),
        null().label("report"),
        *(tasks.c[name] for name in ("catalog", "table_uuid", "table_name", "kind", "resource_group", "created_at")),
    )
    .join(tasks, tasks.c.task_id == attempts.c.task_id)
    .order_by(attempts.c.fencing_token.desc())
)
"""Tries with what their tasks are, the last one first; without reports, which may have a line for each group."""
LAST_TOKEN: Final = select(counters.c.value).where(counters.c.name == FENCING_TOKEN).scalar_subquery()
"""Of the try that began last; each that begins takes the next number."""
_NEXT_TOKENS: Final = (
    update(counters)
    .where(counters.c.name == FENCING_TOKEN)
    .values(value=counters.c.value + bindparam("count"))
    .returning(counters.c.value)
)


def matches(only: TaskFilter, before: str | None) -> Iterator[ColumnElement[bool]]:
    """The conditions of a list of tasks; ``before`` is the id that the last page ended with."""
    if only.states is not None:
        yield tasks.c.state.in_(sorted(state.value for state in only.states))
    if only.table_id is not None:
        yield tasks.c.catalog == only.table_id.catalog
        yield tasks.c.table_uuid == only.table_id.uuid
    if only.kind is not None:
        yield tasks.c.kind == only.kind.value
    if only.resource_group is not None:
        yield tasks.c.resource_group == only.resource_group
    yield from of_tables_in(only.within, tasks)
    if before is not None:
        yield tasks.c.task_id < before


def next_tokens(connection: Connection, count: int) -> int:
    """The last of so many fencing tokens in a row, all greater than any that was ever given out."""
    return int(connection.execute(_NEXT_TOKENS, {"count": count}).scalar_one())


def whole(connection: Connection, query: Select[Any]) -> Sequence[Task]:
    """The tasks of a query made from :data:`WHOLE`, one action read at a time, and only those not seen lately."""
    rows = connection.execute(query).mappings().all()
    return [task_of(row, partial(_packed, connection, row)) for row in rows]


def _packed(connection: Connection, row: RowMapping) -> bytes:
    return _of_task(_all_packed(connection, [row["task_id"]]), row)


def _all_packed(connection: Connection, task_ids: Sequence[str]) -> Mapping[str, tuple[str, bytes]]:
    found = connection.execute(_PACKED, {"task_ids": task_ids})
    return {task_id: (digest, bytes(packed)) for task_id, digest, packed in found}


def _of_task(packed: Mapping[str, tuple[str, bytes]], row: RowMapping) -> bytes:
    """The action that a row of :data:`WHOLE` told of, and no later one: it would be kept under the wrong digest."""
    task_id = row["task_id"]
    if task_id not in packed:
        raise Unreadable(f"it is not stored what task {task_id} is to do")
    digest, action = packed[task_id]
    if digest != row["digest"]:
        raise Conflict(f"task {task_id} changed meanwhile; it has another action")
    return action


def insert_task(connection: Connection, step: lifecycle.Step) -> None:
    """A new task, with its action and the beginning of its history."""
    connection.execute(insert(tasks).values(task_row(step.task)))
    connection.execute(insert(task_actions).values(action_row(step.task)))
    connection.execute(insert(task_history).values(history_row(step.entry)))
    _tell(connection, None, step)
    add_to_totals(connection, added(step))


def find(connection: Connection, task_id: str) -> Task | None:
    """A task, None when there is none of that id."""
    return tasks_by_id(connection, [task_id]).get(task_id)


def tasks_by_id(connection: Connection, task_ids: Sequence[str]) -> dict[str, Task]:
    """A few tasks by their ids, of those that there are; with all actions that were not seen lately read at once."""
    rows = connection.execute(_BY_ID, {"task_ids": task_ids}).mappings().all() if task_ids else ()
    unseen = [row["task_id"] for row in rows if not is_action_kept(row)]
    packed = _all_packed(connection, unseen) if unseen else {}

    def read(row: RowMapping) -> bytes:
        return _of_task(packed, row) if row["task_id"] in packed else _packed(connection, row)

    return {row["task_id"]: task_of(row, partial(read, row)) for row in rows}


def head(connection: Connection, task_id: str) -> ListedTask:
    """A task without its action. Raises :class:`~icewright.core.errors.NotFound`."""
    row = connection.execute(select(tasks).where(tasks.c.task_id == task_id)).mappings().one_or_none()
    if row is None:
        raise NotFound(f"no task {task_id}")
    return listed(connection, row)


def listed(connection: Connection, row: RowMapping) -> ListedTask:
    """A row of ``tasks`` as a task for lists; one that is older than its figures tells them by its action."""
    return task_by_id(connection, row["task_id"]).listed() if row["figures"] is None else listed_of(row)


def task_by_id(connection: Connection, task_id: str) -> Task:
    """A task. Raises :class:`~icewright.core.errors.NotFound`."""
    task = find(connection, task_id)
    if task is None:
        raise NotFound(f"no task {task_id}")
    return task


def live_task(connection: Connection, table_id: TableId, kind: str) -> Task | None:
    """The task of a table and kind of action that has not ended, if there is one."""
    query = WHOLE.where(
        tasks.c.catalog == table_id.catalog,
        tasks.c.table_uuid == table_id.uuid,
        tasks.c.kind == kind,
        state_is(*lifecycle.LIVE_STATES),
    )
    found = whole(connection, query)
    return found[0] if found else None


def last_attempt(connection: Connection, task_id: str) -> Attempt | None:
    """The present attempt of a task, None before the first."""
    query = select(attempts).where(attempts.c.task_id == task_id).order_by(attempts.c.attempt.desc()).limit(1)
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else attempt_of(row)


def write(connection: Connection, before: Task, step: lifecycle.Step, *, new_action: bool = False) -> Task:
    """The whole step, with its action where that is new, told in the feed.

    Raises :class:`Conflict` when the task changed meanwhile.
    """
    row = task_row(step.task) if new_action else task_columns(step.task)
    swap(connection, step.task.task_id, step.task.version - 1, row)
    if new_action:
        where = task_actions.c.task_id == step.task.task_id
        connection.execute(update(task_actions).where(where).values(action_row(step.task)))
    connection.execute(insert(task_history).values(history_row(step.entry)))
    if step.attempt is not None:
        _put_attempt(connection, step.attempt)
    _tell(connection, before.state, step)
    add_to_totals(connection, added(step))
    return step.task


def _tell(connection: Connection, before: TaskState | None, step: lifecycle.Step) -> None:
    fact = fact_of(before, step)
    if fact is not None:
        feed.append(connection, (fact, step.task.updated_at))


def swap(connection: Connection, task_id: str, version: int, values: Mapping[str, Any]) -> None:
    """Change columns of a task. Raises :class:`Conflict` when it no longer has the version."""
    query = update(tasks).where(tasks.c.task_id == task_id, tasks.c.version == version).values(**values)
    if connection.execute(query).rowcount != 1:
        raise Conflict(f"task {task_id} changed meanwhile; it no longer has version {version}")


def _put_attempt(connection: Connection, attempt: Attempt) -> None:
    row = attempt_row(attempt)
    where = (attempts.c.task_id == attempt.task_id, attempts.c.attempt == attempt.attempt)
    if connection.execute(update(attempts).where(*where).values(row)).rowcount == 0:
        connection.execute(insert(attempts).values(row))


def first_ended(limit: int, *within: ColumnElement[bool]) -> Select[tuple[str]]:
    """The ids of the first tasks that ended, of those that are ``within``, in that order.

    State by state, since the index is by state first: asked for all at once, all that ever ended would be sorted.
    """
    place = tasks.c.updated_at, tasks.c.task_id
    of_states = [
        select(*place).where(state_is(*TERMINAL_STATES), state_is(state), *within).order_by(*place).limit(limit)
        for state in sorted(TERMINAL_STATES)
    ]
    first = union_all(*(select(one.subquery()) for one in of_states)).subquery()
    return select(first.c.task_id).order_by(first.c.updated_at, first.c.task_id).limit(limit)
