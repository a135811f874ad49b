"""Objects in memory: for simulations and tests, and as the plainest statement of the port."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from icewright.core.clock import Clock
from icewright.core.errors import Unreadable
from icewright.core.times import Instant
from icewright.model.iceberg.locations import CanonicalPath
from icewright.model.iceberg.objects import Listed, ListedObject, prefix_of


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object and what is in it."""

    listed: ListedObject
    content: bytes


@dataclass(slots=True)
class MemoryStorage:
    """All objects of a world, which many may write. ``clock`` is the storage's own."""

    clock: Clock
    objects: dict[CanonicalPath, StoredObject] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    _writes: int = 0

    def write(
        self, path: CanonicalPath, content: bytes, *, modified_at: Instant | None = None, size_bytes: int | None = None
    ) -> ListedObject:
        """Put an object, in place of what was there. Listings say ``size_bytes``, where the content stands for more."""
        with self.lock:
            self._writes += 1
            instant = self.clock.now() if modified_at is None else modified_at
            length = len(content) if size_bytes is None else size_bytes
            listed = ListedObject(path, length, instant, f"etag-{self._writes}")
            self.objects[path] = StoredObject(listed, content)
            return listed

    def move(self, path: CanonicalPath, to: CanonicalPath) -> ListedObject:
        """Take an object to another place, in place of what was there: a copy, written now, of the same bytes."""
        with self.lock:
            stored = self.objects.pop(path)
            return self.write(to, stored.content, size_bytes=stored.listed.size_bytes)

    def remove(self, path: CanonicalPath) -> None:
        """Take an object away, as somebody else might."""
        with self.lock:
            self.objects.pop(path, None)


class MemoryObjects:
    def __init__(self, storage: MemoryStorage) -> None:
        self._storage = storage

    def now(self, _path: CanonicalPath) -> Instant:
        """The storage's clock."""
        return self._storage.clock.now()

    def list(self, root: CanonicalPath) -> Iterator[Listed]:
        """Everything below a root, as of the moment when the first is taken."""
        prefix = prefix_of(root)
        with self._storage.lock:
            found = [stored.listed for path, stored in self._storage.objects.items() if path.startswith(prefix)]
        yield from found

    def list_folder(self, folder: CanonicalPath) -> Iterator[Listed]:
        """What is in a folder itself, as of that moment."""
        prefix = prefix_of(folder)
        return (one for one in self.list(folder) if "/" not in one.path[len(prefix) :])

    def stat(self, path: CanonicalPath) -> ListedObject | None:
        """What is at a path now."""
        with self._storage.lock:
            stored = self._storage.objects.get(path)
            return None if stored is None else stored.listed

    def read(self, path: CanonicalPath, bytes_max: int) -> bytes:
        """All bytes of an object."""
        with self._storage.lock:
            stored = self._storage.objects.get(path)
        if stored is None:
            raise Unreadable(f"{path} is not there")
        if len(stored.content) > bytes_max:
            raise Unreadable(f"{path} is longer than {bytes_max} bytes, the most that is read of it")
        return stored.content
