"""What a claim asks the database: what runs of a group, in which lanes tasks wait, and which is the best of each.

Queries are built once: to build one takes longer than either database takes to answer it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import (
    CTE,
    BigInteger,
    BindParameter,
    Column,
    ColumnElement,
    Connection,
    FromClause,
    Integer,
    PrimaryKeyConstraint,
    Select,
    Table,
    and_,
    bindparam,
    case,
    cast,
    func,
    or_,
    select,
    text,
    tuple_,
)

from icewright.core.times import Instant
from icewright.model.actions.actions import EVERY_KIND, ActionKind
from icewright.model.actions.traits import BESIDE, TableSlot
from icewright.model.iceberg.names import TableId
from icewright.model.policy.resource_groups import OWN, Queue
from icewright.model.work.admission import NO_LANE, Blocker, Facts, InLane, Lane, Line, Took, Use
from icewright.model.work.lifecycle import LEASED_STATES
from icewright.model.work.tasks import ACTIVE_STATES, TERMINAL_STATES, ListedTask, Task, TaskState
from icewright.ports.admissions import AHEAD_MAX, LANES_MAX, TOOK_MAX
from icewright.store.schema import SINGLE_SLOTS, attempts, holds, state_is, tasks
from icewright.store.schema_access import Key, metadata
from icewright.work.groups.admission import HELD_MS
from icewright.work.groups.rank import AGED_MS, rank
from icewright.work.halts.rules import catalogs_going_on
from icewright.work.halts.sql import halted_parts, is_group_halted, is_halted
from icewright.work.store.task_rows import lane_of, lane_text

# The fencing token of the last task that was started for a tenant of a resource group: who had their turn when.
turns = Table(
    "turns",
    metadata,
    Column("resource_group", Key, nullable=False),
    Column("tenant", Key, nullable=False),
    Column("fencing_token", BigInteger, nullable=False),
    PrimaryKeyConstraint("resource_group", "tenant", name="pk_turns"),
)
_ACTIVE: Final = tasks.alias("active")
_HEAD: Final = tasks.alias("head")
_NEXT: Final = tasks.alias("next")
_OTHER: Final = tasks.alias("other")
_GROUP: Final[BindParameter[str]] = bindparam("resource_group")
_LANE: Final[BindParameter[str]] = bindparam("of_lane")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Waiting tasks of a group, of some catalogs and of some kinds of actions that may run ``now``.

    With ``shareable_bytes_max``, only those that may share a Spark job and read at most so many bytes.
    """

    now: Instant
    resource_group: str
    catalogs: frozenset[str]
    kinds: frozenset[ActionKind]
    shareable_bytes_max: int | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        """The same for queries."""
        found: dict[str, Any] = {"now": self.now, "resource_group": self.resource_group}
        if self.shareable_bytes_max is not None:
            found["shareable_bytes_max"] = self.shareable_bytes_max
        return {**found, "catalogs": sorted(self.catalogs), "kinds": sorted(self.kinds)}


@dataclass(frozen=True, slots=True)
class Head:
    """A waiting task, as far as its turn depends on it, and its table; all of it is so in this version of the task."""

    task_id: str
    version: int
    priority: int
    created_at: Instant
    table_id: TableId
    lane: Lane = NO_LANE
    slot: TableSlot = TableSlot.TABLE


def facts(
    connection: Connection,
    resource_group: str,
    now: Instant,
    understood: frozenset[ActionKind] = EVERY_KIND,
    waiting: Iterable[Lane] | None = None,
) -> Facts:
    """See :meth:`icewright.ports.admissions.Admissions.facts`; ``waiting`` are the lanes, where these are known."""
    of_group = {"resource_group": resource_group}
    uses = []
    held = connection.execute(_HELD, {**of_group, "held_after": now - HELD_MS})
    for optimizer_id, name, count, cores, memory_bytes, resident in held:
        lane = lane_of(name)
        uses.append(Use(optimizer_id, lane.tenant, lane.queue, count, int(cores), int(memory_bytes), bool(resident)))
    if waiting is None:
        waiting = [lane_of(name) for name in connection.scalars(_WAITING, of_group)]
    if understood != EVERY_KIND:
        known = {**of_group, "kinds": sorted(understood)}
        waiting = [
            lane
            for lane in waiting
            if lane.queue is not Queue.LARGE
            or connection.scalar(_UNDERSTOOD, {**known, "of_lane": lane_text(lane)}) is not None
        ]
    last = {tenant: token for tenant, token in connection.execute(_TURNS, of_group)}  # noqa: C416 - rows are no pairs to mypy
    return Facts(tuple(uses), frozenset(waiting), last)


