"""A server that starts while its database is away: it waits for it and says so, instead of ending at once.

Machines of a cluster come up in any order, and a database that was killed takes seconds to recover: a server that ends
meanwhile is there again only where something starts it anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog

from icewright.core.errors import OutcomeUnknown, StoreTaken, StoreUnavailable

_log = structlog.get_logger("icewright.server")

STORE_WAIT_S: Final = 120.0
"""How long a server waits for its store before it gives up. A database that recovers takes seconds, one of which a new
machine takes over a minute or so; a wrong address, which looks the same, should be told at last."""
_PAUSE_S: Final = 1.0
_SAY_EVERY_S: Final = 10.0


@dataclass
class Start:
    """A start that is tried again as long as the store is away, until it :attr:`has_begun`.

    ``now_s`` and ``sleep`` are the monotonic clock, and how it passes.
    """

    wait_s: float = STORE_WAIT_S
    now_s: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    has_begun: bool = False

    def until_it_has_begun(self, begin: Callable[[], None]) -> None:
        """Call ``begin``, which sets ``has_begun``, again and again; whatever it raises behind that is raised.

        It must be fit to be called again wherever the store went away before. Raises
        ``StoreUnavailable`` or ``OutcomeUnknown`` when the store has
        been away for ``wait_s`` seconds, and at once what else ``begin`` raises.
        """
        since_s = self.now_s()
        say_at_s = since_s
        while True:
            try:
                begin()
            except (StoreUnavailable, OutcomeUnknown) as error:
                now_s = self.now_s()
                is_over = now_s - since_s >= self.wait_s
                if self.has_begun or is_over or isinstance(error, StoreTaken):
                    raise
                if now_s >= say_at_s:
                    _log.warning("waiting for the store", detail=str(error), at_most_s=self.wait_s)
                    say_at_s = now_s + _SAY_EVERY_S
                self.sleep(_PAUSE_S)
            else:
                return
