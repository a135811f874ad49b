"""An optimizer from its settings to its end: one Spark session, and what is claimed in it.

A resident one is started by :mod:`icewright_spark.__main__`, one for a single task by ``spark-submit``.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import structlog
from pyspark.sql import SparkSession

from icewright.core.codec import dumps, loads
from icewright.core.errors import IcewrightError, Rejected, Unavailable
from icewright.model.work.optimizers import RECYCLE_EXIT_CODE, OptimizerSettings
from icewright_spark.optimizer.cluster_executors import Executors, watched
from icewright_spark.optimizer.engine import FailedEngine, SparkEngine
from icewright_spark.optimizer.optimizer import Optimizer
from icewright_spark.optimizer.telemetry import configure_telemetry
from icewright_spark.optimizer.watchdog import Watchdog, end_application
from icewright_spark.reports.client import Server
from icewright_spark.session.session import build_session, iceberg_version

_EXIT_AGAIN: Final = 1
_EXIT_WRONG_USE: Final = 2


def main(arguments: Sequence[str]) -> int:
    """Run the application that ``spark-submit`` has started, with the path of its settings and its optimizer's id.

    The exit status is that of :func:`run`.
    """
    path, optimizer_id = Path(arguments[0]), arguments[1]

    def settings() -> bytes:
        text = path.read_bytes()
        with suppress(OSError):  # a Secret of Kubernetes is not ours to remove
            path.unlink()
        return dumps(replace(loads(OptimizerSettings, text), optimizer_id=optimizer_id)).encode()

    return run(settings, partial(end_application, os.getppid()))


def run(settings: Callable[[], bytes], end: Callable[[str], None]) -> int:
    """Run an optimizer with the settings that are read, until it is told to stop or has done what it was started for.

    ``end`` ends this process at once, see :mod:`.watchdog`. The exit status is 0 when it was told to
    stop or is done, 2 when it can never run as it was started, ``RECYCLE_EXIT_CODE`` when it wants to be started anew,
    and 1 when it should be tried again after a while.
    """
    log = structlog.get_logger("icewright.optimizer")
    try:
        found = loads(OptimizerSettings, settings())
        configure_telemetry(found, os.environ)
        server = Server(found.server_url, found.token)
        log.info("starting Spark", master=found.master)
        spark = build_session(found)
        watchdog = Watchdog(end)
        watchdog.start()
        executors = watched(spark, found)
        optimizer = Optimizer(_engine(spark, server, watchdog, executors, found), server, found)
        for signal_number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signal_number, lambda _number, _frame: optimizer.stop())
        log.info("ready", slots=found.slots)
        optimizer.run()
    except IcewrightError as error:
        log.critical("cannot continue", code=error.code, detail=error.message, hint=error.hint)
        return _EXIT_WRONG_USE if isinstance(error, Rejected) else _EXIT_AGAIN
    if executors is not None:
        executors.close()
    spark.stop()
    return RECYCLE_EXIT_CODE if optimizer.wants_recycling else 0


def _engine(
    spark: SparkSession, server: Server, watchdog: Watchdog, executors: Executors | None, settings: OptimizerSettings
) -> SparkEngine:
    """The engine of this session. Raises as :class:`~icewright_spark.optimizer.engine.SparkEngine`.

    An application that was submitted for a task claims it all the same and reports why nobody can carry it out: the
    try is counted, with its cause, and whoever asks why the task waits is told. A resident one was started for none.
    """
    try:
        key = settings.queries_hash_key
        return SparkEngine(spark, server, watchdog, executors, None if key is None else key.encode())
    except Unavailable as error:
        if settings.tasks_max is not None:
            failed = FailedEngine(error, spark_version=str(spark.version), iceberg_version=iceberg_version(spark))
            Optimizer(failed, server, replace(settings, batch_tasks=1)).run()
        raise