def blockers(connection: Connection, task_id: str, now: Instant) -> Sequence[Blocker]:
    """See :meth:`icewright.ports.admissions.Admissions.blockers`: told by the slots of rows, as claims are."""
    found = []
    for other_id, kind, held, wanted, is_active in connection.execute(_BLOCKERS, {"task_id": task_id, "now": now}):
        slot, own = TableSlot(held), TableSlot(wanted)
        if not is_active or slot not in BESIDE[own]:
            found.append(Blocker(other_id, kind, slot, own, is_active=bool(is_active)))
    return found


def line(connection: Connection, task: ListedTask, now: Instant) -> Line:
    """See :meth:`icewright.ports.admissions.Admissions.line`: a few steps in the index of the queue for each lane."""
    since, task_id = rank(task)
    before = or_(tasks.c.ranked_at < since, and_(tasks.c.ranked_at == since, tasks.c.task_id < task_id))
    ahead, _ = _counted(connection, task.resource_group, lane_text(task.lane), AHEAD_MAX, now, before)
    left = AHEAD_MAX - ahead
    lane, prefix = _ALL_LANES.c.lane, f"{task.lane.queue.value}/"
    query = (
        select(lane).where(lane.startswith(prefix), lane != lane_text(task.lane)).order_by(lane).limit(LANES_MAX + 1)
    )
    texts = connection.scalars(query, {"resource_group": task.resource_group}).all()
    others = []
    for name in texts[:LANES_MAX]:
        if left == 0:
            break
        waiting, aged = _counted(connection, task.resource_group, name, left, now)
        left -= waiting
        others.append(InLane(lane_of(name), waiting, aged))
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


def lanes(connection: Connection, resource_group: str, now: Instant) -> Sequence[InLane]:
    """See :meth:`icewright.ports.admissions.Admissions.lanes`: one walk along the index of the queue."""
    aged = func.sum(case((tasks.c.ranked_at <= now - AGED_MS, 1), else_=0))
    query = (
        select(tasks.c.lane, func.count(), aged)
        .where(state_is(TaskState.QUEUED), tasks.c.resource_group == resource_group)
        .group_by(tasks.c.lane)
    )
    found = [(text, InLane(lane_of(text), waiting, int(old))) for text, waiting, old in connection.execute(query)]
    return [one for _, one in sorted(found, key=lambda each: (-each[1].waiting, each[0]))]


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


def going_on(connection: Connection, wanted: Wanted) -> Wanted:
    """What is wanted but for catalogs that are halted; none is left where the group is, or everything."""
    catalogs = catalogs_going_on(halted_parts(connection), wanted.resource_group, wanted.catalogs)
    return replace(wanted, catalogs=catalogs)


def ready(connection: Connection, wanted: Wanted) -> tuple[list[Lane], list[Head]]:
    """The lanes in which anything waits, and of each the best task that may run now, without its documents.

    The best of a lane is before all others of it whatever else is true, so nothing else needs to be looked at: however
    long the queue is, a claim takes a few steps in an index for each lane.
    """
    if not wanted.catalogs:
        return [], []
    query = _READY if wanted.shareable_bytes_max is None else _READY_TO_SHARE
    waiting, found = [], []
    for name, *row in connection.execute(query, wanted.parameters):
        lane = lane_of(name)
        waiting.append(lane)
        if row[0] is not None:
            found.append(_head(row, lane))
    return waiting, found


def several(connection: Connection, wanted: Wanted, lanes: Iterable[Lane], limit: int) -> Sequence[Head]:
    """The best tasks of each of these lanes that may run now."""
    found: list[Head] = []
    for lane in lanes:
        parameters = {**wanted.parameters, "of_lane": lane_text(lane), "at_most": limit}
        found.extend(_head(row, lane) for row in connection.execute(_SEVERAL, parameters))
    return found


