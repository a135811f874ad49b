"""What an optimizer process is started with.

The command line resolves the configuration and hands this over on the child's standard input, so that no secret
stands in its arguments or environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from icewright.domain.catalogs import CatalogEntry

ICEBERG_RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
"""Maven coordinates of the Iceberg that the optimizer's Spark runs with: the version that was tested."""

RECYCLE_EXIT_CODE = 75
"""The exit status (BSD's EX_TEMPFAIL) by which an optimizer asks to be started anew with a fresh Spark session."""


@dataclass(frozen=True, slots=True)
class OptimizerSettings:
    """Everything that an optimizer reads; it looks at no other configuration.

    ``packages`` are Maven coordinates that Spark resolves; ``jars`` are local files for machines without a registry
    and, when there are any, stand in for ``packages``. At most ``batch_tasks`` small tasks share a Spark job; together
    they read at most ``batch_bytes``.
    """

    server_url: str
    token: str
    optimizer_id: str
    resource_group: str
    slots: int
    batch_tasks: int
    batch_bytes: int
    master: str
    driver_memory: str
    packages: tuple[str, ...]
    jars: tuple[str, ...]
    spark_conf: Mapping[str, str]
    catalogs: tuple[CatalogEntry, ...]
    poll_interval_ms: int
    recycle_after_tasks: int
    recycle_memory_bytes: int
