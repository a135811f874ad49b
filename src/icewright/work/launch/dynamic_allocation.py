"""Spark's dynamic allocation where an optimizer is on a cluster: as many executors as work needs, within bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from icewright.model.policy.resource_groups import ResourceGroup
from icewright.model.work.application_size import executor_bytes, number, size_bytes

EXECUTORS_MAX: Final = 8
"""Of an optimizer whose group and settings say nothing: as many cores as a task of many files makes use of."""
_ENABLED: Final = "spark.dynamicAllocation.enabled"
_LEAST: Final = "spark.dynamicAllocation.minExecutors"
_MOST: Final = "spark.dynamicAllocation.maxExecutors"
_TRACKING: Final = "spark.dynamicAllocation.shuffleTracking.enabled"
_SERVICE: Final = "spark.shuffle.service.enabled"
_INSTANCES: Final = "spark.executor.instances"
_EACH: Final = "spark.executor.cores"
_CORES: Final = "spark.cores.max"


def with_dynamic_allocation(
    master: str, driver_memory: str, conf: Mapping[str, str], group: ResourceGroup | None = None
) -> Mapping[str, str]:
    """Spark's settings with those that let executors come and go, below what is set already.

    Nothing changes on one machine, and where the settings ask for a fixed number of executors or switch it off. Shuffle
    files are tracked, so that no shuffle service is needed on the nodes. The most executors are those that the group
    may hold, and one where it may hold none: the server then gives the optimizer no task. On a standalone cluster,
    where an executor takes all cores of its worker, the cores are bounded too.
    """
    is_off = conf.get(_ENABLED, "true").strip().lower() != "true"
    if master.startswith("local") or is_off or _INSTANCES in conf:
        return conf
    added = {_ENABLED: "true", _LEAST: "0", _MOST: str(max(1, min(_bounds(driver_memory, conf, group))))}
    if conf.get(_SERVICE, "false").strip().lower() != "true":
        added[_TRACKING] = "true"
    if master.startswith("spark://") and group is not None and group.cores is not None:
        added[_CORES] = str(group.cores)
    return {**added, **conf}


def _bounds(driver_memory: str, conf: Mapping[str, str], group: ResourceGroup | None) -> Iterator[int]:
    """How many executors there may be, by each limit."""
    each, cores_max = number(conf.get(_EACH)) or 1, number(conf.get(_CORES))
    if group is None or (group.cores is None and group.memory_bytes is None):
        yield EXECUTORS_MAX
    if cores_max is not None:
        yield -(-cores_max // each)
    if group is not None and group.cores is not None:
        yield group.cores // each
    if group is not None and group.memory_bytes is not None:
        yield (group.memory_bytes - (size_bytes(driver_memory) or 0)) // executor_bytes(conf)
