"""What an expiry took, as a second table beside the first: where a catalog takes no old snapshots back.

The metadata file of right before the expiry has all of it, and a catalog registers such a file under another name. Two
tables share all files then, and whoever deletes for one deletes from the other. So both say ``gc.enabled=false``, by
which Iceberg's own clients refuse to purge a table, to remove its orphan files and to expire its snapshots, and neither
is cleaned up here while one uuid has two names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

from icewright.actions.undo.expiry_undo import UndoDecision, not_kept
from icewright.core import wording
from icewright.core.times import Instant
from icewright.model.actions.expire_snapshots import ExpireSnapshots, RefAt
from icewright.model.actions.undo import SIGNATURE_KEY, UNDO_WINDOW_MS, SecondTable, UndoExpiry, UndoExpiryPrediction
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.reachable_files import Roots
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.iceberg.writer_settings import encryption_property
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import MODE_KEY, Mode, Policy
from icewright.plans.eligibility import recovery_obstacle
from icewright.plans.standalone_plan import Decided

_GC: Final = "gc.enabled"
FIRST_GUARD: Final[Mapping[str, str]] = MappingProxyType({_GC: "false"})
"""What the first table says from then on."""
_SECOND_GUARD: Final[Mapping[str, str]] = MappingProxyType(
    {_GC: "false", MODE_KEY: Mode.OBSERVE.value, "write.metadata.delete-after-commit.enabled": "false"}
)


def second_guard(task_id: str) -> dict[str, str]:
    """What the second table says, in the first commit to it.

    That commit also gives it a metadata file of its own: the one that it was registered from is in the first one's log,
    whose writers may delete it. They do so by a property that the second has as well, and must not: its log is theirs.
    """
    return {**_SECOND_GUARD, SIGNATURE_KEY: task_id}


def second_name(first: TableName, as_of: Instant) -> TableName:
    """``db.events_before_20261122_182405`` beside ``db.events``: by when the expiry was planned, in UTC."""
    at = datetime.fromtimestamp(as_of // 1000, UTC)
    return replace(first, name=f"{first.name}_before_{at:%Y%m%d_%H%M%S}")


def said_beforehand(second: TableName) -> str:
    """How an expiry is undone in such a catalog, for its plan."""
    span = wording.duration(UNDO_WINDOW_MS)
    return (
        f"the table of before can be registered as a second one, {wording.cut(str(second))}, for {span}, as long as "
        "its metadata file and all files are there: `icewright undo TASK_ID`. The catalog takes no old snapshots back "
        "into the table itself. Nothing is removed from either table then, and both say gc.enabled=false"
    )


def has_all(kept: TableMetadata, table: TableMetadata) -> bool:
    """Whether a table is the one that something was taken from, with all of that in it as it was."""
    same = {one.snapshot_id: one for one in table.snapshots}
    refs = {RefAt.of(ref) for ref in table.refs}
    return (
        kept.table_id == table.table_id
        and kept.location == table.location
        and all(same.get(one.snapshot_id) == one for one in kept.snapshots)
        and refs.issuperset(RefAt.of(ref) for ref in kept.refs)
    )


def is_guarded(first: TableMetadata, second: TableMetadata) -> bool:
    """Whether both say that nothing may be deleted for either."""
    return not first.collects_garbage and all(second.properties.get(key) == said for key, said in _SECOND_GUARD.items())


def decide_second(
    task_id: str,
    expiry: ExpireSnapshots,
    kept: TableMetadata,
    now: TableMetadata,
    before: TableMetadata | None,
    there: TableMetadata | None,
    policy: Policy,
    until: Instant,
) -> UndoDecision:
    """What comes back of an expiry as a second table.

    ``kept`` has the snapshots and refs that the expiry of that task took. ``before`` is its metadata file, None where
    that need not be read: ``there`` is what has the name of the second table already.
    """
    second = SecondTable(second_name(now.name, expiry.as_of), kept.metadata_location)
    ages = sorted(kept.snapshots, key=lambda one: (one.sequence_number, one.committed_at))
    action = UndoExpiry(
        undone_task_id=task_id,
        base_snapshot_id=now.current_snapshot_id,
        snapshot_ids=tuple(one.snapshot_id for one in ages),
        refs=tuple(RefAt.of(ref) for ref in kept.refs),
        until=until,
        second=second,
    )
    obstacle = recovery_obstacle(now, policy) or not_kept(expiry, kept) or second_conflict(kept, now, before, there)
    if obstacle is not None:
        return Decided(obstacle)
    name = wording.cut(str(second.name))
    if there is not None and is_guarded(now, there):
        return Decided(Reason("nothing-to-undo", f"nothing to do: it is registered as {name} already"))
    whole = there or before or kept
    prediction = UndoExpiryPrediction(
        snapshots_before=len(now.snapshots),
        snapshots_after=len(whole.snapshots),
        refs_back=tuple(ref.name for ref in action.refs),
        until=until,
        second=second,
    )
    text = f"{wording.count(len(ages), 'snapshot')} of task {task_id} as a second table, {name}"
    figures = {"snapshots": len(ages), "refs": len(action.refs)}
    return Decided(Reason("undo-beside", text, figures), action, prediction, _notes(now.name, second.name))


def _notes(first: TableName, second: TableName) -> tuple[Reason, ...]:
    one, other = wording.cut(str(first)), wording.cut(str(second))
    return (
        Reason("beside", f"{one} keeps its snapshots and gets none back: the catalog takes no old ones"),
        Reason("gc-disabled", f"gc.enabled=false is set on {one} and on {other}: they share all files"),
        Reason(
            "shared-uuid", "as long as both are there, nothing expires and no file is removed of either by icewright"
        ),
        Reason("no-purge", f"drop {other} without PURGE, which would take the files of {one}; then unset gc.enabled"),
    )


def second_conflict(
    kept: TableMetadata, now: TableMetadata, before: TableMetadata | None, there: TableMetadata | None
) -> Reason | None:
    """Why nothing may be registered, or gone on with, as the tables are now; None when it may be."""
    if kept.table_id != now.table_id:
        return Reason("other-table", "what is kept is of another table")
    if encryption_property(now.properties) is not None:
        return Reason("encryption", "the table is encrypted, which nothing here can do")
    if there is not None and not has_all(kept, there):
        text = f"{wording.cut(str(there.name))} is there, and it is not the table of before: rename or drop that one"
        return Reason("name-taken", text)
    if before is not None and not has_all(kept, before):
        return Reason("not-kept", f"{wording.cut(kept.metadata_location)} is not what the expiry was made on")
    return None


def with_what_came_since(before: Roots, now: Roots) -> tuple[Roots, frozenset[int]]:
    """Both states as one table that is where the present one is, and the snapshots which the present one has not.

    All of these are shown by the second table, whoever took them: the files of each must be there.
    """
    here = {one.snapshot_id for one in now.metadata.snapshots}
    gone = tuple(one for one in before.metadata.snapshots if one.snapshot_id not in here)
    metadata = replace(now.metadata, snapshots=(*now.metadata.snapshots, *gone))
    roots = Roots(metadata, before.files, {**before.embedded, **now.embedded}, before.gaps)
    return roots, frozenset(one.snapshot_id for one in gone)
