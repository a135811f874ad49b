"""Task specs and optimizer settings as a server would hand them out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from icewright.model.actions.actions import Action, ActionKind, FileGroup, InputFile, RewriteDataFiles
from icewright.model.iceberg.catalog_entries import CatalogEntry, CatalogKind
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.names import TableId, TableName
from icewright.model.work.jobs import PROTOCOL_VERSION, Committed, TaskReport, TaskSpec
from icewright.model.work.optimizers import OptimizerSettings
from icewright.model.work.tasks import LogLevel, LogLine, LogLines

BASE_SNAPSHOT_ID = 4_000_000_000_000
LEASE_S = 30.0


def group(group_id: int = 0, files: int = 2) -> FileGroup:
    inputs = tuple(InputFile(f"file:/t/{group_id}-{number}.parquet", 100, 10, 1) for number in range(files))
    return FileGroup(group_id, Partition(0, "[]"), "", inputs)


def spec_of(task_id: str = "task-1", attempt: int = 1, groups: int = 2) -> TaskSpec:
    return TaskSpec(
        protocol_version=PROTOCOL_VERSION,
        task_id=task_id,
        attempt=attempt,
        fencing_token=7,
        table_id=TableId("lake", "uuid-1"),
        table_name=TableName("lake", ("db",), "events"),
        action=RewriteDataFiles(BASE_SNAPSHOT_ID, 0, tuple(group(number) for number in range(groups)), 1 << 29),
        lease_ms=int(LEASE_S * 1000),
        action_version=ActionKind.REWRITE_DATA_FILES.traits.protocol_version,
    )


def first_attempt(
    name: TableName, uuid: str, action: Action, task_id: str = "task-1", lease_ms: int = 30_000
) -> TaskSpec:
    """A task of a table that is there, handed out for the first time."""
    return TaskSpec(
        protocol_version=PROTOCOL_VERSION,
        task_id=task_id,
        attempt=1,
        fencing_token=1,
        table_id=TableId(name.catalog, uuid),
        table_name=name,
        action=action,
        lease_ms=lease_ms,
        action_version=1,
    )


def report_of(spec: TaskSpec) -> TaskReport:
    return TaskReport(
        protocol_version=PROTOCOL_VERSION,
        task_id=spec.task_id,
        attempt=spec.attempt,
        fencing_token=spec.fencing_token,
        result=Committed(17),
        receipts=(),
        groups=(),
        wall_ms=1,
        cpu_ms=1,
    )


def log_lines(*texts: str, first: int = 1, at: int = 1_000) -> LogLines:
    """What an attempt logged, a line for each text."""
    return LogLines(first, tuple(LogLine(at, LogLevel.INFO, text) for text in texts))


def settings_of(**changes: Any) -> OptimizerSettings:
    settings = OptimizerSettings(
        server_url="http://127.0.0.1:1",
        token="the-token",  # noqa: S106 - nobody is asked
        optimizer_id="optimizer-1",
        resource_group="default",
        slots=2,
        batch_tasks=1,
        batch_bytes=1 << 20,
        master="local[2]",
        driver_memory="1g",
        packages=(),
        jars=(),
        spark_conf={},
        catalogs=(),
        poll_interval_ms=1,
        recycle_after_tasks=1000,
        recycle_memory_bytes=1 << 40,
    )
    return replace(settings, **changes)


def catalog(name: str = "lake") -> CatalogEntry:
    return CatalogEntry(name, CatalogKind.SQL, "sqlite:////lake/catalog.db", "/lake/warehouse")
