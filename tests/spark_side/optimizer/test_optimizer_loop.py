"""The resident optimizer with an engine and a server that do as they are told."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NoReturn

import pytest
import structlog
from py4j.clientserver import ClientServer
from pyspark import SparkContext
from structlog.processors import add_log_level
from structlog.testing import capture_logs

from icewright.core.errors import (
    IcewrightError,
    InvalidMessage,
    LeaseLost,
    Rejected,
    ServerUnavailable,
    Unavailable,
    VersionMismatch,
)
from icewright.model.actions.actions import OPTIMIZER_ACTIONS, Executor
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.plans.observation import WorkerAccess
from icewright.model.work.jobs import (
    ANY_TASK,
    PROTOCOL_VERSION,
    ClaimRequest,
    OptimizerHello,
    SentReport,
    TaskReport,
    TaskSpec,
)
from icewright.model.work.optimizers import WorkerEnvironment
from icewright.model.work.storage import ProbeReport, ProbeReports, ProbeRequest
from icewright.model.work.tasks import LogLines
from icewright_spark.optimizer.attempt_log import keeping
from icewright_spark.optimizer.batch import Batch, BatchMember
from icewright_spark.optimizer.optimizer import Optimizer
from tests.builders.specs import report_of, settings_of, spec_of
from tests.cases import each_case
from tests.waiting import until


class Server:
    """Hands out what is in ``tasks``; raises what is in ``errors``, once each, before anything else."""

    def __init__(self, *tasks: TaskSpec) -> None:
        self.tasks = list(tasks)
        self.hellos: list[OptimizerHello] = []
        self.claims = 0
        self.requests: list[ClaimRequest] = []
        self.reports: list[TaskReport] = []
        self.offers = 0
        self.offered_logs: list[LogLines | None] = []
        self.claim_errors: list[IcewrightError] = []
        self.hello_errors: list[IcewrightError] = []
        self.report_errors: list[IcewrightError] = []
        self.lock = threading.Lock()
        self.wanted: list[ProbeRequest] = []
        self.probed_by: list[tuple[str, ProbeReports]] = []

    def probes(self, optimizer_id: str) -> tuple[ProbeRequest, ...]:
        assert optimizer_id == "optimizer-1"
        found, self.wanted = tuple(self.wanted), []
        return found

    def probed(self, optimizer_id: str, reports: ProbeReports) -> None:
        self.probed_by.append((optimizer_id, reports))

    def hello(self, hello: OptimizerHello) -> None:
        if self.hello_errors:
            raise self.hello_errors.pop(0)
        self.hellos.append(hello)

    def claim(self, optimizer_id: str, request: ClaimRequest) -> TaskSpec | None:
        assert optimizer_id == "optimizer-1"
        self.claims += 1
        self.requests.append(request)
        if self.claim_errors:
            raise self.claim_errors.pop(0)
        fitting = (number for number, spec in enumerate(self.tasks) if fits(spec, request))
        number = next(fitting, None)
        return None if number is None else self.tasks.pop(number)

    def report(self, report: SentReport) -> None:
        with self.lock:
            self.offers += 1
            self.offered_logs.append(report.log)
            if self.report_errors:
                raise self.report_errors.pop(0)
            self.reports.append(report.report)


def fits(spec: TaskSpec, request: ClaimRequest) -> bool:
    """As the store has it."""
    size_bytes = spec.rewrite.shareable_bytes
    if request.shareable_bytes_max is None:
        return True
    return spec.attempt == 1 and size_bytes is not None and size_bytes <= request.shareable_bytes_max


class NoSpark:
    def together(self, name: str, jobs: object, phases: object) -> NoReturn:
        raise AssertionError(name, jobs, phases)

    def alone(self, jobs: object, phase: object) -> NoReturn:
        raise AssertionError(jobs, phase)

    def cancel(self, name: str) -> None:
        raise AssertionError(name)


class Engine:
    """Attempts that wait until they are let go."""

    spark_version = "4.1.4"
    iceberg_version = "1.12.0"
    workers = WorkerEnvironment("3.11.7", "4.1.4", {"pyarrow": "26.0.1"})
    application_id = "local-1"
    spark_ui_url = "http://127.0.0.1:4040"

    def __init__(self) -> None:
        self.go = threading.Event()
        self.go.set()
        self.living = True
        self.running = 0
        self.most_running = 0
        self.attempts: list[tuple[str, int]] = []
        self.pools: list[str] = []
        self.claimed: list[float] = []
        self.error: Exception | None = None
        self.probe_error: Exception | None = None
        self.waits_for: str | None = None
        self.together = 1
        self.lock = threading.Lock()
        self.batches: list[tuple[str, str, Batch]] = []
        self.members: dict[str, BatchMember | None] = {}

    def alive(self) -> bool:
        return self.living

    def probe(self, requests: Sequence[ProbeRequest]) -> list[ProbeReport]:
        if self.probe_error is not None:
            raise self.probe_error
        return [ProbeReport(one.table_id, one.table_name, one.root, WorkerAccess.PROVED, "") for one in requests]

    def batch(self, name: str, *, pool: str) -> Batch:
        """One whose attempts never hand anything in."""
        assert name not in {made for made, _, _ in self.batches}
        batch = Batch(NoSpark(), name)
        self.batches.append((name, pool, batch))
        return batch

    def attempt(self, spec: TaskSpec, *, claimed_s: float, pool: str, member: BatchMember | None = None) -> TaskReport:
        with self.lock:
            self.members[spec.task_id] = member
            self.running += 1
            self.most_running = max(self.most_running, self.running)
            self.attempts.append((spec.task_id, spec.attempt))
            self.pools.append(pool)
            self.claimed.append(claimed_s)
        until(lambda: self.most_running >= self.together)
        if self.waits_for in (None, spec.task_id):
            assert self.go.wait(60)
        with self.lock:
            self.running -= 1
        if self.error is not None:
            raise self.error
        return report_of(spec)


@pytest.fixture
def logging_engine() -> Iterator[Engine]:
    """An engine, in a process that logs as an optimizer's does."""
    structlog.configure(processors=[add_log_level, keeping(settings_of()), structlog.dev.ConsoleRenderer()])
    yield Engine()
    structlog.reset_defaults()


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s

    def wait(self, seconds: float) -> None:
        self.now_s += seconds


