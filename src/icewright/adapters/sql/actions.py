"""Actions of tasks, unpacked from the database; those that were asked for last are kept.

An action names every file that it reads, up to many thousands, and tasks are listed all the time: with each look at a
table, and by whoever has the page open. Decoding the same lists again and again would take most of a server's time.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final, cast

from icewright.adapters.sql.documents import unpack
from icewright.domain.actions import Action, names_in

NAMES_KEPT_MAX: Final = 400_000
"""Files and snapshots that all kept actions together name; some 100 MB."""

_ANY: Final = cast("type[Action]", Action)


class KeptActions:
    """Actions by their packed forms, which never come to mean anything else. Safe for several threads at once."""

    def __init__(self, names_max: int = NAMES_KEPT_MAX) -> None:
        self._names_max = names_max
        self._names = 0
        self._lock = threading.Lock()
        self._kept: OrderedDict[bytes, Action] = OrderedDict()

    def unpack(self, packed: bytes) -> Action:
        """The action. Raises :class:`~icewright.domain.errors.Unreadable`."""
        with self._lock:
            known = self._kept.get(packed)
            if known is not None:
                self._kept.move_to_end(packed)
                return known
        action = unpack(_ANY, packed)
        with self._lock:
            if packed not in self._kept:
                self._kept[packed] = action
                self._names += names_in(action)
            while self._names > self._names_max:
                _, oldest = self._kept.popitem(last=False)
                self._names -= names_in(oldest)
        return action
