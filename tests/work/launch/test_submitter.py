"""Applications are submitted when something waits, as many as may, and no more than are of use."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from itertools import pairwise

import pytest

from icewright.core.errors import IcewrightError, InvalidConfiguration, NotFound, Rejected, Unavailable
from icewright.core.times import Instant
from icewright.model.work.optimizers import Backlog, OptimizerSettings, Submitting
from icewright.work.launch.submitter import Submitter
from tests.builders.specs import settings_of
from tests.cases import each_case
from tests.doubles.launcher import MemoryApplication, MemoryLauncher


class World:
    """A server that says what waits, a launcher, and a clock."""

    def __init__(self, applications_max: int = 3) -> None:
        self.tasks = self.probes = 0
        self.seen_at: dict[str, Instant] = {}
        self.error: IcewrightError | None = None
        self.now_s = 0.0
        self.names = 0
        self.said: list[Submitting] = []
        self.launcher = MemoryLauncher()
        self.submitter = Submitter(
            self._settings, self.launcher, applications_max, look=self._look, clock=lambda: self.now_s
        )

    def _settings(self) -> OptimizerSettings:
        self.names += 1
        return settings_of(optimizer_id=f"optimizer-{self.names}", tasks_max=1)

    def _look(self, settings: OptimizerSettings, submitting: Submitting) -> Backlog:
        assert settings.resource_group == "default"
        self.said.append(submitting)
        if self.error is not None:
            raise self.error
        return Backlog(self.tasks, self.probes, dict(self.seen_at))

    def turn(self) -> int:
        """One turn; how many applications run after it."""
        assert self.submitter.turn() == 0
        return len(self.running)

    @property
    def running(self) -> list[MemoryApplication]:
        return [one for one in self.launcher.started if one.exit_code is None]

    def introduce(self) -> None:
        for one in self.running:
            self.seen_at[one.name] = Instant(self.seen_at.get(one.name, Instant(0)) + 1)


def test_nothing_is_submitted_while_nothing_waits() -> None:
    world = World()
    assert [world.turn() for _ in range(3)] == [0, 0, 0]


def test_one_for_each_task_that_waits_and_no_more_than_may_run_at_once() -> None:
    world = World()
    world.tasks = 1
    assert [world.turn(), world.turn()] == [1, 1]  # it is still on its way to the same task
    world.tasks = 9
    assert [world.turn(), world.turn()] == [3, 3]


def test_it_says_who_it_is_and_asks_on_while_no_more_may_run() -> None:
    world = World()
    world.tasks = 9
    assert [world.turn(), world.turn(), world.turn()] == [3, 3, 3]
    assert [(one.applications, one.applications_max) for one in world.said] == [(0, 3), (3, 3), (3, 3)]
    assert len({(one.submitter_id, one.host) for one in world.said}) == 1
    assert world.said[0].submitter_id.startswith("submitter-")
    assert len({one.submitter_id for one in (world.said[0], *_said_by_another())}) == 2


def _said_by_another() -> list[Submitting]:
    other = World()
    other.turn()
    return other.said


def test_one_that_has_introduced_itself_has_its_task_and_another_waits() -> None:
    world = World()
    world.tasks = 1
    world.turn()
    world.introduce()
    assert world.turn() == 2


def test_storages_that_nobody_tried_out_are_worth_one_application() -> None:
    world = World()
    world.probes = 20
    assert [world.turn(), world.turn()] == [1, 1]


def test_names_are_used_again_so_that_the_server_has_few() -> None:
    world = World(applications_max=1)
    world.tasks = 1
    for _ in range(5):
        world.turn()
        world.introduce()
        world.running[0].exit_code = 0
    assert len(world.launcher.started) == 5
    assert len({one.name for one in world.launcher.started}) == 1


def test_a_cluster_that_takes_nobody_is_not_pressed() -> None:
    world = World(applications_max=1)
    world.tasks = 1
    starts: list[float] = []
    while world.now_s < 400:
        if world.turn() == 1:
            starts.append(world.now_s)
            world.running[0].exit_code = 1
        world.now_s += 1
    pauses = [later - before for before, later in pairwise(starts)]
    assert pauses[:5] == sorted(pauses[:5])
    assert max(pauses) <= 62
    assert len(starts) < 15


def test_after_one_that_ended_well_there_is_no_pause() -> None:
    world = World(applications_max=1)
    world.tasks = 1
    world.turn()
    world.running[0].exit_code = 0
    assert world.turn() == 1


@each_case("error", [NotFound("no server"), Unavailable("away"), Rejected("not yours")])
def test_a_server_that_does_not_say_is_asked_again_later(error: IcewrightError) -> None:
    world = World()
    world.tasks, world.error = 1, error
    assert world.turn() == 0
    world.error, world.now_s = None, 100.0
    assert world.turn() == 1


def test_one_that_cannot_run_as_configured_ends_it_all() -> None:
    world = World()
    world.tasks = 1
    world.turn()
    world.running[0].exit_code = 2
    assert world.submitter.turn() == 2


def test_t4_settings_that_may_not_be_used_end_it_at_once() -> None:
    def settings() -> OptimizerSettings:
        return settings_of(spark_conf={"spark.plugins": "x"})

    submitter = Submitter(settings, MemoryLauncher(), 1, look=lambda _settings, _who: Backlog(1, 0, {}))
    with pytest.raises(InvalidConfiguration):
        submitter.turn()


@pytest.fixture
def handlers_are_put_back() -> Iterator[None]:
    before = [(number, signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGINT)]
    yield
    for number, handler in before:
        signal.signal(number, handler)


@pytest.mark.usefixtures("handlers_are_put_back")
@pytest.mark.parametrize(("numbers", "code"), [((signal.SIGTERM,), 0), ((signal.SIGINT, signal.SIGINT), -9)])
def test_told_to_stop_it_submits_nothing_more_and_waits_for_what_runs(numbers: tuple[int, ...], code: int) -> None:
    world = World(applications_max=1)
    world.tasks = 1
    world.submitter.turn()
    (one,) = world.running

    def send() -> None:
        for _ in numbers:
            os.kill(os.getpid(), numbers[0])
            threading.Event().wait(0.2)

    one_that_works_on(one)
    sender = threading.Timer(0.3, send)
    sender.start()
    if code == 0:
        threading.Timer(1.0, lambda: setattr(one, "exit_code", 0)).start()
    assert world.submitter.run() == 0
    sender.join()
    assert one.exit_code == code
    assert len(world.launcher.started) == 1


def one_that_works_on(one: MemoryApplication) -> None:
    """It has claimed a task already: to be told to stop does not end it."""
    one.stop = lambda: None  # type: ignore[method-assign]  # as one for a single task has it
