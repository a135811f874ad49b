"""What the attempts at a task measured, to be put beside what its plan predicted.

As their reports say it: what became of the table is the verifier's to say. An attempt that ended by an error of the
whole reports no figures, and one that never reported, nothing; the sums are without them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from icewright.model.work.jobs import GROUP_CONFLICT, Committed, CommitUnknown, TaskReport, report_of
from icewright.model.work.tasks import Attempt


@dataclass(frozen=True, slots=True)
class Measured:
    """What a task took, in all its attempts that reported, and what of it is in the table.

    Files, ``input_bytes``, ``output_bytes`` and rows are of the groups that were committed. ``read_bytes``, ``cpu_ms``
    and ``wall_ms`` count all work, and ``proof_cpu_ms`` what of that CPU went into proofs; ``written_bytes`` all that
    was written, of which ``wasted_bytes`` are in no commit.
    ``groups_conflicted`` and ``groups_failed`` count the groups left out.
    """

    attempts: int
    groups_committed: int
    groups_conflicted: int
    groups_failed: int
    input_files: int
    input_bytes: int
    output_files: int
    output_bytes: int
    records: int
    deleted_records: int
    read_bytes: int
    written_bytes: int
    wasted_bytes: int
    cpu_ms: int
    wall_ms: int
    peak_memory_bytes: int
    proof_cpu_ms: int


def measured(attempts: Iterable[Attempt]) -> Measured | None:
    """The sums over the attempts at a task; None before the first report.

    What an attempt that cannot tell whether it committed has written is neither committed nor wasted.
    """
    reports = [report for report in map(report_of, attempts) if report is not None]
    if not reports:
        return None
    every = [group for report in reports for group in report.groups]
    left = [group for report in reports for group in report.left]
    kept = {(r.attempt, g.group_id) for r in reports for g in r.groups if _is_committed(r, g.group_id)}
    doubtful = {report.attempt for report in reports if isinstance(report.result, CommitUnknown)}
    done = [(r.attempt, group) for r in reports for group in r.groups]
    committed = [group for attempt, group in done if (attempt, group.group_id) in kept]
    receipts = [receipt for r in reports for receipt in r.receipts if (r.attempt, receipt.group_id) in kept]
    return Measured(
        attempts=len(reports),
        groups_committed=len(committed),
        groups_conflicted=sum(group.code == GROUP_CONFLICT for group in left),
        groups_failed=sum(group.code != GROUP_CONFLICT for group in left),
        input_files=sum(group.input_files for group in committed),
        input_bytes=sum(group.input_bytes for group in committed),
        output_files=sum(len(group.output_paths) for group in committed),
        output_bytes=sum(group.output_bytes for group in committed),
        records=sum(receipt.records for receipt in receipts),
        deleted_records=sum(receipt.deleted_records for receipt in receipts),
        read_bytes=sum(group.input_bytes for group in every),
        written_bytes=sum(group.output_bytes for group in every),
        wasted_bytes=sum(
            group.output_bytes
            for attempt, group in done
            if (attempt, group.group_id) not in kept and attempt not in doubtful
        ),
        cpu_ms=sum(report.cpu_ms for report in reports),
        wall_ms=sum(report.wall_ms for report in reports),
        peak_memory_bytes=max((group.peak_memory_bytes for group in every), default=0),
        proof_cpu_ms=sum(group.proof_cpu_ms for group in every),
    )


def committed_input_bytes(attempts: Iterable[Attempt], without: Collection[int]) -> int:
    """Bytes of the files that the attempts at a task replaced in the table, but for those of groups by their ids."""
    reports = [report for report in map(report_of, attempts) if report is not None]
    groups = [group for report in reports for group in report.groups if _is_committed(report, group.group_id)]
    return sum(group.input_bytes for group in groups if group.group_id not in without)


def _is_committed(report: TaskReport, group_id: int) -> bool:
    return isinstance(report.result, Committed) and all(left.group_id != group_id for left in report.left)
