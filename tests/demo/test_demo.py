"""The demo on a slow machine, beside people who decide, and at its end."""

from __future__ import annotations

import time
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self, cast

import pytest
from rich.console import Console

from icewright.demo import proof, run
from icewright.demo.folder import DemoFolder


class NoOptimizer:
    """A server that has not heard of an optimizer yet."""

    def status(self) -> dict[str, Any]:
        return {"optimizers": []}


def wait_for_it(folder: Path, for_s: float) -> None:
    nothing = cast("Any", None)
    client = cast("Any", NoOptimizer())
    run._start_spark_writer(nothing, client, nothing, DemoFolder(folder), time.monotonic() - for_s)


def test_an_optimizer_may_take_minutes_to_start_but_not_for_ever(tmp_path: Path) -> None:
    wait_for_it(tmp_path, 120.0)
    with pytest.raises(run.DemoFailed, match="the optimizer did not start"):
        wait_for_it(tmp_path, 10_000.0)


class Plans:
    """A server whose tables have plans, some of which wait for a person."""

    def __init__(self, can_apply: set[str], waiting: set[str]) -> None:
        self.can_apply, self.waits = can_apply, waiting
        self.looked_at: list[str] = []

    def waiting(self) -> Any:
        return SimpleNamespace(items=[{"uuid": uuid} for uuid in self.waits])

    def look_at_table(self, uuid: str, _catalog: str) -> dict[str, Any]:
        self.looked_at.append(uuid)
        return {"plan": {"can_apply": uuid in self.can_apply, "look_again_at": None, "planned_at": 0}}


def is_settled(server: Plans, tasks_of: list[str]) -> bool:
    tables = [{"uuid": uuid, "catalog": "demo"} for uuid in ("flights", "delays")]
    told = SimpleNamespace(tables=tables, tasks=[{"table": f"demo.nyc.{name}"} for name in tasks_of])
    return run._nothing_to_do(cast("Any", server), cast("Any", told))


def test_a_plan_that_somebody_may_be_reading_is_not_replaced_by_another_look() -> None:
    server = Plans(can_apply={"delays"}, waiting={"delays"})
    assert is_settled(server, ["flights"])
    assert server.looked_at == ["flights"]


def test_who_decides_before_the_demo_is_through_does_not_end_it() -> None:
    assert not is_settled(Plans(can_apply=set(), waiting=set()), ["flights"]), "its plan is still to come"
    assert is_settled(Plans(can_apply=set(), waiting=set()), ["flights", "delays"])
    assert not is_settled(Plans(can_apply={"flights"}, waiting=set()), ["flights", "delays"])


class Asked(Exception):
    """The question was asked."""


def test_who_decides_while_it_is_checked_is_asked_about_after_the_tables_were_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    monkeypatch.setattr(proof, "SqlCatalog", lambda *_, **__: SimpleNamespace(load_table=read.append))
    tasks: list[dict[str, str]] = []
    narrator = SimpleNamespace(tasks=tasks, look=lambda: tasks.append({"table": "demo.nyc.delays"}))

    def ask() -> bool:
        assert read == list(proof.TABLES)
        assert run._is_decided_by_now(cast("Any", narrator))
        raise Asked

    with pytest.raises(Asked):
        proof.check_promises(DemoFolder(tmp_path), 1, ask)


class NoProcess:
    """Processes that need not run."""

    def start_writer(self, _days: int) -> None: ...
    def start_server(self, _port: int) -> None: ...
    def start_optimizer(self) -> None: ...


class NewServer:
    """A client of a server of which nobody has asked anything."""

    def __init__(self, *_: str) -> None: ...
    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...
    def login_code(self) -> dict[str, str]:
        return {"path": "/ui/login"}


@pytest.mark.parametrize(("held", "outcome", "status"), [(1, "FAILED: 1", 1), (2, "ok: 2", 0)])
def test_once_it_is_played_its_last_line_and_its_status_say_whether_every_promise_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: int, outcome: str, status: int
) -> None:
    checks = [
        proof.Check("there are fewer files", True, "60 files were committed, 2 are left"),
        proof.Check("x", held == 2, "y"),
    ]
    flights = {"name": "demo.nyc.flights", "figures": {"records": 1_000}}

    def settle(narrator: Any, *_: object) -> None:
        narrator.tables, narrator.tasks = [flights], [{"state": "succeeded"}, {"state": "failed"}]
        narrator.partitions = lambda _committed: None

    for name, found in {
        "Client": NewServer,
        "_wait_for_server": lambda *_: SimpleNamespace(url="http://demo", token=""),
        "_tell_until_settled": settle,
        "_tell_what_next": lambda *_: None,
        "_ask": lambda *_: None,
        "files_committed": lambda _folder: None,
        "check_promises": lambda *_: checks,
    }.items():
        monkeypatch.setattr(run, name, found)
    told = Console(file=StringIO(), width=200)
    options = run.DemoOptions(tmp_path, once=True, browser=False, days=60, port=0)
    assert run._play(options, DemoFolder(tmp_path), cast("Any", NoProcess()), told) == status
    said = cast(StringIO, told.file).getvalue().splitlines()
    assert said[-1] == (
        f"demo {outcome} of 2 promises held; 60 files were committed, 2 are left; 1,000 rows; 1 tasks verified of 2"
    )
    assert sum("BROKEN" in line for line in said) == 2 - held
