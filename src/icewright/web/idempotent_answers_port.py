"""The door to what requests with an ``Idempotency-Key`` were answered: the same for all servers of one store."""

from typing import Protocol

from icewright.web.idempotent_answers import Answer, Begun, KeyedRequest


class Answers(Protocol):
    """Which keyed requests were begun, and how they ended. Time is the store's own.

    All methods raise :class:`~icewright.core.errors.Unavailable` when the store does not answer, and what writes
    :class:`~icewright.core.errors.OutcomeUnknown` when nobody can tell whether it did.
    """

    def begin(self, request: KeyedRequest, lifetime_ms: int) -> Begun:
        """Begin a request, unless its key was used within its lifetime. Of callers at once, one is told ``First``.

        Forgets all keys whose time is over.
        """
        ...

    def keep(self, request: KeyedRequest, answer: Answer) -> None:
        """What a request that was begun was answered. Not begun, or forgotten since: changes nothing."""
        ...

    def forget(self, request: KeyedRequest) -> None:
        """A request that was begun changed nothing: its key may be used as if it had never come."""
        ...
