"""Decisions of autotuning in the store: one of a subject stands at a time, and a held one is not carried out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from sqlalchemy import ColumnElement, Connection, Engine, Select, and_, delete, func, insert, or_, select, update

from icewright.audit.acting import acting
from icewright.audit.sql import record
from icewright.core.clock import Clock
from icewright.core.errors import Conflict, NotFound
from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.feed import sql as feed
from icewright.model.access.permissions import Act
from icewright.model.events.feed import Fact, FactKind
from icewright.store import transactions
from icewright.store.documents import dump, load
from icewright.store.transactions import reading, writing
from icewright.work.autotune.model import STANDING, About, DecisionState, Hold, Move, Subject, TuneDecision
from icewright.work.autotune.schema import IS_STANDING, SUBJECT, decisions

_C: Final = decisions.c
_LATER: Final = decisions.alias("later")


class SqlDecisions:
    """Decisions. Safe for use by several threads, and by several servers.

    All methods raise :class:`~icewright.core.errors.Unavailable` when the store does not answer. Time is the
    database's unless ``clock`` is given.
    """

    def __init__(self, engine: Engine, clock: Clock | None = None) -> None:
        self._engine, self._clock = engine, clock

    def make(self, decision: TuneDecision) -> bool:
        """Keep a new decision; False where one of its subject stands or is held."""
        with writing(self._engine) as connection:
            busy = select(_C.decision_id).where(_of(decision.subject), or_(IS_STANDING, _C.held_at.is_not(None)))
            if connection.scalar(busy.limit(1)) is not None:
                return False
            connection.execute(insert(decisions).values(_row(decision)))
            self._announce(connection, decision, decision.new.reason)
            return True

    def begin(self, decision_id: str, optimizer_id: str | None = None) -> TuneDecision | None:
        """Take an open decision to be carried out; None where it is not open any more, or is held.

        So each is carried out once at most. ``optimizer_id`` is the optimizer that is going to be started.
        """
        with writing(self._engine) as connection:
            found = _find(connection, decision_id)
            if found.state is not DecisionState.OPEN or found.hold is not None:
                return None
            new = found.new if optimizer_id is None else replace(found.new, optimizer_id=optimizer_id)
            return _write(connection, replace(found, new=new, state=DecisionState.BEGUN))

    def end(self, decision_id: str, state: DecisionState, effect: Reason) -> TuneDecision | None:
        """Note what became of a decision that stands; None where it has ended already, or is held and has not begun."""
        with writing(self._engine) as connection:
            found = _find(connection, decision_id)
            if found.state not in STANDING or (found.state is DecisionState.OPEN and found.hold is not None):
                return None
            now = transactions.now(connection, self._clock)
            ended = _write(connection, replace(found, state=state, ended_at=now, effect=effect))
            self._announce(connection, ended, effect)
            return ended

    def hold(self, decision_id: str, why: str) -> TuneDecision:
        """Keep the latest decision of a subject, and all later ones, from being carried out.

        Raises :class:`NotFound`, :class:`Conflict` where it is held, under way or not the latest, and
        :class:`~icewright.core.errors.InvalidMessage` for a reason that is too long.
        """
        with writing(self._engine) as connection:
            found, now = _find(connection, decision_id), transactions.now(connection, self._clock)
            hold = Hold(acting(), now, why)
            if found.hold is not None:
                raise Conflict(f"{decision_id} is held already, by {found.hold.by}")
            if found.state is DecisionState.BEGUN:
                raise Conflict(f"{decision_id} is being carried out", hint="hold it when it is done")
            if (latest := _latest(connection, found.subject)) != decision_id:
                said = f"{decision_id} is not the latest decision about the {found.subject}"
                raise Conflict(said, hint=f"hold {latest}")
            held = _write(connection, replace(found, hold=hold))
            record(connection, now, _act("autotune.hold", held, why))
            text = f"{hold.by} holds the {held.subject}" + (f": {why}" if why else "")
            self._announce(connection, held, Reason("held", text))
            return held

    def release(self, decision_id: str, why: str) -> TuneDecision:
        """End a hold. Raises :class:`NotFound`, and :class:`Conflict` where it is not held."""
        with writing(self._engine) as connection:
            found, now = _find(connection, decision_id), transactions.now(connection, self._clock)
            if found.hold is None:
                raise Conflict(f"{decision_id} is not held")
            Hold(acting(), now, why)  # refuses a reason that is too long
            released = _write(connection, replace(found, hold=None))
            record(connection, now, _act("autotune.release", released, why))
            text = f"{acting()} releases the {released.subject}" + (f": {why}" if why else "")
            self._announce(connection, released, Reason("released", text))
            return released

    def get(self, decision_id: str) -> TuneDecision:
        """One of them. Raises :class:`NotFound`."""
        with reading(self._engine) as connection:
            return _find(connection, decision_id)

    def list(
        self, *, limit: int, before: tuple[Instant, str] | None = None, only_standing: bool = False
    ) -> Sequence[TuneDecision]:
        """Decisions, the newest first; ``only_standing`` are those that stand, or are held."""
        query = select(_C.decision)
        if only_standing:
            query = query.where(or_(IS_STANDING, _C.held_at.is_not(None)))
        if before is not None:
            at, decision_id = before
            query = query.where(or_(_C.made_at < at, and_(_C.made_at == at, _C.decision_id < decision_id)))
        return self._loaded(query.order_by(_C.made_at.desc(), _C.decision_id.desc()).limit(limit))

    def past(self, since: Instant) -> Sequence[TuneDecision]:
        """What the next decisions depend on, the newest first.

        Those that were made or have ended since then, that stand, or are held; and of each queue the last one of
        memory that was done.
        """
        recent = (_C.made_at >= since, _C.ended_at >= since, IS_STANDING, _C.held_at.is_not(None), _is_present_memory())
        return self._loaded(select(_C.decision).where(or_(*recent)).order_by(_C.made_at.desc(), _C.decision_id.desc()))

    def counts(self) -> Mapping[tuple[Move, DecisionState], int]:
        """How many are kept, by what was decided and what became of it."""
        query = select(_C.move, _C.state, func.count()).group_by(_C.move, _C.state)
        with reading(self._engine) as connection:
            return {(Move(move), DecisionState(state)): count for move, state, count in connection.execute(query)}

    def held(self) -> int:
        """How many are held."""
        with reading(self._engine) as connection:
            return connection.scalar(select(func.count()).where(_C.held_at.is_not(None))) or 0

    def prune(self, before: Instant, limit: int) -> int:
        """Forget those that ended before then, the oldest first; how many. The present memory of a queue stays."""
        old = (_C.ended_at < before, _C.held_at.is_(None), ~_is_present_memory())
        with writing(self._engine) as connection:
            found = list(connection.scalars(select(_C.decision_id).where(*old).order_by(_C.ended_at).limit(limit)))
            if found:
                connection.execute(delete(decisions).where(_C.decision_id.in_(found)))
            return len(found)

    def _loaded(self, query: Select[tuple[str]]) -> Sequence[TuneDecision]:
        with reading(self._engine) as connection:
            return [load(TuneDecision, str(found)) for found in connection.scalars(query)]

    def _announce(self, connection: Connection, decision: TuneDecision, reason: Reason) -> None:
        figures = {**reason.figures, "decision": decision.decision_id}
        fact = Fact(FactKind.TUNED, "", replace(reason, figures=figures))
        feed.append(connection, (fact, transactions.now(connection, self._clock)))


def _is_present_memory() -> ColumnElement[bool]:
    """The condition that no later decision of memory of the same queue was done."""
    done = (_C.about == About.MEMORY.value, _C.state == DecisionState.DONE.value)
    same = [_LATER.c[column.name] == column for column in SUBJECT]
    behind = and_(_LATER.c.made_at == _C.made_at, _LATER.c.decision_id > _C.decision_id)
    newer = select(_LATER.c.decision_id).where(
        *same, _LATER.c.state == DecisionState.DONE.value, or_(_LATER.c.made_at > _C.made_at, behind)
    )
    return and_(*done, ~newer.exists())


def _of(subject: Subject) -> ColumnElement[bool]:
    queue = subject.queue or ""
    return and_(_C.resource_group == subject.group, _C.queue == queue, _C.about == subject.about.value)


def _latest(connection: Connection, subject: Subject) -> str | None:
    query = select(_C.decision_id).where(_of(subject)).order_by(_C.made_at.desc(), _C.decision_id.desc()).limit(1)
    return connection.scalar(query)


def _find(connection: Connection, decision_id: str) -> TuneDecision:
    found = connection.scalar(select(_C.decision).where(_C.decision_id == decision_id))
    if found is None:
        raise NotFound(f"no decision {decision_id}", hint="`icewright autotune list` lists those there are")
    return load(TuneDecision, found)


def _write(connection: Connection, decision: TuneDecision) -> TuneDecision:
    connection.execute(update(decisions).where(_C.decision_id == decision.decision_id).values(_row(decision)))
    return decision


def _row(decision: TuneDecision) -> dict[str, str | int | None]:
    new = decision.new
    return {
        "decision_id": decision.decision_id,
        "resource_group": new.group,
        "queue": new.queue or "",
        "about": new.move.about.value,
        "move": new.move.value,
        "made_at": decision.made_at,
        "state": decision.state.value,
        "ended_at": decision.ended_at,
        "held_at": None if decision.hold is None else decision.hold.at,
        "decision": dump(decision),
    }


def _act(action: str, decision: TuneDecision, why: str) -> Act:
    return Act(action, f"autotune/{decision.decision_id}", {"subject": str(decision.subject), "why": why})
