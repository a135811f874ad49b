"""The demo from its first line to its last."""

from __future__ import annotations

import signal
import time
import webbrowser
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Final

from pyiceberg.catalog.sql import SqlCatalog
from rich.console import Console

from icewright.api_client.client import Client
from icewright.core.errors import IcewrightError, NotFound, Unreadable
from icewright.core.extras import EXTRAS, require_extra
from icewright.demo import readers
from icewright.demo.flights_writer import DELAYS, FLIGHTS
from icewright.demo.folder import DemoFolder
from icewright.demo.narrator import Narrator
from icewright.demo.processes import Processes, processes_of
from icewright.demo.proof import TABLES, Check, check_promises
from icewright.model.iceberg.tables import Json
from icewright.terminal.address import ServerAddress, read_address

_POLL_S: Final = 0.3
_START_S_MAX: Final = 300.0
"""Spark fetches its packages when it first starts. A process that ends meanwhile is noticed at once."""
_SETTLE_S_MAX: Final = 180.0
_OVERVIEW_FILES: Final = 20
_SOON_MS: Final = 10 * 60 * 1000


class DemoFailed(IcewrightError):
    """A process of the demo died, or something took far too long."""

    code = "demo-failed"


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """What the person at the keyboard wants: ``once`` plays to the end and checks every promise."""

    folder: Path
    once: bool
    browser: bool
    days: int
    port: int


class _Stopped(Exception):
    """Ctrl-C."""


def run(options: DemoOptions, console: Console) -> int:
    """Play the demo; the exit status is 0, or 1 when a promise did not hold. Raises :class:`DemoFailed`."""
    require_extra("demo,spark", "the demo's processes", [*EXTRAS["demo"], *EXTRAS["spark"]])
    folder = DemoFolder(options.folder.absolute())
    folder.create()
    console.print(f"icewright demo: a small lake in {folder.path}", highlight=False)
    try:
        with _ctrl_c_raises(), processes_of(folder) as processes:
            return _play(options, folder, processes, console)
    except _Stopped:
        console.print("\nstopped; nothing is left running. `icewright demo --clean` removes the folder.")
        return 0


def clean(path: Path, console: Console) -> int:
    """Remove what a demo made."""
    removed = DemoFolder(path.absolute()).remove()
    console.print(f"removed {path}" if removed else f"nothing to remove: there is no {path}", highlight=False)
    return 0


def _play(options: DemoOptions, folder: DemoFolder, processes: Processes, console: Console) -> int:
    started_s = time.monotonic()
    processes.start_writer(options.days)
    processes.start_server(options.port)
    processes.start_optimizer()
    address = _wait_for_server(folder, processes)
    with Client(address.url, address.token) as client:
        narrator = Narrator(console, client, started_s)
        link = f"{address.url}{client.login_code()['path']}"
        narrator.say("server", f"{address.url}  log in once with {link}")
        narrator.say("optimizer", "Spark is starting behind this")
        narrator.say("writer", f"a process of its own commits {options.days} days of real flights, one commit a day")
        if options.browser:
            webbrowser.open(link)
        _tell_until_settled(narrator, client, processes, folder)
        _ask(narrator, client, folder, "last")
        narrator.partitions(files_committed(folder))
        checks = check_promises(folder, options.days, partial(_is_decided_by_now, narrator))
        _tell_checks(narrator, checks)
        _tell_what_next(console, folder, client)
        if options.once:
            console.print(last_line(narrator, checks), highlight=False)
            return 0 if all(check.held for check in checks) else 1
        narrator.say("running", "everything runs until Ctrl-C; try the commands above, or append to demo.nyc.flights")
        while True:
            time.sleep(_POLL_S)
            _check_alive(processes, folder)
            narrator.look()


def _tell_until_settled(narrator: Narrator, client: Client, processes: Processes, folder: DemoFolder) -> None:
    """Tell what happens until the writer is done and nothing is left to do."""
    begun_s, overview_told, written_at_s = time.monotonic(), False, None
    while True:
        time.sleep(_POLL_S)
        _check_alive(processes, folder)
        narrator.look()
        files = max((t["figures"]["data_files"] for t in narrator.tables if t["figures"]), default=0)
        if not overview_told and files >= _OVERVIEW_FILES:
            overview_told = True
            narrator.overview()
            _ask(narrator, client, folder, "first")
        if not processes.is_started("spark-writer"):
            _start_spark_writer(narrator, client, processes, folder, begun_s)
            continue
        if processes.exit_code("writer") is None or processes.exit_code("spark-writer") is None:
            continue
        written_at_s = written_at_s or time.monotonic()
        if time.monotonic() - written_at_s > _SETTLE_S_MAX:
            raise DemoFailed(f"the tables did not settle within {_SETTLE_S_MAX:.0f} s after the last commit")
        if narrator.is_idle and _all_known(narrator, folder) and _nothing_to_do(client, narrator):
            return


def _ask(narrator: Narrator, client: Client, folder: DemoFolder, asked: str) -> None:
    """Ask the demo's questions, and say what they open."""
    opened = readers.ask(folder, asked)
    client.send_queries(opened.records)
    each = f"{len(opened.records)} queries of {folder.entry.name}.{FLIGHTS}"
    narrator.say("queries", f"{each} open {opened.files / len(opened.records):,.1f} of {opened.there:,} files each")


