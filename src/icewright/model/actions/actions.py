"""Actions: complete pieces of work that leave their executor no choice.

Named after Iceberg's procedures. A new action is a new dataclass, a line in the unions, and a value in the registry
of each floor (:mod:`icewright.model.actions.action_types`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import ClassVar, Literal, TypeAlias

from icewright.model.actions.compute_statistics import ComputeStatistics, ComputeStatisticsFigures
from icewright.model.actions.deletion import Cause
from icewright.model.actions.expire_data import ExpireData, ExpireDataFigures
from icewright.model.actions.expire_snapshots import ExpireSnapshots, ExpireSnapshotsFigures
from icewright.model.actions.remove_dangling_deletes import RemoveDanglingDeletes, RemoveDanglingDeletesFigures
from icewright.model.actions.remove_expired_files import RemoveExpiredFiles, RemoveExpiredFilesFigures
from icewright.model.actions.remove_orphan_files import RemoveOrphanFiles, RemoveOrphanFilesFigures
from icewright.model.actions.restore_files import RestoreFiles, RestoreFilesFigures
from icewright.model.actions.rewrite_manifests import RewriteManifests, RewriteManifestsFigures
from icewright.model.actions.rewrite_position_deletes import RewritePositionDeletes, RewritePositionDeletesFigures
from icewright.model.actions.rollback import Rollback, RollbackFigures
from icewright.model.actions.undo import UndoExpiry, UndoExpiryFigures
from icewright.model.actions.undo_data import UndoExpireDataFigures
from icewright.model.iceberg.files import DeleteFile, FileFormat, Partition
from icewright.model.iceberg.layouts import Layout, Level


class Executor(StrEnum):
    """What carries a group out; the planner's choice, never the job's."""

    MERGE = "merge"
    """Vectorised decode and encode in Spark's Python workers, rows kept in order and proved in order.

    Files sorted by the action's layout are merged by its key, proved as a multiset and by their order.
    """

    SORT = "sort"
    """As a merge by key, of few rows in any order: one of Spark's Python workers holds them all and sorts them."""

    STAGED = "staged"
    """Scan tasks staged for Spark's own reader and writer, proved as a multiset of rows."""

    STITCH = "stitch"
    """Row groups copied byte for byte under a new footer, proved by checksums of the bytes."""

    SHUFFLE = "shuffle"
    """Rows read by Spark, ordered by the action's layout across the group, proved as a multiset of rows."""


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file to be rewritten, with what must be found when it is read.

    ``record_count`` counts the rows in the file, those that delete files remove included. ``deletes`` are the
    delete files that apply to it, as positions in its group's ``delete_files``. ``first_row_id`` as in
    :class:`~icewright.model.iceberg.files.DataFile`.
    """

    path: str
    size_bytes: int
    record_count: int
    data_sequence_number: int
    file_format: FileFormat = FileFormat.PARQUET
    first_row_id: int | None = None
    deletes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Files of one partition that become ``output_files`` files, without the rows that ``delete_files`` remove.

    Their rows stay in this order, or get that of the action's layout. Only ``shuffle`` and ``sort`` make several files,
    and ``merge`` where all files are in the order of a layout of kind sort: then it merges them by its key.

    With an ``output_spec_id`` their rows move to the partitions of that spec, a file each and ``output_files`` at most.
    Without one they stay in their partition.
    """

    group_id: int
    partition: Partition
    partition_path: str
    files: tuple[InputFile, ...]
    executor: Executor = Executor.MERGE
    delete_files: tuple[DeleteFile, ...] = ()
    output_files: int = 1
    output_spec_id: int | None = None

    @property
    def size_bytes(self) -> int:
        """Bytes to be read."""
        return sum(file.size_bytes for file in self.files)

    @property
    def record_count(self) -> int:
        """Rows in the files, those that delete files remove included."""
        return sum(file.record_count for file in self.files)


class ActionKind(StrEnum):
    """The actions there are, by the names of Iceberg's procedures; what takes one back has its name behind ``undo``."""

    REWRITE_DATA_FILES = "rewrite_data_files"
    EXPIRE_SNAPSHOTS = "expire_snapshots"
    REWRITE_MANIFESTS = "rewrite_manifests"
    REMOVE_DANGLING_DELETES = "remove_dangling_deletes"
    REWRITE_POSITION_DELETE_FILES = "rewrite_position_delete_files"
    UNDO_EXPIRE_SNAPSHOTS = "undo_expire_snapshots"
    COMPUTE_STATISTICS = "compute_statistics"
    """Both ``compute_table_stats`` and ``compute_partition_stats``."""
    REMOVE_ORPHAN_FILES = "remove_orphan_files"
    REMOVE_EXPIRED_FILES = "remove_expired_files"
    """What Iceberg's ``expire_snapshots`` does at once, and for good."""
    RESTORE_FILES = "restore_files"
    """No procedure of Iceberg's: what was removed is put back."""
    EXPIRE_DATA = "expire_data"
    UNDO_EXPIRE_DATA = "undo_expire_data"
    """Where ``main`` can be set back to before, that is done: this one inserts rows."""
    ROLLBACK_TO_SNAPSHOT = "rollback_to_snapshot"


@dataclass(frozen=True, slots=True)
class RewriteFigures:
    """What lists show of a rewrite: everything but its files, which may be many thousands."""

    kind: ClassVar[Literal["rewrite_data_files"]] = "rewrite_data_files"
    base_snapshot_id: int
    groups: int
    staged_groups: int
    delete_files: int
    input_files: int
    output_files: int
    input_bytes: int
    record_count: int
    target_file_size_bytes: int
    level: Level = Level.LEVEL_0
    layout: str | None = None
    """The key of the layout that the new files have."""


