"""What the optimizers are started with that a server runs itself."""

from __future__ import annotations

from dataclasses import replace

from icewright.model.policy.resource_groups import Queue
from icewright.model.work.optimizers import OptimizerSettings
from icewright.work.autotune.own_optimizers import OwnOptimizers
from tests.builders.specs import settings_of
from tests.doubles.launcher import MemoryLauncher

GIB = 1 << 30


def settings(conf: dict[str, str], memory_bytes: int) -> OptimizerSettings:
    launcher = MemoryLauncher()
    begins = replace(
        settings_of(), master="local[2]", driver_memory="2g", spark_conf=conf, recycle_memory_bytes=4 * GIB
    )
    OwnOptimizers(lambda: begins, launcher, lambda: "one", lambda _: 1).start("one", "etl", Queue.LARGE, memory_bytes)
    (found,) = launcher.started
    return found.settings


def started(conf: dict[str, str], memory_bytes: int) -> dict[str, str]:
    found = settings(conf, memory_bytes)
    return {"driver": found.driver_memory, **found.spark_conf}


def test_a_limit_of_python_workers_grows_with_the_memory() -> None:
    limit = "spark.executor.pyspark.memory"
    assert started({}, 4 * GIB) == {"driver": "4096m"}
    assert started({limit: "1g"}, 4 * GIB) == {"driver": "4096m", limit: "2048m"}
    assert started({limit: "512"}, 3 * GIB) == {"driver": "3072m", limit: "768m"}
    assert started({limit: "1g"}, 2 * GIB) == {"driver": "2048m", limit: "1024m"}


def test_a_larger_one_is_not_started_anew_for_memory_that_it_may_use() -> None:
    """Its heap, and as much again for Python workers."""
    assert settings({}, 2 * GIB).recycle_memory_bytes == 4 * GIB
    assert settings({}, 6 * GIB).recycle_memory_bytes == 12 * GIB
