"""How long main is left alone because a branch, or a staged snapshot, is about to be published.

Write-audit-publish writes to a branch, audits it, and publishes it by ``fast_forward``, which Iceberg does only where
the head of main is an ancestor of the branch's head (``SnapshotUtil.isAncestorOf``). A snapshot of ours on main would
end that for good. A branch whose head *is* that of main counts as well: it was made to be written. A branch that main
has left behind can be fast-forwarded to no more, whatever is done.

A snapshot staged under a ``wap.id`` is published by ``cherrypick_snapshot``: an append always, an overwrite of whole
partitions while no other commit has added files to these, anything else only while its parent is the head of main.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from icewright.core import wording
from icewright.core.times import Instant
from icewright.model.iceberg.tables import MAIN_BRANCH, Operation, RefKind, Snapshot, TableMetadata
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import Policy

BRANCH_AHEAD: Final = "branch-ahead"
BRANCH_WINDOW_KEY: Final = "icewright.branch-window"
_WAP_ID, _PUBLISHED_WAP_ID, _SOURCE_ID = "wap.id", "published-wap-id", "source-snapshot-id"
_REPLACES_PARTITIONS: Final = "replace-partitions"


@dataclass(frozen=True, slots=True)
class MainHold:
    """Why no commit of ours may come onto main before ``until``."""

    reason: Reason
    until: Instant


@dataclass(frozen=True, slots=True)
class _Unpublished:
    """What a commit onto main would keep from being published, and since when it is there."""

    said: str
    since: Instant


def main_hold(metadata: TableMetadata, policy: Policy, now: Instant) -> MainHold | None:
    """Whether main is left alone now, and until when.

    The policy's window is counted from the first snapshot that a branch has and main has not. Of a branch at main's
    head nothing says when it was made, but no later than the metadata was last written: that counts. Where a clock of
    writers is ahead of ours, the time is longer by as much, at most by the window; what is dated further ahead says
    nothing.
    """
    window_ms = policy.branch_window_ms
    held = [each for each in _unpublished(metadata) if now - window_ms < each.since <= now + window_ms]
    if not held:
        return None
    last = max(held, key=lambda each: (each.since, each.said))
    until = last.since + window_ms
    more = f" (and {len(held) - 1} more)" if len(held) > 1 else ""
    text = (
        f"main is left alone until {wording.instant(until)}, because {last.said}{more}, and a commit on main would "
        f"keep it from being published; {BRANCH_WINDOW_KEY} sets for how long ({wording.duration(window_ms)})"
    )
    return MainHold(Reason(BRANCH_AHEAD, text, {"wait_until": until, "branches": len(held)}), until)


def branch_obstacle(metadata: TableMetadata, policy: Policy, now: Instant) -> Reason | None:
    """Why nothing is committed onto main now, or None."""
    hold = main_hold(metadata, policy, now)
    return None if hold is None else hold.reason


def _unpublished(metadata: TableMetadata) -> Iterator[_Unpublished]:
    head = metadata.current_snapshot
    if head is None:
        return
    by_id = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
    for ref in metadata.refs:
        if ref.kind is not RefKind.BRANCH or ref.name == MAIN_BRANCH:
            continue
        if ref.snapshot_id == head.snapshot_id:
            yield _Unpublished(f"branch {wording.quoted(ref.name)} is at its head", metadata.updated_at)
            continue
        first = _first_after(head.snapshot_id, ref.snapshot_id, by_id)
        if first is not None:
            said = f"branch {wording.quoted(ref.name)} is ahead of it since {wording.instant(first.committed_at)}"
            yield _Unpublished(said, first.committed_at)
    yield from _staged(metadata, head)


def _first_after(head_id: int, newest_id: int, by_id: dict[int, Snapshot]) -> Snapshot | None:
    """The first snapshot of a branch after main's head; None where that is no ancestor, as far as is known."""
    at = by_id.get(newest_id)
    for _ in by_id:
        if at is None or at.parent_id == head_id:
            break
        at = None if at.parent_id is None else by_id.get(at.parent_id)
    return at if at is not None and at.parent_id == head_id else None


def _staged(metadata: TableMetadata, head: Snapshot) -> Iterator[_Unpublished]:
    staged = [one for one in metadata.snapshots if one.summary.get(_WAP_ID) and one.operation is not Operation.APPEND]
    if not staged:
        return
    main = metadata.ancestors()
    on_main = {snapshot.snapshot_id for snapshot in main}
    published = {snapshot.summary.get(_PUBLISHED_WAP_ID) for snapshot in main}
    sources = {snapshot.summary.get(_SOURCE_ID) for snapshot in main}
    heads = {ref.snapshot_id for ref in metadata.refs}
    for one in staged:
        wap_id = one.summary[_WAP_ID]
        done = one.snapshot_id in on_main or wap_id in published or str(one.snapshot_id) in sources
        replaces = one.summary.get(_REPLACES_PARTITIONS) == "true" and one.parent_id in on_main
        if not done and one.snapshot_id not in heads and (replaces or one.parent_id == head.snapshot_id):
            said = f"snapshot {one.snapshot_id} is staged as {wording.quoted(wap_id)}"
            yield _Unpublished(f"{said} since {wording.instant(one.committed_at)}", one.committed_at)
