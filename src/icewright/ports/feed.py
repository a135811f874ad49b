"""The door to the feed: facts are appended, read in their order, and forgotten when they are old."""

from typing import Protocol

from icewright.core.times import Instant
from icewright.model.events.feed import Fact, FeedFilter, FeedPage


class Feed(Protocol):
    """Facts with growing numbers. What becomes of tasks is in it by the change itself, see ``TaskStore.feed``.

    Who has read up to a number has missed nothing before it: no smaller number comes later.
    All methods raise :class:`~icewright.core.errors.Unavailable` when the store does not answer.
    """

    def tell(self, fact: Fact, key: str) -> bool:
        """Append a fact that is no task's, unless one of the same key is there already; whether it was appended."""

    def after(self, sequence: int, limit: int, only: FeedFilter) -> FeedPage:
        """At most ``limit`` facts with greater numbers, in their order."""

    def last(self) -> int:
        """The greatest number so far; 0 before the first fact."""

    def forgotten_through(self) -> int:
        """The greatest number that was forgotten; 0 while none was."""

    def forget(self, told_before: Instant, limit: int) -> int:
        """Forget at most so many facts that were told before an instant, in their order; how many there were."""
