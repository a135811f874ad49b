"""Which groups share a Spark task: a task costs both sides some CPU, and many groups are small."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from icewright_spark.merge.merge import MergeJob
from icewright_spark.stitch.stitch import StitchJob

TASK_BYTES_MAX: Final = 32 << 20
"""Of groups that share a task. It ends for all of them when its worker dies."""
TASKS_PER_CORE: Final = 2
"""At least, where there are as many groups: tasks are of unequal length, and the last one is waited for."""

Job = TypeVar("Job", bound=MergeJob | StitchJob)


def spark_tasks(jobs: Sequence[Job], cores: int) -> list[list[Job]]:
    """The groups of each task, which carries them out one after the other; all in the order of ``jobs``."""
    total_bytes = sum(job.group.size_bytes for job in jobs)
    limit = min(TASK_BYTES_MAX, total_bytes // (cores * TASKS_PER_CORE))
    tasks: list[list[Job]] = []
    held_bytes = 0
    for job in jobs:
        if not tasks or held_bytes + job.group.size_bytes > limit:
            tasks.append([])
            held_bytes = 0
        tasks[-1].append(job)
        held_bytes += job.group.size_bytes
    return tasks
