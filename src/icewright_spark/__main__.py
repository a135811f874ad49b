"""The optimizer process: settings as JSON on standard input, one Spark session, tasks until it is told to stop."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from typing import Final

import structlog

from icewright.domain.codec import loads
from icewright.domain.errors import IcewrightError, Rejected
from icewright.domain.optimizers import RECYCLE_EXIT_CODE, OptimizerSettings
from icewright_spark.engine import SparkEngine
from icewright_spark.optimizer import Optimizer
from icewright_spark.server import Server
from icewright_spark.session import build_session

_PR_SET_PDEATHSIG: Final = 1
_EXIT_AGAIN: Final = 1
_EXIT_WRONG_USE: Final = 2


def main(arguments: Sequence[str]) -> int:
    """Run an optimizer for the process whose id is the one argument.

    The exit status is 0 when it was told to stop, 2 when it can never run as it was started, ``RECYCLE_EXIT_CODE``
    when it wants to be started anew, and 1 when it should be tried again after a while.
    """
    die_with_parent(int(arguments[0]))
    log = structlog.get_logger("icewright.optimizer")
    try:
        settings = loads(OptimizerSettings, sys.stdin.buffer.read())
        server = Server(settings.server_url, settings.token)
        log.info("starting Spark", master=settings.master)
        spark = build_session(settings)
        optimizer = Optimizer(SparkEngine(spark, server), server, settings)
        for signal_number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signal_number, lambda _number, _frame: optimizer.stop())
        log.info("ready", slots=settings.slots)
        optimizer.run()
    except IcewrightError as error:
        log.critical("cannot go on", code=error.code, detail=error.message, hint=error.hint)
        return _EXIT_WRONG_USE if isinstance(error, Rejected) else _EXIT_AGAIN
    spark.stop()
    return RECYCLE_EXIT_CODE if optimizer.wants_recycling else 0


def die_with_parent(parent: int) -> None:
    """Ask the kernel to end this process when the one that started it ends (Linux; elsewhere nothing happens)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it ended before we could ask
            os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
