"""How far an attempt is, for whoever asks while it runs."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from icewright.model.work.tasks import Progress

_log = structlog.get_logger("icewright.optimizer")


class Phase:
    """How far a rewrite is, readable from another thread."""

    def __init__(self, groups_total: int) -> None:
        self._name = "planned"
        self.groups_total = groups_total
        self.merged: Callable[[], int] = lambda: 0
        self.staged = 0

    @property
    def name(self) -> str:
        """What is being done."""
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        """Begin with that; the log says so."""
        self._name = name
        _log.info("phase begins", phase=name, groups=self.groups_total)

    def progress(self) -> Progress:
        """The progress as of now."""
        return Progress(self.name, min(self.merged() + self.staged, self.groups_total), self.groups_total)
