"""Whether executors have the Python, the libraries and the Spark that this driver has, asked by a job of its own.

Work is proved by digests that driver and workers compute alike, and sent as pickled functions: between other versions
it may break late and unclearly. So an optimizer on a cluster runs one small job before it claims anything, and does not
start where something differs. In local mode workers are this very interpreter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyspark.sql import SparkSession

from icewright.core.codec import loads
from icewright.core.errors import Unavailable, VersionMismatch
from icewright.model.work.optimizers import WorkerEnvironment
from icewright_spark.optimizer.cluster_executors import NoExecutors
from icewright_spark.optimizer.engine_failure import engine_failure

PACKAGES: Final = ("arro3-core", "arro3-io", "numpy", "pyarrow", "pyroaring", "xxhash")
"""What workers compute with."""
_TASKS_MAX: Final = 16
_PACK: Final = "`icewright optimizer pack` makes an archive of them; see docs/optimizers.md"
_OTHER_PYTHON: Final = "PYTHON_VERSION_MISMATCH"


def worker_environment(spark: SparkSession) -> WorkerEnvironment:
    """What the workers of this session have, the same as this process.

    Waits for the first executor, as long as :class:`~.cluster_executors.Executors` lets it. Raises
    :class:`VersionMismatch` when something differs, :class:`NoExecutors` when none came, and :class:`Unavailable` when
    workers cannot say.
    """
    look = _look()
    ours = loads(WorkerEnvironment, look(0))
    context = spark.sparkContext
    if str(context.master).startswith("local"):
        return ours
    tasks = max(1, min(_TASKS_MAX, int(context.defaultParallelism)))
    try:
        found = set(context.parallelize(range(tasks), tasks).map(look).collect())
    except Exception as error:
        if _OTHER_PYTHON in str(error):
            raise VersionMismatch(
                f"the cluster's workers have another Python than {ours.python}",
                hint="optimizer.executor_python names theirs; its first two numbers must be the same",
            ) from error
        failure = engine_failure(error)
        if failure.code == NoExecutors.code:
            raise NoExecutors(failure.detail) from error
        raise Unavailable(f"the cluster's workers cannot run Python: {failure.detail}") from error
    for theirs in sorted(found):
        require_same(ours, loads(WorkerEnvironment, theirs))
    return ours


def require_same(ours: WorkerEnvironment, theirs: WorkerEnvironment) -> None:
    """Raises :class:`VersionMismatch` where work could not be sent from one to the other."""
    if theirs.spark != ours.spark:
        raise VersionMismatch(
            f"the cluster runs Spark {theirs.spark}, this optimizer brings Spark {ours.spark}",
            hint="use a cluster of the same version; on YARN and Kubernetes the optimizer's own Spark can be used",
        )
    if _minor(theirs.python) != _minor(ours.python):
        raise VersionMismatch(
            f"the cluster's workers have Python {theirs.python}, this optimizer has {ours.python}",
            hint="optimizer.executor_python names theirs; its first two numbers must be the same",
        )
    differing = [
        f"{name} {theirs.packages.get(name) or 'missing'} instead of {version}"
        for name, version in ours.packages.items()
        if theirs.packages.get(name) != version
    ]
    if differing:
        raise VersionMismatch(f"the cluster's workers have other packages: {', '.join(differing)}", hint=_PACK)


def _look() -> Callable[[int], str]:
    """A function that needs nothing of ours where it runs: it travels by value, since it is nobody's attribute."""
    names = PACKAGES

    def look(_number: int) -> str:
        import importlib.metadata  # noqa: PLC0415 - runs elsewhere
        import json  # noqa: PLC0415 - the same
        import platform  # noqa: PLC0415 - the same

        import pyspark  # noqa: PLC0415 - the same

        packages = {}
        for name in names:
            try:
                packages[name] = importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                packages[name] = ""
        try:
            import icewright  # noqa: PLC0415 - the same
            import icewright_spark  # noqa: F401, PLC0415 - whether it is there

            packages["icewright"] = icewright.__version__
        except ImportError:
            packages["icewright"] = ""
        versions = {"python": platform.python_version(), "spark": pyspark.__version__, "packages": packages}
        return json.dumps(versions, sort_keys=True)

    return look


def _minor(version: str) -> list[str]:
    return version.split(".")[:2]
