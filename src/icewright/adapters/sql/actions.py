"""Actions of tasks, unpacked from the database; those that were asked for last are kept.

An action names every file that it reads, up to many thousands, and tasks are listed all the time: with each look at a
table, and by whoever has the page open. Decoding the same lists again and again would take most of a server's time.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final

from icewright.adapters.sql.documents import unpack
from icewright.domain.actions import Action

FILES_KEPT_MAX: Final = 400_000
"""Files that all kept actions together name; some 100 MB."""


class KeptActions:
    """Actions by their packed forms, which never come to mean anything else. Safe for several threads at once."""

    def __init__(self, files_max: int = FILES_KEPT_MAX) -> None:
        self._files_max = files_max
        self._files = 0
        self._lock = threading.Lock()
        self._kept: OrderedDict[bytes, Action] = OrderedDict()

    def unpack(self, packed: bytes) -> Action:
        """The action. Raises :class:`~icewright.domain.errors.Unreadable`."""
        with self._lock:
            known = self._kept.get(packed)
            if known is not None:
                self._kept.move_to_end(packed)
                return known
        action: Action = unpack(Action, packed)
        with self._lock:
            if packed not in self._kept:
                self._kept[packed] = action
                self._files += action.input_files
            while self._files > self._files_max:
                _, oldest = self._kept.popitem(last=False)
                self._files -= oldest.input_files
        return action
