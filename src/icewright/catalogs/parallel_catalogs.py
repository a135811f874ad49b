"""Catalogs asked for a limited time: one that hangs keeps neither the others waiting nor the person who asks."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Final, TypeVar

from icewright.catalogs.port import Catalog
from icewright.core.errors import Unavailable
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import TableMetadata

T = TypeVar("T")

LOAD_S_MAX: Final = 4.0
"""How long a person waits for the metadata of a table before the answer is that the catalog does not answer."""
LATE_S_MAX: Final = 15.0
"""For how long metadata that came too late is given to whoever asks next: pages ask again after ten seconds."""
RUNNING_MAX: Final = 60
"""Loads of one catalog at once, late ones among them; then no more are begun before one of them ends."""


class SideBySide:
    """Asks catalogs, each in a thread of its own where there are several. Safe for use by several threads at once."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._hanging: dict[str, threading.Thread] = {}

    def ask(
        self, catalogs: Mapping[str, Catalog], question: Callable[[Catalog], T], no_answer: Callable[[str], T]
    ) -> list[T]:
        """The answers, ``no_answer`` for each catalog that gives none within the limit, or still owes an earlier one.

        What a question raises passes through.
        """
        if len(catalogs) == 1:
            return [question(catalog) for catalog in catalogs.values()]
        answers: SimpleQueue[tuple[str, T | None, BaseException | None]] = SimpleQueue()

        def answer(name: str, catalog: Catalog) -> None:
            try:
                answers.put((name, question(catalog), None))
            except BaseException as error:  # noqa: BLE001 - it is raised by the thread that asked
                answers.put((name, None, error))

        asked = {}
        for name, catalog in catalogs.items():
            if (hanging := self._hanging.get(name)) is not None and hanging.is_alive():
                continue
            asked[name] = threading.Thread(target=answer, args=(name, catalog), name=f"ask-{name}", daemon=True)
            asked[name].start()
        found: dict[str, T] = {}
        until = time.monotonic() + self._limit_s
        for _ in asked:
            try:
                name, said, error = answers.get(timeout=max(0.0, until - time.monotonic()))
            except Empty:
                break
            if error is not None:
                raise error
            found[name] = said  # type: ignore[assignment]  # without an error there is an answer
        self._hanging = {**self._hanging, **{name: one for name, one in asked.items() if name not in found}}
        return [found[name] if name in found else no_answer(name) for name in catalogs]


@dataclass(slots=True)
class _Load:
    """One table that is loaded in a thread of its own, and when it ended."""

    answer: Future[TableMetadata] = field(default_factory=Future)
    ended_s: float = 0.0


class BoundedLoads:
    """Loads tables for people who wait. Safe for use by several threads at once; ``limit_s`` is what tests shorten."""

    def __init__(self, limit_s: float = LOAD_S_MAX) -> None:
        self._limit_s = limit_s
        self._lock = threading.Lock()
        self._late: dict[TableName, _Load] = {}
        self._running: Counter[str] = Counter()

    def load(self, catalog: Catalog, name: TableName) -> TableMetadata:
        """The table as it is now, or as it was when the answer came that an earlier question did not wait for.

        Raises :class:`~icewright.core.errors.Unavailable` where no answer comes within the limit, at once while one
        is late; and what the catalog's ``load`` raises.
        """
        with self._lock:
            late = self._late.get(name)
            if late is not None and late.answer.done():
                del self._late[name]
                if time.monotonic() - late.ended_s <= LATE_S_MAX:
                    return late.answer.result()
            elif late is not None or self._running[catalog.name] >= RUNNING_MAX:
                raise self._no_answer(catalog, name)
            self._running[catalog.name] += 1
        load = _Load()
        thread = threading.Thread(
            target=self._run, args=(load, catalog, name), name=f"load-{catalog.name}", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as error:
            self._end(load, catalog)  # it was not begun: its place is free
            raise Unavailable(f"no metadata of {name}: {error}", hint="ask again in some seconds") from error
        wait((load.answer,), self._limit_s)
        if not load.answer.done():
            with self._lock:
                self._late.setdefault(name, load)
            raise self._no_answer(catalog, name)
        return load.answer.result()

    def _run(self, load: _Load, catalog: Catalog, name: TableName) -> None:
        try:
            found = catalog.load(name)
        except BaseException as error:  # noqa: BLE001 - it is raised by the thread that asked
            self._end(load, catalog)
            load.answer.set_exception(error)
        else:
            self._end(load, catalog)
            load.answer.set_result(found)

    def _end(self, load: _Load, catalog: Catalog) -> None:
        load.ended_s = time.monotonic()
        with self._lock:
            self._running[catalog.name] -= 1
            for name, late in list(self._late.items()):  # what nobody asked for again is not kept
                if late.answer.done() and load.ended_s - late.ended_s > LATE_S_MAX:
                    del self._late[name]

    def _no_answer(self, catalog: Catalog, name: TableName) -> Unavailable:
        text = f"catalog {catalog.name} does not answer: no metadata of {name} within {self._limit_s:g} s"
        return Unavailable(text, hint="ask again in some seconds")
