"""Which groups share a Spark task: a task costs both sides some CPU, and many groups are small."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

TASK_BYTES_MAX: Final = 32 << 20
"""Of groups that share a task. It ends for all of them when its worker dies."""
TASKS_PER_CORE: Final = 2
"""Of groups that are small: tasks are of unequal length, and the last one is waited for."""

Element = TypeVar("Element")


def spark_tasks(elements: Sequence[Element], size_bytes: Callable[[Element], int], cores: int) -> list[list[Element]]:
    """The groups of each task, which carries them out one after the other; all in the order of ``elements``.

    A task is full when it has its share of all bytes: there are no more than ``TASKS_PER_CORE`` for each core, unless
    they would hold more than :data:`TASK_BYTES_MAX`.
    """
    total_bytes = sum(size_bytes(element) for element in elements)
    share_bytes = min(TASK_BYTES_MAX, total_bytes / (cores * TASKS_PER_CORE))
    tasks: list[list[Element]] = []
    held_bytes = 0
    for element in elements:
        size = size_bytes(element)
        if not tasks or held_bytes >= share_bytes or held_bytes + size > TASK_BYTES_MAX:
            tasks.append([])
            held_bytes = 0
        tasks[-1].append(element)
        held_bytes += size
    return tasks
