"""Several tables in one job, on real Spark: each keeps its proof and its commit, and trouble is nobody else's."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.tables import PROOF_KEY, TASK_ID_KEY
from icewright.model.work.jobs import Cancelled, ClaimRequest, Committed, Failed, OptimizerHello, TaskReport, TaskSpec
from icewright.model.work.storage import ProbeReports, ProbeRequest
from icewright.model.work.tasks import TaskState
from icewright_spark.actions.groups import Job, Outcome, run_jobs
from icewright_spark.actions.phase import Phase
from icewright_spark.optimizer import engine as engine_module
from icewright_spark.optimizer.engine import SparkEngine
from icewright_spark.optimizer.optimizer import Optimizer
from tests.lakes.sqlite import append, make_table, writer
from tests.spark.conftest import settings
from tests.spark.loop import OPTIMIZER, DirectServer, SparkLoop

pytestmark = pytest.mark.spark

TABLES = 5
COMMITS = 5
"""As few as make small files worth merging."""


class Server(DirectServer):
    """Also hands out tasks and takes reports, ``expected`` of them; the task of table ``unwanted`` is cancelled."""

    def __init__(self, loop: SparkLoop, expected: int, unwanted: str | None = None) -> None:
        super().__init__(loop)
        self.unwanted = unwanted
        self._dispatcher, self._expected = loop.control.dispatcher, expected
        self.specs: dict[str, TaskSpec] = {}
        self.reports: dict[str, TaskReport] = {}
        self.done = threading.Event()

    def hello(self, hello: OptimizerHello) -> None:
        self._dispatcher.hello(hello)

    def claim(self, optimizer_id: str, request: ClaimRequest) -> TaskSpec | None:
        spec = self._dispatcher.claim(optimizer_id, request)
        if spec is not None:
            self.specs[spec.task_id] = spec
            if spec.table_name.name == self.unwanted:
                self._dispatcher.cancel(spec.task_id)
        return spec

    def report(self, report: TaskReport) -> None:
        self._dispatcher.report(report)
        self.reports[report.task_id] = report
        if len(self.reports) == self._expected:
            self.done.set()

    def probes(self, _optimizer_id: str) -> tuple[ProbeRequest, ...]:
        return ()

    def probed(self, _optimizer_id: str, _reports: ProbeReports) -> None:
        raise AssertionError


@pytest.fixture
def loop(spark: SparkSession, lake: CatalogEntry) -> SparkLoop:
    """Tables of small files, planned and queued."""
    loop = SparkLoop(spark, lake)
    for number in range(TABLES):
        table = make_table(lake, ("db", f"t{number}"))
        for commit in range(COMMITS):
            append(table, range(1000 * number + 10 * commit, 1000 * number + 10 * commit + 6))
        loop.control.maintainer.look(loop.name("db", f"t{number}"), plan_anew=True)
    return loop


def ids(loop: SparkLoop, number: int) -> list[int]:
    """Read from bytes."""
    return sorted(writer(loop.entry).load_table(f"db.t{number}").scan().to_arrow()["id"].to_pylist())


EXPECTED = [10 * commit + row for commit in range(COMMITS) for row in range(6)]


def carried_out(loop: SparkLoop, unwanted: str | None = None) -> Server:
    """Every task that waits, by a resident optimizer with one slot; verified."""
    server = Server(loop, TABLES, unwanted)
    changes = {"optimizer_id": OPTIMIZER, "slots": 1, "batch_tasks": 8, "batch_bytes": 1 << 20}
    optimizer = Optimizer(SparkEngine(loop.spark, server), server, settings((loop.entry,), **changes))
    thread = threading.Thread(target=optimizer.run)
    thread.start()
    finished = server.done.wait(120)
    optimizer.stop()
    thread.join(60)
    assert finished
    loop.control.loop.round()
    return server


def jobs_begun(spark: SparkSession) -> int:
    """How many jobs this Spark was ever given."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().nextJobId())


def test_tables_share_one_job_and_a_bad_or_cancelled_one_ends_alone(loop: SparkLoop, spark: SparkSession) -> None:
    bad = next(task for task in loop.tasks() if task.table_name == loop.name("db", "t2"))
    path = Path(bad.rewrite.groups[0].files[3].path.removeprefix("file://").removeprefix("file:"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-8] + bytes(8))
    before = jobs_begun(spark)

    server = carried_out(loop, unwanted="t4")

    assert jobs_begun(spark) - before == 1
    first = next(iter(server.specs))
    tracker = spark.sparkContext.statusTracker()
    (job_id,) = tracker.getJobIdsForGroup(f"batch of {first}/1/1")
    job = tracker.getJobInfo(job_id)
    assert job is not None
    (stage_id,) = job.stageIds
    stage = tracker.getStageInfo(stage_id)
    assert stage is not None
    assert stage.numTasks <= 4, "small groups share Spark tasks"
    path.write_bytes(whole)
    for number in range(TABLES):
        name = loop.name("db", f"t{number}")
        task = next(task for task in loop.tasks() if task.table_name == name)
        result = server.reports[task.task_id].result
        assert ids(loop, number) == [1000 * number + row for row in EXPECTED]
        if number == 2:
            assert isinstance(result, Failed), result
            assert (result.code, task.state) == ("file-unreadable", TaskState.FAILED)
            continue
        if number == 4:
            assert isinstance(result, Cancelled), result
            assert (len(live_files(loop, number)), task.state) == (COMMITS, TaskState.CANCELLED)
            continue
        assert isinstance(result, Committed), result
        assert task.state is TaskState.SUCCEEDED, task.outcome
        snapshot = writer(loop.entry).load_table(f"db.t{number}").current_snapshot()
        assert snapshot is not None
        assert snapshot.summary is not None
        assert snapshot.summary[TASK_ID_KEY] == task.task_id
        assert f";groups=1;records={COMMITS * 6};" in str(snapshot.summary[PROOF_KEY])
        assert len(live_files(loop, number)) == 1


def live_files(loop: SparkLoop, number: int) -> list[str]:
    files = writer(loop.entry).load_table(f"db.t{number}").inspect.data_files()
    return [str(path) for path in files["file_path"].to_pylist()]


def test_after_an_error_of_sparks_own_each_goes_alone_beside_what_was_written(
    loop: SparkLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []

    def fails_when_shared(
        context: SparkContext, jobs: Sequence[Sequence[Job]], phases: Sequence[Phase]
    ) -> list[list[Outcome]]:
        """The job is done, its files are there, and then its answer is lost."""
        calls.append(len(jobs))
        outcomes = run_jobs(context, jobs, phases)
        if len(jobs) > 1:
            assert sorted(phase.merged() for phase in phases) == [1] * TABLES
            raise RuntimeError("Python worker exited unexpectedly (crashed)")
        return outcomes

    monkeypatch.setattr(engine_module, "run_jobs", fails_when_shared)

    server = carried_out(loop)

    assert calls == [TABLES] + [1] * TABLES
    assert {type(report.result) for report in server.reports.values()} == {Committed}
    for number in range(TABLES):
        assert ids(loop, number) == [1000 * number + row for row in EXPECTED]
        (path,) = live_files(loop, number)
        assert path.endswith("-1-alone.parquet")
    assert {task.state for task in loop.tasks()} == {TaskState.SUCCEEDED}
