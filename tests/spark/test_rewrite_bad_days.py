"""Bad days of an attempt on real Spark: nothing is committed, the reason is clear, and the next attempt succeeds."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from icewright.core.errors import InvalidConfiguration
from icewright.model.actions.actions import Executor, FileGroup
from icewright.model.iceberg.catalog_entries import CatalogEntry
from icewright.model.iceberg.names import TableName
from icewright.model.work.jobs import Cancelled, Committed, CommitUnknown, Conflicted, Failed, TaskSpec
from icewright.model.work.tasks import TaskState
from icewright_spark.executors.staged import rewrite as staged_rewrite
from icewright_spark.optimizer.attempt import Attempt
from icewright_spark.optimizer.engine import SparkEngine
from icewright_spark.parquet.errors import ProofFailed
from icewright_spark.session.session import iceberg_version
from tests.lakes.sqlite import BY_CITY, append, make_table, writer
from tests.spark.loop import DirectServer, SparkLoop
from tests.waiting import until

pytestmark = pytest.mark.spark

CITIES = ("Bonn", "Ulm")
COMMITS = 5
"""As few as make small files worth merging."""
ROWS = COMMITS * 6


@pytest.fixture
def loop(spark: SparkSession, lake: CatalogEntry) -> SparkLoop:
    table = make_table(lake, spec=BY_CITY)
    for number in range(COMMITS):
        append(table, range(number * 10, number * 10 + 6), CITIES)
    return SparkLoop(spark, lake)


@pytest.fixture
def name(loop: SparkLoop) -> TableName:
    return loop.name("db", "events")


def snapshots(loop: SparkLoop) -> list[int]:
    return [snapshot.snapshot_id for snapshot in writer(loop.entry).load_table("db.events").metadata.snapshots]


def ids(loop: SparkLoop) -> list[int]:
    return sorted(writer(loop.entry).load_table("db.events").scan().to_arrow()["id"].to_pylist())


def rows_of(loop: SparkLoop, name: str) -> Counter[tuple[object, ...]]:
    columns = writer(loop.entry).load_table(name).scan().to_arrow().to_pydict()
    return Counter(zip(*columns.values(), strict=True))


def data_files(loop: SparkLoop) -> set[Path]:
    return set(Path(loop.entry.warehouse).rglob("*.parquet"))


def local(location: str) -> Path:
    return Path(location.removeprefix("file://").removeprefix("file:"))


def succeeds(loop: SparkLoop, spec: TaskSpec) -> None:
    before = ids(loop)
    report = loop.attempt(replace(spec, attempt=spec.attempt + 1))
    assert isinstance(report.result, Committed), report.result
    assert ids(loop) == before
    assert len(before) == ROWS


def _cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def _without_footer(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-8] + bytes(8))


@pytest.mark.parametrize(
    ("executor", "damage", "code", "retryable"),
    [
        # Another size than the manifest's is no bad moment of the storage: a person is to look at it.
        (Executor.MERGE, _cut_off, "file-changed", False),
        (Executor.MERGE, _without_footer, "file-unreadable", True),
        (Executor.MERGE, Path.unlink, "file-unreadable", True),
        (Executor.STAGED, _cut_off, "file-changed", False),
        (Executor.STAGED, Path.unlink, "file-unreadable", True),
    ],
)
def test_a_group_with_a_damaged_input_is_left_and_the_other_committed(
    loop: SparkLoop, name: TableName, damage: Callable[[Path], None], executor: Executor, code: str, *, retryable: bool
) -> None:
    spec = loop.claim(name)
    groups = tuple(replace(group, executor=executor) for group in spec.rewrite.groups)
    spec = replace(spec, action=replace(spec.rewrite, groups=groups))
    bad = spec.rewrite.groups[0]
    path = local(bad.files[3].path)
    whole, before = path.read_bytes(), ids(loop)
    damage(path)

    report = loop.attempt(spec)

    assert isinstance(report.result, Committed), report.result
    assert [(left.group_id, left.code, left.retryable) for left in report.left] == [(bad.group_id, code, retryable)]
    assert path.name in report.left[0].detail
    task = loop.verified(report)
    assert task.state is TaskState.SUCCEEDED, task.outcome
    assert task.outcome is not None
    assert f"1 failed ({code}: " in task.outcome.reason.text
    path.write_bytes(whole)
    assert ids(loop) == before
    assert len(before) == ROWS


def test_a_failed_proof_stops_every_group(loop: SparkLoop, name: TableName, monkeypatch: pytest.MonkeyPatch) -> None:
    spec, before = loop.claim(name), snapshots(loop)
    groups = tuple(replace(group, executor=Executor.STAGED) for group in spec.rewrite.groups)

    def wrong(group: FileGroup, *_: object) -> None:
        if group.group_id == 0:
            raise ProofFailed("the rows are others")

    monkeypatch.setattr(staged_rewrite, "check_same_rows", wrong)
    report = loop.attempt(replace(spec, action=replace(spec.rewrite, groups=groups)))

    assert isinstance(report.result, Failed), report.result
    assert report.result.code == "proof-failed"
    assert snapshots(loop) == before


def python_workers() -> list[psutil.Process]:
    """Spark's daemon of Python workers and the workers themselves."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if "pyspark.daemon" in process.cmdline():
                found.append(process)
        except psutil.NoSuchProcess:
            continue
    return found


