"""A process that leads a group of its own, ended with all of it, and never another one that has its id by now."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

import psutil

from icewright.core.errors import Rejected

_TIDY_S: Final = 5.0
_LOOK_S: Final = 0.02
STDERR: Final = 2
"""Where logs go, those of Spark's own start included: standard output is for what a person asked for."""


class LeadingProcess:
    """One process and its group: a JVM and its workers die with it, also when they hang (hazards Q4 and Q5).

    Once the leader has ended it is kept as a zombie, so that nobody else can have its id, until its group has ended,
    too; only then it is buried.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        stdin: int = subprocess.DEVNULL,
        output: int = STDERR,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """Start it, in a session of its own, so that Ctrl-C at a terminal reaches only this process.

        Raises :class:`Rejected` when there is no such program.
        """
        try:
            self.process = subprocess.Popen(  # noqa: S603 - a fixed program, its arguments as a list
                command, stdin=stdin, stdout=output, stderr=output, env=environ, start_new_session=True
            )
        except OSError as error:
            raise Rejected(f"the optimizer cannot be started: {error}") from error
        self._ended_s: float | None = None

    def poll(self) -> int | None:
        """Its exit status once it has ended and nobody of its group is left; None before."""
        if self.process.returncode is None and self._has_ended(os.WNOHANG):
            self._bury(wait=False)
        return self.process.returncode

    def wait(self) -> int:
        """The same, after waiting for it."""
        if self.process.returncode is None and self._has_ended(0):
            self._bury(wait=True)
        return self.process.wait()

    def terminate(self) -> None:
        """SIGTERM to the leader, if it was not buried yet: until then nobody else has its id."""
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.process.pid, signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL to the whole group, if the leader was not buried yet."""
        if self.process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):  # PermissionError: there are zombies alone
                os.killpg(self.process.pid, signal.SIGKILL)

    def _has_ended(self, how: int) -> bool:
        try:
            return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT | how) is not None
        except ChildProcessError:  # somebody else has buried it
            return True

    def _bury(self, *, wait: bool) -> None:
        """End its group, which gets a moment to end by itself, as a JVM does that tidies up."""
        if self._ended_s is None:
            self._ended_s = time.monotonic()
        while self._others():
            if time.monotonic() - self._ended_s > _TIDY_S:
                self.kill()
            if not wait:
                return
            time.sleep(_LOOK_S)
        self.process.wait()

    def _others(self) -> bool:
        """Whether somebody lives in the group beside its leader."""
        pid = self.process.pid
        return any(other != pid and _lives_in(other, pid) for other in psutil.pids())


def _lives_in(pid: int, group: int) -> bool:
    try:
        return os.getpgid(pid) == group and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except (OSError, psutil.NoSuchProcess):
        return False  # it ended meanwhile, or is somebody's whom we may not even look at
