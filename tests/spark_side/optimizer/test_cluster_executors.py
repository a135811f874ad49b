"""How long work waits for executors, and what is said of them: with a cluster that does as it is told."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from structlog.testing import capture_logs

from icewright.core.errors import IcewrightError, Unavailable
from icewright.model.work.jobs import Failed
from icewright_spark.optimizer.attempt import result_of
from icewright_spark.optimizer.cluster_executors import ClusterOfSpark, Executors, NoExecutors, watched
from icewright_spark.optimizer.engine import FailedEngine
from icewright_spark.optimizer.engine_failure import engine_failure
from icewright_spark.optimizer.optimizer import Optimizer
from tests.builders.specs import settings_of, spec_of
from tests.cases import each_case
from tests.spark_side.optimizer.test_optimizer_loop import Server

WAIT_S = 300.0
STARVES = "WARN Initial job has not accepted any resources; check your cluster UI"
ENDED = "INFO Executor updated: app-20261125-0000/{} is now EXITED (Command exited with code 137)"


class Cluster:
    """Executors and jobs are what tests say; ``cancelled`` has the reason of each job that was."""

    def __init__(self) -> None:
        self.now_s, self.alive, self.running = 1000.0, 0, [7]
        self.lines: list[str] = []
        self.cancelled: dict[int, str] = {}

    def executors(self) -> int:
        return self.alive

    def jobs(self) -> list[int]:
        return [job for job in self.running if job not in self.cancelled]

    def cancel(self, job: int, why: str) -> None:
        self.cancelled[job] = why

    def said(self) -> list[str]:
        lines, self.lines = self.lines, []
        return lines

    def resources(self) -> list[str]:
        return ["the application asks for spark.executor.memory=4g"]


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def executors(cluster: Cluster) -> Executors:
    return Executors(cluster, WAIT_S, clock=lambda: cluster.now_s)


def pass_by(executors: Executors, cluster: Cluster, seconds: float) -> None:
    """Look every second, as the thread does."""
    until_s = cluster.now_s + seconds
    while cluster.now_s < until_s:
        executors.look()
        cluster.now_s += 1.0
    executors.look()


def test_what_waits_for_too_long_is_cancelled_with_what_the_cluster_says(
    executors: Executors, cluster: Cluster
) -> None:
    pass_by(executors, cluster, 20)
    cluster.lines = [STARVES, STARVES, *(ENDED.format(number) for number in range(3))]
    pass_by(executors, cluster, WAIT_S - 21)
    assert not executors.missing
    assert cluster.cancelled == {}
    pass_by(executors, cluster, 1)
    assert executors.missing is not None
    assert cluster.cancelled == {7: f"[no-executors] {executors.missing}"}
    assert executors.missing.count("Initial job has not accepted any resources") == 1
    for part in ("waited for 300 s", "3 executors ended", "Command exited with code 137", "memory=4g"):
        assert part in executors.missing
    cluster.running, cluster.alive = [8], 1  # begun in the same moment: this application has given up all the same
    executors.look()
    assert set(cluster.cancelled) == {7, 8}


@pytest.mark.parametrize("changed", ["an executor", "no job"])
def test_only_work_that_waits_without_an_executor_is_counted(
    executors: Executors, cluster: Cluster, changed: str
) -> None:
    for _ in range(3):
        pass_by(executors, cluster, WAIT_S - 10)
        cluster.alive, cluster.running = (1, [7]) if changed == "an executor" else (0, [])
        pass_by(executors, cluster, 2 * WAIT_S)
        cluster.alive, cluster.running = 0, [7]
    assert executors.missing is None
    assert cluster.cancelled == {}


def test_a_wait_is_told_once_before_it_is_too_long(executors: Executors, cluster: Cluster) -> None:
    with capture_logs() as logs:
        pass_by(executors, cluster, 30)
        cluster.lines = [STARVES]
        pass_by(executors, cluster, 100)
    assert [(one["log_level"], one["event"]) for one in logs] == [("warning", "waiting for executors")]


def test_what_was_said_long_before_is_not_told(executors: Executors, cluster: Cluster) -> None:
    cluster.lines, cluster.alive = [ENDED.format(1)], 1
    pass_by(executors, cluster, 10 * WAIT_S)
    cluster.alive = 0
    pass_by(executors, cluster, WAIT_S + 1)
    assert executors.missing is not None
    assert "137" not in executors.missing


@each_case(
    "error",
    [Py4JError("it does not exist in the JVM"), TypeError("not callable"), AttributeError("host"), OSError("x")],
)
def test_what_cannot_be_explained_never_ends_the_watch(error: Exception) -> None:
    """Jobs would wait without a limit again."""

    class Odd(Cluster):
        def said(self) -> list[str]:
            raise error

        def resources(self) -> list[str]:
            raise error

    cluster = Odd()
    executors = Executors(cluster, WAIT_S, clock=lambda: cluster.now_s)
    pass_by(executors, cluster, WAIT_S + 1)
    assert executors.missing is not None
    assert cluster.cancelled == {7: f"[no-executors] {executors.missing}"}
    assert f"what Spark logs of it cannot be read: {error}" in executors.missing
    assert f"it is not known what was asked for and what the cluster has: {error}" in executors.missing


def test_an_odd_answer_is_told_once_and_does_not_end_the_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icewright_spark.optimizer.cluster_executors._LOOK_S", 0.001)

    class Odd(Cluster):
        looks = 0

        def jobs(self) -> list[int]:
            self.looks += 1
            if self.looks < 5:
                raise TypeError("'JavaPackage' object is not callable")
            raise Py4JNetworkError("Answer from Java side is empty")

    cluster = Odd()
    executors = Executors(cluster, WAIT_S)
    with capture_logs() as logs:
        executors.start()
        executors._thread.join(30)
    assert not executors._thread.is_alive()
    assert cluster.looks == 5
    assert [one["log_level"] for one in logs] == ["warning", "info"], "the latter that Spark has ended"


class Anything:
    """A JVM that has all classes, and whose answers are all alike."""

    def __getattr__(self, _name: str) -> Anything:
        return self

    def __call__(self, *_: object) -> Anything:
        return self


class Worker:
    """One of another version of Spark."""

    def state(self) -> Worker:
        return self

    def toString(self) -> str:  # noqa: N802 - Java's
        return "ALIVE"

    def host(self) -> str:
        raise Py4JError("host([]) does not exist")


@each_case("workers", [[Worker()], [object()], None])
def test_a_master_whose_answer_is_odd_does_not_say_what_it_has(workers: object) -> None:
    class Master(Anything):
        def askSync(self, *_: object) -> Master:  # noqa: N802 - Spark's
            return self

        def toString(self) -> str:  # noqa: N802 - Java's
            return "ALIVE"

        def workers(self) -> object:
            return workers

    asked = ClusterOfSpark.__new__(ClusterOfSpark)
    asked._jvm, asked._spark = Anything(), Master()
    assert asked._workers("m:7077").startswith("the master at m:7077 does not say what it has: ")


def test_a_spark_that_has_ended_is_not_looked_at_any_more() -> None:
    class Ended(Cluster):
        def jobs(self) -> list[int]:
            raise Py4JNetworkError("Answer from Java side is empty")

    executors = Executors(Ended(), 0.01)
    executors.start()
    executors._thread.join(30)
    assert not executors._thread.is_alive()
    assert executors.missing is None


def test_local_mode_has_no_executors_to_wait_for() -> None:
    assert watched(object(), settings_of(master="local[2]")) is None  # type: ignore[arg-type]  # not asked


CANCELLED = (
    "org.apache.spark.SparkException: [SPARK_JOB_CANCELLED] Job 0 cancelled [no-executors] no executor lived; the "
    "last: Command exited with code 137 SQLSTATE: XXKDA\n\tat org.apache.spark.errors.SparkCoreErrors$.cancelled"
)


def test_a_job_that_was_cancelled_for_it_fails_as_such_whatever_the_cluster_spoke_of() -> None:
    failed = engine_failure(RuntimeError(CANCELLED))
    assert failed == Failed("no-executors", "no executor lived; the last: Command exited with code 137", retryable=True)
    assert result_of(RuntimeError(CANCELLED), cancelled=False) == failed


def caused(error: IcewrightError, cause: Exception) -> IcewrightError:
    error.__cause__ = cause
    return error


@each_case(
    ("error", "code"),
    [
        (NoExecutors("none lived"), "no-executors"),
        (caused(NoExecutors("none lived"), RuntimeError("137")), "no-executors"),
        (caused(Unavailable("no Python"), RuntimeError("Command exited with code 137")), "out-of-memory"),
        (Unavailable("the context has ended"), "unavailable"),
    ],
)
def test_an_application_that_cannot_start_fails_its_one_task_with_the_reason(error: Unavailable, code: str) -> None:
    server = Server(spec_of("task-1"), spec_of("task-2"))
    engine = FailedEngine(error, spark_version="4.1.4", iceberg_version="1.12.0")
    Optimizer(engine, server, settings_of(tasks_max=1)).run()
    (report,) = server.reports
    assert (report.task_id, report.result) == ("task-1", Failed(code, error.message, retryable=True))
    assert [spec.task_id for spec in server.tasks] == ["task-2"]
    assert server.hellos[0].workers is None
