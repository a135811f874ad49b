"""Actions: complete pieces of work that leave their executor no choice.

Named after Iceberg's procedures. A new action is a module of its own with its dataclasses and its traits
(:mod:`icewright.model.actions.traits`), a folder in :mod:`icewright.actions`, and a member of :class:`ActionKind`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib import import_module
from typing import Annotated, Any, ClassVar, Final, Literal, Protocol, Self, TypeAlias

from icewright.core.codec import OneOf
from icewright.model.access.permissions import Permission
from icewright.model.actions import (
    compute_statistics,
    expire_data,
    expire_snapshots,
    remove_files,
    rewrite_delete_files,
    rewrite_manifests,
    rollback,
    undo,
)
from icewright.model.actions.deletion import Cause
from icewright.model.actions.remove_files import RemoveExpiredFiles, RemoveOrphanFiles
from icewright.model.actions.rewrite_data_files import RewriteDataFilesRequest, RewritePrediction
from icewright.model.actions.traits import ON_MAIN, ActionTraits, RunsOn, TableSlot
from icewright.model.actions.undo import UndoExpireDataFigures, UndoExpireDataPrediction
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


_REWRITE_DATA_FILES: Final = ActionTraits(
    RewriteDataFiles,
    RewriteFigures,
    RewritePrediction,
    names=lambda action: action.input_files,
    shareable_bytes=lambda action: action.shareable_bytes,
    asked=RewriteDataFilesRequest,
    slot=TableSlot.DATA,
    protocol_version=2,  # a layout may be by cuts
    settings=ON_MAIN
    | {
        *("target_file_size_bytes", "min_input_files", "min_file_size_ratio", "max_file_group_size_bytes"),
        *("max_file_group_files", "max_task_size_bytes", "max_task_files", "max_task_time_ratio"),
        *("delete_file_threshold", "delete_ratio_threshold", "write_window_ms", "migrate_formats", "migrate_spec"),
        *("layout", "layout_cuts", "level_1_size_bytes", "level_2_runs", "trigger", "trigger_target_size_bytes"),
        *("mse_ratio", "mse_interval_ms", "tiered_fragment_ratio", "tiered_minor_files"),
        *("tiered_minor_interval_ms", "tiered_full_interval_ms", "scans_per_day", "horizon_ms", "open_ms", "plan_ms"),
        *("rewrite_ms", "read_bytes_per_s", "write_bytes_per_s"),
    },
)

_UNDO_EXPIRE_DATA: Final = ActionTraits(
    UndoExpireData,
    UndoExpireDataFigures,
    UndoExpireDataPrediction,
    names=lambda action: sum(len(group.files) + len(group.delete_files) for group in action.groups),
    permission=Permission.UNDO,
    slot=TableSlot.DATA,
    settings=frozenset(),  # nothing would plan it anew
)


def traits_in(module: str) -> ActionTraits[Any]:
    """The ``TRAITS`` of a module of this package, by its name: so an action is registered by one line.

    Raises :class:`ImportError` where there is no such module, and :class:`TypeError` where it has no traits.
    """
    found = getattr(import_module(f"icewright.model.actions.{module}"), "TRAITS", None)
    if not isinstance(found, ActionTraits):
        raise TypeError(f"icewright.model.actions.{module} has no TRAITS")
    return found


class ActionKind(StrEnum):
    """The actions there are, by the names of Iceberg's procedures; what takes one back has its name behind ``undo``.

    This is where an action is registered: a member that is added is the kind of its traits, and what services and the
    command line need of it is found in its folder by that kind (:mod:`icewright.maintenance.registry.folders`).
    """

    traits: ActionTraits[Any]

    def __new__(cls, traits: ActionTraits[Any] | str) -> Self:
        """The member whose value is the tag of the action; ``ActionKind(tag)`` finds it."""
        if isinstance(traits, str):
            raise TypeError(f"{traits} is registered without its traits")
        member = str.__new__(cls, traits.kind)
        member._value_ = traits.kind
        member.traits = traits
        return member

    REWRITE_DATA_FILES = _REWRITE_DATA_FILES
    EXPIRE_SNAPSHOTS = expire_snapshots.TRAITS
    REWRITE_MANIFESTS = rewrite_manifests.TRAITS
    REMOVE_DANGLING_DELETES = rewrite_delete_files.REMOVE_DANGLING_DELETES_TRAITS
    REWRITE_POSITION_DELETE_FILES = rewrite_delete_files.REWRITE_POSITION_DELETES_TRAITS
    UNDO_EXPIRE_SNAPSHOTS = undo.TRAITS
    COMPUTE_STATISTICS = compute_statistics.TRAITS
    """Both ``compute_table_stats`` and ``compute_partition_stats``."""
    REMOVE_ORPHAN_FILES = remove_files.REMOVE_ORPHAN_FILES_TRAITS
    REMOVE_EXPIRED_FILES = remove_files.REMOVE_EXPIRED_FILES_TRAITS
    """What Iceberg's ``expire_snapshots`` does at once, and for good."""
    RESTORE_FILES = undo.RESTORE_FILES_TRAITS
    """No procedure of Iceberg's: what was removed is put back."""
    EXPIRE_DATA = expire_data.TRAITS
    UNDO_EXPIRE_DATA = _UNDO_EXPIRE_DATA
    """Where ``main`` can be set back to before, that is done: this one inserts rows."""
    ROLLBACK_TO_SNAPSHOT = rollback.TRAITS
    ANALYZE_QUERIES = traits_in("analyze_queries")
    """No procedure of Iceberg's: layouts are tried on the queries of engines, and nothing is changed."""


