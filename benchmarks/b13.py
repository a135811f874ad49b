"""B13: the first pass over many small tables, with small tasks sharing Spark jobs and without.

The real server with its SQLite store and a real optimizer are told of tables that they have never seen, each of many
small files, and what is counted is everything until every table has been merged into one file and that was verified.
Spark is warm by then: other tables came first. The peer of the target, Apache Amoro 0.9, was measured elsewhere (0.19
CPU seconds a table, 4.85 GB; 16 to 59 s from a commit to its end); what stands beside each other here are batches and a
Spark job for each task. Behind each pass one of its tables gets one commit of 15 files, and the time is taken until the
merge of these is verified, asked for every 0.1 s: the table is known, Spark is warm, and nothing else is to be done.

A table has six columns and is not partitioned. Each run has a catalog and processes of its own over the same files.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

from benchmarks import machine
from benchmarks.lake import Mismatch
from benchmarks.measure import Cost, Meter
from benchmarks.results import AT_MOST, Case, Figure, Result, Target, amount, ratio
from benchmarks.watchers import Optimizer, Server
from icewright.model.events.events import CommitEvent
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.names import TableName

NAME: Final = "B13"
TITLE: Final = "first pass over many small tables"

BATCHES: Final = "batches"
SINGLE: Final = "a job for each task"
CPU_TARGET: Final = Target(AT_MOST, 0.05)
MEMORY_TARGET: Final = Target(AT_MOST, 400)
LATENCY_TARGET: Final = Target(AT_MOST, 5)
COMMIT_FILES: Final = 15
"""Files of the commit that the latency is of."""

_CATALOG: Final = "small"
_NAMESPACE: Final = "lake"
_PACKAGES: Final = ("icewright", "pyiceberg", "pyspark", "pyarrow", "sqlalchemy", "fastapi")
_MIB: Final = 1 << 20
_WAIT_S: Final = 600.0
_LOOK_INTERVAL_S: Final = 0.1
_SETTLE_S: Final = 2.0
"""What follows a task that was verified (the table is looked at once more) counts as well."""
_WORDS: Final = ("ok", "redirected", "refused", "failed", "timed out", "cancelled")
_START_US: Final = 1_750_000_000_000_000  # 2025-06-15, any day will do


@dataclass(frozen=True, slots=True)
class Options:
    """How much to measure: ``tables`` that count, after ``warmups`` that do not, of ``files`` files of ``rows`` rows.

    The rows of ``compared`` tables are read and compared after each run.
    """

    name: str
    tables: int
    warmups: int
    files: int
    rows: int
    rounds: int
    batch_tasks: int
    compared: int
    seed: int


def short(seed: int) -> Options:
    """The options that only show that everything works."""
    return Options(NAME, 4, 1, 6, 50, 1, 32, 2, seed)


def usual(seed: int) -> Options:
    """100 tables."""
    return Options(NAME, 100, 100, 20, 1_000, 3, 32, 10, seed)


def full(seed: int) -> Options:
    """500 tables; its result stands beside the other."""
    return replace(usual(seed), name=f"{NAME}-full", tables=500)


def run(folder: Path, options: Options, say: Callable[[str], None]) -> Result:
    """Measure in ``folder``, which must be empty and is left with the lake in it.

    Raises :class:`~benchmarks.lake.Mismatch` when a table is not merged, or has not the rows that it had.
    """
    where = machine.description()
    lake = SmallTables(folder, options)
    lake.write()
    say(f"{options.tables:,} tables of {options.files} files, {lake.file_bytes / 1024:.0f} KiB each")
    chance = random.Random(options.seed)  # noqa: S311 - an order, no secret
    passes: list[Pass] = []
    for number in range(1, options.rounds + 1):
        order = [BATCHES, SINGLE]
        chance.shuffle(order)
        for position, who in enumerate(order, start=1):
            passes.append(_pass(lake, who, number, position))
            say(f"  round {number}.{position} {passes[-1].text(options.tables)}")
    return Result(
        benchmark=options.name,
        title=f"{TITLE}: {options.tables:,} tables of {options.files} files",
        measured_at=machine.today(),
        versions=machine.versions(_PACKAGES),
        cores=machine.cores(),
        machine=where,
        seed=options.seed,
        cases=tuple(cases(passes, options.tables)),
    )


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over all tables: what it cost the server and the optimizer, and how long one more commit took then."""

    who: str
    round: int
    position: int
    server: Cost
    optimizer: Cost
    latency_s: float

    def figure(self, value: float) -> Figure:
        """A figure of it."""
        return Figure(self.who, self.round, self.position, value)

    def text(self, tables: int) -> str:
        """For whoever waits."""
        ours, theirs = self.server, self.optimizer
        return (
            f"{self.who}: {1000 * (ours.cpu_s + theirs.cpu_s) / tables:.0f} CPU ms a table (server "
            f"{1000 * ours.cpu_s / tables:.0f}, optimizer {1000 * theirs.cpu_s / tables:.0f}), {ours.wall_s:.1f} s, "
            f"peak {ours.peak_memory_bytes / _MIB:.0f} and {theirs.peak_memory_bytes / _MIB:.0f} MiB; "
            f"a commit of {COMMIT_FILES} files to optimized in {self.latency_s:.1f} s"
        )


