"""The resident optimizer's process: settings as JSON on standard input, tasks until it is told to stop."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from typing import Final

from icewright.core.extras import without_collection

with without_collection():
    from icewright_spark.optimizer.application import run
    from icewright_spark.optimizer.watchdog import end_this_process

_PR_SET_PDEATHSIG: Final = 1


def main(arguments: Sequence[str]) -> int:
    """Run an optimizer for the process whose id is the one argument; the exit status is that of :func:`run`."""
    die_with_parent(int(arguments[0]))
    return run(sys.stdin.buffer.read, end_this_process)


def die_with_parent(parent: int) -> None:
    """Ask the kernel to end this process when the one that started it ends (Linux; elsewhere nothing happens)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it ended before we could ask
            os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
