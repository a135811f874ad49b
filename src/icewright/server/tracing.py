"""Spans leave this process where somebody asks for it, by OpenTelemetry's own environment variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from opentelemetry import trace

from icewright import __version__
from icewright.core.extras import require_extra
from icewright.core.traces import is_wanted

SERVICE: Final = "icewright"


def export_spans(environ: Mapping[str, str]) -> None:
    """Set up the SDK and its exporter where an endpoint is named; else spans go nowhere, and cost nothing.

    Raises :class:`InvalidConfiguration` when one is named and the libraries are missing.
    """
    if not is_wanted(environ):
        return
    require_extra("otel", "spans for the endpoint that the environment names")
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - an extra
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - an extra
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - an extra
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - an extra

    named = {"service.version": __version__}
    if "OTEL_SERVICE_NAME" not in environ:
        named["service.name"] = SERVICE
    provider = TracerProvider(resource=Resource.create(named))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
