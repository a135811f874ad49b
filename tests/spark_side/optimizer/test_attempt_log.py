"""What is logged goes to the attempts that it is about, in lines that show no secret and nothing that acts."""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
import structlog

from icewright.core.errors import ServerUnavailable, Unavailable
from icewright.model.access.secrets_in_text import SecretsInText
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.work.jobs import Heartbeat, HeartbeatReply
from icewright.model.work.tasks import LINE_LENGTH_MAX, LINES_MAX, LogLevel, Progress
from icewright_spark.actions.phase import Phase
from icewright_spark.optimizer.attempt_log import (
    AttemptLog,
    keeping,
    kept_log,
    lines_of,
    logging_for,
    logs_here,
    logs_of_all,
    secrets_of,
)
from icewright_spark.optimizer.batch import Batch
from icewright_spark.optimizer.cluster_executors import Executors
from icewright_spark.optimizer.lease import LeaseRenewer
from icewright_spark.optimizer.telemetry import configure_telemetry
from tests.builders.specs import settings_of, spec_of
from tests.cases import each_case
from tests.spark_side.optimizer.test_batch import Spark, jobs
from tests.spark_side.optimizer.test_cluster_executors import Cluster
from tests.waiting import until

SECRET = "hunter2-of-this-test"  # noqa: S105 - to be looked for
JAVA = "\n".join(
    [
        "An error occurred while calling o123.commit.",
        ": org.apache.spark.SparkException: Job aborted",
        *(f"\tat org.apache.spark.Frame{number}.run(Frame.java:{number})" for number in range(80)),
        "Caused by: java.io.IOException: No space left on device",
        *(f"\tat java.io.Frame{number}.write(Frame.java:{number})" for number in range(80)),
        "\t... 12 more",
    ]
)


@pytest.fixture
def log() -> Iterator[structlog.stdlib.BoundLogger]:
    """A logger as an optimizer has it."""
    catalog = CatalogEntry("lake", CatalogKind.REST, f"http://u:{SECRET}@h", "", {"token": SECRET})
    configure_telemetry(settings_of(token=SECRET, catalogs=(catalog,)), {})
    yield structlog.get_logger("icewright.optimizer")
    structlog.reset_defaults()
    logging.captureWarnings(capture=False)
    for name in ("py.warnings", "pyspark"):
        logging.getLogger(name).handlers.clear()


def texts(kept: AttemptLog) -> list[str]:
    lines = kept.unsent()
    return [] if lines is None else [line.text for line in lines.lines]


def said_of(error: BaseException) -> list[str]:
    return [line.text for line in lines_of({"event": "failed", "exc_info": error}, SecretsInText(), 1)]


