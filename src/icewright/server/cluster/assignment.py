"""Which server has which buckets: loads that differ by one bucket at most, by the fewest moves. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

Assignment = Mapping[int, int | None]
"""The session of the owner by bucket; None for a bucket without one."""
_NOTHING: Final[Mapping[int, int]] = {}


def assign(old: Assignment, sessions: Collection[int], tables: Mapping[int, int] = _NOTHING) -> Mapping[int, int]:
    """Give each bucket to one of the ``sessions``; no bucket to any where there are none.

    Of two sessions none has more than one bucket more than the other, and no assignment of which that is true moves
    fewer buckets of ``old``. Which buckets move, and where to, is chosen by how many ``tables`` each has: a server with
    more tables than the mean gives away the bucket with most, one with fewer that with least, and the bucket with most
    of those that move goes to the server with fewest. Deterministic.
    """
    if not sessions:
        return {}
    kept: dict[int, list[int]] = {session: [] for session in sorted(sessions)}
    homeless: list[int] = []
    for bucket in sorted(old):
        owner = old[bucket]
        (homeless if owner is None else kept.get(owner, homeless)).append(bucket)
    most = _most(kept, len(old))
    mean = sum(tables.get(bucket, 0) for bucket in old) / len(kept)
    load = {session: sum(tables.get(bucket, 0) for bucket in own) for session, own in kept.items()}
    for session, own in kept.items():
        while len(own) > most[session]:
            pick = max if load[session] > mean else min
            given = pick(own, key=lambda bucket: (tables.get(bucket, 0), bucket))
            own.remove(given)
            homeless.append(given)
            load[session] -= tables.get(given, 0)
    for bucket in sorted(homeless, key=lambda bucket: (-tables.get(bucket, 0), bucket)):
        room = [session for session, own in kept.items() if len(own) < most[session]]
        taker = min(room, key=lambda session: (load[session], len(kept[session]), session))
        kept[taker].append(bucket)
        load[taker] += tables.get(bucket, 0)
    return {bucket: session for session, own in kept.items() for bucket in own}


def is_balanced(old: Assignment, sessions: Collection[int]) -> bool:
    """Whether :func:`assign` would move nothing."""
    counts = dict.fromkeys(sessions, 0)
    for owner in old.values():
        if owner is None or owner not in counts:
            return False
        counts[owner] += 1
    return not counts or max(counts.values()) - min(counts.values()) <= 1


def _most(kept: Mapping[int, Collection[int]], buckets: int) -> Mapping[int, int]:
    """How many buckets each session may have: who has most keeps the one that is left over by the division."""
    floor, over = divmod(buckets, len(kept))
    by_count = sorted(kept, key=lambda session: (-len(kept[session]), session))
    return {session: floor + (place < over) for place, session in enumerate(by_count)}
