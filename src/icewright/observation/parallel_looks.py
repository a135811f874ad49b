"""Looks at several tables at once: a look mostly waits for the store, for its catalog and for its storage."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack
from itertools import chain, islice
from typing import Final, Generic, TypeVar

import structlog

_log = structlog.get_logger("icewright.loop")

_Due = TypeVar("_Due")

_SEVERAL: Final = 2


class ParallelLooks:
    """Does something for each of many tables, for ``at_once`` of them at the same time.

    The calling thread takes part; the others end when nothing is left to begin. ``working`` surrounds what each of
    those does.
    """

    def __init__(self, at_once: int, working: Callable[[], AbstractContextManager[object]]) -> None:
        self._at_once, self._working = at_once, working

    def each(self, due: Iterable[_Due], look: Callable[[_Due], object]) -> None:
        """Return when all is done that was begun. Raises what failed first; nothing is begun after that."""
        source = iter(due)
        first = list(islice(source, min(_SEVERAL, self._at_once)))
        batch = _Batch(chain(first, source), look)
        with ExitStack() as others:  # which are waited for whatever happens
            if len(first) == _SEVERAL:
                self._start(batch, others)
            batch.go_on()
        for error in batch.failed[1:]:
            _log.warning("failed as another did", detail=f"{type(error).__name__}: {error}")
        if batch.failed:
            try:
                raise batch.failed[0]
            finally:
                batch.failed.clear()  # or it would keep, by way of its traceback, itself and what looks had in memory

    def _start(self, batch: _Batch[_Due], others: ExitStack) -> None:
        for _ in range(1, self._at_once):
            thread = threading.Thread(target=self._go_on, args=(batch,), name="look", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # the machine has no room for it: fewer do the same
                _log.warning("thread not started", detail=str(error))
                return
            others.callback(thread.join)

    def _go_on(self, batch: _Batch[_Due]) -> None:
        with self._working():
            batch.go_on()


class _Batch(Generic[_Due]):
    """What is left to begin, and what failed."""

    def __init__(self, source: Iterator[_Due], look: Callable[[_Due], object]) -> None:
        self._source, self._look, self._turns = source, look, threading.Lock()
        self.failed: list[BaseException] = []

    def go_on(self) -> None:
        """Begin one after the other, until nothing is left or something failed."""
        try:
            while not self.failed and (one := self._next()) is not None:
                self._look(one)
        except BaseException as error:  # noqa: BLE001 - the thread that asked for the batch raises it
            self.failed.append(error)

    def _next(self) -> _Due | None:
        with self._turns:
            return next(self._source, None)
