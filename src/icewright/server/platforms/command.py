"""A program of the administrator's that is told how many servers there are to be."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from icewright.core.errors import OutcomeUnknown, Rejected
from icewright.work.autotune.servers.platform import Resize

TIMEOUT_S: Final = 60.0
SEEN: Final = "ICEWRIGHT_SERVERS_SEEN"
"""The variable by which the program hears how many servers are seen: it can refuse where it knows another number."""


class CommandPlatform:
    """A :class:`~icewright.work.autotune.servers.platform.Platform` that runs a program, and never a shell.

    The number of servers is its last argument, and :data:`SEEN` has how many are seen. What it writes goes where the
    server's log goes.
    """

    def __init__(self, argv: Sequence[str], environ: Mapping[str, str], *, timeout_s: float = TIMEOUT_S) -> None:
        """``environ`` is all that the program sees of the environment: without the server's secrets."""
        self._argv, self._environ, self._timeout_s = tuple(argv), dict(environ), timeout_s

    def resize(self, wanted: Resize) -> str:
        """See the port. What does not end in time is killed with all that it started."""
        argv = [*self._argv, str(wanted.after)]
        try:
            process = subprocess.Popen(  # noqa: S603 - the administrator's own file says what is run
                argv,
                stdin=subprocess.DEVNULL,
                stdout=sys.__stderr__,
                env={**self._environ, SEEN: str(wanted.before)},
                start_new_session=True,
            )
        except OSError as error:
            raise Rejected(f"{self._argv[0]} cannot be run: {error.strerror}") from error
        try:
            code = process.wait(self._timeout_s)
        except subprocess.TimeoutExpired as error:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise OutcomeUnknown(f"{self._argv[0]} did not end within {self._timeout_s:.0f} s") from error
        if code < 0:
            raise OutcomeUnknown(f"{self._argv[0]} was ended by signal {-code}")
        if code:
            raise Rejected(f"{self._argv[0]} ended with status {code}: the log of the server has what it wrote")
        return f"{self._argv[0]} was asked for {wanted.after:,}"
