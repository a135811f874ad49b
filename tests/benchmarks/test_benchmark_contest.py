from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from benchmarks.contest import Contestant, Run, hold, of
from benchmarks.data import events
from benchmarks.measure import ProcessTree

ROUNDS = 3


def contestant(name: str, log: list[str]) -> Contestant:
    return Contestant(
        name,
        lambda: log.append(f"prepare {name}"),
        lambda _: log.append(f"work {name}"),
        lambda: log.append(f"check {name}"),
    )


@pytest.fixture(scope="module")
def idle() -> Iterator[ProcessTree]:
    """The processes that are measured: one that does nothing. Those of the tests have JVMs, whose memory takes long."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield ProcessTree(psutil.Process(process.pid))
        process.kill()


@pytest.fixture(scope="module")
def logged(idle: ProcessTree) -> tuple[list[Run], list[str]]:
    """A contest, and what was done in it."""
    log: list[str] = []
    return contest(1, log, idle), log


def contest(seed: int, log: list[str], tree: ProcessTree) -> list[Run]:
    both = [contestant("a", log), contestant("b", log)]
    chance = random.Random(seed)  # noqa: S311 - an order, no secret
    return hold(both, rounds=ROUNDS, chance=chance, tree=tree, say=lambda _: None)


def test_each_round_has_everybody_in_an_order_that_the_seed_decides(
    logged: tuple[list[Run], list[str]], idle: ProcessTree
) -> None:
    runs, _ = logged
    orders = [tuple(run.contestant for run in runs if run.round == number) for number in range(1, ROUNDS + 1)]
    assert {frozenset(order) for order in orders} == {frozenset("ab")}
    assert len(set(orders)) == 2
    assert orders == [
        tuple(run.contestant for run in contest(1, [], idle) if run.round == number) for number in range(1, ROUNDS + 1)
    ]
    assert [run.position for run in runs] == [1, 2] * ROUNDS
    assert len(of(runs, "a")) == ROUNDS


def test_each_run_is_prepared_and_checked(logged: tuple[list[Run], list[str]]) -> None:
    runs, log = logged
    steps = ("prepare", "work", "check")
    assert log == [f"{step} {run.contestant}" for run in runs for step in steps]


def test_a_run_that_did_not_do_its_work_ends_the_contest(idle: ProcessTree) -> None:
    def fail() -> None:
        raise ValueError("not done")

    lazy = Contestant("lazy", lambda: None, lambda _: None, fail)
    chance = random.Random(1)  # noqa: S311 - an order, no secret
    with pytest.raises(ValueError, match="not done"):
        hold([lazy], rounds=1, chance=chance, tree=idle, say=lambda _: None)


def test_data_come_from_the_seed() -> None:
    batch = events(3, 500, 1)
    assert repr(batch.to_pylist()) == repr(events(3, 500, 1).to_pylist())  # NaN is not equal to itself
    assert repr(batch.to_pylist()) != repr(events(3, 500, 2).to_pylist())
    assert batch.num_columns == 19
    assert batch.column("event_id").to_pylist() == list(range(1_500, 2_000))
    assert (
        batch.column("totals").to_pylist()[0]["net"]
        == batch.column("price")[0].as_py() * batch.column("quantity")[0].as_py()
    )
    assert batch.column("balance").null_count > 0
    assert min(value for value in batch.column("balance").to_pylist() if value is not None) < 0
    assert batch.column("location").null_count > 0
    assert len(batch.column("city").unique()) < 65
    assert len(batch.column("request").unique()) > 490
