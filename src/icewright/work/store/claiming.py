"""Tasks given out in one transaction, to one or to several who ask at once: chosen one by one, and written together.

Each choice is made as if those before it were written already. So all get what they would have got one after the
other, and wait for one commit instead of for one each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, bindparam, insert, update
from sqlalchemy.exc import IntegrityError

from icewright.core.errors import Conflict
from icewright.core.times import Instant
from icewright.feed import sql as feed
from icewright.feed.task_events import fact_of
from icewright.model.actions.actions import ActionKind
from icewright.model.actions.traits import BESIDE, TableSlot
from icewright.model.iceberg.names import TableId
from icewright.model.policy.resource_groups import Queue
from icewright.model.work import lifecycle
from icewright.model.work.admission import Holding, Terms
from icewright.model.work.tasks import Task, TaskState
from icewright.store.schema import attempts, task_history, tasks
from icewright.work.groups.admission import Admission, in_turn, with_one_more
from icewright.work.store import admission_queries as admissions
from icewright.work.store import task_queries as queries
from icewright.work.store.admission_queries import Head, Wanted
from icewright.work.store.census import add_to_totals
from icewright.work.store.task_rows import attempt_row, claimed_columns, history_row
from icewright.work.store.task_totals import added

_CLAIMED: Final = update(tasks).where(
    tasks.c.task_id == bindparam("claimed_id"), tasks.c.version == bindparam("claimed_version")
)
_ATTEMPT: Final = insert(attempts)
_HISTORY: Final = insert(task_history)
VAIN_MAX: Final = 3
"""So often a claim may be refused by nothing that is still there when it is looked for."""


@dataclass(frozen=True, slots=True)
class ClaimSelector:
    """A claim, as :meth:`icewright.ports.admissions.Admissions.claim` has it."""

    optimizer_id: str
    resource_group: str
    catalogs: frozenset[str]
    lease_ms: int
    shareable_bytes_max: int | None
    terms: Terms
    kinds: frozenset[ActionKind]

    def selection(self, now: Instant) -> Wanted:
        """Among which tasks it may choose."""
        return Wanted(now, self.resource_group, self.catalogs, self.kinds, self.shareable_bytes_max)


@dataclass(frozen=True, slots=True)
class _Choice:
    asked: ClaimSelector
    head: Head
    holding: Holding


def alike(one: ClaimSelector, other: ClaimSelector) -> bool:
    """Whether two claims choose among the same tasks, and so may be answered together."""
    return (one.selection(0), one.terms.understood) == (other.selection(0), other.terms.understood)


def claim(connection: Connection, asked: Sequence[ClaimSelector], now: Instant) -> list[Task | None]:
    """What each of those gets who ask, who must be alike; for the first at least, and those behind have to ask again.

    What somebody else was faster with is passed over, be it another task of the same table: claims of other groups and
    changes of tasks come at the same time, and constraints and compare-and-swap tell.
    """
    wanted = admissions.going_on(connection, asked[0].selection(now))
    passed_over, vain = set[str](), 0
    while True:
        choices = _choices(connection, wanted, asked, passed_over)
        made = [choice for choice in choices if choice is not None]
        try:
            found = queries.tasks_by_id(connection, [choice.head.task_id for choice in made])
        except Conflict:  # one of them got another action between two statements: it is chosen anew
            continue
        lost = _not_waiting(found)
        if not lost:
            if any(found[choice.head.task_id].version != choice.head.version for choice in made):
                continue  # one may be of another group or size by now: what it was chosen by is not so any more
            try:
                with connection.begin_nested():
                    written = _written(connection, made, found, now)
                return [None if choice is None else written[choice.head.task_id] for choice in choices]
            except (Conflict, IntegrityError):
                lost = _lost(connection, found, now)
                vain += not lost  # whoever was faster may be done by now
                if vain > VAIN_MAX:
                    raise
        passed_over |= lost


def _choices(
    connection: Connection, wanted: Wanted, asked: Sequence[ClaimSelector], passed_over: set[str]
) -> list[_Choice | None]:
    """What each would get, as far as it can be told without writing what those before it get."""
    lanes, found = admissions.ready(connection, wanted)
    if not found:
        return [None] * len(asked)
    heads = _Heads(connection, wanted, found, passed_over)
    facts = admissions.facts(connection, wanted.resource_group, wanted.now, asked[0].terms.understood, lanes)
    choices: list[_Choice | None] = []
    for one in asked:
        if heads.lost_the_last_large() and choices:
            break  # whether anything large still waits decides what others may take
        admission = Admission(one.terms, one.optimizer_id, facts)
        chosen = heads.best(admission)
        if chosen is None:
            choices.append(None)
            continue
        choices.append(_Choice(one, chosen, admission.holding))
        heads.taken(chosen)
        facts = with_one_more(facts, chosen.lane, one.optimizer_id, admission.holding)
    return choices


class _Heads:
    """The best task of each lane, of those that were not taken yet.

    One that was taken stays until it would be the best of all, and only then the next of its lane is looked up: that
    ranks behind it, so whatever is before the one is before the other.
    """

    def __init__(
        self, connection: Connection, wanted: Wanted, found: Sequence[Head], passed_over: AbstractSet[str]
    ) -> None:
        self._connection, self._wanted, self._passed_over = connection, wanted, passed_over
        self._by_lane = {head.lane: head for head in found}
        self._held: dict[TableId, list[TableSlot]] = {}

    def best(self, admission: Admission) -> Head | None:
        """The one whose turn it is, of those that may start now."""
        while True:
            in_order = in_turn(admission, self._by_lane.values(), self._wanted.now)
            if not in_order or not self._is_gone(in_order[0]):
                return in_order[0] if in_order else None
            self._replace(in_order[0])

    def taken(self, head: Head) -> None:
        """It was taken, and holds its slot of its table."""
        self._held.setdefault(head.table_id, []).append(head.slot)

    def lost_the_last_large(self) -> bool:
        """Whether all heads of the large queue are gone, with nothing behind them that may run."""
        large = [head for lane, head in self._by_lane.items() if lane.queue is Queue.LARGE]
        for head in large:
            if self._is_gone(head):
                self._replace(head)
        return bool(large) and not any(lane.queue is Queue.LARGE for lane in self._by_lane)

    def _is_gone(self, head: Head) -> bool:
        held = self._held.get(head.table_id, ())
        return head.task_id in self._passed_over or any(slot not in BESIDE[head.slot] for slot in held)

    def _replace(self, gone: Head) -> None:
        behind: Head | None = gone
        while behind is not None and self._is_gone(behind):
            behind = admissions.after(self._connection, self._wanted, behind)
        if behind is None:
            del self._by_lane[gone.lane]
        else:
            self._by_lane[gone.lane] = behind


def _written(
    connection: Connection, choices: Sequence[_Choice], found: Mapping[str, Task], now: Instant
) -> dict[str, Task]:
    """All choices, written by a few statements. Raises ``Conflict`` where a task changed meanwhile."""
    if not choices:
        return {}
    last = queries.next_tokens(connection, len(choices))
    steps = [
        lifecycle.claim(
            found[choice.head.task_id],
            optimizer_id=choice.asked.optimizer_id,
            fencing_token=token,
            now=now,
            lease_ms=choice.asked.lease_ms,
            holding=choice.holding,
        )
        for token, choice in enumerate(choices, start=last - len(choices) + 1)
    ]
    admissions.took_turns(connection, [step.task for step in steps])
    rows = [
        {"claimed_id": step.task.task_id, "claimed_version": step.task.version - 1, **claimed_columns(step.task)}
        for step in sorted(steps, key=lambda step: (step.task.table_id, step.task.task_id))
    ]  # claims of another group that are at the same tables lock them in the same order
    if connection.execute(_CLAIMED, rows).rowcount != len(rows):
        raise Conflict("a task changed while it was claimed")
    connection.execute(_HISTORY, [history_row(step.entry) for step in steps])
    connection.execute(_ATTEMPT, [attempt_row(step.attempt) for step in steps if step.attempt is not None])
    feed.append(connection, *((fact, now) for step in steps if (fact := fact_of(step.before, step)) is not None))
    add_to_totals(connection, *(added(step) for step in steps))
    return {step.task.task_id: step.task for step in steps}


def _not_waiting(found: Mapping[str, Task]) -> set[str]:
    return {task.task_id for task in found.values() if task.state is not TaskState.QUEUED}


def _lost(connection: Connection, found: Mapping[str, Task], now: Instant) -> set[str]:
    """Those that somebody else was faster with, or with another task of their tables."""
    present = queries.tasks_by_id(connection, list(found))
    changed = {task_id for task_id, task in found.items() if present[task_id].version != task.version}
    busy = {task_id for task_id in found if admissions.blockers(connection, task_id, now)}
    return changed | busy
