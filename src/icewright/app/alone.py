"""One server per store: the inventory moves forward from what is stored, one look at a table at a time.

Within a process locks see to that; this sees to it that there is only one process. Servers that share a store come
with PostgreSQL.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from icewright.domain.errors import NotAllowed


@contextmanager
def alone_with(store: Path) -> Iterator[None]:
    """Hold a SQLite store for this process; the kernel lets go of it when the process ends, however it ends.

    Raises :class:`NotAllowed` when another process holds it.
    """
    store.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = store.with_name(f"{store.name}.lock")
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise NotAllowed(
                f"another server holds the store {store}", hint="stop it first, or set server.state_dir to another one"
            ) from None
        yield
    finally:
        os.close(descriptor)
