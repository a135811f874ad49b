"""An optimizer without Spark: claims through the dispatcher, commits to the catalog in memory, and fails on demand.

An attempt is carried out step by step, so that a test can let anything happen in between: :meth:`Worker.claim`,
:meth:`Worker.beat`, :meth:`Worker.commit` and :meth:`Worker.report`. A crash is simply not taking the next step; a
zombie takes it after its lease has run out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from icewright.adapters.memory.catalog import MemoryCatalog
from icewright.adapters.memory.lake import MemoryFile
from icewright.domain.actions import FileGroup
from icewright.domain.errors import Conflict, NotFound, TableReplaced
from icewright.domain.jobs import (
    PROTOCOL_VERSION,
    Cancelled,
    Committed,
    CommitUnknown,
    Conflicted,
    Failed,
    Heartbeat,
    HeartbeatReply,
    OptimizerHello,
    Result,
    TaskReport,
    TaskSpec,
)
from icewright.domain.tables import ATTEMPT_KEY, LAYOUT_KEY, LEVEL_KEY, PROOF_KEY, TASK_ID_KEY, Snapshot
from icewright.domain.tasks import Progress, Task
from tests.services.lakehouse import Lakehouse

RETRYABLE = Failed("engine", "the executor was lost", retryable=True)
FINAL = Failed("proof-failed", "the rows that were read back are not those that went in", retryable=False)
STOPPED = Cancelled("cancelled before the commit")


def hello(optimizer_id: str, catalogs: tuple[str, ...] = ("lake",), protocol: int = PROTOCOL_VERSION) -> OptimizerHello:
    """How an optimizer introduces itself."""
    return OptimizerHello(protocol, optimizer_id, "0.1.0", "default", 1, catalogs, "4.1.4", "1.12.0")


@dataclass
class Worker:
    """One optimizer. Its requests go to whatever control plane the lakehouse has at the moment."""

    lakehouse: Lakehouse
    optimizer_id: str = "optimizer-a"
    lost_rows: int = 0
    """So many rows are missing from its first output: what a proof is there to prevent."""
    commits: list[tuple[str, int]] = field(default_factory=list)
    """Task ids and snapshot ids of commits that went through."""

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
        progress = Progress(phase, 0, len(spec.action.groups))
        return self.lakehouse.control.dispatcher.heartbeat(spec.task_id, Heartbeat(spec.fencing_token, progress))

    def commit(self, spec: TaskSpec) -> Snapshot:
        """Replace the files of every group by as many as the plan says. Raises ``Conflict`` and ``NotFound``."""
        catalog: MemoryCatalog = self.lakehouse.catalogs[spec.table_name.catalog]
        metadata = catalog.load(spec.table_name)
        if metadata.table_id != spec.table_id:
            raise TableReplaced(f"{spec.table_name} is another table now")
        snapshot = catalog.commit_rewrite(
            spec.table_name,
            base_snapshot_id=spec.action.base_snapshot_id,
            remove=[file.path for group in spec.action.groups for file in group.files],
            add=[file for group in spec.action.groups for file in self._outputs(spec, group)],
            summary=self._summary(spec),
        )
        self.commits.append((spec.task_id, snapshot.snapshot_id))
        return snapshot

    def report(self, spec: TaskSpec, result: Result) -> Task:
        """Say how the attempt ended, truthfully or not. Raises ``LeaseLost``."""
        return self.lakehouse.control.dispatcher.report(
            TaskReport(PROTOCOL_VERSION, spec.task_id, spec.attempt, spec.fencing_token, result, (), (), 1, 1)
        )

    def try_commit(self, spec: TaskSpec) -> Committed | Conflicted:
        """Commit, and tell which of the two outcomes it was."""
        try:
            return Committed(self.commit(spec).snapshot_id)
        except (Conflict, NotFound) as error:
            return Conflicted(error.message)

    def carry_out(self) -> Task:
        """Claim, commit, report."""
        spec = self.claimed()
        return self.report(spec, self.try_commit(spec))

    def commit_unknown(self, spec: TaskSpec) -> Task:
        """Report that nobody can tell."""
        return self.report(spec, CommitUnknown("the catalog closed the connection"))

    def _summary(self, spec: TaskSpec) -> dict[str, str]:
        """How icewright signs its commits; a proof knows nothing of rows that are lost after it."""
        deleted = sum(deleted_records(group) for group in spec.action.groups)
        records = spec.action.record_count - deleted
        proof = f"memory;groups={len(spec.action.groups)};records={records};deleted={deleted};digest=0"
        signature = {TASK_ID_KEY: spec.task_id, ATTEMPT_KEY: str(spec.attempt), PROOF_KEY: proof}
        signature[LEVEL_KEY] = spec.action.level.value
        return signature if spec.action.layout is None else {**signature, LAYOUT_KEY: spec.action.layout.key}

    def _outputs(self, spec: TaskSpec, group: FileGroup) -> list[MemoryFile]:
        """Files of about equal rows and bytes."""
        lost, self.lost_rows = self.lost_rows, 0
        count, records = group.output_files, group.record_count - deleted_records(group) - lost
        path = f"{group.group_id:05d}-{spec.task_id}-{spec.attempt}"
        return [
            MemoryFile(
                f"{path}.parquet" if count == 1 else f"{path}-{number}.parquet",
                group.partition,
                _share(group.size_bytes, number, count),
                _share(records, number, count),
            )
            for number in range(count)
        ]


def _share(whole: int, number: int, count: int) -> int:
    """The part of a whole that the file of that number gets."""
    return whole * (number + 1) // count - whole * number // count


def deleted_records(group: FileGroup) -> int:
    """The rows that the deletes of a group remove: here each names other rows, of one file alone."""
    return sum(group.delete_files[position].record_count for file in group.files for position in file.deletes)