_FIRST: Final = (
    ActionKind.REWRITE_DATA_FILES,
    ActionKind.EXPIRE_SNAPSHOTS,
    ActionKind.REWRITE_MANIFESTS,
    ActionKind.REMOVE_DANGLING_DELETES,
    ActionKind.REWRITE_POSITION_DELETE_FILES,
    ActionKind.EXPIRE_DATA,
    ActionKind.UNDO_EXPIRE_DATA,
)
"""Those that the API document has first; the others follow as the kinds do."""

LISTED: Final = tuple(dict.fromkeys((*_FIRST, *ActionKind)))
"""All kinds, in the order in which the API document has their actions, figures and predictions."""


class AnyFigures(Protocol):
    """What lists show of every action."""

    @property
    def kind(self) -> str:
        """The tag of the action."""

    @property
    def base_snapshot_id(self) -> int | None:
        """The snapshot that the action goes on from."""


ActionFigures: TypeAlias = Annotated[AnyFigures, OneOf(tuple(kind.traits.figures for kind in LISTED))]
"""Those of any action."""


class AnyAction(Protocol):
    """What every action says of itself."""

    @property
    def kind(self) -> str:
        """Its tag."""

    @property
    def figures(self) -> ActionFigures:
        """The action without its files."""


Action: TypeAlias = Annotated[AnyAction, OneOf(tuple(kind.traits.action for kind in LISTED))]
"""Any action."""


def cause_of(action: RemoveOrphanFiles | RemoveExpiredFiles) -> Cause:
    """Why the files of a removal go."""
    return Cause.ORPHAN if isinstance(action, RemoveOrphanFiles) else Cause.EXPIRED


def rewrite_of(action: Action) -> RewriteDataFiles:
    """The action, which is known to be to rewrite data files. Raises :class:`TypeError` for any other."""
    if not isinstance(action, RewriteDataFiles):
        raise TypeError(f"expected to rewrite data files, found {action.kind}")
    return action


FILE_MOVES: Final = frozenset(kind for kind in ActionKind if kind.traits.runs_on is RunsOn.SERVER_FILES)
"""What takes files away or puts them back, and commits nothing."""

TAKE_BACK: Final[Mapping[ActionKind, tuple[ActionKind, ...]]] = {
    kind: tuple(ActionKind(undo) for undo in kind.traits.taken_back_by)
    for kind in ActionKind
    if kind.traits.taken_back_by
}
"""What a person begins, and the kinds of tasks that take it back."""


EVERY_KIND: Final = frozenset(ActionKind)

OPTIMIZER_ACTIONS: Final[Mapping[str, int]] = {
    kind.value: kind.traits.protocol_version for kind in ActionKind if kind.traits.runs_on is RunsOn.OPTIMIZER
}
"""What this icewright announces as an optimizer: the kinds of actions that it carries out, in which version."""


def understood(actions: Mapping[str, int]) -> frozenset[ActionKind]:
    """The kinds of actions that whoever announces these versions carries out as they are sent from here."""
    return frozenset(kind for kind in ActionKind if actions.get(kind.value) == kind.traits.protocol_version)


def traits_of(kind: str) -> ActionTraits[Any]:
    """What is true of a kind of action; figures and predictions have the same kinds."""
    return ActionKind(kind).traits


def names_in(action: Action) -> int:
    """How many files, snapshots and partitions an action names: what it weighs in memory."""
    return traits_of(action.kind).names(action)


def shareable_bytes(action: Action) -> int | None:
    """Bytes read, where all of an action can be carried out in a Spark job shared with other tasks; else None."""
    return traits_of(action.kind).shareable_bytes(action)
