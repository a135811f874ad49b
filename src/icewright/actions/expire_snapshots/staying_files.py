"""Which snapshots and refs an expiry leaves where they are: Iceberg's own rules, and what keeps more than they do.

Asked twice, when an expiry is planned and again right before its commit, of what the table is by then.

- **Clocks** (of writers) may be wrong, and a rollback makes old snapshots new again. So a snapshot counts as no older
  than the last time that it became the current one, or that it ceased to be by a rollback; and what expires by itself
  no older than our own first sight of it. And one that is younger than any age that the table or the rule knows stays,
  also where Iceberg's walk along a branch ends before it, at one that says that it is older and came later.
- **Holds**: consumers and tasks that go on from a snapshot need it and all that came after it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from icewright.actions.expire_snapshots.settings import AGE_FLOOR_MS
from icewright.core.times import Instant
from icewright.inventory.snapshot_retention import retained_refs, retained_snapshots
from icewright.model.actions.expire_snapshots import ExpiryRule, Hold
from icewright.model.iceberg.tables import Ref, TableMetadata
from icewright.model.plans.plans import Reason
from icewright.plans.consumers import declared_consumers, flink_sinks, holds_of


@dataclass(frozen=True, slots=True)
class Staying:
    """What stays, and by what. ``by_clock`` and ``held`` have what the rule alone would not keep.

    ``held`` has the snapshots that each hold keeps and none before it, by the words for it. ``findings`` are about
    consumers that keep nothing any more.
    """

    refs: tuple[Ref, ...]
    by_rule: frozenset[int]
    by_clock: frozenset[int]
    held: Mapping[str, frozenset[int]]
    findings: tuple[Reason, ...]

    @property
    def snapshots(self) -> frozenset[int]:
        """All snapshots that stay."""
        return self.by_rule.union(self.by_clock, *self.held.values())


def staying(
    metadata: TableMetadata,
    rule: ExpiryRule,
    now: Instant,
    *,
    max_hold_ms: int,
    holds: Iterable[Hold] = (),
    first_seen: Mapping[int, Instant] | None = None,
    consumers_at: Instant | None = None,
) -> Staying:
    """What stays of a table under a rule, of consumers as they are at ``consumers_at`` (``now`` without one).

    ``first_seen`` is for what runs by itself, and brings its floor with it: by when each snapshot was there, by our own
    clock. One that is not in it is seen now for the first time.
    """
    times = {one.snapshot_id: one.committed_at for one in metadata.snapshots}
    since = _counted_from(metadata, times, first_seen, now)
    moved = tuple(replace(one, committed_at=since[one.snapshot_id]) for one in metadata.snapshots)
    as_counted = replace(metadata, snapshots=moved)
    by_rule = retained_snapshots(metadata, rule, now)
    oldest_at = now - rule.older_than_ms
    by_clock = retained_snapshots(as_counted, rule, now) | {
        one for one, at in since.items() if at > times[one] and at >= oldest_at
    }
    ages_ms = [ref.max_snapshot_age_ms for ref in metadata.refs if ref.max_snapshot_age_ms is not None]
    age_ms = min([rule.older_than_ms, *ages_ms])
    by_clock |= {one for one, at in times.items() if at >= now - age_ms}
    refs = retained_refs(as_counted, now)
    if first_seen is not None:
        young = {one for one, at in since.items() if at > now - AGE_FLOOR_MS}
        by_clock |= young
        refs = tuple(ref for ref in metadata.refs if ref in refs or ref.snapshot_id in young)
    heard_at = now if consumers_at is None else consumers_at
    known = (*declared_consumers(metadata), *flink_sinks(metadata))
    consumers, findings = holds_of(metadata, known, heard_at, max_hold_ms)
    return Staying(
        refs, by_rule, by_clock - by_rule, _held(metadata, (*consumers, *holds), by_rule | by_clock), findings
    )


def _held(metadata: TableMetadata, holds: Iterable[Hold], kept: frozenset[int]) -> dict[str, frozenset[int]]:
    """What holds keep besides, by who holds: a snapshot and all that descend from it, on any line.

    Several may be called the same, as the sinks of one Flink job are. Nothing is walked or counted twice: there may be
    hundreds of holds on a hundred thousand snapshots.
    """
    children: dict[int | None, list[int]] = {}
    for one in metadata.snapshots:
        children.setdefault(one.parent_id, []).append(one.snapshot_id)
    known = {one.snapshot_id for one in metadata.snapshots}
    found: set[int] = set()
    held: dict[str, set[int]] = {}
    for hold in holds:
        waiting = [hold.snapshot_id] if hold.snapshot_id in known else []
        while waiting:
            at = waiting.pop()
            if at not in found:
                found.add(at)
                held.setdefault(hold.by, set()).add(at)
                waiting.extend(children.get(at, ()))
    return {who: frozenset(ids - kept) for who, ids in held.items() if ids - kept}


def _counted_from(
    metadata: TableMetadata, times: Mapping[int, Instant], first_seen: Mapping[int, Instant] | None, now: Instant
) -> dict[int, Instant]:
    """Since when each snapshot counts: never earlier than it says itself."""
    since = dict(times)

    def move(snapshot_id: int, at: Instant) -> None:
        since[snapshot_id] = max(since[snapshot_id], at)

    line: Collection[int] = {one.snapshot_id for one in metadata.ancestors()}
    log = metadata.snapshot_log
    for number, entry in enumerate(log):
        if entry.snapshot_id not in since:
            continue
        move(entry.snapshot_id, entry.at)
        if entry.snapshot_id not in line and number + 1 < len(log):
            move(entry.snapshot_id, log[number + 1].at)
    if first_seen is not None:
        for snapshot_id in since:
            move(snapshot_id, first_seen.get(snapshot_id, now))
    return since
