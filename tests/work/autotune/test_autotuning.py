"""Autotuning over a real store, with optimizers that are real processes: without Spark, they end as they are told."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from icewright.configuration.load import load_config
from icewright.core.codec import from_json, to_json
from icewright.core.errors import Rejected
from icewright.core.reasons import Reason
from icewright.maintenance.dispatch.dispatcher import DispatchLimits
from icewright.model.events.feed import FactKind, FeedFilter
from icewright.model.iceberg.names import TableName
from icewright.model.policy.resource_groups import Queue
from icewright.model.work.jobs import ANY_TASK, PROTOCOL_VERSION, Failed, TaskReport, TaskSpec
from icewright.model.work.optimizers import OptimizerSettings, TuneMode
from icewright.model.work.tasks import TaskState
from icewright.terminal.address import ServerAddress, write_address
from icewright.work.autotune.model import DecisionState, Move, NewDecision, TuneDecision
from icewright.work.autotune.service import Autotune, by_hand
from icewright.work.autotune.wiring import build_autotune
from icewright.work.launch.resident import ResidentApplication, ResidentLauncher
from tests.builders.served import BY_CITY, HOUR_MS, TOKEN, Served, at_a_port, hello
from tests.cases import each_case
from tests.narrowing import not_none
from tests.waiting import until

MINUTE_MS = 60_000
TABLES = [TableName("lake", ("db",), f"t{number}") for number in range(5)]
LEASE_MINUTES = 240
LONG_LEASES = DispatchLimits(lease_ms=LEASE_MINUTES * MINUTE_MS)
CLAIMS = """
import json, os, signal, sys, time
from icewright.core.codec import loads
from icewright.model.actions.actions import OPTIMIZER_ACTIONS
from icewright.model.work.application_size import application_size
from icewright.model.work.jobs import PROTOCOL_VERSION, Conflicted, Failed, OptimizerHello, TaskReport
from icewright.model.work.optimizers import OptimizerSettings
from icewright_spark.__main__ import die_with_parent
from icewright_spark.reports.client import Server

folder, parent = sys.argv[1:]
stopped = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
die_with_parent(int(parent))
settings = loads(OptimizerSettings, sys.stdin.read())
with open(f"{folder}/starts", "a") as file:
    said = {"id": settings.optimizer_id, "pid": os.getpid(), "memory": settings.driver_memory}
    file.write(json.dumps({**said, "queues": settings.queues, "slots": settings.slots}) + "\\n")
size, server, held = application_size(settings, 1), Server(settings.server_url, settings.token), {}
ends = {
    "out of memory": Failed("out-of-memory", "java.lang.OutOfMemoryError", retryable=True),
    "conflict": Conflicted("somebody else was faster"),
    "failure": Failed("proof-failed", "the rows are not those that went in", retryable=False),
}
while not stopped or held:
    server.hello(OptimizerHello(
        PROTOCOL_VERSION, settings.optimizer_id, "0.1.0", settings.resource_group, settings.slots, ("lake",), "4.1.4",
        "1.12.0", None, size.cores, size.memory_bytes, True, settings.queues, OPTIMIZER_ACTIONS,
    ))
    if not stopped and len(held) < settings.slots:
        spec = server.claim(settings.optimizer_id)
        if spec is not None:
            held[spec.task_id] = spec
    end = ends.get(open(f"{folder}/ends").read())
    for spec in list(held.values()) if end is not None else ():
        report = (PROTOCOL_VERSION, spec.task_id, spec.attempt, spec.fencing_token, end, (), (), 1, 1)
        server.report(TaskReport(*report))
        del held[spec.task_id]
    time.sleep(0.02)