def test_each_attempt_has_what_its_own_thread_logs(log: Any) -> None:
    found: dict[str, list[str]] = {}
    both = threading.Barrier(2)

    def attempt(name: str) -> None:
        with kept_log() as kept, structlog.contextvars.bound_contextvars(task=name, table="t"):
            both.wait(60)
            log.info("task started", action=name)
            both.wait(60)
            found[name] = texts(kept)

    threads = [threading.Thread(target=attempt, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    log.info("of no attempt")
    for thread in threads:
        thread.join(60)
    assert found == {"a": ["task started action=a"], "b": ["task started action=b"]}
    assert logs_here() == ()


def test_what_concerns_all_or_some_goes_to_each_that_runs(log: Any) -> None:
    def beside() -> None:
        with logging_for(logs_of_all()):
            log.warning("waiting for executors", at_most_s=300)

    with kept_log() as first:
        with kept_log() as second:
            thread = threading.Thread(target=beside)
            thread.start()
            thread.join(60)
        with logging_for((first, second)):
            log.info("tasks share a job")
        beside()
    log.warning("nobody runs")
    assert texts(first) == ["waiting for executors at_most_s=300", "tasks share a job", texts(first)[0]]
    assert texts(second) == texts(first)[:2]


@pytest.mark.usefixtures("log")
def test_attempts_that_share_a_job_each_have_what_became_of_it() -> None:
    spark = Spark(bad=frozenset({1}))
    spark.go.set()
    batch = Batch(spark, "batch-1")
    members = [batch.member() for _ in range(2)]
    batch.close()

    def attempt(number: int) -> list[str]:
        with kept_log() as kept, suppress(RuntimeError):  # the error of Spark's that its own group brings
            members[number].carry(jobs(number), Phase(1))
        return texts(kept)

    with ThreadPoolExecutor(2) as pool, kept_log() as another:
        found = list(pool.map(attempt, range(2)))
    for said in found:
        assert "tasks share a job tasks=2 groups=2" in said
        assert any(text.startswith("a shared job failed, its tasks continue alone") for text in said)
    assert texts(another) == []


@pytest.mark.usefixtures("log")
def test_all_that_run_are_told_of_executors_that_do_not_come() -> None:
    executors = Executors(Cluster(), 0.02)
    with kept_log() as first, kept_log() as second:
        executors.start()
        until(lambda: texts(first) != [] and texts(second) != [])
        executors.close()
    for kept in (first, second):
        assert texts(kept)[0].startswith("no executors: jobs are cancelled, nothing more is claimed detail=")


def test_the_thread_that_keeps_a_lease_logs_for_its_attempt(log: Any) -> None:

    class Away:
        def heartbeat(self, _task_id: str, _heartbeat: Heartbeat) -> HeartbeatReply:
            raise ServerUnavailable("nobody there")

    log.info("of no attempt")
    with kept_log() as kept:
        spec = replace(spec_of(), lease_ms=30)
        renewer = LeaseRenewer(Away(), spec, lambda: Progress("merging", 0, 1), lambda: None, log=kept)
        renewer.start()
        until(lambda: len(texts(kept)) > 1)
        renewer.close()
    assert texts(kept)[0] == "a heartbeat is not answered detail=nobody there"
    assert texts(kept)[1].startswith("the lease is lost detail=the server did not answer")
    assert len(texts(kept)) == 2, "once each"


def test_levels_are_as_they_were_logged_and_what_is_not_logged_is_not_kept(log: Any) -> None:
    with kept_log() as kept:
        log.debug("too quiet")
        log.info("a")
        log.critical("b")
    lines = kept.unsent()
    assert lines is not None
    assert [(line.level, line.text) for line in lines.lines] == [(LogLevel.INFO, "a"), (LogLevel.CRITICAL, "b")]


def read_over_the_net() -> None:
    cause = OSError(f"GET http://u:{SECRET}@h/x failed")
    raise Unavailable(f"Spark could not load lake.db.t: token={SECRET}") from cause


def test_an_error_is_told_with_its_causes_and_without_secrets(log: Any) -> None:
    with kept_log() as kept:
        try:
            read_over_the_net()
        except Unavailable as error:
            log.warning("what ended the attempt", exc_info=error, detail=f"said {SECRET}")
    said = "\n".join(texts(kept))
    assert SECRET not in said
    assert "what ended the attempt detail=said ***" in said
    assert "OSError: GET http://u:***@h/x failed" in said
    assert "Unavailable: Spark could not load lake.db.t: token=***" in said


def test_of_a_trace_of_java_s_its_sentences_and_first_frames_are_kept() -> None:
    said = said_of(RuntimeError(JAVA))
    assert sum("    at " in line for line in said) == 10
    for sentence in ("Job aborted", "Caused by: java.io.IOException: No space left on device", "... 12 more"):
        assert any(sentence in line for line in said), sentence


@each_case("text", ["a\x1b[31mb", "a\x00b", "\u202ea", "\ud800", "a\u2028b", "a\tb", "\r", "x" * 100_000])
def test_what_acts_is_shown_as_what_it_is(text: str) -> None:
    for line in lines_of({"event": "failed", "detail": text}, SecretsInText(), 1):
        assert line.text.isprintable()
        assert len(line.text) <= LINE_LENGTH_MAX


def test_an_error_of_a_million_lines_is_cut() -> None:
    lines = list(lines_of({"event": "x\n" * 1_000_000}, SecretsInText(), 1))
    assert len(lines) == LINES_MAX


def test_of_an_error_that_would_keep_all_threads_waiting_the_beginning_is_read() -> None:
    read: list[int] = []

    class Reader(SecretsInText):
        def masked(self, text: str) -> str:
            read.append(len(text))
            return super().masked(text)

    for long in ("x" * 10_000_000, "x y\n" * 1_000_000, f"a\n{'x' * 10_000_000}"):
        lines = list(lines_of({"event": long}, Reader(), 1))
        assert 0 < len(lines) <= LINES_MAX
    assert max(read) <= 256 * 1024 + 4


class Hostile:
    def __str__(self) -> str:
        raise RuntimeError(SECRET)


def test_what_cannot_be_said_ends_no_attempt(log: Any) -> None:
    structlog.configure(
        processors=[keeping(settings_of()), lambda *_: ""], logger_factory=structlog.ReturnLoggerFactory()
    )
    with kept_log() as kept:
        structlog.get_logger("of another").info("begins", value=Hostile())
        log.info("goes on")
        logging.getLogger("pyspark").handlers[0].handle(
            logging.LogRecord("pyspark", logging.WARNING, "x", 1, "%d files", ("no number",), None)
        )
    assert texts(kept) == [
        "a line could not be kept: RuntimeError",
        "goes on",
        "a line could not be kept: TypeError",
    ]


def test_where_code_lies_on_the_machine_is_not_told() -> None:
    place = '  File "/opt/icewright/lib/python3.11/site-packages/pyspark/sql/session.py", line 3, in sql'
    (line,) = lines_of({"event": place}, SecretsInText(), 1)
    assert line.text == '  File "pyspark/sql/session.py", line 3, in sql'


def test_what_python_warns_of_is_kept_as_well_and_shown_as_before(log: Any, capfd: pytest.CaptureFixture[str]) -> None:
    with kept_log() as kept:
        warnings.warn(f"deprecated: {SECRET}", UserWarning, stacklevel=1)
        logging.getLogger("pyspark").warning("a column has no name")
        logging.getLogger("pyspark").info("too quiet")
        log.info("after")
    assert any("UserWarning: deprecated: ***" in line for line in texts(kept))
    assert texts(kept)[-2:] == ["a column has no name", "after"]
    shown = capfd.readouterr().err
    assert "UserWarning" in shown
    assert "a column has no name" in shown


def test_the_secrets_of_an_optimizer_are_those_that_it_is_started_with() -> None:
    catalog = CatalogEntry("lake", CatalogKind.SQL, "postgresql://u:of-uri@h/db", "", {"s3.secret-access-key": "of-s3"})
    conf = {"spark.hadoop.fs.s3a.secret.key": "of-conf", "spark.executor.memory": "open"}
    settings = settings_of(catalogs=(catalog,), spark_conf=conf, queries_hash_key="of-hash")
    quoted = CatalogEntry("lake", CatalogKind.SQL, "postgresql://u:p%40ss%2Fw@h/db", "", {})
    assert secrets_of(settings_of(catalogs=(quoted,))).masked("as p@ss/w and p%40ss%2Fw") == "as *** and ***"
    assert secrets_of(settings).masked("the-token of-s3 of-uri of-conf of-hash open") == "*** *** *** *** *** open"
