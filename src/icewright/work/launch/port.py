"""The door to where optimizers run: one is started, asked after, and ended, whatever it is that carries it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from icewright.model.work.optimizers import OptimizerSettings


@dataclass(frozen=True, slots=True)
class Trace:
    """Where an application can be looked at. ``log`` is None where it goes to the standard error of this process.

    ``cluster_id`` is the cluster's own name for it and ``url`` its page there, None as long as they are not known.
    """

    log: Path | None = None
    cluster_id: str | None = None
    url: str | None = None


class Application(Protocol):
    """One optimizer that was started."""

    @property
    def name(self) -> str:
        """The id by which the server knows the optimizer."""

    def poll(self) -> int | None:
        """Its exit status once it has ended and nothing of it is left on this machine; None before. Never waits."""

    def wait(self) -> int:
        """The same, after waiting for it. Signals that reach this process meanwhile are handled."""

    def stop(self) -> None:
        """Have it claim nothing more and end when its tasks have; to be called as often as one likes.

        What ends by itself after its task needs no telling. Safe in signal handlers.
        """

    def kill(self) -> None:
        """End what of it is on this machine, where it is; the server finds out how far it came."""

    def trace(self) -> Trace:
        """Where it can be looked at."""


class Launcher(Protocol):
    """Starts optimizers."""

    def start(self, settings: OptimizerSettings) -> Application:
        """Start one. No secret of ``settings`` stands in the arguments or the environment of any process.

        Raises :class:`~icewright.core.errors.Rejected` when there is no such program, or the settings are not such
        as may be used.
        """
