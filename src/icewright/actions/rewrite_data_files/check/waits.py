"""The second opinion on when partitions are rewritten that lose rows: not right after that, and not often."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import median_high

from icewright.core.times import Instant
from icewright.model.iceberg.files import Partition
from icewright.model.plans.observation import Observation, Removal
from icewright.model.policy.policy import Policy

_MINUTE_MS = 60 * 1000
_HOUR_MS = 60 * _MINUTE_MS
_DAY_MS = 24 * _HOUR_MS
_STATEMENT_MS = 20 * 1000
_GAPS = 4


def wait_violations(
    partitions: Iterable[Partition], observation: Observation, policy: Policy, now: Instant
) -> Iterator[tuple[str, str]]:
    """What speaks against rewriting these partitions at this time: stable codes, and sentences."""
    removals, interval_ms = observation.removals, observation.commit_interval_ms
    wait_ms = _HOUR_MS if interval_ms is None else min(3 * interval_ms, _HOUR_MS)
    for least_ms in (min(_DAY_MS, removals.writer_run_ms_max), policy.write_window_ms):
        wait_ms = max(wait_ms, least_ms or 0)
    runs_ms = _runs_ms(observation, policy)
    apart_ms = min(_DAY_MS, 150 * runs_ms)
    week = [one for one in removals.latest if -_MINUTE_MS <= now - one.at < 7 * _DAY_MS]
    met = [_newest(one, observation) for one in week]
    anywhere = _anywhere(week)
    for partition in partitions:
        for removed_at in (removals.removed_at.get(partition), removals.everywhere_at):
            if removed_at is not None and now - wait_ms < removed_at <= now + _MINUTE_MS:
                yield "too-soon", f"{partition} lost rows at {removed_at} and is left alone for {wait_ms} ms"
        its = [place for place, one in enumerate(week) if one.everywhere or partition in one.partitions]
        counted = week if anywhere else [week[place] for place in its]
        if not counted or _has_long(counted, runs_ms, now):
            continue
        times = [met[place] for place in its] + [removals.rewritten_at.get(partition, 0)]
        times += [met[place] for place, one in enumerate(week) if anywhere and one.everywhere]
        at = max(*times, removals.all_rewritten_at or 0)
        if now - at < apart_ms:
            yield "too-often", f"what is changed with {partition} was rewritten at {at}, less than {apart_ms} ms ago"


def _runs_ms(observation: Observation, policy: Policy) -> int:
    """How long a statement may run; 0 where its owner wants none spared."""
    if policy.write_window_ms == 0:
        return 0
    shown_ms = min(_DAY_MS, observation.removals.writer_run_ms_max)
    if policy.write_window_ms is not None:
        return max(policy.write_window_ms, shown_ms)
    return max(2 * shown_ms, _STATEMENT_MS)


def _newest(removal: Removal, observation: Observation) -> Instant:
    """When we last rewrote something that this statement changed, 0 for never."""
    known = observation.removals.rewritten_at
    return max((at for place, at in known.items() if removal.everywhere or place in removal.partitions), default=0)


def _anywhere(removals: list[Removal]) -> bool:
    """Whether there is a partition that rows were removed from within one minute alone, from commit to commit."""
    since: dict[Partition, Instant] = {}
    again: set[Partition] = set()
    for one in removals:
        again.update(place for place in one.partitions if place in since and since[place] - one.at >= _MINUTE_MS)
        since.update((place, one.at) for place in one.partitions)
    return since.keys() > again


def _has_long(removals: list[Removal], runs_ms: int, now: Instant) -> bool:
    """Whether they are regular, and not even half of the time has gone by until the next one should begin."""
    times = [one.at for one in removals]
    gaps = sorted(max(0, times[place] - times[place + 1]) for place in range(len(times) - 1))
    if len(gaps) < _GAPS or 5 * gaps[0] < 4 * median_high(gaps):
        return False
    return 2 * (now - times[0]) <= gaps[0] - runs_ms
