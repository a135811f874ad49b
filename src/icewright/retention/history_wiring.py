"""Keeps the history of tasks beside a server, where its configuration names a table for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from icewright.config.model import Config
from icewright.config.secrets import resolve_entry
from icewright.core.system_clock import running
from icewright.model.work.retention import DAY_MS
from icewright.ports.store import TaskStore
from icewright.retention.history import HistoryProgress, HistoryWriter
from icewright.retention.history_table import PyIcebergHistory

_END_S: Final = 10.0
"""How long the end of the server waits for a commit; whether it was made, the table says to the next one."""


def history_progress(config: Config) -> HistoryProgress | None:
    """Where it is noted how far the history is; None where nobody wants one."""
    return None if config.history.catalog is None else HistoryProgress(config.history.hold_days * DAY_MS)


@contextmanager
def keeping_history(
    config: Config, environ: Mapping[str, str], tasks: TaskStore, progress: HistoryProgress | None
) -> Iterator[None]:
    """Copy tasks that have ended while the block runs, and tell how far that is.

    ``progress`` is that of :func:`history_progress`. Raises :class:`InvalidConfiguration`.
    """
    name = config.history.name
    if name is None or progress is None:
        yield
        return
    table = PyIcebergHistory(resolve_entry(config.catalog(name.catalog), environ), name)
    writer = HistoryWriter(tasks, table, progress)
    stop = threading.Event()
    thread = threading.Thread(target=writer.run, args=(stop,), name="history", daemon=True)
    with running([thread], stop, _END_S):
        yield
