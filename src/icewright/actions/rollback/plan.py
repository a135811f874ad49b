"""Where ``main`` may be set back to, by Iceberg's rules, what would be lost by that, and what depends on it.

Iceberg's ``rollback_to_snapshot`` takes an ancestor of the current snapshot, ``rollback_to_timestamp`` the latest one
that was committed before an instant (``SetSnapshotOperation`` of Iceberg 1.12). Summaries are input from strangers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Final, TypeAlias

from icewright.core import wording
from icewright.core.times import Instant
from icewright.model.actions.expire_snapshots import Hold
from icewright.model.actions.rollback import Commits, Rollback, RollbackPrediction
from icewright.model.actions.undo import SIGNATURE_KEY, UNDO_WINDOW_MS
from icewright.model.iceberg.tables import MAIN_BRANCH, RefKind, Snapshot, TableMetadata
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import Policy
from icewright.plans.consumers import declared_consumers, flink_sinks
from icewright.plans.eligibility import recovery_obstacle
from icewright.plans.procedure_call import procedure_call
from icewright.plans.standalone_plan import Decided

_NAMED_MAX: Final = 10
_WRITERS_MAX: Final = 20


RollbackDecision: TypeAlias = Decided[Rollback, RollbackPrediction]
"""``notes`` are what depends on what ``main`` leaves."""


def decide_rollback(
    metadata: TableMetadata,
    policy: Policy,
    *,
    to_snapshot: int | None = None,
    to_time: Instant | None = None,
    holds: Iterable[Hold] = (),
) -> RollbackDecision:
    """Set ``main`` back to an ancestor, or to the latest one before an instant. Exactly one of the two is given.

    ``holds`` are the snapshots that tasks of icewright go on from.
    """
    obstacle = recovery_obstacle(metadata, policy)
    current = metadata.current_snapshot
    if obstacle is not None or current is None:
        return Decided(obstacle or Reason("no-snapshots", "nothing was committed to the table yet"))
    lineage = metadata.ancestors()
    target = _at(lineage, to_snapshot) if to_snapshot is not None else _before(lineage, to_time)
    if target is None:
        return Decided(_no_target(metadata, lineage, to_snapshot))
    if target == current:
        text = f"main is at snapshot {current.snapshot_id} already"
        return Decided(Reason("there-already", text))
    lost = lineage[: lineage.index(target)]
    action = Rollback(current.snapshot_id, target.snapshot_id)
    undo = (
        f"`icewright undo TASK_ID` sets main forward again for {wording.duration(UNDO_WINDOW_MS)}, as long as nothing "
        "was committed to it since and the snapshots have not expired"
    )
    said = f"main set back from snapshot {current.snapshot_id} to {target.snapshot_id}"
    text = f"{said}, of {wording.instant(target.committed_at)}; {wording.count(len(lost), 'commit')} lost"
    return Decided(
        Reason("rollback", text, {"snapshots": len(lost)}),
        action,
        RollbackPrediction(
            target.committed_at, len(lost), commits_of(lost), is_forward=False, call=_call(metadata, action), undo=undo
        ),
        tuple(_depending(metadata, lost, holds)),
    )


def decide_forward(task_id: str, done: Rollback, metadata: TableMetadata, policy: Policy) -> RollbackDecision:
    """Set ``main`` forward again to where a rollback took it from."""
    action = Rollback(done.snapshot_id, done.base_snapshot_id, task_id)
    reason = recovery_obstacle(metadata, policy) or rollback_conflict(action, metadata)
    if reason is not None:
        return Decided(reason)
    back = [*takewhile(lambda one: one.snapshot_id != done.snapshot_id, metadata.ancestors(action.snapshot_id))]
    text = f"main set forward again from snapshot {action.base_snapshot_id} to {action.snapshot_id}"
    return Decided(
        Reason("undo", f"{text}; {wording.count(len(back), 'commit')} back", {"snapshots": len(back)}),
        action,
        RollbackPrediction(
            back[0].committed_at,
            len(back),
            commits_of(back),
            is_forward=True,
            call=_call(metadata, action),
            undo=f"`icewright rollback` to snapshot {action.base_snapshot_id}",
        ),
    )


def rollback_conflict(action: Rollback, now: TableMetadata) -> Reason | None:
    """Why an action must not be committed to the table as it is now, None when it may be."""
    if now.current_snapshot_id != action.base_snapshot_id:
        text = f"main is at snapshot {now.current_snapshot_id} now, and not at {action.base_snapshot_id}"
        return Reason("main-moved", text)
    if now.snapshot(action.snapshot_id) is None:
        return Reason("snapshot-gone", f"snapshot {action.snapshot_id} no longer exists: it has expired")
    forward = action.undone_task_id is not None
    older, newer = (action.base_snapshot_id, action.snapshot_id)[:: 1 if forward else -1]
    line = now.ancestors(newer)
    # What main left may have lost some of its snapshots since. Where it was, the task of the rollback knows.
    is_cut = forward and line[-1].parent_id is not None
    if is_cut or any(one.snapshot_id == older for one in line):
        return None
    return Reason("no-ancestor", f"snapshot {older} is no ancestor of {newer}, as far as they are kept")


def is_signed(task_id: str, now: TableMetadata) -> bool:
    """Whether the latest commit of ours that made no snapshot is that of the task."""
    return now.properties.get(SIGNATURE_KEY) == task_id


def commits_of(snapshots: Sequence[Snapshot]) -> tuple[Commits, ...]:
    """Commits by what they did and who made them, most first; beyond a limit all others together."""
    sums: dict[tuple[str, str], list[int]] = {}
    for one in snapshots:
        said = one.operation.value if one.operation is not None else "unknown"
        found = sums.setdefault((said, _writer(one)), [0, 0, 0])
        found[0] += 1
        found[1] += one.number("added-records") or 0
        found[2] += one.number("deleted-records") or 0
    ranked = sorted(sums.items(), key=lambda item: (-item[1][0], item[0]))
    shown = [Commits(*key, *counts) for key, counts in ranked[:_WRITERS_MAX]]
    if rest := ranked[_WRITERS_MAX:]:
        shown.append(Commits("others", "others", *(sum(counts[place] for _, counts in rest) for place in range(3))))
    return tuple(shown)


def _at(lineage: Sequence[Snapshot], snapshot_id: int) -> Snapshot | None:
    return next((one for one in lineage if one.snapshot_id == snapshot_id), None)


def _before(lineage: Sequence[Snapshot], at: Instant | None) -> Snapshot | None:
    """The ancestor with the latest time before an instant, as Iceberg looks for it."""
    earlier = [one for one in lineage if at is not None and one.committed_at < at]
    return max(earlier, key=lambda one: one.committed_at, default=None)


def _no_target(metadata: TableMetadata, lineage: Sequence[Snapshot], to_snapshot: int | None) -> Reason:
    oldest = lineage[-1]
    back_to = f"the oldest that it can roll back to is {oldest.snapshot_id}, of {wording.instant(oldest.committed_at)}"
    if to_snapshot is None:
        return Reason("nothing-before", f"no ancestor of the current snapshot was committed before that; {back_to}")
    if metadata.snapshot(to_snapshot) is None:
        return Reason("snapshot-gone", f"the table has no snapshot {to_snapshot} (any more); {back_to}")
    text = f"snapshot {to_snapshot} is no ancestor of the current one, so that going there would not be going back"
    return Reason("no-ancestor", text)


def _depending(metadata: TableMetadata, lost: Sequence[Snapshot], holds: Iterable[Hold]) -> Iterator[Reason]:
    ids = {one.snapshot_id for one in lost}
    refs = [ref for ref in metadata.refs if ref.name != MAIN_BRANCH and ref.snapshot_id in ids]
    for ref in refs[:_NAMED_MAX]:
        kind = "branch" if ref.kind is RefKind.BRANCH else "tag"
        yield Reason("ref-ahead", f"{kind} {wording.name(ref.name)} stays at a snapshot that main leaves")
    readers = [one for one in (*declared_consumers(metadata), *flink_sinks(metadata)) if one.snapshot_id in ids]
    for reader in readers[:_NAMED_MAX]:
        text = (
            f"consumer {wording.name(reader.name)} has read on to snapshot {reader.snapshot_id}, which main leaves: it "
            "has seen rows that the rollback removes, and cannot continue"
        )
        yield Reason("consumer-ahead", text, {"snapshot_id": reader.snapshot_id})
    for hold in [hold for hold in holds if hold.snapshot_id in ids][:_NAMED_MAX]:
        yield Reason("task-ahead", f"{hold.by} builds on a snapshot that main leaves, and ends without a commit")
    for what, count in (("refs", len(refs)), ("consumers", len(readers))):
        if count > _NAMED_MAX:
            yield Reason("more-ahead", f"{count - _NAMED_MAX:,} more {what}")


def _writer(snapshot: Snapshot) -> str:
    if snapshot.task_id is not None:
        return "icewright"
    said = snapshot.summary.get("engine-name") or ("flink" if "flink.job-id" in snapshot.summary else "")
    return wording.name(said) if said else "unknown"


def _call(metadata: TableMetadata, action: Rollback) -> str:
    procedure = "rollback_to_snapshot" if action.undone_task_id is None else "set_current_snapshot"
    return procedure_call(metadata.name, procedure, f"snapshot_id => {action.snapshot_id}")
