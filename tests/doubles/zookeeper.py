"""ZooKeeper's sessions as they are lost, expire and come back, by a clock of the tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from icewright.core.errors import CoordinatorUnavailable
from icewright.core.servers import ZOOKEEPER, CoordinatorLink, LinkState
from tests.doubles.clock import ManualClock


@dataclass
class FakeEnsemble:
    """All of ZooKeeper. Each tick the sessions of those that reach it go on, and others expire."""

    clock: ManualClock
    session_ms: int
    is_away: bool = False
    servers: list[FakeZooKeeper] = field(default_factory=list)
    heard: dict[str, int] = field(default_factory=dict)
    """When each server that is there was last heard of, by its name."""

    def tick(self) -> None:
        now = self.clock.now()
        for one in self.servers:
            one.connect(is_there=not self.is_away and one.reaches())
            if one.is_connected and one.name is not None:
                self.heard[one.name] = now
        if not self.is_away:
            self.heard = {name: at for name, at in self.heard.items() if now - at <= self.session_ms}

    def come_back(self, *, forgets: bool) -> None:
        """Behind an outage: ZooKeeper gives each session its time anew, unless it was there all the time."""
        self.is_away = False
        self.heard = {} if forgets else dict.fromkeys(self.heard, self.clock.now())


@dataclass(eq=False)
class FakeZooKeeper:
    """A server's session; ``reaches`` says whether the server runs and its network does."""

    ensemble: FakeEnsemble
    reaches: Callable[[], bool]
    monotonic_s: Callable[[], float]
    late_ms: Callable[[], int]
    """How long it takes to be there again, each time."""
    root: str = "/icewright"
    name: str | None = None
    is_connected: bool = False
    since_s: float = 0.0
    published: bytes = b""
    _connects_at: int | None = None

    def __post_init__(self) -> None:
        self.session_s = self.ensemble.session_ms / 1000
        self.ensemble.servers.append(self)

    def connect(self, *, is_there: bool) -> None:
        now = self.ensemble.clock.now()
        if not is_there:
            self.is_connected, self._connects_at = False, None
        elif not self.is_connected:
            if self._connects_at is None:
                self._connects_at = now + self.late_ms()
            if now >= self._connects_at:
                self.is_connected, self.since_s = True, self.monotonic_s()

    @property
    def link(self) -> CoordinatorLink:
        return CoordinatorLink(ZOOKEEPER, LinkState.CONNECTED if self.is_connected else LinkState.SUSPENDED)

    @property
    def steady_s(self) -> float:
        return self.monotonic_s() - self.since_s if self.is_connected else 0.0

    def announce(self, name: str) -> None:
        self._require()
        self.name = name
        self.ensemble.heard[name] = self.ensemble.clock.now()

    def present(self) -> frozenset[str]:
        self._require()
        return frozenset(self.ensemble.heard)

    def publish(self, assignment: bytes) -> None:
        self._require()
        self.published = assignment

    def _require(self) -> None:
        if not self.is_connected or self.ensemble.is_away:
            raise CoordinatorUnavailable("it is away")
