"""Whether an expiry may still be committed, whether it was, and whether it took away more than it should."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final, TypeVar

from icewright.actions.expire_snapshots.obstacles import expiry_obstacle
from icewright.actions.expire_snapshots.staying_files import staying
from icewright.core import wording
from icewright.model.actions.expire_snapshots import ExpireSnapshots, Hold, RefAt
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.plans import Reason

T = TypeVar("T")

EXPIRY_UNSEEN: Final = "expiry-unseen"
"""The code of a problem that says: nobody can tell."""


def expiry_conflict(action: ExpireSnapshots, now: TableMetadata, holds: Iterable[Hold] = ()) -> Reason | None:
    """Why an action must not be committed to the table as it is now, None when it may be.

    Commits of others since it was planned are fine, as long as nothing that goes is needed now, by the very rule and
    as of the very instant that it was planned by.
    """
    return next(_conflicts(action, now, holds), None)


def _conflicts(action: ExpireSnapshots, now: TableMetadata, holds: Iterable[Hold]) -> Iterator[Reason]:
    here = {ref.name: RefAt.of(ref) for ref in now.refs}
    if lost := [ref for ref in action.refs_seen if ref.name not in here]:
        yield Reason("ref-gone", f"{_names(lost)} was there when this was planned, and is not any more")
    if moved := [ref for ref in action.refs_removed if here.get(ref.name) != ref]:
        yield Reason("ref-moved", f"{_names(moved)} has moved")
    known = {one.snapshot_id for one in now.snapshots}
    if missing := [one for one in action.snapshot_ids if one not in known]:
        yield Reason("snapshot-gone", f"snapshot {missing[0]} no longer exists", {"snapshots": len(missing)})
    obstacle = expiry_obstacle(now, action.rule, max(action.as_of, now.updated_at))
    if obstacle is not None:
        yield obstacle
    heard_at = max(action.as_of, now.updated_at)  # whoever has said since the plan that it reads on is heard
    stays = staying(now, action.rule, action.as_of, max_hold_ms=action.max_hold_ms, holds=holds, consumers_at=heard_at)
    at_refs = {ref.snapshot_id for ref in now.refs if RefAt.of(ref) not in action.refs_removed}
    needed = stays.snapshots | at_refs | {now.current_snapshot_id}  # of which a writer may have moved one alone
    if wanted := [one for one in action.snapshot_ids if one in needed]:
        text = f"snapshot {wanted[0]} is needed now: by a ref, by a consumer that reads on from it, or by its age"
        yield Reason("snapshot-needed", text, {"snapshots": len(wanted)})
    if kept := [RefAt.of(ref) for ref in stays.refs if RefAt.of(ref) in action.refs_removed]:
        yield Reason("ref-needed", f"{_names(kept)} is not past its age any more")


def is_expired(action: ExpireSnapshots, now: TableMetadata) -> bool:
    """Whether all that the action removes is gone. Whether more is gone, :func:`problem_of_expiry` tells."""
    return not left_of(action, now)


def left_of(action: ExpireSnapshots, now: TableMetadata) -> tuple[str, ...]:
    """What of that which the action removes is still there: in words, snapshots first."""
    snapshots = {one.snapshot_id for one in now.snapshots}.intersection(action.snapshot_ids)
    refs = {RefAt.of(ref) for ref in now.refs}.intersection(action.refs_removed)  # not a new one of that name
    return (*(f"snapshot {number}" for number in sorted(snapshots)), *sorted(ref.name for ref in refs))


def problem_of_expiry(before: TableMetadata | None, after: TableMetadata, action: ExpireSnapshots) -> Reason | None:
    """What a commit took away, or changed, that it should not have; no file may be deleted until it is mended.

    ``before`` is the state that the commit was made on, ``after`` the one that it made; both as the table's own log of
    metadata files has them. Without a ``before`` nobody can tell, which is a problem as well.
    """
    if before is None:
        return Reason(EXPIRY_UNSEEN, "the metadata from before the commit no longer exists: the outcome is unknown")
    return next(_losses(before, after, action), None)


def _losses(before: TableMetadata, after: TableMetadata, action: ExpireSnapshots) -> Iterator[Reason]:
    if before.table_id != after.table_id:
        yield Reason("other-table", "before and after are of two tables")
    refs_after = {ref.name: ref for ref in after.refs}
    gone = [RefAt.of(ref) for ref in before.refs if refs_after.get(ref.name) != ref]
    if lost := [ref for ref in gone if ref not in action.refs_removed]:
        text = f"the commit took away or changed {_names(lost)}, which it should have left as it was"
        yield Reason("refs-lost", text, {"refs": len(lost), "snapshot_id": lost[0].snapshot_id})
    by_id = {one.snapshot_id: one for one in after.snapshots}
    if more := {one.snapshot_id for one in before.snapshots} - by_id.keys() - set(action.snapshot_ids):
        text = (
            f"the commit removed {wording.count(len(more), 'snapshot')} that it should have left, {min(more)} for one"
        )
        yield Reason("snapshots-lost", text, {"snapshots": len(more), "snapshot_id": min(more)})
    if changed := [one for one in before.snapshots if by_id.get(one.snapshot_id, one) != one]:
        text = f"the commit changed snapshot {changed[0].snapshot_id}, which it should have left as it was"
        yield Reason("snapshots-changed", text, {"snapshots": len(changed)})
    if before.current_snapshot_id != after.current_snapshot_id:
        yield Reason("current-moved", f"the table was at {before.current_snapshot_id} and is not any more")


def trimmed(log: Sequence[T], snapshot_of: Callable[[T], int], gone: Collection[int]) -> list[T]:
    """A snapshot log without snapshots that go, and without all before the last of them.

    Spec, "Snapshot Log": an entry between two that stay must not be left out, since another snapshot would then seem
    to have been the current one.
    """
    last = max((number for number, entry in enumerate(log) if snapshot_of(entry) in gone), default=-1)
    return list(log[last + 1 :])


def _names(refs: Sequence[RefAt]) -> str:
    return wording.shortened([f"{ref.kind.value} {wording.name(ref.name)}" for ref in refs])
