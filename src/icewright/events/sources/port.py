"""The port of sources that events are fetched from, and of where it is kept how far they were read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from icewright.model.events.events import Channel, CommitEvent


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a source gave. ``passed_over`` counts what was of no known shape, ``lost`` what was gone before its turn.

    ``problem`` says why the first of these was passed over.
    """

    events: Sequence[CommitEvent] = ()
    passed_over: int = 0
    lost: int = 0
    problem: str = ""


class EventSource(Protocol):
    """Gives events again until they are acknowledged: to this process after a restart, or to another one."""

    name: str
    channel: Channel
    idle_s: float
    """How long to leave it alone after it gave nothing."""

    def fetch(self, most: int, timeout_s: float) -> Fetched:
        """At most so many things that have not been fetched by this object yet; may wait for one for so long.

        Raises :class:`~icewright.core.errors.Unavailable` when the source does not answer.
        """

    def acknowledge(self) -> None:
        """All that was fetched is in the inbox, and need not be given again. Raises ``Unavailable``; harmless twice."""

    def close(self) -> None:
        """Let go of it, without acknowledging anything."""