def cases(passes: Sequence[Pass], tables: int) -> Iterator[Case]:
    """What the passes say, judged."""
    of_all = {who: [one for one in passes if one.who == who] for who in (BATCHES, SINGLE)}
    all_figures = [one.figure((one.server.cpu_s + one.optimizer.cpu_s) / tables) for one in passes]
    for who, its in of_all.items():
        figures = [figure for figure in all_figures if figure.contestant == who]
        yield amount(who, "CPU a table, s", figures, CPU_TARGET if who == BATCHES else None)
        yield amount(who, "of it the server's", [one.figure(one.server.cpu_s / tables) for one in its])
        yield amount(who, "of it the optimizer's", [one.figure(one.optimizer.cpu_s / tables) for one in its])
        yield amount(who, "time for all, s", [one.figure(one.server.wall_s) for one in its])
        yield amount(who, "memory of the optimizer, MiB", [_mib(one, one.optimizer) for one in its])
    latency = [one.figure(one.latency_s) for one in passes]
    yield amount("both", f"a commit of {COMMIT_FILES} files to a known table to optimized, s", latency, LATENCY_TARGET)
    yield ratio("both", "cpu_ratio", all_figures, over=SINGLE, under=BATCHES)
    yield amount("both", "memory of our server, MiB", [_mib(one, one.server) for one in passes], MEMORY_TARGET)


def _mib(one: Pass, cost: Cost) -> Figure:
    return one.figure(cost.peak_memory_bytes / _MIB)


