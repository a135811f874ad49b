"""All of an application's Spark settings, from what an optimizer is started with; and who is told which of them.

The optimizer's session and the command that submits an application need the same ones: so they are put together here,
once, and what safety depends on stands over everything that anybody chose.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from icewright.core.errors import InvalidConfiguration
from icewright.model.work.optimizers import ICEBERG_RUNTIME, DeployMode, OptimizerSettings
from icewright.model.work.spark_keys import PLAIN, checked

_FIXED: Final = {
    # A task that runs twice would write its output twice (Iceberg has no commit coordinator for it), and a try
    # again is the server's decision.
    "spark.speculation": "false",
    "spark.task.maxFailures": "1",
    "spark.yarn.maxAppAttempts": "1",
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
_ARCHIVE_FOLDER: Final = "icewright-packages"
_PYTHON_PATH: Final = "spark.executorEnv.PYTHONPATH"
_OF_CATALOGS: Final = "spark.sql.catalog."
_SECRET: Final = re.compile("secret|password|passwd|token|credential|access[.-]?key|session[.-]?key", re.IGNORECASE)
_LOCAL_WITH_RETRIES: Final = re.compile(r"local\[[^\],]*,[^\]]*\]")
_MASTER: Final = re.compile(
    r"local(?:\[(?:[1-9][0-9]{0,3}|\*)\])?|yarn|spark://[A-Za-z0-9_.:,\[\]-]+|k8s://https?://[A-Za-z0-9_.:/\[\]-]+"
)
_PACKAGE: Final = re.compile(r"[A-Za-z0-9][\w.-]*:[A-Za-z0-9][\w.-]*:[A-Za-z0-9][\w.+-]*")


def spark_settings(settings: OptimizerSettings) -> dict[str, str]:
    """All of Spark's settings. Raises :class:`InvalidConfiguration` for those that may not be set."""
    _check_master(settings)
    fixed = {
        **_FIXED,
        "spark.master": settings.master,
        "spark.submit.deployMode": str(settings.deploy_mode),
        "spark.app.name": "icewright optimizer",
    }
    fixed |= _packages(settings)
    for catalog in settings.catalogs:
        fixed |= catalog.spark_properties()
    forbidden = sorted(settings.spark_conf.keys() & fixed.keys())
    if forbidden:
        raise InvalidConfiguration(
            f"optimizer.spark_conf may not set {', '.join(forbidden)}", hint="icewright sets these itself"
        )
    chosen = checked(settings.spark_conf, settings.spark_conf_keys)
    local = _LOCAL_DEFAULTS if settings.master.startswith("local") else {}
    memory = {"spark.driver.memory": settings.driver_memory}
    return {**_DEFAULTS, **local, **memory, **_libraries(settings), **chosen, **fixed}


def launcher_settings(conf: Mapping[str, str]) -> dict[str, str]:
    """The settings that stand on the command line of the JVM, where every user of the machine can read them.

    All others are handed over once it runs.
    """
    return {
        key: value
        for key, value in conf.items()
        if (key == "spark.master" or key.startswith(_ON_COMMAND_LINE)) and not _SECRET.search(key)
    }


def submitted_settings(conf: Mapping[str, str]) -> dict[str, str]:
    """The settings in the file that ``spark-submit`` reads, which goes where the application goes.

    Those of catalogs are left out, since they have credentials: the application gets them with its own settings.
    """
    return {key: value for key, value in conf.items() if not (key.startswith(_OF_CATALOGS) or _SECRET.search(key))}


def settings_in_session(conf: Mapping[str, str], *, is_submitted: bool) -> dict[str, str]:
    """What the session is built with: all, but for what a submitted application was started with already.

    Jars and archives have been brought to the driver by then, and lie elsewhere than the settings say; and on YARN,
    Spark has added its own packages to the path of Python.
    """
    brought = {*launcher_settings(conf), _PYTHON_PATH} if is_submitted else set[str]()
    return {key: value for key, value in conf.items() if key not in brought}


def _check_master(settings: OptimizerSettings) -> None:
    if _LOCAL_WITH_RETRIES.fullmatch(settings.master):
        raise InvalidConfiguration(
            f"optimizer.master may not be {settings.master}: Spark would try tasks again",
            hint="write local[N]; icewright tries again itself",
        )
    if not _MASTER.fullmatch(settings.master):
        raise InvalidConfiguration(
            f"optimizer.master may not be {settings.master!r}",
            hint="local[N], spark://host:port, yarn or k8s://https://host:port",
        )
    if settings.deploy_mode is DeployMode.CLUSTER and not settings.master.startswith(("yarn", "k8s://")):
        raise InvalidConfiguration(
            f"optimizer.deploy_mode may not be cluster with the master {settings.master}",
            hint="Spark runs the driver of a Python application in the cluster on YARN and Kubernetes alone",
        )


def _packages(settings: OptimizerSettings) -> dict[str, str]:
    """The archive of Python packages, where executors are not processes of this driver's machine and interpreter."""
    for key, value in (("archive", settings.archive), ("executor_python", settings.executor_python)):
        if value is not None and (not PLAIN.fullmatch(value) or "," in value or "#" in value):
            raise InvalidConfiguration(f"optimizer.{key}: {value!r} is no path")
    if settings.archive is None or settings.master.startswith("local"):
        return {}
    found = {
        "spark.archives": f"{settings.archive}#{_ARCHIVE_FOLDER}",
        _PYTHON_PATH: f"./{_ARCHIVE_FOLDER}",
    }
    if settings.master == "yarn" and settings.deploy_mode is DeployMode.CLUSTER:
        found["spark.yarn.appMasterEnv.PYTHONPATH"] = f"./{_ARCHIVE_FOLDER}"
    return found


def _libraries(settings: OptimizerSettings) -> dict[str, str]:
    for jar in settings.jars:
        if "," in jar or not PLAIN.fullmatch(jar):
            raise InvalidConfiguration(f"optimizer.jars: {jar!r} is no path of a jar")
    if settings.jars:
        return {"spark.jars": ",".join(settings.jars)}
    packages = {ICEBERG_RUNTIME, *settings.packages}
    for catalog in settings.catalogs:
        packages.update(catalog.spark_packages())
    for package in sorted(packages):
        if not _PACKAGE.fullmatch(package):
            raise InvalidConfiguration(f"optimizer.packages: {package!r} is no Maven coordinate", hint="group:name:1.0")
    return {"spark.jars.packages": ",".join(sorted(packages))}
