"""What each server has to do: its CPU, its tables, and the looks of them that are late."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from icewright.core.servers import SILENT_MS, Server, process_name
from icewright.server.cluster.coordinator import SqlCoordinator
from icewright.server.cluster.load import LATE_MS, WINDOW_S, CpuShare, LoadOfServers
from icewright.server.cluster.servers_sql import SqlServers
from icewright.store.scope_filters import bucket_of
from icewright.work.autotune.servers.decide import ServerLoad
from icewright.work.store.table_store import SqlTableStore
from tests.contracts.samples import record
from tests.doubles.clock import ManualClock
from tests.lakes.stores import new_store

TABLES = 40


@dataclass
class Used:
    """CPU and time as a test has them pass."""

    now_s: float = 100.0
    used_s: float = 5.0

    def share(self, quota: Path, processes: int = 1, machine: int = 64) -> CpuShare:
        return CpuShare(lambda: self.used_s, lambda: self.now_s, quota, processes=processes, machine=machine)

    def passes(self, seconds: float, cpu: float) -> None:
        self.now_s, self.used_s = self.now_s + seconds, self.used_s + seconds * cpu


def shares(used: Used, share: CpuShare, *cpus: float) -> list[float | None]:
    """What is said every five seconds, with so much CPU in each."""
    found = []
    for cpu in cpus:
        used.passes(5, cpu)
        found.append(share.share())
    return found


def test_the_share_is_the_mean_of_the_last_minute(tmp_path: Path) -> None:
    used = Used()
    share = used.share(tmp_path / "none")
    steps = int(WINDOW_S / 5)
    assert shares(used, share, *[0.5] * (steps - 1)) == [None] * (steps - 1)
    assert shares(used, share, 0.5) == [0.5]
    said = shares(used, share, *[1.0] * steps)
    assert [round(one or 0, 3) for one in said[:2]] == [0.542, 0.583]
    assert said[-1] == 1.0
    used.passes(3_600, 0.0)  # it slept
    assert (share.share() or 0) < 0.02


def test_a_container_with_less_than_a_core_is_measured_by_that(tmp_path: Path) -> None:
    quota, used = tmp_path / "cpu.max", Used()
    quota.write_text("50000 100000\n")
    share = used.share(quota)
    used.passes(WINDOW_S, 0.45)
    assert round(share.share() or 0, 3) == 0.9
    quota.write_text("400000 100000\n")
    share = used.share(quota)
    used.passes(WINDOW_S, 0.45)
    assert round(share.share() or 0, 3) == 0.45


@pytest.mark.parametrize(("container", "machine"), [("200000 100000\n", 64), ("max 100000\n", 2)])
def test_processes_that_are_more_than_cores_are_measured_by_their_part(
    tmp_path: Path, container: str, machine: int
) -> None:
    quota, used = tmp_path / "cpu.max", Used()
    quota.write_text(container)
    share = used.share(quota, processes=4, machine=machine)
    used.passes(WINDOW_S, 0.45)
    assert round(share.share() or 0, 3) == 0.9


def test_each_server_has_the_tables_and_the_late_looks_of_its_buckets() -> None:
    engine, clock = new_store(), ManualClock()
    books = {"server-1": SqlServers(engine, clock, cpu=lambda: 0.25), "server-2": SqlServers(engine, clock)}
    coordinator = SqlCoordinator(engine, clock)
    load = LoadOfServers(engine, books["server-1"], coordinator, clock)
    for name, book in books.items():
        book.beat(Server(name, f"http://{name}", "0.1.0"))
    sessions = {name: coordinator.join(name, 0) for name in books}
    coordinator.assign(engine, sessions["server-1"])
    late_since = clock.now() - LATE_MS
    for number in range(TABLES):
        due = {0: 0, 1: late_since}.get(number % 4, late_since - 1)  # wished for, just not late, late
        SqlTableStore(engine, clock).save_record(record(number, next_look_at=due))
    own = {one.bucket for one in coordinator.held(sessions["server-1"])}
    mine = [number for number in range(TABLES) if bucket_of(record(number).name) in own]
    late = [number for number in range(TABLES) if number % 4 > 1]
    first = ServerLoad("server-1", len(mine), 0.25, len({*mine} & {*late}))
    second = ServerLoad("server-2", TABLES - len(mine), None, len({*late} - {*mine}))
    assert (first.tables > 0, second.tables > 0, len(late)) == (True, True, TABLES // 2)
    assert load.now() == [first, second]
    clock.advance(SILENT_MS + 1)
    books["server-2"].beat(Server("server-2", "http://server-2", "0.1.0"))
    assert [one.server_id for one in load.now()] == ["server-2"]
    third = coordinator.join("server-3", 0)  # what is on its way to a server is its own already
    books["server-2"].beat(Server("server-3", "http://server-3", "0.1.0"))
    coordinator.assign(engine, sessions["server-1"])
    assert coordinator.held(third) == []
    assert {one.server_id: one.tables > 0 for one in load.now()} == {"server-2": True, "server-3": True}


def test_further_processes_count_as_their_server() -> None:
    engine, clock = new_store(), ManualClock()
    cpu = {"server-1": 0.2, process_name("server-1", 1): 0.6, process_name("server-1", 2): None, "server-2": 0.1}
    coordinator = SqlCoordinator(engine, clock)
    for name in cpu:
        SqlServers(engine, clock, cpu=partial(cpu.get, name)).beat(Server(name, "http://server", "0.1.0"))
    sessions = {name: coordinator.join(name, 0) for name in cpu}
    coordinator.assign(engine, sessions["server-1"])
    for number in range(TABLES):
        SqlTableStore(engine, clock).save_record(record(number, next_look_at=clock.now()))
    other = {one.bucket for one in coordinator.held(sessions["server-2"])}
    others = sum(bucket_of(record(number).name) in other for number in range(TABLES))
    found = LoadOfServers(engine, SqlServers(engine, clock), coordinator, clock).now()
    assert [(one.server_id, one.tables, one.cpu) for one in found] == [
        ("server-1", TABLES - others, 0.4),
        ("server-2", others, 0.1),
    ]
