"""The only place that builds a SparkSession, and the only one that knows which settings safety depends on."""

from __future__ import annotations

import os
import sys
from typing import Any, Final

from pyspark.sql import SparkSession

from icewright.domain.errors import InvalidConfiguration, VersionMismatch
from icewright.domain.optimizers import OptimizerSettings

ICEBERG_PACKAGE: Final = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
_SPARK_SERIES: Final = "4.1."
_ICEBERG_MIN: Final = (1, 12)

_FIXED: Final = {
    # A task that runs twice would write its output twice (Iceberg has no commit coordinator for it), and a try
    # again is the server's decision.
    "spark.speculation": "false",
    "spark.task.maxFailures": "1",
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.session.timeZone": "UTC",
    "spark.scheduler.mode": "FAIR",
    # glibc gives each thread an arena of its own otherwise, and workers that merge keep what they freed.
    "spark.executorEnv.MALLOC_ARENA_MAX": "2",
}
_DEFAULTS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.worker.reuse": "true",
}
_LOCAL_DEFAULTS: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def build_session(settings: OptimizerSettings) -> SparkSession:
    """The Spark session of this process, with every catalog of ``settings``.

    Raises :class:`InvalidConfiguration` when the user's ``spark_conf`` would change what safety depends on, and
    :class:`VersionMismatch` when Spark or Iceberg are not the versions that were tested.
    """
    fixed = dict(_FIXED)
    for catalog in settings.catalogs:
        fixed |= catalog.spark_properties()
    forbidden = sorted(settings.spark_conf.keys() & fixed.keys())
    if forbidden:
        raise InvalidConfiguration(
            f"optimizer.spark_conf may not set {', '.join(forbidden)}", hint="icewright sets these itself"
        )
    # Python workers must be this interpreter, or they miss the packages.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName("icewright optimizer").master(settings.master)
    local = _LOCAL_DEFAULTS if settings.master.startswith("local") else {}
    memory = {"spark.driver.memory": settings.driver_memory}
    for key, value in {**_DEFAULTS, **local, **memory, **_libraries(settings), **settings.spark_conf, **fixed}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    _check_versions(spark)
    return spark


def iceberg_version(spark: SparkSession) -> str:
    """The version of the Iceberg runtime in this session."""
    return str(java_gateway(spark).org.apache.iceberg.IcebergBuild.version())


def java_gateway(spark: SparkSession) -> Any:
    """The classes of the JVM."""
    return spark._jvm  # noqa: SLF001 - the documented way to Iceberg's Java API from PySpark


def activate(spark: SparkSession) -> None:
    """Make the session the active one of this thread: Spark looks its catalogs up in the active session's settings."""
    java_gateway(spark).org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)  # noqa: SLF001 - no other way


def _libraries(settings: OptimizerSettings) -> dict[str, str]:
    if settings.jars:
        return {"spark.jars": ",".join(settings.jars)}
    packages = {ICEBERG_PACKAGE, *settings.packages}
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
    if tuple(int(part) for part in found.split(".")[:2]) < _ICEBERG_MIN:
        raise VersionMismatch(f"this is Iceberg {found}; icewright needs 1.12 or newer", hint=f"use {ICEBERG_PACKAGE}")