@pytest.fixture
def hanging(spark: SparkSession) -> Iterator[list[psutil.Process]]:
    """Python workers that do not get on with anything."""
    spark.sparkContext.parallelize(range(4), 4).map(abs).collect()
    workers = python_workers()
    for process in workers:
        process.suspend()
    yield workers
    for process in workers:
        if process.is_running():
            process.resume()
    _make_spark_forget_the_dead(spark)


def _make_spark_forget_the_dead(spark: SparkSession) -> None:
    """Until Python jobs of both kinds work again: each worker that Spark keeps and that is gone costs it one."""
    same = udf(lambda number: number, "bigint")
    for _ in range(10):
        try:
            spark.range(0, 4, 1, 4).select(same("id")).collect()
            spark.sparkContext.parallelize(range(4), 4).map(abs).collect()
        except (Py4JJavaError, PySparkException):
            continue
        return
    raise AssertionError("Spark's Python workers do not come back")


def when_it_merges(loop: SparkLoop, act: Callable[[], None]) -> threading.Thread:
    """Does something once Spark's tasks have had two seconds to get hold of their Python workers, which hang."""
    tracker = loop.spark.sparkContext.statusTracker()

    def are_running() -> bool:
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        return any(stage is not None and stage.numActiveTasks for stage in stages)

    def run() -> None:
        until(are_running)
        time.sleep(2)
        act()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_python_workers_that_are_killed_fail_the_attempt_and_the_next_succeeds(
    loop: SparkLoop, name: TableName, hanging: list[psutil.Process]
) -> None:
    spec, before = loop.claim(name), snapshots(loop)

    def kill() -> None:
        for process in hanging:
            process.kill()

    killer = when_it_merges(loop, kill)
    report = loop.attempt(spec)
    killer.join()

    assert isinstance(report.result, Failed), report.result
    assert (report.result.code, report.result.retryable) == ("worker-died", True)
    assert snapshots(loop) == before
    left_behind = data_files(loop)
    succeeds(loop, spec)
    assert left_behind <= data_files(loop)


@contextmanager
def cramped(spark: SparkSession) -> Iterator[None]:
    """Python workers, those that are forked meanwhile too, get hardly more memory than they have."""
    workers = python_workers()
    for process in workers:
        process.rlimit(psutil.RLIMIT_AS, (process.memory_info().vms + (16 << 20), psutil.RLIM_INFINITY))
    try:
        yield
    finally:
        for process in workers:
            if process.is_running():
                process.rlimit(psutil.RLIMIT_AS, (psutil.RLIM_INFINITY, psutil.RLIM_INFINITY))
        _make_spark_forget_the_dead(spark)


def test_workers_that_run_out_of_memory_say_so_and_the_next_attempt_succeeds(
    spark: SparkSession, loop: SparkLoop, name: TableName
) -> None:
    table = make_table(loop.entry, ("db", "wide"))
    for number in range(8):
        append(
            table, range(number * 100, number * 100 + 100), [f"{number * 100 + row} " * 20_000 for row in range(100)]
        )
    spec, wide = loop.claim(loop.name("db", "wide")), rows_of(loop, "db.wide")
    succeeds(loop, loop.claim(name))  # the workers have loaded what they need

    with cramped(spark):
        report = loop.attempt(spec)

    assert isinstance(report.result, Failed), report.result
    assert (report.result.code, report.result.retryable) == ("out-of-memory", True), report.result
    assert isinstance(loop.attempt(replace(spec, attempt=2)).result, Committed)
    assert rows_of(loop, "db.wide") == wide


def test_cancelling_ends_the_jobs_and_the_attempt_though_the_workers_hang(
    loop: SparkLoop, name: TableName, hanging: list[psutil.Process]
) -> None:
    spec, before = loop.claim(name), snapshots(loop)

    def cancel() -> None:
        loop.control.dispatcher.cancel(spec.task_id)

    canceller = when_it_merges(loop, cancel)
    report = loop.attempt(replace(spec, lease_ms=600))
    canceller.join()

    assert isinstance(report.result, Cancelled), report.result
    until(lambda: not loop.spark.sparkContext.statusTracker().getActiveJobsIds())
    assert snapshots(loop) == before
    for process in hanging:
        process.resume()
    assert loop.control.dispatcher.report(report).state is TaskState.CANCELLED
    succeeds(loop, loop.claim(name))


