"""A lakehouse that misbehaves by the seed: writers, two optimizers, a server that dies, clocks that jump.

The services are the real ones, on in-memory ports and a virtual clock. What the writers did to the rows is kept apart
from the catalog, and after every step the one is compared with the other. All chance comes from one seed.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from icewright.core.clock import Clock
from icewright.core.errors import Conflict, LeaseLost, NotFound, OutcomeUnknown, Rejected, Unavailable
from icewright.core.fault_points import Fault
from icewright.model.actions.expire_snapshots import ExpireSnapshotsRequest
from icewright.model.events.events import Channel, CommitEvent
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.policy.policy import Mode
from icewright.model.policy.resource_groups import DEFAULT_GROUP, SERVER, ResourceGroup
from icewright.model.work.halts import EVERYTHING, Halt, HaltState, Part, PartKind, halt_over
from icewright.model.work.jobs import Cancelled, Committed, CommitUnknown, Result, TaskSpec
from icewright.model.work.tasks import COMMITTING, TERMINAL_STATES, AttemptState, Task
from icewright.ports.store import TableStore, TaskFilter, TaskStore
from tests.builders.lakehouse import HOUR_MS, LEASE_MS, MINUTE_MS, SECOND_MS, Lakehouse
from tests.builders.worker import FINAL, RETRYABLE, Worker
from tests.simulation.trouble import NEVER, Killed, Moody, Mortal, Trouble
from tests.simulation.writers import MODE_KEY, OBSERVED, Broken, Writers

DRAIN_MINUTES = 240
"""So long after the last fault, everything that was queued must have ended."""

OF_THE_SERVICES = tuple(point for point in Fault if point.startswith(("server.", "housekeeper.")))
"""The fault points that the services come by here: all of the server's, and of who expires."""

Mutation = Callable[["World"], None]
OpenStores = Callable[[Clock], tuple[TableStore, TaskStore]]
Answer = TypeVar("Answer")


@dataclass
class Optimizer:
    """An optimizer process, and what it is at."""

    worker: Worker
    spec: TaskSpec | None = None
    result: Result | None = None
    asleep_until: int = 0
    has_leave: bool = False


@dataclass
class InFlight:
    """A commit that was sent and arrives late, whoever still waits for it."""

    arrives_at: int
    worker: Worker
    spec: TaskSpec


def drawn_group(seed: int) -> ResourceGroup:
    """The group of all optimizers, with some caps or none: two workers of two cores each would have four tasks."""
    chance = random.Random(f"group of {seed}")  # noqa: S311 - replayed by its seed
    return ResourceGroup(
        DEFAULT_GROUP,
        cores=chance.choice([None, None, 2, 3, 4]),
        applications_max=chance.choice([None, None, 1, 2]),
        tasks_max=chance.choice([None, None, 1, 2]),
    )


