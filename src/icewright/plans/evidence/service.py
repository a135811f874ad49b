"""What a commit did, read from the manifests, and whether that is what its action says: no report is asked.

A commit may be of some groups of its action. Which these are, its summary says; that exactly their files went, and
nothing else, the manifests (decision 0016).

Files per partition are told exactly. So are the rows where only deletion vectors applied, whose cardinality is
written down; elsewhere delete files say how many rows they may remove at most, and the proof in the summary says how
many they did, which has to fit to the rows that are gone from the manifests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from icewright.catalogs.port import Catalog
from icewright.inventory.applied_deletes import DeleteIndex, is_deletion_vector
from icewright.inventory.arithmetic import manifest_changes
from icewright.model.actions.actions import Executor, FileGroup, InputFile, RewriteDataFiles
from icewright.model.iceberg.files import DeleteFile, FileContent, Partition
from icewright.model.iceberg.inventory import ManifestKey, ManifestSummary
from icewright.model.iceberg.layouts import Level
from icewright.model.iceberg.tables import (
    GROUPS_KEY,
    LAYOUT_KEY,
    LEVEL_KEY,
    PROOF_KEY,
    Snapshot,
    SortField,
    TableMetadata,
)
from icewright.model.plans.group_ids import read_group_ids


@dataclass(frozen=True, slots=True)
class Delta:
    """By how much one snapshot changed one partition."""

    data_files: int = 0
    records: int = 0
    delete_files: int = 0
    data_bytes: int = 0

    def plus(self, other: Delta) -> Delta:
        """Both together."""
        return Delta(
            self.data_files + other.data_files,
            self.records + other.records,
            self.delete_files + other.delete_files,
            self.data_bytes + other.data_bytes,
        )


@dataclass(frozen=True, slots=True)
class Changes:
    """What one snapshot changed: per partition, where anything did, and the delete files that came and went.

    ``removed_files`` counts the data files that went, per partition. ``kept_files`` are those of the action's input
    files that did not. ``lost_deletes`` are those of the gone delete files that still apply to a data file.
    ``misstated`` says of new files by what readers would skip them though they have rows to be found.
    """

    deltas: Mapping[Partition, Delta]
    removed_files: Mapping[Partition, int] = field(default_factory=dict)
    kept_files: frozenset[str] = frozenset()
    added_deletes: tuple[DeleteFile, ...] = ()
    removed_deletes: tuple[DeleteFile, ...] = ()
    lost_deletes: tuple[DeleteFile, ...] = ()
    misstated: tuple[str, ...] = ()

    @property
    def deleted_records(self) -> int:
        """Rows fewer than before."""
        return -sum(delta.records for delta in self.deltas.values())


def committed_part(action: RewriteDataFiles, snapshot: Snapshot) -> RewriteDataFiles | None:
    """What a snapshot says to be of an action: all of it, or some groups; None where these are not its groups."""
    said = snapshot.summary.get(GROUPS_KEY)
    if said is None:
        return action
    group_ids = read_group_ids(said, {group.group_id for group in action.groups})
    return None if group_ids is None else action.only(group_ids)


def changes_between(
    catalog: Catalog,
    metadata: TableMetadata,
    parent: Snapshot,
    snapshot: Snapshot,
    action: RewriteDataFiles | None = None,
) -> Changes:
    """What a snapshot changed, from the manifests that came and went with it.

    ``action`` is the part committed, of whose input files is asked; None where there are none.
    """
    came, gone = manifest_changes(catalog.manifests(metadata, parent), catalog.manifests(metadata, snapshot))
    deltas: dict[Partition, Delta] = {}
    before = list(catalog.summarize(metadata, parent, gone))
    after = list(catalog.summarize(metadata, snapshot, came))
    _add(deltas, after, sign=1)
    _add(deltas, before, sign=-1)
    deltas = {partition: delta for partition, delta in deltas.items() if delta != Delta()}
    removed = _deletes(catalog, metadata, parent, before)
    added = _deletes(catalog, metadata, snapshot, after)
    carried_on = removed.keys() & added.keys()
    removed_deletes = tuple(delete for key, delete in removed.items() if key not in carried_on)
    went = Counter[Partition]()
    for summary in after:
        if summary.content is FileContent.DATA and summary.key.added_snapshot_id == snapshot.snapshot_id:
            went.update({partition: share.removed_files for partition, share in summary.partitions.items()})
    kept, wrong = frozenset[str](), tuple[str, ...]()
    if action is not None:
        kept, wrong = _kept(catalog, metadata, (parent, before), (snapshot, after), action)
    return Changes(
        deltas,
        removed_files=+went,
        kept_files=kept,
        misstated=wrong,
        added_deletes=tuple(delete for key, delete in added.items() if key not in carried_on),
        removed_deletes=removed_deletes,
        lost_deletes=still_applying(catalog, metadata, snapshot, removed_deletes),
    )


def problem_of(action: RewriteDataFiles, snapshot: Snapshot, changes: Changes) -> str | None:
    """Why what a snapshot changed is not what the action says, None when it is."""
    return (
        _file_problem(action, changes)
        or _input_problem(action, changes)
        or _row_problem(action, changes)
        or _delete_problem(action, changes)
        or _proof_problem(action, snapshot, changes)
        or next(iter(changes.misstated), None)
        or _order_problem(action, snapshot)
    )


def _input_problem(action: RewriteDataFiles, changes: Changes) -> str | None:
    """Exactly the input files went."""
    if changes.kept_files:
        return f"{len(changes.kept_files)} input files are still listed, first {min(changes.kept_files)}"
    expected: Counter[Partition] = Counter()
    for group in action.groups:
        expected[group.partition] += len(group.files)
    for partition in sorted(expected.keys() | changes.removed_files.keys()):
        went = changes.removed_files.get(partition, 0)
        if went != expected[partition]:
            said = _said(action, partition)
            return f"{went} files of partition {said} were removed, the action says {expected[partition]}"
    return None


def _file_problem(action: RewriteDataFiles, changes: Changes) -> str | None:
    """Each partition has exactly the files that are planned, but for those that would have no rows.

    Of rows that move, nobody knows beforehand which partitions of the other spec they belong to: each group makes one
    file at most in any of them, and not more than planned in all.
    """
    stays, moves = _by_whether_they_move(action)
    least, most = Counter[Partition](), Counter[Partition]()
    for group in stays:
        most[group.partition] += group.output_files - len(group.files)
        least[group.partition] += _fewest_files(group) - len(group.files)
    for group in moves:
        most[group.partition] -= len(group.files)
        least[group.partition] -= len(group.files)
    made = (
        sum(least.values()) + len(moves),
        sum(most.values()) + sum(group.output_files for group in moves),
    )
    found = {partition: delta.data_files for partition, delta in changes.deltas.items()}
    for partition in sorted(most.keys() | found.keys()):
        more = sum(group.output_spec_id == partition.spec_id for group in moves)
        if not least[partition] <= found.get(partition, 0) <= most[partition] + more:
            exactly = least[partition] == most[partition] + more
            said = f"{most[partition]}" if exactly else f"at most {most[partition] + more}"
            return (
                f"partition {_said(action, partition)} changed by {found.get(partition, 0)} files, "
                f"the action says {said}"
            )
    total = sum(found.values())
    return (
        None if made[0] <= total <= made[1] else f"all changed by {total} files, the action says {made[0]} to {made[1]}"
    )


def _by_whether_they_move(action: RewriteDataFiles) -> tuple[list[FileGroup], list[FileGroup]]:
    """The groups whose rows stay in their partition, and those whose rows move to another spec."""
    stays = [group for group in action.groups if group.output_spec_id is None]
    return stays, [group for group in action.groups if group.output_spec_id is not None]


def _fewest_files(group: FileGroup) -> int:
    """No file is without rows but the only one of a group, and which cells of a shuffle have none nobody knows."""
    if group.executor is Executor.SHUFFLE:
        return 1
    return min(group.output_files, max(1, group.record_count - deleted_most(group)))


def _row_problem(action: RewriteDataFiles, changes: Changes) -> str | None:
    """Rows are gone as far as deletes can have removed them, in no other partition and not a single one more.

    Rows that move are gone from their partition, all of them, and come back in partitions of the other spec.
    """
    stays, moves = _by_whether_they_move(action)
    least, most = Counter[Partition](), Counter[Partition]()
    for group in stays:
        least[group.partition] += sum(vector_records(group, file) for file in group.files)
        most[group.partition] += deleted_most(group)
    fewest = sum(least.values()) + sum(vector_records(group, file) for group in moves for file in group.files)
    deleted = fewest, sum(most.values()) + sum(deleted_most(group) for group in moves)
    for group in moves:
        least[group.partition] += group.record_count
        most[group.partition] += group.record_count
    for partition in sorted(least.keys() | changes.deltas.keys()):
        records = changes.deltas.get(partition, Delta()).records
        come = sum(group.record_count for group in moves if group.output_spec_id == partition.spec_id)
        if not least[partition] - come <= -records <= most[partition]:
            said = f"{least[partition]}" if least[partition] == most[partition] else f"at most {most[partition]}"
            said += f", and at most {come} come" if come else ""
            return f"partition {_said(action, partition)} changed by {records} rows, and its deletes remove {said}"
    if not deleted[0] <= changes.deleted_records <= deleted[1]:
        return f"{changes.deleted_records} rows were removed, and the deletes remove {deleted[0]} to {deleted[1]}"
    return None


def _delete_problem(action: RewriteDataFiles, changes: Changes) -> str | None:
    if changes.added_deletes:
        return f"{len(changes.added_deletes)} delete files were added, first {changes.added_deletes[0].path}"
    if changes.lost_deletes:
        return f"{len(changes.lost_deletes)} delete files are lost that still apply: {changes.lost_deletes[0].path}"
    gone = {delete.key for delete in changes.removed_deletes}
    for group in action.groups:
        left = [d for d in group.delete_files if is_deletion_vector(d) and d.key not in gone]
        if left:
            return f"the deletion vector of {left[0].referenced_data_file} is still listed, and its file is not"
    return None


def _proof_problem(action: RewriteDataFiles, snapshot: Snapshot, changes: Changes) -> str | None:
    """What the summary says was proved has to be what the manifests say."""
    parts = snapshot.summary.get(PROOF_KEY, "").split(";")
    said = dict(part.split("=", 1) for part in parts if "=" in part)
    right = {
        "groups": len(action.groups),
        "records": action.record_count - changes.deleted_records,
        "deleted": changes.deleted_records,
    }
    for key, number in right.items():
        if said.get(key, "0" if key == "deleted" else "nothing") != str(number):
            return f"its proof says {key}={said.get(key)}, the manifests say {number}"
    return None


def _order_problem(action: RewriteDataFiles, snapshot: Snapshot) -> str | None:
    """What the summary says of the order of the new files is what later plans go by: it must be what was planned."""
    level, layout = snapshot.summary.get(LEVEL_KEY, Level.LEVEL_0.value), snapshot.summary.get(LAYOUT_KEY)
    planned = None if action.layout is None else action.layout.key
    if (level, layout) == (action.level.value, planned):
        return None
    return f"its summary says {level} and the layout {layout}, the action {action.level.value} and {planned}"


def vector_records(group: FileGroup, file: InputFile) -> int:
    """Rows that deletion vectors remove from a file: exactly so many."""
    its = (group.delete_files[position] for position in file.deletes)
    return sum(delete.record_count for delete in its if is_deletion_vector(delete))


def deleted_most(group: FileGroup) -> int:
    """The most rows that the deletes of a group can remove."""
    most = open_records = 0
    position: set[int] = set()
    for file in group.files:
        its = [group.delete_files[number] for number in file.deletes]
        vectors = vector_records(group, file)
        if any(delete.content is FileContent.EQUALITY_DELETES for delete in its):
            most += file.record_count
        elif vectors:
            most += vectors
        elif its:
            open_records += file.record_count
            position.update(file.deletes)
    return most + min(open_records, sum(group.delete_files[number].record_count for number in position))


def _kept(
    catalog: Catalog,
    metadata: TableMetadata,
    before: tuple[Snapshot, Sequence[ManifestSummary]],
    after: tuple[Snapshot, Sequence[ManifestSummary]],
    action: RewriteDataFiles,
) -> tuple[frozenset[str], tuple[str, ...]]:
    """Input files that did not go: those in no manifest that did, and those that one which came still lists.

    And what new files state that is not so.
    """
    partitions = frozenset(group.partition for group in action.groups)
    inputs = frozenset(file.path for group in action.groups for file in group.files)

    identity = {field.source_id for spec in metadata.specs for field in spec.fields if field.transform == "identity"}
    asked = [SortField(source_id, "identity", "asc", "nulls-first") for source_id in sorted(identity)]
    wrong: list[str] = []

    def listed(snapshot: Snapshot, summaries: Sequence[ManifestSummary], fields: Sequence[SortField] = ()) -> set[str]:
        keys = [s.key for s in summaries if s.content is FileContent.DATA and not partitions.isdisjoint(s.partitions)]
        found = set()
        for file in catalog.data_files(metadata, snapshot, keys, partitions, fields):
            if file.path in inputs:
                found.add(file.path)
            elif file.misstated and file.snapshot_id == snapshot.snapshot_id:
                wrong.append(f"readers would skip {file.path}, which states {file.misstated}")
        return found

    kept = (inputs - listed(*before)) | listed(*after, asked)
    return frozenset(kept), tuple(wrong)


def _deletes(
    catalog: Catalog, metadata: TableMetadata, snapshot: Snapshot, summaries: Iterable[ManifestSummary]
) -> dict[tuple[str, int | None], DeleteFile]:
    """The live delete files of some manifests of a snapshot."""
    manifests = [summary for summary in summaries if summary.content is not FileContent.DATA]
    keys: list[ManifestKey] = [summary.key for summary in manifests]
    partitions = frozenset(partition for summary in manifests for partition in summary.partitions)
    if not keys:
        return {}
    return {delete.key: delete for delete in catalog.delete_files(metadata, snapshot, keys, partitions)}


def still_applying(
    catalog: Catalog, metadata: TableMetadata, snapshot: Snapshot, removed: tuple[DeleteFile, ...]
) -> tuple[DeleteFile, ...]:
    """Those of some delete files that apply to a data file of the snapshot.

    Iceberg's own rewrite drops delete files that are older than all data files, of any partition; these do not.
    """
    if not removed:
        return ()
    index = DeleteIndex(metadata, removed)
    keys = catalog.manifests(metadata, snapshot)
    partitions = frozenset(delete.partition for delete in removed)
    unpartitioned = {spec.spec_id for spec in metadata.specs if spec.is_unpartitioned}
    if any(d.content is FileContent.EQUALITY_DELETES and d.partition.spec_id in unpartitioned for d in removed):
        partitions = frozenset(p for s in catalog.summarize(metadata, snapshot, keys) for p in s.partitions)
    found = {
        delete.key: delete
        for file in catalog.data_files(metadata, snapshot, keys, partitions)
        for delete in index.of(file)
    }
    return tuple(found.values())


def _said(action: RewriteDataFiles, partition: Partition) -> str:
    """A partition for people, by its path where the action has it."""
    paths = (group.partition_path for group in action.groups if group.partition == partition)
    return next(paths, partition.values) or "(all)"


def _add(deltas: dict[Partition, Delta], summaries: Iterable[ManifestSummary], *, sign: int) -> None:
    for summary in summaries:
        for partition, share in summary.partitions.items():
            counts = share.counts
            is_data = summary.content is FileContent.DATA
            files, size_bytes = (counts.data_files, counts.data_bytes) if is_data else (0, 0)
            delta = Delta(sign * files, sign * counts.records, sign * counts.delete_files, sign * size_bytes)
            deltas[partition] = deltas.get(partition, Delta()).plus(delta)
