"""What tasks took, in memory: the plainest statement of the port."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from icewright.core.times import Instant
from icewright.model.actions.undo import Kept, check_size
from icewright.model.work.retention import RowKind


class MemoryKept:
    """A :class:`~icewright.ports.undo_records.UndoRecordStore` that is gone with the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, Kept] = {}

    def keep(self, kept: Kept) -> None:
        """See the port."""
        check_size(kept)
        with self._lock:
            self._kept[kept.task_id] = kept

    def kept(self, task_id: str) -> Kept | None:
        """See the port."""
        with self._lock:
            return self._kept.get(task_id)

    def forget(self, kept_before: Instant, limit: int) -> int:
        """See the port."""
        with self._lock:
            old = sorted((one for one in self._kept.values() if one.kept_at < kept_before), key=_age)[:limit]
            for one in old:
                del self._kept[one.task_id]
            return len(old)

    def ages(self) -> Mapping[RowKind, Sequence[Instant]]:
        """When each was written down."""
        with self._lock:
            return {RowKind.KEPT: [one.kept_at for one in self._kept.values()]}


def _age(kept: Kept) -> tuple[Instant, str]:
    return kept.kept_at, kept.task_id
