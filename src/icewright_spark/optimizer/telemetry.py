"""The optimizer's log and spans. Both belong to the process of the driver; workers have neither.

A span is in the trace of its task, which its id alone tells (:mod:`icewright.core.traces`): the server's spans are in
the same. Spans go nowhere unless the environment names an endpoint.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import structlog
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, Status, StatusCode, TraceFlags
from opentelemetry.util.types import AttributeValue
from structlog.contextvars import bound_contextvars

from icewright.core.errors import InvalidConfiguration
from icewright.core.traces import ACTION, ATTEMPT, STEP, TABLE, TASK_ID, is_wanted, trace_ids
from icewright.model.work.jobs import TaskSpec
from icewright.model.work.optimizers import OptimizerSettings
from icewright_spark.optimizer.attempt_log import keep_warnings_of_python, keeping


def configure_telemetry(settings: OptimizerSettings, environ: Mapping[str, str]) -> None:
    """Log as the settings say; spans as the environment says. Raises :class:`InvalidConfiguration`."""
    # Not with local variables, as structlog's own tracebacks of either form: those may hold secrets.
    console = structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            keeping(settings),
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.dev.set_exc_info,
            *(
                [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
                if settings.log_format == "json"
                else [console]
            ),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[settings.log_level.upper()]),
    )
    keep_warnings_of_python(settings)
    if is_wanted(environ):
        _export_spans(environ)


@contextmanager
def attempting(spec: TaskSpec) -> Iterator[Span]:
    """What is logged within says its task, attempt and table; all of it is one span of the task's trace."""
    table = str(spec.table_name)
    trace_id, span_id = trace_ids(spec.task_id)
    parent = SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    attributes: dict[str, AttributeValue] = {
        STEP: "attempt",
        TASK_ID: spec.task_id,
        ATTEMPT: spec.attempt,
        TABLE: table.encode("utf-8", "backslashreplace").decode(),
        ACTION: spec.action.kind,
    }
    with (
        bound_contextvars(task=spec.task_id, attempt=spec.attempt, table=table),
        trace.get_tracer("icewright").start_as_current_span(
            "attempt",
            trace.set_span_in_context(NonRecordingSpan(parent)),
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span,
    ):
        try:
            yield span
        except BaseException:
            span.set_status(Status(StatusCode.ERROR, "defect"))
            raise


def _export_spans(environ: Mapping[str, str]) -> None:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415 - an extra
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise InvalidConfiguration(
            f"the environment names an endpoint for spans, and their exporter is missing: {error}",
            hint="install icewright with its extra: icewright[otel]",
        ) from error
    named = {} if "OTEL_SERVICE_NAME" in environ else {"service.name": "icewright-optimizer"}
    provider = TracerProvider(resource=Resource.create(named))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
