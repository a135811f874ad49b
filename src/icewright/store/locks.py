"""What writers lock: on SQLite the turn to write, on PostgreSQL what they change (``docs/decisions``, 0010 and 0077).

SQLite lets one transaction write at a time and has the others sleep and try again, for longer each time: whoever has
just come may be faster than one that has waited for seconds. So callers of one process wait here, in the order in
which they came, and one at a time asks SQLite.

On PostgreSQL locks are taken at the beginning, all at once and in one order, before any row: so that no two
transactions wait for each other by them.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final

from icewright.core.errors import StoreUnavailable
from icewright.model.iceberg.names import TableId

LOCKS: Final = 0x69636577
"""The first half of our advisory locks, "icew" in ASCII; they are the database's, like its tables."""


class LockKind(IntEnum):
    """What locks are of, in the order in which they are taken."""

    FEED = 1
    """The order of the feed: shared by whoever tells of something, had alone by whoever reads what was told."""
    INBOX = 2
    """How much waits in the inbox: shared as long as little does."""
    AUDIT = 3
    """The end of the chain of the audit."""
    LISTS = 4
    """The numbers of changes of lists of tables."""
    ASSIGNMENT = 5
    """Which server has which bucket."""
    SERVERS = 6
    """Which servers are there."""
    GROUP = 7
    """What a resource group holds, by the name of the group."""
    BUCKET = 8
    """Events of tables whose names are in a bucket, by the number of the bucket."""
    NAME = 9
    """Which table has a name."""
    TABLE = 10
    """What is known of a table, and its tasks, by its id."""
    TASK = 11
    """What becomes of a task, by its id."""
    STORAGE = 12
    """What is known of a storage, by its catalog and root."""
    ROW = 13
    """A row that is replaced or inserted, by its table and key."""


@dataclass(frozen=True, slots=True, order=True)
class Lock:
    """A lock of a kind. Two things whose numbers are the same by chance wait for each other, and no more."""

    kind: LockKind
    number: int = 0
    shared: bool = False

    @property
    def key(self) -> tuple[int, int]:
        """The two halves by which PostgreSQL knows it."""
        return LOCKS + self.kind, self.number


def lock(kind: LockKind, *of: str | int) -> Lock:
    """The lock of one thing of a kind."""
    text = json.dumps(of, separators=(",", ":")).encode()
    return Lock(kind, int.from_bytes(hashlib.sha256(text).digest()[:4], signed=True))


def table_lock(table_id: TableId) -> Lock:
    """The lock of a table."""
    return lock(LockKind.TABLE, table_id.catalog, table_id.uuid)


def in_order(locks: Iterable[Lock]) -> Sequence[Lock]:
    """Locks in the order in which they are to be taken, each once; alone where somebody wants it so."""
    shared: dict[Lock, bool] = {}
    for one in locks:
        same = replace(one, shared=False)
        shared[same] = shared.get(same, True) and one.shared
    return [replace(one, shared=shared[one]) for one in sorted(shared)]


TELLS: Final = Lock(LockKind.FEED, shared=True)
"""What a transaction holds that tells of something in the feed."""
ASSIGNED: Final = Lock(LockKind.ASSIGNMENT, shared=True)
"""What a transaction holds during which no bucket may move."""


class WriteLock:
    """A lock that is handed from one waiting thread to the next. One that has it and asks again waits for itself."""

    def __init__(self, wait_ms: int) -> None:
        """``wait_ms`` is how long somebody waits at most."""
        self._wait_ms = wait_ms
        self._guard = threading.Lock()
        self._taken = False
        self._waiting: deque[threading.Event] = deque()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for one's turn, and have it. Raises :class:`~icewright.core.errors.StoreUnavailable` after too long."""
        self._take()
        try:
            yield
        finally:
            self._pass_on()

    @property
    def waiting(self) -> int:
        """How many wait at this moment."""
        with self._guard:
            return len(self._waiting)

    def _take(self) -> None:
        with self._guard:
            if not self._taken:
                self._taken = True
                return
            called = threading.Event()
            self._waiting.append(called)
        if called.wait(self._wait_ms / 1000):
            return
        with self._guard:
            if not called.is_set():
                self._waiting.remove(called)
                raise StoreUnavailable(
                    f"the store does not answer: another writer has its lock for over {self._wait_ms} ms"
                )

    def _pass_on(self) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._taken = False
