"""kill -9 of server, supervisor, optimizer, worker and JVM at every named place: nothing lost, nothing twice.

But for the jobs that rewrite manifests and let data expire, which die in tests of their own. In CI every place of the
server and a few of the others, each once, with several deaths over one table; ``ICEWRIGHT_CAMPAIGN=1`` runs all of them
three times, one table per kill. One lake; whatever does not die runs on. What the server does alone has a lake of its
own, without Spark.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from icewright.core.fault_points import Fault
from icewright.model.actions.deletion import IntentState
from icewright.model.work.tasks import TaskState
from tests.e2e.expiries import ask_for_expiry, ask_for_undo, check_back, check_expired, make_history
from tests.e2e.garbage import (
    BACK,
    EXPIRED,
    EXPIRED_SHORT,
    LITTERED,
    LITTERED_SHORT,
    MOVING,
    PURGED,
    REMOVING,
    approve_removal,
    ask_for_removal,
    await_end,
    await_purge,
    check_files,
    deaths,
    make_littered,
    make_outdated,
    see_garbage,
)
from tests.e2e.kills import (
    AFTER_LOSS,
    BEFORE_PLANS,
    DELETER,
    DURING_WORK,
    ELSEWHERE,
    HOUSEKEEPER,
    KILLS,
    LONG_LEASE_MS,
    OPTIMIZER,
    PRUNING,
    WORKER,
    Kill,
    Mortals,
    check_lake,
)
from tests.e2e.processes import wait_for
from tests.lakes.house import DAY_MS, HOUR_MS
from tests.lakes.sqlite import make_lake, table_name

SHARED = "tasks share a job"
"""What an optimizer's log says of a batch."""
ENDED = frozenset({"what ended the attempt", "Traceback (most recent call last):"})
"""Lines of the log of an attempt that Spark ended."""
CAMPAIGN = bool(os.environ.get("ICEWRIGHT_CAMPAIGN"))
ROUNDS = 3 if CAMPAIGN else 1

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.timeout(7200 if CAMPAIGN else 600)]


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Mortals]:
    found = Mortals(tmp_path, make_lake(tmp_path))
    try:
        yield found
    finally:
        found.end()


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mortals]:
    """A lake with a server alone, which gives up what it was at when clocks are set forth."""
    folder = tmp_path_factory.mktemp("house")
    found = Mortals(folder, make_lake(folder), lease_ms=LONG_LEASE_MS)
    try:
        found.start("serve")
        yield found
    finally:
        found.end()


def test_every_place_has_its_kill() -> None:
    assert {kill.point for kill in KILLS} == {point for point in Fault if point.partition(".")[0] not in ELSEWHERE}
    assert {kill for kill in KILLS if kill.point.startswith("server.")} == {
        *PRUNING,
        *BEFORE_PLANS,
        *DURING_WORK,
        *AFTER_LOSS,
    }


def test_every_place_of_the_deleter_has_its_kill_also_in_the_short_form() -> None:
    for stories in ((*LITTERED, *EXPIRED), (*LITTERED_SHORT, *EXPIRED_SHORT)):
        points = {point for story in stories for point in (story.removal, story.at)}
        assert points == {kill.point for kill in DELETER} - {Fault.DELETION_LEFT}
    assert {story.removal for story in LITTERED} == {story.removal for story in EXPIRED} == set(REMOVING)
    assert {(story.then, story.at) for story in LITTERED} == {(then, at) for then in (BACK, PURGED) for at in MOVING}
    assert {story.at for story in EXPIRED} == set(MOVING)


def require_success(lake: Mortals, task_id: str, what: object) -> None:
    document = lake.ended(task_id)
    assert document["task"]["state"] == TaskState.SUCCEEDED, (str(what), document)


def kill_at(lake: Mortals, *kills: Kill) -> None:
    """One table's work, and deaths on its way."""
    orders = [(lake.order(kill), kill) for kill in kills]
    lake.make_work()
    for order, kill in orders:
        lake.await_kill(order, kill)


def kill_at_start(lake: Mortals, *kills: Kill) -> None:
    """A server that is started again and dies of pruning, which is what it begins with."""
    orders = [(lake.order(kill), kill) for kill in kills]
    with suppress(psutil.NoSuchProcess):  # where it has only just started it has died of the order
        lake.kill("serve")
    lake.start("serve")
    for order, kill in orders:
        lake.await_kill(order, kill)


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
    with suppress(psutil.NoSuchProcess):  # where it has only just started it has died of the order
        lake.kill("optimizer")
    lake.start("optimizer")
    lake.await_kill(order, "a supervisor that has just started an optimizer")


def kill_a_batch(lake: Mortals, lose: Callable[[], None]) -> None:
    """Between two optimizers work of several tables gathers; the next one takes all of it at once, and its JVM dies."""
    lake.settled()
    asleep = lake.order(Kill(Fault.SUPERVISOR_BURIED, "sleeper"))
    lose()
    (supervisor,) = lake.await_order(asleep, "a supervisor sleeps or")
    batches = lake.log("optimizer").count(SHARED)
    order = lake.order(kill := Kill(Fault.COMMIT_BEFORE, "jvm"))
    names = {str(table_name(lake.make_work())) for _ in range(3)}

    def gathered() -> bool | None:
        with lake.client() as client:
            queued = client.tasks(states=(TaskState.QUEUED,)).items
        return True if names <= {task["table"] for task in queued} else None

    try:
        wait_for(gathered, "work gathers", lake)
    finally:
        os.kill(supervisor, signal.SIGCONT)
    lake.await_kill(order, kill)
    assert lake.log("optimizer").count(SHARED) > batches
    tasks = lake.settled()
    assert "Spark has ended" in lake.log("optimizer")
    assert lake.running["optimizer"].pid == supervisor
    with lake.client() as client:
        for task in tasks:
            if task["table"] in names:
                first = client.task(task["task_id"])["attempts"][0]
                lines = [line["text"] for line in client.log(task["task_id"], 1)["lines"]]
                assert lines[0].startswith("task started action=rewrite_data_files")
                assert first["state"] != "failed" or set(lines) >= ENDED, (first, lines)


