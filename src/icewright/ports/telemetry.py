"""What this process notes of its own work: durations and lags for metrics, a span each, and words for the log.

Sums over all servers that must outlive any of them are the store's (:mod:`icewright.model.work.totals`). What is noted
here counts what this process did since it started, as Prometheus expects of a process: add it up over the servers. A
server adds what its further processes note (:mod:`icewright.server.process_figures`), so that whatever is here can be
added up. Spans go nowhere unless an SDK of OpenTelemetry is set up. Neither they nor labels hold texts of errors, which
may quote what strangers wrote: the code of an error says its kind.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, SpanContext, Status, StatusCode, TraceFlags
from opentelemetry.util.types import AttributeValue
from prometheus_client import CollectorRegistry, Counter, Histogram
from structlog.contextvars import bound_contextvars

from icewright.core.clock import Clock
from icewright.core.errors import IcewrightError
from icewright.core.traces import ATTEMPT, STEP, TABLE, TASK_ID, trace_ids
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import Snapshot, TableMetadata
from icewright.model.work.tasks import TaskHead

PROCESS: Final = CollectorRegistry(auto_describe=True)
"""What this process counts."""

_STEP_BOUNDS_S: Final = (0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0, 600.0)
_LAG_BOUNDS_S: Final = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0)

_STEPS: Final = Histogram(
    "icewright_step_duration_seconds",
    "Of the process: look, plan, claim, attempt, verify, settle, removal; the outcome is ok or the code of an error.",
    ("step", "outcome"),
    buckets=_STEP_BOUNDS_S,
    registry=PROCESS,
)
_LOOK_LAG: Final = Histogram(
    "icewright_look_lag_seconds",
    "Of the process: from a commit to the first look that saw it, by the writer's clock and this server's.",
    buckets=_LAG_BOUNDS_S,
    registry=PROCESS,
)
_COMMIT_TO_OPTIMIZED: Final = Histogram(
    "icewright_commit_to_optimized_seconds",
    "Of the process: from the last commit of others that a rewrite of data files took up to its verification.",
    buckets=_LAG_BOUNDS_S,
    registry=PROCESS,
)
_STATEMENTS: Final = Histogram(
    "icewright_store_statement_seconds",
    "Of the process: how long the store took for a statement; a transaction that writes waits its turn in its first.",
    buckets=(0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0),
    registry=PROCESS,
)
_REQUESTS: Final = Histogram(
    "icewright_http_request_duration_seconds",
    "Of the process: requests that were answered, by route; what no route answers is other.",
    ("method", "route", "status"),
    buckets=(0.01, 0.1, 1.0, 10.0),
    registry=PROCESS,
)
_PROCESS_DEATHS: Final = Counter(
    "icewright_process_deaths",
    "Of the process: further processes of this server that died, each of which another one follows.",
    registry=PROCESS,
)
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})


def note_statement(seconds: float) -> None:
    """The store has carried out a statement."""
    _STATEMENTS.observe(seconds)


def note_request(method: str, route: str | None, status: int, seconds: float) -> None:
    """A request was answered. ``route`` is a template, None where there is none for it; a method may be anything."""
    _REQUESTS.labels(method if method in _METHODS else "other", route or "other", status).observe(seconds)


def note_process_death() -> None:
    """A further process of this server has died."""
    _PROCESS_DEATHS.inc()


@contextmanager
def watched(step: str, task: TaskHead | None = None, *, table: TableName | None = None) -> Iterator[None]:
    """Note how long the block takes and how it ends, in a span of the task's trace; its log says task and table."""
    words = _words(task, table)
    attributes: dict[str, AttributeValue] = {STEP: step, **_attributes(words)}
    begun_s, outcome = time.perf_counter(), "ok"
    tracer = trace.get_tracer("icewright")
    with (
        bound_contextvars(**words),
        tracer.start_as_current_span(
            step,
            None if task is None else _of_task(task.task_id),
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span,
    ):
        try:
            yield
        except BaseException as error:
            outcome = error.code if isinstance(error, IcewrightError) else "defect"
            span.set_status(Status(StatusCode.ERROR, outcome))
            raise
        finally:
            _STEPS.labels(step, outcome).observe(time.perf_counter() - begun_s)


def _words(task: TaskHead | None, table: TableName | None) -> dict[str, str | int]:
    if task is not None:
        return {"task": task.task_id, "attempt": task.attempt, "table": str(task.table_name)}
    return {} if table is None else {"table": str(table)}


def _attributes(words: dict[str, str | int]) -> dict[str, AttributeValue]:
    names = {"table": TABLE, "task": TASK_ID, "attempt": ATTEMPT}
    return {names[name]: _printable(value) for name, value in words.items()}


def _printable(value: str | int) -> str | int:
    """Names may hold characters that UTF-8 cannot: an exporter would fail at them."""
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def _of_task(task_id: str) -> Context:
    """The context of a task's own trace: all processes make the same of its id, without telling each other."""
    trace_id, span_id = trace_ids(task_id)
    parent = SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    return trace.set_span_in_context(NonRecordingSpan(parent))


def note_look(metadata: TableMetadata, seen_before: int | None, clock: Clock) -> None:
    """A look saw a table, which had the snapshot ``seen_before`` when it was last looked at."""
    current = metadata.current_snapshot
    if current is not None and current.snapshot_id != seen_before and current.task_id is None:
        _LOOK_LAG.observe(max(0, clock.now() - current.committed_at) / 1_000)


def note_optimized(metadata: TableMetadata, rewrite: Snapshot, now: int) -> None:
    """The commit of a rewrite was verified."""
    taken_up = metadata.snapshot(rewrite.parent_id)
    while taken_up is not None and taken_up.task_id is not None:
        taken_up = metadata.snapshot(taken_up.parent_id)
    if taken_up is not None:
        _COMMIT_TO_OPTIMIZED.observe(max(0, now - taken_up.committed_at) / 1_000)
