"""What a job did that Spark's driver carries out alone: one commit, one proof, one group in what is reported."""

from __future__ import annotations

import resource
from dataclasses import dataclass
from typing import Final

from icewright.model.work.jobs import GroupFigures, Receipt
from icewright_spark.iceberg.commits.commit import CommitResult
from icewright_spark.session.driver_cost import DriverCost

ONE_GROUP: Final = 0
"""The id of that group."""


@dataclass(frozen=True, slots=True)
class DriverJob:
    """How the commit ended, its proof, and what it cost.

    CPU is of the job's own thread, in Python and in the JVM; what the JVM does in other threads, or Spark in its
    workers, is not in it (:class:`~icewright_spark.session.driver_cost.DriverCost`). ``driver_cpu_ms`` is what of it is
    Python's. The memory is the most that the driver's Python process ever had: the JVM's is one heap for all that runs
    in it, of which nobody can tell the job's share.
    """

    result: CommitResult
    receipt: Receipt
    figures: GroupFigures
    driver_cpu_ms: int


def driver_job(
    result: CommitResult,
    receipt: Receipt,
    cost: DriverCost,
    *,
    input_files: int,
    input_bytes: int,
    records: int,
    output_paths: tuple[str, ...] = (),
    output_bytes: int = 0,
) -> DriverJob:
    """What a job did that has just ended."""
    figures = GroupFigures(
        group_id=ONE_GROUP,
        input_files=input_files,
        input_bytes=input_bytes,
        output_paths=output_paths,
        output_bytes=output_bytes,
        records=records,
        cpu_ms=cost.cpu_ms,
        proof_cpu_ms=cost.proof_cpu_ms,
        wall_ms=cost.wall_ms,
        peak_memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    )
    return DriverJob(result, receipt, figures, cost.python_ms)