"""
SAYS_NOTHING = "import sys, time; sys.stdin.read(); time.sleep(600)"
DIES = "import sys; sys.stdin.read(); sys.exit(3)"


class Killed(BaseException):
    """The server is gone: nothing in it runs any more."""


@dataclass
class Starts(ResidentLauncher):
    """Starts real processes; ``dies_at`` is where the server is killed: before a process is there, or behind it.

    Where it is ``missing``, there is no such program.
    """

    command: tuple[str, ...]
    dies_at: str = ""
    started: list[ResidentApplication] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(self.command)

    def start(self, settings: OptimizerSettings) -> ResidentApplication:
        if self.dies_at == "before":
            raise Killed
        if self.dies_at == "missing":
            raise Rejected("no such program")
        self.started.append(super().start(settings))
        if self.dies_at == "behind":
            raise Killed
        return self.started[-1]


@dataclass
class Tuned:
    """A server with autotuning, whose clock is the test's."""

    folder: Path
    served: Served
    launcher: Starts
    autotune: Autotune
    another: Callable[[], Autotune]

    @property
    def starts(self) -> list[dict[str, Any]]:
        file = self.folder / "starts"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    @property
    def running(self) -> list[ResidentApplication]:
        return [one for one in self.launcher.started if one.poll() is None]

    def tasks(self, count: int, first: int = 0) -> None:
        """So many tables get a task that waits."""
        for name in TABLES[first : first + count]:
            self.served.control.maintainer.look(name)

    def ends(self, how: str) -> None:
        """From now on tasks end so; ``never``, or as the stand-in knows."""
        new = self.folder / "ends.new"
        new.write_text(how)
        new.rename(self.folder / "ends")

    def after(self, minutes: float, turns: int = 1) -> None:
        """Time passes, everybody says hello, and it is decided."""
        for _ in range(turns):
            self.served.clock.advance(int(minutes * MINUTE_MS))
            until(self._all_said_hello)
            self.autotune.turn()

    def _all_said_hello(self) -> bool:
        known = {one.hello.optimizer_id: one.seen_at for one in self.records()}
        return all(known.get(one.name, self.now) == self.now for one in self.running)

    @property
    def gone(self) -> set[str]:
        return {one.name for one in self.launcher.started if one.poll() is not None}

    @property
    def now(self) -> int:
        return self.served.control.tasks.now()

    def records(self) -> Any:
        return self.served.control.tables.optimizers()

    def introduced(self, count: int) -> None:
        """Wait until so many optimizers have introduced themselves."""
        until(lambda: len(self.records()) >= count)

    def decisions(self) -> list[TuneDecision]:
        """The oldest first."""
        return list(reversed(self.served.control.autotune.list(limit=100)))

    def said(self) -> list[tuple[Queue | None, Move, DecisionState]]:
        return [(one.new.queue, one.new.move, one.state) for one in self.decisions()]


def configured(folder: Path, mode: str, more: str = "") -> Path:
    path = folder / "icewright.toml"
    path.write_text(
        f"""
[server]
state_dir = "{folder}"
[optimizer]
master = "local[1]"
slots = 2
[autotune]
mode = "{mode}"
{more}
[[catalogs]]
name = "lake"
type = "sql"
uri = "sqlite:////nowhere.db"
warehouse = "/nowhere"
"""
    )
    return path


@pytest.fixture
def tuned(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Tuned]:
    script, more = getattr(request, "param", (CLAIMS, ""))
    served = Served(limits=LONG_LEASES)
    for name in TABLES:
        served.lake.create(name, partition_fields=BY_CITY, properties={"icewright.mode": "auto"})
        for number in range(12):
            served.append(name, f"{name}-{number}")
    served.clock.advance(48 * HOUR_MS)
    (tmp_path / "stand_in.py").write_text(script)
    (tmp_path / "ends").write_text("never")
    config = load_config(configured(tmp_path, "act", more), {}, tmp_path)
    launcher = Starts((sys.executable, str(tmp_path / "stand_in.py"), str(tmp_path)))

    def another() -> Autotune:
        control = served.control
        stores = (control.tasks, control.tables, control.backlogs, control.group_views, control.autotune)
        return build_autotune(config, {}, *stores, launcher)

    with at_a_port(served.control) as url:
        write_address(config.server.address_file, ServerAddress(url, TOKEN, 1))
        found = Tuned(tmp_path, served, launcher, another(), another)
        try:
            yield found
        finally:
            for one in launcher.started:
                one.kill()
                one.wait()


