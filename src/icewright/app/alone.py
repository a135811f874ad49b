"""One server per store: the inventory moves forward from what is stored, one look at a table at a time.

Within a process locks see to that; this sees to it that there is only one process. Why: ``docs/decisions``, 0009.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import structlog
from sqlalchemy import Engine

from icewright.adapters.sql.engine import upgrade_store
from icewright.domain.errors import NotAllowed, StoreAway, StoreTaken

_log = structlog.get_logger("icewright.server")

CHECK_INTERVAL_S: Final = 5.0
"""How often a server makes sure that the store is still its own; until then the store itself refuses its writes."""


@dataclass(frozen=True, slots=True)
class Alone:
    """A store held by this process. ``engine`` is the one to write by.

    ``check`` raises :class:`StoreTaken` when another server has taken it over, and :class:`StoreAway` while that
    cannot be told.
    """

    engine: Engine
    check: Callable[[], None]


@contextmanager
def alone_with(engine: Engine) -> Iterator[Alone]:
    """Hold a store for this process, at the newest schema; it is let go of when the process ends, however it ends.

    Raises :class:`NotAllowed` when another process holds it, and what upgrading it raises. It is upgraded
    once it is held: the server that holds it may know only its present schema.
    """
    if engine.dialect.name == "sqlite":
        with alone_with_file(Path(str(engine.url.database))):
            upgrade_store(engine)
            yield Alone(engine, lambda: None)  # the kernel's lock is not lost while the process lives
        return
    from icewright.adapters.sql.hold import SessionHold  # noqa: PLC0415 - PostgreSQL's driver is an extra

    with closing(SessionHold(engine)) as hold:
        yield Alone(hold.engine, hold.check)


@contextmanager
def alone_with_file(store: Path) -> Iterator[None]:
    """Hold the file of a store on SQLite, which need not be there. Raises :class:`NotAllowed` as :func:`alone_with`."""
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


class Watch:
    """Makes sure again and again that a server is alone, in a thread; calls ``end`` once it is not."""

    def __init__(
        self, check: Callable[[], None], end: Callable[[], None], interval_s: float = CHECK_INTERVAL_S
    ) -> None:
        self._check, self._end, self._interval_s = check, end, interval_s
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="alone")
        self.taken: StoreTaken | None = None
        """Set once another server has taken the store over."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closed.wait(self._interval_s):
            try:
                self._check()
            except StoreTaken as error:
                self.taken = error
                _log.error("store taken over", detail=error.message)
                self._end()
                return
            except StoreAway as error:
                _log.warning("store away", detail=error.message)
