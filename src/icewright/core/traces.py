"""What spans say of icewright, and by what the spans of one task find each other across processes.

The trace of a task is told by its id alone: server and optimizers need not hand anything on, and releases that know
nothing of spans may stand between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Final

TASK_ID: Final = "icewright.task.id"
ATTEMPT: Final = "icewright.task.attempt"
TABLE: Final = "icewright.table"
STEP: Final = "icewright.step"
ACTION: Final = "icewright.action"
RESULT: Final = "icewright.result"


def is_wanted(environ: Mapping[str, str]) -> bool:
    """Whether OpenTelemetry's own variables say where spans go, and nothing speaks against it."""
    named = any(environ.get(name) for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"))
    is_off = environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or environ.get("OTEL_TRACES_EXPORTER") == "none"
    return named and not is_off


def trace_ids(task_id: str) -> tuple[int, int]:
    """The trace id (128 bits) and the id of the span (64 bits) under which all spans of a task hang; neither is 0."""
    digest = sha256(task_id.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:16]) or 1, int.from_bytes(digest[16:24]) or 1
