"""What a process tells of its work: spans of a task that find each other, and lines of the log that name their task."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import structlog
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from icewright.config.model import KafkaConfig
from icewright.configuration.load import load_config
from icewright.core.errors import InvalidConfiguration, Unavailable
from icewright.core.traces import ATTEMPT, TABLE, TASK_ID, is_wanted, trace_ids
from icewright.model.access.identity import GivenToken, NewToken
from icewright.model.access.permissions import Role
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.work.jobs import Committed
from icewright.model.work.tasks import TaskState
from icewright.ports.telemetry import watched
from icewright.server.tracing import export_spans
from icewright.terminal.address import ServerAddress
from icewright.terminal.logs import configure_logs
from icewright.work.launch.optimizer import settings_of
from icewright.work.launch.submission import Submission
from icewright_spark.optimizer.telemetry import attempting, configure_telemetry
from tests.builders.lakehouse import Lakehouse
from tests.builders.worker import Worker, at_work
from tests.narrowing import not_none

SECRET = "s3cr3t-of-this-test"  # noqa: S105 - not one
AWAY = {"ICEWRIGHT_OPTIMIZER__SERVER_URL": "http://127.0.0.1:1"}


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """What an exporter would get of the spans of this test."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    return exporter


@pytest.fixture
def logged(capsys: pytest.CaptureFixture[str]) -> Iterator[pytest.CaptureFixture[str]]:
    yield capsys
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


def lines(logged: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in logged.readouterr().err.splitlines()]


def trace_of(span: ReadableSpan) -> int:
    return int(not_none(span.context).trace_id)


def test_the_spans_of_a_task_are_in_one_trace_on_the_server_and_in_the_optimizer(
    exported: InMemorySpanExporter,
) -> None:
    house = Lakehouse().with_ready_table()
    house.control.loop.round()
    worker, spec = at_work(house)
    with attempting(spec):
        snapshot = worker.commit(spec)
    worker.report(spec, Committed(snapshot.snapshot_id))
    house.rounds(3)
    assert house.tasks.get(spec.task_id).state is TaskState.SUCCEEDED
    spans = exported.get_finished_spans()
    of_task = [span for span in spans if (span.attributes or {}).get(TASK_ID) == spec.task_id]
    assert [span.name for span in of_task] == ["claim", "attempt", "verify"]
    assert {trace_of(span) for span in of_task} == {trace_ids(spec.task_id)[0]}
    assert {(span.attributes or {})[TABLE] for span in of_task} == {str(spec.table_name)}
    assert {(span.attributes or {})[ATTEMPT] for span in of_task} == {1}
    looks = {span.context.span_id: span for span in spans if span.name == "look" and span.context is not None}
    (plan, *_) = [span for span in spans if span.name == "plan"]
    assert not_none(plan.parent).span_id in looks
    assert trace_of(plan) != trace_ids(spec.task_id)[0]


def test_no_span_holds_what_an_error_says(exported: InMemorySpanExporter) -> None:
    def fail() -> None:
        raise Unavailable(f"https://ada:{SECRET}@catalog.example.com does not answer")

    with pytest.raises(Unavailable), watched("look"):
        fail()
    with pytest.raises(ZeroDivisionError), watched("look"):
        raise ZeroDivisionError(SECRET)
    first, second = exported.get_finished_spans()
    assert SECRET not in first.to_json() + second.to_json()
    assert (first.status.description, second.status.description) == ("unavailable", "defect")
    assert (first.events, second.events) == ((), ())


