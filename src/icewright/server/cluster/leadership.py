"""Of several servers of one store one leads; each looks at its share of the tables, the leader at its own too.

A server that comes to lead makes a control plane of its own for that time, over an engine whose writes the store
refuses as soon as another server leads. So what was begun as the leader, and goes on in some thread, changes nothing
any more; and nothing that was remembered then is believed later. So it is with what a server that follows looks at by
a session that has ended. Why so: ``docs/decisions``, 0049 and 0075.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Final, Self

import structlog
from sqlalchemy import Engine

from icewright.core.errors import CoordinatorUnavailable, IcewrightError, OutcomeUnknown, StoreTaken, Unavailable
from icewright.core.outage_log import Outage
from icewright.core.servers import (
    BEAT_MS,
    LEADER_LEASE_MS,
    LEASES_WITHOUT_PROGRESS,
    CoordinatorLink,
    SeenServer,
    Server,
    leader_of,
    nobody_leads,
    server_of,
)
from icewright.model.events.feed import Fact, FactKind
from icewright.model.iceberg.names import TableName
from icewright.model.plans.plans import Reason
from icewright.server.cluster.coordinator import Assigned
from icewright.server.cluster.leading import Answer, Question
from icewright.server.cluster.servers_sql import SqlServers
from icewright.server.cluster.share import ALL_TABLES, Part, Share
from icewright.server.control import ControlPlane
from icewright.store_admin.leader_lock import LeaderElection
from icewright.work.store.table_store import SqlTableStore

_log = structlog.get_logger("icewright.server")

POLL_S: Final = 0.5
"""How often a server that follows tries to lead, and one that leads makes sure that it does."""
LOOP_PAUSE_S: Final = 1.0
"""How long the loop rests when nothing wakes it; leases and sweeps are looked at this often."""
TIMEOUT_S: Final = 30.0
"""How long it is waited for the loop to end its round; then it is left behind, as a server that dies leaves it."""

LOOK_END_S: Final = 2.0
"""How long a server that comes to lead waits for the look that it is at as one that follows."""
TRIED_S: Final = 5.0
"""How long the start of a server waits until it leads or knows that another one does."""

Beside = Callable[[ControlPlane, Engine], AbstractContextManager[object]]
"""What begins when a server comes to lead, over its control plane and by its engine, and ends with that."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """How this server shares the looks with others; ``build`` makes the control plane of one that follows."""

    share: Share
    build: Callable[[Part], ControlPlane]


@dataclass(frozen=True, slots=True)
class _Looking:
    """A loop of a server that follows, and the session that it looks by."""

    control: ControlPlane
    thread: threading.Thread
    session: int


class Leadership:
    """This server's part: it leads whenever no other does. A :class:`~icewright.server.cluster.leading.Leading`.

    Turns while it is entered; ``failure`` is why it ended by itself, after it called ``end``.
    """

    def __init__(
        self,
        election: LeaderElection,
        build: Callable[[Engine, Part], ControlPlane],
        servers: SqlServers,
        own: Server,
        *,
        ask: Callable[[str, Question], Answer],
        beside: Sequence[Beside] = (),
        end: Callable[[], None] = lambda: None,
        poll_s: float = POLL_S,
        lease_ms: int = LEADER_LEASE_MS,
        sharing: Sharing | None = None,
    ) -> None:
        """``build`` makes a control plane to lead by, of the part that it looks at; ``ask`` asks the server at a URL.

        Without ``sharing`` one server looks at all tables.
        """
        self._sharing = sharing
        self._looking: _Looking | None = None
        self._silent_s_max = LEASES_WITHOUT_PROGRESS * lease_ms / 1000
        self._left: threading.Thread | None = None
        self._election, self._build, self._book, self._own = election, build, servers, own
        self._ask, self._beside, self._end, self._poll_s = ask, tuple(beside), end, poll_s
        self._closing, self._tried = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="leadership")
        self._led: ControlPlane | None = None
        self._beat_at: float | None = None
        self.failure: Exception | None = None
        self._outages: defaultdict[str, Outage] = defaultdict(Outage)

    def __enter__(self) -> Self:
        self._thread.start()
        self._tried.wait(TRIED_S)  # the only server leads before it is asked for anything
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._thread.join()
        self._look_no_more()
        if self._sharing is not None:
            with suppress(IcewrightError):  # the leader finds out, then
                self._sharing.share.leave()
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

    @property
    def buckets(self) -> int | None:
        """See the protocol."""
        return None if self._sharing is None else len(self._sharing.share.buckets)

    @property
    def differing(self) -> int | None:
        """See the protocol."""
        return None if self._sharing is None or self._led is None else len(self._sharing.share.differing)

    @property
    def link(self) -> CoordinatorLink | None:
        """See the protocol."""
        return None if self._sharing is None else self._sharing.share.coordinator.link

    def wake(self) -> None:
        """Begin the next round at once, of the loop that turns here."""
        led, looking = self._led, self._looking
        if led is not None:
            led.loop.wake()
        elif looking is not None:
            looking.control.loop.wake()

    def servers(self) -> Sequence[SeenServer]:
        """See the protocol."""
        return self._book.present()

    def assigned(self) -> Assigned | None:
        """See the protocol."""
        return None if self._sharing is None else self._sharing.share.coordinator.assigned()

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
            self._join()
            if not self.is_stuck and (engine := self._election.lead()) is not None:
                self._lead(engine)
            elif not self.is_stuck and self._sharing is not None:
                self._look(self._sharing)
        except (Unavailable, OutcomeUnknown) as error:
            self._say_away(error)
        else:
            self._outages.clear()
        finally:
            self._tried.set()

    def _join(self) -> None:
        """Be one of the servers before this one may lead: who is not let in never leads."""
        if self._sharing is not None and self._sharing.share.session is None and not self.is_stuck:
            self._sharing.share.keep()

    def _look(self, sharing: Sharing) -> None:
        """Look at this server's share, as a server that follows, by a loop for each session."""
        sharing.share.keep()
        looking = self._looking
        if looking is not None and looking.control.loop.silent_s > self._silent_s_max:
            _log.error("the loop hangs, and its tables are given away", silent_s=round(looking.control.loop.silent_s))
            self._left, self._looking = looking.thread, None
            sharing.share.leave()
            return
        if looking is not None and not looking.thread.is_alive():
            raise _loop_ended()
        session = sharing.share.session
        if looking is not None and looking.session != session:
            self._look_no_more(wait_s=0)
        if self._looking is None and session is not None:
            control = sharing.build(sharing.share.part(leads=False))
            loop = threading.Thread(target=control.loop.run, args=(LOOP_PAUSE_S,), name="looks", daemon=True)
            self._looking = _Looking(control, loop, session)
            loop.start()

    def _look_no_more(self, wait_s: float = TIMEOUT_S) -> bool:
        """End the loop of a server that follows, and tell whether it has; what it is at goes on, and is fenced."""
        looking, self._looking = self._looking, None
        if looking is None:
            return True
        looking.control.loop.stop()
        looking.thread.join(wait_s)
        return not looking.thread.is_alive()

    def _part(self, engine: Engine) -> Part:
        """What of all tables a server that begins to lead looks at; it assigns them first."""
        if self._sharing is None:
            return ALL_TABLES
        share, tables = self._sharing.share, SqlTableStore(engine)
        if not self._look_no_more(LOOK_END_S):
            share.leave()  # or nobody would look at the table that it is at, for as long as that hangs
        for _ in range(2):  # once more where its session had ended
            share.keep()
        share.assign(engine)
        share.keep()

        def is_new(name: TableName) -> bool:
            return tables.record_by_name(name) is None

        return share.part(leads=True, is_new=is_new)

    def _lead(self, engine: Engine) -> None:
        try:
            part = self._part(engine)
            control = self._build(engine, part)
            with ExitStack() as ending:
                loop = ending.enter_context(self._turning(control))
                for service in self._beside:
                    ending.enter_context(service(control, engine))
                ending.callback(self._show, None)
                self._show(control)
                self._tell(control)
                self._go_on(control, loop, engine, part)
        finally:
            self._election.resign()
            self._beat_at = None
        self._beat()

    def _show(self, led: ControlPlane | None) -> None:
        self._led, self._beat_at = led, None
        self._tried.set()

    def _go_on(self, control: ControlPlane, loop: threading.Thread, engine: Engine, part: Part) -> None:
        """Lead until this server ends or another one leads. Raises :class:`LoopEnded`."""
        while not self._closing.wait(self._poll_s):
            if not loop.is_alive():
                raise _loop_ended()
            try:
                if self._gives_up(control.loop.silent_s):
                    _log.error("the loop hangs, and the lead is given away", silent_s=round(control.loop.silent_s))
                    self._left = loop
                    self._election.resign()
                    if self._sharing is not None:
                        self._sharing.share.leave()
                    return
                self._election.check()
                self._beat()
                if self._sharing is not None:
                    self._sharing.share.keep()
                    self._sharing.share.assign(engine)
                    if not part.is_present:
                        _log.error("this server leads, and was declared dead")
                        return
            except StoreTaken as error:
                _log.error("another server leads", epoch=self._election.epoch, detail=error.message)
                return
            except (Unavailable, OutcomeUnknown) as error:
                self._say_away(error)
            else:
                self._outages.clear()

    def _gives_up(self, silent_s: float) -> bool:
        """Whether the loop hangs, and another server may lead: its own progress renews a lease, not that of threads."""
        if self._election.epoch is None or silent_s <= self._silent_s_max:
            return False
        there = {one.server.server_id for one in self._book.present() if not one.is_silent}
        return any(name != self._own.server_id and name == server_of(name) for name in there)

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
                loop.join(TIMEOUT_S)
            if loop.is_alive():
                _log.warning("round not ended in time", waited_s=TIMEOUT_S)
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
            self._say_away(error)

    def _say_away(self, error: IcewrightError) -> None:
        """Say so at once, and once a minute: it is asked twice a second."""
        what = "coordinator" if isinstance(error, CoordinatorUnavailable) else "store"
        times = self._outages[what].failed(time.monotonic())
        if times is not None:
            _log.warning(f"{what} away", detail=error.message, times=times)


class LoopEnded(IcewrightError):
    """A defect: the server would look well, and do nothing."""


def _loop_ended() -> LoopEnded:
    return LoopEnded("the loop of the server has ended unexpectedly", hint="see the log, and start it again")
