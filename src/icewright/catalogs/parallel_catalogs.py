"""Catalogs asked side by side, each for a limited time: one that hangs keeps none of the others waiting."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from typing import TypeVar

from icewright.catalogs.port import Catalog

T = TypeVar("T")


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