def _start_spark_writer(
    narrator: Narrator, client: Client, processes: Processes, folder: DemoFolder, begun_s: float
) -> None:
    """Start the writer that deletes rows once the optimizer's Spark is up: both fetch the same libraries."""
    if client.status()["optimizers"]:
        processes.start_spark_writer()
        narrator.say("writer", "another one, on Spark, fills two tables and deletes rows of them, merge on read")
    elif time.monotonic() - begun_s > _START_S_MAX:
        raise DemoFailed("the optimizer did not start", hint=f"see {folder.log('optimizer')}")


def _all_known(narrator: Narrator, folder: DemoFolder) -> bool:
    """Whether the server has found all tables."""
    wanted = {f"{folder.entry.name}.{name}" for name in TABLES}
    return wanted <= {table["name"] for table in narrator.tables}


def _nothing_to_do(client: Client, narrator: Narrator) -> bool:
    """Whether what was planned just now is nothing for longer than anybody watches, but for what waits for a person.

    A plan that waits is left alone: somebody may be reading it. Who was faster has decided already.
    """
    waiting = {one["uuid"] for one in client.waiting().items}
    others = [table for table in narrator.tables if table["uuid"] not in waiting]
    plans = (client.look_at_table(table["uuid"], table["catalog"])["plan"] for table in others)
    is_asked = bool(waiting) or _is_decided(narrator)
    return is_asked and all(not plan["can_apply"] and not _comes_soon(plan) for plan in plans)


def _is_decided(narrator: Narrator) -> bool:
    """Whether a person let the plan go that waited for one."""
    return any(task["table"].endswith(f".{DELAYS}") for task in narrator.tasks)


def _is_decided_by_now(narrator: Narrator) -> bool:
    narrator.look()
    return _is_decided(narrator)


def _comes_soon(plan: Json) -> bool:
    again_at = plan["look_again_at"]
    return again_at is not None and again_at - plan["planned_at"] < _SOON_MS


def files_committed(folder: DemoFolder) -> Counter[str]:
    """How many files the writer committed to each partition, from the manifests of its own snapshots."""
    entry = folder.entry
    table = SqlCatalog(entry.name, **entry.pyiceberg_properties()).load_table(FLIGHTS)
    files: Counter[str] = Counter()
    for snapshot in table.metadata.snapshots:
        if snapshot.summary is None or snapshot.summary.operation.value != "append":
            continue
        for manifest in snapshot.manifests(table.io):
            if manifest.added_snapshot_id != snapshot.snapshot_id:
                continue
            for file in manifest.fetch_manifest_entry(table.io):
                if file.snapshot_id == snapshot.snapshot_id:
                    files[table.spec().partition_to_path(file.data_file.partition, table.schema())] += 1
    return files


def _tell_checks(narrator: Narrator, checks: list[Check]) -> None:
    for check in checks:
        narrator.say(
            "proved" if check.held else "BROKEN", f"{check.promise}: {check.found}", "" if check.held else "red"
        )


def last_line(narrator: Narrator, checks: list[Check]) -> str:
    """The figures of a whole demo in one line."""
    flights = next(table for table in narrator.tables if table["name"].endswith(".flights"))
    succeeded = sum(task["state"] == "succeeded" for task in narrator.tasks)
    held = sum(check.held for check in checks)
    files = next(check.found for check in checks if check.promise == "there are fewer files")
    return (
        f"demo {'ok' if held == len(checks) else 'FAILED'}: {held} of {len(checks)} promises held; {files}; "
        f"{flights['figures']['records']:,} rows; {succeeded} tasks verified of {len(narrator.tasks)}"
    )


def _tell_what_next(console: Console, folder: DemoFolder, client: Client) -> None:
    command = f"icewright --config {folder.configuration}"
    for plan in client.waiting().items:
        console.print(f"\nyou decide on {plan['table']}, in the browser's Inbox or here:", highlight=False)
        for line in (f"explain {plan['table']}", f"approve {plan['plan_id']}"):
            console.print(f"  {command} {line}", highlight=False)
    console.print("\nlook around:", highlight=False)
    for line in ("scan", "table partitions demo.nyc.flights", "explain demo.nyc.weather", "tasks list"):
        console.print(f"  {command} {line}", highlight=False)
    console.print("\nthe same on your own catalog, read-only until you say otherwise:", highlight=False)
    for line in ("config init", "scan", "plan CATALOG.NAMESPACE.TABLE", "serve", "optimizer"):
        console.print(f"  icewright {line}", highlight=False)
    console.print()


def _wait_for_server(folder: DemoFolder, processes: Processes) -> ServerAddress:
    until_s = time.monotonic() + _START_S_MAX
    while time.monotonic() < until_s:
        _check_alive(processes, folder)
        try:
            return read_address(folder.state / "server.json")
        except (NotFound, Unreadable):
            time.sleep(0.05)
    raise DemoFailed("the server did not start", hint=f"see {folder.log('server')}")


def _check_alive(processes: Processes, folder: DemoFolder) -> None:
    for name in ("server", "optimizer"):
        code = processes.exit_code(name)
        if code is not None:
            raise DemoFailed(f"the {name} ended with status {code}", hint=f"see {folder.log(name)}")
    for name in ("writer", "spark-writer"):
        if processes.is_started(name) and processes.exit_code(name) not in (None, 0):
            raise DemoFailed(f"the {name} failed", hint=f"see {folder.log(name)}")


@contextmanager
def _ctrl_c_raises() -> Iterator[None]:
    """SIGINT and SIGTERM end the block by an exception, so that everything is closed in order."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        for number in before:
            signal.signal(number, signal.SIG_IGN)  # a second Ctrl-C must not interrupt the clearing up
        raise _Stopped

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
