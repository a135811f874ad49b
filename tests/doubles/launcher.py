"""Optimizers that run nowhere: a test says how each ends."""

from __future__ import annotations

from dataclasses import dataclass, field

from icewright.model.work.optimizers import OptimizerSettings
from icewright.model.work.spark_conf import spark_settings
from icewright.work.launch.port import Trace

_KILLED = -9


@dataclass
class MemoryApplication:
    """One that was started. ``ends_with`` is its exit status once it is told to stop."""

    settings: OptimizerSettings
    ends_with: int = 0
    exit_code: int | None = None
    stops: int = 0

    @property
    def name(self) -> str:
        return self.settings.optimizer_id

    def poll(self) -> int | None:
        return self.exit_code

    def wait(self) -> int:
        """See the port; nothing here ends by waiting, so it is told to."""
        if self.exit_code is None:
            self.exit_code = self.ends_with
        return self.exit_code

    def stop(self) -> None:
        self.stops += 1
        if self.exit_code is None:
            self.exit_code = self.ends_with

    def kill(self) -> None:
        if self.exit_code is None:
            self.exit_code = _KILLED

    def trace(self) -> Trace:
        return Trace()


@dataclass
class MemoryLauncher:
    """Keeps all that it started."""

    started: list[MemoryApplication] = field(default_factory=list)

    def start(self, settings: OptimizerSettings) -> MemoryApplication:
        spark_settings(settings)
        self.started.append(MemoryApplication(settings))
        return self.started[-1]
