"""A store of very many tables, as looks would leave it: rows by the store's own functions, inserted many at once.

None of these tables is in a catalog. They are like one that was looked at, in figures that a test can work out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import Engine, insert, update

from icewright.feed import sql as feed
from icewright.model.access.permissions import Scope
from icewright.model.actions.actions import ActionKind
from icewright.model.events.feed import Fact, FactKind
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import Mode
from icewright.model.work.figures import Grade, Listed
from icewright.ports.store import TableRecord, WaitingPlan
from icewright.store.documents import digest, dump
from icewright.store.schema import LISTED_CHANGED, counters, listed_tables, tables, waiting_plans
from icewright.store.table_rows import id_columns, record_row
from icewright.store.transactions import writing
from icewright.work.store.table_lists import listed_row
from icewright.work.store.waiting_plans import waiting_row

NAMESPACES: Final = 50
WAITING_EACH: Final = 10
"""Of so many tables one has a plan that waits."""
KINDS: Final = 1_010
"""So many tables differ in what lists show of them; then the same begins again."""
_ROWS: Final = 5_000
_CHANGED: Final = 1_000_000
_MODES: Final = (Mode.AUTO, Mode.APPROVE, Mode.OBSERVE)


@dataclass(frozen=True, slots=True)
class MadeUp:
    """A table of the fleet by its number: what lists show of it."""

    number: int

    @property
    def name(self) -> TableName:
        """Its name, of one of a few namespaces."""
        return TableName("lake", (f"ns{self.number % NAMESPACES:02}",), f"t{self.number:06}")

    @property
    def table_id(self) -> TableId:
        """Its id."""
        return TableId("lake", f"fleet-{self.number:06}")

    @property
    def bytes(self) -> int:
        """Its size."""
        return (self.number % KINDS * 7_919) % 1_000_003 * 1_000_003

    @property
    def health(self) -> int:
        """Its health, from 0 to 100."""
        return self.number % KINDS * 37 % 101

    @property
    def mode(self) -> Mode:
        """Its mode."""
        return _MODES[self.number % KINDS % len(_MODES)]

    def listed(self, like: Listed) -> Listed:
        """What its last look found."""
        if like.health is None:
            raise ValueError("a table with a health is wanted")
        health = replace(like.health, score=self.health, grade=Grade.of(self.health))
        figures = replace(like.figures, size_bytes=self.bytes, data_files=self.number % KINDS + 1)
        return replace(like, mode=self.mode, figures=figures, health=health)


def add_tables(engine: Engine, like: TableRecord, count: int) -> Sequence[MadeUp]:
    """Add so many tables, a plan that waits for each tenth of them, and a fact of the feed for each of those."""
    if like.listed is None:
        raise ValueError("a table that was looked at is wanted")
    made = [MadeUp(number) for number in range(count)]
    kinds = [one.listed(like.listed) for one in made[:KINDS]]
    rows = [record_row(replace(like, listed=listed)) for listed in kinds]
    shown = [listed_row(replace(like, listed=listed)) for listed in kinds]
    with writing(engine) as connection:
        for begin in range(0, count, _ROWS):
            some = made[begin : begin + _ROWS]
            connection.execute(insert(tables), [rows[one.number % KINDS] | _row(one) for one in some])
            connection.execute(insert(listed_tables), [shown[one.number % KINDS] | _listed_row(one) for one in some])
        waiting = [_waiting(one, like) for one in made[::WAITING_EACH]]
        if waiting:
            connection.execute(insert(waiting_plans), [waiting_row(one) for one in waiting])
            feed.append(connection, *((_fact(one), like.observed_at) for one in waiting))
        changed = update(counters).where(counters.c.name == LISTED_CHANGED)
        connection.execute(changed.values(value=_CHANGED + count))
    return made


def _row(one: MadeUp) -> dict[str, Any]:
    return {**id_columns(one.table_id), "name_digest": digest(one.name), "name": dump(one.name)}


def _listed_row(one: MadeUp) -> dict[str, Any]:
    name = str(one.name)
    own = {"name": name, "sort_name": name, "namespace": str(Scope.of(one.name)), "changed": _CHANGED + one.number}
    return {**id_columns(one.table_id), **own}


def _waiting(one: MadeUp, like: TableRecord) -> WaitingPlan:
    reason = Reason("mode-approve", "in mode approve each plan waits for a person")
    kind = ActionKind.REWRITE_DATA_FILES
    return WaitingPlan(f"plan-0000000{one.number:06}", one.table_id, one.name, kind, reason, like.observed_at)


def _fact(waiting: WaitingPlan) -> Fact:
    return Fact(
        FactKind.WAITS_FOR_APPROVAL,
        waiting.table_id.catalog,
        waiting.reason,
        waiting.table_id,
        waiting.table_name,
        plan_id=waiting.plan_id,
        action=waiting.kind,
    )
