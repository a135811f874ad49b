"""All of an application's Spark settings, from what an optimizer is started with; and who is told which of them.

The optimizer's session and the command that submits an application need the same ones: so they are put together here,
once, and what safety depends on stands over everything that anybody chose.

Whoever may set any setting of Spark may run any program: options of a JVM, jars, plug-ins, class paths and file systems
are settings like others, there are new ones in each release, and other names of old ones (hazard T4). So a key is
taken only as it stands in :data:`ALLOWED`, letter by letter, with a value of its own pattern. The administrator may
name further keys in the configuration file; their values are still held to :data:`PLAIN`. Nothing of a table, of a
policy or of a request ever gets here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

from icewright.core.errors import InvalidConfiguration
from icewright.model.work.optimizers import ICEBERG_RUNTIME, DeployMode, OptimizerSettings

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


_FLAG: Final = r"true|false"
_COUNT: Final = r"[0-9]{1,9}"
_SHARE: Final = r"0?\.[0-9]{1,6}|[01](?:\.0{1,6})?"
_SIZE: Final = r"[0-9]{1,12}(?:b|k|kb|m|mb|g|gb|t|tb)?"
_TIME: Final = r"[0-9]{1,12}(?:us|ms|s|m|min|h|d)?"
_CORES: Final = r"[0-9]{1,6}(?:\.[0-9]{1,3}|m)?"
_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}"
_HOST: Final = r"[A-Za-z0-9][A-Za-z0-9.:-]{0,252}|\[[0-9A-Fa-f:]{2,45}\]"
_IMAGE: Final = r"[a-z0-9][A-Za-z0-9._/:@-]{0,511}"
_CODEC: Final = r"lz4|lzf|snappy|zstd"

PLAIN: Final = re.compile(r"[^-\x00-\x1f\x7f\x85\u2028\u2029][^\x00-\x1f\x7f\x85\u2028\u2029]{0,4095}")
"""What any value must be: not empty, on one line, and never to be taken for an option."""
_KEY: Final = re.compile(r"spark\.[A-Za-z0-9_.-]{1,249}")

ALLOWED: Final[Mapping[str, str]] = {
    # How much an application may take.
    "spark.cores.max": _COUNT,
    "spark.driver.cores": _COUNT,
    "spark.driver.maxResultSize": _SIZE,
    "spark.driver.memory": _SIZE,
    "spark.driver.memoryOverhead": _SIZE,
    "spark.driver.memoryOverheadFactor": _SHARE,
    "spark.executor.cores": _COUNT,
    "spark.executor.instances": _COUNT,
    "spark.executor.memory": _SIZE,
    "spark.executor.memoryOverhead": _SIZE,
    "spark.executor.memoryOverheadFactor": _SHARE,
    "spark.executor.pyspark.memory": _SIZE,
    "spark.memory.fraction": _SHARE,
    "spark.memory.offHeap.enabled": _FLAG,
    "spark.memory.offHeap.size": _SIZE,
    "spark.memory.storageFraction": _SHARE,
    "spark.task.cpus": _COUNT,
    # Executors that come and go.
    "spark.dynamicAllocation.cachedExecutorIdleTimeout": _TIME,
    "spark.dynamicAllocation.enabled": _FLAG,
    "spark.dynamicAllocation.executorAllocationRatio": _SHARE,
    "spark.dynamicAllocation.executorIdleTimeout": _TIME,
    "spark.dynamicAllocation.initialExecutors": _COUNT,
    "spark.dynamicAllocation.maxExecutors": _COUNT,
    "spark.dynamicAllocation.minExecutors": _COUNT,
    "spark.dynamicAllocation.schedulerBacklogTimeout": _TIME,
    "spark.dynamicAllocation.shuffleTracking.enabled": _FLAG,
    "spark.dynamicAllocation.shuffleTracking.timeout": _TIME,
    "spark.dynamicAllocation.sustainedSchedulerBacklogTimeout": _TIME,
    "spark.shuffle.service.enabled": _FLAG,
    # How the work is cut, and how it travels.
    "spark.default.parallelism": _COUNT,
    "spark.io.compression.codec": _CODEC,
    "spark.locality.wait": _TIME,
    "spark.reducer.maxSizeInFlight": _SIZE,
    "spark.shuffle.compress": _FLAG,
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": _SIZE,
    "spark.sql.adaptive.coalescePartitions.enabled": _FLAG,
    "spark.sql.adaptive.enabled": _FLAG,
    "spark.sql.execution.arrow.maxBytesPerBatch": _SIZE,
    "spark.sql.files.maxPartitionBytes": _SIZE,
    "spark.sql.shuffle.partitions": _COUNT,
    # Where driver and executors meet.
    "spark.authenticate": _FLAG,
    "spark.blockManager.port": _COUNT,
    "spark.driver.bindAddress": _HOST,
    "spark.driver.blockManager.port": _COUNT,
    "spark.driver.host": _HOST,
    "spark.driver.port": _COUNT,
    "spark.executor.heartbeatInterval": _TIME,
    "spark.network.crypto.enabled": _FLAG,
    "spark.network.timeout": _TIME,
    "spark.port.maxRetries": _COUNT,
    "spark.rpc.askTimeout": _TIME,
    # YARN.
    "spark.yarn.am.cores": _COUNT,
    "spark.yarn.am.memory": _SIZE,
    "spark.yarn.queue": _NAME,
    # Kubernetes.
    "spark.kubernetes.authenticate.driver.serviceAccountName": _NAME,
    "spark.kubernetes.authenticate.executor.serviceAccountName": _NAME,
    "spark.kubernetes.container.image": _IMAGE,
    "spark.kubernetes.container.image.pullPolicy": r"Always|Never|IfNotPresent",
    "spark.kubernetes.driver.limit.cores": _CORES,
    "spark.kubernetes.driver.request.cores": _CORES,
    "spark.kubernetes.executor.limit.cores": _CORES,
    "spark.kubernetes.executor.request.cores": _CORES,
    "spark.kubernetes.namespace": _NAME,
}
"""Every key that may be chosen, with the pattern of its whole value."""


def checked(conf: Mapping[str, str], further: Collection[str] = ()) -> dict[str, str]:
    """The settings, each of them allowed. ``further`` are keys that the administrator's own file names.

    Raises :class:`InvalidConfiguration` with the key, and never with the value, which may be a secret.
    """
    for key in further:
        if not _KEY.fullmatch(key):
            raise InvalidConfiguration(
                f"optimizer.spark_conf_keys: {key!r} is no key of Spark", hint="write it in full, as spark.some.key"
            )
    for key, value in conf.items():
        pattern = ALLOWED.get(key)
        if pattern is None and key not in further:
            raise InvalidConfiguration(
                f"optimizer.spark_conf may not set {key!r}",
                hint="docs/optimizers.md has what may be set; an administrator may name further keys in "
                "optimizer.spark_conf_keys of icewright.toml",
            )
        if not PLAIN.fullmatch(value) or (pattern is not None and not re.fullmatch(pattern, value)):
            raise InvalidConfiguration(
                f"optimizer.spark_conf: the value of {key} is not of the form that it may have",
                hint="one line that does not begin with '-'" + (f", matching {pattern}" if pattern else ""),
            )
    return dict(conf)
