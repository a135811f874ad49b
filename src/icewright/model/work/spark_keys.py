"""Which of Spark's settings somebody may choose, and what each may be: a list of what is allowed, never of what is not.

Whoever may set any setting of Spark may run any program: options of a JVM, jars, plug-ins, class paths and file systems
are settings like others, there are new ones in each release, and other names of old ones (hazard T4). So a key is
taken only as it stands here, letter by letter, with a value of its own pattern. The administrator may name further keys
in the configuration file; their values are still held to :data:`PLAIN`. Nothing of a table, of a policy or of a request
ever gets here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

from icewright.core.errors import InvalidConfiguration

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
