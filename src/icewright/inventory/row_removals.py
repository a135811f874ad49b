"""What commits that remove rows mean for a table: how long partitions are left alone, and how long a task may take.

A rewrite and a DELETE, UPDATE or MERGE of the same files cannot both commit. Where the owner's statement comes second,
it may fail, and has to run again: so a partition that lost rows is left alone for a while, and is not rewritten often.
Where the rewrite comes second, its groups of that partition come to nothing: so a task is to end well before rows are
removed again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from statistics import median_high
from typing import Final

from icewright.core import wording
from icewright.core.times import Instant
from icewright.inventory.commit_rate import bursts, gaps_ms
from icewright.model.iceberg.files import Partition
from icewright.model.plans.observation import Observation, Removal, Removals
from icewright.model.policy.policy import Policy

REMOVAL_INTERVALS: Final = 3
"""Commit intervals for which a partition that lost rows is left alone."""

WRITER_RUN_MS_MAX: Final = 86_400_000
"""The longest run of a writer that is believed, a day: a restore from a backup gives new files old times."""

CLOCK_AHEAD_MS_MAX: Final = 60_000
"""How far ahead of ours the clock of a writer may be. What is dated later says nothing of when it happened."""

UNKNOWN_INTERVAL_WAIT_MS: Final = 3_600_000
"""The same where the table has too few commits to have an interval: an hour, as long as most jobs run. Also the most
that intervals may say: that a job runs once a day does not mean that it runs for a day."""

STATEMENTS_PER_FAILURE: Final = 100
"""One statement of so many may fail because of a rewrite."""

STATEMENTS_APART: Final = 150
"""Rewrites of what a statement touches are so many times as far apart as it is long. Each rewrite fails those that run
while it is committed, so one of so many fails, whatever the rhythm of either. The rest up to one of 100 is for what
this does not space: the first rewrite of a partition, and those from before anybody knew that rows are removed."""

UNKNOWN_STATEMENT_MS: Final = 20_000
"""How long a statement is taken to run of which nothing is known. Its commit shows what came after its first file: so
nothing of a statement whose tasks all end together. Such a task reads a split, 128 MB by default, in a few seconds."""

WAVES: Final = 2
"""A statement of several waves of tasks shows all of them but the first: it ran twice as long as it shows at most."""

SPACING_MS_MAX: Final = 86_400_000
"""The most that rewrites are apart because of statements, a day: or those that run for hours would end them."""

REMOVALS_COUNT_MS: Final = 604_800_000
"""For how long it counts that rows were removed, a week: what is done on each working day has a gap of three days."""

GAPS_MIN: Final = 4
REGULAR: Final = 0.8
"""Removals are regular from so many gaps on, none of which is shorter than this share of the median, the higher of two.
Of removals at random times one history of fifty with four gaps looks like that, and fewer with more."""

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


def statement_ms(observation: Observation, policy: Policy) -> int:
    """How long a statement that removes rows runs at most: as its owner says, or as is known of earlier ones.

    An owner who says zero wants no statement spared.
    """
    if policy.write_window_ms == 0:
        return 0
    shown_ms = min(observation.removals.writer_run_ms_max, WRITER_RUN_MS_MAX)
    if policy.write_window_ms is not None:
        return max(policy.write_window_ms, shown_ms)
    return max(UNKNOWN_STATEMENT_MS, WAVES * shown_ms)


@dataclass(frozen=True, slots=True)
class Spacing:
    """How far rewrites of partitions that lose rows are apart, at one moment.

    ``removals`` are those that count, newest first. ``scattered``: one of them is from a partition that was not removed
    from before or since, so the next one may be from any. ``met_at`` is when we last rewrote anything that a statement
    changed together with a partition: it meets rewrites of all of it. ``any_at`` is when we last rewrote anything.
    """

    statement_ms: int
    spacing_ms: int
    now: Instant
    removals: tuple[Removal, ...]
    scattered: bool
    met_at: Mapping[Partition, Instant]
    any_at: Instant | None
    known: Removals

    @classmethod
    def of(cls, observation: Observation, policy: Policy, now: Instant) -> Spacing:
        """The spacing of a table."""
        known, each_ms = observation.removals, statement_ms(observation, policy)
        counted = tuple(r for r in known.latest if now - REMOVALS_COUNT_MS < r.at <= now + CLOCK_AHEAD_MS_MAX)
        met_at: dict[Partition, Instant] = dict(known.rewritten_at)
        for partitions in {removal.partitions for removal in counted}:
            at = max((known.rewritten_at[one] for one in partitions if one in known.rewritten_at), default=None)
            if at is not None:
                met_at.update((one, max(at, met_at.get(one, at))) for one in partitions)
        times: dict[Partition, list[Instant]] = {}
        for removal in counted:
            for partition in removal.partitions:
                times.setdefault(partition, []).append(removal.at)
        scattered = any(bursts(its) == 1 for its in times.values())
        spacing_ms = min(STATEMENTS_APART * each_ms, SPACING_MS_MAX)
        any_at = max(known.rewritten_at.values(), default=None)
        return cls(each_ms, spacing_ms, now, counted, scattered, met_at, any_at, known)

    def until(self, partition: Partition) -> Instant | None:
        """Until when a partition is not rewritten again; None where it may be now."""
        its = self.removals if self.scattered else tuple(r for r in self.removals if r.touches(partition))
        last_at = self._last_at(partition, its)
        if last_at is None or self.now >= last_at + self.spacing_ms or self._is_between(its):
            return None
        return last_at + self.spacing_ms

    def _last_at(self, partition: Partition, its: Sequence[Removal]) -> Instant | None:
        """The last rewrite that a statement may have met which would also meet one of the partition."""
        if not its:
            return None
        everywhere = self.any_at if any(removal.everywhere for removal in its) else None
        known = (everywhere, self.met_at.get(partition), self.known.all_rewritten_at)
        return max((at for at in known if at is not None), default=None)

    def _is_between(self, its: Sequence[Removal]) -> bool:
        """Whether the next regular statement begins much later: half of the time until then is for work that waits."""
        gaps = gaps_ms([removal.at for removal in its])
        if len(gaps) < GAPS_MIN or min(gaps) < REGULAR * median_high(gaps):
            return False
        return self.now <= its[0].at + (min(gaps) - self.statement_ms) / 2


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
