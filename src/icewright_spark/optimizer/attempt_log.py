"""What is logged while an attempt runs, kept for its task: the last lines, without secrets.

They are sent with what is sent anyway, heartbeats and the report, and delay neither.

A thread logs for the attempts of its context: that of an attempt for its own, and threads beside it for those that
they work for. What no thread of an attempt logs is of no task.
"""

from __future__ import annotations

import logging
import re
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from typing import Any, Final
from urllib.parse import unquote

from structlog.typing import EventDict, Processor

from icewright.core.times import Instant
from icewright.core.wording import safe
from icewright.model.access.secrets_in_text import SecretsInText, passwords_in, secret_values
from icewright.model.work.optimizers import OptimizerSettings
from icewright.model.work.tasks import (
    LINE_LENGTH_MAX,
    LINES_MAX,
    LOG_BYTES_MAX,
    LogLevel,
    LogLine,
    LogLines,
    newest_lines,
)

BEAT_BYTES_MAX: Final = 8 * 1024
"""Of the texts that one heartbeat carries, whose body is bounded."""
BEAT_LINES_MAX: Final = 50
_FRAMES_MAX: Final = 5
"""So many frames in a row are kept of a trace of Java's, which has hundreds of them."""
_READ_MAX: Final = 256 * 1024
"""So many characters of an entry are read."""
_SAID_ELSEWHERE: Final = frozenset({"task", "attempt", "table", "event", "level", "timestamp", "exc_info"})
_LEVELS: Final = frozenset(LogLevel)
_PLACE: Final = re.compile(r'^(\s*File ")[^"]*/(?:site-packages|lib/python[\d.]+|src)/')
"""Where the code lies on the machine of the optimizer, in a trace of Python's."""
_PYTHON_LOGGERS: Final = ("py.warnings", "pyspark")
"""Of Spark's Python side, from warnings up."""


class AttemptLog:
    """The last lines of one attempt, and which of them the server has. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: deque[LogLine] = deque()
        self._last = self._sent = 0

    def add(self, lines: Iterable[LogLine]) -> None:
        """Keep some more, in place of the oldest where they are too many."""
        with self._lock:
            for line in lines:
                self._lines.append(line)
                self._last += 1
            for _ in range(len(self._lines) - newest_lines(reversed(self._lines))):
                self._lines.popleft()

    def unsent(self, lines_max: int = LINES_MAX, bytes_max: int = LOG_BYTES_MAX) -> LogLines | None:
        """The first of those that the server has not; None where it has all that are kept."""
        with self._lock:
            kept_from = self._last - len(self._lines)
            skipped = max(0, self._sent - kept_from)
            found: list[LogLine] = []
            size_bytes = 0
            for line in islice(self._lines, skipped, skipped + lines_max):
                size_bytes += line.size_bytes
                if size_bytes > bytes_max:
                    break
                found.append(line)
            return LogLines(kept_from + skipped + 1, tuple(found)) if found else None

    def was_sent(self, lines: LogLines) -> None:
        """The server has these."""
        with self._lock:
            self._sent = max(self._sent, lines.last)


_logs: ContextVar[Sequence[AttemptLog]] = ContextVar("icewright_attempt_logs", default=())
_running: list[AttemptLog] = []
"""Those of all attempts that run; changed by appending and removing alone."""


@contextmanager
def kept_log() -> Iterator[AttemptLog]:
    """What is logged within is kept as an attempt's."""
    log = AttemptLog()
    _running.append(log)
    try:
        with logging_for((log,)):
            yield log
    finally:
        _running.remove(log)


@contextmanager
def logging_for(logs: Sequence[AttemptLog]) -> Iterator[None]:
    """What is logged within is kept for these."""
    before = _logs.set(logs)
    try:
        yield
    finally:
        _logs.reset(before)


def logs_here() -> Sequence[AttemptLog]:
    """Those for which this thread logs."""
    return _logs.get()


def logs_of_all() -> Sequence[AttemptLog]:
    """Those of all attempts that run at any later moment: for what concerns each of them."""
    return _running


def secrets_of(settings: OptimizerSettings) -> SecretsInText:
    """What nothing says that leaves this optimizer."""
    return SecretsInText(_known(settings))


