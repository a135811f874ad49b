"""What inserting rows again did, read by our own reader from what is in the table: no report is asked.

One append, behind a snapshot of a history in which they expired: every manifest of before is there as it was, and
in those that came are new files alone, with as many rows as the expired files had, less what was deleted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from icewright.catalogs.port import Catalog
from icewright.core import wording
from icewright.core.reasons import Reason
from icewright.inventory.arithmetic import manifest_changes
from icewright.model.actions.actions import UndoExpireData
from icewright.model.actions.expire_data import tag_of
from icewright.model.actions.undo import inserted_already
from icewright.model.iceberg.files import FileContent, Partition
from icewright.model.iceberg.tables import PROOF_KEY, UNDONE_KEY, Operation, Snapshot, TableMetadata
from icewright.plans.evidence.service import deleted_most, vector_records


@dataclass(frozen=True, slots=True)
class Share:
    """Files and rows that came into one partition."""

    files: int
    records: int


@dataclass(frozen=True, slots=True)
class Inserted:
    """What one snapshot changed of its parent: the partitions that new data files are in, and all else, counted.

    ``manifests_gone`` are of the parent and not of the snapshot; ``other_entries`` are delete files, files that were
    added by other snapshots, and those that a manifest says to be removed.
    """

    shares: Mapping[Partition, Share]
    manifests_gone: int = 0
    other_entries: int = 0


def inserted_between(catalog: Catalog, metadata: TableMetadata, parent: Snapshot, snapshot: Snapshot) -> Inserted:
    """What a snapshot changed, from the manifests that came and went with it."""
    came, went = manifest_changes(catalog.manifests(metadata, parent), catalog.manifests(metadata, snapshot))
    shares: dict[Partition, Share] = {}
    others = 0
    for summary in catalog.summarize(metadata, snapshot, list(came)):
        own = summary.key.added_snapshot_id == snapshot.snapshot_id and summary.content is FileContent.DATA
        for partition, share in summary.partitions.items():
            counts = share.counts
            others += share.removed_files + (0 if own else counts.data_files + 1)
            if own and counts.data_files:
                before = shares.get(partition, Share(0, 0))
                shares[partition] = Share(before.files + counts.data_files, before.records + counts.records)
    return Inserted(shares, len(went), others)


def problem_of_insert(
    action: UndoExpireData, metadata: TableMetadata, snapshot: Snapshot, changed: Inserted
) -> str | None:
    """Why what a snapshot changed is not what the action says, None when it is."""
    return (
        _commit_problem(action, metadata, snapshot)
        or _else_problem(changed)
        or _place_problem(action, changed)
        or _row_problem(action, changed)
        or _proof_problem(action, snapshot, changed)
    )


def unseen_of_insert(action: UndoExpireData, metadata: TableMetadata, snapshot: Snapshot) -> str | None:
    """What nobody can tell of an insertion any more: whether its rows had expired in the history that it came upon."""
    line = metadata.ancestors(snapshot.snapshot_id)
    if any(one.snapshot_id == action.expiry_snapshot_id for one in line) or not _is_cut(action, metadata, snapshot):
        return None
    return f"snapshot {action.expiry_snapshot_id}, which the rows expired with, has expired: nothing to compare with"


def verified_insert(action: UndoExpireData, snapshot: Snapshot, changed: Inserted) -> Reason:
    """What a commit brought that is as it should be; the figure of its sequence number tells its files later on."""
    files, records = _total(changed)
    text = (
        f"{wording.count(records, 'row')} of task {action.undone_task_id} inserted again, in "
        f"{wording.count(files, 'new file')}"
    )
    figures: dict[str, int | float | str] = {
        "records": records,
        "deleted_records": action.record_count - records,
        "data_files_added": files,
        "partitions": len(changed.shares),
        "sequence_number": snapshot.sequence_number,
        "tag": tag_of(action.undone_task_id),
    }
    return Reason("verified", text, figures)


def _commit_problem(action: UndoExpireData, metadata: TableMetadata, snapshot: Snapshot) -> str | None:
    if snapshot.operation is not Operation.APPEND:
        return f"it is a snapshot of operation {snapshot.operation}"
    if snapshot.summary.get(UNDONE_KEY) != action.undone_task_id:
        return f"its summary does not say that it takes task {action.undone_task_id} back"
    ids = [one.snapshot_id for one in metadata.ancestors(snapshot.snapshot_id)]
    if action.expiry_snapshot_id in ids:
        ids = ids[: ids.index(action.expiry_snapshot_id)]
    elif not _is_cut(action, metadata, snapshot):
        return f"snapshot {action.expiry_snapshot_id}, which the rows expired with, is not in its history"
    summaries = {one.snapshot_id: one.summary for one in metadata.snapshots}
    for snapshot_id in ids[1:]:
        already = inserted_already(snapshot_id, action.undone_task_id, summaries.get)
        if already is not None and already.code == "there-already":
            return f"snapshot {snapshot_id} had inserted the same rows before"
    return None


def _is_cut(action: UndoExpireData, metadata: TableMetadata, snapshot: Snapshot) -> bool:
    """Whether the history of a snapshot ends at a parent that has expired, and not at what was before the expiry."""
    line = metadata.ancestors(snapshot.snapshot_id)
    before = metadata.ancestors(action.base_snapshot_id)
    return line[-1].parent_id is not None and line[-1] not in before


def _else_problem(changed: Inserted) -> str | None:
    if changed.manifests_gone:
        return f"{wording.count(changed.manifests_gone, 'manifest')} of before were removed"
    return "more than new data files is in its manifests" if changed.other_entries else None


def _place_problem(action: UndoExpireData, changed: Inserted) -> str | None:
    """Rows that stay in their partition are in no other, a file for each group at most."""
    files: Counter[Partition] = Counter(group.partition for group in action.groups if group.output_spec_id is None)
    anywhere = sum(group.output_spec_id is not None for group in action.groups)
    for partition, share in sorted(changed.shares.items()):
        most = files[partition] + (anywhere if partition.spec_id == action.spec_id else 0)
        if share.files > most:
            where = f"{wording.cut(partition.values)} of spec {partition.spec_id}"
            return f"{wording.count(share.files, 'file')} came into partition {where}, and {most} were planned at most"
    return None


def _row_problem(action: UndoExpireData, changed: Inserted) -> str | None:
    least, most = Counter[Partition](), Counter[Partition]()
    come = [0, 0]
    for group in action.groups:
        surely = sum(vector_records(group, file) for file in group.files)
        bounds = group.record_count - deleted_most(group), group.record_count - surely
        come = [come[0] + bounds[0], come[1] + bounds[1]]
        if group.output_spec_id is None:
            least[group.partition] += bounds[0]
            most[group.partition] += bounds[1]
    moving = sum(group.record_count for group in action.groups if group.output_spec_id is not None)
    for partition in sorted(least.keys() | changed.shares.keys()):
        records = changed.shares.get(partition, Share(0, 0)).records
        if not least[partition] <= records <= most[partition] + moving:
            said = f"{least[partition]} to {most[partition] + moving}"
            return f"{records} rows came into partition {wording.cut(partition.values)}, and {said} were planned"
    _, records = _total(changed)
    if not come[0] <= records <= come[1]:
        return f"{records} rows were added, and {come[0]} to {come[1]} were planned"
    return None


def _proof_problem(action: UndoExpireData, snapshot: Snapshot, changed: Inserted) -> str | None:
    """What the summary says was proved has to be what the manifests say."""
    parts = snapshot.summary.get(PROOF_KEY, "").split(";")
    said = dict(part.split("=", 1) for part in parts if "=" in part)
    _, records = _total(changed)
    right = {"groups": len(action.groups), "records": records, "deleted": action.record_count - records}
    for key, number in right.items():
        if said.get(key) != str(number):
            return f"its proof says {key}={wording.cut(said.get(key, 'nothing'))}, the manifests say {number}"
    return None


def _total(changed: Inserted) -> tuple[int, int]:
    shares = changed.shares.values()
    return sum(share.files for share in shares), sum(share.records for share in shares)
