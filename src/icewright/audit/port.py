"""The door to the audit, and on whose behalf the present call is made."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from icewright.audit.model import SERVER, AuditEntry, Head
from icewright.core.times import Instant
from icewright.model.access.permissions import Act

_ACTING: ContextVar[str] = ContextVar("icewright_acting", default=SERVER)
"""A context variable and no argument: between the door and the transaction that writes it lie services that have no
other use for it."""


def acting() -> str:
    """The name of the principal on whose behalf the present call is made; :data:`SERVER` where nobody asked."""
    return _ACTING.get()


@contextmanager
def acting_as(principal: str) -> Iterator[None]:
    """Let everything in the block be done on behalf of ``principal``."""
    reset = _ACTING.set(principal)
    try:
        yield
    finally:
        _ACTING.reset(reset)


class AuditLog(Protocol):
    """What was done by whom: entries are only ever added, and chained (:mod:`icewright.audit.model`).

    Stores of tasks, deletions and tokens write their entries themselves, in the transaction of the change. All methods
    raise :class:`~icewright.core.errors.Unavailable` when the store does not answer: then nothing may be done.
    """

    def append(self, act: Act) -> AuditEntry:
        """Write an entry for :func:`acting`, at the store's time."""
        ...

    def entries(self, *, limit: int, after: int) -> Sequence[AuditEntry]:
        """Entries by number, those behind ``after``."""
        ...

    def latest(self, *, limit: int, before: int | None = None) -> Sequence[AuditEntry]:
        """Entries, the newest first, those before a number if it is given."""
        ...

    def start(self) -> Head:
        """What the first entry that is there follows: the checkpoint behind which the chain begins."""
        ...

    def head(self) -> Head:
        """The end of the chain."""
        ...

    def prune(self, before: Instant, limit: int) -> int:
        """Forget at most so many entries of before an instant, the oldest first, and write an entry that says so.

        The latest entry stays. How many were forgotten.
        """
        ...
