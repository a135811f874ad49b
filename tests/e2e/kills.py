"""The kill matrix: which process dies at which named place, and a lake with processes that can be told to."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import psutil
from pyiceberg.table import Table

from icewright.api_client.client import Client
from icewright.core.errors import IcewrightError
from icewright.core.fault_points import Fault
from icewright.model.events.events import CommitEvent
from icewright.model.iceberg.tables import TASK_ID_KEY, Json
from icewright.model.work.tasks import TERMINAL_STATES, TaskState
from tests.e2e.processes import Answer, Processes, wait_for
from tests.lakes.sqlite import append, files_of, make_table, table_name, writer
from tests.readers.duck import duckdb_with_iceberg

ROWS, ROWS_PER_COMMIT = 30, 5
LEASE_MS, LONG_LEASE_MS = 3000, 60_000
"""Of what is waited for, and of what only ends when a test sets the clocks forth."""


@dataclass(frozen=True, order=True)
class Kill:
    """Who dies (``self``; Spark's ``jvm``; from a worker its ``driver``) where; a ``sleeper`` only stops."""

    point: Fault
    victim: str = "self"

    def __str__(self) -> str:
        return f"{self.victim} at {self.point}"


def _of(process: str, *victims: str) -> tuple[Kill, ...]:
    return tuple(Kill(point, victim) for point in Fault if point.startswith(f"{process}.") for victim in victims)


SERVER, SUPERVISOR = _of("server", "self"), _of("supervisor", "self")
OPTIMIZER, WORKER = _of("optimizer", "self", "jvm"), _of("worker", "self", "jvm", "driver")
HOUSEKEEPER, DELETER = _of("housekeeper", "self"), _of("deleter", "self")
"""The server's deaths over what it carries out itself, and over files."""
ELSEWHERE = frozenset({"expire-data", "manifests"})
"""Parts that die in tests of their own, by an exception and not with their process."""
KILLS = (*SERVER, *HOUSEKEEPER, *DELETER, *SUPERVISOR, *OPTIMIZER, *WORKER)

PLANNING = frozenset({Fault.EXPIRY_PLAN_BEFORE, Fault.EXPIRY_PLAN_AFTER})
"""Where a server of these dies with no attempt under way."""

PRUNING = (Kill(Fault.PRUNE_BEFORE), Kill(Fault.PRUNE_AFTER))
"""The server's deaths when it starts."""
BEFORE_PLANS = tuple(
    Kill(point)
    for point in (
        Fault.EVENT_STORED,
        Fault.OBSERVE_BEFORE,
        Fault.OBSERVE_AFTER,
        Fault.PLAN_BEFORE,
        Fault.PLAN_AFTER,
        Fault.ENQUEUE_BEFORE,
        Fault.ENQUEUE_AFTER,
        Fault.EVENT_WORKED,
    )
)
"""The server's deaths over a commit, before any optimizer is needed."""
AFTER_LOSS = tuple(
    Kill(point) for point in (Fault.EXPIRE_BEFORE, Fault.EXPIRE_AFTER, Fault.SETTLE_BEFORE, Fault.SETTLE_AFTER)
)
"""The server's deaths over an attempt that was lost; they need one, and no optimizer."""
DURING_WORK = tuple(kill for kill in SERVER if kill not in (*PRUNING, *BEFORE_PLANS, *AFTER_LOSS))
"""The server's deaths over an attempt that goes on."""


@dataclass
class Mortals(Processes):
    """Processes that die where they are told to. Each kill has a table of its own to die over."""

    tables: list[Table] = field(default_factory=list)
    kills: int = 0
    lease_ms: int = LEASE_MS
    ahead_ms: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        settings = self.configuration.read_text().replace("lease_ms = 4000", f"lease_ms = {self.lease_ms}")
        self.configuration.write_text(f'{settings}quarantine = ["{self.held}"]\nroots = ["{self.entry.warehouse}"]\n')
        self.held.mkdir()
        (self.folder / "kills").mkdir()
        self._clock.write_text(f"{0:020}")
        path = os.pathsep.join([str(Path(__file__).parent / "armed"), *sys.path])
        self.environ |= {"PYTHONPATH": path, "KILLS_FOLDER": str(self.folder / "kills")}

    @property
    def held(self) -> Path:
        """Where removed files wait."""
        return self.folder / "quarantine"

    @property
    def _clock(self) -> Path:
        return self.folder / "kills" / "clock"

    # Dying.

    def order(self, kill: Kill) -> int:
        """From now on whoever comes by dies; the number of the order. Replaces one for the same place."""
        self.kills += 1
        self._tell(f"order-{kill.point.value}", f"{kill.victim} {self.kills}")
        return self.kills

    def later(self, wait_ms: int) -> None:
        """From now on all clocks of those that were forked go ahead by so much more; nobody else's do."""
        self.ahead_ms += wait_ms
        with self._clock.open("r+") as clock:  # the same file, which they have in memory
            clock.write(f"{self.ahead_ms:020}")

    def _tell(self, name: str, text: str) -> None:
        """Let a file be there, whole."""
        fresh = self.folder / "kills" / "fresh"
        fresh.write_text(text)
        fresh.rename(self.folder / "kills" / name)

    def await_order(self, number: int, what: object) -> list[int]:
        """Wait until an order was carried out; the victims."""
        path = self.folder / "kills" / f"killed-{number}"

        def killed() -> list[int] | None:
            self.revive()  # whom an order for a later place took first
            try:
                return [int(pid) for pid in path.read_text().split()] or None
            except FileNotFoundError:
                return None

        return wait_for(killed, f"{what} dies", self)

    def await_kill(self, number: int, what: object) -> None:
        """Wait until an order was carried out, and restart the server or the supervisor if it was they."""
        for victim in self.await_order(number, what):
            wait_for(lambda: None if is_running(victim) else True, f"{victim} has ended", self)  # noqa: B023 - at once
        self.revive()

    @contextmanager
    def dying(self, *points: Fault) -> Iterator[None]:
        """The server dies over what is asked for in the block, at each of these places."""
        orders = [(self.order(Kill(point)), point) for point in points]
        yield
        for order, point in orders:
            self.await_kill(order, point)
        if not PLANNING.issuperset(points):
            self.give_up()

    def give_up(self) -> None:
        """Have attempts that nobody is at any more given up, and looked for, by clocks that are set forth."""
        for state in (TaskState.RUNNING, TaskState.IN_DOUBT):
            self.later(self.lease_ms)
            self._await_none(state)

    def _await_none(self, state: TaskState) -> None:
        self.done(lambda client: not client.tasks(states=(state,)).items or None, f"no task is {state} any more")

    def revive(self) -> None:
        """Start what has died."""
        for command in ("serve", "optimizer"):
            if command in self.running and self.running[command].poll() is not None:
                self.start(command)

    def kill_optimizer(self) -> None:
        """SIGKILL to what the supervisor has started, as soon as it has; the supervisor goes on."""

        def killed() -> list[psutil.Process]:
            found = []
            for process in psutil.Process(self.running["optimizer"].pid).children(recursive=True):
                with suppress(psutil.NoSuchProcess):  # what has ended since, perhaps with its parent
                    if is_running(process.pid):
                        process.kill()
                        found.append(process)
            return found

        wait_for(lambda: killed() or None, "an optimizer runs", self)

    # Work.

    def done(self, ask: Callable[[Client], Answer | None], what: str) -> Answer:
        """What comes of asking the server, again and again while it refuses, has no answer or has died over it."""

        def asked() -> Answer | None:
            try:
                with self.client() as client:
                    return ask(client)
            except IcewrightError:
                return None

        return wait_for(asked, what, self)

    def applied(self, ask: Callable[[Client], Json | None], what: str, *, by: str | None = None) -> str:
        """Have a plan made, and applied or approved, once, also when the server dies over it. The task's id."""
        plan_id = str(self.done(ask, f"{what} is planned")["plan_id"])

        def queued(client: Client) -> str | None:
            found = [task["task_id"] for task in client.tasks(limit=1000).items if task["plan_id"] == plan_id]
            if not found:
                task = client.apply(plan_id) if by is None else client.approve(plan_id, by)
                return str(task["task_id"])
            return str(found[0])

        return self.done(queued, f"{what} is queued")

    def ended(self, task_id: str) -> Json:
        """The task with its history, once it has ended."""

        def found(client: Client) -> Json | None:
            document = client.task(task_id)
            return document if TaskState(document["task"]["state"]) in TERMINAL_STATES else None

        return self.done(found, f"{task_id} ends")

    def make_work(self) -> Table:
        """A new table with small files, and an event that says so, sent until the server has acknowledged it."""
        table = make_table(self.entry, ("db", f"t{len(self.tables):03d}"))
        for first in range(0, ROWS, ROWS_PER_COMMIT):
            snapshot_id = append(table, range(first, first + ROWS_PER_COMMIT))
        self.tables.append(table)

        self.done(lambda client: client.notify(CommitEvent(table_name(table), snapshot_id)), "the event is taken")
        return table

    def settled(self) -> list[Json]:
        """All tasks, once none of them goes on and no table has small files left.

        A task that has lost all its attempts has failed; then a person has it tried again.
        """

        def ended(client: Client) -> list[Json] | None:
            tasks = client.tasks(limit=1000).items
            goes_on = {task["table"] for task in tasks if TaskState(task["state"]) not in TERMINAL_STATES}
            merged = {task["table"] for task in tasks if task["state"] == "succeeded"}
            for task in tasks:
                if task["state"] == "failed" and task["table"] not in goes_on | merged:
                    client.retry(task["task_id"])
                    goes_on.add(task["table"])
            return None if goes_on or len(merged) < len(self.tables) else list(tasks)

        return self.done(ended, "all tasks end")


def is_running(pid: int) -> bool:
    """Whether a process runs; one that only waits to be looked after does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


# What must hold when all is over.


def check_lake(lake: Mortals, tasks: list[Json]) -> None:
    """No row lost or there twice, no reachable file missing, no task in the table twice; read by others than us."""
    committed: Counter[str] = Counter()
    duck = duckdb_with_iceberg()
    for table in lake.tables:
        current = writer(lake.entry).load_table(table.name())
        expected = list(range(ROWS))
        assert sorted(current.scan().to_arrow()["id"].to_pylist()) == expected, table.name()
        found = duck.execute("SELECT id FROM iceberg_scan(?) ORDER BY id", [current.metadata_location]).fetchall()
        assert [row[0] for row in found] == expected, table.name()
        for path in files_of(current):
            assert Path(urlsplit(path).path).is_file(), path
        committed += Counter(
            str(s.summary[TASK_ID_KEY]) for s in current.metadata.snapshots if s.summary and s.summary[TASK_ID_KEY]
        )
    assert {task_id: times for task_id, times in committed.items() if times > 1} == {}
    succeeded = {task["task_id"] for task in tasks if task["state"] == "succeeded"}
    assert set(committed) == succeeded