WHERE = "ICEWRIGHT_OPTIMIZER__RESOURCE_GROUP=default ICEWRIGHT_OPTIMIZER__QUEUES=large"
NORMAL, LARGE = Queue.NORMAL, Queue.LARGE
DONE, OPEN, BEGUN, FAILED = DecisionState.DONE, DecisionState.OPEN, DecisionState.BEGUN, DecisionState.FAILED
STARTED = (NORMAL, Move.START, DONE)


def with_one(tuned: Tuned) -> None:
    """The optimizer of the minimum has started."""
    tuned.after(1, turns=3)
    tuned.introduced(1)
    tuned.after(1)
    assert tuned.said() == [STARTED]


def test_a_backlog_starts_an_optimizer_and_silence_ends_it(tuned: Tuned) -> None:
    with_one(tuned)
    assert [one["memory"] for one in tuned.starts] == ["2048m"]
    tuned.tasks(5)
    until(lambda: _busy(tuned) == 2)
    tuned.after(1, turns=14)
    assert tuned.said()[1:] == [(NORMAL, Move.START, BEGUN)]
    tuned.introduced(2)
    until(lambda: _busy(tuned) == 4)
    tuned.after(1, turns=30)
    assert tuned.said() == [STARTED, STARTED]  # the maximum is two, and one task still waits
    evidence = tuned.decisions()[1].new.reason
    assert (evidence.code, evidence.figures["backlog"], evidence.figures["most"]) == ("backlog", 3, 2)
    assert int(evidence.figures["waited_ms"]) >= 2 * MINUTE_MS
    tuned.ends("conflict")
    until(lambda: _busy(tuned) == 0)
    tuned.after(1, turns=14)
    assert len(tuned.running) == 2
    tuned.after(1, turns=3)
    until(lambda: len(tuned.running) == 1)
    tuned.after(1, turns=2)
    assert tuned.said()[2:] == [(NORMAL, Move.END, DONE)]
    assert tuned.gone == {tuned.decisions()[2].new.optimizer_id}
    tuned.after(1, turns=60)
    assert len(tuned.running) == 1  # the minimum stays
    codes = [one.fact.reason.code for one in _told(tuned)]
    assert codes == ["too-few-optimizers", "carried-out", "backlog", "carried-out", "idle", "carried-out"]


def test_three_out_of_memory_in_a_row_raise_the_memory_of_the_next_one(tuned: Tuned) -> None:
    """Three tables run out of memory; each then finds a larger optimizer, which goes when nothing waits for it."""
    tuned.ends("out of memory")
    with_one(tuned)
    tuned.tasks(3)
    until(lambda: len(_large(tuned)) == 3)
    tuned.after(1)
    assert tuned.said()[1:] == [(NORMAL, Move.MORE_MEMORY, DONE)]
    more = tuned.decisions()[1]
    assert (more.new.before, more.new.after) == (2 << 30, 4 << 30)
    assert more.new.reason.figures["cycles"] == 3
    until(lambda: len(tuned.running) == 0)  # the old one was drained
    tuned.after(0.1)
    tuned.introduced(2)
    assert [one["memory"] for one in tuned.starts] == ["2048m", "4096m"]
    tuned.ends("never")
    tuned.after(1, turns=4)
    tuned.introduced(3)
    until(lambda: _busy(tuned) == 1)
    last = tuned.starts[2]
    assert (last["queues"], last["slots"], last["memory"]) == (["large"], 1, "4096m")
    tuned.ends("failure")
    until(lambda: not _large(tuned) and not tuned.served.control.tasks.counts()[TaskState.RUNNING])
    tuned.after(LEASE_MINUTES)
    tuned.served.control.loop.turn()  # it looks in the tables whether an earlier attempt was faster
    tuned.after(1, turns=17)
    until(lambda: len(tuned.running) == 1)
    tuned.after(1, turns=2)
    assert [one for one in tuned.said() if one[0] is LARGE] == [(LARGE, Move.START, DONE), (LARGE, Move.END, DONE)]
    assert tuned.said().count((NORMAL, Move.MORE_MEMORY, DONE)) == 1


