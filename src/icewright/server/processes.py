"""Further processes of a server, which look at tables beside it, since Python's threads take turns.

Each is a server that follows, with buckets of its own; it answers nobody and never leads. The server starts it, starts
another in its place where it dies, and ends it. It ends by itself when the server is gone, however that ended. Why so:
``docs/decisions``, 0082.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from typing import Final, Protocol, Self

import structlog
from sqlalchemy import Engine

from icewright.config.model import Config, ServerConfig
from icewright.core.errors import IcewrightError, InvalidConfiguration
from icewright.core.servers import Server, nobody_leads, process_name
from icewright.model.work.optimizers import LOG_FORMATS
from icewright.ports.telemetry import note_process_death
from icewright.server.cluster.leadership import Leadership
from icewright.server.cluster.leading import Answer, Question
from icewright.server.control_wiring import open_control_plane
from icewright.server.coordination import open_coordination
from icewright.server.process_figures import FiguresOfAll, sending_figures
from icewright.server.tracing import export_spans
from icewright.store_admin.leader_lock import LeaderElection
from icewright.store_admin.wait_for_database import Start
from icewright.terminal.logs import FORMAT_VARIABLE, LEVEL_VARIABLE, configure_logs

_log = structlog.get_logger("icewright.server")

POLL_S: Final = 0.5
"""How often processes are looked at."""
END_S: Final = 20.0
"""How long a process has to end its round and give its buckets to others; then it is killed."""
_STUCK: Final = 3
_PAUSE_S_MIN: Final = 1.0
_PAUSE_S_MAX: Final = 60.0
_STEADY_S: Final = 120.0
"""A process that lived for so long was not failing to start: the next one begins soon."""


class Process(Protocol):
    """What the standard library's processes have."""

    @property
    def exitcode(self) -> int | None:
        """None as long as it lives."""

    def terminate(self) -> None:
        """Ask it to end."""

    def kill(self) -> None:
        """End it."""

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end."""


Starter = Callable[[str], Process]
"""Starts a process under a name."""


@dataclass(slots=True)
class _Place:
    """What is to be one of the processes at any time."""

    process: Process | None = None
    name: str = ""
    started_s: float = 0.0
    pause_s: float = field(default=_PAUSE_S_MIN)
    not_before_s: float = 0.0


class LookingProcesses:
    """So many processes beside the server ``server_id``, while this is entered.

    A name is never used twice: the session of one that died may not be over yet. ``forget`` is told of each that died.
    While the server ``is_ending`` none is started: whoever ends it may have ended them as well.
    """

    def __init__(
        self,
        start: Starter,
        server_id: str,
        count: int,
        *,
        forget: Callable[[str], None] = lambda _: None,
        is_ending: Callable[[], bool] = lambda: False,
        poll_s: float = POLL_S,
        end_s: float = END_S,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._start, self._server_id, self._poll_s, self._end_s = start, server_id, poll_s, end_s
        self._forget, self._is_ending, self._monotonic_s = forget, is_ending, monotonic_s
        self._places: Sequence[_Place] = [_Place() for _ in range(count)]
        self._started = 0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="processes", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._thread.join()
        living = [place.process for place in self._places if place.process is not None]
        for process in living:
            process.terminate()
        until_s = self._monotonic_s() + self._end_s
        for process in living:
            process.join(max(0.0, until_s - self._monotonic_s()))
            if process.exitcode is None:
                _log.warning("process not ended in time", waited_s=self._end_s)
                process.kill()
                process.join()

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                self.turn()
            except Exception:  # noqa: BLE001 - the thread's edge: without it none that dies would be replaced
                _log.exception("processes not looked after, trying again")
            self._closing.wait(self._poll_s)

    def turn(self) -> None:
        """Start what is missing, as far as it is time."""
        if self._is_ending():
            return
        now_s = self._monotonic_s()
        for place in self._places:
            self._bury(place, now_s)
            if place.process is None and now_s >= place.not_before_s:
                self._begin(place, now_s)

    def _begin(self, place: _Place, now_s: float) -> None:
        self._started += 1
        place.name = process_name(self._server_id, self._started)
        try:
            place.process, place.started_s = self._start(place.name), now_s
        except OSError as error:  # the machine has no room for it by now
            _log.error("process not started, trying again", server=place.name, detail=str(error), pause_s=place.pause_s)
            _pause(place, now_s, place.pause_s)
            return
        _log.info("process started", server=place.name)

    def _bury(self, place: _Place, now_s: float) -> None:
        if place.process is None or (code := place.process.exitcode) is None:
            return
        is_steady = now_s - place.started_s > _STEADY_S
        pause_s = _PAUSE_S_MIN if is_steady else place.pause_s
        note_process_death()
        _log.error("process died, starting another", server=place.name, exit_code=code, pause_s=pause_s)
        place.process = None
        _pause(place, now_s, pause_s)
        try:
            self._forget(place.name)
        except IcewrightError as error:
            _log.warning("process is remembered for a day", server=place.name, detail=error.message)


def _pause(place: _Place, now_s: float, pause_s: float) -> None:
    place.not_before_s, place.pause_s = now_s + pause_s, min(_PAUSE_S_MAX, pause_s * 2)


class NeverLeads:
    """A :class:`~icewright.store_admin.leader_lock.LeaderElection` of a process that follows only."""

    epoch: int | None = None

    def __init__(self, election: LeaderElection) -> None:
        self._election = election

    def lead(self) -> Engine | None:
        """See the protocol."""
        return None

    @property
    def backend(self) -> int:
        """See the protocol."""
        return self._election.backend

    def check(self) -> None:
        """See the protocol."""
        self._election.check()

    def resign(self) -> None:
        """See the protocol."""


def check_processes(server: ServerConfig) -> None:
    """Raises :class:`InvalidConfiguration` where several processes cannot share the store."""
    if server.processes > 1 and server.store_url.startswith("sqlite"):
        raise InvalidConfiguration(
            f"server.processes = {server.processes}: a store on SQLite has one process",
            hint="keep the store on PostgreSQL (server.store_url), or leave server.processes at 1",
        )


def looking_beside(
    config: Config,
    environ: Mapping[str, str],
    own: Server,
    forget: Callable[[str], None],
    is_ending: Callable[[], bool],
    figures: FiguresOfAll,
) -> LookingProcesses:
    """The further processes of a server, while they are entered; see :class:`LookingProcesses`.

    They begin as new interpreters: a fork would have the locks of the server's threads. The environment goes to them by
    a pipe, not by their arguments. What they count goes to ``figures``.
    """
    context = multiprocessing.get_context("spawn")

    def start(name: str) -> Process:
        receiving, sending = context.Pipe(duplex=False)
        with sending:  # the process alone keeps it open: so its end is noticed
            figures.receive(receiving)
            process = context.Process(target=_look, args=(config, dict(environ), replace(own, server_id=name), sending))
            process.start()
        return process

    return LookingProcesses(start, own.server_id, config.server.processes - 1, forget=forget, is_ending=is_ending)


def _look(config: Config, environ: Mapping[str, str], own: Server, sending: Connection) -> None:
    """Look at tables until this process is told to end, or the server that started it is gone."""
    ending = threading.Event()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the server tells when to end
    signal.signal(signal.SIGTERM, lambda _number, _frame: ending.set())
    _end_with_parent(ending)
    configure_logs(environ.get(FORMAT_VARIABLE, LOG_FORMATS[0]), environ.get(LEVEL_VARIABLE, "info"))
    export_spans(environ)
    try:
        with sending_figures(sending):
            look_until(ending, config, environ, own)
    except IcewrightError as error:
        _log.error("process cannot look at tables", server=own.server_id, detail=error.message, hint=error.hint)
        sys.exit(1)
    finally:
        ending.set()


def look_until(ending: threading.Event, config: Config, environ: Mapping[str, str], own: Server) -> None:
    """Look at tables until ``ending`` is set; where the store is away at the start, wait for it as a server does.

    Raises what opening the control plane raises, and what ended its part among the servers of the store.
    """

    def pause(seconds: float) -> None:
        ending.wait(seconds)

    start = Start(sleep=pause)
    start.until_it_has_begun(lambda: None if ending.is_set() else _look_on(ending, config, environ, own, start))


def _look_on(ending: threading.Event, config: Config, environ: Mapping[str, str], own: Server, start: Start) -> None:
    with (
        open_control_plane(config, environ, answers=False) as opened,
        open_coordination(config, environ, opened) as coordination,
    ):
        start.has_begun = True
        with Leadership(
            NeverLeads(coordination.election),
            opened.lead,
            opened.servers,
            own,
            ask=_ask_nobody,
            end=ending.set,
            lease_ms=config.server.leader_lease_ms,
            sharing=coordination.sharing(own.server_id),
        ) as leadership:
            while not ending.wait(POLL_S):
                if leadership.is_stuck:
                    _log.error("process hangs, and ends", server=own.server_id)
                    os._exit(_STUCK)  # what hangs would be waited for
        if leadership.failure is not None:
            raise leadership.failure


def _ask_nobody(_url: str, _question: Question) -> Answer:
    raise nobody_leads()


def _end_with_parent(ending: threading.Event) -> None:
    """Have ``ending`` set when the process that started this one is gone, and nothing keep this one behind that."""
    parent = multiprocessing.parent_process()
    if parent is None:
        raise RuntimeError("not a process of a server")
    for name, wait in (("parent", parent.join), ("ending", ending.wait)):
        threading.Thread(target=end_behind, args=(wait, ending), name=name, daemon=True).start()


def end_behind(
    wait: Callable[[], object],
    ending: threading.Event,
    *,
    end_s: float = END_S,
    end_now: Callable[[int], object] = os._exit,
) -> None:
    """Set ``ending`` when ``wait`` returns, and end at once where that has not ended this process in ``end_s``.

    Nobody else would: what hangs keeps a process, and the server that would kill it is gone, or waits for its end to
    start another one.
    """
    wait()
    ending.set()
    time.sleep(end_s)
    end_now(_STUCK)
