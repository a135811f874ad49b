"""Working on events: a table is looked at once for all that came of it before the look began, in turns of reporters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import islice
from typing import Final

from icewright.core.fault_points import Fault, fault
from icewright.core.reasons import Reason
from icewright.core.servers import TableShare
from icewright.events.reporting import committed_at
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import Snapshot
from icewright.ports.inbox import Inbox

UNKNOWN_MAX: Final = 50
"""Tables that are not known that a round looks at: each costs the catalog a question, and names are free."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of a look: the table's snapshots, and why it came to nothing, if it did.

    ``snapshots`` is None where nothing was learned, so that whoever asked asks again. ``counts`` is whether that may be
    the table's own fault: its catalog answers others.
    """

    snapshots: Sequence[Snapshot] | None
    trouble: Reason | None = None
    counts: bool = True


class InboxWorker:
    """What a round of the loop does with events. What is not answered stays; what fails again and again is parked."""

    def __init__(
        self,
        inbox: Inbox,
        look: Callable[[TableName, bool], Seen],
        away: Callable[[], Collection[str]],
        working: Callable[[TableName], AbstractContextManager[bool]],
        each: Callable[[Iterable[TableName], Callable[[TableName], object]], None],
    ) -> None:
        """``look`` looks at a table, and is told whether the name alone may be what fails. ``away`` are left alone.

        ``working`` surrounds all that is done for a table; it gives whether that may be. ``each``
        does something for each of many tables, for several at the same time.
        """
        self._inbox, self._look, self._away, self._working, self._each = inbox, look, away, working, each
        self._failed: set[TableName] = set()
        """Tables at which a look came to nothing in this round: the next one tries again."""

    def work(
        self,
        most: int,
        for_a_while: Callable[[Iterable[TableName]], Iterator[TableName]],
        share: TableShare | None = None,
    ) -> bool:
        """Look at ``most`` known tables of a share, and at some others behind them; whether there may be more."""
        self._failed.clear()
        away = self._away()
        known = self._inbox.reported_tables(most, known=True, without=away, share=share)
        others = self._inbox.reported_tables(UNKNOWN_MAX, known=False, without=away, share=share)
        in_time = for_a_while((*known, *others))
        self._each(islice(in_time, len(known)), self._answer)
        self._each(in_time, self._answer_doubtful)
        return len(known) >= most or len(others) >= UNKNOWN_MAX

    def try_again(self, share: TableShare | None = None) -> None:
        """Look for events whose last look came to nothing: behind all others, which show whether catalogs answer."""
        for name in self._inbox.reported_tables(UNKNOWN_MAX, tried=True, without=self._away(), share=share):
            if name not in self._failed:
                self._answer(name, doubtful=True)

    def _answer_doubtful(self, name: TableName) -> None:
        self._answer(name, doubtful=True)

    def _answer(self, name: TableName, *, doubtful: bool = False) -> None:
        with self._working(name) as may:
            if may:
                self.answer(name, doubtful=doubtful)

    def answer(self, name: TableName, *, doubtful: bool = False) -> None:
        """Look at a table that may be worked on, and answer all that was told of it."""
        told = self._inbox.reported_by_name(name)
        seen = self._look(name, doubtful)
        if seen.trouble is not None:
            self._failed.add(name)
            self._inbox.tried([*told], seen.trouble, counts=seen.counts)
        if seen.snapshots is not None:
            fault(Fault.EVENT_WORKED)
            self._inbox.done([*told], committed_at(told, seen.snapshots))
