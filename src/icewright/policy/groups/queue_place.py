"""Where the tasks of a table wait: in which resource group, in which lane of it, and how far ahead."""

from __future__ import annotations

from dataclasses import dataclass

from icewright.model.policy.policy import Policy, RealTime
from icewright.model.policy.resource_groups import DEFAULT_GROUP, TENANT_LENGTH_MAX, Queue
from icewright.model.work.admission import NO_LANE, Lane, Urgency


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """Where a task waits."""

    resource_group: str = DEFAULT_GROUP
    lane: Lane = NO_LANE
    priority: int = 0


def queue_place(policy: Policy, owner: str, commit_interval_ms: int | None, queue: Queue = Queue.NORMAL) -> QueuePlace:
    """Where tasks of a table of that owner, empty for nobody, wait.

    ``commit_interval_ms`` is the median between its latest commits, None where that is not known.
    """
    urgency = Urgency.REAL_TIME if _is_real_time(policy, commit_interval_ms) else Urgency.NORMAL
    lane = Lane(queue, urgency, tenant_of(owner))
    return QueuePlace(policy.resource_group, lane, policy.priority)


def tenant_of(owner: str) -> str:
    """An owner as the name of a tenant: what cannot be printed, or is too long for an index, is not in it."""
    return "".join(letter if letter.isprintable() else "?" for letter in owner.strip()[:TENANT_LENGTH_MAX])


def _is_real_time(policy: Policy, commit_interval_ms: int | None) -> bool:
    if policy.real_time is RealTime.AUTO:
        return commit_interval_ms is not None and commit_interval_ms <= policy.real_time_interval_ms
    return policy.real_time is RealTime.YES
