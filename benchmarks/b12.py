"""B12: 50,000 tasks a day, 0.6 a second, through queue, optimizer and commit, for an hour, on tiny tables.

A writer commits to one table after the other at an even pace, each commit of several small files, and tells the server.
What counts is the time from a writer's commit to that of the first task which merged any of these files, both as the
table's own metadata say; and the CPU of the queue alone. That is measured apart: the same tasks go through an empty
store of the same kind once more, from being queued to having succeeded, with nothing else around.

All rows are read at the end and compared with those that were written.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from benchmarks import machine
from benchmarks.lake import Mismatch
from benchmarks.measure import Cost, Meter
from benchmarks.results import AT_MOST, Case, Figure, Result, Target, amount
from benchmarks.watchers import Optimizer, Server
from icewright.model.events.events import CommitEvent
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import TASK_ID_KEY
from icewright.model.work.tasks import AttemptState, NewTask, Outcome, Progress, Task, TaskState
from icewright.ports.store import Change, TaskFilter
from icewright.store.engine import open_store
from icewright.work.store.task_store import SqlTaskStore

NAME: Final = "B12"
TITLE: Final = "50,000 tasks a day"
PER_S: Final = 0.6

LATENCY_TARGET: Final = Target(AT_MOST, 900)
QUEUE_TARGET: Final = Target(AT_MOST, 0.05)

_CATALOG: Final = "day"
_NAMESPACE: Final = "lake"
_PACKAGES: Final = ("icewright", "pyiceberg", "pyspark", "pyarrow", "sqlalchemy", "fastapi")
_WAIT_S: Final = 1800.0
_LOOK_INTERVAL_S: Final = 0.2
_LEASE_MS: Final = 30_000
_ENDED: Final = frozenset({"succeeded", "superseded"})
_WORDS: Final = ("ok", "redirected", "refused", "failed", "timed out", "cancelled")


@dataclass(frozen=True, slots=True)
class Options:
    """How much to measure: ``commits`` at ``per_s``, each of ``files`` files of ``rows`` rows, to ``tables`` tables."""

    name: str
    tables: int
    commits: int
    per_s: float
    files: int
    rows: int
    seed: int


def short(seed: int) -> Options:
    """The options that only show that everything works."""
    return Options(NAME, 3, 6, 2.0, 5, 20, seed)


def usual(seed: int) -> Options:
    """Five minutes."""
    return Options(NAME, 100, round(300 * PER_S), PER_S, 5, 200, seed)


def full(seed: int) -> Options:
    """The hour of the target; its result stands beside the other."""
    return replace(usual(seed), name=f"{NAME}-full", tables=500, commits=round(3600 * PER_S))


def run(folder: Path, options: Options, say: Callable[[str], None]) -> Result:
    """Measure in ``folder``, which must be empty and is left with the lake in it.

    Raises :class:`~benchmarks.lake.Mismatch` when a commit is never merged, or a table has not the rows that it had.
    """
    where = machine.description()
    day = Day(folder, options)
    with ExitStack() as stack:
        server = stack.enter_context(closing(Server(folder, day.entry)))
        optimizer = stack.enter_context(closing(Optimizer(folder, day.entry, {})))
        day.begin()
        _settle(day, server, optimizer)
        with Meter(server.tree) as ours, Meter(optimizer.tree) as theirs:
            day.pass_by(server)
            _settle(day, server, optimizer)
    latencies_s = sorted(day.check())
    path = folder / "state" / "icewright.db"
    tasks = _ended_tasks(f"sqlite:///{path}")
    queue_s = queue_cpu_s(tasks, f"sqlite:///{folder}/alone.db")
    say(f"{len(day.commits):,} commits, {len(tasks):,} tasks, p99 {_quantile(latencies_s, 0.99):.1f} s")
    return Result(
        benchmark=options.name,
        title=f"{TITLE}: {options.commits:,} commits of {options.files} files to {options.tables} tables",
        measured_at=machine.today(),
        versions=machine.versions(_PACKAGES),
        cores=machine.cores(),
        machine=where,
        seed=options.seed,
        cases=tuple(cases(options, latencies_s, ours.cost, theirs.cost, queue_s)),
    )


def cases(options: Options, latencies_s: Sequence[float], ours: Cost, theirs: Cost, queue_s: float) -> Iterator[Case]:
    """What was measured, judged. ``latencies_s`` are sorted; ``queue_s`` is the CPU of the queue alone."""
    case, whole_s = f"{options.per_s:g} commits a second", ours.cpu_s + theirs.cpu_s

    def one(metric: str, value: float, target: Target | None = None) -> Case:
        return amount(case, metric, [Figure("icewright", 1, 1, value)], target)

    yield one("commit to optimized, p50, s", _quantile(latencies_s, 0.5))
    yield one("commit to optimized, p99, s", _quantile(latencies_s, 0.99), LATENCY_TARGET)
    yield one("the queue's share of all CPU", queue_s / whole_s, QUEUE_TARGET)
    yield one("the server's share of all CPU", ours.cpu_s / whole_s)
    yield one("CPU a commit, s", whole_s / options.commits)
    yield one("cores in use", whole_s / ours.wall_s)
    yield one("memory of the server, MiB", ours.peak_memory_bytes / (1 << 20))


@dataclass
class Day:
    """The tables, what was committed to them, and when."""

    folder: Path
    options: Options
    commits: list[tuple[str, int]] = field(default_factory=list)
    """The table and the snapshot id of each commit that counts."""
    _tables: dict[str, Table] = field(default_factory=dict)
    _ids: dict[str, int] = field(default_factory=dict)
    _first: dict[str, int] = field(default_factory=dict)
    """The commit that does not count."""
    _lives: dict[int, Mapping[str, int]] = field(default_factory=dict)

    @property
    def entry(self) -> CatalogEntry:
        """The catalog of the tables."""
        database = f"sqlite:///{self.folder}/catalog.db"
        return CatalogEntry(_CATALOG, CatalogKind.SQL, database, str(self.folder / "warehouse"))

    def __post_init__(self) -> None:
        """Make the catalog, with nothing in it but empty tables."""
        catalog = SqlCatalog(_CATALOG, **self.entry.pyiceberg_properties())
        catalog.create_tables()
        catalog.create_namespace(_NAMESPACE)
        schema = self._rows(0, 0).schema
        for number in range(self.options.tables):
            name = f"t{number:05d}"
            properties = {"icewright.mode": "auto"}
            self._tables[name] = catalog.create_table((_NAMESPACE, name), schema, properties=properties)
            self._ids[name] = 0

    def begin(self) -> None:
        """One commit to one table that does not count: Spark is warm afterwards."""
        self._first["t00000"] = self._commit("t00000")

    def pass_by(self, server: Server) -> None:
        """All commits, at an even pace; the server is told of each."""
        chance = random.Random(self.options.seed)  # noqa: S311 - an order, no secret
        names = list(self._tables)
        began_s = time.monotonic()
        for number in range(self.options.commits):
            time.sleep(max(0.0, began_s + number / self.options.per_s - time.monotonic()))
            if number % len(names) == 0:
                chance.shuffle(names)
            name = names[number % len(names)]
            snapshot_id = self._commit(name)
            self.commits.append((name, snapshot_id))
            server.client.notify(CommitEvent(TableName(_CATALOG, (_NAMESPACE,), name), snapshot_id))

    def merged(self) -> bool:
        """Whether of each table's last commit files were merged."""
        last = {**self._first, **dict(self.commits)}
        return all(self._merged_at_ms(name, snapshot_id) is not None for name, snapshot_id in last.items())

    def check(self) -> Iterator[float]:
        """Compare all rows, and give the seconds from each commit until it was merged. Raises :class:`Mismatch`."""
        for name, table in self._tables.items():
            found = sorted(table.refresh().scan(selected_fields=("id",)).to_arrow()["id"].to_pylist())
            if found != list(range(self._ids[name])):
                raise Mismatch(f"{name} has {len(found)} rows and not just those that were written")
        for name, snapshot_id in self.commits:
            merged_at_ms, committed = self._merged_at_ms(name, snapshot_id), self._snapshot(name, snapshot_id)
            if merged_at_ms is None:
                raise Mismatch(f"a commit to {name} was never merged")
            yield (merged_at_ms - committed.timestamp_ms) / 1000

    def _merged_at_ms(self, name: str, snapshot_id: int) -> int | None:
        """When the first task committed that merged files of a commit, by the table's clock; None where none did.

        One may leave a file of it to the next: `levels` writes none again before its bytes have doubled.
        """
        table, committed = self._tables[name].refresh(), self._snapshot(name, snapshot_id)
        ended = committed.sequence_number or 0
        written = {path for path, number in self._live(table, committed).items() if number > ended - self.options.files}
        later = [
            one
            for one in table.metadata.snapshots
            if (one.sequence_number or 0) > ended and one.summary and one.summary[TASK_ID_KEY]
        ]
        for one in sorted(later, key=lambda one: one.sequence_number or 0):
            if not written <= self._live(table, one).keys():
                return one.timestamp_ms
        return None

    def _live(self, table: Table, snapshot: Snapshot) -> Mapping[str, int]:
        """The data files of a snapshot, with the sequence numbers of their rows."""
        if snapshot.snapshot_id not in self._lives:
            self._lives[snapshot.snapshot_id] = {
                entry.data_file.file_path: entry.sequence_number or 0
                for manifest in snapshot.manifests(table.io)
                for entry in manifest.fetch_manifest_entry(table.io)
            }
        return self._lives[snapshot.snapshot_id]

    def _snapshot(self, name: str, snapshot_id: int) -> Snapshot:
        found = self._tables[name].snapshot_by_id(snapshot_id)
        if found is None:
            raise Mismatch(f"{name} lost a snapshot")
        return found

    def _commit(self, name: str) -> int:
        table, rows = self._tables[name], self.options.rows
        while True:
            try:
                with table.transaction() as change:
                    for file in range(self.options.files):
                        change.append(self._rows(self._ids[name] + file * rows, rows))
                break
            except CommitFailedException:
                table.refresh()  # a rewrite was quicker
        self._ids[name] += self.options.files * rows
        snapshot = table.current_snapshot()
        if snapshot is None:
            raise Mismatch(f"{name} was not written")
        return snapshot.snapshot_id

    def _rows(self, first: int, rows: int) -> Any:
        chance = random.Random(first)  # noqa: S311 - data, no secret
        ids = range(first, first + rows)
        return pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "device": pa.array([chance.randrange(500) for _ in ids], pa.int32()),
                "status": pa.array([chance.choice(_WORDS) for _ in ids], pa.string()),
            }
        )


