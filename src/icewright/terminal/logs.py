"""How a process logs: lines for people or JSON for programs, to standard error, from a level on."""

from __future__ import annotations

import logging
import sys
from typing import Final

import structlog
from structlog.typing import Processor

from icewright.core.errors import InvalidConfiguration
from icewright.model.work.optimizers import LOG_FORMATS, LOG_LEVELS

FORMAT_VARIABLE: Final = "ICEWRIGHT_LOG_FORMAT"
LEVEL_VARIABLE: Final = "ICEWRIGHT_LOG_LEVEL"


def configure_logs(form: str, level: str) -> None:
    """Log so from now on. Each line has what its task binds: its id, its attempt and its table.

    Raises :class:`InvalidConfiguration`.
    """
    if form not in LOG_FORMATS:
        raise InvalidConfiguration(f"--log-format: {form!r} is not allowed", hint=", ".join(LOG_FORMATS))
    if level not in LOG_LEVELS:
        raise InvalidConfiguration(f"--log-level: {level!r} is not allowed", hint=", ".join(LOG_LEVELS))
    # Not with local variables, as structlog's own tracebacks of either form: those may hold secrets.
    console = structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
    )
    last: list[Processor] = [structlog.dev.set_exc_info, console]
    if form == "json":
        last = [structlog.dev.set_exc_info, structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *last,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
