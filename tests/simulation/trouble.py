"""What befalls a server in the simulation, from below: its store and its catalogs, each call at a time.

Both stand between the services and the ports in memory, which are as they are. What they do to a call is decided by
the world's chance, so that a run replays by its seed.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from icewright.core.errors import NotFound, OutcomeUnknown, StoreUnavailable
from icewright.core.fault_points import Fault
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import TableMetadata
from tests.doubles.clock import ManualClock
from tests.services.lakehouse import MINUTE_MS, SECOND_MS

NEVER = -1
LIES_MS = 3 * MINUTE_MS
"""How old an answer a lying catalog may give."""


class Killed(BaseException):
    """The server process dies here; nothing in it may catch this."""


@dataclass
class Trouble:
    """When a server dies, and for how long what it stands on misbehaves. ``until`` are instants of the true time."""

    chance: random.Random
    clock: ManualClock
    counted: Counter[str]
    fuse: int = NEVER
    """Calls of the store until death."""
    dies_before: bool = True
    trap: Fault | None = None
    """The fault point at which the server dies next."""
    store_away_until: int = 0
    catalog_slow_until: int = 0
    catalog_lies_until: int = 0
    meanwhile: Callable[[], None] = lambda: None
    """Somebody else's doings while the server waits for its catalog."""

    def come_by(self, point: Fault) -> None:
        """The hook of the fault points."""
        self.counted[f"came by {point}"] += 1
        if self.trap is point:
            self.trap = None
            self.counted[f"killed at {point}"] += 1
            raise Killed

    def end(self) -> None:
        """Nothing misbehaves any more."""
        self.fuse, self.trap = NEVER, None
        self.store_away_until = self.catalog_slow_until = self.catalog_lies_until = 0
        self.meanwhile = lambda: None


class Mortal:
    """A store whose caller dies at a chosen call, and which at times answers only with an error.

    In both cases before the call took effect or after: who asked cannot know.
    """

    def __init__(self, store: Any, trouble: Trouble) -> None:
        self._store, self._trouble = store, trouble

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        trouble = self._trouble
        if not callable(method):
            return Mortal(method, trouble)  # the feed is a part of the store

        def call(*args: Any, **kwargs: Any) -> Any:
            trouble.fuse -= 1
            if trouble.fuse == 0 and trouble.dies_before:
                raise Killed
            away = trouble.clock.now() < trouble.store_away_until and trouble.chance.random()
            if away and away < 0.3:
                trouble.counted["store away"] += 1
                raise StoreUnavailable("the store does not answer")
            answer = method(*args, **kwargs)
            if trouble.fuse == 0:
                raise Killed
            if away and away > 0.7:
                trouble.counted["store answer lost"] += 1
                raise OutcomeUnknown("the store took it and does not answer")
            return answer

        return call


@dataclass
class Moody:
    """A catalog as a server sees it: at times slow, at times telling of yesterday, and others act while it answers."""

    catalog: Any
    trouble: Trouble
    may_lie: bool = True
    _told: dict[TableName, list[tuple[int, TableMetadata]]] = field(default_factory=dict)

    def load(self, name: TableName) -> TableMetadata:
        """The table; from a lying catalog as it was a while ago."""
        self._pass_time()
        now = self.trouble.clock.now()
        told = self._told.setdefault(name, [])
        if (
            now < self.trouble.catalog_lies_until
            and self.catalog.available
            and self.may_lie
            and told
            and self.trouble.chance.random() < 0.7
        ):
            at, metadata = self.trouble.chance.choice(told)
            if now - at < LIES_MS:
                self.trouble.counted["catalog lied"] += 1
                return metadata
        try:
            metadata = self.catalog.load(name)
        except NotFound:
            told.clear()
            raise
        del told[:-5]
        told.append((now, metadata))
        return metadata  # type: ignore[no-any-return]  # the catalog's own

    def __getattr__(self, name: str) -> Any:
        answer = getattr(self.catalog, name)
        if not callable(answer):
            return answer

        def call(*args: Any, **kwargs: Any) -> Any:
            self._pass_time()
            return answer(*args, **kwargs)

        return call

    def _pass_time(self) -> None:
        trouble = self.trouble
        if trouble.clock.now() < trouble.catalog_slow_until and trouble.chance.random() < 0.1:
            trouble.counted["catalog slow"] += 1
            trouble.clock.advance(trouble.chance.randint(1, 45) * SECOND_MS)
        if trouble.chance.random() < 0.01:
            trouble.meanwhile()
