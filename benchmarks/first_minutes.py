"""FIRST: how long a new user waits: for the first page with data, for ``--help``, and for commands that ask the server.

A page is useful once the server answers it and lists a table that has been looked at. icewright is ``icewright demo``
from an empty folder, with its writer, its server and its optimizer, which start Python and Spark side by side on the
same cores; what stands beside it is datasette, which serves a database of one table that is there already. So the two
pages are no like work: datasette's is what people are used to waiting for a local server.

The commands ask a server that has nothing to do; the figure is that of the slowest of them. The fleet is a store of
very many tables, made up, behind a server in this process: from a log-in link to the sums, the map and the rows being
drawn, in a browser that has loaded nothing before. That is later than what browsers call the first paint.
All times are of the clock, from the start of the process, by files that have been read before: packages are installed
and compiled. datasette has an environment of its own, installed from the package registry.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.error import URLError
from urllib.request import urlopen

from benchmarks import machine
from benchmarks.lake import Mismatch
from benchmarks.results import AT_MOST, Case, Figure, Result, Target, amount, ratio
from benchmarks.watchers import Server
from icewright.api_client.client import Client
from icewright.core.errors import IcewrightError
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.store.engine import open_store
from icewright.terminal.address import read_address
from tests.browser.conftest import Opened, one_time_link, system_chromium
from tests.browser.lake import named, three_tables
from tests.browser.pages import settled
from tests.builders.fleet import add_tables
from tests.builders.served import Served, at_a_port
from tests.servers.processes import free_port

NAME: Final = "FIRST"
TITLE: Final = "what a new user waits for"

ICEWRIGHT: Final = "icewright"
DATASETTE: Final = "datasette"
DATASETTE_VERSION: Final = "0.65.5"
PYARROW: Final = "import pyarrow"

PAGE: Final = "first useful page"
HELP: Final = "--help"
ASKING: Final = "commands that only ask the server"
PAINT: Final = "Fleet page of 100,000 tables"
PAGE_TARGET: Final = Target(AT_MOST, 10)
HELP_TARGET: Final = Target(AT_MOST, 0.6)
ASKING_TARGET: Final = Target(AT_MOST, 0.7)
PAINT_TARGET: Final = Target(AT_MOST, 2)
TABLES: Final = 100_000

COMMANDS: Final = (("tables", "list"), ("tasks", "list"), ("approvals", "list"))
_PACKAGES: Final = ("icewright", "typer", "fastapi", "pyarrow", "pyspark")
_LOOK_INTERVAL_S: Final = 0.02
_WAIT_S: Final = 120.0
_DAYS: Final = 60


@dataclass(frozen=True, slots=True)
class Options:
    """Each is measured ``rounds`` times, after one that does not count unless there is one alone."""

    rounds: int
    with_peer: bool
    seed: int


def short(seed: int) -> Options:
    """Once, and without the peer, which has to be installed."""
    return Options(1, with_peer=False, seed=seed)


def usual(seed: int) -> Options:
    """Five rounds."""
    return Options(5, with_peer=True, seed=seed)


def run(folder: Path, options: Options, say: Callable[[str], None]) -> Result:
    """Measure in ``folder``, which must be empty. Raises :class:`Mismatch` for what does not answer."""
    where = machine.description()
    peer = _Datasette(folder / "datasette", say) if options.with_peer else None
    found: dict[str, list[Figure]] = {PAGE: [], HELP: [], ASKING: [], PAINT: []}
    chance = random.Random(options.seed)  # noqa: S311 - an order, no secret
    (folder / "server").mkdir()
    entry = CatalogEntry("lake", CatalogKind.SQL, f"sqlite:///{folder}/lake.db", str(folder / "warehouse"))
    with closing(Server(folder / "server", entry)) as server, _fleet(folder, TABLES, say) as paint_s:
        for number in range(int(options.rounds == 1), options.rounds + 1):
            work = [*_work(folder / str(number), server, peer), (PAINT, ICEWRIGHT, paint_s)]
            chance.shuffle(work)
            for position, (case, who, measured) in enumerate(work, start=1):
                value = measured()
                say(f"  round {number}.{position} {case}, {who}: {value:.2f} s")
                if number > 0:
                    found[case].append(Figure(who, number, position, value))
    return Result(
        benchmark=NAME,
        title=TITLE,
        measured_at=machine.today(),
        versions={**machine.versions(_PACKAGES), **({} if peer is None else {DATASETTE: DATASETTE_VERSION})},
        cores=machine.cores(),
        machine=where,
        seed=options.seed,
        cases=tuple(_cases(found, has_peer=peer is not None)),
    )


def _cases(found: Mapping[str, Sequence[Figure]], *, has_peer: bool) -> list[Case]:
    def of(case: str, who: str) -> list[Figure]:
        return [figure for figure in found[case] if figure.contestant == who]

    cases = [
        amount(PAGE, "seconds", of(PAGE, ICEWRIGHT), PAGE_TARGET),
        amount(HELP, "seconds", of(HELP, ICEWRIGHT), HELP_TARGET),
        amount(ASKING, "seconds", of(ASKING, ICEWRIGHT), ASKING_TARGET),
        amount(PAINT, "seconds", of(PAINT, ICEWRIGHT), PAINT_TARGET),
        amount(HELP, "seconds of `import pyarrow`", of(HELP, PYARROW)),
    ]
    if has_peer:
        cases += [
            amount(PAGE, "seconds, datasette", of(PAGE, DATASETTE)),
            ratio(PAGE, "ratio to datasette", found[PAGE], over=ICEWRIGHT, under=DATASETTE),
            amount(HELP, "seconds, datasette", of(HELP, DATASETTE)),
            ratio(
                HELP, "ratio to datasette", of(HELP, ICEWRIGHT) + of(HELP, DATASETTE), over=ICEWRIGHT, under=DATASETTE
            ),
        ]
    return cases


def _work(folder: Path, server: Server, peer: _Datasette | None) -> list[tuple[str, str, Callable[[], float]]]:
    icewright = [sys.executable, "-m", "icewright"]
    asking = [*icewright, "--config", str(server.configuration)]
    found: list[tuple[str, str, Callable[[], float]]] = [
        (PAGE, ICEWRIGHT, lambda: _demo_s(folder)),
        (HELP, ICEWRIGHT, lambda: _took([*icewright, "--help"])),
        (HELP, PYARROW, lambda: _took([sys.executable, "-c", "import pyarrow"])),
        (ASKING, ICEWRIGHT, lambda: max(_took([*asking, *one]) for one in COMMANDS)),
    ]
    if peer is not None:
        found += [(PAGE, DATASETTE, peer.page_s), (HELP, DATASETTE, peer.help_s)]
    return found


@contextmanager
def _fleet(folder: Path, tables: int, say: Callable[[str], None]) -> Iterator[Callable[[], float]]:
    """What measures how long the page of so many tables takes to be drawn."""
    say(f"making up {tables:,} tables")
    served = three_tables(Served(engine=open_store(f"sqlite:///{folder}/fleet.db")))
    record = served.control.tables.record_by_name(named("bills"))
    if record is None:
        raise Mismatch("the tables were not looked at")
    add_tables(served.engine, record, tables - 3)

    def paint_s() -> float:
        opened, link = Opened(browser), one_time_link(url)
        begun_s = time.monotonic()
        opened.page.goto(link)
        opened.page.locator("dl").get_by_text(f"{tables:,}", exact=True).wait_for()
        opened.page.get_by_role("table", name="Tables").wait_for()
        settled(opened.page)
        took_s = time.monotonic() - begun_s
        opened.context.close()
        if opened.troubles:
            raise Mismatch(f"the browser complains: {opened.troubles}")
        return took_s

    with at_a_port(served.control) as url, system_chromium() as browser:
        yield paint_s


def _demo_s(folder: Path) -> float:
    """From the start of the demo to a table that was looked at."""
    command = [sys.executable, "-m", "icewright", "demo", "--no-browser", "--port", "0", "--days", str(_DAYS)]
    log = folder.with_suffix(".log")
    begun_s = time.monotonic()
    with log.open("wb") as said:
        demo = subprocess.Popen([*command, "--folder", str(folder)], stdout=said, stderr=said)  # noqa: S603 - our own
    try:
        while not _is_useful(folder):
            if demo.poll() is not None or time.monotonic() - begun_s > _WAIT_S:
                raise Mismatch(f"the demo showed no table; {log.read_text(errors='replace')[-2000:]}")
            time.sleep(_LOOK_INTERVAL_S)
        return time.monotonic() - begun_s
    finally:
        demo.send_signal(signal.SIGINT)
        demo.wait(_WAIT_S)


def _is_useful(folder: Path) -> bool:
    """Whether the page is there and has something to show."""
    try:
        address = read_address(folder / "state" / "server.json")
        with Client(address.url, address.token) as client:
            return any(table["plan"] is not None for table in client.tables().items) and _answers(f"{address.url}/ui/")
    except (IcewrightError, OSError):
        return False


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=5) as answer:  # noqa: S310 - our own server on loopback
            return bool(answer.status == HTTPStatus.OK)
    except URLError:
        return False


def _took(command: Sequence[str]) -> float:
    begun_s = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=_WAIT_S, check=False)  # noqa: S603 - see above
    took_s = time.monotonic() - begun_s
    if done.returncode != 0:
        raise Mismatch(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return took_s


class _Datasette:
    """The peer, in an environment of its own, with a database of one table."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self._folder, self._database = folder, folder / "data.db"
        say(f"installing datasette {DATASETTE_VERSION}")
        uv = [str(Path(sys.executable).parent / "uv")]
        environment = folder / "environment"
        _took([*uv, "venv", "--quiet", "--python", sys.executable, str(environment)])
        self._python = str(environment / "bin" / "python")
        install = [*uv, "pip", "install", "--quiet", "--system-certs", "--compile-bytecode", "--python", self._python]
        _took([*install, f"datasette=={DATASETTE_VERSION}"])
        with closing(sqlite3.connect(self._database)) as database, database:
            database.execute("CREATE TABLE flights (day TEXT, carrier TEXT, delay INTEGER)")
            database.executemany("INSERT INTO flights VALUES ('2013-01-01', ?, ?)", [("AS", n) for n in range(1_000)])

    def help_s(self) -> float:
        """Of ``datasette --help``."""
        return _took([self._python, "-m", "datasette", "--help"])

    def page_s(self) -> float:
        """From the start of ``datasette serve`` to the page of its table."""
        port = free_port()
        serve = [self._python, "-m", "datasette", "serve", str(self._database), "--port", str(port)]
        begun_s = time.monotonic()
        server = subprocess.Popen(  # noqa: S603 - the peer that was installed above
            serve, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": ""}
        )
        try:
            while not _answers(f"http://127.0.0.1:{port}/data/flights"):
                if server.poll() is not None or time.monotonic() - begun_s > _WAIT_S:
                    raise Mismatch("datasette shows no table")
                time.sleep(_LOOK_INTERVAL_S)
            return time.monotonic() - begun_s
        finally:
            server.terminate()
            server.wait(_WAIT_S)
