"""The only place that builds a SparkSession, with the settings of :mod:`icewright.model.work.spark_conf`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from py4j.java_gateway import JavaPackage
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from icewright.core.errors import InvalidConfiguration, Unavailable, VersionMismatch
from icewright.model.work.optimizers import ICEBERG_RUNTIME, OptimizerSettings
from icewright.model.work.spark_conf import launcher_settings, settings_in_session, spark_settings

_JVM_END_S_MAX: Final = 5.0
"""A JVM that stopped answering is not always gone at once."""
_SPARK_SERIES: Final = "4.1."
_ICEBERG_MIN: Final = (1, 12)
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""Spark's own word to a Python application that it has started itself."""


def build_session(settings: OptimizerSettings) -> SparkSession:
    """The Spark session of this process, with every catalog of ``settings``.

    Raises :class:`InvalidConfiguration` when the user's settings would change what safety depends on,
    :class:`VersionMismatch` when Spark or Iceberg are not the versions that were tested, and :class:`Unavailable` when
    the cluster does not take us.
    """
    conf = spark_settings(settings)
    # Python workers must be this interpreter, or they miss the packages, if no archive has them.
    os.environ["PYSPARK_PYTHON"] = settings.executor_python or sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # Job groups belong to threads of the JVM: each attempt's thread needs one of its own, or it would be cancelled
    # with another.
    os.environ["PYSPARK_PIN_THREAD"] = "true"
    gateway = launch_gateway(_conf(launcher_settings(conf)))  # type: ignore[no-untyped-call]  # PySpark's, untyped
    in_session = settings_in_session(conf, is_submitted=_SUBMITTED in os.environ)
    try:
        context = SparkContext(gateway=gateway, conf=_conf(in_session))
    except Py4JError as error:
        raise Unavailable(
            f"Spark at {settings.master} does not take us: {_said(error)}",
            hint=f"is it there, and is it Spark {_SPARK_SERIES}x, as the one of this optimizer?",
        ) from error
    context.setLogLevel("ERROR")
    spark = SparkSession.builder.getOrCreate()
    _check_versions(spark)
    return spark


def _said(error: Py4JError) -> str:
    """What Java says of an error, on one line."""
    lines = [line.strip(": ") for line in str(error).splitlines() if line.strip(": ")]
    return lines[min(1, len(lines) - 1)] if lines else type(error).__name__


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
    return _packages(spark._jvm)  # noqa: SLF001 - the documented way to Iceberg's Java API from PySpark


class JavaPackages:
    """A package of Java, or all of them, that asks the JVM for each member once.

    py4j asks at every mention, and for the name of a package Java looks through all of its jars: ``org``,
    ``org.apache`` and ``org.apache.iceberg`` are no classes.
    """

    def __init__(self, package: Any) -> None:
        self._package = package

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._package, name)
        known = JavaPackages(found) if isinstance(found, JavaPackage) else found
        setattr(self, name, known)
        return known


@lru_cache(maxsize=1)
def _packages(jvm: Any) -> JavaPackages:
    return JavaPackages(jvm)


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
