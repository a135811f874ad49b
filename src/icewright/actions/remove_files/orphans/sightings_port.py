"""The store of what was seen without anything that needs it: by its clock the time of every orphan runs."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from icewright.core.clock_jumps import ClockNote
from icewright.core.times import Instant
from icewright.model.actions.orphans import FinishedPass, Sighting
from icewright.model.iceberg.names import TableId


class Sightings(Protocol):
    """The unneeded files of each table, as its last finished pass has them; durable.

    A pass puts all of them anew, in portions, and takes the place of the one before when it is finished: what it does
    not put is forgotten. One that never finishes changes nothing. All methods raise
    :class:`~icewright.core.errors.Unavailable` when the store does not answer.
    """

    def now(self) -> Instant:
        """The store's clock."""
        ...

    def finished(self, table_id: TableId) -> FinishedPass | None:
        """The last finished pass over a table; None before the first."""
        ...

    def sightings(self, table_id: TableId) -> Iterator[Sighting]:
        """What the last finished pass saw, in no particular order, one after the other."""
        ...

    def begin(self, table_id: TableId) -> int:
        """The number of a new pass. What one before it put and did not finish is gone."""
        ...

    def add(self, table_id: TableId, number: int, sightings: Sequence[Sighting]) -> None:
        """Put some more; they count once the pass is finished.

        Raises :class:`~icewright.core.errors.Conflict` when another pass over the table has begun meanwhile, or
        this one is finished.
        """
        ...

    def clock_note(self) -> ClockNote | None:
        """The last note about the clock; None before the first."""
        ...

    def keep_clock_note(self, note: ClockNote) -> None:
        """Keep a note in place of the last one."""
        ...

    def finish(self, table_id: TableId, finished: FinishedPass) -> None:
        """Let a pass take the place of the one before, all at once. Raises ``Conflict`` as :meth:`add` does."""
        ...
