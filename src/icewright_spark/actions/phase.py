"""How far an attempt is, for whoever asks while it runs."""

from __future__ import annotations

from collections.abc import Callable

from icewright.model.work.tasks import Progress


class Phase:
    """How far a rewrite is, readable from another thread."""

    def __init__(self, groups_total: int) -> None:
        self.name = "planned"
        self.groups_total = groups_total
        self.merged: Callable[[], int] = lambda: 0
        self.staged = 0

    def progress(self) -> Progress:
        """The progress as of now."""
        return Progress(self.name, min(self.merged() + self.staged, self.groups_total), self.groups_total)