def test_attempts_on_optimizers_that_people_started_say_nothing_of_the_memory_of_others(tuned: Tuned) -> None:
    with_one(tuned)
    other = replace(hello("optimizer-of-ada"), slots=8, cores=1, memory_bytes=1 << 30)
    tuned.tasks(5)
    until(lambda: _busy(tuned) == 2)
    tuned.served.post("/optimizers", other)
    for _ in range(3):
        spec = from_json(TaskSpec, tuned.served.post(f"/optimizers/{other.optimizer_id}/claims", ANY_TASK))
        end = Failed("out-of-memory", "java.lang.OutOfMemoryError", retryable=True)
        of = (PROTOCOL_VERSION, spec.task_id, spec.attempt, spec.fencing_token, end, (), ())
        tuned.served.post(f"/tasks/{spec.task_id}/report", TaskReport(*of, wall_ms=1, cpu_ms=1))
    tuned.after(0.5, turns=2)
    assert tuned.said() == [STARTED]


def test_memory_that_was_decided_under_another_maximum_is_within_the_present_one(tuned: Tuned) -> None:
    store = tuned.served.control.autotune
    new = NewDecision("default", NORMAL, Move.MORE_MEMORY, 2 << 30, 32 << 30, Reason("out-of-memory", "thrice"))
    store.make(TuneDecision("tune-0", new, TuneMode.ACT, "", tuned.now))
    store.end("tune-0", DONE, Reason("carried-out", "optimizers start with 32 GiB"))
    tuned.after(1, turns=3)
    tuned.introduced(1)
    assert [one["memory"] for one in tuned.starts] == ["16384m"]


def test_nothing_is_ended_at_work(tuned: Tuned) -> None:
    with_one(tuned)
    tuned.tasks(1)
    until(lambda: _busy(tuned) == 1)
    tuned.autotune.close()
    time.sleep(0.3)
    assert len(tuned.running) == 1
    tuned.tasks(1, first=1)
    tuned.ends("conflict")
    until(lambda: not tuned.running)
    assert tuned.served.control.tasks.claimable("default", frozenset({"lake"})) >= 1  # it claimed nothing more


def test_a_held_decision_is_not_carried_out_and_a_released_one_is(tuned: Tuned) -> None:
    with_one(tuned)
    tuned.served.post(f"/autotune/{tuned.decisions()[0].decision_id}/hold", {"why": "no more for now"})
    tuned.tasks(5)
    until(lambda: _busy(tuned) == 2)
    tuned.after(1, turns=20)
    assert len(tuned.decisions()) == len(tuned.starts) == 1
    tuned.served.post(f"/autotune/{tuned.decisions()[0].decision_id}/release", {"why": ""})
    tuned.after(1)
    tuned.introduced(2)
    tuned.after(0.1)
    assert tuned.said() == [STARTED, STARTED]


@pytest.mark.parametrize("dies_at", ["before", "behind"])
def test_a_server_killed_between_decision_and_effect_does_nothing_twice(tuned: Tuned, dies_at: str) -> None:
    tuned.launcher.dies_at = dies_at
    with pytest.raises(Killed):
        tuned.after(1, turns=3)
    assert tuned.said() == [(NORMAL, Move.START, BEGUN)]
    tuned.launcher.dies_at = ""
    for one in tuned.launcher.started:  # the kernel tells it when the server dies
        one.stop()
        assert one.wait() in (0, -signal.SIGTERM)
    tuned.autotune = tuned.another()
    tuned.after(0.1)
    assert tuned.said() == [(NORMAL, Move.START, FAILED)]
    assert not_none(tuned.decisions()[0].effect).code == "server-ended"
    assert len(tuned.launcher.started) == (dies_at == "behind")
    tuned.after(2, turns=6)
    assert tuned.said()[1:] == [(NORMAL, Move.START, BEGUN)]  # by what the next server sees
    assert len(tuned.running) == 1


def test_advice_is_open_when_the_mode_becomes_act(tuned: Tuned) -> None:
    made = tuned.another()
    made._own, made._mode = None, made._mode.ADVISE
    tuned.served.clock.advance(3 * MINUTE_MS)
    made.turn()
    tuned.served.clock.advance(3 * MINUTE_MS)
    made.turn()
    assert tuned.said() == [(NORMAL, Move.START, OPEN)]
    assert not tuned.launcher.started
    assert tuned.decisions()[0].by_hand == (
        "ICEWRIGHT_OPTIMIZER__RESOURCE_GROUP=default ICEWRIGHT_OPTIMIZER__QUEUES=normal "
        "ICEWRIGHT_OPTIMIZER__MEMORY=2048m icewright optimizer"
    )
    tuned.after(0.1)
    assert tuned.said() == [(NORMAL, Move.START, BEGUN)]


