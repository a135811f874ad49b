"""A quarantine in memory, with a place for tests to let its storage misbehave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from icewright.core.errors import Conflict, NotAllowed
from icewright.model.actions.deletion import Held, Step, Whereabouts, same_object
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.objects import ListedObject, prefix_of
from tests.doubles.objects import MemoryStorage

BEFORE: Final = "before"
AFTER: Final = "after"
Trouble = Callable[[Step, str, CanonicalPath], None]
"""Called before and after each step takes effect; what it raises passes through."""


class MemoryQuarantine:
    """See the port. ``root`` is the one quarantine of the storage."""

    def __init__(self, storage: MemoryStorage, root: CanonicalPath | None, trouble: Trouble | None = None) -> None:
        self._storage = storage
        self._root = root
        self.trouble: Trouble = trouble or (lambda _step, _when, _path: None)

    @property
    def roots(self) -> Sequence[CanonicalPath]:
        """The one quarantine."""
        return () if self._root is None else (self._root,)

    def check(self, path: CanonicalPath) -> None:
        """There is one for all paths, or none."""
        if self._root is None:
            raise NotAllowed(f"there is no quarantine for {path}", hint="configure one")

    def quarantine(self, run_id: str, expected: ListedObject) -> Held:
        """Move an object to its place in quarantine."""
        self.check(expected.path)
        self.trouble(Step.QUARANTINE, BEFORE, expected.path)
        with self._storage.lock:
            found = self._storage.objects.get(expected.path)
            if found is None or not same_object(expected, found.listed):
                raise Conflict(f"{expected.path} is not what it was")
            held = self._storage.move(expected.path, self._place(run_id, expected.path))
        self.trouble(Step.QUARANTINE, AFTER, expected.path)
        return Held(held.path, held.etag)

    def restore(self, _run_id: str, expected: ListedObject, held: Held) -> None:
        """Move it back."""
        self.trouble(Step.RESTORE, BEFORE, expected.path)
        with self._storage.lock:
            if held.place not in self._storage.objects:
                raise Conflict(f"{expected.path} is not in quarantine")
            if expected.path in self._storage.objects:
                raise Conflict(f"there is something at {expected.path} now")
            self._storage.move(held.place, expected.path)
        self.trouble(Step.RESTORE, AFTER, expected.path)

    def purge(self, _run_id: str, expected: ListedObject, held: Held) -> None:
        """Take it away for good."""
        self.trouble(Step.PURGE, BEFORE, expected.path)
        self._storage.remove(held.place)
        self.trouble(Step.PURGE, AFTER, expected.path)

    def look(self, run_id: str, expected: ListedObject) -> Whereabouts:
        """Both places."""
        with self._storage.lock:
            original = self._storage.objects.get(expected.path)
            held = self._storage.objects.get(self._place(run_id, expected.path))
        return Whereabouts(
            None if original is None else original.listed,
            None if held is None else Held(held.listed.path, held.listed.etag),
        )

    def _place(self, run_id: str, path: CanonicalPath) -> CanonicalPath:
        root = self._root or CanonicalPath("mem://nowhere/quarantine")
        return CanonicalPath(f"{prefix_of(root)}{run_id}/{path.partition('://')[2]}")
