"""The optimizer as a process of this machine, which pulls tasks until it is told to stop."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from icewright.core.codec import dumps
from icewright.core.fault_points import Fault, fault
from icewright.model.work.optimizers import OptimizerSettings
from icewright.model.work.spark_conf import spark_settings
from icewright.work.launch.port import Trace
from icewright.work.launch.process import LeadingProcess

COMMAND: Final = (sys.executable, "-m", "icewright_spark")


class ResidentApplication(LeadingProcess):
    """One such process; it is told to die when this one does, on Linux."""

    def __init__(self, name: str, command: Sequence[str], environ: Mapping[str, str] | None) -> None:
        super().__init__(command, stdin=subprocess.PIPE, environ=environ)
        self.name = name

    def stop(self) -> None:
        """See the port."""
        self.terminate()

    def trace(self) -> Trace:
        """See the port."""
        return Trace()


class ResidentLauncher:
    """Starts optimizers as child processes; ``command`` gets this process's id as its last argument.

    They get ``environ``, None for the environment of this process.
    """

    def __init__(self, command: Sequence[str] = COMMAND, environ: Mapping[str, str] | None = None) -> None:
        self._command, self._environ = command, environ

    def start(self, settings: OptimizerSettings) -> ResidentApplication:
        """See the port. Settings go through a pipe."""
        spark_settings(settings)
        command = [*self._command, str(os.getpid())]
        application = ResidentApplication(settings.optimizer_id, command, self._environ)
        fault(Fault.SUPERVISOR_STARTED)
        pipe = application.process.stdin
        if pipe is not None:
            with suppress(BrokenPipeError), pipe:  # it has ended already: its exit status tells the rest
                pipe.write(dumps(settings).encode())
        return application
