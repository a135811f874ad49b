"""What commits that remove rows mean for a table: how long partitions are left alone, and how long a task may take.

A rewrite and a DELETE, UPDATE or MERGE of the same files cannot both commit. Where the owner's statement comes second,
it may fail, and has to run again: so a partition that lost rows is left alone for a while. Where the rewrite comes
second, its groups of that partition come to nothing: so a task is to end well before rows are removed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from icewright.domain.files import Partition
from icewright.domain.observation import Observation, Removals
from icewright.domain.policy import Policy
from icewright.domain.tables import Instant
from icewright.planning import wording

REMOVAL_INTERVALS: Final = 3
"""Commit intervals for which a partition that lost rows is left alone."""

WRITER_RUN_MS_MAX: Final = 86_400_000
"""The longest run of a writer that is believed, a day: a restore from a backup gives new files old times."""

CLOCK_AHEAD_MS_MAX: Final = 60_000
"""How far ahead of ours the clock of a writer may be. What is dated later says nothing of when it happened."""

UNKNOWN_INTERVAL_WAIT_MS: Final = 3_600_000
"""The same where the table has too few commits to have an interval: an hour, as long as most jobs run. Also the most
that intervals may say: that a job runs once a day does not mean that it runs for a day."""

OVERHEAD_MS: Final = 2_000
"""What a task takes on the clock however small it is: it is claimed, Spark plans it, its commit is made."""

TASK_MS_MIN: Final = 5_000
"""So long a task may take in any case: a core merges about 100 MB in it. Below, tasks would be overhead for the most
part, and work would never be done where rows are removed all the time."""


def removal_wait_ms(observation: Observation, policy: Policy) -> int:
    """How long a partition that lost rows is left alone after that commit.

    A rewrite that commits first can fail the owner's long DELETE or MERGE, which then has to run again from the
    start. So the wait is the longest of: three commit intervals of the table (at most an hour), the longest
    observed run of a writer that removed rows (at most a day), and the write window that the owner declared.
    """
    interval_ms = observation.commit_interval_ms
    by_interval_ms = UNKNOWN_INTERVAL_WAIT_MS
    if interval_ms is not None:
        by_interval_ms = min(REMOVAL_INTERVALS * interval_ms, UNKNOWN_INTERVAL_WAIT_MS)
    by_run_ms = min(observation.removals.writer_run_ms_max, WRITER_RUN_MS_MAX)
    return max(by_interval_ms, by_run_ms, policy.write_window_ms or 0)


def last_removal_at(removals: Removals, partition: Partition, now: Instant) -> Instant | None:
    """When rows were last removed from a partition, None where that was not lately."""
    known = (removals.removed_at.get(partition), removals.everywhere_at)
    return max((at for at in known if at is not None and at <= now + CLOCK_AHEAD_MS_MAX), default=None)


def removed_every_ms(removals: Removals, partition: Partition, now: Instant) -> int | None:
    """About how often rows are removed from a partition; None where that was not lately.

    As often as it was, by the median of the gaps; but where none has come for longer than that, that much longer.
    """
    last_at = last_removal_at(removals, partition, now)
    return None if last_at is None else max(removals.every_ms.get(partition, 0), now - last_at, 1)


def removals_said(removals: Removals, partition: Partition, where: str, now: Instant) -> str:
    """How often rows are removed from a partition, which is called ``where``; without a rhythm, when they last were."""
    every_ms, last_at = removed_every_ms(removals, partition, now), last_removal_at(removals, partition, now)
    if every_ms is None or last_at is None:
        return f"no rows were removed from {where} lately"
    if partition in removals.rhythmic and now - last_at <= removals.every_ms.get(partition, 0):
        return f"rows are removed from {where} about every {wording.about(every_ms)}"
    return f"rows were last removed from {where} {wording.about(max(0, now - last_at))} ago"


def task_ms_max(observation: Observation, policy: Policy, partition: Partition, now: Instant) -> float:
    """How long a task may take that rewrites files of a partition.

    The policy's share of the time that is left between the wait after one removal and the next removal; but never less
    than :data:`TASK_MS_MIN`, and infinity where there is nothing to hurry for.
    """
    every_ms = removed_every_ms(observation.removals, partition, now)
    if every_ms is None or policy.max_task_time_ratio >= 1:
        return inf
    return max(TASK_MS_MIN, policy.max_task_time_ratio * (every_ms - removal_wait_ms(observation, policy)))


def duration_ms(work_ms: float, pace: float) -> float:
    """About how long a task takes on the clock, for the CPU that is estimated for it on one core.

    ``pace`` is what earlier tasks took, against what was expected of them.
    """
    return pace * (OVERHEAD_MS + work_ms)


@dataclass(frozen=True, slots=True)
class Load:
    """A group as a part of a task: its work as CPU, and how long a task with it may take."""

    work_ms: float
    task_ms_max: float


def in_time(loads: Sequence[Load], pace: float, *, tight: bool) -> tuple[int, ...]:
    """Which groups are one task, as positions in rising order: all of them, where the task ends in time for each.

    Else, where ``tight``, those that have least time, and with them what does not make it too long for these; and
    where not, those that have most, as many as leave each of them enough. At least one; the others follow.
    """
    by_time = sorted(range(len(loads)), key=lambda position: (loads[position].task_ms_max, position), reverse=not tight)
    taken: list[int] = []
    work_ms, most_ms = 0.0, inf
    for position in by_time:
        work_ms, most_ms = work_ms + loads[position].work_ms, min(most_ms, loads[position].task_ms_max)
        if taken and duration_ms(work_ms, pace) > most_ms:
            break
        taken.append(position)
    return tuple(sorted(taken))
