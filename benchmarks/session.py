"""The Spark session that benchmarks run in: as an optimizer on this machine has it."""

from __future__ import annotations

from typing import Final

from benchmarks import machine
from icewright.model.iceberg.sql_urls import SQLITE_PACKAGE
from icewright.model.work.optimizers import OptimizerSettings

DRIVER_MEMORY: Final = "2g"


def settings(driver_memory: str = DRIVER_MEMORY) -> OptimizerSettings:
    """Its settings, without catalogs: they join the session as the benchmarks make them."""
    return OptimizerSettings(
        server_url="",
        token="",
        optimizer_id="benchmark",
        resource_group="default",
        slots=1,
        batch_tasks=1,
        batch_bytes=1 << 20,
        master=f"local[{machine.cores()}]",
        driver_memory=driver_memory,
        packages=(SQLITE_PACKAGE,),
        jars=(),
        spark_conf={},
        catalogs=(),
        poll_interval_ms=1_000,
        recycle_after_tasks=1,
        recycle_memory_bytes=1 << 40,
    )