def keeping(settings: OptimizerSettings) -> Processor:
    """A processor of structlog that keeps what is logged, behind those that say level and context; changes nothing."""
    secrets = secrets_of(settings)

    def keep(_logger: Any, _method: str, event: EventDict) -> EventDict:
        _keep(lambda at: lines_of(event, secrets, at))
        return event

    return keep


def _keep(lines: Callable[[Instant], Iterable[LogLine]]) -> None:
    """Keep lines for those for which this thread logs; an attempt, and its report, never fail by what it logs."""
    logs = tuple(_logs.get())
    if not logs:
        return
    try:
        kept = list(lines(time.time_ns() // 1_000_000))
    except Exception as error:  # noqa: BLE001 - texts, values and clocks of strangers; what becomes of it is told
        kept = [LogLine(0, LogLevel.ERROR, f"a line could not be kept: {type(error).__name__}")]
    for log in logs:
        log.add(kept)


def keep_warnings_of_python(settings: OptimizerSettings) -> None:
    """Keep also what Spark's Python side and Python itself warn of; it goes to standard error as before."""
    secrets = secrets_of(settings)
    logging.captureWarnings(capture=True)
    for name in _PYTHON_LOGGERS:
        logger = logging.getLogger(name)
        if not any(isinstance(handler, _Keeper) for handler in logger.handlers):
            logger.addHandler(_Keeper(secrets))
            if logging.lastResort is not None:
                logger.addHandler(logging.lastResort)


def lines_of(event: EventDict, secrets: SecretsInText, at: Instant) -> Iterator[LogLine]:
    """An entry of the log as lines: what it says with its figures, and each line of the trace of its error."""
    figures = (f"{key}={value}" for key, value in event.items() if key not in _SAID_ELSEWHERE)
    text = " ".join((str(event.get("event", "")), *figures))
    error = event.get("exc_info")
    if error is True:
        error = sys.exc_info()[1]
    said = [text] if not isinstance(error, BaseException) else [text, *traceback.format_exception(error)]
    return _tidy("\n".join(said), str(event.get("level")), secrets, at)


def _tidy(text: str, level: str, secrets: SecretsInText, at: Instant) -> Iterator[LogLine]:
    shown_level = LogLevel(level) if level in _LEVELS else LogLevel.INFO
    for line in islice(_without_deep_frames(secrets.masked(_bounded(text)).splitlines()), LINES_MAX):
        shown = safe(_PLACE.sub(r"\1", line.rstrip()).expandtabs(4))
        yield LogLine(at, shown_level, shown if len(shown) <= LINE_LENGTH_MAX else shown[: LINE_LENGTH_MAX - 3] + "...")


def _bounded(text: str) -> str:
    """The whole lines at its beginning of what would keep all threads waiting while it is read."""
    if len(text) <= _READ_MAX:
        return text
    begin, _, last = text[:_READ_MAX].rpartition("\n")
    return f"{begin or last[: LINE_LENGTH_MAX * 2]}\n..."


def _without_deep_frames(lines: Iterable[str]) -> Iterator[str]:
    """Traces of Java's by what they say and the first frames of each."""
    frames = 0
    for line in lines:
        is_frame = line.startswith(("\tat ", "        at "))
        frames = frames + 1 if is_frame else 0
        if frames <= _FRAMES_MAX and line.strip():
            yield line


def _known(settings: OptimizerSettings) -> Iterator[str]:
    """The secrets that an optimizer is started with."""
    yield settings.token
    if settings.queries_hash_key is not None:
        yield settings.queries_hash_key
    yield from secret_values(settings.spark_conf)
    for catalog in settings.catalogs:
        yield from secret_values(catalog.properties)
        for password in passwords_in(catalog.uri):
            yield from (password, unquote(password))


class _Keeper(logging.Handler):
    """Keeps what is logged by Python's own logging."""

    def __init__(self, secrets: SecretsInText) -> None:
        super().__init__(logging.WARNING)
        self._secrets = secrets

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one record."""
        _keep(lambda at: _tidy(record.getMessage(), record.levelname.lower(), self._secrets, at))