def tasks(count: int) -> list[TaskSpec]:
    return [spec_of(f"task-{number}") for number in range(count)]


@contextmanager
def running(optimizer: Optimizer, engine: Engine) -> Iterator[threading.Thread]:
    thread = threading.Thread(target=optimizer.run)
    thread.start()
    try:
        yield thread
    finally:
        engine.go.set()
        optimizer.stop()
        thread.join(60)
        assert not thread.is_alive()


def test_it_says_who_it_is_and_carries_out_what_it_gets() -> None:
    server, engine, clock = Server(*tasks(5)), Engine(), Clock()
    with running(Optimizer(engine, server, settings_of(), clock=clock), engine):
        until(lambda: len(server.reports) == 5)
    hello = server.hellos[0]
    assert hello == OptimizerHello(
        PROTOCOL_VERSION,
        "optimizer-1",
        hello.version,
        "default",
        2,
        (),
        "4.1.4",
        "1.12.0",
        engine.workers,
        os.cpu_count(),
        1 << 30,
        actions=OPTIMIZER_ACTIONS,
        application_id="local-1",
        spark_ui_url="http://127.0.0.1:4040",
    )
    assert sorted(server.reports, key=lambda report: report.task_id) == [report_of(spec) for spec in tasks(5)]
    assert set(engine.claimed) == {clock.now_s}