def test_without_an_endpoint_spans_go_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: object) -> None:
        raise AssertionError("no provider is to be set")

    monkeypatch.setattr(trace, "set_tracer_provider", refused)
    export_spans({})
    export_spans({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"})
    assert not is_wanted({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"})
    with watched("look"):
        assert not trace.get_current_span().is_recording()


def test_with_an_endpoint_an_exporter_is_set_up_under_our_name(monkeypatch: pytest.MonkeyPatch) -> None:
    providers: list[TracerProvider] = []
    monkeypatch.setattr(trace, "set_tracer_provider", providers.append)
    export_spans({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1/v1/traces"})
    (provider,) = providers
    assert provider.resource.attributes["service.name"] == "icewright"
    provider.shutdown()


def test_an_endpoint_without_the_libraries_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)
    with pytest.raises(InvalidConfiguration) as caught:
        export_spans({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"})
    assert "icewright[otel]" in caught.value.hint


def test_each_line_of_a_tasks_work_says_its_task_and_its_table(logged: pytest.CaptureFixture[str]) -> None:
    configure_logs("json", "info")
    house = Lakehouse().with_ready_table()
    house.control.loop.round()
    worker, spec = at_work(house)
    with attempting(spec):
        structlog.get_logger("icewright.optimizer").info("of an attempt")
    worker.report(spec, Committed(worker.commit(spec).snapshot_id))
    house.catalog.damage(house.metadata().metadata_location)
    house.rounds(2)
    told = [line for line in lines(logged) if line["event"] in ("of an attempt", "put off", "task verified")]
    assert len(told) >= 2
    for line in told:
        assert (line["task"], line["table"]) == (spec.task_id, str(spec.table_name)), line
        assert {"timestamp", "level"} <= set(line)


def test_what_is_bound_to_a_task_ends_with_it(logged: pytest.CaptureFixture[str]) -> None:
    configure_logs("json", "info")
    house = Lakehouse().with_ready_table()
    house.control.loop.round()
    with attempting(Worker(house).claimed()):
        pass
    structlog.get_logger().info("after it")
    (line,) = [line for line in lines(logged) if line["event"] == "after it"]
    assert set(line) == {"event", "level", "timestamp"}


def test_a_traceback_in_json_shows_no_variables(logged: pytest.CaptureFixture[str]) -> None:
    configure_logs("json", "info")
    try:
        password = SECRET
        assert 1 / len(password[:0])
    except ZeroDivisionError:
        structlog.get_logger().exception("a defect")
    (line,) = lines(logged)
    assert "ZeroDivisionError" in str(line["exception"])
    assert SECRET not in json.dumps(line)


def test_t5_a_traceback_for_people_shows_no_variables_of_a_server_or_an_optimizer(
    tmp_path: Path, logged: pytest.CaptureFixture[str]
) -> None:
    settings = settings_of(load_config(None, AWAY, tmp_path), {})
    begins: list[Callable[[], None]] = [
        lambda: configure_logs("console", "info"),
        lambda: configure_telemetry(settings, {}),
    ]
    for begin in begins:
        begin()
        try:
            password = SECRET
            assert 1 / len(password[:0])
        except ZeroDivisionError:
            structlog.get_logger().exception("a defect")
        said = "".join(logged.readouterr())
        assert "ZeroDivisionError" in said
        assert SECRET not in said


def test_t5_what_holds_secrets_does_not_show_them_as_text(tmp_path: Path) -> None:
    secrets = {"token": SECRET}
    settings = replace(settings_of(load_config(None, AWAY, tmp_path), {}), token=SECRET, spark_conf=secrets)
    for holder in (
        settings,
        CatalogEntry("lake", CatalogKind.REST, "http://127.0.0.1:1", "", secrets),
        ServerAddress("http://127.0.0.1:1", SECRET, 1),
        KafkaConfig("127.0.0.1:1", "topic", "group", secrets),
        Submission((), secrets, secrets),
        GivenToken(SECRET, NewToken("a", (Role.VIEWER,), ("*",)).record("icw_", "owner", 0)),
    ):
        assert SECRET not in repr(holder)


def test_levels_and_formats_are_as_asked_for(logged: pytest.CaptureFixture[str]) -> None:
    configure_logs("console", "warning")
    structlog.get_logger().info("too quiet")
    structlog.get_logger().warning("heard", table="t")
    said = logged.readouterr().err
    assert "too quiet" not in said
    assert "heard" in said
    assert "table=t" in said
    for wrong in (("xml", "info"), ("json", "loud")):
        with pytest.raises(InvalidConfiguration):
            configure_logs(*wrong)


def test_an_optimizer_logs_as_its_supervisor_was_told(tmp_path: Path, logged: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "icewright.toml").write_text('[optimizer]\nserver_url = "http://127.0.0.1:1"\n', encoding="utf-8")
    config = load_config(tmp_path / "icewright.toml", {}, tmp_path)
    settings = settings_of(config, {"ICEWRIGHT_LOG_FORMAT": "json", "ICEWRIGHT_LOG_LEVEL": "warning"})
    configure_telemetry(settings, {})
    structlog.get_logger().info("too quiet")
    structlog.get_logger().warning("heard")
    (line,) = logged.readouterr().out.splitlines()
    assert json.loads(line)["event"] == "heard"