def after(connection: Connection, wanted: Wanted, head: Head) -> Head | None:
    """The next best task of a lane that may run now, behind one of it; None behind the last."""
    since, task_id = rank(head)
    behind = {"of_lane": lane_text(head.lane), "since": since, "behind_id": task_id}
    query = _AFTER if wanted.shareable_bytes_max is None else _AFTER_TO_SHARE
    row = connection.execute(query, {**wanted.parameters, **behind}).first()
    return None if row is None else _head(row, head.lane)


def took_turns(connection: Connection, started: Sequence[Task]) -> None:
    """Tasks were started, in this order."""
    last = {(task.resource_group, task.lane.tenant): task.lease.fencing_token for task in started if task.lease}
    rows = [{"resource_group": group, "tenant": tenant, "token": token} for (group, tenant), token in last.items()]
    connection.execute(_TOOK_TURN, rows)


def _head(row: Sequence[Any], lane: Lane) -> Head:
    task_id, version, priority, created_at, catalog, table_uuid, slot = row
    return Head(task_id, version, priority, created_at, TableId(catalog, table_uuid), lane, TableSlot(slot))


def _lanes() -> CTE:
    """All lanes of a group in which a task waits, and NULL behind the last: one step in the index for each."""
    first = select(func.min(tasks.c.lane).label("lane")).where(
        state_is(TaskState.QUEUED), tasks.c.resource_group == _GROUP
    )
    lanes = first.cte("lanes", recursive=True)
    after = (
        select(func.min(_NEXT.c.lane))
        .where(state_is(TaskState.QUEUED, of=_NEXT), _NEXT.c.resource_group == _GROUP, _NEXT.c.lane > lanes.c.lane)
        .correlate(lanes)
        .scalar_subquery()
    )
    return lanes.union_all(select(after).where(lanes.c.lane.is_not(None)))


def _may_run(of: FromClause, *, shares: bool) -> list[ColumnElement[bool]]:
    """What must be true of a task, whatever its group may hold."""
    free = (or_(~holds(slot, of=of), ~_is_held(slot, of)) for slot in SINGLE_SLOTS)
    found = [
        state_is(TaskState.QUEUED, of=of),
        of.c.resource_group == _GROUP,
        of.c.catalog.in_(bindparam("catalogs", expanding=True)),
        of.c.kind.in_(bindparam("kinds", expanding=True)),
        of.c.not_before_at <= bindparam("now"),
        *free,
        ~select(_OTHER.c.task_id).where(_goes_first(_OTHER, of)).correlate(of).exists(),
        ~is_halted(of),
    ]
    if shares:
        found.append(and_(of.c.shareable_bytes <= bindparam("shareable_bytes_max"), of.c.attempt == 0))
    return found


def _is_held(slot: TableSlot, of: FromClause) -> ColumnElement[bool]:
    """Whether an active task of the same table holds a slot, as the unique index of the slot has it."""
    active = and_(state_is(*ACTIVE_STATES, of=_ACTIVE), holds(slot, of=_ACTIVE))
    return select(_ACTIVE.c.task_id).where(_same_table(_ACTIVE, of), active).correlate(of).exists()


def _goes_first(other: FromClause, of: FromClause) -> ColumnElement[bool]:
    """Whether a task that holds ``metadata`` lets another one go first (decision 0069).

    The other one waits for longer, needs the table alone, and may start. It is one of the server's own, which no cap,
    no window and no missing optimizer keeps waiting; a halt of its group does.
    """
    return and_(
        of.c.table_slot == TableSlot.METADATA.value,
        _same_table(other, of),
        other.c.table_slot == TableSlot.TABLE.value,
        state_is(TaskState.QUEUED, of=other),
        other.c.resource_group.in_(OWN),
        other.c.not_before_at <= bindparam("now"),
        tuple_(other.c.created_at, other.c.task_id) < tuple_(of.c.created_at, of.c.task_id),
        ~is_group_halted(other),
    )


def _same_table(other: FromClause, of: FromClause) -> ColumnElement[bool]:
    return and_(other.c.catalog == of.c.catalog, other.c.table_uuid == of.c.table_uuid)


