"""Of several servers of one store one leads: it turns the loop, and what goes beside it; the others serve and wait.

A server that comes to lead makes a control plane of its own for that time, over an engine whose writes the store
refuses as soon as another server leads. So what was begun as the leader, and goes on in some thread, changes nothing
any more; and nothing that was remembered then is believed later. Why so: ``docs/decisions``, 0049.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Final, Self

import structlog
from sqlalchemy import Engine

from icewright.core.errors import IcewrightError, OutcomeUnknown, StoreTaken, Unavailable
from icewright.core.servers import (
    BEAT_MS,
    LEADER_LEASE_MS,
    LEASES_WITHOUT_PROGRESS,
    SeenServer,
    Server,
    leader_of,
    nobody_leads,
)
from icewright.model.events.feed import Fact, FactKind
from icewright.model.plans.plans import Reason
from icewright.server.cluster.leading import Answer, Question
from icewright.server.cluster.servers_port import Servers
from icewright.server.control import ControlPlane
from icewright.store_admin.leader_lock import LeaderElection

_log = structlog.get_logger("icewright.server")

POLL_S: Final = 0.5
"""How often a server that follows tries to lead, and one that leads makes sure that it does."""
LOOP_PAUSE_S: Final = 1.0
"""How long the loop rests when nothing wakes it; leases and sweeps are looked at this often."""
PATIENCE_S: Final = 30.0
"""How long it is waited for the loop to end its round; then it is left behind, as a server that dies leaves it."""

TRIED_S: Final = 5.0
"""How long the start of a server waits until it leads or knows that another one does."""

Beside = Callable[[ControlPlane, Engine], AbstractContextManager[object]]
"""What begins when a server comes to lead, over its control plane and by its engine, and ends with that."""


class Leadership:
    """This server's part: it leads whenever no other does. A :class:`~icewright.server.cluster.leading.Leading`.

    Turns while it is entered; ``failure`` is why it ended by itself, after it called ``end``.
    """

    def __init__(
        self,
        election: LeaderElection,
        build: Callable[[Engine], ControlPlane],
        servers: Servers,
        own: Server,
        *,
        ask: Callable[[str, Question], Answer],
        beside: Sequence[Beside] = (),
        end: Callable[[], None] = lambda: None,
        poll_s: float = POLL_S,
        lease_ms: int = LEADER_LEASE_MS,
    ) -> None:
        """``build`` makes a control plane to lead by; ``ask`` asks the server at a URL."""
        self._silent_s_max = LEASES_WITHOUT_PROGRESS * lease_ms / 1000
        self._left: threading.Thread | None = None
        self._election, self._build, self._book, self._own = election, build, servers, own
        self._ask, self._beside, self._end, self._poll_s = ask, tuple(beside), end, poll_s
        self._closing, self._tried = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="leadership")
        self._led: ControlPlane | None = None
        self._beat_at: float | None = None
        self.failure: Exception | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        self._tried.wait(TRIED_S)  # the only server leads before it is asked for anything
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._thread.join()
        with suppress(IcewrightError):  # forgotten after a day, then
            self._book.leave(self._own.server_id)

    @property
    def led(self) -> ControlPlane | None:
        """See the protocol."""
        return self._led

    @property
    def is_stuck(self) -> bool:
        """See the protocol."""
        return self._left is not None and self._left.is_alive()

    def wake(self) -> None:
        """Begin the next round at once, where the loop turns here."""
        led = self._led
        if led is not None:
            led.loop.wake()

    def servers(self) -> Sequence[SeenServer]:
        """See the protocol."""
        return self._book.present()

    def ask_leader(self, question: Question) -> Answer:
        """See the protocol."""
        leader = leader_of(self._book.present())
        if leader is None or leader.server.server_id == self._own.server_id:
            raise nobody_leads()
        return self._ask(leader.server.url, question)

    def _run(self) -> None:
        try:
            while not self._closing.is_set():
                self._try_to_lead()
                self._closing.wait(self._poll_s)
        except Exception as error:  # noqa: BLE001 - the thread's edge: a server that can neither lead nor follow ends
            self.failure = error
            self._end()

    def _try_to_lead(self) -> None:
        try:
            self._election.check()
            self._beat()
            if not self.is_stuck and (engine := self._election.lead()) is not None:
                self._lead(engine)
        except (Unavailable, OutcomeUnknown) as error:
            _log.warning("store away", detail=error.message)
        finally:
            self._tried.set()

    def _lead(self, engine: Engine) -> None:
        try:
            control = self._build(engine)
            with ExitStack() as ending:
                loop = ending.enter_context(self._turning(control))
                for service in self._beside:
                    ending.enter_context(service(control, engine))
                ending.callback(self._show, None)
                self._show(control)
                self._tell(control)
                self._go_on(control, loop)
        finally:
            self._election.resign()
            self._beat_at = None
        self._beat()

    def _show(self, led: ControlPlane | None) -> None:
        self._led, self._beat_at = led, None
        self._tried.set()

    def _go_on(self, control: ControlPlane, loop: threading.Thread) -> None:
        """Lead until this server ends or another one leads. Raises :class:`LoopEnded`."""
        while not self._closing.wait(self._poll_s):
            if not loop.is_alive():
                raise LoopEnded("the loop of the server has ended unexpectedly", hint="see the log, and start it again")
            try:
                if self._gives_up(control.loop.silent_s):
                    _log.error("the loop hangs, and the lead is given away", silent_s=round(control.loop.silent_s))
                    self._election.resign()
                    self._left = loop
                    return
                self._election.check()
                self._beat()
            except StoreTaken as error:
                _log.error("another server leads", epoch=self._election.epoch, detail=error.message)
                return
            except (Unavailable, OutcomeUnknown) as error:
                _log.warning("store away", detail=error.message)

    def _gives_up(self, silent_s: float) -> bool:
        """Whether the loop hangs, and another server may lead: its own progress renews a lease, not that of threads."""
        if self._election.epoch is None or silent_s <= self._silent_s_max:
            return False
        return any(not one.is_silent and one.server.server_id != self._own.server_id for one in self._book.present())

    @contextmanager
    def _turning(self, control: ControlPlane) -> Iterator[threading.Thread]:
        """The loop, while the block runs; one that does not end its round in time is left behind."""
        loop = threading.Thread(target=control.loop.run, args=(LOOP_PAUSE_S,), name="loop", daemon=True)
        loop.start()
        try:
            yield loop
        finally:
            control.loop.stop()
            if self._left is not loop:
                loop.join(PATIENCE_S)
            if loop.is_alive():
                _log.warning("round not ended in time", waited_s=PATIENCE_S)
                self._left = loop

    def _beat(self) -> None:
        """Say that this server is there, now and then, and at once where it begins or ends to lead."""
        now = time.monotonic()
        if self._beat_at is None or now - self._beat_at >= BEAT_MS / 1000:
            epoch = None if self._led is None else self._election.epoch or 0
            self._book.beat(replace(self._own, epoch=epoch))
            self._beat_at = now
            if self._led is not None:
                self._led.dispatcher.answers()

    def _tell(self, control: ControlPlane) -> None:
        """Let the others know, and people: of whom they hear nothing, nothing is lost."""
        epoch = self._election.epoch
        _log.info("leads", server=self._own.server_id, epoch=epoch)
        try:
            self._beat()
            if epoch is not None:
                text = f"server {self._own.server_id} at {self._own.url} leads"
                fact = Fact(FactKind.LEADER_CHANGED, "", Reason("leads", text, {"epoch": epoch}))
                control.tasks.feed.tell(fact, f"{FactKind.LEADER_CHANGED}/{epoch}")
        except (Unavailable, OutcomeUnknown) as error:
            _log.warning("store away", detail=error.message)


class LoopEnded(IcewrightError):
    """A defect: the server would look well, and do nothing."""