def test_a_wish_to_cancel_before_the_first_job_reaches_it(loop: SparkLoop, name: TableName) -> None:
    """Spark forgets the cancelling of a group that has no job yet, unless it is asked to remember."""
    spec = loop.claim(name)
    attempt = Attempt(loop.spark, DirectServer(loop), spec)
    loop.control.dispatcher.cancel(spec.task_id)
    attempt.lease.beat()
    before = data_files(loop)

    result = attempt.run().result

    assert isinstance(result, Cancelled), result
    assert data_files(loop) == before


def test_w10_an_output_that_stands_there_already_is_not_written_over(loop: SparkLoop, name: TableName) -> None:
    spec, before = loop.claim(name), snapshots(loop)
    group = spec.rewrite.groups[0]
    taken = local(group.files[0].path).parent / f"{group.group_id:05d}-{spec.task_id}-{spec.attempt}.parquet"
    taken.write_text("somebody's")

    report = loop.attempt(spec)

    assert isinstance(report.result, Committed), report.result
    assert [(left.group_id, left.code) for left in report.left] == [(group.group_id, "output-exists")]
    assert taken.read_text() == "somebody's"
    assert len(snapshots(loop)) == len(before) + 1


def test_storage_that_takes_nothing_is_said_clearly_and_tried_again(
    loop: SparkLoop, name: TableName, lake: CatalogEntry
) -> None:
    with writer(lake).load_table("db.events").transaction() as change:
        change.set_properties({"write.data.path": "file:///proc/nowhere"})
    spec, before = loop.claim(name), snapshots(loop)

    report = loop.attempt(spec)

    assert isinstance(report.result, Failed), report.result
    assert (report.result.code, report.result.retryable) == ("output-unwritable", True)
    assert "/proc/nowhere" in report.result.detail
    assert snapshots(loop) == before
    with writer(lake).load_table("db.events").transaction() as change:
        change.remove_properties("write.data.path")
    succeeds(loop, spec)


def test_l4_a_table_created_again_right_before_the_commit_is_not_touched(
    loop: SparkLoop, name: TableName, lake: CatalogEntry
) -> None:
    spec = loop.claim(name)

    def create_again() -> None:
        writer(lake).drop_table("db.events")
        append(make_table(lake), range(3))

    loop.before_commit = create_again
    report = loop.attempt(spec)

    assert isinstance(report.result, (CommitUnknown, Conflicted, Failed)), report.result
    assert ids(loop) == [0, 1, 2]
    assert len(snapshots(loop)) == 1


def test_many_attempts_leave_few_pools_and_no_local_properties_behind(loop: SparkLoop, name: TableName) -> None:
    spec = loop.claim(name)
    engine = SparkEngine(loop.spark, DirectServer(loop))
    assert engine.alive()
    scheduler = loop.spark.sparkContext._jsc.sc()
    first = engine.attempt(spec, claimed_s=time.monotonic(), pool="icewright-0")
    pools = scheduler.getAllPools().size()
    for number in range(2, 4):
        engine.attempt(replace(spec, attempt=number), claimed_s=time.monotonic(), pool="icewright-0")
    assert isinstance(first.result, Committed), first.result
    assert scheduler.getAllPools().size() == pools


def test_what_safety_depends_on_is_so_in_the_session_and_secrets_are_not_on_the_command_line(
    spark: SparkSession,
) -> None:
    conf = spark.sparkContext.getConf()
    assert conf.get("spark.speculation") == "false"
    assert conf.get("spark.task.maxFailures") == "1"
    assert conf.get("spark.scheduler.mode") == "FAIR"
    assert conf.get("spark.sql.shuffle.partitions") == "2"  # set by the user, and on no command line:
    lines = [" ".join(process.cmdline()) for process in psutil.Process().children()]  # servers of other tests as well
    (line,) = [line for line in lines if "org.apache.spark.deploy.SparkSubmit" in line]
    assert "spark.master=local[2]" in line
    assert "shuffle" not in line
    assert iceberg_version(spark).startswith("1.12")


def test_a_session_without_iceberg_says_so(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    class Nothing:
        def __getattr__(self, _name: str) -> Nothing:
            return self

    monkeypatch.setattr("icewright_spark.session.session.java_gateway", lambda _spark: Nothing())
    with pytest.raises(InvalidConfiguration, match="class path"):
        iceberg_version(spark)