def short_round(lake: Mortals) -> None:
    kill_at_start(lake, *PRUNING)  # while Spark starts
    kill_at(lake, *BEFORE_PLANS)
    for first in range(0, len(DURING_WORK), 2):  # no more of one task: it may be tried a few times only
        kill_at(lake, *DURING_WORK[first : first + 2])
    kill_at(lake, Kill(Fault.WORKER_WRITTEN))
    kill_a_batch(lake, lambda: lose_an_attempt(lake, Kill(Fault.COMMIT_AFTER)))


def full_round(lake: Mortals) -> None:
    for kill in PRUNING:
        kill_at_start(lake, kill)
    for kill in (*BEFORE_PLANS, *DURING_WORK):
        kill_at(lake, kill)
    lose_an_attempt(lake, Kill(Fault.COMMIT_BEFORE))
    for kill in (*OPTIMIZER, *WORKER):
        kill_at(lake, kill)
    kill_a_batch(lake, lake.kill_optimizer)
    kill_supervisors(lake)
    check_lake(lake, lake.settled())
    wake_a_zombie(lake)


def test_w11_nothing_is_lost_whoever_dies_where(lake: Mortals) -> None:
    for command in ("serve", "optimizer"):
        lake.start(command)
    for round_of_kills in [full_round] * ROUNDS if CAMPAIGN else [short_round]:
        round_of_kills(lake)
        check_lake(lake, lake.settled())


def test_w11_snapshots_expire_once_wherever_the_server_dies_over_it(house: Mortals) -> None:
    for number, kill in enumerate(HOUSEKEEPER * ROUNDS):
        table = make_history(house, f"expired{number:03d}")
        with house.dying(kill.point):
            task_id = ask_for_expiry(house, table)
        require_success(house, task_id, kill)
        check_expired(house, table)


def test_w11_snapshots_come_back_once_wherever_the_server_dies_over_it(house: Mortals) -> None:
    for number, point in enumerate((Fault.HOUSEKEEPING_CLAIMED, Fault.HOUSEKEEPING_DONE) * ROUNDS):
        table = make_history(house, f"back{number:03d}")
        expiry_id = ask_for_expiry(house, table)
        require_success(house, expiry_id, point)
        with house.dying(point):
            task_id = ask_for_undo(house, expiry_id)
        require_success(house, task_id, point)
        check_back(house, table)


def test_w11_orphan_files_go_and_come_back_once_wherever_the_server_dies_over_it(house: Mortals) -> None:
    for number, story in enumerate(LITTERED * ROUNDS if CAMPAIGN else LITTERED_SHORT):
        garbage = make_littered(house, f"littered{number:03d}")
        see_garbage(house, garbage)
        with house.dying(*deaths(story.removal)):
            task_id = ask_for_removal(house, garbage)
        require_success(house, task_id, story)
        check_files(house, garbage, task_id, IntentState.QUARANTINED)
        if story.then is PURGED:
            with house.dying(*deaths(story.at)):
                house.later(8 * DAY_MS)
            await_purge(house, task_id)
        else:
            with house.dying(*deaths(story.at)):
                undo_id = ask_for_undo(house, task_id)
            require_success(house, undo_id, story)
        check_files(house, garbage, task_id, story.then)


def test_w11_files_of_expired_snapshots_go_and_come_back_once_wherever_the_server_dies_over_it(house: Mortals) -> None:
    for number, story in enumerate(EXPIRED * ROUNDS if CAMPAIGN else EXPIRED_SHORT):
        garbage = make_outdated(house, f"outdated{number:03d}")
        expiry_id = ask_for_expiry(house, garbage.table)
        require_success(house, expiry_id, story)
        house.later(26 * HOUR_MS)  # a day after the expiry its files may go
        with house.dying(*deaths(story.removal)):
            task_id = approve_removal(house, garbage)
        require_success(house, task_id, story)
        check_files(house, garbage, task_id, IntentState.QUARANTINED)
        with house.dying(*deaths(story.at)):
            undo_id = ask_for_undo(house, expiry_id)
        require_success(house, undo_id, story)
        check_files(house, garbage, task_id, BACK)


def test_w11_a_removal_that_a_person_cancels_ends_once_although_the_server_dies_over_that(house: Mortals) -> None:
    garbage = make_littered(house, "cancelled")
    see_garbage(house, garbage)
    order = house.order(Kill(Fault.DELETION_CHECKED))
    task_id = ask_for_removal(house, garbage)
    house.await_kill(order, Fault.DELETION_CHECKED)
    house.done(lambda client: client.cancel(task_id), "a removal is cancelled")
    order = house.order(Kill(Fault.DELETION_LEFT))
    house.give_up()
    house.await_kill(order, Fault.DELETION_LEFT)
    assert house.ended(task_id)["task"]["state"] == TaskState.CANCELLED
    await_end(house, task_id)
    check_files(house, garbage, task_id, IntentState.SKIPPED)
