"""A task that is to end before rows are removed again: which of the groups that fit into it it takes.

What would be lost to a commit that removes rows is not begun together with work that takes longer. So partitions that
lose rows often have short tasks of their own, and the others tasks without them. Both take turns, whether they come to
something or not: neither waits for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from icewright.actions.rewrite_data_files.groups import Group
from icewright.core import wording
from icewright.core.times import Instant
from icewright.inventory.row_removals import Load, in_time, removals_said, removed_every_ms, task_ms_max
from icewright.model.iceberg.files import Partition
from icewright.model.plans.observation import Observation
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import Policy
from icewright.plans.estimates import cpu_ms

_TIGHT = "tight"
"""The figure of a plan's reason that says so."""


@dataclass(frozen=True, slots=True)
class Hurried:
    """The groups of a task, by partition; and where some were left for later, so that it ends in time, why."""

    chosen: Mapping[Partition, tuple[Group, ...]]
    reason: Reason | None = None


def hurried(
    chosen: Mapping[Partition, tuple[Group, ...]],
    paths: Mapping[Partition, str],
    observation: Observation,
    policy: Policy,
    now: Instant,
) -> Hurried:
    """What of ``chosen`` is one task; ``paths`` are what to call the partitions."""
    groups = [(partition, group) for partition, groups in chosen.items() for group in groups]
    most_ms = {partition: task_ms_max(observation, policy, partition, now) for partition in chosen}
    loads = [Load(_work_ms(group, policy), most_ms[partition]) for partition, group in groups]
    pace, tight = observation.experience.pace, not observation.experience.was_tight
    taken = in_time(loads, pace, tight=tight)
    if len(taken) == len(groups):
        return Hurried(chosen)
    kept: dict[Partition, tuple[Group, ...]] = {}
    for partition, group in (groups[position] for position in taken):
        kept[partition] = (*kept.get(partition, ()), group)
    busiest = min(most_ms, key=lambda partition: (most_ms[partition], partition))
    every_ms = removed_every_ms(observation.removals, busiest, now) or 0
    limit, where = wording.about(most_ms[busiest]), wording.place(paths[busiest])
    said = removals_said(observation.removals, busiest, "it", now)
    text = f"a task with {where} is to take no longer than {limit}, since {said}"
    text += ", and this is one" if busiest in kept else ", and this one takes longer"
    figures = {"task_ms_max": round(most_ms[busiest]), "removed_every_ms": every_ms, "pace": round(pace, 2)}
    return Hurried(kept, Reason("follows", text, {**figures, _TIGHT: int(tight)}))


def is_tight(reason: Reason) -> bool:
    """Whether a plan with this reason was of the groups alone that had least time."""
    return bool(reason.figures.get(_TIGHT))


def _work_ms(group: Group, policy: Policy) -> float:
    """What a group takes, as if no row of it were deleted."""
    return cpu_ms(len(group.files), group.size_bytes, group.size_bytes, group.choice.executor, policy)
