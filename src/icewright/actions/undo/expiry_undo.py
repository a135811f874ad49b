"""Whether and how an expiry is undone: into the table as it is now, and never over anything that came since.

What is there already, by whatever way, is left alone, and so is what came in the place of a ref. Both are said. What
cannot be read as it was (another schema under the same id, say) refuses all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from icewright.core import wording
from icewright.core.times import Instant
from icewright.model.actions.expire_snapshots import ExpireSnapshots, RefAt
from icewright.model.actions.undo import SIGNATURE_KEY, UndoExpiry, UndoExpiryPrediction
from icewright.model.iceberg.tables import Ref, TableMetadata
from icewright.model.iceberg.writer_settings import encryption_property
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import Policy
from icewright.plans.eligibility import recovery_obstacle
from icewright.plans.standalone_plan import Decided

UndoDecision: TypeAlias = Decided[UndoExpiry, UndoExpiryPrediction]
"""``notes`` are what does not come back, and why."""


def decide_undo(
    task_id: str,
    expiry: ExpireSnapshots,
    kept: TableMetadata,
    now: TableMetadata,
    policy: Policy,
    until: Instant,
) -> UndoDecision:
    """What of an expiry comes back into a table as it is now.

    ``kept`` has the snapshots and refs that the expiry of that task took, and the schemas and specs of then.
    """
    gone = [one for one in kept.snapshots if now.snapshot(one.snapshot_id) is None]
    ids = {one.snapshot_id for one in now.snapshots}.union(one.snapshot_id for one in gone)
    refs, notes = _refs(kept, now, ids)
    ages = sorted(gone, key=lambda one: (one.sequence_number, one.committed_at))
    action = UndoExpiry(
        undone_task_id=task_id,
        base_snapshot_id=now.current_snapshot_id,
        snapshot_ids=tuple(one.snapshot_id for one in ages),
        refs=tuple(RefAt.of(ref) for ref in refs),
        until=until,
    )
    obstacle = recovery_obstacle(now, policy) or not_kept(expiry, kept) or undo_conflict(action, kept, now)
    if obstacle is not None:
        return Decided(obstacle, notes=tuple(notes))
    if there := len(kept.snapshots) - len(gone):
        text = f"{wording.count(there, 'snapshot')} of it {'is' if there == 1 else 'are'} in the table already"
        notes.append(Reason("there-already", text, {"snapshots": there}))
    if not action.snapshot_ids and not action.refs:
        return Decided(Reason("nothing-to-undo", "nothing to do: nothing of it is missing"), notes=tuple(notes))
    prediction = UndoExpiryPrediction(
        snapshots_before=len(now.snapshots),
        snapshots_after=len(ids),
        refs_back=tuple(ref.name for ref in refs),
        until=until,
    )
    return Decided(_reason(action), action, prediction, tuple(notes))


def _refs(kept: TableMetadata, now: TableMetadata, ids: set[int]) -> tuple[list[Ref], list[Reason]]:
    """The refs that come back; of the others, why they do not."""
    back, notes = [], []
    here = {ref.name: ref for ref in now.refs}
    for ref in kept.refs:
        other = here.get(ref.name)
        if other is not None and RefAt.of(other) == RefAt.of(ref):
            notes.append(Reason("there-already", f"ref {wording.name(ref.name)} is there already"))
        elif other is not None:
            text = f"ref {wording.name(ref.name)} exists now, at snapshot {other.snapshot_id}: that one stays"
            notes.append(Reason("ref-taken", text, {"snapshot_id": ref.snapshot_id}))
        elif ref.snapshot_id not in ids:
            text = (
                f"ref {wording.name(ref.name)} was at snapshot {ref.snapshot_id}, which has expired since: undo that "
                "first"
            )
            notes.append(Reason("ref-homeless", text, {"snapshot_id": ref.snapshot_id}))
        else:
            back.append(ref)
    return back, notes


def _reason(action: UndoExpiry) -> Reason:
    text = f"{wording.count(len(action.snapshot_ids), 'snapshot')} of task {action.undone_task_id} put back"
    if action.refs:
        text += f"; refs: {wording.shortened([wording.name(ref.name) for ref in action.refs])}"
    return Reason("undo", text, {"snapshots": len(action.snapshot_ids), "refs": len(action.refs)})


def not_kept(expiry: ExpireSnapshots, kept: TableMetadata) -> Reason | None:
    """Whether what is kept is what an expiry was to take."""
    same = {one.snapshot_id for one in kept.snapshots} == set(expiry.snapshot_ids)
    if same and {RefAt.of(ref) for ref in kept.refs} == set(expiry.refs_removed):
        return None
    return Reason("not-kept", "what is kept of the expiry is not what it took")


def is_back(action: UndoExpiry, now: TableMetadata) -> bool:
    """Whether all that the action puts back is there, by whoever's hand."""
    return not missing_of(action, now)


