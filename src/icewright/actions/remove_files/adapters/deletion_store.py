"""Runs of deletions in an SQL database: what was intended is there before anything is touched, or nothing is."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Connection, Engine, bindparam, delete, exists, func, insert, select, tuple_, update

from icewright.actions.remove_files.adapters.deletions_schema import deletion_approvals, deletion_intents, deletion_runs
from icewright.audit.model import of_approval, of_files
from icewright.audit.model import of_run as act_of_run
from icewright.audit.sql import record
from icewright.core.clock import Clock
from icewright.core.errors import Conflict, NotAllowed, NotFound
from icewright.core.times import Instant
from icewright.model.access.permissions import EVERYWHERE, Scopes
from icewright.model.actions.deletion import DeletionRun, Intent, IntentState, changed
from icewright.model.iceberg.names import TableId
from icewright.model.plans.approvals import Approval, ApprovalPlace
from icewright.model.work.lifecycle import LIVE_STATES
from icewright.ports.deletions import HELD_STATES, OPEN_STATES, IntentCount
from icewright.store import transactions
from icewright.store.documents import dump, load
from icewright.store.schema import plans, state_is, tasks
from icewright.store.scope_filters import of_tables_in
from icewright.store.table_rows import id_columns, is_table, require_not_refused
from icewright.store.transactions import EPOCH, FOLLOWS, reading, server_epoch, taken_over, writing

_NUMBERS_AT_ONCE: Final = 500
"""How many values one statement may list."""

_REPLACE: Final = (
    update(deletion_intents)
    .where(deletion_intents.c.run_id == bindparam("of_run"), deletion_intents.c.number == bindparam("of_number"))
    .values(state=bindparam("to_state"), version=bindparam("to_version"), intent=bindparam("to_intent"))
)


class SqlDeletionStore:
    """A :class:`~icewright.ports.deletions.DeletionStore` over an engine of ``open_store``.

    Time is the database's unless ``clock`` is given.
    """

    def __init__(self, engine: Engine, clock: Clock | None = None) -> None:
        self._engine = engine
        self._clock = clock

    def now(self) -> Instant:
        """See the port."""
        with reading(self._engine) as connection:
            return transactions.now(connection, self._clock)

    def epoch(self) -> int:
        """See the port."""
        with reading(self._engine) as connection:
            present, own = server_epoch(connection), connection.get_execution_options().get(EPOCH, None)
            if own not in (None, present):
                raise taken_over()
            return present

    def begin(self, run: DeletionRun, intents: Sequence[Intent]) -> DeletionRun:
        """See the port."""
        with writing(self._engine) as connection:
            _require(connection, run.epoch)
            found = _find(connection, run.run_id)
            if found is not None:
                if found.plan_hash != run.plan_hash:
                    raise Conflict(f"run {run.run_id} is of another plan")
                return found
            query = select(deletion_runs.c.run_id).where(
                *is_table(deletion_runs, run.table_id), deletion_runs.c.is_open
            )
            if connection.scalar(query) is not None:
                raise Conflict(f"another run of table {run.table_id} is under way")
            now = transactions.now(connection, self._clock)
            connection.execute(insert(deletion_runs).values(**_run_row(run), changed_at=now))
            if intents:
                connection.execute(insert(deletion_intents), [_intent_row(intent) for intent in intents])
            record(connection, now, act_of_run(run, len(intents)))
            return run

    def run(self, run_id: str) -> DeletionRun:
        """See the port."""
        with reading(self._engine) as connection:
            return _found(connection, run_id)

    def runs(
        self, *, table_id: TableId | None = None, open_only: bool = False, limit: int, before: str | None = None
    ) -> Sequence[DeletionRun]:
        """See the port."""
        query = select(deletion_runs.c.run).order_by(deletion_runs.c.run_id.desc()).limit(limit)
        if table_id is not None:
            query = query.where(*is_table(deletion_runs, table_id))
        if open_only:
            query = query.where(deletion_runs.c.is_open)
        if before is not None:
            query = query.where(deletion_runs.c.run_id < before)
        with reading(self._engine) as connection:
            return [load(DeletionRun, text) for text in connection.scalars(query)]

    def rest(self, run_id: str, epoch: int, next_at: Instant) -> None:
        """See the port."""
        with writing(self._engine) as connection:
            _require(connection, epoch)
            _save(connection, _found(connection, run_id), next_at=next_at)

    def close(self, run_id: str, epoch: int) -> None:
        """See the port."""
        query = select(func.count()).where(
            deletion_intents.c.run_id == run_id, deletion_intents.c.state.in_(_values(OPEN_STATES))
        )
        with writing(self._engine) as connection:
            _require(connection, epoch)
            run = _found(connection, run_id)
            if connection.scalar(query):
                raise Conflict(f"run {run_id} has files whose outcome is open")
            _save(connection, run, is_open=False)
            _note_change(connection, {run_id}, transactions.now(connection, self._clock))

    def intents(
        self, run_id: str, states: frozenset[IntentState], *, limit: int, after: int | None = None
    ) -> Sequence[Intent]:
        """See the port."""
        query = (
            select(deletion_intents.c.intent)
            .where(deletion_intents.c.run_id == run_id, deletion_intents.c.state.in_(_values(states)))
            .order_by(deletion_intents.c.number)
            .limit(limit)
        )
        if after is not None:
            query = query.where(deletion_intents.c.number > after)
        with reading(self._engine) as connection:
            return [load(Intent, text) for text in connection.scalars(query)]

    def count_intents(self, run_id: str) -> Mapping[IntentState, IntentCount]:
        """See the port."""
        state = deletion_intents.c.state
        query = (
            select(state, func.count(), func.sum(deletion_intents.c.size_bytes))
            .where(deletion_intents.c.run_id == run_id)
            .group_by(state)
        )
        found = dict.fromkeys(IntentState, IntentCount(0, 0))
        with reading(self._engine) as connection:
            rows = connection.execute(query).all()
        return {**found, **{IntentState(name): IntentCount(files, int(size_bytes)) for name, files, size_bytes in rows}}

    def change(self, epoch: int, changes: Sequence[Intent]) -> Sequence[Intent]:
        """See the port."""
        with writing(self._engine) as connection:
            _require(connection, epoch)
            now = transactions.now(connection, self._clock)
            stored = _stored(connection, changes)
            become = [changed(stored[one.run_id, one.number], one, now) for one in changes]
            if become:
                connection.execute(_REPLACE, [_replacement(one) for one in become])
                _note_change(connection, {one.run_id for one in become}, now)
                record(connection, now, *of_files(become))
            return become

    def with_held(
        self, *, table_id: TableId | None = None, limit: int, before: str | None = None, within: Scopes = EVERYWHERE
    ) -> Sequence[str]:
        """See the port."""
        query = (
            select(deletion_intents.c.run_id)
            .where(deletion_intents.c.state.in_(_values(HELD_STATES)))
            .distinct()
            .order_by(deletion_intents.c.run_id.desc())
            .limit(limit)
        )
        if table_id is not None:
            of_table = select(deletion_runs.c.run_id).where(*is_table(deletion_runs, table_id))
            query = query.where(deletion_intents.c.run_id.in_(of_table))
        if within != EVERYWHERE:
            theirs = select(deletion_runs.c.run_id).where(*of_tables_in(within, deletion_runs))
            query = query.where(deletion_intents.c.run_id.in_(theirs))
        if before is not None:
            query = query.where(deletion_intents.c.run_id < before)
        with reading(self._engine) as connection:
            return list(connection.scalars(query))

    def approve(self, approval: Approval) -> Approval:
        """See the port."""
        with writing(self._engine) as connection:
            found = _approval(connection, approval.plan_hash)
            if found is not None:
                return found
            if approval.plan is not None:
                require_not_refused(connection, approval.plan.plan_id)
            row = {"plan_hash": approval.plan_hash, "approval": dump(approval), "approved_at": approval.approved_at}
            plan = approval.plan
            of_plan = {} if plan is None else {"plan_id": plan.plan_id, **id_columns(plan.table_id)}
            connection.execute(insert(deletion_approvals).values(**row, **of_plan))
            record(connection, transactions.now(connection, self._clock), of_approval(approval))
            return approval

    def approval(self, plan_hash: str) -> Approval | None:
        """See the port."""
        with reading(self._engine) as connection:
            return _approval(connection, plan_hash)

    def approvals(
        self,
        *,
        table_id: TableId | None = None,
        limit: int,
        before: ApprovalPlace | None = None,
        within: Scopes = EVERYWHERE,
    ) -> Sequence[Approval]:
        """See the port."""
        place = deletion_approvals.c.approved_at, deletion_approvals.c.plan_hash
        query = select(deletion_approvals.c.approval).where(*of_tables_in(within, deletion_approvals))
        query = query.order_by(*(column.desc() for column in place)).limit(limit)
        if table_id is not None:
            query = query.where(*is_table(deletion_approvals, table_id))
        if before is not None:
            query = query.where(tuple_(*place) < (before.approved_at, before.plan_hash))
        with reading(self._engine) as connection:
            return [load(Approval, text) for text in connection.scalars(query)]

    def prune(self, changed_before: Instant, limit: int) -> int:
        """See the port."""
        run_id, file = deletion_runs.c.run_id, (deletion_intents.c.run_id, deletion_intents.c.number)
        of_run = deletion_intents.c.run_id == run_id
        of_table = (tasks.c.catalog == deletion_runs.c.catalog, tasks.c.table_uuid == deletion_runs.c.table_uuid)
        query = (
            select(run_id)
            .where(
                ~deletion_runs.c.is_open,
                deletion_runs.c.changed_at < changed_before,
                ~exists().where(of_run, deletion_intents.c.state.in_(_values(OPEN_STATES | HELD_STATES))),
                ~exists().where(tasks.c.task_id == run_id),
                ~exists().where(*of_table, state_is(*LIVE_STATES)),
            )
            .order_by(deletion_runs.c.changed_at, run_id)
            .limit(limit)
        )
        with writing(self._engine) as connection:
            over = connection.scalars(query).all()
            files = select(*file).where(file[0].in_(over)).order_by(*file).limit(limit)
            removed = connection.execute(delete(deletion_intents).where(tuple_(*file).in_(files))).rowcount
            connection.execute(delete(deletion_runs).where(run_id.in_(over), ~exists().where(of_run)))
            return removed

    def prune_approvals(self, approved_before: Instant, limit: int) -> int:
        """See the port."""
        plan_hash, at = deletion_approvals.c.plan_hash, deletion_approvals.c.approved_at
        gone = (
            deletion_approvals.c.plan_id.is_not(None),
            ~exists().where(plans.c.plan_id == deletion_approvals.c.plan_id),
        )
        old = select(plan_hash).where(at < approved_before, *gone).order_by(at, plan_hash).limit(limit)
        with writing(self._engine) as connection:
            return connection.execute(delete(deletion_approvals).where(plan_hash.in_(old))).rowcount


def _note_change(connection: Connection, run_ids: Collection[str], now: Instant) -> None:
    """Removals are as old as what was last done with them."""
    connection.execute(update(deletion_runs).where(deletion_runs.c.run_id.in_(run_ids)).values(changed_at=now))


def _require(connection: Connection, epoch: int) -> None:
    """Fence off a server that does not lead, and one that does not any more, whichever engine it writes by."""
    if connection.get_execution_options().get(FOLLOWS, False):
        raise NotAllowed("files are removed by the server that leads alone", hint="this is a defect of icewright")
    if server_epoch(connection) != epoch:
        raise taken_over()


def _find(connection: Connection, run_id: str) -> DeletionRun | None:
    text = connection.scalar(select(deletion_runs.c.run).where(deletion_runs.c.run_id == run_id))
    return None if text is None else load(DeletionRun, text)


def _found(connection: Connection, run_id: str) -> DeletionRun:
    found = _find(connection, run_id)
    if found is None:
        raise NotFound(f"no run {run_id} of deletions")
    return found


def _save(connection: Connection, run: DeletionRun, **changes: Any) -> None:
    row = _run_row(replace(run, **changes))
    connection.execute(update(deletion_runs).where(deletion_runs.c.run_id == run.run_id).values(row))


def _stored(connection: Connection, wanted: Sequence[Intent]) -> dict[tuple[str, int], Intent]:
    """The intents as they are, by run and number. Raises :class:`NotFound` when one is not there."""
    numbers: dict[str, list[int]] = {}
    for intent in wanted:
        numbers.setdefault(intent.run_id, []).append(intent.number)
    found: dict[tuple[str, int], Intent] = {}
    for run_id, of_run in numbers.items():
        for start in range(0, len(of_run), _NUMBERS_AT_ONCE):
            query = select(deletion_intents.c.intent).where(
                deletion_intents.c.run_id == run_id,
                deletion_intents.c.number.in_(of_run[start : start + _NUMBERS_AT_ONCE]),
            )
            for text in connection.scalars(query):
                intent = load(Intent, text)
                found[run_id, intent.number] = intent
    for intent in wanted:
        if (intent.run_id, intent.number) not in found:
            raise NotFound(f"run {intent.run_id} has no file {intent.number}")
    return found


def _approval(connection: Connection, plan_hash: str) -> Approval | None:
    text = connection.scalar(select(deletion_approvals.c.approval).where(deletion_approvals.c.plan_hash == plan_hash))
    return None if text is None else load(Approval, text)


def _run_row(run: DeletionRun) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        **id_columns(run.table_id),
        "plan_hash": run.plan_hash,
        "is_open": run.is_open,
        "next_at": run.next_at,
        "run": dump(run),
    }


def _intent_row(intent: Intent) -> dict[str, Any]:
    return {
        "run_id": intent.run_id,
        "number": intent.number,
        "state": intent.state.value,
        "version": intent.version,
        "size_bytes": intent.object.size_bytes,
        "intent": dump(intent),
    }


def _replacement(intent: Intent) -> dict[str, Any]:
    return {
        "of_run": intent.run_id,
        "of_number": intent.number,
        "to_state": intent.state.value,
        "to_version": intent.version,
        "to_intent": dump(intent),
    }


def _values(states: frozenset[IntentState]) -> list[str]:
    return sorted(state.value for state in states)