def _of(of: FromClause) -> list[ColumnElement[Any]]:
    """What a :class:`Head` is made of, besides its lane."""
    return [
        of.c[name] for name in ("task_id", "version", "priority", "created_at", "catalog", "table_uuid", "table_slot")
    ]


def _ready(*, shares: bool) -> Select[Any]:
    lanes = _lanes()
    best = (
        select(_HEAD.c.task_id)
        .where(_HEAD.c.lane == lanes.c.lane, *_may_run(_HEAD, shares=shares))
        .order_by(_HEAD.c.ranked_at, _HEAD.c.task_id)
        .limit(1)
        .correlate(lanes)
        .scalar_subquery()
    )
    found = lanes.outerjoin(tasks, tasks.c.task_id == best)
    return select(lanes.c.lane, *_of(tasks)).select_from(found).where(lanes.c.lane.is_not(None))


def _in_lane(*, shares: bool) -> Select[Any]:
    in_order = select(*_of(_HEAD)).order_by(_HEAD.c.ranked_at, _HEAD.c.task_id)
    return in_order.where(_HEAD.c.lane == _LANE, *_may_run(_HEAD, shares=shares))


def _after(*, shares: bool) -> Select[Any]:
    ranked: BindParameter[int] = bindparam("since", type_=tasks.c.ranked_at.type)
    behind: BindParameter[str] = bindparam("behind_id", type_=tasks.c.task_id.type)
    is_behind = tuple_(_HEAD.c.ranked_at, _HEAD.c.task_id) > tuple_(ranked, behind)
    return _in_lane(shares=shares).where(is_behind).limit(1)


_HELD: Final = (
    select(
        tasks.c.lease_optimizer_id,
        tasks.c.lane,
        func.count(),
        func.coalesce(func.sum(tasks.c.held_cores), 0),
        func.coalesce(func.sum(tasks.c.held_memory_bytes), 0),
        func.coalesce(func.min(cast(tasks.c.held_resident, Integer)), 1),
    )
    .where(
        state_is(*LEASED_STATES),
        tasks.c.resource_group == _GROUP,
        or_(state_is(TaskState.RUNNING), tasks.c.lease_expires_at > bindparam("held_after")),
    )
    .group_by(tasks.c.lease_optimizer_id, tasks.c.lane)
)
_UNDERSTOOD: Final = (
    select(tasks.c.task_id)
    .where(
        state_is(TaskState.QUEUED),
        tasks.c.resource_group == _GROUP,
        tasks.c.lane == _LANE,
        tasks.c.kind.in_(bindparam("kinds", expanding=True)),
    )
    .limit(1)
)
_IS_ACTIVE: Final = state_is(*ACTIVE_STATES, of=_OTHER)
_BLOCKERS: Final = (
    select(_OTHER.c.task_id, _OTHER.c.kind, _OTHER.c.table_slot, tasks.c.table_slot, _IS_ACTIVE)
    .join_from(tasks, _OTHER, _same_table(_OTHER, tasks))
    .where(tasks.c.task_id == bindparam("task_id"), _OTHER.c.task_id != tasks.c.task_id)
    .where(or_(_IS_ACTIVE, _goes_first(_OTHER, tasks)))
    .order_by(_OTHER.c.task_id)
)
_TURNS: Final = select(turns.c.tenant, turns.c.fencing_token).where(turns.c.resource_group == _GROUP)
_TOOK_TURN: Final = text(
    "INSERT INTO turns (resource_group, tenant, fencing_token) VALUES (:resource_group, :tenant, :token) "
    "ON CONFLICT (resource_group, tenant) DO UPDATE SET fencing_token = excluded.fencing_token"
)
"""SQLite and PostgreSQL read it alike."""
_ALL_LANES: Final = _lanes()
_WAITING: Final = select(_ALL_LANES.c.lane).where(_ALL_LANES.c.lane.is_not(None))
_READY: Final = _ready(shares=False)
_READY_TO_SHARE: Final = _ready(shares=True)
_SEVERAL: Final = _in_lane(shares=False).limit(bindparam("at_most"))
_AFTER: Final = _after(shares=False)
_AFTER_TO_SHARE: Final = _after(shares=True)
