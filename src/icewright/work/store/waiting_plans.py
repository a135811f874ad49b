"""Plans that wait for a person, and those that people refused, in an SQL database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Engine, delete, exists, insert, select

from icewright.actions.remove_files.adapters.deletions_schema import deletion_approvals
from icewright.audit.model import of_refusal
from icewright.audit.sql import record
from icewright.core import wording
from icewright.core.clock import Clock
from icewright.core.errors import Conflict
from icewright.feed import sql as feed
from icewright.feed.task_events import fact_of_refusal
from icewright.model.access.permissions import EVERYWHERE, Scopes
from icewright.model.actions.actions import ActionKind
from icewright.model.iceberg.names import TableId
from icewright.model.plans.approvals import Approval, Refusal
from icewright.model.work.lifecycle import LIVE_STATES
from icewright.ports.store import WaitingPlan
from icewright.store import transactions
from icewright.store.documents import dump, load
from icewright.store.locks import table_lock
from icewright.store.schema import refused_plans, state_is, tasks, waiting_plans
from icewright.store.scope_filters import of_tables_in
from icewright.store.table_rows import id_columns, is_table, refusal_of, replacing
from icewright.store.transactions import reading, writing
from icewright.work.store.table_pruning import of_no_dropped_table


class SqlWaitingPlans:
    """What a :class:`~icewright.ports.store.TableStore` keeps of plans that wait."""

    _engine: Engine
    _clock: Clock | None

    def wait(self, waiting: WaitingPlan) -> None:
        """See the port."""
        row = waiting_row(waiting)
        with writing(self._engine, (table_lock(waiting.table_id),)) as connection:
            connection.execute(delete(refused_plans).where(refused_plans.c.plan_id == waiting.plan_id))
            connection.execute(replacing(waiting_plans), row)

    def waits(self, table_id: TableId) -> Mapping[ActionKind, WaitingPlan]:
        """See the port."""
        query = select(waiting_plans.c.waiting).where(*is_table(waiting_plans, table_id))
        with reading(self._engine) as connection:
            found = [load(WaitingPlan, document) for document in connection.scalars(query)]
        return {one.kind: one for one in found}

    def waits_no_more(self, table_id: TableId, kind: ActionKind) -> None:
        """See the port."""
        with writing(self._engine, (table_lock(table_id),)) as connection:
            connection.execute(delete(waiting_plans).where(*_waits(table_id, kind)))

    def waiting(self, *, limit: int, after: str | None = None, within: Scopes = EVERYWHERE) -> Sequence[WaitingPlan]:
        """See the port."""
        is_refused = exists().where(refused_plans.c.plan_id == waiting_plans.c.plan_id).correlate(waiting_plans)
        ours = (of_no_dropped_table(), ~is_refused, *of_tables_in(within, waiting_plans))
        query = select(waiting_plans.c.waiting).where(*ours).order_by(waiting_plans.c.plan_id)
        if after is not None:
            query = query.where(waiting_plans.c.plan_id > after)
        with reading(self._engine) as connection:
            return [load(WaitingPlan, document) for document in connection.scalars(query.limit(limit))]

    def refuse(self, refusal: Refusal) -> Refusal:
        """See the port."""
        with writing(self._engine) as connection:
            before = refusal_of(connection, refusal.plan_id)
            if before is not None:
                return before
            decided = _decided(connection, refusal)
            if decided is not None:
                raise Conflict(f"plan {refusal.plan_id} {decided}", hint="`icewright approve` lists what waits")
            row = {"plan_id": refusal.plan_id, **id_columns(refusal.table_id), "refused_at": refusal.refused_at}
            connection.execute(insert(refused_plans).values(**row, refusal=dump(refusal)))
            now = transactions.now(connection, self._clock)
            record(connection, now, of_refusal(refusal))
            feed.append(connection, (fact_of_refusal(refusal), now))
            return refusal

    def refusal(self, plan_id: str) -> Refusal | None:
        """See the port."""
        with reading(self._engine) as connection:
            return refusal_of(connection, plan_id)

    def refusals(self, table_id: TableId) -> Mapping[ActionKind, Refusal]:
        """See the port."""
        query = select(refused_plans.c.refusal).where(*is_table(refused_plans, table_id))
        with reading(self._engine) as connection:
            found = [load(Refusal, text) for text in connection.scalars(query.order_by(refused_plans.c.refused_at))]
        return {one.kind: one for one in found}


def waiting_row(waiting: WaitingPlan) -> dict[str, Any]:
    """A plan that waits as the columns of ``waiting_plans``."""
    return {
        **id_columns(waiting.table_id),
        "kind": waiting.kind.value,
        "plan_id": waiting.plan_id,
        "waiting": dump(waiting),
    }


def _decided(connection: Connection, refusal: Refusal) -> str | None:
    """Why a plan cannot be refused any more; None where it can."""
    of_plan = select(tasks.c.task_id, state_is(*LIVE_STATES)).where(tasks.c.plan_id == refusal.plan_id)
    tried = connection.execute(of_plan).all()
    under_way = next((task_id for task_id, is_live in tried if is_live), None)
    given = select(deletion_approvals.c.approval).where(deletion_approvals.c.plan_hash == refusal.plan_hash)
    text = connection.scalar(given)
    if text is not None and (under_way is not None or not tried):  # else it was used, and the plan waits again
        approval = load(Approval, text)
        return f"was approved by {approval.approved_by} at {wording.instant(approval.approved_at)}"
    if under_way is not None:
        return f"was applied: task {under_way} carries it out"
    here = (waiting_plans.c.plan_id == refusal.plan_id, of_no_dropped_table())
    is_waiting = connection.scalar(select(waiting_plans.c.plan_id).where(*here)) is not None
    return None if is_waiting else "does not wait for a person, or not any more"


def _waits(table_id: TableId, kind: ActionKind) -> tuple[ColumnElement[bool], ...]:
    """The plan of a kind of action that waits for a table."""
    return (*is_table(waiting_plans, table_id), waiting_plans.c.kind == kind.value)