def test_a_jvm_that_ends_between_claim_and_attempt_is_reported_by_the_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread of the task asks the JVM for nothing before the attempt does, which says what became of it."""

    class Ended:
        @property
        def _jsc(self) -> NoReturn:
            raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(SparkContext, "_gateway", object.__new__(ClientServer))
    monkeypatch.setattr(SparkContext, "_active_spark_context", Ended())
    server, engine = Server(*tasks(1)), Engine()
    Optimizer(engine, server, settings_of(tasks_max=1)).run()
    assert [report.task_id for report in server.reports] == ["task-0"]


def test_it_claims_no_more_than_it_has_slots_and_uses_few_pools() -> None:
    server, engine = Server(*tasks(40)), Engine()
    engine.go.clear()
    with running(Optimizer(engine, server, settings_of(slots=3)), engine):
        until(lambda: engine.running == 3)
        time.sleep(0.05)
        assert len(server.tasks) == 37
        engine.go.set()
        until(lambda: len(server.reports) == 40)
    assert engine.most_running == 3
    assert set(engine.pools) == {"icewright-0", "icewright-1", "icewright-2"}


@each_case(("waiting", "done"), [(0, 0), (1, 1), (3, 1)])
def test_one_that_is_started_for_one_task_ends_after_it_or_without_any(waiting: int, done: int) -> None:
    server, engine = Server(*tasks(waiting)), Engine()
    optimizer = Optimizer(engine, server, settings_of(tasks_max=1))
    optimizer.run()
    assert len(server.reports) == done
    assert server.claims == 1
    assert not optimizer.wants_recycling


def test_one_that_is_started_for_one_task_may_take_a_batch_for_it() -> None:
    server, engine = Server(*tasks(5)), Engine()
    Optimizer(engine, server, settings_of(tasks_max=1, batch_tasks=3)).run()
    assert len(server.reports) == 3
    assert [name for name, _, _ in engine.batches] == ["batch of task-0/1"]


def test_one_that_is_started_for_one_task_tries_out_storages_first_and_outlives_a_server_that_is_away() -> None:
    server, engine = Server(), Engine()
    server.claim_errors.append(Unavailable("away"))
    server.wanted = [ProbeRequest(TableId("lake", "uuid-1"), TableName("lake", ("db",), "events"), "s3://b/t")]
    Optimizer(engine, server, settings_of(tasks_max=1)).run()
    assert len(server.probed_by) == 1


def test_two_attempts_at_one_task_hold_two_slots() -> None:
    """The first was thought dead and is still at it when the server hands the task out again."""
    server, engine = Server(spec_of(attempt=1), spec_of(attempt=2), spec_of(attempt=3)), Engine()
    engine.go.clear()
    with running(Optimizer(engine, server, settings_of(slots=2)), engine):
        until(lambda: engine.running == 2)
        time.sleep(0.05)
        assert sorted(engine.attempts) == [("task-1", 1), ("task-1", 2)]


@each_case("error", [Unavailable("away"), Rejected("never heard of you")])
@each_case("where", ["claim_errors", "hello_errors"])
def test_it_outlives_a_server_that_is_away_or_forgot_it_and_introduces_itself_again(
    error: IcewrightError, where: str
) -> None:
    server, engine = Server(*tasks(1)), Engine()
    getattr(server, where).extend([error] * 3)
    with running(Optimizer(engine, server, settings_of()), engine):
        until(lambda: len(server.reports) == 1)
    assert len(server.hellos) >= (2 if where == "claim_errors" else 1)


@each_case("error", [VersionMismatch("other"), InvalidMessage("what?")])
@each_case("where", ["claim_errors", "hello_errors"])
def test_it_does_not_go_on_with_a_server_of_another_version(error: IcewrightError, where: str) -> None:
    server = Server()
    getattr(server, where).append(error)
    with pytest.raises(type(error)):
        Optimizer(Engine(), server, settings_of()).run()


@pytest.mark.parametrize(
    "other", [{"protocol_version": PROTOCOL_VERSION + 1}, {"action_version": spec_of().action_version + 1}]
)
def test_a_task_of_another_version_is_not_attempted(other: dict[str, int]) -> None:
    engine = Engine()
    server = Server(replace(spec_of(), **other))  # type: ignore[arg-type]  # by name
    with pytest.raises(VersionMismatch):
        Optimizer(engine, server, settings_of()).run()
    assert engine.attempts == []


def test_it_ends_with_its_engine() -> None:
    server, engine = Server(*tasks(1)), Engine()
    engine.living = False
    with pytest.raises(Unavailable, match="Spark has ended"):
        Optimizer(engine, server, settings_of()).run()
    assert server.claims == 0


def test_an_attempt_that_breaks_the_thread_frees_its_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    broken: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", broken.append)
    server, engine = Server(*tasks(3)), Engine()
    engine.error = RuntimeError("the JVM is gone")
    with running(Optimizer(engine, server, settings_of(slots=1)), engine):
        until(lambda: len(engine.attempts) == 3)
    assert len(broken) == 3


@pytest.mark.parametrize("slots", [1, 2])
def test_after_so_many_tasks_it_claims_no_more_and_asks_for_a_fresh_process(slots: int) -> None:
    server, engine = Server(*tasks(50)), Engine()
    optimizer = Optimizer(engine, server, settings_of(slots=slots, recycle_after_tasks=5))
    optimizer.run()
    assert optimizer.wants_recycling
    assert 5 <= len(server.reports) <= 5 + slots
    assert len(server.reports) + len(server.tasks) == 50


def test_it_never_recycles_while_a_task_runs() -> None:
    server, engine = Server(*tasks(10)), Engine()
    optimizer = Optimizer(engine, server, settings_of(slots=2, recycle_after_tasks=1))
    with running(optimizer, engine) as thread:
        until(lambda: len(server.reports) >= 1)
        thread.join(60)
    assert engine.running == 0
    assert optimizer.wants_recycling
    assert len(server.reports) == len(engine.attempts)


def test_one_that_is_due_still_offers_the_reports_of_what_runs_for_long() -> None:
    server, engine, clock = Server(*tasks(2)), Engine(), Clock()
    engine.waits_for, engine.together = "task-1", 2
    engine.go.clear()
    settings = settings_of(recycle_after_tasks=1)
    optimizer = Optimizer(engine, server, settings, clock=clock, pause=clock.wait)
    with running(optimizer, engine) as thread:
        until(lambda: len(server.reports) == 1 and engine.running == 1)
        time.sleep(0.05)
        assert thread.is_alive()
        server.report_errors = [Unavailable("away")] * 20
        engine.go.set()
        thread.join(60)
    assert len(server.reports) == 2
    assert optimizer.wants_recycling


def test_memory_that_has_grown_asks_for_a_fresh_process_once_the_tasks_have_ended() -> None:
    server, engine, memory = Server(*tasks(3)), Engine(), [50]
    optimizer = Optimizer(engine, server, settings_of(slots=1, recycle_memory_bytes=100), memory=lambda: memory[0])
    with running(optimizer, engine) as thread:
        until(lambda: len(server.reports) == 3)
        assert thread.is_alive()
        engine.go.clear()
        server.tasks.append(spec_of("one-more"))
        until(lambda: engine.running == 1)
        memory[0] = 101
        server.tasks.append(spec_of("too-late"))
        time.sleep(0.05)
        assert thread.is_alive()
        engine.go.set()
        thread.join(60)
    assert optimizer.wants_recycling
    assert [task.task_id for task in server.tasks] == ["too-late"]


def test_a_limit_below_what_spark_needs_to_start_is_no_circle_of_restarts() -> None:
    server, engine = Server(), Engine()
    optimizer = Optimizer(engine, server, settings_of(recycle_memory_bytes=1))
    with running(optimizer, engine):
        until(lambda: server.claims > 5)
        server.tasks.append(spec_of())
        until(lambda: optimizer.wants_recycling)
    assert len(server.reports) == 1


def test_idle_and_long_without_its_server_it_asks_for_a_fresh_process() -> None:
    server, engine, clock = Server(), Engine(), Clock()
    server.claim_errors = [Unavailable("away")] * 100_000
    optimizer = Optimizer(engine, server, settings_of(), clock=clock)
    with running(optimizer, engine) as thread:
        clock.wait(59)
        until(lambda: server.claims > 3)
        assert thread.is_alive()
        clock.wait(2)
        thread.join(60)
    assert optimizer.wants_recycling


def test_idle_with_a_server_that_answers_it_stays() -> None:
    server, engine, clock = Server(), Engine(), Clock()
    with running(Optimizer(engine, server, settings_of(), clock=clock), engine) as thread:
        for _ in range(5):
            claims = server.claims
            clock.wait(40)
            until(lambda seen=claims: server.claims > seen + 1)  # type: ignore[misc]  # the loop's value, kept
            assert thread.is_alive()


def test_reports_are_offered_until_they_are_delivered() -> None:
    server, engine, clock = Server(*tasks(1)), Engine(), Clock()
    server.report_errors = [Unavailable("away")] * 20
    with running(Optimizer(engine, server, settings_of(), clock=clock, pause=clock.wait), engine):
        until(lambda: len(server.reports) == 1)
    assert server.offers == 21


@each_case(
    ("errors", "logs"),
    [
        ([], [True]),
        ([ServerUnavailable("away")] * 3, [True, False, True, False]),
        ([InvalidMessage("unknown field 'log'")], [True, False]),
        ([Rejected("the body is too large")], [True, False]),
        ([Unavailable("the server answered 500")], [True, False]),
        (
            [ServerUnavailable("away")] * 2 + [Rejected("no log"), ServerUnavailable("away")],
            [True, False, True, False, False],
        ),
        ([Rejected("no log"), Rejected("no such task")], [True, False]),
    ],
)
def test_a_log_never_keeps_a_report_from_the_server(
    logging_engine: Engine, errors: list[IcewrightError], logs: list[bool]
) -> None:
    server, clock = Server(*tasks(1)), Clock()
    server.report_errors = list(errors)
    settings = settings_of(tasks_max=1)
    Optimizer(logging_engine, server, settings, clock=clock, pause=clock.wait).run()
    assert [log is not None for log in server.offered_logs] == logs
    assert len(server.reports) == len(logs) - len(errors)


def test_a_report_is_not_offered_for_ever() -> None:
    server, engine, clock = Server(*tasks(1)), Engine(), Clock()
    server.report_errors = [Unavailable("away")] * 100_000
    optimizer = Optimizer(engine, server, settings_of(recycle_after_tasks=1), clock=clock, pause=clock.wait)
    optimizer.run()
    assert clock.now_s - 1000.0 >= 600
    assert server.offers < 100


@pytest.mark.parametrize("error", [LeaseLost("somebody else's"), Rejected("no such task")])
def test_a_report_that_is_refused_is_not_offered_again(error: IcewrightError) -> None:
    server, engine = Server(*tasks(2)), Engine()
    server.report_errors = [error]
    with running(Optimizer(engine, server, settings_of(slots=1)), engine):
        until(lambda: len(server.reports) == 1)
    assert server.offers == 2


def test_stopping_waits_for_what_runs_and_claims_nothing_more() -> None:
    server, engine = Server(*tasks(5)), Engine()
    engine.go.clear()
    optimizer = Optimizer(engine, server, settings_of(slots=1))
    with running(optimizer, engine) as thread:
        until(lambda: engine.running == 1)
        optimizer.stop()
        time.sleep(0.05)
        assert thread.is_alive()
        engine.go.set()
        thread.join(60)
    assert len(server.reports) == 1
    assert not optimizer.wants_recycling


def test_stopping_does_not_wait_long_for_a_server_that_is_away() -> None:
    server, engine, clock = Server(*tasks(1)), Engine(), Clock()
    server.report_errors = [Unavailable("away")] * 100_000
    optimizer = Optimizer(engine, server, settings_of(), clock=clock, pause=clock.wait)
    engine.go.clear()
    with running(optimizer, engine):
        until(lambda: engine.running == 1)
        optimizer.stop()
    assert clock.now_s - 1000.0 < 60


def test_a_signal_at_any_moment_stops_it() -> None:
    """The handler may run between any two steps of the loop, so it must not need a lock that the loop holds."""
    before = signal.getsignal(signal.SIGUSR1)
    try:
        for number in range(60):
            server, engine = Server(*tasks(3)), Engine()
            optimizer = Optimizer(engine, server, settings_of(poll_interval_ms=1))

            def stop(_number: int, _frame: Any, optimizer: Optimizer = optimizer) -> None:
                optimizer.stop()
                optimizer.stop()

            signal.signal(signal.SIGUSR1, stop)
            timer = threading.Timer(number * 0.0003, os.kill, (os.getpid(), signal.SIGUSR1))
            timer.start()
            optimizer.run()
            timer.join()
    finally:
        signal.signal(signal.SIGUSR1, before)


WANTED = ProbeRequest(TableId("lake", "uuid-1"), TableName("lake", ("db",), "t"), "s3://bucket/t/data")


def test_storages_are_tried_out_when_there_is_nothing_else_to_do() -> None:
    server, engine, clock = Server(*tasks(1)), Engine(), Clock()
    server.wanted = [WANTED]
    with running(Optimizer(engine, server, settings_of(), clock=clock), engine):
        until(lambda: len(server.probed_by) == 1)
    assert engine.attempts, "the task came first"
    (optimizer_id, reports), *_ = server.probed_by
    assert optimizer_id == "optimizer-1"
    assert reports.reports == (
        ProbeReport(*(WANTED.table_id, WANTED.table_name, WANTED.root), WorkerAccess.PROVED, ""),
    )


def test_a_probe_that_breaks_ends_nothing_and_claims_nothing() -> None:
    server, engine, clock = Server(), Engine(), Clock()
    server.wanted, engine.probe_error = [WANTED], RuntimeError("Spark is unwell")
    with running(Optimizer(engine, server, settings_of(), clock=clock), engine):
        until(lambda: not server.wanted)
        server.tasks = tasks(1)
        until(lambda: len(server.reports) == 1)
    assert server.probed_by == []


BATCHES = {"slots": 2, "batch_tasks": 4, "batch_bytes": 1000}
"""A task of ``spec_of`` reads 400 bytes, one of one group 200."""


def batch_of(engine: Engine, name: str) -> set[str]:
    """The tasks that are members of the batch that was begun with this one."""
    (batch,) = [batch for made, _, batch in engine.batches if made == f"batch of {name}/1"]
    return {task_id for task_id, member in engine.members.items() if member is not None and member._batch is batch}


def test_small_tasks_share_a_batch_up_to_its_bytes_and_its_number() -> None:
    large = spec_of("large", groups=6)
    server, engine = Server(*(spec_of(f"task-{n}", groups=1) for n in range(7)), large), Engine()
    engine.go.clear()
    with running(Optimizer(engine, server, settings_of(**BATCHES)), engine):
        until(lambda: engine.running == 7)
        time.sleep(0.05)
        assert batch_of(engine, "task-0") == {"task-0", "task-1", "task-2", "task-3"}, "so many tasks"
        assert batch_of(engine, "task-4") == {"task-4", "task-5", "task-6"}
        assert [pool for _, pool, _ in engine.batches] == ["icewright-0", "icewright-1"]
        assert server.tasks == [large], "both slots are taken"
        bounds = [request.shareable_bytes_max for request in server.requests[:8]]
        assert bounds == [None, 800, 600, 400, None, 800, 600, 400]
        engine.go.set()
        until(lambda: len(server.reports) == 8)
    assert engine.members["large"] is None
    assert set(engine.pools) == {"icewright-0", "icewright-1"}


def test_a_batch_is_closed_and_every_seat_of_it_is_left() -> None:
    server, engine = Server(*(spec_of(f"task-{n}", groups=1) for n in range(3))), Engine()
    with running(Optimizer(engine, server, settings_of(**BATCHES)), engine):
        until(lambda: len(server.reports) == 3)
    for _, _, batch in engine.batches:
        assert not batch._open
        assert not batch._awaited


def test_a_task_that_does_not_fit_or_cannot_share_or_was_tried_before_runs_alone() -> None:
    staged = spec_of("staged", groups=1)
    (one,) = staged.rewrite.groups
    action = replace(staged.rewrite, groups=(replace(one, executor=Executor.STAGED),))
    alone = [spec_of("large", groups=6), replace(staged, action=action), spec_of("again", attempt=2, groups=1)]
    server, engine = Server(*alone), Engine()
    with running(Optimizer(engine, server, settings_of(**BATCHES)), engine):
        until(lambda: len(server.reports) == 3)
    assert engine.batches == []
    assert set(engine.members.values()) == {None}


def test_without_batches_each_claim_is_for_any_task() -> None:
    server, engine = Server(*tasks(3)), Engine()
    with running(Optimizer(engine, server, settings_of(batch_tasks=1, batch_bytes=1 << 30)), engine):
        until(lambda: len(server.reports) == 3)
    assert engine.batches == []
    assert set(server.requests) == {ANY_TASK}


def test_a_server_that_goes_away_while_a_batch_is_filled_closes_it() -> None:
    server, engine = Server(spec_of("first", groups=1)), Engine()

    def claim(optimizer_id: str, request: ClaimRequest) -> TaskSpec | None:
        if request.shareable_bytes_max is not None:
            raise Unavailable("away")
        return Server.claim(server, optimizer_id, request)

    server.claim = claim  # type: ignore[method-assign]  # away between two claims
    with running(Optimizer(engine, server, settings_of(**BATCHES)), engine):
        until(lambda: len(server.reports) == 1)
    ((_, _, batch),) = engine.batches
    assert not batch._open


def test_an_attempt_that_breaks_its_thread_leaves_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda _broken: None)
    server, engine = Server(spec_of(groups=1)), Engine()
    engine.error = RuntimeError("the JVM is gone")
    with running(Optimizer(engine, server, settings_of(**BATCHES)), engine):
        until(
            lambda: (
                bool(engine.members) and all(member is not None and member.gone for member in engine.members.values())
            )
        )


def test_tasks_of_a_batch_count_one_by_one_towards_a_fresh_process() -> None:
    server, engine = Server(*(spec_of(f"task-{n}", groups=1) for n in range(9))), Engine()
    optimizer = Optimizer(engine, server, settings_of(**{**BATCHES, "slots": 1}, recycle_after_tasks=3))
    optimizer.run()
    assert optimizer.wants_recycling
    assert len(server.reports) == 4


class Resting(Optimizer):
    """Does not rest, but notes for how long it would have, by a clock of its own; stops after so many rests."""

    def __init__(self, server: Server, clock: Clock, rests: int) -> None:
        super().__init__(Engine(), server, settings_of(poll_interval_ms=500), clock=clock)
        self._passing, self._rests = clock, rests
        self.pauses: list[float] = []

    def _rest(self, pause_s: float) -> None:
        self.pauses.append(pause_s)
        self._passing.wait(pause_s)
        if len(self.pauses) >= self._rests:
            self.stop()


def test_a_server_that_is_away_is_asked_less_often_and_told_of_once() -> None:
    server, clock = Server(), Clock()
    server.claim_errors = [Unavailable("away") for _ in range(10)]
    optimizer = Resting(server, clock, rests=11)
    with capture_logs() as logs:
        optimizer.run()
    assert optimizer.pauses[:4] == [1.0, 2.0, 4.0, 5.0]
    assert (max(optimizer.pauses), optimizer.pauses[-1]) == (5.0, 0.5)
    told = [(entry["log_level"], entry["event"], entry["failures"]) for entry in logs]
    assert told == [("warning", "no tasks from the server", 1), ("info", "the server answers again", 10)]
