"""QUEUE: how many tasks a second are claimed of a long queue, on SQLite and on PostgreSQL, and how long a claim takes.

Many tasks wait, of several owners, in a resource group with caps on everything, and several callers claim at once, each
for an optimizer of its own and through a connection pool of its own threads, as the server's do. In the case ``burst``
they only claim, so that more and more runs; in ``steady`` each ends its task after the claim, whose time does not
count for the claim but does take its turn among the writers of the store. A claim is
:meth:`icewright.ports.store.TaskStore.claim`: what HTTP, the policies and the last look at the table take comes on top.

Both databases keep what they answered: SQLite with ``synchronous=FULL``, PostgreSQL with ``fsync`` and
``synchronous_commit`` on, each on the disk of this machine. Nobody else is compared: there is no other queue that
decides by the same.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from sqlalchemy import Engine, insert, text

from benchmarks import machine
from benchmarks.results import AT_LEAST, AT_MOST, Case, Figure, Result, Target, amount
from icewright.model.actions.actions import FileGroup, InputFile, RewriteDataFiles
from icewright.model.iceberg.files import UNPARTITIONED, Partition
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.plans.plans import Reason, RewritePrediction
from icewright.model.policy.resource_groups import Queue, ResourceGroup, TenantCaps
from icewright.model.work import lifecycle
from icewright.model.work.admission import Holding, Lane, Terms, Urgency
from icewright.model.work.tasks import AttemptState, NewTask, Outcome, Task, TaskState
from icewright.ports.store import Change
from icewright.store.engine import open_store
from icewright.store.schema import task_actions, task_history, tasks
from icewright.store.transactions import writing
from icewright.work.store.task_rows import action_row, history_row, task_row
from icewright.work.store.task_store import SqlTaskStore
from tests.servers.postgres import find_programs, postgres_server

NAME: Final = "QUEUE"
SQLITE: Final = "sqlite"
POSTGRESQL: Final = "postgresql"
CATALOG: Final = "lake"
BURST: Final = "burst"
STEADY: Final = "steady"
CLAIMS_A_SECOND: Final = {SQLITE: Target(AT_LEAST, 200), POSTGRESQL: Target(AT_LEAST, 500)}
_ROWS: Final = 1_000
_LEASE_MS: Final = 600_000
_DONE: Final = Outcome(Reason("done", "all well"))

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Options:
    """``waiting`` tasks of ``owners`` owners; each of ``callers`` makes ``claims`` claims, ``rounds`` times."""

    waiting: int
    owners: int
    callers: int
    claims: int
    rounds: int
    seed: int


def short(seed: int) -> Options:
    """Seconds: only to show that it works."""
    return Options(waiting=400, owners=4, callers=4, claims=20, rounds=1, seed=seed)


def usual(seed: int) -> Options:
    """100,000 waiting tasks of twenty owners, eight callers."""
    return Options(waiting=100_000, owners=20, callers=8, claims=150, rounds=3, seed=seed)


def run(folder: Path, options: Options, say: Say) -> Result:
    """Measure both databases. Raises :class:`RuntimeError` where PostgreSQL's programs are not installed."""
    cases: list[Case] = []
    before = machine.description()
    for database in (SQLITE, POSTGRESQL):
        with _url(database, folder) as url:
            engine = open_store(url)
            fill(engine, options)
            say(f"{database}: {options.waiting:,} tasks wait")
            for case in (BURST, STEADY):
                cases += _measured(engine, database, case, options, say)
            engine.dispose()
    return Result(
        benchmark=NAME,
        title=f"claims of a queue of {options.waiting:,} tasks of {options.owners} owners, {options.callers} callers",
        measured_at=machine.today(),
        versions=machine.versions(["icewright", "sqlalchemy", "psycopg"]),
        cores=machine.cores(),
        machine=before,
        seed=options.seed,
        cases=tuple(cases),
    )


@contextmanager
def _url(database: str, folder: Path) -> Iterator[str]:
    if database == SQLITE:
        yield f"sqlite:///{folder}/queue.db"
        return
    programs = find_programs()
    if programs is None:
        raise RuntimeError("PostgreSQL's programs are not installed: scripts/install_programs.py says how")
    with postgres_server(programs, settings=("shared_buffers=128MB",)) as server:
        yield server.new_database()


