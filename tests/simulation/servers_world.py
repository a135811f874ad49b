"""The misbehaving lakehouse with several servers: they stand still, and believe to lead while another one does.

Whatever optimizers, writers and people ask is answered by a server whose writes nobody fences. The loop turns in one
that leads by an epoch, and what it writes is compared with the present one, as the engines of
:mod:`icewright.store.session_lock` do it. Leaders are replaced between rounds and in the middle of one, and those that
were go on later, after any time: with what they have read before.
"""

from __future__ import annotations

from typing import Any, Final

from icewright.core.errors import StoreTaken
from icewright.server.control import ControlPlane
from tests.builders.lakehouse import MINUTE_MS
from tests.simulation.world import Mutation, OpenStores, World
from tests.simulation.writers import Broken

WRITES: Final = frozenset(
    {
        "apply_inventory",
        "change",
        "claim",
        "done",
        "enqueue",
        "forget",
        "heartbeat",
        "look_at_once",
        "look_by",
        "note_exclusion",
        "optimizer_seen",
        "prune",
        "receive",
        "request_cancel",
        "save_access",
        "save_plan",
        "save_record",
        "take_probes",
        "tell",
        "wait",
        "waits_no_more",
        "want_no_probe",
        "want_probe",
    }
)
"""The methods of the stores by which something is written."""
RETIRED_MAX: Final = 3


class Fenced:
    """A store as the leader of one epoch has it; see :data:`WRITES`."""

    def __init__(self, store: Any, world: SeveralServers, epoch: int) -> None:
        self._store, self._world, self._epoch = store, world, epoch

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not callable(found):
            return Fenced(found, self._world, self._epoch)  # the feed is a part of the store
        if name not in WRITES:
            return found

        def write(*args: Any, **kwargs: Any) -> Any:
            self._world.judge(self._epoch, name)
            return found(*args, **kwargs)

        return write


class SeveralServers(World):
    """As :class:`World`, with leaders that come and go. ``is_fenced`` is the guard that a test takes away."""

    is_fenced = True

    def __init__(self, seed: int, mutate: Mutation | None = None, stores: OpenStores | None = None) -> None:
        self.epoch = 0
        self.leading: ControlPlane
        self.retired: list[ControlPlane] = []
        self.stale: list[str] = []
        super().__init__(seed, mutate, stores)

    def judge(self, epoch: int, name: str) -> None:
        """A server that leads, or did, by that epoch is about to write. Raises :class:`StoreTaken`."""
        if epoch == self.epoch:
            return
        if self.is_fenced:
            self.counted["fenced"] += 1
            raise StoreTaken("another server leads now")
        self.stale.append(name)

    def look(self) -> None:
        """I15: nothing was written by a server that does not lead any more."""
        if self.stale:
            raise Broken(f"written by a leader of before: {self.stale}")

    def drain(self) -> None:
        """As the base; leaders of before come once more, and then nobody stands still any more."""
        super().drain()
        for control in self.retired:
            control.loop.round()

    def _actions(self) -> Any:
        return {**super()._actions(), self._replace_leader: 0.6, self._wake_one: 1.5}

    def _start_server(self) -> None:
        super()._start_server()
        self._lead()

    def _serve(self) -> None:
        self._ask_server(self.leading.loop.round)

    def _go_on(self) -> None:
        self.leading.loop.round()
        for optimizer in self.optimizers:
            self._work_honestly(optimizer)
        self.house.clock.advance(MINUTE_MS)
        self._arrive()

    def _lead(self) -> None:
        """Another server begins the next epoch, with a control plane of its own."""
        self.epoch += 1
        own, stores = self.house.control, (self.house.tables, self.house.tasks)
        self.house.tables, self.house.tasks = (Fenced(store, self, self.epoch) for store in stores)
        self.leading = self.house.restart()
        self.house.tables, self.house.tasks = stores
        self.house.control = own

    def _replace_leader(self) -> None:
        """The leader stands still, or lost its session; it does not know yet, and another one leads."""
        self.counted["leader replaced"] += 1
        self.retired = [*self.retired, self.leading][-RETIRED_MAX:]
        self._lead()

    def _wake_one(self) -> None:
        if self.retired:
            self.counted["leader of before woke"] += 1
            self._ask_server(self.chance.choice(self.retired).loop.round)

    def _meanwhile(self) -> None:
        if self._depth == 1 and self.chance.random() < 0.3:
            self.counted["leader replaced in the middle"] += 1
            self._replace_leader()
        else:
            super()._meanwhile()