@dataclass(frozen=True, slots=True)
class RewriteDataFiles:
    """Rewrite each group of files, in one commit; groups that met another commit, or failed, are left out of it.

    Validated from ``base_snapshot_id``: whatever changed the inputs since then is a conflict. ``layout`` is the order
    that the rows of every new file have, None where nothing is known of it; ``level`` is what is done for it.
    """

    kind: ClassVar[Literal["rewrite_data_files"]] = "rewrite_data_files"
    base_snapshot_id: int
    schema_id: int
    groups: tuple[FileGroup, ...]
    target_file_size_bytes: int
    level: Level = Level.LEVEL_0
    layout: Layout | None = None

    @property
    def input_files(self) -> int:
        """Files read and replaced."""
        return sum(len(group.files) for group in self.groups)

    @property
    def output_files(self) -> int:
        """Files written."""
        return sum(group.output_files for group in self.groups)

    @property
    def input_bytes(self) -> int:
        """Bytes read."""
        return sum(group.size_bytes for group in self.groups)

    @property
    def record_count(self) -> int:
        """Rows in all files, those that delete files remove included."""
        return sum(group.record_count for group in self.groups)

    @property
    def shareable_bytes(self) -> int | None:
        """Bytes read, where every group can be carried out in a Spark job shared with other tasks; else None.

        Groups to be merged or stitched can; the other executors are plans of Spark's own.
        """
        shareable = all(group.executor in (Executor.MERGE, Executor.STITCH) for group in self.groups)
        return self.input_bytes if shareable else None

    def only(self, group_ids: Collection[int]) -> RewriteDataFiles:
        """The part of the action that these groups are."""
        return replace(self, groups=tuple(group for group in self.groups if group.group_id in group_ids))

    @property
    def figures(self) -> RewriteFigures:
        """The action without its files."""
        return RewriteFigures(
            base_snapshot_id=self.base_snapshot_id,
            groups=len(self.groups),
            staged_groups=sum(group.executor is Executor.STAGED for group in self.groups),
            delete_files=len({delete for group in self.groups for delete in group.delete_files}),
            input_files=self.input_files,
            output_files=self.output_files,
            input_bytes=self.input_bytes,
            record_count=self.record_count,
            target_file_size_bytes=self.target_file_size_bytes,
            level=self.level,
            layout=None if self.layout is None else self.layout.key,
        )


@dataclass(frozen=True, slots=True)
class UndoExpireData:
    """Insert the rows of files that expired again, as new files, in one append: the undo of ``undone_task_id``.

    ``groups`` are exactly the files that it took, as they were in ``base_snapshot_id``, right before its commit
    ``expiry_snapshot_id``, with the delete files of then. Their rows get new ids. ``tagged_snapshot_id`` is where the
    tag has to be that keeps them. They become files of schema ``schema_id`` and of spec ``spec_id``, the table's
    current ones.
    """

    kind: ClassVar[Literal["undo_expire_data"]] = "undo_expire_data"
    undone_task_id: str
    base_snapshot_id: int
    expiry_snapshot_id: int
    tagged_snapshot_id: int
    schema_id: int
    spec_id: int
    groups: tuple[FileGroup, ...]

    @property
    def partitions(self) -> frozenset[Partition]:
        """Those that the files were in."""
        return frozenset(group.partition for group in self.groups)

    @property
    def record_count(self) -> int:
        """Rows in all files, those that delete files remove included."""
        return sum(group.record_count for group in self.groups)

    @property
    def figures(self) -> UndoExpireDataFigures:
        """The action without its files."""
        return UndoExpireDataFigures(
            base_snapshot_id=self.base_snapshot_id,
            undone_task_id=self.undone_task_id,
            groups=len(self.groups),
            files=sum(len(group.files) for group in self.groups),
            delete_files=len({delete for group in self.groups for delete in group.delete_files}),
            records=self.record_count,
            size_bytes=sum(group.size_bytes for group in self.groups),
        )


Action: TypeAlias = (
    RewriteDataFiles
    | ExpireSnapshots
    | RewriteManifests
    | RemoveDanglingDeletes
    | RewritePositionDeletes
    | ExpireData
    | UndoExpireData
    | UndoExpiry
    | ComputeStatistics
    | RemoveOrphanFiles
    | RemoveExpiredFiles
    | RestoreFiles
    | Rollback
)
"""Any action."""

ActionFigures: TypeAlias = (
    RewriteFigures
    | ExpireSnapshotsFigures
    | RewriteManifestsFigures
    | RemoveDanglingDeletesFigures
    | RewritePositionDeletesFigures
    | ExpireDataFigures
    | UndoExpireDataFigures
    | UndoExpiryFigures
    | ComputeStatisticsFigures
    | RemoveOrphanFilesFigures
    | RemoveExpiredFilesFigures
    | RestoreFilesFigures
    | RollbackFigures
)
"""Those of any action."""


def cause_of(action: RemoveOrphanFiles | RemoveExpiredFiles) -> Cause:
    """Why the files of a removal go."""
    return Cause.ORPHAN if isinstance(action, RemoveOrphanFiles) else Cause.EXPIRED


def rewrite_of(action: Action) -> RewriteDataFiles:
    """The action, which is known to be to rewrite data files. Raises :class:`TypeError` for any other."""
    if not isinstance(action, RewriteDataFiles):
        raise TypeError(f"expected to rewrite data files, found {action.kind}")
    return action
