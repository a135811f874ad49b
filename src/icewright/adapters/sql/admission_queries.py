"""What a claim asks the database: what runs of a group, in which lanes tasks wait, and which is the best of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import (
    CTE,
    ColumnElement,
    Connection,
    FromClause,
    Integer,
    and_,
    case,
    cast,
    func,
    insert,
    or_,
    select,
    update,
)

from icewright.adapters.sql.halts import not_halted
from icewright.adapters.sql.schema import attempts, state_is, tasks
from icewright.adapters.sql.task_rows import lane_of, lane_text
from icewright.adapters.sql.turns_schema import turns
from icewright.domain.admission import Facts, InLane, Lane, Line, Took, Use
from icewright.domain.tables import Instant
from icewright.domain.tasks import ACTIVE_STATES, TERMINAL_STATES, ListedTask, TaskState
from icewright.ports.admissions import AHEAD_MAX, LANES_MAX, TOOK_MAX
from icewright.scheduling.admission import HELD_MS
from icewright.scheduling.lifecycle import LEASED_STATES
from icewright.scheduling.rank import AGED_MS, Candidate, rank

_ACTIVE = tasks.alias("active")
_HEAD = tasks.alias("head")
_NEXT = tasks.alias("next")


def facts(connection: Connection, resource_group: str, now: Instant, waiting: Iterable[Lane] | None = None) -> Facts:
    """See :meth:`icewright.ports.store.TaskStore.facts`; ``waiting`` where that is known already."""
    who = (tasks.c.lease_optimizer_id, tasks.c.lane)
    held = (
        select(
            *who,
            func.count(),
            func.coalesce(func.sum(tasks.c.held_cores), 0),
            func.coalesce(func.sum(tasks.c.held_memory_bytes), 0),
            func.coalesce(func.min(cast(tasks.c.held_resident, Integer)), 1),
        )
        .where(
            state_is(*LEASED_STATES),
            tasks.c.resource_group == resource_group,
            or_(state_is(TaskState.RUNNING), tasks.c.lease_expires_at > now - HELD_MS),
        )
        .group_by(*who)
    )
    uses = []
    for optimizer_id, text, count, cores, memory_bytes, resident in connection.execute(held):
        lane = lane_of(text)
        uses.append(Use(optimizer_id, lane.tenant, lane.queue, count, int(cores), int(memory_bytes), bool(resident)))
    if waiting is None:
        lanes = _lanes(resource_group)
        waiting = [lane_of(text) for text in connection.scalars(select(lanes.c.lane).where(lanes.c.lane.is_not(None)))]
    query = select(turns.c.tenant, turns.c.fencing_token).where(turns.c.resource_group == resource_group)
    last = {row.tenant: row.fencing_token for row in connection.execute(query)}
    return Facts(tuple(uses), frozenset(waiting), last)


def line(connection: Connection, task: ListedTask, now: Instant) -> Line:
    """See :meth:`icewright.ports.admissions.Admissions.line`: a few steps in the index of the queue for each lane."""
    since, task_id = rank(task)
    before = or_(tasks.c.ranked_at < since, and_(tasks.c.ranked_at == since, tasks.c.task_id < task_id))
    ahead, _ = _counted(connection, task.resource_group, lane_text(task.lane), AHEAD_MAX, now, before)
    left = AHEAD_MAX - ahead
    lanes, prefix = _lanes(task.resource_group), f"{task.lane.queue.value}/"
    query = (
        select(lanes.c.lane)
        .where(lanes.c.lane.startswith(prefix), lanes.c.lane != lane_text(task.lane))
        .order_by(lanes.c.lane)
        .limit(LANES_MAX + 1)
    )
    texts = connection.scalars(query).all()
    others = []
    for text in texts[:LANES_MAX]:
        if left == 0:
            break
        waiting, aged = _counted(connection, task.resource_group, text, left, now)
        left -= waiting
        others.append(InLane(lane_of(text), waiting, aged))
    return Line(ahead, tuple(others), left > 0 and len(texts) <= LANES_MAX)


def _counted(
    connection: Connection,
    resource_group: str,
    lane: str,
    limit: int,
    now: Instant,
    where: ColumnElement[bool] | None = None,
) -> tuple[int, int]:
    """How many tasks wait in a lane, the best up to a limit, and how many of them are aged."""
    best = (
        select(tasks.c.ranked_at)
        .where(state_is(TaskState.QUEUED), tasks.c.resource_group == resource_group, tasks.c.lane == lane)
        .order_by(tasks.c.ranked_at, tasks.c.task_id)
        .limit(limit)
    )
    found = (best if where is None else best.where(where)).subquery()
    aged = func.coalesce(func.sum(case((found.c.ranked_at <= now - AGED_MS, 1), else_=0)), 0)
    row = connection.execute(select(func.count(), aged).select_from(found)).one()
    return int(row[0]), int(row[1])


def took(connection: Connection, resource_group: str) -> Sequence[Took]:
    """See :meth:`icewright.ports.admissions.Admissions.took`."""
    last = (
        select(tasks.c.task_id, tasks.c.attempt, tasks.c.updated_at)
        .where(state_is(*TERMINAL_STATES), tasks.c.resource_group == resource_group)
        .order_by(tasks.c.updated_at.desc(), tasks.c.task_id.desc())
        .limit(TOOK_MAX)
        .subquery()
    )
    query = (
        select(attempts.c.started_at, attempts.c.ended_at)
        .join(last, and_(attempts.c.task_id == last.c.task_id, attempts.c.attempt == last.c.attempt))
        .where(attempts.c.ended_at.is_not(None))
        .order_by(last.c.updated_at.desc(), last.c.task_id.desc())
    )
    return [Took(row.ended_at, row.ended_at - row.started_at) for row in connection.execute(query)]


def took_turn(connection: Connection, resource_group: str, tenant: str, fencing_token: int) -> None:
    """A task of the tenant was started."""
    values = {"resource_group": resource_group, "tenant": tenant, "fencing_token": fencing_token}
    where = (turns.c.resource_group == resource_group, turns.c.tenant == tenant)
    if connection.execute(update(turns).where(*where).values(fencing_token=fencing_token)).rowcount == 0:
        connection.execute(insert(turns).values(values))


def ready(
    connection: Connection,
    now: Instant,
    resource_group: str,
    catalogs: frozenset[str],
    shareable_bytes_max: int | None = None,
) -> tuple[list[Lane], list[Candidate]]:
    """The lanes in which anything waits, and of each the best task that may run now, without its documents.

    With ``shareable_bytes_max``, only those that may share a Spark job and read at most so many bytes. The best of a
    lane is before all others of it whatever else is true, so nothing else needs to be looked at: however long the
    queue is, a claim takes a few steps in an index for each lane.
    """
    lanes = _lanes(resource_group)
    best = (
        select(_HEAD.c.task_id)
        .where(
            _HEAD.c.lane == lanes.c.lane,
            *_may_run(_HEAD, now, resource_group, catalogs, shareable_bytes_max),
            *not_halted(connection, _HEAD),
        )
        .order_by(_HEAD.c.ranked_at, _HEAD.c.task_id)
        .limit(1)
        .correlate(lanes)
        .scalar_subquery()
    )
    query = (
        select(lanes.c.lane, tasks.c.task_id, tasks.c.priority, tasks.c.created_at)
        .select_from(lanes.outerjoin(tasks, tasks.c.task_id == best))
        .where(lanes.c.lane.is_not(None))
    )
    waiting, found = [], []
    for text, task_id, priority, created_at in connection.execute(query):
        lane = lane_of(text)
        waiting.append(lane)
        if task_id is not None:
            found.append(Candidate(task_id, priority, created_at, lane))
    return waiting, found


def several(
    connection: Connection,
    now: Instant,
    resource_group: str,
    catalogs: frozenset[str],
    lanes: Iterable[Lane],
    limit: int,
) -> Sequence[Candidate]:
    """The best tasks of each of these lanes that may run now."""
    found: list[Candidate] = []
    going_on = not_halted(connection, _HEAD)
    for lane in lanes:
        query = (
            select(_HEAD.c.task_id, _HEAD.c.priority, _HEAD.c.created_at)
            .where(_HEAD.c.lane == lane_text(lane), *_may_run(_HEAD, now, resource_group, catalogs), *going_on)
            .order_by(_HEAD.c.ranked_at, _HEAD.c.task_id)
            .limit(limit)
        )
        found.extend(Candidate(row.task_id, row.priority, row.created_at, lane) for row in connection.execute(query))
    return found


def _lanes(resource_group: str) -> CTE:
    """All lanes of a group in which a task waits, and NULL behind the last: one step in the index for each."""
    first = select(func.min(tasks.c.lane).label("lane")).where(
        state_is(TaskState.QUEUED), tasks.c.resource_group == resource_group
    )
    lanes = first.cte("lanes", recursive=True)
    after = (
        select(func.min(_NEXT.c.lane))
        .where(
            state_is(TaskState.QUEUED, of=_NEXT),
            _NEXT.c.resource_group == resource_group,
            _NEXT.c.lane > lanes.c.lane,
        )
        .correlate(lanes)
        .scalar_subquery()
    )
    return lanes.union_all(select(after).where(lanes.c.lane.is_not(None)))


def _may_run(
    of: FromClause,
    now: Instant,
    resource_group: str,
    catalogs: frozenset[str],
    shareable_bytes_max: int | None = None,
) -> list[ColumnElement[bool]]:
    """What must be true of a task, whatever its group may hold."""
    busy = (
        select(_ACTIVE.c.task_id)
        .where(
            _ACTIVE.c.catalog == of.c.catalog,
            _ACTIVE.c.table_uuid == of.c.table_uuid,
            state_is(*ACTIVE_STATES, of=_ACTIVE),
        )
        .correlate(of)
        .exists()
    )
    found = [
        state_is(TaskState.QUEUED, of=of),
        of.c.resource_group == resource_group,
        of.c.catalog.in_(sorted(catalogs)),
        of.c.not_before_at <= now,
        ~busy,
    ]
    if shareable_bytes_max is not None:
        found.append(and_(of.c.shareable_bytes <= shareable_bytes_max, of.c.attempt == 0))
    return found
