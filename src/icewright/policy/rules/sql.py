"""Policies as they were applied, in an SQL database shared by any number of server processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, Engine, delete, func, insert, select, update

from icewright.audit.model import of_policies
from icewright.audit.sql import record
from icewright.core.clock import Clock
from icewright.core.errors import Conflict, NotFound
from icewright.core.times import Instant
from icewright.model.policy.policies import NO_REVISION, NewRevision, PolicyRevision
from icewright.policy.rules.schema import policy_revisions
from icewright.store import transactions
from icewright.store.documents import pack, unpack
from icewright.store.transactions import asking, reading, writing

# Built once: each look at a table asks for it, and building it takes longer than SQLite needs for it.
_PRESENT: Final = select(func.max(policy_revisions.c.number))


class SqlPolicies:
    """The port over an engine of :func:`icewright.store.engine.open_store`.

    Revisions are stamped with the database's clock unless ``clock`` is given.
    """

    def __init__(self, engine: Engine, clock: Clock | None = None) -> None:
        self._engine, self._clock = engine, clock

    def present(self) -> int:
        """See the port."""
        with asking(self._engine) as connection:
            return _present(connection)

    def revision(self, number: int) -> PolicyRevision:
        """See the port."""
        if number == NO_REVISION.number:
            return NO_REVISION
        query = select(policy_revisions.c.revision).where(policy_revisions.c.number == number)
        with reading(self._engine) as connection:
            found = connection.scalar(query)
        if found is None:
            raise NotFound(f"there is no revision {number} of the policies")
        return unpack(PolicyRevision, found)

    def revisions(self, *, limit: int, before: int | None = None) -> Sequence[PolicyRevision]:
        """See the port."""
        query = select(policy_revisions.c.revision).order_by(policy_revisions.c.number.desc()).limit(limit)
        if before is not None:
            query = query.where(policy_revisions.c.number < before)
        with reading(self._engine) as connection:
            return [unpack(PolicyRevision, found) for found in connection.scalars(query)]

    def apply(self, new: NewRevision, expected: int) -> PolicyRevision:
        """See the port."""
        with writing(self._engine) as connection:
            present = _present(connection)  # it is alone: it stays so until this is written
            if present != expected:
                raise Conflict(f"the policies are at revision {present} now, not at {expected}")
            now = transactions.now(connection, self._clock)
            made = PolicyRevision(expected + 1, new.policies, now, new.applied_by, new.note)
            record(connection, now, of_policies(made))
            replaced = policy_revisions.c.number == expected
            connection.execute(update(policy_revisions).where(replaced).values(replaced_at=now))
            connection.execute(insert(policy_revisions).values(number=made.number, revision=pack(made)))
            return made

    def prune(self, replaced_before: Instant, limit: int) -> int:
        """See the port."""
        number, at = policy_revisions.c.number, policy_revisions.c.replaced_at
        old = select(number).where(at < replaced_before).order_by(number).limit(limit)
        with writing(self._engine) as connection:
            return connection.execute(delete(policy_revisions).where(number.in_(old))).rowcount


def _present(connection: Connection) -> int:
    return int(connection.scalar(_PRESENT) or NO_REVISION.number)
