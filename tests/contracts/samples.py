"""Values that the contract tests put into stores."""

from collections.abc import Mapping
from dataclasses import replace

from icewright.model.actions.actions import (
    OPTIMIZER_ACTIONS,
    Action,
    ActionKind,
    FileGroup,
    InputFile,
    RewriteDataFiles,
)
from icewright.model.actions.compute_statistics import ComputeStatistics, ComputeStatisticsPrediction, StatisticsColumn
from icewright.model.actions.expire_snapshots import ExpireSnapshots, ExpireSnapshotsPrediction, ExpiryRule
from icewright.model.actions.rewrite_manifests import RewriteManifests, RewriteManifestsPrediction
from icewright.model.actions.undo import RestoreFiles, RestoreFilesPrediction
from icewright.model.iceberg.files import UNPARTITIONED, FileContent, FileFormat, Partition
from icewright.model.iceberg.inventory import (
    ManifestKey,
    ManifestSummary,
    PartitionCounts,
    PartitionStatistics,
    PartitionSummary,
    RunCounts,
    SizeHistogram,
)
from icewright.model.iceberg.names import PART_LENGTH_MAX, TableId, TableName
from icewright.model.plans.plans import PartitionVerdict, Plan, Prediction, Reason, RewritePrediction, Verdict
from icewright.model.policy.policy import Mode
from icewright.model.work.jobs import PROTOCOL_VERSION, OptimizerHello
from icewright.model.work.tasks import NewTask, Outcome, Progress, Task
from icewright.ports.store import TableRecord, TaskStore
from tests.builders.specs import log_lines

HOSTILE_PARTS = (
    "back`tick",
    "quo'te\"s; DROP TABLE tasks; --",
    "new\nline\r\t",
    "\N{PILE OF POO}\N{ZERO WIDTH JOINER}é",
    "bell\x07 and \u202e the other way round",
    "%s {} ? :name $1 \\",
    "x" * PART_LENGTH_MAX,
)

PROGRESS = Progress("merging", 1, 2)
REASON = Reason("small-files", "40 small files", {"files": 40, "ratio": 0.5, "month": "2013-01"})
OUTCOME = Outcome(Reason("done", "all well"), snapshot_id=7)


def table_id(number: int = 1, catalog: str = "lake") -> TableId:
    return TableId(catalog, f"00000000-0000-4000-8000-{number:012d}")


def action(base_snapshot_id: int = 1, partition: Partition | None = None) -> RewriteDataFiles:
    files = tuple(InputFile(f"s3://b/{n}.parquet", 10, 2, 3) for n in range(2))
    group = FileGroup(0, partition or Partition(0, UNPARTITIONED), "month=2013-01", files)
    return RewriteDataFiles(base_snapshot_id, 0, (group,), 512)


def keep_log(store: TaskStore, task_id: str, table: int, *texts: str) -> Task:
    """A task of a resource group of its own whose attempt runs and has logged."""
    store.enqueue(new_task(task_id, table=table, resource_group="logged"))
    task = store.claim("o", resource_group="logged", catalogs=frozenset({"lake"}), lease_ms=1_000)
    assert task is not None
    assert task.lease is not None
    log = log_lines(*texts or ("began",))
    return store.heartbeat(task_id, task.lease.fencing_token, progress=PROGRESS, lease_ms=1, log=log)


def new_task(
    task_id: str,
    *,
    table: int = 1,
    priority: int = 0,
    catalog: str = "lake",
    resource_group: str = "default",
    base_snapshot_id: int = 1,
    name: TableName | None = None,
    plan_id: str = "plan-1",
    reason: Reason = REASON,
) -> NewTask:
    return NewTask(
        task_id=task_id,
        table_id=table_id(table, catalog),
        table_name=name or TableName(catalog, ("ns",), f"t{table}"),
        plan_id=plan_id,
        action=action(base_snapshot_id),
        reason=reason,
        prediction=RewritePrediction(40, 1, 40, 1, 400, 80),
        priority=priority,
        resource_group=resource_group,
        attempts_max=3,
    )


