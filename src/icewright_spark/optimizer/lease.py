"""Keeping the lease of a task while it runs, and knowing for certain when it is lost.

The server's clock decides who holds a task; the optimizer only knows when it last heard so. It therefore counts from
the moment *before* it asked, by its monotonic clock: its own idea of the lease always ends before the server's.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from typing import Final, Protocol

import structlog

from icewright.core.errors import IcewrightError, LeaseLost, Rejected, ServerUnavailable, Unavailable
from icewright.model.work.jobs import Heartbeat, HeartbeatReply, TaskSpec
from icewright.model.work.tasks import LogLines, Progress
from icewright_spark.optimizer.attempt_log import BEAT_BYTES_MAX, BEAT_LINES_MAX, AttemptLog
from icewright_spark.optimizer.watchdog import GRACE_S_MAX

_log = structlog.get_logger("icewright.optimizer")

_BEATS_PER_LEASE: Final = 3
_BEAT_S_MAX: Final = 10.0
"""Longer leases are for slow networks; whoever lost one shall know soon all the same."""
_ASK_AGAIN_S: Final = 0.5
_ANSWERED_WITHOUT_LINES_MAX: Final = 3
"""So many beats are answered only without their lines before an attempt sends none any more."""


class HeartbeatServer(Protocol):
    """Who answers heartbeats."""

    def heartbeat(self, task_id: str, heartbeat: Heartbeat) -> HeartbeatReply:
        """See :meth:`icewright_spark.reports.client.Server.heartbeat`."""


class LeaseRenewer:
    """Beats in a thread of its own until it is closed; calls ``stop`` once when the task must end early."""

    def __init__(
        self,
        server: HeartbeatServer,
        spec: TaskSpec,
        progress: Callable[[], Progress],
        stop: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
        *,
        claimed_s: float | None = None,
        pause: Callable[[float], None] = time.sleep,
        log: AttemptLog | None = None,
    ) -> None:
        """``claimed_s`` is when the task was asked for, by ``clock``; None is now. ``log`` is told to the server."""
        self._server, self._spec, self._progress, self._stop, self._clock = server, spec, progress, stop, clock
        self._pause, self._log = pause, log
        self._valid_until_s = (clock() if claimed_s is None else claimed_s) + spec.lease_ms / 1000
        self._grace_s = min(GRACE_S_MAX, spec.lease_ms / 1000 / 2)
        self._lost: str | None = None
        self._lost_code = LeaseLost.code
        self._lost_at_s: float | None = None
        self._cancelled_until_s: float | None = None
        self._stopped = False
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._is_away = False
        self._answered_without_lines = 0
        run = partial(copy_context().run, self._run)  # what it logs is of the attempt
        self._thread = threading.Thread(target=run, name=f"lease-{spec.task_id}", daemon=True)

    def start(self) -> None:
        """Begin to beat."""
        self._thread.start()

    def close(self) -> None:
        """Stop beating."""
        self._closed.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()

    @property
    def lost(self) -> str | None:
        """Why the lease is known to be lost, None while it is not."""
        return self._lost

    @property
    def lost_code(self) -> str:
        """Whose fault that is: ``lease-lost``, or ``server-away``."""
        return self._lost_code

    @property
    def must_have_ended_at_s(self) -> float:
        """When the attempt must be gone, by the clock, if nothing is heard of the server until then.

        One that was told to stop has the lease that it had then, however long it goes on to beat.
        """
        ends = (self._valid_until_s, self._lost_at_s, self._cancelled_until_s)
        return min(end_s for end_s in ends if end_s is not None) + self._grace_s

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked for the task to be cancelled, or stopped with what it is in."""
        return self._cancelled_until_s is not None

    def may_commit(self) -> None:
        """Ask the server once more, right before a commit; one that is away is asked again while the lease runs.

        Raises :class:`LeaseLost` unless the server has just confirmed that the lease is ours and nobody cancelled.
        """
        while self._lost is None:
            try:
                self.beat()
            except Unavailable:
                self._pause(_ASK_AGAIN_S)
            else:
                break
        if self._lost is None and self._clock() >= self._valid_until_s:
            self._lose("the server's answer took longer than the lease runs")
        if self._lost is not None:
            raise LeaseLost(self._lost)
        if self.cancelled:
            raise LeaseLost("the task was cancelled")

    def beat(self, lines: LogLines | None = None) -> None:
        """One heartbeat. Raises :class:`Unavailable` when the server does not answer while the lease still runs.

        ``lines`` go with it. A server that refuses them is told none any more by a beat: the lease matters more.
        """
        asked_s = self._clock()
        try:
            reply = self._asked(Heartbeat(self._spec.fencing_token, self._progress(), lines))
        except Unavailable as error:
            self._note_away(error)
            if self._clock() >= self._valid_until_s:
                self._lose("the server did not answer for as long as the lease ran", ServerUnavailable.code)
            raise
        except IcewrightError as error:  # refused: the attempt is not ours, or not known
            self._lose(error.message)
            return
        self._is_away = False
        self._valid_until_s = asked_s + reply.lease_ms / 1000
        if reply.cancel:
            if self._cancelled_until_s is None:
                self._cancelled_until_s = self._valid_until_s
            self._stop_once()

    def _asked(self, beat: Heartbeat) -> HeartbeatReply:
        """The server's answer; to the beat without its lines where it refuses them, or none comes to one with lines."""
        try:
            reply = self._server.heartbeat(self._spec.task_id, beat)
        except (Rejected, Unavailable) as error:
            if beat.log is None:
                raise
            if not isinstance(error, ServerUnavailable):
                self._log = None  # refused, or failed at: perhaps by the lines
            reply = self._server.heartbeat(self._spec.task_id, replace(beat, log=None))
            self._answered_without_lines += 1  # what lies between may let no lines through
            if self._answered_without_lines == _ANSWERED_WITHOUT_LINES_MAX:
                self._log = None
            return reply
        if self._log is not None and beat.log is not None:
            self._log.was_sent(beat.log)
        return reply

    def _note_away(self, error: Unavailable) -> None:
        if not self._is_away:
            _log.warning("a heartbeat is not answered", detail=error.message)
        self._is_away = True

    def _lose(self, why: str, code: str = LeaseLost.code) -> None:
        self._lost_code = code  # before it is known to be lost: whoever is told reads both
        if self._lost is None:
            _log.warning("the lease is lost", detail=why)
        self._lost, self._lost_at_s = why, self._clock()
        self._stop_once()

    def _stop_once(self) -> None:
        with self._lock:
            first, self._stopped = not self._stopped, True
        if first:
            self._stop()

    def _run(self) -> None:
        while not self._closed.wait(min(_BEAT_S_MAX, self._spec.lease_ms / 1000 / _BEATS_PER_LEASE)):
            with suppress(Unavailable):  # the lease decides, see beat()
                self.beat(self._news())
            if self._lost is not None:
                return

    def _news(self) -> LogLines | None:
        """What the next beat tells of the log; the one before a commit and the one after an outage tell nothing."""
        if self._log is None or self._is_away:
            return None
        return self._log.unsent(BEAT_LINES_MAX, BEAT_BYTES_MAX)
