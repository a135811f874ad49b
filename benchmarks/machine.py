"""Where and with what a benchmark ran: what a reader needs to judge a figure."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psutil
from pyspark.sql import SparkSession

from icewright_spark.session.session import iceberg_version, java_gateway


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0))


def versions(packages: Sequence[str], spark: SparkSession | None = None) -> dict[str, str]:
    """Versions of all that took part: these Python packages, and what runs in the JVM where there is one."""
    found = {package: version(package) for package in packages} | {"python": platform.python_version()}
    if spark is None:
        return found
    java = str(java_gateway(spark).System.getProperty("java.version"))
    return {**found, "iceberg": iceberg_version(spark), "java": java}


def description() -> dict[str, str]:
    """The machine, and how busy it was right now."""
    return {
        "Processor": _processor(),
        "Memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "System": f"{platform.system()} {platform.release()}",
        "Load before": f"{os.getloadavg()[0]:.2f}",
    }


def load_now() -> tuple[float, float, float]:
    """How many processes ran or waited to run, over the last 1, 5 and 15 minutes."""
    return os.getloadavg()


def today() -> str:
    """The date, UTC."""
    return datetime.now(UTC).date().isoformat()


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
