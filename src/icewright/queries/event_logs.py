"""Reads Spark's event logs out of folders, again whenever one has grown: what was read before is known by its id."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, TypeAlias

import structlog

from icewright.core.clock import Clock
from icewright.core.errors import IcewrightError, InvalidMessage
from icewright.model.queries.bounds import bounded_ones
from icewright.model.queries.queries import QuerySource
from icewright.queries.service import QueryLog
from icewright.queries.spool import LOG_IDS_KEPT_MS

_log = structlog.get_logger("icewright.queries")

READ_EVERY_S: Final = 20.0
SHARE_MAX: Final = 0.1
"""Of the time, what reading one log that grows may take: a large one is read less often."""
_AT_ONCE: Final = 500

_State: TypeAlias = tuple[tuple[str, int, int], ...]
"""Names, sizes and times of the files of a log."""


class EventLogReader:
    """Reads all event logs below some folders; one thread of it."""

    def __init__(self, log: QueryLog, folders: Sequence[str], clock: Clock) -> None:
        self._log, self._folders, self._clock = log, [Path(folder) for folder in folders], clock
        self._seen: dict[Path, _State] = {}
        self._not_before: dict[Path, float] = {}

    def run(self, stop: threading.Event) -> None:
        """Go on until ``stop`` is set. Nothing that fails ends it."""
        while not stop.is_set():
            try:
                self.read(stop)
            except IcewrightError as error:
                _log.warning("reading event logs is put off", code=error.code, detail=error.message)
            except Exception:  # noqa: BLE001 - the thread's outermost edge: the server goes on without event logs
                _log.exception("reading event logs failed")
            stop.wait(READ_EVERY_S)

    def read(self, stop: threading.Event) -> int:
        """Read what has grown; how many queries there were. Raises what the spool raises: then it is read again."""
        number = 0
        for path in self._logs():
            state, now_s = _state(path), time.monotonic()
            if stop.is_set() or not state or state == self._seen.get(path):
                continue
            if now_s < self._not_before.get(path, 0.0):
                continue
            found, is_complete = self._read(path, stop)
            number += found
            if is_complete:
                self._seen[path] = state
            self._not_before[path] = time.monotonic() + (time.monotonic() - now_s) / SHARE_MAX
        return number

    def _read(self, path: Path, stop: threading.Event) -> tuple[int, bool]:
        """How many queries there were, and whether the log was read to its end: else it is read again.

        What is older than its id would be known is left out: it may have been counted before.
        """
        from icewright.queries.sources.spark_events import read_event_log  # noqa: PLC0415 - with sqlglot, which takes 0.7 s of CPU to load

        number, refused, is_complete = 0, 0, True
        oldest = self._clock.now() - LOG_IDS_KEPT_MS

        def refuse(_error: InvalidMessage) -> None:
            nonlocal refused
            refused += 1

        try:
            found = read_event_log(path, self._log.rules, refuse)
            while not stop.is_set() and (batch := [*islice(found, _AT_ONCE)]):
                number += len(batch)
                recent = [self._log.named(query) for query in batch if query.started_at > oldest]
                self._log.take([*bounded_ones(recent, self._clock.now(), refuse)])
            is_complete = not stop.is_set()
        except InvalidMessage as error:
            _log.warning("an event log cannot be read", log=str(path), detail=error.message)
        except OSError as error:  # of this moment: it is read again
            _log.warning("an event log cannot be read now", log=str(path), detail=str(error))
            is_complete = False
        if refused:
            self._log.count_malformed(QuerySource.SPARK, refused)
            _log.warning("lines of an event log cannot be read", log=str(path), lines=refused)
        return number, is_complete

    def _logs(self) -> Iterator[Path]:
        for folder in self._folders:
            try:
                yield from sorted(path for path in folder.iterdir() if not path.name.startswith("."))
            except OSError as error:
                _log.warning("a folder of event logs cannot be read", folder=str(folder), detail=error.strerror)


def _state(path: Path) -> _State:
    """Nothing of a log that went meanwhile."""
    from icewright.queries.sources.spark_events import event_files  # noqa: PLC0415 - with sqlglot, which takes 0.7 s of CPU to load

    try:
        stats = [(file.name, file.stat()) for file in event_files(path)]
    except OSError:
        return ()
    return tuple((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)
