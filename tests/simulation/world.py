"""A lakehouse that misbehaves by the seed: writers, two optimizers, a server that dies, a catalog that goes away.

The services are the real ones, on in-memory ports and a virtual clock. What the writers did to the rows is kept apart
from the catalog, and after every step the one is compared with the other. All chance comes from one seed.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from icewright.adapters.memory.clock import ManualClock
from icewright.domain.errors import Conflict, LeaseLost, Rejected, Unavailable
from icewright.domain.events import CommitEvent
from icewright.domain.jobs import Cancelled, Committed, CommitUnknown, Result, TaskSpec
from icewright.domain.names import TableId, TableName
from icewright.domain.policy import Mode
from icewright.domain.tables import TASK_ID_KEY
from icewright.domain.tasks import ACTIVE_STATES, TERMINAL_STATES, Task, TaskState
from icewright.ports.store import TableStore, TaskFilter, TaskStore
from icewright.services.control import ControlPlane
from tests.services.lakehouse import LEASE_MS, MINUTE_MS, SECOND_MS, Lakehouse
from tests.services.worker import FINAL, RETRYABLE, Worker
from tests.simulation.writers import MODE_KEY, OBSERVED, Broken, Writers

DRAIN_MINUTES = 240
"""So long after the last fault, everything that was queued must have ended."""

Mutation = Callable[[ControlPlane], None]
OpenStores = Callable[[ManualClock], tuple[TableStore, TaskStore]]


class Killed(BaseException):
    """The server process dies here; nothing in it may catch this."""


class Mortal:
    """A store whose caller dies at a chosen call, before or after it took effect."""

    def __init__(self, store: Any, world: World) -> None:
        self._store, self._world = store, world

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            self._world.fuse -= 1
            if self._world.fuse == 0 and self._world.dies_before:
                raise Killed
            answer = method(*args, **kwargs)
            if self._world.fuse == 0:
                raise Killed
            return answer

        return call


@dataclass
class Optimizer:
    """An optimizer process, and what it is at."""

    worker: Worker
    spec: TaskSpec | None = None
    result: Result | None = None
    asleep_until: int = 0


class World:
    """One run. ``mutate`` damages each server process, to show that the run would notice."""

    def __init__(self, seed: int, mutate: Mutation | None = None, stores: OpenStores | None = None) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - replayed by its seed
        self.house = Lakehouse(seed=seed, stores=stores)
        self.counted: Counter[str] = Counter()
        self.fuse, self.dies_before = -1, True
        self.stores = (self.house.tables, self.house.tasks)
        self._mutate = mutate
        self._away_until = 0
        self._pending: list[CommitEvent] = []
        self.commits: dict[str, TableId] = {}
        self.late: set[str] = set()
        """Tasks that a zombie committed when they had already ended."""
        self.house.tables, self.house.tasks = Mortal(self.stores[0], self), Mortal(self.stores[1], self)
        self.names = [TableName("lake", ("db",), f"t{number}") for number in range(self.chance.randint(3, 6))]
        modes = ["auto", OBSERVED, "approve", *["auto"] * 3]
        self.writers = Writers(self.house, self.chance, observed=self.names[1])
        for name, mode in zip(self.names, modes, strict=False):
            self.writers.create(name, mode)
        self.optimizers = [Optimizer(Worker(self.house, f"optimizer-{letter}")) for letter in "ab"]
        self._start_server()

    # Steps.

    def step(self) -> None:
        """Time passes, somebody does something, and everything that must hold is checked."""
        pauses_ms = [100, SECOND_MS, 5 * SECOND_MS, 15 * SECOND_MS, 2 * MINUTE_MS]
        self.house.clock.advance(self.chance.choices(pauses_ms, weights=[8, 8, 8, 2, 1])[0])
        actions = [
            (self._write, 5),
            (self._optimize, 30),
            (self._serve, 12),
            (self._deliver, 3),
            (self._person, 1),
            (self._outage, 0.3),
            (self._kill_server, 0.5),
        ]
        (action,) = self.chance.choices([a for a, _ in actions], weights=[w for _, w in actions])
        action()
        if self.house.clock.now() >= self._away_until:
            self.house.catalog.available = True
        self.check()

    def drain(self) -> None:
        """No more faults and no more writes: whatever is queued must end, and every table says why it is as it is."""
        self.fuse, self.house.catalog.available = -1, True
        self._start_server()
        for optimizer in self.optimizers:
            optimizer.spec = None  # both were killed
        until = self.house.clock.now() + DRAIN_MINUTES * MINUTE_MS
        while self.house.clock.now() < until:
            self.house.control.loop.round()
            for optimizer in self.optimizers:
                self._work_honestly(optimizer)
            self.house.clock.advance(MINUTE_MS)
        self.check()
        self._check_end()

    def _all_tasks(self) -> list[Task]:
        return list(self.stores[1].tasks(TaskFilter(), limit=10_000))

    def _write(self) -> None:
        name = self.chance.choice(self.names)
        self.counted[f"write {self.writers.write(name)}"] += 1
        self._announce(name)

    # Events: lost, late, repeated, or about nothing.

    def _announce(self, name: TableName) -> None:
        snapshot_id = self.house.metadata_of(name).current_snapshot_id
        if snapshot_id is None or self.chance.random() < 0.3:
            return
        self._pending += [CommitEvent(name, snapshot_id)] * self.chance.randint(1, 2)
        if self.chance.random() < 0.05:
            self._pending.append(CommitEvent(TableName("lake", ("db",), "nothing"), snapshot_id))

    def _deliver(self) -> None:
        self.chance.shuffle(self._pending)
        while self._pending:
            event = self._pending.pop()
            self._ask_server(partial(self.house.control.tables.receive, event))

    # The server.

    def _start_server(self) -> None:
        self.fuse = -1
        control = self.house.restart()
        if self._mutate is not None:
            self._mutate(control)

    def _serve(self) -> None:
        self._ask_server(self.house.control.loop.round)

    def _kill_server(self) -> None:
        self.fuse, self.dies_before = self.chance.randint(1, 60), self.chance.random() < 0.5

    def _ask_server(self, request: Callable[[], Any]) -> Any:
        """A request; None when the server died over it, and another one has been started."""
        try:
            return request()
        except Killed:
            self.counted["server killed"] += 1
            self._start_server()
            return None

    def _outage(self) -> None:
        self.house.catalog.available = False
        self._away_until = self.house.clock.now() + self.chance.randint(1, 180) * SECOND_MS
        self.counted["catalog away"] += 1

    def _person(self) -> None:
        """Somebody applies a plan, or cancels or retries a task."""
        tasks = self._all_tasks()
        dispatcher = self.house.control.dispatcher
        name = self.chance.choice(self.names)
        record = self.stores[0].record_by_name(name)
        try:
            if record is not None and record.plan_id is not None and self.chance.random() < 0.5:
                self._ask_server(lambda: dispatcher.apply(record.plan_id or ""))
                self.counted["applied"] += 1
            elif tasks:
                task = self.chance.choice(tasks)
                call = self.chance.choice([dispatcher.cancel, dispatcher.retry])
                self._ask_server(lambda: call(task.task_id))
                self.counted[f"person {call.__name__}"] += 1
        except (Rejected, Conflict, Unavailable):
            self.counted["person refused"] += 1

    # Optimizers.

    def _optimize(self) -> None:
        optimizer = self.chance.choice(self.optimizers)
        if self.house.clock.now() < optimizer.asleep_until:
            return
        fault = self.chance.random()
        if fault < 0.05:
            self.counted["optimizer killed"] += optimizer.spec is not None
            optimizer.spec = optimizer.result = None
        elif fault < 0.11:
            optimizer.asleep_until = self.house.clock.now() + self.chance.randint(1, 4 * LEASE_MS)
        elif optimizer.spec is None:
            optimizer.spec = self._ask_server(optimizer.worker.claim_if_any)
            if optimizer.spec is not None:
                self._check_claim(optimizer.spec)
        elif optimizer.result is None:
            optimizer.result = self._attempt(optimizer, optimizer.spec)
        else:
            self._report(optimizer, optimizer.spec, optimizer.result)

    def _attempt(self, optimizer: Optimizer, spec: TaskSpec) -> Result | None:
        """One step of an attempt: None while it goes on."""
        kind = self.chance.random()
        if kind < 0.25:
            return self._beat(optimizer, spec)
        if kind < 0.32:
            return self.chance.choice([RETRYABLE, RETRYABLE, FINAL])
        if kind < 0.36:
            self.counted["lied"] += 1
            lies: list[Result] = [Committed(1), CommitUnknown("nothing was sent at all")]
            return self.chance.choice(lies)
        # A heartbeat may be long ago by now: nothing stops a zombie but what the catalog validates.
        return self._commit(optimizer, spec)

    def _beat(self, optimizer: Optimizer, spec: TaskSpec) -> Result | None:
        try:
            reply = self._ask_server(lambda: optimizer.worker.beat(spec))
        except LeaseLost:
            if self.chance.random() < 0.7:
                optimizer.spec = None
            else:
                self.counted["zombie"] += 1
            return None
        return Cancelled("cancelled before the commit") if reply is not None and reply.cancel else None

    def _commit(self, optimizer: Optimizer, spec: TaskSpec) -> Result:
        try:
            result = optimizer.worker.try_commit(spec)
        except Unavailable:
            return RETRYABLE
        self.counted[result.kind] += 1
        if isinstance(result, Committed):
            self._committed(spec)
            if self.chance.random() < 0.2:
                self.counted["unknown"] += 1
                return CommitUnknown("the answer was lost")
        return result

    def _committed(self, spec: TaskSpec) -> None:
        if spec.task_id in self.commits:
            raise Broken(f"task {spec.task_id} took effect twice")
        self.commits[spec.task_id] = spec.table_id
        if self.stores[1].get(spec.task_id).state in TERMINAL_STATES:
            self.late.add(spec.task_id)
        self.writers.rewritten(spec)

    def _report(self, optimizer: Optimizer, spec: TaskSpec, result: Result) -> None:
        try:
            answer = self._ask_server(lambda: optimizer.worker.report(spec, result))
        except LeaseLost:
            self.counted["report too late"] += 1
        else:
            if answer is None and self.chance.random() < 0.5:
                return  # the server died; the report is sent again
        optimizer.spec = optimizer.result = None

    def _work_honestly(self, optimizer: Optimizer) -> None:
        spec = optimizer.worker.claim_if_any()
        if spec is not None:
            result = optimizer.worker.try_commit(spec)
            if isinstance(result, Committed):
                self._committed(spec)
            optimizer.worker.report(spec, result)
            self.check()

    # What must hold.

    def check(self) -> None:
        """After every step."""
        tasks = self._all_tasks()
        active = Counter(task.table_id for task in tasks if task.state in ACTIVE_STATES)
        live = Counter(task.table_id for task in tasks if task.state not in TERMINAL_STATES)
        for counter, word in ((active, "active"), (live, "live")):
            if any(count > 1 for count in counter.values()):
                raise Broken(f"two {word} tasks of one table: {counter}")
        for name in self.names:
            self.writers.check(name)

    def _check_claim(self, spec: TaskSpec) -> None:
        """What is given out is the owner's will: as it is now, or as it is known while the catalog is away."""
        record = self.stores[0].record(spec.table_id)
        if self.house.catalog.available:
            metadata = self.house.metadata_of(spec.table_name)
            observed = metadata.table_id != spec.table_id or metadata.properties[MODE_KEY] == OBSERVED
        else:
            known = None if record is None or record.plan_id is None else self.stores[0].plan(record.plan_id)
            observed = known is not None and known.mode is Mode.OBSERVE
        if observed and spec.task_id not in self.commits:
            raise Broken(f"task {spec.task_id} was given out, and its table may only be observed")

    def _check_end(self) -> None:
        for task in self._all_tasks():
            if task.state not in TERMINAL_STATES:
                raise Broken(f"task {task.task_id} is {task.state} for ever: {task.outcome}")
            self._check_task(task.task_id, task.state)
        for name in self.names:
            self._check_table(name)
        if self.stores[0].inbox(10):
            raise Broken("events were never worked on")

    def _check_task(self, task_id: str, state: TaskState) -> None:
        """A task has succeeded if and only if the table says so, as far as the table can still say."""
        self.counted[f"task {state}"] += 1
        if state is TaskState.SUCCEEDED:
            if task_id not in self.commits:
                raise Broken(f"task {task_id} is said to have succeeded and never committed")
            return
        table_id = self.commits.get(task_id)
        present = {self.house.metadata_of(name).table_id: self.house.metadata_of(name) for name in self.names}
        if table_id not in present or task_id in self.late or state is TaskState.CANCELLED:
            return
        snapshot = present[table_id].snapshot_of_task(task_id)
        if snapshot is not None and present[table_id].snapshot(snapshot.parent_id) is not None:
            raise Broken(f"task {task_id} is {state}, and snapshot {snapshot.snapshot_id} carries it ({TASK_ID_KEY})")

    def _check_table(self, name: TableName) -> None:
        record = self.stores[0].record_by_name(name)
        metadata = self.house.metadata_of(name)
        if record is None or record.snapshot_id != metadata.current_snapshot_id or record.plan_id is None:
            raise Broken(f"{name} is not known as it is: {record}")
        plan = self.stores[0].plan(record.plan_id)
        if plan.snapshot_id != metadata.current_snapshot_id or not plan.reason.text:
            raise Broken(f"the plan of {name} is not of today: {plan.reason.text}")
        mode = metadata.properties[MODE_KEY]
        if mode == "auto" and not plan.is_empty and record.problem is None:
            raise Broken(f"{name} could be optimized, and nobody does it: {plan.reason.text}")
        if name == self.names[1] and any(s.task_id for s in metadata.snapshots):
            raise Broken(f"{name} may only be observed, and was changed")
        self.counted[f"plan {plan.reason.code}"] += 1