class SmallTables:
    """The tables as they were written, and catalogs that have them so."""

    def __init__(self, folder: Path, options: Options) -> None:
        self.folder, self.options = folder, options
        self.names = [f"t{number:05d}" for number in range(options.warmups + options.tables)]
        self.snapshots: dict[str, int] = {}
        self.file_bytes = 0.0
        self._runs = 0

    def write(self) -> None:
        """Every table with its files, one commit each."""
        catalog = self._catalog(self._entry(self.folder))
        catalog.create_tables()
        catalog.create_namespace(_NAMESPACE)
        for number, name in enumerate(self.names):
            first = self._rows(number, 0)
            properties = {"icewright.mode": "auto"}
            table = catalog.create_table((_NAMESPACE, name), first.schema, properties=properties)
            with table.transaction() as change:
                for file in range(self.options.files):
                    change.append(self._rows(number, file))
            snapshot = table.refresh().current_snapshot()
            if snapshot is None:
                raise Mismatch(f"{name} was not written")
            self.snapshots[name] = snapshot.snapshot_id
        self.file_bytes = median(table.inspect.data_files()["file_size_in_bytes"].to_pylist())

    @contextmanager
    def begun_anew(self) -> Iterator[tuple[CatalogEntry, Path, Callable[[], None]]]:
        """A catalog in a folder of its own that has the warm-up tables, and what adds the others."""
        self._runs += 1
        folder = self.folder / f"run-{self._runs}"
        folder.mkdir()
        shutil.copyfile(self.folder / "catalog.db", folder / "catalog.db")
        with closing(sqlite3.connect(folder / "catalog.db", timeout=30)) as database:
            later = [(name,) for name in self.names[self.options.warmups :]]
            with database:
                database.execute("CREATE TABLE later AS SELECT * FROM iceberg_tables WHERE 0")
                for command in ("INSERT INTO later SELECT * FROM", "DELETE FROM"):
                    database.executemany(f"{command} iceberg_tables WHERE table_name = ?", later)

            def add() -> None:
                with database:
                    database.execute("INSERT INTO iceberg_tables SELECT * FROM later")

            yield self._entry(folder), folder, add

    def commit(self, entry: CatalogEntry, name: str) -> CommitEvent:
        """One more commit to a table, of :data:`COMMIT_FILES` files of a snapshot each. Raises :class:`Mismatch`."""
        table, number = self._catalog(entry).load_table((_NAMESPACE, name)), self.names.index(name)
        with table.transaction() as change:
            for file in range(COMMIT_FILES):
                change.append(self._rows(number, self.options.files + file))
        snapshot = table.refresh().current_snapshot()
        if snapshot is None:
            raise Mismatch(f"{name} was not written")
        return CommitEvent(TableName(_CATALOG, (_NAMESPACE,), name), snapshot.snapshot_id)

    def events(self, names: Sequence[str]) -> Iterator[CommitEvent]:
        """What writers would say of their last commits."""
        for name in names:
            yield CommitEvent(TableName(_CATALOG, (_NAMESPACE,), name), self.snapshots[name])

    def check(self, entry: CatalogEntry) -> None:
        """Every table that counts is one file, of all its rows. Raises :class:`Mismatch`."""
        catalog, options = self._catalog(entry), self.options
        for number, name in list(enumerate(self.names))[options.warmups :]:
            table = catalog.load_table((_NAMESPACE, name))
            files = table.inspect.data_files()
            records = sum(files["record_count"].to_pylist())
            if (len(files), records) != (1, options.files * options.rows):
                raise Mismatch(f"{name} has {len(files)} files of {records} rows")
            if number - options.warmups < options.compared:
                written = pa.concat_tables([self._rows(number, file) for file in range(options.files)])
                found = table.scan().to_arrow().cast(written.schema)
                if not found.sort_by("id").equals(written.sort_by("id")):
                    raise Mismatch(f"{name} has other rows than it had")

    def _entry(self, folder: Path) -> CatalogEntry:
        return CatalogEntry(_CATALOG, CatalogKind.SQL, f"sqlite:///{folder}/catalog.db", str(self.folder / "warehouse"))

    def _catalog(self, entry: CatalogEntry) -> SqlCatalog:
        return SqlCatalog(entry.name, **entry.pyiceberg_properties())

    def _rows(self, table: int, file: int) -> Any:
        rows = self.options.rows
        chance = np.random.default_rng([self.options.seed, table, file])
        ids = np.arange(rows, dtype=np.int64) + file * rows
        return pa.table(
            {
                "id": ids,
                "at": pa.array(_START_US + ids * 1_000 + chance.integers(0, 1_000, rows), pa.timestamp("us")),
                "device": chance.integers(0, 500, rows, dtype=np.int32),
                "status": pa.array(_WORDS).take(pa.array(chance.zipf(1.5, rows) % len(_WORDS))),
                "value": chance.normal(size=rows),
                "note": [f"{word:016x}" for word in chance.integers(0, 1 << 62, rows)],
            }
        )


def _pass(lake: SmallTables, who: str, number: int, position: int) -> Pass:
    options = lake.options
    settings: Mapping[str, int] = {"batch_tasks": options.batch_tasks if who == BATCHES else 1}
    with ExitStack() as stack:
        entry, folder, add = stack.enter_context(lake.begun_anew())
        server = stack.enter_context(closing(Server(folder, entry)))
        optimizer = stack.enter_context(closing(Optimizer(folder, entry, settings)))
        warm, counted = lake.names[: options.warmups], lake.names[options.warmups :]
        _merged(server, optimizer, lake.events(warm), options.warmups)
        add()
        with Meter(server.tree) as ours, Meter(optimizer.tree) as theirs:
            _merged(server, optimizer, lake.events(counted), len(lake.names))
            time.sleep(_SETTLE_S)
        lake.check(entry)
        event = lake.commit(entry, counted[0])
        begun_s = time.monotonic()
        _merged(server, optimizer, [event], len(lake.names) + 1)
        latency_s = time.monotonic() - begun_s
    return Pass(who, number, position, ours.cost, theirs.cost, latency_s)


def _merged(server: Server, optimizer: Optimizer, events: Iterable[CommitEvent], tasks: int) -> None:
    """Tell the server of commits, and wait until so many tasks have succeeded. Raises :class:`Mismatch`."""
    for event in events:
        server.client.notify(event)
    until_s = time.monotonic() + _WAIT_S
    while (states := server.tasks()).get("succeeded", 0) < tasks:
        if time.monotonic() > until_s or "failed" in states or not optimizer.runs():
            raise Mismatch(f"of {tasks} tasks: {states}; {optimizer.said()}")
        time.sleep(_LOOK_INTERVAL_S)
