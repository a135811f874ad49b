"""What a statement waits for in Spark's Python workers, which import this module alone and not that of a test."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path


class Pause:
    """A condition that is always true, and once it is asked about a row waits until it may go on."""

    def __init__(self, folder: Path) -> None:
        self._asked, self._go = folder / "asked", folder / "go"

    def __call__(self, _value: int) -> bool:
        self._asked.touch()
        _wait_for(self._go)
        return True

    def asked(self, errors: Sequence[Exception]) -> None:
        """Wait until it is; errors of the statement that should ask end the waiting."""
        _wait_for(self._asked, errors)

    def end(self) -> None:
        self._go.touch()


def _wait_for(path: Path, errors: Sequence[Exception] = ()) -> None:
    until_s = time.monotonic() + 120
    while not path.exists():
        assert not errors, errors
        assert time.monotonic() < until_s
        time.sleep(0.02)
