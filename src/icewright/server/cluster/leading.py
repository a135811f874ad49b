"""Which of the servers of a store leads, as one of them sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from icewright.core.servers import SeenServer, nobody_leads
from icewright.ports.leading import Answer, Question
from icewright.server.control import ControlPlane


class Leading(Protocol):
    """Who leads, as this server sees it."""

    @property
    def led(self) -> ControlPlane | None:
        """The control plane whose loop turns here; None while another server leads, or nobody."""
        ...

    @property
    def is_stuck(self) -> bool:
        """Whether the loop of a former lead hangs here in a call, so that this server cannot lead again."""
        ...

    def servers(self) -> Sequence[SeenServer]:
        """All servers of the store. Raises ``Unavailable``."""
        ...

    def ask_leader(self, question: Question) -> Answer:
        """Have the leading server answer. Raises ``Unavailable``, ``OutcomeUnknown`` where it may have acted."""
        ...


class AlwaysLeads:
    """A server that knows of no others."""

    def __init__(self, control: ControlPlane) -> None:
        self.led: ControlPlane | None = control
        self.is_stuck = False

    def servers(self) -> Sequence[SeenServer]:
        """See the protocol."""
        return ()

    def ask_leader(self, question: Question) -> Answer:
        """See the protocol."""
        del question
        raise nobody_leads()
