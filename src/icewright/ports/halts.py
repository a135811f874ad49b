"""The door to halts: what of the queue is paused, draining or stopped."""

from collections.abc import Sequence
from typing import Protocol

from icewright.model.work.halts import Halt, NewHalt, Part


class Halts(Protocol):
    """All halts, the same for all servers of a store; each claim reads them in its own transaction.

    Each method is one transaction, with an entry in the audit and a fact in the feed for each change, on behalf of
    :func:`icewright.audit.acting.acting`. All raise :class:`~icewright.core.errors.Unavailable` when the store does
    not answer.
    """

    def present(self) -> Sequence[Halt]:
        """All of them, by their parts. Asked for at each heartbeat: cheap."""

    def halt(self, new: NewHalt) -> Halt:
        """Halt a part from now on, also one that is halted already in another way.

        What is given out afterwards was not covered: no claim is under way that has not seen it. The same once more
        changes nothing and keeps its time. Raises :class:`~icewright.core.errors.NotAllowed` where there are
        ``HALTS_MAX`` already.
        """

    def resume(self, part: Part, why: str) -> Halt | None:
        """End the halt of exactly this part; what it was, None where there was none. Others stay."""
