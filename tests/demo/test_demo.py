"""The demo on a machine that is slow, or has to fetch what Spark needs first."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

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