def lanes(owners: int) -> Sequence[Lane]:
    """As they might be: most tasks are of no hurry, some tables are real-time, a few need more memory."""
    names = [f"owner-{number}" for number in range(owners)]
    normal = [Lane(tenant=name) for name in names]
    urgent = [Lane(urgency=Urgency.REAL_TIME, tenant=name) for name in names[: owners // 4]]
    return [*normal * 4, *urgent, *(Lane(Queue.LARGE, tenant=name) for name in names[: owners // 10])]


def group(options: Options) -> ResourceGroup:
    """Caps on everything, none of which is ever reached: a claim that is refused would be a cheap one."""
    most = 10 * options.callers * options.claims * options.rounds
    tenants = tuple(TenantCaps(f"owner-{number}", most, most, most) for number in range(options.owners))
    return ResourceGroup("default", most, most, 1_000, 1_000, (), 0.9, tenants, most)


def fill(engine: Engine, options: Options) -> None:
    """Put all waiting tasks into the store, as an enqueue would, but a thousand at a time."""
    kinds = lanes(options.owners)
    partition = Partition(0, UNPARTITIONED)
    for start in range(0, options.waiting, _ROWS):
        steps = []
        for number in range(start, min(start + _ROWS, options.waiting)):
            files = tuple(InputFile(f"s3://b/t{number}/{n}.parquet", 1 << 20, 100, 1) for n in range(4))
            action = RewriteDataFiles(1, 0, (FileGroup(0, partition, "", files),), 1 << 29)
            table_id = TableId(CATALOG, f"00000000-0000-4000-8000-{number:012d}")
            name = TableName(CATALOG, ("db",), f"t{number}")
            reason, prediction = Reason("small-files", "4 small files"), RewritePrediction(4, 1, 4, 1, 1 << 22, 400)
            new = NewTask(f"task-{number:08d}", table_id, name, "p", action, reason, prediction, 0, "default", 3)
            steps.append(lifecycle.create(replace(new, lane=kinds[number % len(kinds)]), 1_000 + number))
        with writing(engine) as connection:
            connection.execute(insert(tasks), [task_row(step.task) for step in steps])
            connection.execute(insert(task_actions), [action_row(step.task) for step in steps])
            connection.execute(insert(task_history), [history_row(step.entry) for step in steps])
    with engine.connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT").execute(text("ANALYZE"))


def _measured(engine: Engine, database: str, case: str, options: Options, say: Say) -> list[Case]:
    speeds, slowest, medians = [], [], []
    for number in range(1, options.rounds + 1):
        wall_s, each_s = claim_all(engine, options, ends=case == STEADY)
        each_s.sort()
        speeds.append(Figure(database, number, 1, len(each_s) / wall_s))
        slowest.append(Figure(database, number, 1, 1_000 * each_s[int(len(each_s) * 0.99)]))
        medians.append(Figure(database, number, 1, 1_000 * each_s[len(each_s) // 2]))
        say(f"{database}, {case}: {speeds[-1].value:.0f} claims a second, p99 {slowest[-1].value:.1f} ms")
    name = f"{database}, {case}"
    target = CLAIMS_A_SECOND[database] if case == BURST else None
    return [
        amount(name, "claims a second", speeds, target),
        amount(name, "p50, ms", medians),
        amount(name, "p99, ms", slowest, Target(AT_MOST, 250) if case == BURST else None),
    ]


def claim_all(engine: Engine, options: Options, *, ends: bool) -> tuple[float, list[float]]:
    """Let all callers claim at once; seconds for all of it, and for each claim. What they got is ended afterwards.

    Raises :class:`RuntimeError` when a claim gives nothing, or the same task twice.
    """
    store, terms = SqlTaskStore(engine), Terms(group(options), Holding(1, 1))
    start = threading.Barrier(options.callers + 1)
    got: list[list[Task]] = [[] for _ in range(options.callers)]
    took: list[list[float]] = [[] for _ in range(options.callers)]

    def call(caller: int) -> None:
        start.wait()
        for _ in range(options.claims):
            before_s = time.perf_counter()
            task = store.claim(
                f"optimizer-{caller}",
                resource_group="default",
                catalogs=frozenset({CATALOG}),
                lease_ms=_LEASE_MS,
                terms=terms,
            )
            took[caller].append(time.perf_counter() - before_s)
            if task is None:
                raise RuntimeError("a claim gave nothing although tasks wait")
            got[caller].append(task)
            if ends:
                _end(store, task)

    with ThreadPoolExecutor(options.callers) as pool:
        calls = [pool.submit(call, caller) for caller in range(options.callers)]
        start.wait()
        began_s = time.perf_counter()
        for one in calls:
            one.result()
        wall_s = time.perf_counter() - began_s
    claimed = [task for each in got for task in each]
    if len({task.task_id for task in claimed}) != len(claimed):
        raise RuntimeError("two callers got the same task")
    if not ends:
        for task in claimed:
            _end(store, task)
    return wall_s, [one for each in took for one in each]


def _end(store: SqlTaskStore, task: Task) -> None:
    store.change(Change(task.task_id, task.version, TaskState.SUPERSEDED, _DONE, AttemptState.CONFLICT))
