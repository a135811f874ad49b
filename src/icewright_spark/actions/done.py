"""What a job did: how it ended, what it proved and left, and what that cost."""

from __future__ import annotations

import resource
from dataclasses import dataclass
from typing import Final

from icewright.model.work.jobs import GroupFigures, GroupLeft, Receipt, Result
from icewright_spark.session.driver_cost import DriverCost

ONE_GROUP: Final = 0
"""The id of the group that a job of the driver alone is, in what is reported."""


@dataclass(frozen=True, slots=True)
class Done:
    """Of each group its receipt and what it cost, or why it is left.

    ``driver_cpu_ms`` is what of the CPU of the attempt's own thread is in the figures already. ``answer`` is what a job
    found that only reads, as JSON of a document of its own.
    """

    result: Result
    receipts: tuple[Receipt, ...] = ()
    figures: tuple[GroupFigures, ...] = ()
    left: tuple[GroupLeft, ...] = ()
    driver_cpu_ms: int = 0
    answer: str = ""


def done_by_driver(
    result: Result,
    receipts: tuple[Receipt, ...],
    cost: DriverCost,
    *,
    input_files: int,
    input_bytes: int,
    records: int,
    output_paths: tuple[str, ...] = (),
    output_bytes: int = 0,
    answer: str = "",
) -> Done:
    """What a job did that Spark's driver carried out alone and that has just ended: one commit, one group.

    CPU is of the job's own thread, in Python and in the JVM; what the JVM does in other threads, or Spark in its
    workers, is not in it (:class:`~icewright_spark.session.driver_cost.DriverCost`). The memory is the most that the
    driver's Python process ever had: the JVM's is one heap for all that runs in it, of which nobody can tell the job's
    share.
    """
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
    return Done(result, receipts, (figures,), driver_cpu_ms=cost.python_ms, answer=answer)