def queue_cpu_s(tasks: Sequence[NewTask], store_url: str) -> float:
    """CPU seconds of this thread for taking tasks through an empty store, one by one, from queued to succeeded.

    Each is queued, claimed, beats once, commits and is verified; and once nothing is there for whoever asks.
    """
    with closing(_Queue(store_url)) as queue:
        began_s = time.thread_time()
        for task in tasks:
            queue.take_through(task)
        return time.thread_time() - began_s


class _Queue:
    """A store that has nothing but what goes through it."""

    def __init__(self, url: str) -> None:
        self._engine = open_store(url)
        self._store = SqlTaskStore(self._engine)

    def take_through(self, task: NewTask) -> None:
        store = self._store
        store.enqueue(task)
        claimed = self._claim(task.resource_group)
        if claimed is None or claimed.lease is None or self._claim(task.resource_group) is not None:
            raise Mismatch("not the one task that was queued could be claimed")
        beat = Progress("merging", 0, 1)
        store.heartbeat(claimed.task_id, claimed.lease.fencing_token, progress=beat, lease_ms=_LEASE_MS)
        outcome = Outcome(claimed.reason)
        reported = Change(claimed.task_id, claimed.version, TaskState.COMMITTED, outcome, AttemptState.COMMITTED, "{}")
        committed = store.change(reported)
        store.change(Change(committed.task_id, committed.version, TaskState.SUCCEEDED, outcome))

    def _claim(self, group: str) -> Task | None:
        catalogs = frozenset({_CATALOG})
        return self._store.claim("alone", resource_group=group, catalogs=catalogs, lease_ms=_LEASE_MS)

    def close(self) -> None:
        self._engine.dispose()


def _ended_tasks(store_url: str) -> list[NewTask]:
    """Those that succeeded, as they were queued."""
    engine = open_store(store_url)
    try:
        found: list[NewTask] = []
        names = {one.name for one in fields(NewTask)} & {one.name for one in fields(Task)}
        store, before = SqlTaskStore(engine), None
        only = TaskFilter(states=frozenset({TaskState.SUCCEEDED}))
        while page := store.tasks(only, limit=100, before=before):
            found += [NewTask(**{name: getattr(task, name) for name in names}) for task in page]
            before = page[-1].task_id
        return found
    finally:
        engine.dispose()


def _settle(day: Day, server: Server, optimizer: Optimizer) -> None:
    """Wait until all that was committed is merged and verified. Raises :class:`Mismatch`."""
    until_s = time.monotonic() + _WAIT_S
    while not (day.merged() and server.tasks().keys() <= _ENDED):
        if time.monotonic() > until_s or not optimizer.runs():
            raise Mismatch(f"tasks: {server.tasks()}; {optimizer.said()}")
        time.sleep(_LOOK_INTERVAL_S)


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
