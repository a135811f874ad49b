"""The submitters of a store, in the store."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Engine, delete, insert, select, update

from icewright.core.clock import Clock
from icewright.model.work.optimizers import SeenSubmitter, Submitter
from icewright.ports.submitters import SUBMITTERS_KEPT_MS, SUBMITTERS_MAX
from icewright.store import transactions
from icewright.store.documents import dump, load
from icewright.store.servers_schema import submitters
from icewright.store.transactions import reading, writing


class SqlSubmitters:
    """A :class:`~icewright.ports.submitters.Submitters` over an engine of the store.

    Time is the database's unless ``clock`` is given.
    """

    def __init__(self, engine: Engine, clock: Clock | None = None) -> None:
        self._engine, self._clock = engine, clock

    def note(self, submitter: Submitter) -> None:
        """See the port."""
        of_it = submitters.c.submitter_id == submitter.submitting.submitter_id
        with writing(self._engine) as connection:
            said = {"submitter": dump(submitter), "asked_at": (now := transactions.now(connection, self._clock))}
            if connection.execute(update(submitters).where(of_it).values(**said)).rowcount == 0:
                row = {"submitter_id": submitter.submitting.submitter_id, **said}
                connection.execute(insert(submitters).values(row))
                latest = select(submitters.c.submitter_id).order_by(submitters.c.asked_at.desc(), ~of_it)
                kept = latest.limit(SUBMITTERS_MAX).scalar_subquery()
                connection.execute(delete(submitters).where(submitters.c.submitter_id.not_in(kept)))
            connection.execute(delete(submitters).where(submitters.c.asked_at < now - SUBMITTERS_KEPT_MS))

    def noted(self) -> Sequence[SeenSubmitter]:
        """See the port."""
        with reading(self._engine) as connection:
            rows = connection.execute(select(submitters).order_by(submitters.c.submitter_id)).mappings()
            return [SeenSubmitter(load(Submitter, row["submitter"]), row["asked_at"]) for row in rows]
