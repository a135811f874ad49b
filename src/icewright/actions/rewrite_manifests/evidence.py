"""What a rewrite of manifests did, read by our own reader from what is in the table: no report is asked.

The manifests that went are those of the action; as many came, with the places that it says; every entry that was live
in the ones is live in the others, with its file, partition, snapshot, sequence number and row ids. Memory does not grow
with the number of entries: both sides are summed up as multisets.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from icewright.catalogs.port import Catalog
from icewright.core import wording
from icewright.core.reasons import Reason
from icewright.inventory.arithmetic import manifest_changes
from icewright.model.actions.rewrite_manifests import ManifestContent, RewriteManifests
from icewright.model.iceberg.files import DataFile, DeleteFile, FileContent, Partition
from icewright.model.iceberg.inventory import ManifestKey, ManifestSummary
from icewright.model.iceberg.tables import PROOF_KEY, Operation, Snapshot, TableMetadata

_MODULUS = 1 << 256
_TOTALS = (
    "total-data-files",
    "total-delete-files",
    "total-records",
    "total-files-size",
    "total-position-deletes",
    "total-equality-deletes",
)


@dataclass(frozen=True, slots=True)
class LiveEntries:
    """Live entries as a multiset: how many of data and of delete files, and the sum of a hash of each.

    ``total`` is with the ids of first rows, ``without_ids`` without; ``with_ids`` counts the entries that have one.
    """

    data_files: int = 0
    delete_files: int = 0
    total: int = 0
    without_ids: int = 0
    with_ids: int = 0


@dataclass(frozen=True, slots=True)
class ManifestsChanged:
    """What one snapshot changed of its parent's manifests, and the entries of those that went and came.

    ``places`` counts the live entries of those that came, per content and partition.
    """

    went: frozenset[ManifestKey]
    came: frozenset[ManifestKey]
    before: LiveEntries
    after: LiveEntries
    places: Mapping[tuple[ManifestContent, Partition], int] = field(default_factory=dict)


def live_entries(data_files: Iterable[DataFile], delete_files: Iterable[DeleteFile]) -> LiveEntries:
    """Entries as a multiset."""
    data = deletes = total = without_ids = with_ids = 0
    for file in data_files:
        data += 1
        total += _hash(file)
        without_ids += _hash(replace(file, first_row_id=None))
        with_ids += file.first_row_id is not None
    for delete in delete_files:
        deletes += 1
        hashed = _hash(delete)
        total += hashed
        without_ids += hashed
    return LiveEntries(data, deletes, total % _MODULUS, without_ids % _MODULUS, with_ids)


def manifests_changed(
    catalog: Catalog, metadata: TableMetadata, parent: Snapshot, snapshot: Snapshot, action: RewriteManifests
) -> ManifestsChanged:
    """What a snapshot changed, from the manifests that came and went with it."""
    came, went = manifest_changes(catalog.manifests(metadata, parent), catalog.manifests(metadata, snapshot))
    places: Counter[tuple[ManifestContent, Partition]] = Counter()
    for summary in catalog.summarize(metadata, snapshot, came):
        places.update(_places(summary))
    partitions = action.partitions | {partition for _, partition in places}

    def entries(at: Snapshot, keys: Sequence[ManifestKey]) -> LiveEntries:
        return live_entries(
            catalog.data_files(metadata, at, keys, partitions), catalog.delete_files(metadata, at, keys, partitions)
        )

    return ManifestsChanged(
        frozenset(went), frozenset(came), entries(parent, went), entries(snapshot, came), dict(+places)
    )


def problem_of_manifests(
    action: RewriteManifests, parent: Snapshot, snapshot: Snapshot, changed: ManifestsChanged
) -> str | None:
    """Why what a snapshot changed is not what the action says, None when it is."""
    return (
        _manifest_problem(action, snapshot, changed)
        or _place_problem(action, changed)
        or entry_problem(changed.before, changed.after)
        or _summary_problem(parent, snapshot)
    )


def _manifest_problem(action: RewriteManifests, snapshot: Snapshot, changed: ManifestsChanged) -> str | None:
    """Exactly the planned manifests went, and as many came as planned."""
    planned = {ManifestKey(each.path, each.size_bytes, each.added_snapshot_id) for each in action.manifests}
    for said, found in (("stayed", planned - changed.went), ("removed though not planned", changed.went - planned)):
        if found:
            return f"{wording.count(len(found), 'manifest')} {said}, first {min(found).path}"
    foreign = {key for key in changed.came if key.added_snapshot_id != snapshot.snapshot_id}
    if foreign:
        return f"manifest {min(foreign).path} is said to be of snapshot {min(foreign).added_snapshot_id}"
    if len(changed.came) != len(action.outputs):
        return f"{len(changed.came)} manifests came, the action says {len(action.outputs)}"
    return None


def _place_problem(action: RewriteManifests, changed: ManifestsChanged) -> str | None:
    """Each partition has as many entries in the new manifests as planned."""
    planned: Counter[tuple[ManifestContent, Partition]] = Counter()
    for output in action.outputs:
        for share in output.shares:
            planned[output.belongs_to.content, Partition(output.belongs_to.spec_id, share.values)] += share.entries
    for place in sorted(planned.keys() | changed.places.keys()):
        found = changed.places.get(place, 0)
        if found != planned[place]:
            content, partition = place
            where = f"partition {partition.values} of spec {partition.spec_id}"
            return f"{found} entries with {content} of {where} came, the action says {planned[place]}"
    return None


def entry_problem(before: LiveEntries, after: LiveEntries) -> str | None:
    """Why not every entry that was live still is, as it was, and no other; None when it is so."""
    if (before.data_files, before.delete_files) != (after.data_files, after.delete_files):
        was = f"{before.data_files} data and {before.delete_files} delete files"
        return f"{was} were live in them, and {after.data_files} and {after.delete_files} are"
    if before.total == after.total:
        return None
    if not before.with_ids and before.without_ids == after.without_ids:
        return None  # rows from before an upgrade to format version 3 get their ids with the first commit after it
    return "entries changed: a file, its partition, its snapshot, its sequence number or the ids of its rows"


def _summary_problem(parent: Snapshot, snapshot: Snapshot) -> str | None:
    """The commit says of itself that it replaced, proved it, and changed no total."""
    if snapshot.operation is not Operation.REPLACE:
        return f"it is a snapshot of operation {snapshot.operation}"
    if not snapshot.summary.get(PROOF_KEY):
        return "its summary has no proof"
    for key in _TOTALS:
        was, now = parent.summary.get(key), snapshot.summary.get(key)
        if was is not None and now is not None and was != now:
            return f"its summary has {key}={wording.quoted(now)}, and the one before it {wording.quoted(was)}"
    return None


def verified_manifests(action: RewriteManifests, changed: ManifestsChanged) -> Reason:
    """What a commit brought that is as it should be."""
    size_before = sum(key.length_bytes for key in changed.went)
    size_after = sum(key.length_bytes for key in changed.came)
    entries = changed.after.data_files + changed.after.delete_files
    text = (
        f"{wording.count(len(changed.went), 'manifest')} became {len(changed.came):,}, "
        f"with the same {wording.count(entries, 'entry', 'entries')}"
    )
    figures: dict[str, int | float | str] = {
        "manifests_replaced": len(changed.went),
        "manifests_written": len(changed.came),
        "entries": entries,
        "removed_entries": action.figures.removed_entries,
        "input_bytes": size_before,
        "output_bytes": size_after,
        "causes": "+".join(action.causes),
    }
    return Reason("verified", text, figures)


def _places(summary: ManifestSummary) -> Counter[tuple[ManifestContent, Partition]]:
    content = ManifestContent.DATA if summary.content is FileContent.DATA else ManifestContent.DELETES
    return Counter(
        {
            (content, partition): said.counts.data_files + said.counts.delete_files
            for partition, said in summary.partitions.items()
        }
    )


def _hash(file: DataFile | DeleteFile) -> int:
    return int.from_bytes(hashlib.sha256(repr(file).encode("utf-8", "surrogatepass")).digest())
