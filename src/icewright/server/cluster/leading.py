"""Which of the servers of a store leads, as one of them sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from icewright.core.servers import CoordinatorLink, SeenServer, nobody_leads
from icewright.model.access.permissions import Principal
from icewright.server.cluster.coordinator import Assigned
from icewright.server.control import ControlPlane


@dataclass(frozen=True, slots=True)
class Question:
    """A request that was let in, as it is passed on: ``target`` is path and query as they came.

    ``headers`` are those that mean something to a route, by their names in lower case.
    """

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    asked_by: Principal
    timeout_s: float = 30.0
    """How long the answer may take."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the leading server answered; ``headers`` as those of a :class:`Question`."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


class Leading(Protocol):
    """Who leads, as this server sees it."""

    @property
    def led(self) -> ControlPlane | None:
        """The control plane whose loop turns here; None while another server leads, or nobody."""

    @property
    def is_stuck(self) -> bool:
        """Whether the loop of a former lead hangs here in a call, so that this server cannot lead again."""

    @property
    def buckets(self) -> int | None:
        """Of how many buckets this server looks at the tables; None where it is the only one."""

    @property
    def differing(self) -> int | None:
        """How many servers have another configuration than this one, which leads; None while it does not, or alone."""

    @property
    def link(self) -> CoordinatorLink | None:
        """How this server is connected with the coordinator; None where it is the only one."""

    def servers(self) -> Sequence[SeenServer]:
        """All servers of the store. Raises ``Unavailable``."""

    def assigned(self) -> Assigned | None:
        """Which server looks at which tables; None where there is one alone. Raises ``Unavailable``."""

    def ask_leader(self, question: Question) -> Answer:
        """Have the leading server answer. Raises ``Unavailable``, ``OutcomeUnknown`` where it may have acted."""


class AlwaysLeads:
    """A server that knows of no others."""

    def __init__(self, control: ControlPlane) -> None:
        self.led: ControlPlane | None = control
        self.is_stuck = False
        self.buckets: int | None = None
        self.differing: int | None = None
        self.link: CoordinatorLink | None = None

    def servers(self) -> Sequence[SeenServer]:
        """See the protocol."""
        return ()

    def assigned(self) -> Assigned | None:
        """See the protocol."""
        return None

    def ask_leader(self, question: Question) -> Answer:
        """See the protocol."""
        del question
        raise nobody_leads()
