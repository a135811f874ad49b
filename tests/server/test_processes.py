"""Further processes of a server: so many at any time, each under a name of its own, and none behind it."""

from __future__ import annotations

import errno
import threading
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import pytest
from structlog.testing import capture_logs

from icewright.config.model import ServerConfig
from icewright.configuration.load import load_config
from icewright.core.errors import InvalidConfiguration, StoreUnavailable
from icewright.core.servers import Server
from icewright.ports.telemetry import PROCESS
from icewright.server import processes
from icewright.server.processes import LookingProcesses, NeverLeads, check_processes, end_behind
from icewright.store_admin import wait_for_database
from icewright.store_admin.leader_lock import SqliteLeaderElection
from tests.cases import each_case
from tests.lakes.stores import new_store

DEATHS = "icewright_process_deaths_total"


@dataclass
class Fake:
    """A process that does nothing; one that ``hangs`` does not end when it is asked to."""

    name: str
    hangs: bool = False
    exitcode: int | None = None
    heard: list[str] = field(default_factory=list)

    def terminate(self) -> None:
        self.heard.append("terminate")
        if not self.hangs:
            self.exitcode = 0

    def kill(self) -> None:
        self.heard.append("kill")
        self.exitcode = -9

    def join(self, timeout: float | None = None) -> None:
        assert self.exitcode is not None or timeout is not None, "waits for ever"


class House:
    """A server with two further processes, and a clock of its own."""

    def __init__(self) -> None:
        self.now_s, self.started, self.forgotten = 1_000.0, list[Fake](), list[str]()
        self.trouble: Exception | None = None
        self.refused, self.is_ending = 0, False
        self.processes = LookingProcesses(
            self.start,
            "server-1",
            2,
            forget=self.forget,
            is_ending=lambda: self.is_ending,
            poll_s=0,
            end_s=0,
            monotonic_s=lambda: self.now_s,
        )

    def forget(self, name: str) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.forgotten.append(name)

    def start(self, name: str) -> Fake:
        if isinstance(self.trouble, OSError):
            self.refused += 1
            raise self.trouble
        self.started.append(Fake(name))
        return self.started[-1]

    def after(self, seconds: float) -> int:
        """How many have been started by then."""
        self.now_s += seconds
        self.processes.turn()
        return len(self.started)


def test_one_that_dies_is_replaced_after_a_pause_that_grows() -> None:
    house = House()
    assert house.after(0) == house.after(100) == 2
    for number, pause_s in enumerate((1, 2, 4, 8, 16, 32, 60, 60), start=2):
        house.started[-1].exitcode = 1
        assert house.after(0) == number
        assert house.after(pause_s - 0.5) == number
        assert house.after(0.5) == number + 1
    assert len({one.name for one in house.started}) == len(house.started)


def test_one_that_lived_long_is_replaced_soon() -> None:
    house = House()
    house.after(0)
    for _ in range(3):
        house.started[-1].exitcode = 1
        house.after(0)
        house.after(8)
    house.now_s += 200
    house.started[-1].exitcode = -9
    assert house.after(0) == 5
    assert house.after(1) == 6


def test_one_that_cannot_be_started_is_tried_again_ever_later() -> None:
    house = House()
    house.trouble = BlockingIOError(errno.EAGAIN, "no room for another process")
    house.after(0)
    assert house.refused == 2
    for number, pause_s in enumerate((1, 2, 4), start=1):
        house.after(pause_s - 0.5)
        assert house.refused == 2 * number
        house.after(0.5)
        assert house.refused == 2 * number + 2
    house.trouble = None
    assert house.after(8) == 2


def test_one_that_died_is_counted_and_the_store_forgets_it() -> None:
    house, before = House(), PROCESS.get_sample_value(DEATHS) or 0
    house.after(0)
    first, second = house.started
    first.exitcode = -9
    house.after(0)
    assert house.forgotten == [first.name]
    house.trouble = StoreUnavailable("it is away")
    second.exitcode = -9
    assert house.after(1) == 3
    assert house.after(1) == 4
    assert (house.forgotten, PROCESS.get_sample_value(DEATHS)) == ([first.name], before + 2)


def test_none_is_replaced_while_the_server_ends() -> None:
    """Whoever stops a service tells all of its processes to end."""
    house, before = House(), PROCESS.get_sample_value(DEATHS) or 0
    house.after(0)
    house.is_ending = True
    house.started[0].exitcode = 0
    assert (house.after(0), house.after(100)) == (2, 2)
    assert (house.forgotten, PROCESS.get_sample_value(DEATHS)) == ([], before)


def test_whatever_fails_they_are_looked_after() -> None:
    house, done = House(), threading.Event()
    house.trouble = TypeError("a defect")
    start = house.start

    def fails_once(name: str) -> Fake:
        if house.trouble is None:
            done.set()
            return start(name)
        trouble, house.trouble = house.trouble, None
        raise trouble

    house.processes._start = fails_once
    with capture_logs() as logs, house.processes:
        assert done.wait(60)
    assert "processes not looked after, trying again" in {one["event"] for one in logs}


@each_case("is_told_to_end", [False, True])
def test_one_whose_store_is_away_at_its_start_waits_for_it_unless_told_to_end(
    *, is_told_to_end: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, ending, tries = load_config(None, {"HOME": str(tmp_path)}, tmp_path), threading.Event(), list[int]()

    def away(*_: object, **__: object) -> NoReturn:
        tries.append(len(tries))
        if is_told_to_end:
            ending.set()
        if len(tries) == 1:
            raise StoreUnavailable("it is away")
        raise InvalidConfiguration("it is back, and not ours")

    monkeypatch.setattr(processes, "open_control_plane", away)
    monkeypatch.setattr(wait_for_database, "_PAUSE_S", 0)
    expected = nullcontext() if is_told_to_end else pytest.raises(InvalidConfiguration, match="it is back")
    with expected:
        processes.look_until(ending, config, {}, Server("server-1.1", "http://127.0.0.1:1", "0"))
    assert len(tries) == (1 if is_told_to_end else 2)


def test_one_whose_server_is_gone_ends_and_at_once_where_it_hangs() -> None:
    happened, ending = list[str | int](), threading.Event()

    def end_now(code: int) -> None:
        assert ending.is_set()
        happened.append(code)

    end_behind(lambda: happened.append("gone"), ending, end_s=0, end_now=end_now)
    assert happened == ["gone", 3]


def test_all_end_with_the_server_and_one_that_hangs_is_killed() -> None:
    house = House()
    house.after(0)
    first, second = house.started
    second.hangs = True
    with house.processes:
        pass
    assert (first.heard, second.heard) == (["terminate"], ["terminate", "kill"])
    assert len(house.started) == 2


def test_a_process_stands_for_no_election() -> None:
    election = SqliteLeaderElection(new_store())
    assert election.lead() is not None
    one = NeverLeads(election)
    assert (one.lead(), one.epoch, one.backend) == (None, None, 0)


def test_a_store_on_sqlite_has_one_process() -> None:
    def of(store_url: str, processes: int) -> ServerConfig:
        return ServerConfig("127.0.0.1", 7077, Path("/state"), store_url, None, 30_000, 20, processes=processes)

    check_processes(of("sqlite:////state/icewright.db", 1))
    check_processes(of("postgresql://host/db", 4))
    with pytest.raises(InvalidConfiguration, match="processes = 2: a store on SQLite has one process"):
        check_processes(of("sqlite:////state/icewright.db", 2))