@pytest.mark.parametrize("tuned", [(DIES, "")], indirect=True)
def test_an_optimizer_that_cannot_start_is_tried_ever_more_rarely(tuned: Tuned) -> None:
    for _ in range(24 * 6):
        tuned.after(10)
        until(lambda: not tuned.running)
    assert {one[2] for one in tuned.said()[:-1]} == {FAILED}
    assert 5 <= len(tuned.said()) <= 12
    assert not_none(tuned.decisions()[0].effect).code == "not-started"


@pytest.mark.parametrize("tuned", [(SAYS_NOTHING, "")], indirect=True)
def test_an_optimizer_that_never_introduces_itself_does_not_keep_its_queue_for_ever(tuned: Tuned) -> None:
    tuned.served.clock.advance(MINUTE_MS)
    tuned.autotune.turn()
    for _ in range(17):
        tuned.served.clock.advance(MINUTE_MS)
        tuned.autotune.turn()
    assert tuned.said() == [(NORMAL, Move.START, BEGUN)]
    for _ in range(2):
        tuned.served.clock.advance(MINUTE_MS)
        tuned.autotune.turn()
    assert tuned.said() == [(NORMAL, Move.START, FAILED)]
    until(lambda: not tuned.running)
    for _ in range(20):
        tuned.served.clock.advance(MINUTE_MS)
        tuned.autotune.turn()
    assert tuned.said()[1:] == [(NORMAL, Move.START, BEGUN)]
    assert len(tuned.launcher.started) == 2


def test_a_program_that_is_not_there_fails_the_decision(tuned: Tuned) -> None:
    tuned.launcher.dies_at = "missing"
    tuned.after(1, turns=3)
    assert tuned.said() == [(NORMAL, Move.START, FAILED)]


def test_no_secret_stands_in_the_arguments_or_the_environment_of_a_process(tuned: Tuned) -> None:
    with_one(tuned)
    process = psutil.Process(tuned.starts[0]["pid"])
    assert TOKEN not in str(process.cmdline())
    assert TOKEN not in str(process.environ())
    assert TOKEN not in str([to_json(one) for one in tuned.decisions()])


def _busy(tuned: Tuned) -> int:
    return sum(use.tasks for use in tuned.served.control.tasks.facts("default").uses)


def _large(tuned: Tuned) -> list[Any]:
    lanes = tuned.served.control.tasks.lanes("default")
    return [one for one in lanes for _ in range(one.waiting) if one.lane.queue is LARGE]


def _told(tuned: Tuned) -> Any:
    return tuned.served.control.tasks.feed.after(0, 1_000, FeedFilter(frozenset({FactKind.TUNED}))).told


@each_case(
    ("move", "is_local", "expected"),
    [
        (Move.START, True, f"{WHERE} ICEWRIGHT_OPTIMIZER__MEMORY=2048m icewright optimizer"),
        (Move.START, False, f"{WHERE} icewright optimizer"),
        (Move.END, True, "send SIGTERM to the `icewright optimizer` of optimizer-1: it ends after its tasks"),
        (
            Move.MORE_MEMORY,
            True,
            (
                f"end the optimizers of this queue by SIGTERM, then: {WHERE} ICEWRIGHT_OPTIMIZER__MEMORY=4096m "
                "icewright optimizer"
            ),
        ),
        (
            Move.LESS_MEMORY,
            False,
            (
                "set optimizer.memory and spark.executor.memory to 4.0 GiB for driver and executors together, and "
                "restart the optimizers of this queue"
            ),
        ),
    ],
)
def test_each_decision_says_how_a_person_does_the_same(move: Move, *, is_local: bool, expected: str) -> None:
    new = NewDecision("default", LARGE, move, 2 << 30, 4 << 30, Reason("backlog", "tasks wait"), "optimizer-1")
    assert by_hand(new, 2 << 30, is_local=is_local) == expected
