"""What a server's further processes count, added to what it counts itself: they have no port to be asked at.

Each sends its figures every few seconds, by a pipe of its own. A thread of the server reads each pipe, so that one that
hangs holds nothing up. What one that ended sent last stays in the sums, which are exact: a counter never goes back, not
by the last digit of a float either, which Prometheus would take for a restart.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from fractions import Fraction
from multiprocessing.connection import Connection
from typing import Final

import structlog
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from icewright.ports.telemetry import PROCESS

_log = structlog.get_logger("icewright.server")

SEND_S: Final = 5.0
"""How often a process sends its figures: what it counted after the last time is lost when it is killed."""
_LAST_S: Final = 1.0
"""How long a process that ends waits until its last figures are sent."""

_Sample = tuple[str, str, tuple[tuple[str, str], ...]]
"""The figure, which of its series, and that one's labels."""
Figures = Mapping[_Sample, float]
"""Counters and histograms: whatever can be added up."""
_Sums = dict[_Sample, Fraction]


class FiguresOfAll:
    """A collector of what this process and those that send it figures count; ``own`` are its own. Thread-safe."""

    def __init__(self, own: Collector = PROCESS) -> None:
        self._own = own
        self._lock = threading.Lock()
        self._latest: dict[Connection, Figures] = {}
        self._ended: _Sums = {}

    def receive(self, pipe: Connection) -> None:
        """Read what a process sends by the ``pipe``, until it ends; then the pipe is closed."""
        threading.Thread(target=self._read, args=(pipe,), name="figures", daemon=True).start()

    def _read(self, pipe: Connection) -> None:
        try:
            with pipe, suppress(EOFError, OSError):  # it has ended, maybe within a message
                while True:
                    figures: Figures = pipe.recv()
                    with self._lock:
                        self._latest[pipe] = figures
        finally:
            with self._lock:
                _add(self._ended, self._latest.pop(pipe, {}))

    def collect(self) -> Iterator[Metric]:
        """The figures that this process has, each over all."""
        families = list(self._own.collect())
        sums: _Sums = {}
        _add(sums, _figures(families))
        with self._lock:
            _add(sums, self._ended)
            for figures in self._latest.values():
                _add(sums, figures)
        whole = {one.name: Metric(one.name, one.documentation, one.type) for one in families}
        for (family, name, labels), value in sums.items():
            if family in whole:  # one that started after an upgrade may have others
                whole[family].add_sample(name, dict(labels), float(value))
        yield from whole.values()


def _figures(families: Iterable[Metric]) -> Figures:
    return {
        (family.name, sample.name, tuple(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def _add(sums: _Sums, figures: Figures | _Sums) -> None:
    """Add them up; of the times at which a series began the first one stays."""
    for key, value in figures.items():
        one, other = sums.get(key), Fraction(value)
        if one is None:
            sums[key] = other
        else:
            sums[key] = min(one, other) if key[1].endswith("_created") else one + other


@contextmanager
def sending_figures(pipe: Connection, own: Collector = PROCESS, every_s: float = SEND_S) -> Iterator[None]:
    """Send the server this process's figures, while the block runs, and once more after it."""
    ending = threading.Event()
    thread = threading.Thread(target=_send, args=(pipe, own, every_s, ending.wait), name="figures", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join(_LAST_S)


def _send(pipe: Connection, own: Collector, every_s: float, wait: Callable[[float], bool]) -> None:
    is_last = False
    with pipe:
        while not is_last:
            is_last = wait(every_s)
            try:
                pipe.send(_figures(own.collect()))
            except OSError as error:  # the server is gone
                _log.info("figures not sent", detail=str(error))
                return