class World:
    """One run. ``mutate`` damages each server process, to show that the run would notice."""

    has_files = False
    """Whether files are objects, which may go."""
    steps = 250
    drain_minutes = DRAIN_MINUTES
    traps: tuple[Fault, ...] = OF_THE_SERVICES
    """Where the server may die."""

    def __init__(self, seed: int, mutate: Mutation | None = None, stores: OpenStores | None = None) -> None:
        self.chance = random.Random(seed)  # noqa: S311 - replayed by its seed
        self.group = drawn_group(seed)
        self.house = Lakehouse(seed=seed, stores=stores, has_files=self.has_files, groups=(self.group,))
        self.counted: Counter[str] = Counter()
        self.stores = (self.house.tables, self.house.tasks)
        self.trouble = Trouble(self.chance, self.house.clock, self.counted)
        self.may_lie = self.chance.random() < 0.2
        """Whether the catalog of this run tells of yesterday at times: what is then said of a task may be wrong."""
        self._mutate = mutate
        self._away_until = 0
        self._pending: list[CommitEvent] = []
        self._in_flight: list[InFlight] = []
        self._depth = 0
        self.halted: tuple[Halt, ...] = ()
        """What a person has halted, as the store has it behind the last change."""
        self._attempts: dict[str, int] = {}
        self.commits: dict[str, TableId] = {}
        self.reported: set[tuple[str, int]] = set()
        """Attempts whose report the server has acknowledged."""
        self.house.tables, self.house.tasks = (Mortal(store, self.trouble) for store in self.stores)
        self.house.served["lake"] = Moody(self.house.catalog, self.trouble)
        self.names = [TableName("lake", ("db",), f"t{number}") for number in range(self.chance.randint(3, 6))]
        self._open_files()
        modes = ["auto", OBSERVED, "approve", *["auto"] * 3]
        self.writers = Writers(self.house, self.chance, self.names, observed=1)
        self.writers.also = self._more_properties
        for name, mode in zip(self.names, modes, strict=False):
            self.writers.create(name, mode)
        self.optimizers = [Optimizer(Worker(self.house, f"optimizer-{letter}")) for letter in "ab"]
        self.trouble.meanwhile = self._meanwhile
        self._start_server()

    # Steps.

    def step(self) -> None:
        """Time passes, somebody does something, and everything that must hold is checked."""
        halted = self.halted
        pauses_ms = [100, SECOND_MS, 5 * SECOND_MS, 15 * SECOND_MS, 2 * MINUTE_MS]
        self.house.clock.advance(self.chance.choices(pauses_ms, weights=[8, 8, 8, 2, 1])[0])
        actions = self._actions()
        (action,) = self.chance.choices(list(actions), list(actions.values()))
        action()
        if self.house.clock.now() >= self._away_until:
            self.house.catalog.available = True
        self._arrive()
        self.check_halts(self.all_tasks(), halted)

    def _actions(self) -> dict[Callable[[], None], float]:
        """What somebody may do next, and how often."""
        return {
            self._write: 8,
            self._optimize: 30,
            self._serve: 12,
            self._deliver: 3,
            self._person: 1,
            self._expire: 0.6,
            self._halt: 0.6,
            self._outage: 0.3,
            self._store_outage: 0.2,
            self._slowness: 0.2,
            self._jump: 0.2,
            self._kill_server: 0.5,
        }

    def _open_files(self) -> None:
        """What stands between the server and the files, where there are any."""

    def _more_properties(self) -> dict[str, str]:
        """What a table's owner wants besides."""
        return {}

    def look(self) -> None:
        """What else must hold after each step. Raises :class:`Broken`."""

    def look_at_last(self) -> None:
        """What else must hold at the end. Raises :class:`Broken`."""

    def drain(self) -> None:
        """No more faults and no more writes: whatever is queued must end, and every table says why it is as it is."""
        self.house.catalog.available = True
        self._start_server()
        self.trouble.end()
        for halt in self.halted:
            self.house.control.halting.resume(halt.part, "the day is over")
        self.halted = ()
        for optimizer in self.optimizers:
            optimizer.spec = None  # both were killed
        until = self.house.clock.now() + self.drain_minutes * MINUTE_MS
        while self.house.clock.now() < until:
            self._go_on()

    def _go_on(self) -> None:
        """A minute in which all do what they should."""
        self.house.control.loop.round()
        for optimizer in self.optimizers:
            self._work_honestly(optimizer)
        self.house.clock.advance(MINUTE_MS)
        self._arrive()

    def all_tasks(self) -> list[Task]:
        """All tasks, as the store has them."""
        return list(self.stores[1].tasks(TaskFilter(), limit=10_000))

    def _write(self) -> None:
        busy = [one.spec.table_name for one in self.optimizers if one.spec and one.spec.table_name in self.names]
        name = self.chance.choice(busy if busy and self.chance.random() < 0.4 else self.names)
        self.counted[f"write {self.writers.write(name)}"] += 1
        self._announce(self.chance.choice(self.names))

    def _meanwhile(self) -> None:
        """Others go on while the server waits for an answer: a writer, or an optimizer in another request."""
        if self._depth > 1:
            return
        self.counted["meanwhile"] += 1
        self.chance.choice([self._write, self._optimize])()

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
            self._ask_server(partial(self.house.control.intake.take, [event], Channel.HTTP))

    # The server, and what it stands on.

    def _start_server(self) -> None:
        dies_at_once = self.chance.random() < 0.1
        self.trouble.fuse, self.trouble.trap = NEVER, self.chance.choice(self.traps) if dies_at_once else None
        self.house.restart()
        if self._mutate is not None:
            self._mutate(self)

    def _serve(self) -> None:
        self._ask_server(self.house.control.loop.round)

    def _kill_server(self) -> None:
        if self.chance.random() < 0.5:
            self.trouble.trap = self.chance.choice(self.traps)
        else:
            self.trouble.fuse, self.trouble.dies_before = self.chance.randint(1, 60), self.chance.random() < 0.5

    def _ask_server(self, request: Callable[[], Answer]) -> Answer | None:
        """A request; None without an answer: the server died over it and was started anew, or its store was away."""
        self._depth += 1
        try:
            return request()
        except Killed:
            if self._depth > 1:
                raise  # the whole process dies, and with it the request that this one came in between
            self.counted["server killed"] += 1
            self._start_server()
            return None
        except (Unavailable, OutcomeUnknown):
            self.counted["server could not"] += 1
            return None
        finally:
            self._depth -= 1

    def _outage(self) -> None:
        self.house.catalog.available = False
        self._away_until = self.house.clock.now() + self.chance.randint(1, 180) * SECOND_MS
        self.counted["catalog away"] += 1

    def _store_outage(self) -> None:
        self.trouble.store_away_until = self.house.clock.now() + self.chance.randint(1, 60) * SECOND_MS

    def _slowness(self) -> None:
        until = self.house.clock.now() + self.chance.randint(1, 10) * MINUTE_MS
        if self.may_lie and self.chance.random() < 0.5:
            self.trouble.catalog_lies_until = until
        else:
            self.trouble.catalog_slow_until = until

    def _jump(self) -> None:
        """Somebody sets a clock: the server's, the store's or the writers'."""
        clocks = [self.house.server_clock, self.house.store_clock, self.house.writers_clock]
        self.chance.choice(clocks).ahead_ms = self.chance.choice([0, 1, -1]) * self.chance.randint(1, HOUR_MS)
        self.counted["clock set"] += 1

    def _person(self) -> None:
        """Somebody applies a plan, or cancels or retries a task."""
        tasks = self.all_tasks()
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
        except (Rejected, Conflict):
            self.counted["person refused"] += 1

    def _expire(self) -> None:
        """Somebody has snapshots expire, of any age or of some."""
        name = self.chance.choice(self.names)
        asked = ExpireSnapshotsRequest(self.chance.choice(["PT0S", "PT10M", "PT2H"]), self.chance.randint(1, 4))
        control = self.house.control
        try:
            plan = self._ask_server(lambda: control.maintainer.plan_asked(name, asked))
            if plan is not None and plan.actions:
                self._ask_server(lambda: control.dispatcher.apply(plan.plan_id))
                self.counted["expiry asked for"] += 1
        except (Rejected, Conflict):
            self.counted["expiry refused"] += 1

    def _halt(self) -> None:
        """Somebody pauses, drains or stops something, or resumes it."""
        halting = self.house.control.halting
        if self.halted and self.chance.random() < 0.6:
            part = self.chance.choice(self.halted).part
            self._ask_server(lambda: halting.resume(part, "it is over"))
            self.counted["resumed"] += 1
        else:
            part = self._some_part()
            state = self.chance.choice(list(HaltState))
            self._ask_server(lambda: halting.halt(part, state, "a fire"))
            self.counted[f"halted: {state}"] += 1
        self.halted = tuple(self.stores[1].halts.present())  # the answer may have been lost

    def _some_part(self) -> Part:
        """Mostly a table, of those that are worked on if there are any."""
        busy = [one.spec.table_name for one in self.optimizers if one.spec and one.spec.table_name in self.names]
        record = self.stores[0].record_by_name(self.chance.choice(busy or self.names))
        if record is not None and self.chance.random() < 0.6:
            return Part(PartKind.TABLE, str(record.name), record.table_id)
        groups = [Part(PartKind.GROUP, name) for name in ("default", SERVER)]
        return self.chance.choice([EVERYTHING, Part(PartKind.CATALOG, "lake"), *groups])

    def check_halts(self, tasks: Iterable[Task], halted: Sequence[Halt]) -> None:
        """I19: nothing was given out of what was ``halted`` before this step, and is. Raises :class:`Broken`."""
        stood = [halt for halt in halted if halt in self.halted]
        for task in tasks:
            over = halt_over(stood, task.resource_group, task.table_id)
            if task.attempt > self._attempts.get(task.task_id, 0) and over is not None:
                raise Broken(f"task {task.task_id} was given out, and {over.reason().text}")
            self._attempts[task.task_id] = task.attempt

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
            optimizer.has_leave = False
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
        if not optimizer.has_leave and kind < 0.8:
            return self._beat(optimizer, spec, COMMITTING)
        # Leave may be long ago by now, or was never asked for: what stops a zombie is what the catalog validates.
        return self._commit(optimizer, spec)

    def _beat(self, optimizer: Optimizer, spec: TaskSpec, phase: str = "merging") -> Result | None:
        try:
            reply = self._ask_server(lambda: optimizer.worker.beat(spec, phase))
        except (LeaseLost, NotFound):
            if self.chance.random() < 0.7:
                optimizer.spec = None
            else:
                self.counted["zombie"] += 1
            return None
        over = halt_over(self.halted, "default", spec.table_id)
        if reply is not None and over is not None and over.state is HaltState.STOPPED:
            self.counted["stopped an attempt"] += 1
            if not reply.cancel:
                raise Broken(f"task {spec.task_id} may go on, and {over.reason().text}")
        optimizer.has_leave = reply is not None and phase == COMMITTING
        if optimizer.has_leave and self.house.catalog.available:
            optimizer.worker.look(spec)  # what others commit from now on, the catalog has to tell
        return Cancelled("cancelled before the commit") if reply is not None and reply.cancel else None

    def _commit(self, optimizer: Optimizer, spec: TaskSpec) -> Result:
        if self.chance.random() < 0.06:
            delay_ms = self.chance.randint(1, 10 * MINUTE_MS)
            self._in_flight.append(InFlight(self.house.clock.now() + delay_ms, optimizer.worker, spec))
            return CommitUnknown("no answer came")
        try:
            result = optimizer.worker.try_commit(spec)
        except Unavailable:
            return RETRYABLE
        self.counted[result.kind] += 1
        if isinstance(result, Committed):
            self._committed(spec, optimizer.worker)
            if self.chance.random() < 0.2:
                self.counted["unknown"] += 1
                return CommitUnknown("the answer was lost")
        return result

    def _arrive(self) -> None:
        """Commits that were under way reach the catalog, which validates them as of now."""
        due = [sent for sent in self._in_flight if sent.arrives_at <= self.house.clock.now()]
        if not due or not self.house.catalog.available:
            return
        self._in_flight = [sent for sent in self._in_flight if sent not in due]
        for sent in due:
            if isinstance(sent.worker.try_commit(sent.spec), Committed):
                self.counted["committed late"] += 1
                self._committed(sent.spec, sent.worker)

    def _committed(self, spec: TaskSpec, worker: Worker, *, honest: bool = False) -> None:
        made = [s for s in self.house.metadata_of(spec.table_name).ancestors() if s.task_id == spec.task_id]
        if spec.task_id in self.commits:
            # Only a zombie can come again, and only when the owner has undone what another attempt did.
            if honest or len(made) != 1:
                raise Broken(f"task {spec.task_id} took effect twice")
            self.counted["zombie after a rollback"] += 1
        self.commits[spec.task_id] = spec.table_id
        if self.stores[1].get(spec.task_id).state in TERMINAL_STATES:
            self.counted["committed after the end"] += 1
        part = worker.part_of(spec)
        self.counted["committed in part"] += part != spec.rewrite
        self.writers.rewritten(spec, part)

    def _report(self, optimizer: Optimizer, spec: TaskSpec, result: Result) -> None:
        try:
            answer = self._ask_server(lambda: optimizer.worker.report(spec, result))
        except (LeaseLost, NotFound):
            self.counted["report too late"] += 1
        else:
            if answer is not None:
                self.reported.add((spec.task_id, spec.attempt))
            elif self.chance.random() < 0.8:
                return  # the server died, or its store was away; the report is sent again
        optimizer.spec = optimizer.result = None

    def _work_honestly(self, optimizer: Optimizer) -> None:
        spec = optimizer.worker.claim_if_any()
        if spec is not None:
            result = optimizer.worker.try_commit(spec)
            if isinstance(result, Committed):
                self._committed(spec, optimizer.worker, honest=True)
            optimizer.worker.report(spec, result)

    def _check_claim(self, spec: TaskSpec) -> None:
        """What is given out is the owner's will: as it is now, or as it is known while the catalog is away."""
        if self.may_lie or self.house.clock.now() < self.trouble.catalog_slow_until:
            return  # the owner may have changed his mind since the server was told
        record = self.stores[0].record(spec.table_id)
        try:
            metadata = self.house.metadata_of(spec.table_name)
        except NotFound:
            return
        if self.house.catalog.available:
            observed = metadata.table_id != spec.table_id or metadata.properties[MODE_KEY] == OBSERVED
        else:
            known = None if record is None or record.plan_id is None else self.stores[0].plan(record.plan_id)
            observed = known is not None and known.mode is Mode.OBSERVE
        if observed and spec.task_id not in self.commits:
            raise Broken(f"task {spec.task_id} was given out, and its table may only be observed")

    def acknowledged(self) -> None:
        """Every report that the server has taken is in the store. Raises :class:`Broken`."""
        for task_id, attempt in self.reported:
            stored = self.stores[1].attempts(task_id)[attempt - 1]
            if stored.state is AttemptState.RUNNING or stored.report_json is None:
                raise Broken(f"the report of attempt {attempt} of task {task_id} was taken and is not there")
