"""The end of a process whose attempts must not go on and do not end, or whose JVM says nothing any more.

A lease that is lost stops its attempt by cancelling its Spark jobs. That is a request to a JVM, which may hang, or be
in the middle of a commit; whoever has the task by then must not wait for it (hazard Q4, invariant I18). So a thread
that asks neither the JVM nor the server looks at the clock alone, and where an attempt outlives its lease by the grace,
it kills the JVM and then this process: nothing that they had in hand is committed after that, and the server looks into
the table.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, Protocol

import psutil
import structlog

_log = structlog.get_logger("icewright.optimizer")

GRACE_S_MAX: Final = 15.0
"""How long an attempt may take to end after its lease, at most; shorter leases have shorter graces.

With a beat every third of a lease of 30 s, an attempt that was fenced is gone within 30 s.
"""
JVM_SILENT_S_MAX: Final = 120.0
"""How long the JVM may owe an answer. Collecting garbage takes seconds, where it takes this long nothing is done."""
EXIT_CODE: Final = 1
_LOOK_S: Final = 0.5


class Held(Protocol):
    """A lease."""

    @property
    def must_have_ended_at_s(self) -> float:
        """When its attempt must be gone, by the monotonic clock; in the future as long as the lease is ours."""


class Watchdog:
    """Looks at the clock in a thread of its own; ``end`` is called once, when this process must not live on."""

    def __init__(
        self,
        end: Callable[[str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        jvm_silent_s_max: float = JVM_SILENT_S_MAX,
    ) -> None:
        self._end, self._clock, self._jvm_silent_s_max = end, clock, jvm_silent_s_max
        self._lock = threading.Lock()
        self._held: dict[int, tuple[str, Held]] = {}
        self._asked_jvm_at_s: float | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def close(self) -> None:
        """Stop looking."""
        self._closed.set()

    @contextmanager
    def watching(self, what: str, held: Held) -> Iterator[None]:
        """An attempt runs in this block and must not outlive its lease."""
        with self._lock:
            self._held[id(held)] = (what, held)
        try:
            yield
        finally:
            with self._lock:
                del self._held[id(held)]

    @contextmanager
    def asking_jvm(self) -> Iterator[None]:
        """The JVM is asked something in this block that it answers at once; in one thread at a time."""
        self._asked_jvm_at_s = self._clock()
        try:
            yield
        finally:
            self._asked_jvm_at_s = None

    def trouble(self) -> str | None:
        """Why this process must end now, None where it may live on."""
        now_s, asked_s = self._clock(), self._asked_jvm_at_s
        if asked_s is not None and now_s - asked_s > self._jvm_silent_s_max:
            return f"Spark's JVM has not answered for {self._jvm_silent_s_max:.0f} s"
        with self._lock:
            held = list(self._held.values())
        late = [what for what, lease in held if now_s >= lease.must_have_ended_at_s]
        return f"{', '.join(late)} continued after the lease was lost" if late else None

    def _run(self) -> None:
        while not self._closed.wait(_LOOK_S):
            trouble = self.trouble()
            if trouble is not None:
                self._end(trouble)
                return


def end_this_process(why: str) -> None:
    """Kill everything below this process, and then end it without any of Python's ceremonies, which could hang.

    Children are killed by their parent, that has not buried them: no id can be somebody else's by now (hazard Q5).
    psutil compares when each process started for those further below.
    """
    _log.critical("this optimizer ends itself", detail=why)
    with suppress(psutil.Error):
        for victim in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                victim.kill()
    os._exit(EXIT_CODE)


def end_application(jvm: int, why: str) -> None:
    """The same of a Python driver that a JVM has started: that one is its parent."""
    if os.getppid() == jvm:
        with suppress(ProcessLookupError):
            os.kill(jvm, signal.SIGKILL)
    end_this_process(why)
