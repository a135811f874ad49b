"""What servers need of a coordinator: which of them are there, who leads, and who looks at which tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from sqlalchemy import Engine

from icewright.core.servers import CoordinatorLink
from icewright.core.times import Instant
from icewright.server.cluster.coordinator import LEFT, Assigned, Bucket, Session


class Coordinator(Protocol):
    """What servers agree on. Sessions, buckets and their epochs are the store's, whoever says that a server has died.

    Each method raises ``Unavailable`` when the store does not answer.
    """

    @property
    def link(self) -> CoordinatorLink:
        """How this server is connected with it."""

    def join(self, server_id: str, backend: int) -> int:
        """Begin a session of a server, whose connection ``backend`` of the database serves.

        Raises :class:`~icewright.core.errors.NameTaken` while another server of that name lives, and
        :class:`~icewright.core.errors.InvalidConfiguration` while one lives that has another coordinator.
        """

    def beat(self, session: int, backend: int) -> bool:
        """Say that a server is there; whether its session has not ended."""

    def leave(self, session: int, why: str = LEFT) -> None:
        """End a session, and take all buckets from it. Harmless for one that has ended."""

    def now(self) -> Instant:
        """By the database's clock."""

    def version(self) -> int:
        """Of the assignment."""

    def held(self, session: int) -> Sequence[Bucket]:
        """The buckets of a session."""

    def hand_over(self, session: int, handed: Iterable[Bucket]) -> None:
        """Give buckets to those that they are to go to. Harmless for what is not the session's in that epoch."""

    def assign(self, engine: Engine, own: int | None = None, *, since: Instant | None = None) -> Mapping[str, int]:
        """End the sessions of the dead, and say where buckets are to be; how many that moved, by why.

        ``engine`` is the leader's: what it writes is refused when another server leads. ``own`` is its session, and
        ``since`` since when it hears of the store.
        """

    def sessions(self) -> Sequence[Session]:
        """Those that have not ended."""

    def assigned(self) -> Assigned:
        """All of it, for people."""
