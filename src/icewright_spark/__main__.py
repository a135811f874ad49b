"""The optimizer process: settings as JSON on standard input, one Spark session, tasks until it is told to stop."""

from __future__ import annotations

import ctypes
import signal
import sys
from typing import Final

import structlog

from icewright.domain.codec import loads
from icewright.domain.errors import IcewrightError
from icewright.domain.optimizers import RECYCLE_EXIT_CODE, OptimizerSettings
from icewright_spark.optimizer import Optimizer
from icewright_spark.server import Server
from icewright_spark.session import build_session

_PR_SET_PDEATHSIG: Final = 1
_EXIT_WRONG_USE: Final = 2


def main() -> int:
    """Run an optimizer; the exit status is 0, or 2 when it cannot run, or ``RECYCLE_EXIT_CODE``."""
    settings = loads(OptimizerSettings, sys.stdin.buffer.read())
    die_with_parent()
    log = structlog.get_logger("icewright.optimizer")
    try:
        server = Server(settings.server_url, settings.token)
        log.info("starting Spark", master=settings.master)
        spark = build_session(settings)
        optimizer = Optimizer(spark, server, settings)
        for signal_number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signal_number, lambda _number, _frame: optimizer.stop())
        log.info("ready", slots=settings.slots)
        optimizer.run()
    except IcewrightError as error:
        log.critical("cannot go on", code=error.code, detail=error.message, hint=error.hint)
        return _EXIT_WRONG_USE
    spark.stop()
    return RECYCLE_EXIT_CODE if optimizer.wants_recycling else 0


def die_with_parent() -> None:
    """Ask the kernel to end this process when the one that started it ends (Linux; elsewhere nothing happens)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
