"""What an expiry of data did, read by our own reader from what is in the table: no report is asked.

Exactly the files of the action went. Every other entry that was live in a manifest that changed is live as it was, with
its partition, snapshot, sequence number and row ids; manifests that did not change are the same ones. So no row that
stays was touched. Delete files may go with the last file that they apply to, and none comes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from icewright.actions.rewrite_manifests.evidence import LiveEntries, entry_problem, live_entries
from icewright.catalogs.port import Catalog
from icewright.core import wording
from icewright.core.reasons import Reason
from icewright.inventory.arithmetic import manifest_changes
from icewright.model.actions.expire_data import ExpireData, tag_of
from icewright.model.actions.undo import UNDO_WINDOW_MS
from icewright.model.iceberg.files import DataFile, DeleteFile, Partition
from icewright.model.iceberg.inventory import ManifestKey
from icewright.model.iceberg.tables import PROOF_KEY, Operation, RefKind, Snapshot, TableMetadata
from icewright.plans.evidence.service import still_applying


@dataclass(frozen=True, slots=True)
class DataChanged:
    """What one snapshot changed of its parent, from the manifests that came and went.

    ``expired`` are the paths of those files of the action that were live before, as it says, and ``kept`` those that
    still are. ``before`` and ``after`` are all other data files. ``added_deletes`` came, ``lost_deletes`` went and
    would still apply to a data file.
    """

    expired: frozenset[str]
    kept: frozenset[str]
    before: LiveEntries
    after: LiveEntries
    added_deletes: tuple[DeleteFile, ...] = ()
    removed_deletes: int = 0
    lost_deletes: tuple[DeleteFile, ...] = ()


def data_changed(
    catalog: Catalog, metadata: TableMetadata, parent: Snapshot, snapshot: Snapshot, action: ExpireData
) -> DataChanged:
    """What a snapshot changed, from the manifests that came and went with it."""
    came, went = manifest_changes(catalog.manifests(metadata, parent), catalog.manifests(metadata, snapshot))
    planned = {file.path: (each.partition, file) for each in action.partitions for file in each.files}
    expired: set[str] = set()
    kept: set[str] = set()

    def others(at: Snapshot, keys: list[ManifestKey], partitions: frozenset[Partition]) -> Iterator[DataFile]:
        for file in catalog.data_files(metadata, at, keys, partitions):
            partition, said = planned.get(file.path, (file.partition, None))
            if at is parent and said is not None and said.is_still(file, partition):
                expired.add(file.path)
                continue
            if at is not parent and file.path in planned:
                kept.add(file.path)
            yield file

    def deletes(at: Snapshot, keys: list[ManifestKey], partitions: frozenset[Partition]) -> dict[object, DeleteFile]:
        found = catalog.delete_files(metadata, at, keys, partitions)
        return {each.key: each for each in found}

    sides = []
    for at, keys in ((parent, list(went)), (snapshot, list(came))):
        partitions = frozenset(p for summary in catalog.summarize(metadata, at, keys) for p in summary.partitions)
        sides.append((live_entries(others(at, keys, partitions), ()), deletes(at, keys, partitions)))
    (before, deletes_before), (after, deletes_after) = sides
    gone = tuple(each for key, each in deletes_before.items() if deletes_after.get(key) != each)
    return DataChanged(
        expired=frozenset(expired),
        kept=frozenset(kept),
        before=before,
        after=after,
        added_deletes=tuple(each for key, each in deletes_after.items() if deletes_before.get(key) != each),
        removed_deletes=len(gone),
        lost_deletes=still_applying(catalog, metadata, snapshot, gone),
    )


def problem_of_data(
    task_id: str,
    action: ExpireData,
    metadata: TableMetadata,
    parent: Snapshot,
    snapshot: Snapshot,
    changed: DataChanged,
) -> str | None:
    """Why what a snapshot changed is not what the action says, None when it is."""
    return (
        _file_problem(action, changed)
        or entry_problem(changed.before, changed.after)
        or _delete_problem(changed)
        or _summary_problem(action, parent, snapshot)
        or _tag_problem(task_id, action, metadata, snapshot)
    )


def verified_data(task_id: str, action: ExpireData, changed: DataChanged) -> Reason:
    """What a commit brought that is as it should be."""
    text = (
        f"{wording.count(len(action.partitions), 'partition')} with {wording.count(len(action.files), 'file')} and "
        f"{wording.count(action.records, 'row')} expired; for {wording.duration(UNDO_WINDOW_MS)} the tag "
        f"{tag_of(task_id)} keeps them"
    )
    figures: dict[str, int | float | str] = {
        "partitions": len(action.partitions),
        "data_files_removed": len(action.files),
        "records_removed": action.records,
        "input_bytes": action.size_bytes,
        "delete_files_removed": changed.removed_deletes,
        "tag": tag_of(task_id),
    }
    return Reason("verified", text, figures)


def _file_problem(action: ExpireData, changed: DataChanged) -> str | None:
    if changed.kept:
        return f"{wording.count(len(changed.kept), 'planned file')} still listed, first {min(changed.kept)}"
    missing = {file.path for file in action.files} - changed.expired
    if missing:
        return f"{wording.count(len(missing), 'planned file')} not removed as planned, first {min(missing)}"
    return None


def _delete_problem(changed: DataChanged) -> str | None:
    if changed.added_deletes:
        said = wording.count(len(changed.added_deletes), "delete file was", "delete files were")
        return f"{said} added, first {changed.added_deletes[0].path}"
    if changed.lost_deletes:
        said = wording.count(len(changed.lost_deletes), "delete file")
        return f"{said} removed that would still apply, first {changed.lost_deletes[0].path}"
    return None


def _summary_problem(action: ExpireData, parent: Snapshot, snapshot: Snapshot) -> str | None:
    """The commit says of itself that it deleted, proved it, and that the rows of the planned files are fewer."""
    if snapshot.operation is not Operation.DELETE:
        return f"it is a snapshot of operation {snapshot.operation}"
    if not snapshot.summary.get(PROOF_KEY):
        return "its summary has no proof"
    for key, fewer in (("total-records", action.records), ("total-data-files", len(action.files))):
        was, now = parent.number(key), snapshot.number(key)
        if was is not None and now is not None and was - now != fewer:
            return f"its summary has {key}={now} after {was}, {fewer} fewer were planned"
    return None


def _tag_problem(task_id: str, action: ExpireData, metadata: TableMetadata, snapshot: Snapshot) -> str | None:
    """The tag that it can be undone by is there, and for as long as that shall be possible.

    Iceberg counts the age of a tag from when its snapshot was committed, which may be long before the expiry.
    """
    name = tag_of(task_id)
    tag = next((ref for ref in metadata.refs if ref.name == name and ref.kind is RefKind.TAG), None)
    if tag is None:
        return f"the tag {name}, which keeps what expired, is not there"
    if tag.snapshot_id != action.base_snapshot_id:
        return f"the tag {name} is at snapshot {tag.snapshot_id}, not at {action.base_snapshot_id}"
    tagged = metadata.snapshot(tag.snapshot_id)
    if tag.max_ref_age_ms is None or tagged is None:
        return None
    left_ms = tagged.committed_at + tag.max_ref_age_ms - snapshot.committed_at
    if left_ms < UNDO_WINDOW_MS:
        return f"the tag {name} expires {wording.duration(max(0, left_ms))} after the commit"
    return None
