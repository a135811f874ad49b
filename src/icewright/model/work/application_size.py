"""How much of a cluster an optimizer's application takes, told from its settings: what it may grow to, not what it has.

Resource groups count by this. What cannot be told is None, and a group with a cap on it then starts nothing there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from icewright.model.work.admission import Holding
from icewright.model.work.optimizers import OptimizerSettings

_LOCAL: Final = re.compile(r"local(?:\[([0-9]+|\*)\])?\Z")
_SIZE: Final = re.compile(r"([0-9]+)([kmgt]?)b?\Z", re.IGNORECASE)
_POWERS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_OVERHEAD_MIN_BYTES: Final = 384 * 1024**2
"""Spark's own: a tenth of an executor's memory on top of it, and no less than this."""
_EXECUTOR_MEMORY: Final = "1g"


def application_size(settings: OptimizerSettings, cores_here: int) -> Holding:
    """What the whole application takes; ``cores_here`` are those of this machine, where Spark runs on it alone."""
    of = (settings.master, settings.driver_memory, settings.spark_conf, cores_here)
    return size_of(*of, is_resident=settings.tasks_max is None)


def size_of(
    master: str, driver_memory: str, conf: Mapping[str, str], cores_here: int, *, is_resident: bool = True
) -> Holding:
    """The same from what decides it."""
    driver = size_bytes(driver_memory)
    local = _LOCAL.match(master)
    if local is not None:
        told = local[1]
        return Holding(cores_here if told == "*" else int(told or 1), driver, is_resident)
    executors, each = _executors(conf), number(conf.get("spark.executor.cores"))
    cores_max = number(conf.get("spark.cores.max")) if master.startswith("spark://") else None
    if executors is None and cores_max is not None and each:
        executors = -(-cores_max // each)
    cores = executors * (each or 1) if cores_max is None and executors is not None else cores_max
    memory = None if executors is None or driver is None else driver + executors * executor_bytes(conf)
    return Holding(cores, memory, is_resident)


def task_holding(application: Holding, slots: int) -> Holding:
    """What one of its tasks takes: the part of a slot, rounded up; of one that carries out one task, all of it."""
    slots = max(1, slots) if application.is_resident else 1
    return Holding(_part(application.cores, slots), _part(application.memory_bytes, slots), application.is_resident)


def _part(whole: int | None, parts: int) -> int | None:
    return None if whole is None else -(-whole // parts)


def _executors(conf: Mapping[str, str]) -> int | None:
    if conf.get("spark.dynamicAllocation.enabled", "false").lower() == "true":
        return number(conf.get("spark.dynamicAllocation.maxExecutors"))
    return number(conf.get("spark.executor.instances"))


def executor_bytes(conf: Mapping[str, str]) -> int:
    """What one executor takes, with all that is beside its heap."""
    memory = size_bytes(conf.get("spark.executor.memory", _EXECUTOR_MEMORY)) or 0
    overhead = size_bytes(conf.get("spark.executor.memoryOverhead", ""), unit="m")
    python = size_bytes(conf.get("spark.executor.pyspark.memory", ""), unit="m")
    return memory + (max(memory // 10, _OVERHEAD_MIN_BYTES) if overhead is None else overhead) + (python or 0)


def size_bytes(text: str, unit: str = "") -> int | None:
    """A size as Spark writes it, ``2g``, in bytes; ``unit`` is meant where there is none. None for another text."""
    match = _SIZE.match(text.strip())
    return None if match is None else int(match[1]) * 1024 ** _POWERS[match[2].lower() or unit]


def number(text: str | None) -> int | None:
    """A count as Spark writes it; None for another text."""
    return int(text) if text is not None and text.strip().isdecimal() else None
