"""An optimizer without Spark: claims through the dispatcher, commits to the catalog in memory, and fails on demand.

An attempt is carried out step by step, so that a test can let anything happen in between: :meth:`Worker.claim`,
:meth:`Worker.beat`, :meth:`Worker.commit` and :meth:`Worker.report`. A crash is simply not taking the next step; a
zombie takes it after its lease has run out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from icewright.core.errors import Conflict, NotFound, TableReplaced
from icewright.model.actions.actions import OPTIMIZER_ACTIONS, FileGroup, RewriteDataFiles
from icewright.model.iceberg.files import Partition
from icewright.model.iceberg.tables import (
    ATTEMPT_KEY,
    GROUPS_KEY,
    LAYOUT_KEY,
    LEVEL_KEY,
    PROOF_KEY,
    TASK_ID_KEY,
    Snapshot,
)
from icewright.model.plans.group_ids import group_ids_text
from icewright.model.plans.requests import PlanRequest
from icewright.model.work.jobs import (
    GROUP_CONFLICT,
    PROTOCOL_VERSION,
    Cancelled,
    Committed,
    CommitUnknown,
    Conflicted,
    Failed,
    GroupLeft,
    Heartbeat,
    HeartbeatReply,
    OptimizerHello,
    Result,
    TaskReport,
    TaskSpec,
)
from icewright.model.work.tasks import Outcome, Progress, Task, TaskState
from tests.builders.lakehouse import NAME, Lakehouse
from tests.doubles.catalog import MemoryCatalog
from tests.doubles.lake import MemoryFile
from tests.narrowing import not_none

RETRYABLE = Failed("engine", "the executor was lost", retryable=True)
FINAL = Failed("proof-failed", "the rows that were read back are not those that went in", retryable=False)
UNREADABLE = "file-unreadable"
STOPPED = Cancelled("cancelled before the commit")


def hello(optimizer_id: str, catalogs: tuple[str, ...] = ("lake",), protocol: int = PROTOCOL_VERSION) -> OptimizerHello:
    """How an optimizer introduces itself."""
    return OptimizerHello(
        protocol,
        optimizer_id,
        "0.1.0",
        "default",
        1,
        catalogs,
        "4.1.4",
        "1.12.0",
        cores=2,
        memory_bytes=1 << 30,
        actions=OPTIMIZER_ACTIONS,
    )


@dataclass
class Worker:
    """One optimizer. Its requests go to whatever control plane the lakehouse has at the moment."""

    lakehouse: Lakehouse
    optimizer_id: str = "optimizer-a"
    lost_rows: int = 0
    """So many rows are missing from its first output: what a proof is there to prevent."""
    commits: list[tuple[str, int]] = field(default_factory=list)
    """Task ids and snapshot ids of commits that went through."""
    lost: dict[tuple[str, int], dict[int, str]] = field(default_factory=dict)
    """The groups of each attempt that were found to have met another commit, and what."""
    unreadable: set[str] = field(default_factory=set)
    """Input files whose groups fail by themselves."""
    failure: str = UNREADABLE
    """The code that they fail with."""
    signs_groups: bool = True
    """Whether a commit of some groups says so."""
    groups_said: str | None = None
    """What it says then, where that is not the truth."""
    wall_ms: int = 1
    """How long it says that an attempt took."""

    def introduce(self, *catalogs: str) -> None:
        """Say hello."""
        self.lakehouse.control.dispatcher.hello(hello(self.optimizer_id, catalogs or ("lake",)))

    def claim(self) -> TaskSpec | None:
        """Ask for work."""
        return self.lakehouse.control.dispatcher.claim(self.optimizer_id)

    def claim_if_any(self) -> TaskSpec | None:
        """Say hello and ask for work."""
        self.introduce()
        return self.claim()

    def claimed(self) -> TaskSpec:
        """Ask for work that must be there."""
        spec = self.claim_if_any()
        assert spec is not None
        return spec

    def beat(self, spec: TaskSpec, phase: str = "merging") -> HeartbeatReply:
        """Say that the attempt is still running. Raises ``LeaseLost``."""
        progress = Progress(phase, 0, len(spec.rewrite.groups))
        return self.lakehouse.control.dispatcher.heartbeat(spec.task_id, Heartbeat(spec.fencing_token, progress))

    def look(self, spec: TaskSpec) -> bool:
        """Look which groups of an attempt have met another commit; whether there are more of them by now.

        What is committed later is without these, and validated by the catalog all the same.
        """
        catalog: MemoryCatalog = self.lakehouse.catalogs[spec.table_name.catalog]
        try:
            metadata = catalog.load(spec.table_name)
        except NotFound:
            return False
        snapshot, base = metadata.current_snapshot, metadata.snapshot(spec.rewrite.base_snapshot_id)
        if snapshot is None or base is None:
            return False
        keys, partitions = catalog.manifests(metadata, snapshot), frozenset(g.partition for g in spec.rewrite.groups)
        live = {file.path for file in catalog.data_files(metadata, snapshot, keys, partitions)}
        deletes = catalog.delete_files(metadata, snapshot, keys, partitions)
        deleted_from = {d.partition for d in deletes if d.data_sequence_number > base.sequence_number}
        lost = {
            group.group_id: "somebody changed its files"
            for group in spec.rewrite.groups
            if group.partition in deleted_from or any(file.path not in live for file in group.files)
        }
        known = self.lost.setdefault((spec.task_id, spec.attempt), {})
        more = not lost.keys() <= known.keys()
        known.update(lost)
        return more

    def part_of(self, spec: TaskSpec) -> RewriteDataFiles:
        """What an attempt commits, as far as it has looked."""
        left = {group.group_id for group in self.left(spec)}
        return spec.rewrite.only({group.group_id for group in spec.rewrite.groups} - left)

    def left(self, spec: TaskSpec) -> tuple[GroupLeft, ...]:
        """The groups that an attempt leaves out, as far as it has looked."""
        lost = self.lost.get((spec.task_id, spec.attempt), {})
        met = [GroupLeft(group_id, GROUP_CONFLICT, why, retryable=True) for group_id, why in lost.items()]
        groups = spec.action.groups if isinstance(spec.action, RewriteDataFiles) else ()
        bad = [g.group_id for g in groups if not self.unreadable.isdisjoint(f.path for f in g.files)]
        failed = [GroupLeft(n, self.failure, "a file is missing", retryable=True) for n in bad if n not in lost]
        return (*met, *failed)

    def commit(self, spec: TaskSpec) -> Snapshot:
        """Replace the files of every group that is whole by as many as the plan says.

        Raises ``Conflict`` and ``NotFound``.
        """
        catalog: MemoryCatalog = self.lakehouse.catalogs[spec.table_name.catalog]
        metadata = catalog.load(spec.table_name)
        if metadata.table_id != spec.table_id:
            raise TableReplaced(f"{spec.table_name} is another table now")
        part = self.part_of(spec)
        if not part.groups:
            raise Conflict("all groups met other commits")
        if part != spec.rewrite and metadata.snapshot_of_task(spec.task_id) is not None:
            raise Conflict("another attempt has committed")
        outputs = [file for group in part.groups for file in self._outputs(spec, group)]
        self.lakehouse.put(*outputs)
        snapshot = catalog.commit_rewrite(
            spec.table_name,
            base_snapshot_id=part.base_snapshot_id,
            remove=[file.path for group in part.groups for file in group.files],
            add=outputs,
            summary=self._summary(spec, part),
        )
        self.commits.append((spec.task_id, snapshot.snapshot_id))
        return snapshot

    def report(self, spec: TaskSpec, result: Result) -> Task:
        """Say how the attempt ended, truthfully or not. Raises ``LeaseLost``."""
        left = self.left(spec)
        return self.lakehouse.control.dispatcher.report(
            TaskReport(
                PROTOCOL_VERSION, spec.task_id, spec.attempt, spec.fencing_token, result, (), (), self.wall_ms, 1, left
            )
        )

    def try_commit(self, spec: TaskSpec) -> Committed | Conflicted | Failed:
        """Commit, without the groups that turn out to be lost, and tell which of the outcomes it was."""
        if all(group.code == self.failure for group in self.left(spec)) and not self.part_of(spec).groups:
            return Failed(self.failure, "a file is missing", retryable=True)
        while True:
            try:
                return Committed(self.commit(spec).snapshot_id)
            except (Conflict, NotFound) as error:
                if not self.look(spec) or not self.part_of(spec).groups:
                    return Conflicted(error.message)

    def carry_out(self) -> Task:
        """Claim, commit, report."""
        spec = self.claimed()
        return self.report(spec, self.try_commit(spec))

    def commit_unknown(self, spec: TaskSpec) -> Task:
        """Report that nobody can tell."""
        return self.report(spec, CommitUnknown("the catalog closed the connection"))

    def _summary(self, spec: TaskSpec, part: RewriteDataFiles) -> dict[str, str]:
        """How icewright signs its commits; a proof knows nothing of rows that are lost after it."""
        deleted = sum(deleted_records(group) for group in part.groups)
        records = part.record_count - deleted
        proof = f"memory;groups={len(part.groups)};records={records};deleted={deleted};digest=0"
        signature = {TASK_ID_KEY: spec.task_id, ATTEMPT_KEY: str(spec.attempt), PROOF_KEY: proof}
        signature[LEVEL_KEY] = part.level.value
        if part != spec.rewrite and self.signs_groups:
            signature[GROUPS_KEY] = self.groups_said or group_ids_text([group.group_id for group in part.groups])
        return signature if part.layout is None else {**signature, LAYOUT_KEY: part.layout.key}

    def _outputs(self, spec: TaskSpec, group: FileGroup) -> list[MemoryFile]:
        """Files of about equal rows and bytes."""
        lost, self.lost_rows = self.lost_rows, 0
        count, records = group.output_files, group.record_count - deleted_records(group) - lost
        return [
            MemoryFile(path, partition_of(group, number), len(share(group.size_bytes, number, count)), len(rows))
            for number, (path, rows) in enumerate(output_rows(spec, group, records).items())
        ]


def partition_of(group: FileGroup, number: int) -> Partition:
    """Where an output goes: in memory rows have no values, so what moves is spread over partitions by number."""
    return group.partition if group.output_spec_id is None else Partition(group.output_spec_id, f"[{number}]")


def output_rows(spec: TaskSpec, group: FileGroup, records: int) -> dict[str, range]:
    """The files that a group becomes, and which of its rows that are left each has: equal shares, one after the other.

    They are where its first file is.
    In memory rows have no order, so a layout is kept by any of them.
    """
    folder = "".join(group.files[0].path.rpartition("/")[:2])
    count, path = group.output_files, f"{folder}{group.group_id:05d}-{spec.task_id}-{spec.attempt}"
    paths = [f"{path}.parquet" if count == 1 else f"{path}-{number}.parquet" for number in range(count)]
    return {path: share(records, number, count) for number, path in enumerate(paths)}


def share(whole: int, number: int, count: int) -> range:
    """The part of a whole that the file of that number gets, of so many files."""
    return range(whole * number // count, whole * (number + 1) // count)


def deleted_records(group: FileGroup) -> int:
    """The rows that the deletes of a group remove: here each names other rows, of one file alone."""
    return sum(group.delete_files[position].record_count for file in group.files for position in file.deletes)


def claim(house: Lakehouse, asked: PlanRequest) -> TaskSpec:
    """Have that planned which is asked for, and take the task."""
    house.control.dispatcher.apply(house.control.maintainer.plan_asked(NAME, asked).plan_id)
    return Worker(house).claimed()


def at_work(house: Lakehouse) -> tuple[Worker, TaskSpec]:
    """An optimizer, and the task that it got: there is one."""
    worker = Worker(house)
    return worker, worker.claimed()


def report(house: Lakehouse, spec: TaskSpec, result: Result) -> Task:
    """Say how an attempt ended."""
    said = TaskReport(PROTOCOL_VERSION, spec.task_id, spec.attempt, spec.fencing_token, result, (), (), 1, 1)
    return house.control.dispatcher.report(said)


def verified(house: Lakehouse, spec: TaskSpec, snapshot: Snapshot) -> Task:
    """Say that an attempt committed a snapshot, and have the table looked at."""
    return house.control.verifier.verify(report(house, spec, Committed(snapshot.snapshot_id)))


def succeeded(task: Task) -> Outcome:
    """What came of a task that has succeeded."""
    assert task.state is TaskState.SUCCEEDED, task.outcome
    return not_none(task.outcome)
