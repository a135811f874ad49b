"""Submits an application for each task that waits, so that nothing runs on the cluster while there is nothing to do.

It holds no state that matters: what waits is the server's to say, and what becomes of a task is told by the application
that claimed it. Dead, it leaves applications behind that end by themselves.
"""

from __future__ import annotations

import os
import queue
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from types import FrameType
from typing import Final

import structlog

from icewright.api_client.client import Client
from icewright.core.codec import from_json
from icewright.core.errors import IcewrightError, NotFound, Unavailable
from icewright.core.outage_log import Outage
from icewright.core.system_clock import SystemIds
from icewright.core.times import Instant
from icewright.model.actions.actions import OPTIMIZER_ACTIONS
from icewright.model.work.application_size import application_size
from icewright.model.work.optimizers import Backlog, BacklogRequest, OptimizerSettings, Submitting
from icewright.work.launch.port import Application, Launcher

_log = structlog.get_logger("icewright.optimizer")

LOOK_S: Final = 2.0
"""How often it is looked whether anything waits."""
_PAUSE_S_MAX: Final = 60.0
_WRONG_USE: Final = 2
_LAST_LOOK_S: Final = 0.2

Look = Callable[[OptimizerSettings, Submitting], Backlog]
"""What waits for optimizers with these settings, which somebody submits. Raises as :class:`Client` does."""


def look(settings: OptimizerSettings, submitting: Submitting) -> Backlog:
    """Ask the server, and tell it who asks."""
    with Client(settings.server_url, settings.token) as client:
        catalogs = [catalog.name for catalog in settings.catalogs]
        size = application_size(settings, os.cpu_count() or 1)
        wanted = (settings.resource_group, size.cores, size.memory_bytes, settings.queues)
        asked = BacklogRequest(*wanted, submitting, OPTIMIZER_ACTIONS)
        return from_json(Backlog, client.backlog(asked, catalogs))


@dataclass(frozen=True, slots=True)
class _Submitted:
    """An application, and when the optimizer of its name had introduced itself before it was submitted."""

    application: Application
    seen_before_at: Instant | None

    def is_heard_of(self, backlog: Backlog) -> bool:
        """Whether it has introduced itself."""
        seen_at = backlog.seen_at.get(self.application.name)
        return seen_at is not None and seen_at != self.seen_before_at


class Submitter:
    """Keeps as many applications running as there is work for, at most ``applications_max`` at once.

    ``settings`` is asked for each look and raises ``NotFound`` without a server. Names of optimizers are used again
    once their application has ended: a server that is told a new one with each task would have a long list.
    """

    def __init__(
        self,
        settings: Callable[[], OptimizerSettings],
        launcher: Launcher,
        applications_max: int,
        *,
        look: Look = look,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings, self._launcher, self._applications_max = settings, launcher, applications_max
        self._look, self._clock = look, clock
        self._submitter_id, self._host = SystemIds().new("submitter"), socket.gethostname()
        self._running: list[_Submitted] = []
        self._names: list[str] = []
        self._signals: list[int] = []
        self._failures, self._outage = 0, Outage()
        self._not_before_s = float("-inf")
        # Not an Event: its lock may be held by the very code that a signal interrupts. A SimpleQueue is reentrant.
        self._wake: queue.SimpleQueue[None] = queue.SimpleQueue()

    def run(self) -> int:
        """Submit until SIGTERM or SIGINT, then wait for what runs; a second SIGINT ends that, too.

        The exit status is 0, or 2 when applications cannot run as they are configured. To be called in the main
        thread, where signals arrive.
        """
        structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        found = 0
        while not self._signals and not found:
            found = self.turn()
            if not found:
                self._rest(self._outage.pause_s(LOOK_S))
        while self._running:
            self._forget_ended()
            self._rest(_LAST_LOOK_S)
        return found

    def turn(self) -> int:
        """One look around; 2 when no application can ever run as configured."""
        if self._forget_ended():
            return _WRONG_USE
        if self._clock() < self._not_before_s:
            return 0
        running = len(self._running)
        submitting = Submitting(self._submitter_id, self._host, running, self._applications_max)
        try:
            settings = self._settings()
            # Also while no more may run: whoever asks what a task waits for is told of us.
            backlog = self._look(settings, submitting)
        except (NotFound, Unavailable) as error:
            failures = self._outage.failed(self._clock())
            if failures is not None:
                _log.warning("waiting for the server", detail=error.message, failures=failures)
            return 0
        except IcewrightError as error:
            _log.error("the server does not say what waits", code=error.code, detail=error.message)
            self._put_off()
            return 0
        self._outage.over()
        # One that has not introduced itself yet has not claimed what it was submitted for.
        on_their_way = sum(not one.is_heard_of(backlog) for one in self._running)
        wanted = backlog.tasks or min(1, backlog.probes)
        for _ in range(min(self._applications_max - running, wanted - on_their_way)):
            self._submit(self._settings(), backlog)
        return 0

    def _submit(self, settings: OptimizerSettings, backlog: Backlog) -> None:
        name = self._names.pop() if self._names else settings.optimizer_id
        application = self._launcher.start(replace(settings, optimizer_id=name))
        self._running.append(_Submitted(application, backlog.seen_at.get(name)))
        _log.info("application submitted", optimizer=name, log=str(application.trace().log))

    def _forget_ended(self) -> bool:
        """Whether one of those that have ended says that none can run as it is configured."""
        still, wrong = [], False
        for one in self._running:
            code = one.application.poll()
            if code is None:
                still.append(one)
                continue
            self._names.append(one.application.name)
            self._note(one.application, code)
            wrong |= code == _WRONG_USE
        self._running = still
        return wrong

    def _note(self, application: Application, code: int) -> None:
        trace = application.trace()
        said = {"optimizer": application.name, "cluster_id": trace.cluster_id, "url": trace.url, "log": str(trace.log)}
        if code == 0:
            self._failures = 0
            _log.info("application ended", **said)
            return
        self._put_off()
        _log.error("application failed", exit_code=code, **said)

    def _put_off(self) -> None:
        """Submit nothing for a while that doubles with each failure: a cluster that takes nobody is not pressed."""
        self._failures += 1
        self._not_before_s = self._clock() + min(_PAUSE_S_MAX, 2.0 ** min(self._failures, 10))

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self._signals.append(number)
        self._wake.put(None)
        for one in self._running:
            if self._signals.count(signal.SIGINT) > 1:
                one.application.kill()
            else:
                one.application.stop()

    def _rest(self, pause_s: float) -> None:
        with suppress(queue.Empty):
            self._wake.get(timeout=pause_s)
