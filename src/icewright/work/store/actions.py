"""Actions of tasks, as they lie in the database; those that were asked for last are kept.

An action names every file that it reads, or removes, up to many thousands: megabytes. Tasks are read all the time, with
each heartbeat, each look at a table, and by whoever has the page open. So an action is told by its digest, and is read
and decoded once.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, cast

from icewright.model.actions.actions import Action, names_in
from icewright.store.documents import unpack

NAMES_KEPT_MAX: Final = 400_000
"""Files and snapshots that all kept actions together name; some 100 MB."""

_ANY: Final = cast("Any", Action)


def digest_of(packed: bytes) -> str:
    """SHA-256 of a packed action, in hexadecimal."""
    return hashlib.sha256(packed).hexdigest()


class KeptActions:
    """Actions by the digests of their packed forms. Safe for several threads at once."""

    def __init__(self, names_max: int = NAMES_KEPT_MAX) -> None:
        self._names_max = names_max
        self._names = 0
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Action] = OrderedDict()

    def has(self, digest: str) -> bool:
        """Whether the action of a digest is kept at this moment."""
        with self._lock:
            return digest in self._kept

    def get(self, digest: str, read: Callable[[], bytes]) -> Action:
        """The action of a digest; ``read`` is asked for its packed form where it is not kept.

        Raises :class:`~icewright.core.errors.Unreadable`.
        """
        with self._lock:
            known = self._kept.get(digest)
            if known is not None:
                self._kept.move_to_end(digest)
                return known
        action: Action = unpack(_ANY, read())
        with self._lock:
            if digest not in self._kept:
                self._kept[digest] = action
                self._names += names_in(action)
            while self._names > self._names_max:
                _, oldest = self._kept.popitem(last=False)
                self._names -= names_in(oldest)
        return action