def is_undone(action: UndoExpiry, task_id: str, now: TableMetadata) -> bool:
    """Whether the action was carried out: by its task's signature, also where some of it has gone since.

    Of a second table the first one tells nothing: whoever tries again finds it there.
    """
    return action.second is None and (now.properties.get(SIGNATURE_KEY) == task_id or is_back(action, now))


def missing_of(action: UndoExpiry, now: TableMetadata) -> tuple[str, ...]:
    """What of that which the action puts back is not there: in words, snapshots first."""
    snapshots = set(action.snapshot_ids) - {one.snapshot_id for one in now.snapshots}
    refs = set(action.refs) - {RefAt.of(ref) for ref in now.refs}
    return (*(f"snapshot {number}" for number in sorted(snapshots)), *sorted(f"ref {ref.name}" for ref in refs))


def only_back(action: UndoExpiry, kept: TableMetadata) -> TableMetadata:
    """What is kept, without what the action does not put back."""
    return replace(
        kept,
        snapshots=tuple(one for one in kept.snapshots if one.snapshot_id in frozenset(action.snapshot_ids)),
        refs=tuple(ref for ref in kept.refs if RefAt.of(ref) in action.refs),
    )


def undo_conflict(action: UndoExpiry, kept: TableMetadata, now: TableMetadata) -> Reason | None:
    """Why an action must not be committed to the table as it is now, None when it may be."""
    return next(_conflicts(action, kept, now), None)


def _conflicts(action: UndoExpiry, kept: TableMetadata, now: TableMetadata) -> Iterator[Reason]:
    if kept.table_id != now.table_id:
        yield Reason("other-table", "what is kept is of another table")
    back = only_back(action, kept)
    if len(back.snapshots) != len(action.snapshot_ids) or len(back.refs) != len(action.refs):
        yield Reason("not-kept", "what is kept of the expiry is not what it took")
    here = {one.snapshot_id: one for one in now.snapshots}
    if there := here.keys() & set(action.snapshot_ids):
        text = f"snapshot {min(there)} is in the table now"
        yield Reason("snapshot-there", text, {"snapshots": len(there)})
    if others := [one for one in kept.snapshots if here.get(one.snapshot_id, one) != one]:
        text = f"the table has a snapshot {others[0].snapshot_id}, and it is not the one that expired"
        yield Reason("snapshot-other", text, {"snapshots": len(others)})
    if taken := sorted({ref.name for ref in now.refs}.intersection(ref.name for ref in action.refs)):
        yield Reason("ref-there", f"ref {wording.name(taken[0])} exists now", {"refs": len(taken)})
    known = here.keys() | set(action.snapshot_ids)
    if homeless := [ref for ref in action.refs if ref.snapshot_id not in known]:
        text = f"ref {wording.name(homeless[0].name)} was at snapshot {homeless[0].snapshot_id}, which no longer exists"
        yield Reason("snapshot-missing", text)
    if changed := _changed(kept, now):
        text = f"{changed[0]} of then has been removed since, or is another one: the restored rows could not be read"
        yield Reason("schema-removed", text)
    if encryption_property(now.properties) is not None:
        yield Reason("encryption", "the table is encrypted, which nothing here can do")


def _changed(kept: TableMetadata, now: TableMetadata) -> Sequence[str]:
    """Schemas and specs of then that are not there as they were; an id that is free may be given out again."""
    schemas, specs = {one.schema_id: one for one in now.schemas}, {one.spec_id: one for one in now.specs}
    lost = [f"schema {one.schema_id}" for one in kept.schemas if schemas.get(one.schema_id) != one]
    return [*lost, *(f"partition spec {one.spec_id}" for one in kept.specs if specs.get(one.spec_id) != one)]