def record(number: int = 1, **changes: object) -> TableRecord:
    values: dict[str, object] = {
        "table_id": table_id(number),
        "name": TableName("lake", ("ns",), f"t{number}"),
        "metadata_location": "s3://b/v1.json",
        "snapshot_id": 2**63 - 1,
        "format_version": 2,
        "observed_at": 1_000,
        "changed_at": 900,
        "commit_interval_ms": 60_000,
        "next_look_at": 2_000,
        "plan_id": None,
        "problem": None,
    }
    return TableRecord(**{**values, **changes})  # type: ignore[arg-type]  # a test's choice of fields


def manifest(number: int, *partitions: Partition) -> ManifestSummary:
    counts = PartitionCounts(
        data_files=3,
        data_bytes=300,
        records=30,
        sizes=SizeHistogram({55: (3, 300)}),
        formats={FileFormat.PARQUET: 3},
        runs={-7: RunCounts(2, 200)},
    )
    return ManifestSummary(
        ManifestKey(f"s3://b/m{number}.avro", 100 + number, -number),
        FileContent.DATA,
        {p: PartitionSummary(counts, number, frozenset({2**62, 3}), 1) for p in partitions},
    )


def statistics(partition: Partition, files: int = 3) -> PartitionStatistics:
    return PartitionStatistics(
        partition, f"p={partition.values}", PartitionCounts(data_files=files, runs={2**62: RunCounts(1, 9)}), 500
    )


def plan(plan_id: str, *, table: int = 1, planned_at: int = 1_000) -> Plan:
    partition = Partition(0, '["2013-01"]')
    return Plan(
        plan_id=plan_id,
        table_id=table_id(table),
        table_name=TableName("lake", ("ns",), f"t{table}"),
        snapshot_id=5,
        planned_at=planned_at,
        mode=Mode.AUTO,
        actions=(action(5, partition),),
        reason=REASON,
        verdicts=(PartitionVerdict(partition, "month=2013-01", Verdict.REWRITE, REASON, 40, 1),),
        verdict_counts={Verdict.REWRITE: 1, Verdict.LEAVE: 2},
        prediction=RewritePrediction(40, 1, 40, 1, 400, 80),
        look_again_at=None,
    )


def hello(optimizer_id: str, slots: int = 1) -> OptimizerHello:
    return OptimizerHello(
        PROTOCOL_VERSION,
        optimizer_id,
        "0.1.0",
        "default",
        slots,
        ("lake",),
        "4.1.4",
        "1.12.0",
        actions=OPTIMIZER_ACTIONS,
    )


EXPIRY = ExpireSnapshots("m", 2, (1,), (), (), (2,), ExpiryRule(0, 1), 0)
OF_EXPIRY = ExpireSnapshotsPrediction(2, 1, (), 1, "", can_be_undone=False, undo="")
OF_SLOTS: Mapping[ActionKind, tuple[Action, Prediction]] = {
    ActionKind.REWRITE_DATA_FILES: (action(), RewritePrediction(40, 1, 40, 1, 400, 80)),
    ActionKind.REWRITE_MANIFESTS: (
        RewriteManifests(1, (), (), (), 512),
        RewriteManifestsPrediction(2, 1, 20, 10, 9, (), ""),
    ),
    ActionKind.COMPUTE_STATISTICS: (
        ComputeStatistics(1, "m", 0, (StatisticsColumn(1, "a"),), 9),
        ComputeStatisticsPrediction(
            ("a",),
            of_partitions=False,
            read_files=1,
            read_records=9,
            read_bytes=9,
            data_bytes=9,
            manifests=1,
            gain="",
            call="",
        ),
    ),
    ActionKind.EXPIRE_SNAPSHOTS: (EXPIRY, OF_EXPIRY),
    ActionKind.RESTORE_FILES: (RestoreFiles("task-0", 1, 1), RestoreFilesPrediction(1, 1, 0)),
}
"""Actions of each slot, and what is predicted of them."""


def of_kind(task_id: str, kind: ActionKind, *, table: int) -> NewTask:
    action, prediction = OF_SLOTS[kind]
    return replace(new_task(task_id, table=table), action=action, prediction=prediction)
