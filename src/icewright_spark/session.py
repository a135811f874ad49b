"""The only place that builds a SparkSession, and the only one that knows which settings safety depends on."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Final

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from icewright.domain.errors import InvalidConfiguration, VersionMismatch
from icewright.domain.optimizers import ICEBERG_RUNTIME, OptimizerSettings

_JVM_END_S_MAX: Final = 5.0
"""A JVM that stopped answering is not always gone at once."""
_SPARK_SERIES: Final = "4.1."
_ICEBERG_MIN: Final = (1, 12)

_FIXED: Final = {
    # A task that runs twice would write its output twice (Iceberg has no commit coordinator for it), and a try
    # again is the server's decision.
    "spark.speculation": "false",
    "spark.task.maxFailures": "1",
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.session.timeZone": "UTC",
    # Spark's own pattern does not know credentials of catalogs, which would stand in its logs and events.
    "spark.redaction.regex": "(?i)secret|password|passwd|token|credential|access[.-]?key|session[.-]?key"
    "|auth|account[.-]?key|shared[.-]?key|sse[.-]?key|sas[.-]?token|private|proxy",
    "spark.scheduler.mode": "FAIR",
    # glibc gives each thread an arena of its own otherwise, and workers that merge keep what they freed.
    "spark.executorEnv.MALLOC_ARENA_MAX": "2",
}
_DEFAULTS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.worker.reuse": "true",
    # Of rows on their way to be hashed; rows may be long, and ten thousand of them too much for a worker.
    "spark.sql.execution.arrow.maxBytesPerBatch": "32m",
}
_LOCAL_DEFAULTS: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


_ON_COMMAND_LINE: Final = ("spark.driver.", "spark.jars", "spark.files", "spark.archives", "spark.submit.")
"""What the launcher of the JVM must know before there is a JVM that could be told."""
_SECRET: Final = re.compile("secret|password|passwd|token|credential|access[.-]?key|session[.-]?key", re.IGNORECASE)
_LOCAL_WITH_RETRIES: Final = re.compile(r"local\[[^\],]*,[^\]]*\]")


def build_session(settings: OptimizerSettings) -> SparkSession:
    """The Spark session of this process, with every catalog of ``settings``.

    Raises :class:`InvalidConfiguration` when the user's settings would change what safety depends on, and
    :class:`VersionMismatch` when Spark or Iceberg are not the versions that were tested.
    """
    conf = spark_settings(settings)
    # Python workers must be this interpreter, or they miss the packages.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # Job groups belong to threads of the JVM: each attempt's thread needs one of its own, or it would be cancelled
    # with another.
    os.environ["PYSPARK_PIN_THREAD"] = "true"
    gateway = launch_gateway(_conf(launcher_settings(conf)))  # type: ignore[no-untyped-call]  # PySpark's, untyped
    context = SparkContext(gateway=gateway, conf=_conf(conf))
    context.setLogLevel("ERROR")
    spark = SparkSession.builder.getOrCreate()
    _check_versions(spark)
    return spark


def spark_settings(settings: OptimizerSettings) -> dict[str, str]:
    """All of Spark's settings. Raises :class:`InvalidConfiguration` for those that may not be set."""
    if _LOCAL_WITH_RETRIES.fullmatch(settings.master):
        raise InvalidConfiguration(
            f"optimizer.master may not be {settings.master}: Spark would try tasks again",
            hint="write local[N]; icewright tries again itself",
        )
    fixed = {**_FIXED, "spark.master": settings.master, "spark.app.name": "icewright optimizer"}
    for catalog in settings.catalogs:
        fixed |= catalog.spark_properties()
    forbidden = sorted(settings.spark_conf.keys() & fixed.keys())
    if forbidden:
        raise InvalidConfiguration(
            f"optimizer.spark_conf may not set {', '.join(forbidden)}", hint="icewright sets these itself"
        )
    local = _LOCAL_DEFAULTS if settings.master.startswith("local") else {}
    memory = {"spark.driver.memory": settings.driver_memory}
    return {**_DEFAULTS, **local, **memory, **_libraries(settings), **settings.spark_conf, **fixed}


def launcher_settings(conf: Mapping[str, str]) -> dict[str, str]:
    """The settings that stand on the command line of the JVM, where every user of the machine can read them.

    All others are handed over once it runs.
    """
    return {
        key: value
        for key, value in conf.items()
        if (key == "spark.master" or key.startswith(_ON_COMMAND_LINE)) and not _SECRET.search(key)
    }


def _conf(settings: Mapping[str, str]) -> SparkConf:
    return SparkConf(loadDefaults=False).setAll(list(settings.items()))


def iceberg_version(spark: SparkSession) -> str:
    """The version of the Iceberg runtime in this session. Raises :class:`InvalidConfiguration` without one."""
    try:
        return str(java_gateway(spark).org.apache.iceberg.IcebergBuild.version())
    except TypeError as error:  # py4j takes a class that is not there for a package
        raise InvalidConfiguration(
            "Iceberg is not on Spark's class path", hint=f"optimizer.jars must hold the jar of {ICEBERG_RUNTIME}"
        ) from error


def java_gateway(spark: SparkSession) -> Any:
    """The classes of the JVM."""
    return spark._jvm  # noqa: SLF001 - the documented way to Iceberg's Java API from PySpark


def java_array(spark: SparkSession, java_type: Any, length: int) -> Any:
    """A Java array of nulls or zeros."""
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - py4j's only way to an array
    return gateway.new_array(java_type, length)


def jvm_exit_code(spark: SparkSession) -> int | None:
    """The exit code of the JVM that this process started, None where it lives on or another one started it."""
    process: Any = getattr(spark.sparkContext._gateway, "proc", None)  # noqa: SLF001 - PySpark keeps it there
    try:
        return None if process is None else int(process.wait(_JVM_END_S_MAX))
    except subprocess.TimeoutExpired:
        return None


def activate(spark: SparkSession) -> None:
    """Make the session the active one of this thread: Spark looks its catalogs up in the active session's settings."""
    java_gateway(spark).org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)  # noqa: SLF001 - no other way


def cancel_job_group(spark: SparkSession, group: str) -> None:
    """Cancel the jobs of a group, running and to come: a group's name is never used again."""
    spark.sparkContext._jsc.sc().cancelJobGroupAndFutureJobs(group)  # noqa: SLF001 - PySpark lacks it


def _libraries(settings: OptimizerSettings) -> dict[str, str]:
    if settings.jars:
        return {"spark.jars": ",".join(settings.jars)}
    packages = {ICEBERG_RUNTIME, *settings.packages}
    for catalog in settings.catalogs:
        packages.update(catalog.spark_packages())
    return {"spark.jars.packages": ",".join(sorted(packages))}


def _check_versions(spark: SparkSession) -> None:
    if not spark.version.startswith(_SPARK_SERIES):
        raise VersionMismatch(
            f"this is Spark {spark.version}; icewright is tested with {_SPARK_SERIES}x only",
            hint="install pyspark 4.1.4 for the optimizer",
        )
    found = iceberg_version(spark)
    numbers = re.match(r"(\d+)\.(\d+)", found)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < _ICEBERG_MIN:
        raise VersionMismatch(f"this is Iceberg {found}; icewright needs 1.12 or newer", hint=f"use {ICEBERG_RUNTIME}")
