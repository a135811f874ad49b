"""A second opinion on every expiry before it is enqueued, stated anew from the words of the domain alone.

Nothing that plans an expiry is imported here, numbers included, nor asked the same way: the planner says what stays;
here each snapshot and each ref that is to go has to answer for itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from icewright.model.actions.expire_snapshots import ExpireSnapshots
from icewright.model.iceberg.tables import Ref, RefKind, Snapshot, TableMetadata
from icewright.model.policy.policy import Policy
from icewright.plans.check_table import Wrong

_DAY_MS = 24 * 60 * 60 * 1000
_MINUTE_MS = 60 * 1000
_LONG_DIGITS = 19
_CONSUMER = "icewright.consumer."


def check_expiry(
    action: ExpireSnapshots,
    metadata: TableMetadata,
    policy: Policy,
    *,
    now: int,
    first_seen: Mapping[int, int] | None,
    held: Collection[int] = (),
) -> tuple[Wrong, ...]:
    """All that is wrong with an expiry planned from this metadata at this instant; empty when it is sound.

    ``first_seen`` is given for what runs by itself: when each snapshot was first seen. ``held`` are snapshots from
    which a task or a consumer goes on that the table does not know.
    """
    checker = _Checker(action, metadata, policy, now, first_seen, frozenset(held))
    return tuple(checker.violations())


@dataclass(frozen=True, slots=True)
class _Checker:
    action: ExpireSnapshots
    metadata: TableMetadata
    policy: Policy
    now: int
    first_seen: Mapping[int, int] | None
    held: frozenset[int]

    def violations(self) -> Iterator[Wrong]:
        yield from self._table()
        yield from self._books()
        yield from self._rule()
        yield from self._refs()
        by_id = {one.snapshot_id: one for one in self.metadata.snapshots}
        going = [by_id[number] for number in self.action.snapshot_ids if number in by_id]
        ages_ms = {ref.max_snapshot_age_ms for ref in self.metadata.refs} - {None}
        least_ms = min([self.action.rule.older_than_ms, *(age for age in ages_ms if age is not None)])
        for snapshot in going:
            if self.now - snapshot.committed_at <= least_ms:
                yield "too-young", f"snapshot {snapshot.snapshot_id} is younger than anything that it belongs to allows"
            yield from self._by_itself(snapshot)
        yield from self._aside(by_id)
        yield from self._branches(by_id)
        yield from self._readers(by_id)
        yield from self._clocks()

    def _table(self) -> Iterator[Wrong]:
        properties = self.metadata.properties
        if self.policy.problems:
            yield "policy-problems", f"{len(self.policy.problems)} settings of the table cannot be used"
        if not self.metadata.has_uuid:
            yield "no-uuid", "the table has no uuid"
        if "gc.enabled" in properties and properties["gc.enabled"].lower() != "true":
            yield "gc-disabled", "gc.enabled is not true"
        if any(key.startswith("encryption.") for key in properties):
            yield "encrypted", "the table is encrypted"
        known = {one.snapshot_id for one in self.metadata.snapshots}
        named = {ref.snapshot_id for ref in self.metadata.refs} | {
            one.snapshot_id for one in self.metadata.snapshot_log
        }
        if unknown := named - known:
            yield "partial-history", f"snapshot {min(unknown)} is named and not there"

    def _books(self) -> Iterator[Wrong]:
        """Whether the action says of each snapshot and each ref exactly one thing."""
        action, metadata = self.action, self.metadata
        if action.base_metadata_location != metadata.metadata_location:
            yield "wrong-base", f"planned from {action.base_metadata_location}"
        if action.base_snapshot_id != metadata.current_snapshot_id:
            yield "wrong-base", f"planned from snapshot {action.base_snapshot_id}"
        if action.max_hold_ms != self.policy.max_hold_ms:
            yield "wrong-hold", f"readers hold for {action.max_hold_ms} ms, the policy says {self.policy.max_hold_ms}"
        if action.as_of != self.now:
            yield "wrong-instant", f"planned as of {action.as_of}"
        told = sorted([*action.snapshot_ids, *action.retained_snapshot_ids])
        if told != sorted(one.snapshot_id for one in metadata.snapshots):
            yield "miscounted", "the snapshots to expire and to keep are not the snapshots of the table"
        seen = sorted((ref.name, ref.kind.value, ref.snapshot_id) for ref in action.refs_seen)
        if seen != sorted((ref.name, ref.kind.value, ref.snapshot_id) for ref in metadata.refs):
            yield "miscounted", "the refs that were seen are not those of the table"
        if not set(action.refs_removed) <= set(action.refs_seen):
            yield "miscounted", "an unknown ref is to expire"
        if not action.snapshot_ids and not action.refs_removed:
            yield "nothing", "an action that does nothing"
        if metadata.current_snapshot_id in action.snapshot_ids:
            yield "current", "the current snapshot is to expire"

    def _rule(self) -> Iterator[Wrong]:
        rule = self.action.rule
        if rule.retain_last is None or rule.retain_last < 1:
            yield "retains-none", "a branch could lose the snapshot that it is at"
        if rule.older_than_ms < 0:
            yield "wrong-age", f"older than {rule.older_than_ms} ms"
        if self.first_seen is None:
            return
        least = max(_DAY_MS, self.policy.max_snapshot_age_ms)
        if rule.older_than_ms < least or (rule.retain_last or 0) < self.policy.min_snapshots_to_keep:
            yield "below-policy", f"older than {rule.older_than_ms} ms, retaining {rule.retain_last}"

    def _refs(self) -> Iterator[Wrong]:
        """Whether each ref that goes is past its own age, and none that stays loses its snapshot."""
        default = self.metadata.properties.get("history.expire.max-ref-age-ms", "")
        for ref in self.metadata.refs:
            if not self._goes(ref):
                if ref.snapshot_id in self.action.snapshot_ids:
                    yield "ref-needs-it", f"{ref.name} is at snapshot {ref.snapshot_id}"
                continue
            limit = ref.max_ref_age_ms
            if limit is None and default.isascii() and default.isdecimal() and len(default) <= _LONG_DIGITS:
                limit = int(default)
            snapshot = self.metadata.snapshot(ref.snapshot_id)
            if ref.name == "main" or snapshot is None or limit is None or self.now - snapshot.committed_at <= limit:
                yield "ref-not-old", f"{ref.name} is to expire, and is not past its age"
            elif self.first_seen is not None and self.now - snapshot.committed_at < _DAY_MS:
                yield "ref-not-old", f"{ref.name} expires within a day"

    def _goes(self, ref: Ref) -> bool:
        return any((one.name, one.snapshot_id) == (ref.name, ref.snapshot_id) for one in self.action.refs_removed)

    def _branches(self, by_id: Mapping[int, Snapshot]) -> Iterator[Wrong]:
        """Whether no branch loses one of its last snapshots, nor a young one that only young ones come after."""
        for ref in self.metadata.refs:
            if ref.kind is not RefKind.BRANCH or self._goes(ref):
                continue
            least = self.action.rule.retain_last if ref.min_snapshots_to_keep is None else ref.min_snapshots_to_keep
            age_ms = self.action.rule.older_than_ms if ref.max_snapshot_age_ms is None else ref.max_snapshot_age_ms
            passed: set[int] = set()
            at = by_id.get(ref.snapshot_id)
            while at is not None and at.snapshot_id not in passed:
                if len(passed) >= (least or 1) and self.now - at.committed_at > age_ms:
                    break
                passed.add(at.snapshot_id)
                at = None if at.parent_id is None else by_id.get(at.parent_id)
            if lost := passed.intersection(self.action.snapshot_ids):
                yield "branch-needs-it", f"branch {ref.name} loses snapshot {min(lost)}"

    def _by_itself(self, snapshot: Snapshot) -> Iterator[Wrong]:
        """Whether what runs by itself leaves alone what it has known for less than its rule says, and a day."""
        if self.first_seen is None:
            return
        known_ms = self.now - self.first_seen.get(snapshot.snapshot_id, self.now)
        age_ms = min(known_ms, self.now - snapshot.committed_at)
        if age_ms < _DAY_MS or known_ms <= 0:
            yield "below-floor", f"snapshot {snapshot.snapshot_id} was first seen {known_ms} ms ago"

    def _aside(self, by_id: Mapping[int, Snapshot]) -> Iterator[Wrong]:
        """Whether what is on no branch (staged, rolled back) is as old as the rule says."""
        lines = [self.metadata.ancestors(ref.snapshot_id) for ref in self.metadata.refs if ref.kind is RefKind.BRANCH]
        on_branches = {one.snapshot_id for line in lines for one in line}
        for number in self.action.snapshot_ids:
            found = None if number in on_branches else by_id.get(number)
            if found is not None and self.now - found.committed_at <= self.action.rule.older_than_ms:
                yield "too-young", f"snapshot {number} is on no branch, and younger than the rule says"

    def _readers(self, by_id: Mapping[int, Snapshot]) -> Iterator[Wrong]:
        """Whether nobody who reads on from a snapshot misses one on the way."""
        starts = {one for one in self.held if one in by_id} | set(self._declared(by_id)) | set(self._flink(by_id))
        waiting, needed = list(starts), set(starts)
        children: dict[int | None, list[int]] = {}
        for one in self.metadata.snapshots:
            children.setdefault(one.parent_id, []).append(one.snapshot_id)
        while waiting:
            fresh = [child for child in children.get(waiting.pop(), ()) if child not in needed]
            needed.update(fresh)
            waiting += fresh
        if lost := needed.intersection(self.action.snapshot_ids):
            yield "reader-needs-it", f"a consumer reads on from before snapshot {min(lost)}"

    def _declared(self, by_id: Mapping[int, Snapshot]) -> Iterator[int]:
        for key, text in self.metadata.properties.items():
            number, _, beat = text.partition("@")
            if not key.startswith(_CONSUMER) or not number.isdecimal() or int(number) not in by_id:
                continue
            heard = by_id[int(number)].committed_at
            if beat:
                told = datetime.fromisoformat(beat).astimezone(UTC).timestamp() * 1000
                heard = max(heard, int(told)) if told <= self.now + _MINUTE_MS else heard
            if self.now - heard <= self.action.max_hold_ms:
                yield int(number)

    def _flink(self, by_id: Mapping[int, Snapshot]) -> Iterator[int]:
        """The newest snapshot of each sink on the line of the current one."""
        sinks: set[tuple[str | None, str | None]] = set()
        for snapshot in self.metadata.ancestors():
            job = snapshot.summary.get("flink.job-id")
            sink = (job, snapshot.summary.get("flink.operator-id"))
            if job is None or "flink.max-committed-checkpoint-id" not in snapshot.summary or sink in sinks:
                continue
            sinks.add(sink)
            if self.now - snapshot.committed_at <= self.action.max_hold_ms and snapshot.snapshot_id in by_id:
                yield snapshot.snapshot_id

    def _clocks(self) -> Iterator[Wrong]:
        if not self.action.rule.older_than_ms:
            return
        latest: Snapshot | None = None
        for snapshot in sorted(self.metadata.snapshots, key=lambda one: one.sequence_number):
            if snapshot.sequence_number == 0:
                continue
            if latest is not None and latest.committed_at - snapshot.committed_at > _MINUTE_MS:
                yield "clocks", f"snapshot {snapshot.snapshot_id} came after {latest.snapshot_id} and says otherwise"
            latest = snapshot
        if any(one.committed_at > self.now + _MINUTE_MS for one in self.metadata.snapshots):
            yield "clocks", "a snapshot is from the future"
