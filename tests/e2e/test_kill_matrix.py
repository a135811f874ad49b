"""kill -9 of server, supervisor, optimizer, worker and JVM at every named place: nothing lost, nothing twice.

But for the Deleter and the jobs that rewrite manifests and let data expire, which die in tests of their own. In CI
every place of the server and a few of the others, each once; ``ICEWRIGHT_CAMPAIGN=1`` runs all of them three times. One
lake, one table per kill; whatever does not die runs on.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from icewright.domain.faults import Fault
from icewright.domain.tasks import TaskState
from tests.e2e.expiries import ask_for_expiry, ask_for_undo, check_back, check_expired, ended, make_history
from tests.e2e.kills import (
    AFTER_LOSS,
    BEFORE_WORK,
    DURING_WORK,
    ELSEWHERE,
    HOUSEKEEPER,
    KILLS,
    OPTIMIZER,
    WORKER,
    Kill,
    Mortals,
    check_lake,
)
from tests.e2e.processes import wait_for
from tests.lakes.sqlite import make_lake

SHARED = "tasks share a job"
"""What an optimizer's log says of a batch."""
CAMPAIGN = bool(os.environ.get("ICEWRIGHT_CAMPAIGN"))

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(7200 if CAMPAIGN else 600)]


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Mortals]:
    found = Mortals(tmp_path, make_lake(tmp_path))
    try:
        yield found
    finally:
        found.end()


def test_every_place_has_its_kill() -> None:
    assert {kill.point for kill in KILLS} == {point for point in Fault if point.partition(".")[0] not in ELSEWHERE}
    assert {kill for kill in KILLS if kill.point.startswith("server.")} == {*BEFORE_WORK, *DURING_WORK, *AFTER_LOSS}


def kill_at(lake: Mortals, kill: Kill) -> None:
    """One table's work, and a death on its way."""
    order = lake.order(kill)
    lake.make_work()
    lake.await_kill(order, kill)


def kill_before_work(lake: Mortals) -> None:
    for kill in BEFORE_WORK:
        if kill.point in (Fault.PRUNE_BEFORE, Fault.PRUNE_AFTER):
            order = lake.order(kill)
            lake.kill("serve")  # it prunes when it starts
            lake.start("serve")
            lake.await_kill(order, kill)
        else:
            kill_at(lake, kill)


def lose_an_attempt(lake: Mortals, loss: Kill) -> None:
    """An attempt is lost; then the server dies at each step of finding that out."""
    orders = [(lake.order(kill), kill) for kill in AFTER_LOSS]
    kill_at(lake, loss)
    for order, kill in orders:
        lake.await_kill(order, kill)


def wake_a_zombie(lake: Mortals) -> None:
    """An optimizer sleeps between its last leave and its commit, is given up, and commits all the same."""
    order = lake.order(Kill(Fault.COMMIT_BEFORE, "sleeper"))
    lake.make_work()
    (sleeper,) = lake.await_order(order, "somebody sleeps or")

    def given_up() -> bool | None:
        with lake.client() as client:
            states = [task["state"] for task in client.tasks().items]
        return True if "queued" in states and "running" not in states and "in_doubt" not in states else None

    try:
        wait_for(given_up, "the server gives the sleeper up", lake)
    finally:
        os.kill(sleeper, signal.SIGCONT)


def kill_supervisors(lake: Mortals) -> None:
    """Once when its optimizer has died, and once when it has just started one."""
    check_lake(lake, lake.settled())  # an optimizer is up that nobody is burying
    order = lake.order(Kill(Fault.SUPERVISOR_BURIED))
    lake.kill_optimizer()
    lake.await_kill(order, "a supervisor over its optimizer's death")
    order = lake.order(Kill(Fault.SUPERVISOR_STARTED))
    lake.kill("optimizer")
    lake.start("optimizer")
    lake.await_kill(order, "a supervisor that has just started an optimizer")


def kill_a_batch(lake: Mortals) -> None:
    """While the optimizer starts, work of several tables gathers; it takes all of it at once, and its JVM dies."""
    check_lake(lake, lake.settled())
    batches = lake.log("optimizer").count(SHARED)
    lake.kill_optimizer()
    order = lake.order(kill := Kill(Fault.COMMIT_BEFORE, "jvm"))
    tables = [lake.make_work() for _ in range(3)]

    def gathered() -> bool | None:
        with lake.client() as client:
            states = [task["state"] for task in client.tasks().items]
        return True if states.count("queued") == len(tables) else None

    wait_for(gathered, "work gathers", lake)
    lake.await_kill(order, kill)
    assert lake.log("optimizer").count(SHARED) > batches


def short_round(lake: Mortals) -> None:
    kill_before_work(lake)  # while Spark starts
    for kill in DURING_WORK:
        kill_at(lake, kill)
    kill_at(lake, Kill(Fault.WORKER_WRITTEN))
    lose_an_attempt(lake, Kill(Fault.COMMIT_AFTER))
    kill_a_batch(lake)


def full_round(lake: Mortals) -> None:
    kill_before_work(lake)
    for kill in DURING_WORK:
        kill_at(lake, kill)
    lose_an_attempt(lake, Kill(Fault.COMMIT_BEFORE))
    for kill in (*OPTIMIZER, *WORKER):
        kill_at(lake, kill)
    kill_a_batch(lake)
    kill_supervisors(lake)
    check_lake(lake, lake.settled())
    wake_a_zombie(lake)


def test_w11_nothing_is_lost_whoever_dies_where(lake: Mortals) -> None:
    for command in ("serve", "optimizer"):
        lake.start(command)
    for round_of_kills in [full_round] * 3 if CAMPAIGN else [short_round]:
        round_of_kills(lake)
        check_lake(lake, lake.settled())


def test_w11_snapshots_expire_once_wherever_the_server_dies_over_it(lake: Mortals) -> None:
    lake.start("serve")
    for number, kill in enumerate(HOUSEKEEPER * (3 if CAMPAIGN else 1)):
        table = make_history(lake, f"t{number:03d}")
        order = lake.order(kill)
        task_id = ask_for_expiry(lake, table)
        lake.await_kill(order, kill)
        document = ended(lake, task_id)
        assert document["task"]["state"] == TaskState.SUCCEEDED, (str(kill), document)
        check_expired(lake, table)


def test_w11_snapshots_come_back_once_wherever_the_server_dies_over_it(lake: Mortals) -> None:
    lake.start("serve")
    kills = (Kill(Fault.HOUSEKEEPING_CLAIMED), Kill(Fault.HOUSEKEEPING_DONE))
    for number, kill in enumerate(kills * (3 if CAMPAIGN else 1)):
        table = make_history(lake, f"t{number:03d}")
        expiry_id = ask_for_expiry(lake, table)
        assert ended(lake, expiry_id)["task"]["state"] == TaskState.SUCCEEDED
        order = lake.order(kill)
        task_id = ask_for_undo(lake, expiry_id)
        lake.await_kill(order, kill)
        document = ended(lake, task_id)
        assert document["task"]["state"] == TaskState.SUCCEEDED, (str(kill), document)
        check_back(lake, table)
