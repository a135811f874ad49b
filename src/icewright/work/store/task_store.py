"""The queue in an SQL database, shared by any number of server processes.

What must never happen (two active tasks of one table, a task changed by two at once) is forbidden by unique indexes
and compare-and-swap, which hold whatever the code does; the life of a task is in :mod:`icewright.model.work.lifecycle`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from weakref import WeakValueDictionary

from sqlalchemy import Connection, Engine, and_, delete, func, or_, select, update
from sqlalchemy.exc import IntegrityError

from icewright.audit.model import of_expedited, of_task
from icewright.audit.sql import record
from icewright.core.clock import Clock
from icewright.core.errors import Conflict, NotAllowed, Unavailable
from icewright.core.times import Instant
from icewright.feed.sql import SqlFeed
from icewright.model.access.permissions import EVERYWHERE, Scopes
from icewright.model.actions.actions import EVERY_KIND, ActionKind
from icewright.model.iceberg.names import TableId
from icewright.model.plans.plans import Reason
from icewright.model.work import lifecycle
from icewright.model.work.admission import FREE, Blocker, Facts, InLane, Line, Terms, Took
from icewright.model.work.history import Ending
from icewright.model.work.tasks import (
    ACTIVE_STATES,
    Attempt,
    AttemptState,
    HistoryEntry,
    ListedTask,
    LogLines,
    NewTask,
    Progress,
    Task,
    TaskState,
)
from icewright.ports.admissions import CLAIMABLE_MAX
from icewright.ports.census import TaskCensus
from icewright.ports.store import AttemptOfTask, Change, Enqueued, TaskFilter
from icewright.store import transactions
from icewright.store.group_commit import GroupCommit
from icewright.store.locks import TELLS, LockKind, lock, table_lock
from icewright.store.schema import RESTORED_AT, attempts, counters, state_is, task_actions, task_history, tasks
from icewright.store.scope_filters import ids_like, of_tables_in
from icewright.store.table_rows import require_not_refused
from icewright.store.transactions import reading, writing
from icewright.work.groups.admission import chosen
from icewright.work.halts.sql import SqlHalts
from icewright.work.store import admission_queries as admissions
from icewright.work.store import claiming, task_logs
from icewright.work.store import task_queries as queries
from icewright.work.store.admission_queries import Wanted
from icewright.work.store.census import task_census
from icewright.work.store.claiming import ClaimSelector
from icewright.work.store.task_rows import attempt_of, attempt_of_task, history_of, task_columns

ENQUEUE_TRIES = 3
"""Two servers that queue the same candidate at once: one of them finds the other's task when it looks again."""


