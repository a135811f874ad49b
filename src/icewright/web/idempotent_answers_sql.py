"""Answers to keyed requests in an SQL database, the same for all servers of it."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Engine, delete, insert, select, update

from icewright.core.clock import Clock
from icewright.store import transactions
from icewright.store.documents import digest, dump, load
from icewright.store.locks import LockKind, lock
from icewright.store.schema_access import answers
from icewright.store.transactions import writing
from icewright.web.idempotent_answers import AnotherRequest, Answer, Answered, Begun, First, KeyedRequest, UnderWay


class SqlAnswers:
    """Which keyed requests were begun, and how they ended. Time is the store's own.

    All methods raise :class:`~icewright.core.errors.Unavailable` when the store does not answer, and what writes
    :class:`~icewright.core.errors.OutcomeUnknown` when nobody can tell whether it did.

    Time is the database's unless ``clock`` is given.
    """

    def __init__(self, engine: Engine, clock: Clock | None = None) -> None:
        self._engine, self._clock = engine, clock

    def begin(self, request: KeyedRequest, lifetime_ms: int) -> Begun:
        """Begin a request, unless its key was used within its lifetime. Of callers at once, one is told ``First``.

        Forgets all keys whose time is over.
        """
        name = _name(request)
        with writing(self._engine, (lock(LockKind.ROW, "answers", name),)) as connection:
            now = transactions.now(connection, self._clock)
            # Which somebody else just forgets, that one forgets.
            over = select(answers.c.name).where(answers.c.until <= now).with_for_update(skip_locked=True)
            connection.execute(delete(answers).where(answers.c.name.in_(over)))
            found = connection.execute(select(answers).where(answers.c.name == name)).one_or_none()
            if found is None:
                row = {"name": name, "fingerprint": request.fingerprint, "until": now + lifetime_ms}
                connection.execute(insert(answers), row)
                return First()
        if found.until <= now:  # somebody else just forgets it, or keeps an answer that comes too late
            return UnderWay()
        if found.fingerprint != request.fingerprint:
            return AnotherRequest()
        return UnderWay() if found.answer is None else Answered(load(Answer, found.answer))

    def keep(self, request: KeyedRequest, answer: Answer) -> None:
        """What a request that was begun was answered. Not begun, or forgotten since: changes nothing."""
        with writing(self._engine, ()) as connection:
            connection.execute(update(answers).where(_is(request)).values(answer=dump(answer)))

    def forget(self, request: KeyedRequest) -> None:
        """A request that was begun changed nothing: its key may be used as if it had never come."""
        with writing(self._engine, ()) as connection:
            connection.execute(delete(answers).where(_is(request)))


def _name(request: KeyedRequest) -> str:
    """Whose key it is, in one word: two of them may share a key."""
    return digest([request.principal, request.key])


def _is(request: KeyedRequest) -> ColumnElement[bool]:
    return (answers.c.name == _name(request)) & (answers.c.fingerprint == request.fingerprint)
