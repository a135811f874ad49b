"""How looks of several servers come along at one PostgreSQL that is some milliseconds away.

``python -m benchmarks.writers [SECONDS] [MILLISECONDS]``: a server of the tests' own behind a relay, to which a round
trip takes so long. 1, 2 and 4 processes do what looks at tables of their own do in the store: an event comes in, what
is stored of the table is read, its record is written with a change, and the event is done. First as writers that take
turns behind one lock of the whole store do, then beside each other. What counts is the ratio to one process.
"""

from __future__ import annotations

import multiprocessing
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess

from sqlalchemy import URL, make_url

from icewright.core.reasons import Reason
from icewright.model.events.events import CommitEvent
from icewright.model.iceberg.names import TableId, TableName
from icewright.ports.table_records import TableRecord
from icewright.store import postgresql
from icewright.store.engine import open_store
from icewright.work.store.table_store import SqlTableStore
from tests.servers.postgres import PostgresServer, find_programs, postgres_server
from tests.servers.relay import Relay

_WRITERS = (1, 2, 4)
_TABLES = 20


def main(seconds: float, delay_ms: float) -> None:
    """Print the figures."""
    programs = find_programs()
    if programs is None:
        sys.exit("PostgreSQL is not installed")
    with postgres_server(programs) as server:
        print(f"a round trip takes {delay_ms:g} ms; looks a second, by {seconds:g} s each")
        for turns in (True, False):
            found = [_measured(server, writers, seconds, delay_ms / 1_000, turns=turns) for writers in _WRITERS]
            said = [
                f"{writers}: {looks:6.1f} (x {looks / found[0][0]:.2f}, {100 * cpu:.0f} % CPU each)"
                for writers, (looks, cpu) in zip(_WRITERS, found, strict=True)
            ]
            print(f"{'in turns' if turns else 'beside each other':18}", *said, sep="  ")


def _measured(
    server: PostgresServer, writers: int, seconds: float, delay_s: float, *, turns: bool
) -> tuple[float, float]:
    """Looks a second of all writers, and the share of a core that each takes."""
    url = server.new_database()
    open_store(url).dispose()
    processes, ends = [], []
    for number in range(writers):
        relay, far = _started(_relay, server.port, delay_s)
        writer, end = _started(_write, make_url(url).set(port=far.recv()), number, turns)
        processes += [relay, writer]
        ends.append(end)
    for end in ends:
        end.recv()
    for end in ends:
        end.send(seconds)
    found: list[tuple[int, float]] = [end.recv() for end in ends]
    for process in processes:
        process.terminate()
        process.join()
    server.drop(url)
    return sum(looks for looks, _ in found) / seconds, sum(cpu for _, cpu in found) / seconds / writers


def _started(does: Callable[..., None], *args: object) -> tuple[SpawnProcess, Connection]:
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    process = spawn.Process(target=does, args=(*args, there), daemon=True)
    process.start()
    return process, here


def _relay(port: int, delay_s: float, end: Connection) -> None:
    end.send(Relay(port, delay_s).port)
    threading.Event().wait()


def _write(url: URL, number: int, turns: bool, end: Connection) -> None:  # noqa: FBT001 - of a process of its own
    if turns:
        postgresql.taking = partial(_alone, postgresql.taking)
    engine = open_store(url.render_as_string(hide_password=False))
    known = SqlTableStore(engine)
    names = [TableName("lake", ("ns",), f"t{number}-{table}") for table in range(_TABLES)]
    for table, name in enumerate(names):
        known.save_record(_record(TableId("lake", f"{number}-{table}"), name))
    end.send(None)
    seconds = end.recv()
    begun_s, used_s, looks = time.monotonic(), time.process_time(), 0
    while time.monotonic() - begun_s < seconds:
        _look(known, names[looks % _TABLES], looks)
        looks += 1
    end.send((looks, time.process_time() - used_s))


def _alone(taking: Callable[[None], str], _locks: object) -> str:
    """One lock of the whole store for every writer, as it was before there were others."""
    return taking(None)


def _record(table_id: TableId, name: TableName) -> TableRecord:
    return TableRecord(table_id, name, "s3://b/v1.json", 1, 2, 1, 1, None, 1, None, None)


def _look(known: SqlTableStore, name: TableName, number: int) -> None:
    known.receive(CommitEvent(name, number), reporter=str(name))
    told = known.reported_by_name(name)
    before = known.before_look(name)
    record = before.stored.record
    if record is None:
        raise RuntimeError(f"{name} is not stored")
    trouble = Reason("r", "every other look finds that the table is in trouble") if record.problem is None else None
    known.save_record(replace(record, snapshot_id=number, observed_at=before.now, problem=trouble))
    known.done(list(told))


if __name__ == "__main__":
    of_seconds, of_ms = (*sys.argv[1:], None, None)[:2]
    main(float(of_seconds or 10), float(of_ms or 5))