class SqlTaskStore:
    """A :class:`~icewright.ports.store.TaskStore` over an engine of :func:`icewright.store.engine.open_store`.

    Leases run by the database's clock unless ``clock`` is given.
    """

    def __init__(self, engine: Engine, clock: Clock | None = None) -> None:
        self._engine = engine
        self._clock = clock
        self._feed = SqlFeed(engine, clock)
        self._halts = SqlHalts(engine, clock)
        self._claims: WeakValueDictionary[str, GroupCommit[ClaimSelector, Task | None]] = WeakValueDictionary()
        """Those of each resource group that somebody claims of just now: any name may be that of a group."""
        self._guard = threading.Lock()

    @property
    def feed(self) -> SqlFeed:
        """See the port."""
        return self._feed

    @property
    def halts(self) -> SqlHalts:
        """See the port."""
        return self._halts

    def now(self) -> Instant:
        """See the port."""
        with reading(self._engine) as connection:
            return self._now(connection)

    def enqueue(self, new: NewTask) -> Enqueued:
        """See the port."""
        for tries_left in reversed(range(ENQUEUE_TRIES)):
            with writing(self._engine, (TELLS, table_lock(new.table_id))) as connection:
                enqueued = self._try_enqueue(connection, new, tries_left)
                if enqueued is not None and (enqueued.created or enqueued.coalesced):
                    before = TaskState.QUEUED if enqueued.coalesced else None
                    record(connection, self._now(connection), of_task(enqueued.task, before=before))
            if enqueued is not None:
                return enqueued
        raise Unavailable(f"the queue of table {new.table_id} keeps changing")

    def claim(
        self,
        optimizer_id: str,
        *,
        resource_group: str,
        catalogs: frozenset[str],
        lease_ms: int,
        shareable_bytes_max: int | None = None,
        terms: Terms = FREE,
        kinds: frozenset[ActionKind] = EVERY_KIND,
    ) -> Task | None:
        """See the port."""
        asked = ClaimSelector(optimizer_id, resource_group, catalogs, lease_ms, shareable_bytes_max, terms, kinds)
        with self._guard:
            claims = self._claims.get(resource_group)
            if claims is None:
                ask = partial(self._claim, resource_group)
                claims = self._claims[resource_group] = GroupCommit(ask, claiming.alike)
        return claims.answer(asked)

    def claimable(
        self,
        resource_group: str,
        catalogs: frozenset[str],
        terms: Terms = FREE,
        kinds: frozenset[ActionKind] = EVERY_KIND,
    ) -> int:
        """See the port."""
        with reading(self._engine) as connection:
            now = self._now(connection)
            wanted = admissions.going_on(connection, Wanted(now, resource_group, catalogs, kinds))
            lanes, _ = admissions.ready(connection, wanted)
            ready = admissions.several(connection, wanted, lanes, CLAIMABLE_MAX)
            facts = admissions.facts(connection, resource_group, now, terms.understood, lanes)
            return sum(1 for _ in islice(chosen(terms, facts, ready, now), CLAIMABLE_MAX))

    def facts(self, resource_group: str, understood: frozenset[ActionKind] = EVERY_KIND) -> Facts:
        """See the port."""
        with reading(self._engine) as connection:
            return admissions.facts(connection, resource_group, self._now(connection), understood)

    def blockers(self, task_id: str) -> Sequence[Blocker]:
        """See the port."""
        with reading(self._engine) as connection:
            return admissions.blockers(connection, task_id, self._now(connection))

    def line(self, task_id: str) -> Line:
        """See the port."""
        with reading(self._engine) as connection:
            return admissions.line(connection, queries.head(connection, task_id), self._now(connection))

    def lanes(self, resource_group: str) -> Sequence[InLane]:
        """See the port."""
        with reading(self._engine) as connection:
            return admissions.lanes(connection, resource_group, self._now(connection))

    def took(self, resource_group: str) -> Sequence[Took]:
        """See the port."""
        with reading(self._engine) as connection:
            return admissions.took(connection, resource_group)

    def expedite(self, task_id: str, reason: Reason) -> Task:
        """See the port."""
        with writing(self._engine) as connection:
            task = queries.task_by_id(connection, task_id)
            step = lifecycle.expedite(task, reason, self._now(connection))
            if step is None:
                return task
            record(connection, self._now(connection), of_expedited(task))
            return queries.write(connection, task, step)

    def heartbeat(
        self, task_id: str, fencing_token: int, *, progress: Progress, lease_ms: int, log: LogLines | None = None
    ) -> Task:
        """See the port."""
        with writing(self._engine, (lock(LockKind.TASK, task_id),)) as connection:
            before = queries.task_by_id(connection, task_id)
            now = self._now(connection)
            task = lifecycle.beat(before, fencing_token, progress=progress, now=now, lease_ms=lease_ms)
            row = task_columns(task)
            queries.swap(
                connection, task_id, before.version, {name: row[name] for name in ("lease_expires_at", "progress")}
            )
            connection.execute(
                update(attempts)
                .where(attempts.c.task_id == task_id, attempts.c.attempt == task.attempt)
                .values(progress=row["progress"])
            )
            if log is not None:
                task_logs.add(connection, task_id, task.attempt, log, now)
            return task

    def check_lease(self, task_id: str, fencing_token: int) -> Task:
        """See the port."""
        with reading(self._engine) as connection:
            task = queries.task_by_id(connection, task_id)
            lifecycle.require_lease(task, fencing_token, self._now(connection))
            return task

    def change(self, change: Change) -> Task:
        """See the port."""
        try:
            return self._change(change)
        except IntegrityError:  # by a task that was over when it was looked for: the next one tells, or it is a mistake
            return self._change(change)

    def _change(self, change: Change) -> Task:
        with writing(self._engine, (TELLS, lock(LockKind.TASK, change.task_id))) as connection:
            task = queries.task_by_id(connection, change.task_id)
            lifecycle.require_version(task, change.version)
            if change.state is TaskState.QUEUED:  # also one that was cancelled, before its plan was refused
                require_not_refused(connection, task.plan_id)
            step = lifecycle.change(
                task,
                queries.last_attempt(connection, task.task_id),
                state=change.state,
                outcome=change.outcome,
                end=lifecycle.attempt_end(change.attempt_state, change.report_json),
                delay_ms=change.delay_ms,
                now=self._now(connection),
            )
            try:
                with connection.begin_nested():
                    written = queries.write(connection, task, step)
            except IntegrityError as error:
                if queries.live_task(connection, task.table_id, task.action.kind) is not None:
                    raise NotAllowed(lifecycle.SECOND_LIVE_TASK.format(task_id=task.task_id)) from error
                if step.task.state in ACTIVE_STATES:
                    raise NotAllowed(lifecycle.SECOND_ACTIVE_TASK.format(task_id=task.task_id)) from error
                raise
            if change.log is not None:
                task_logs.add(connection, task.task_id, task.attempt, change.log, written.updated_at)
            record(connection, written.updated_at, of_task(written, before=task.state))
            return written

    def expired(self, limit: int) -> Sequence[Task]:
        """See the port."""
        with reading(self._engine) as connection:
            query = (
                queries.WHOLE.where(state_is(TaskState.RUNNING), tasks.c.lease_expires_at <= self._now(connection))
                .order_by(tasks.c.lease_expires_at, tasks.c.task_id)
                .limit(limit)
            )
            return queries.whole(connection, query)

    def request_cancel(self, task_id: str, reason: Reason, version: int | None = None) -> Task:
        """See the port."""
        with writing(self._engine) as connection:
            task = queries.task_by_id(connection, task_id)
            lifecycle.require_version(task, task.version if version is None else version)
            step = lifecycle.cancel(task, reason, self._now(connection))
            if step is None:
                return task
            record(connection, self._now(connection), of_task(task, cancelled=True))
            return queries.write(connection, task, step)

    def get(self, task_id: str) -> Task:
        """See the port."""
        with reading(self._engine) as connection:
            return queries.task_by_id(connection, task_id)

    def head(self, task_id: str) -> ListedTask:
        """See the port."""
        with reading(self._engine) as connection:
            return queries.head(connection, task_id)

    def ids_like(self, part: str, within: Scopes, limit: int) -> Sequence[str]:
        """See the port."""
        with reading(self._engine) as connection:
            return list(connection.scalars(ids_like(tasks.c.task_id, "task", part, within, limit)))

    def tasks(self, only: TaskFilter, *, limit: int, before: str | None = None) -> Sequence[Task]:
        """See the port."""
        query = queries.WHOLE.where(*queries.matches(only, before)).order_by(tasks.c.task_id.desc()).limit(limit)
        with reading(self._engine) as connection:
            return queries.whole(connection, query)

    def listed(self, only: TaskFilter, *, limit: int, before: str | None = None) -> Sequence[ListedTask]:
        """See the port."""
        query = select(tasks).where(*queries.matches(only, before)).order_by(tasks.c.task_id.desc()).limit(limit)
        with reading(self._engine) as connection:
            return [queries.listed(connection, row) for row in connection.execute(query).mappings().all()]

    def history(self, task_id: str) -> Sequence[HistoryEntry]:
        """See the port."""
        query = select(task_history).where(task_history.c.task_id == task_id).order_by(task_history.c.version)
        with reading(self._engine) as connection:
            queries.head(connection, task_id)
            return [history_of(row) for row in connection.execute(query).mappings()]

    def attempts(self, task_id: str, *, limit: int | None = None, after: int = 0) -> Sequence[Attempt]:
        """See the port."""
        behind = (attempts.c.task_id == task_id, attempts.c.attempt > after)
        query = select(attempts).where(*behind).order_by(attempts.c.attempt).limit(limit)
        with reading(self._engine) as connection:
            queries.head(connection, task_id)
            return [attempt_of(row) for row in connection.execute(query).mappings()]

    def log(self, task_id: str, attempt: int) -> LogLines | None:
        """See the port."""
        with reading(self._engine) as connection:
            return task_logs.log_of(connection, task_id, attempt)

    def attempts_of(self, task_ids: Sequence[str]) -> Mapping[str, Sequence[Attempt]]:
        """See the port."""
        found: dict[str, list[Attempt]] = {}
        query = select(attempts).where(attempts.c.task_id.in_(task_ids)).order_by(attempts.c.attempt)
        with reading(self._engine) as connection:
            for row in connection.execute(query).mappings():
                found.setdefault(row["task_id"], []).append(attempt_of(row))
        return found

    def latest_attempts(
        self,
        only: TaskFilter,
        *,
        states: frozenset[AttemptState] | None = None,
        limit: int,
        before: int | None = None,
        among: int | None = None,
    ) -> Sequence[AttemptOfTask]:
        """See the port."""
        query = queries.LATEST_ATTEMPTS.where(*queries.matches(only, None)).limit(limit)
        if among is not None:
            query = query.where(attempts.c.fencing_token > queries.LAST_TOKEN - among)
        if states is not None:
            query = query.where(attempts.c.state.in_(sorted(state.value for state in states)))
        if before is not None:
            query = query.where(attempts.c.fencing_token < before)
        with reading(self._engine) as connection:
            return [attempt_of_task(row) for row in connection.execute(query).mappings()]

    def counts(self, within: Scopes = EVERYWHERE) -> Mapping[TaskState, int]:
        """See the port."""
        query = select(tasks.c.state, func.count()).where(*of_tables_in(within, tasks)).group_by(tasks.c.state)
        with reading(self._engine) as connection:
            counted = {TaskState(state): count for state, count in connection.execute(query)}
        return {state: counted.get(state, 0) for state in TaskState}

    def restored_at(self) -> Instant | None:
        """See the port."""
        with reading(self._engine) as connection:
            return connection.scalar(select(counters.c.value).where(counters.c.name == RESTORED_AT))

    def census(self, oldest_max: int) -> TaskCensus:
        """See the port."""
        with reading(self._engine) as connection:
            return task_census(connection, self._now(connection), oldest_max)

    def attempt_counts(self, table_id: TableId) -> Mapping[AttemptState, int]:
        """See the port."""
        query = (
            select(attempts.c.state, func.count())
            .join(tasks, tasks.c.task_id == attempts.c.task_id)
            .where(tasks.c.catalog == table_id.catalog, tasks.c.table_uuid == table_id.uuid)
            .group_by(attempts.c.state)
        )
        with reading(self._engine) as connection:
            counted = {AttemptState(state): count for state, count in connection.execute(query)}
        return {state: counted.get(state, 0) for state in AttemptState}

    def ended(self, after: Ending | None, before: Instant, limit: int) -> Sequence[ListedTask]:
        """See the port."""
        at, task_id = tasks.c.updated_at, tasks.c.task_id
        within = [at < before]
        if after is not None:
            behind = and_(at == after.ended_at, task_id > after.task_id)
            within += [at >= after.ended_at, or_(at > after.ended_at, behind)]
        query = select(tasks).where(task_id.in_(queries.first_ended(limit, *within))).order_by(at, task_id)
        with reading(self._engine) as connection:
            return [queries.listed(connection, row) for row in connection.execute(query).mappings().all()]

    def prune(self, ended_before: Instant, limit: int) -> int:
        """See the port."""
        query = queries.first_ended(limit, tasks.c.updated_at < ended_before)
        with writing(self._engine) as connection:
            ended = connection.scalars(query).all()
            for table in (task_actions, task_history, task_logs.table, attempts, tasks):
                connection.execute(delete(table).where(table.c.task_id.in_(ended)))
            return len(ended)

    def prune_logs(self, written_before: Instant, limit: int) -> int:
        """See the port."""
        with writing(self._engine) as connection:
            return task_logs.prune(connection, written_before, limit)

    def _now(self, connection: Connection) -> Instant:
        return transactions.now(connection, self._clock)

    def _claim(self, resource_group: str, take: Callable[[], Sequence[ClaimSelector]]) -> Sequence[Task | None]:
        with writing(self._engine, (TELLS, lock(LockKind.GROUP, resource_group))) as connection:
            return claiming.claim(connection, take(), self._now(connection))

    def _try_enqueue(self, connection: Connection, new: NewTask, tries_left: int) -> Enqueued | None:
        """The answer, or None when somebody else queued or claimed the candidate in between."""
        require_not_refused(connection, new.plan_id)
        live = queries.live_task(connection, new.table_id, new.action.kind)
        now = self._now(connection)
        if live is not None and not lifecycle.may_coalesce(live):
            return Enqueued(live, created=False, coalesced=False)
        try:
            with connection.begin_nested():
                if live is not None:
                    step = lifecycle.coalesce(live, new, now)
                    task = queries.write(connection, live, step, new_action=True)
                    return Enqueued(task, created=False, coalesced=True)
                step = lifecycle.create(new, now)
                queries.insert_task(connection, step)
                return Enqueued(step.task, created=True, coalesced=False)
        except Conflict:
            return None
        except IntegrityError as error:
            if queries.find(connection, new.task_id) is not None:
                raise Conflict(f"there is a task {new.task_id} already") from error
            if not tries_left and queries.live_task(connection, new.table_id, new.action.kind) is None:
                raise
            return None  # somebody put a task back, which may be over by now
