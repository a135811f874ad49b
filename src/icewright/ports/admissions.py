"""The part of the task store that gives tasks out: by what runs, by whose turn it is, each in one transaction."""

from collections.abc import Sequence
from typing import Final, Protocol

from icewright.model.actions.actions import EVERY_KIND, ActionKind
from icewright.model.plans.plans import Reason
from icewright.model.work.admission import FREE, Blocker, Facts, InLane, Line, Terms, Took
from icewright.model.work.tasks import Task

CLAIMABLE_MAX: Final = 32
"""Who starts applications starts fewer at once, and asks again."""


AHEAD_MAX: Final = 1_000
"""Whoever has so many before it need not know how many more."""
LANES_MAX: Final = 100
"""So many lanes beside its own are counted for a task; where more are, its line is not whole."""
TOOK_MAX: Final = 100
"""So many ended tasks tell how long those of a group take: enough for quartiles, and few steps in an index."""


class Admissions(Protocol):
    """What is claimed of the queue. Raises :class:`~icewright.core.errors.Unavailable` when it does not answer."""

    def claim(
        self,
        optimizer_id: str,
        *,
        resource_group: str,
        catalogs: frozenset[str],
        lease_ms: int,
        shareable_bytes_max: int | None = None,
        terms: Terms = FREE,
        kinds: frozenset[ActionKind] = EVERY_KIND,
    ) -> Task | None:
        """The waiting task whose turn it is, made running under a new lease; None when there is none that may run now.

        Only tasks of the resource group, of those catalogs and of these kinds of actions; with ``shareable_bytes_max``,
        only such as were never tried and whose action has at most so many ``shareable_bytes``. May run:
        ``not_before_at`` has passed, :meth:`blockers` has none, and on these ``terms`` its resource group takes one
        more, which :class:`icewright.work.groups.admission.Admission` tells from what the tasks that run hold. Whose
        turn it is: :func:`icewright.work.groups.rank.turn`. Claims by several callers at once never give out the same
        task, nor two of one table that hold one slot, nor more than a group may hold.
        """

    def claimable(
        self,
        resource_group: str,
        catalogs: frozenset[str],
        terms: Terms = FREE,
        kinds: frozenset[ActionKind] = EVERY_KIND,
    ) -> int:
        """How many tasks :meth:`claim` could give out at this moment, each to an application of its own.

        Counted up to ``CLAIMABLE_MAX``; nothing changes.
        """

    def facts(self, resource_group: str, understood: frozenset[ActionKind] = EVERY_KIND) -> Facts:
        """What the running tasks of a resource group hold, and what waits in it.

        ``understood`` are the kinds of actions that its optimizers carry out.
        What an attempt held that was lost counts for ``icewright.work.groups.admission.HELD_MS`` after its lease.
        """

    def blockers(self, task_id: str) -> Sequence[Blocker]:
        """The other tasks of its table for which a waiting task may not start now, by their ids.

        Those that are active beside which it may not be (:data:`icewright.model.actions.traits.BESIDE`). And of a task
        that holds ``metadata`` an older one of the server's own that needs the table alone and may start: that goes
        first, so that tasks beside each other cannot keep it waiting for ever.
        """

    def line(self, task_id: str) -> Line:
        """What waits beside a waiting task: of its own lane what ranks before it, all of the other lanes of its queue.

        Counted up to ``AHEAD_MAX`` tasks in all, those of its own lane first, of at most ``LANES_MAX`` other lanes. How
        old a task has to be to be aged is :data:`icewright.work.groups.rank.AGED_MS`, its priority counted in.
        Raises :class:`~icewright.core.errors.NotFound`.
        """

    def lanes(self, resource_group: str) -> Sequence[InLane]:
        """The lanes of a group in which tasks wait, that with most of them first, with all that waits in each.

        Its work grows with the number of tasks that wait, unlike that of all else here: for people who ask.
        """

    def took(self, resource_group: str) -> Sequence[Took]:
        """How long the last attempts took at the ``TOOK_MAX`` tasks of a group that ended last, the latest first.

        Of tasks at which nobody worked there are none.
        """

    def expedite(self, task_id: str, reason: Reason) -> Task:
        """Have a waiting task started before all others of its resource group; harmless where it is so already.

        Raises ``NotFound``, and ``NotAllowed`` for one that does not wait.
        """
