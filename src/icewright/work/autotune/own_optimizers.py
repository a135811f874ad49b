"""The optimizers that the leading server runs itself: processes of its machine, drained and never killed.

They end with the server: when it stops, or another one comes to lead, each claims nothing more and ends after its
tasks. On Linux the kernel tells them so when the server dies.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import structlog

from icewright.model.policy.resource_groups import Queue
from icewright.model.work.application_size import size_bytes
from icewright.model.work.optimizers import RECYCLE_EXIT_CODE, OptimizerSettings
from icewright.work.autotune.decide import MIB_BITS
from icewright.work.launch.port import Application, Launcher

_log = structlog.get_logger("icewright.autotune")

OWN_OPTIMIZER: Final = "tuned-optimizer"
"""How ids of optimizers begin that a server has started, this one or one that led before."""
_ENDED_MAX: Final = 1_000
_PYTHON_MEMORY: Final = "spark.executor.pyspark.memory"


@dataclass(frozen=True, slots=True)
class OwnOptimizer:
    """One that was started. ``is_ending``: it claims nothing more."""

    optimizer_id: str
    group: str
    queue: Queue
    memory_bytes: int
    is_ending: bool = False


@dataclass(frozen=True, slots=True)
class Own:
    """Those that are ``present``, and the ids of those that have ``ended``."""

    present: tuple[OwnOptimizer, ...] = ()
    ended: frozenset[str] = frozenset()


NOBODY: Final = Own()


@dataclass(slots=True)
class _Process:
    what: OwnOptimizer
    application: Application
    is_replaced: bool = False


class OwnOptimizers:
    """Starts optimizers, drains them, and starts those anew that ask for it or have another size than they should."""

    def __init__(
        self,
        settings: Callable[[], OptimizerSettings],
        launcher: Launcher,
        new_id: Callable[[], str],
        slots: Callable[[Queue], int],
    ) -> None:
        """``settings`` are what an optimizer of the configuration is started with.

        They raise :class:`~icewright.core.errors.NotFound` while no server is known.
        """
        self._settings, self._launcher, self._new_id, self._slots = settings, launcher, new_id, slots
        self._processes: dict[str, _Process] = {}
        self._ended: list[str] = []

    @property
    def own(self) -> Own:
        """Those that run, and those that have ended."""
        return Own(tuple(one.what for one in self._processes.values()), frozenset(self._ended))

    def new_id(self) -> str:
        """The id of the next one."""
        return self._new_id()

    def is_running(self, optimizer_id: str) -> bool:
        """Whether the process of that optimizer has not ended."""
        return optimizer_id in self._processes

    def start(self, optimizer_id: str, group: str, queue: Queue, memory_bytes: int) -> None:
        """Start one. Raises :class:`~icewright.core.errors.Rejected` where it cannot be, and ``NotFound``."""
        begins = self._settings()
        settings = replace(
            begins,
            optimizer_id=optimizer_id,
            resource_group=group,
            queues=(queue,),
            slots=self._slots(queue),
            driver_memory=f"{memory_bytes >> MIB_BITS}m",
            spark_conf=_with_python_memory(begins, memory_bytes),
            recycle_memory_bytes=max(begins.recycle_memory_bytes, 2 * memory_bytes),
            tasks_max=None,
        )
        application = self._launcher.start(settings)
        what = OwnOptimizer(optimizer_id, group, queue, memory_bytes)
        self._processes[optimizer_id] = _Process(what, application)

    def drain(self, optimizer_id: str) -> None:
        """Have one claim nothing more, and end after its tasks."""
        process = self._processes.get(optimizer_id)
        if process is not None:
            process.what = replace(process.what, is_ending=True)
            process.application.stop()

    def look_after(self, wanted: Mapping[tuple[str, Queue | None], int]) -> None:
        """Bury those that have ended, and replace those that want it, or have other memory than they should.

        ``wanted`` is the memory of optimizers by their group and queue; those of others end. One with other memory is
        drained before the next one starts: on one machine both together may be too much.
        """
        for process in list(self._processes.values()):
            what = process.what
            code, memory_bytes = process.application.poll(), wanted.get((what.group, what.queue))
            if code is None:
                if not what.is_ending and memory_bytes != what.memory_bytes:
                    process.is_replaced = memory_bytes is not None
                    self.drain(what.optimizer_id)
                continue
            del self._processes[what.optimizer_id]
            self._ended = [*self._ended, what.optimizer_id][-_ENDED_MAX:]
            is_recycled = code == RECYCLE_EXIT_CODE and not what.is_ending
            if memory_bytes is not None and (process.is_replaced or is_recycled):
                self.start(self._new_id(), what.group, what.queue, memory_bytes)
            elif not what.is_ending:
                _log.error("optimizer died", optimizer=what.optimizer_id, exit_code=code)

    def close(self) -> None:
        """Drain all. A thread buries them as they end, for as long as this process lives."""
        applications: Sequence[Application] = [one.application for one in self._processes.values()]
        for optimizer_id in list(self._processes):
            self.drain(optimizer_id)
        if applications:
            bury = threading.Thread(target=_bury, args=(applications,), name="autotune-drain", daemon=True)
            bury.start()


def _with_python_memory(begins: OptimizerSettings, memory_bytes: int) -> Mapping[str, str]:
    """Spark's settings for another memory: where Python workers have a limit, it grows and shrinks alike."""
    conf, first_bytes = begins.spark_conf, size_bytes(begins.driver_memory)
    limit_bytes = size_bytes(conf.get(_PYTHON_MEMORY, ""), unit="m")
    if limit_bytes is None or not first_bytes:
        return conf
    return {**conf, _PYTHON_MEMORY: f"{limit_bytes * memory_bytes // first_bytes >> MIB_BITS}m"}


def _bury(applications: Sequence[Application]) -> None:
    for application in applications:
        application.wait()
