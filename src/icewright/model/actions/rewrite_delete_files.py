"""Rewriting position delete files and removing dangling ones: the actions, their figures, and what each would bring.

Several files of position deletes become one that deletes the same rows. No data file is read or written, and equality
deletes stay as they are: they are never turned into position deletes, nor into anything else.

A delete file dangles when it applies to no live data file. Readers open none of these, but each planning of a scan
reads their entries. Metadata alone: no file is written or deleted, and what the table holds is the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from icewright.model.actions.traits import ON_MAIN, ActionTraits, TableSlot
from icewright.model.iceberg.files import DeleteFile, FileContent, FileFormat, Partition
from icewright.model.iceberg.inventory import DeleteCosts

DELETE_FORMAT_VERSION: Final = 2
"""The only format version whose position delete files are written anew: from 3 on there are deletion vectors."""

GROUP_BYTES_MAX: Final = 64 << 20
"""The most bytes of delete files that become one: Iceberg's default for the size of a delete file."""

GROUP_RECORDS_MAX: Final = 5_000_000
"""The most positions in a group: some hundred megabytes of a worker's memory, and seconds of its CPU."""

POSITIONS_METHOD: Final = "deleted-positions-sha256"
"""How a rewrite is proved: by the positions that are deleted from each data file, before and after."""

INPUTS_MAX: Final = 10_000
TARGETS_MAX: Final = 50_000
"""The most delete files that one action replaces, and the most data files that it names, some 10 MB of JSON."""


@dataclass(frozen=True, slots=True)
class Target:
    """A live data file that a group's deletes are for, with what must be found of it."""

    path: str
    data_sequence_number: int
    record_count: int


@dataclass(frozen=True, slots=True)
class DeleteGroup:
    """Position delete files of one partition that become one, or none where no row is left that they delete.

    ``data_file`` is the one data file that all of them are for, None where each may be for any of its partition; the
    new file is for the same. It gets ``sequence_number``, the highest of theirs. ``targets`` are all live data files
    that are not younger than that: of the positions that a delete file has, those of a target which is not younger than
    *this* file are kept, and no others.
    """

    group_id: int
    partition: Partition
    partition_path: str
    data_file: str | None
    deletes: tuple[DeleteFile, ...]
    targets: tuple[Target, ...]
    sequence_number: int

    @property
    def size_bytes(self) -> int:
        """Bytes to be read."""
        return sum(delete.size_bytes for delete in self.deletes)

    @property
    def record_count(self) -> int:
        """Positions to be read."""
        return sum(delete.record_count for delete in self.deletes)


@dataclass(frozen=True, slots=True)
class RewritePositionDeletesFigures:
    """What lists show of the action: everything but its files."""

    kind: ClassVar[Literal["rewrite_position_delete_files"]] = "rewrite_position_delete_files"
    base_snapshot_id: int
    groups: int
    input_files: int
    input_bytes: int
    records: int
    data_files: int


@dataclass(frozen=True, slots=True)
class RewritePositionDeletes:
    """Replace each group of position delete files by one, in one commit.

    All of them are live in ``base_snapshot_id``, and must be in the snapshot that the commit comes after; there must be
    no data file by then that a new file would delete from and the old ones did not. Else nothing is committed.
    """

    kind: ClassVar[Literal["rewrite_position_delete_files"]] = "rewrite_position_delete_files"
    base_snapshot_id: int
    groups: tuple[DeleteGroup, ...]

    @property
    def deletes(self) -> tuple[DeleteFile, ...]:
        """The delete files that are replaced, by group."""
        return tuple(delete for group in self.groups for delete in group.deletes)

    @property
    def names(self) -> int:
        """How many files it names."""
        return sum(len(group.deletes) + len(group.targets) for group in self.groups)

    @property
    def figures(self) -> RewritePositionDeletesFigures:
        """The action without its files."""
        return RewritePositionDeletesFigures(
            base_snapshot_id=self.base_snapshot_id,
            groups=len(self.groups),
            input_files=len(self.deletes),
            input_bytes=sum(group.size_bytes for group in self.groups),
            records=sum(group.record_count for group in self.groups),
            data_files=len({target.path for group in self.groups for target in group.targets}),
        )


@dataclass(frozen=True, slots=True)
class RewritePositionDeletesPrediction:
    """What carrying out the action would bring, over the whole table.

    Exact but for the bytes after it, an estimate. ``call`` is the Spark statement that comes nearest.
    """

    kind: ClassVar[Literal["rewrite_position_delete_files"]] = "rewrite_position_delete_files"
    before: DeleteCosts
    after: DeleteCosts
    call: str = ""


@dataclass(frozen=True, slots=True)
class RewritePositionDeletesRequest:
    """Write position delete files anew, where readers would open fewer of them."""

    kind: ClassVar[Literal["rewrite_position_delete_files"]] = "rewrite_position_delete_files"


REWRITE_POSITION_DELETES_TRAITS: Final = ActionTraits(
    RewritePositionDeletes,
    RewritePositionDeletesFigures,
    RewritePositionDeletesPrediction,
    names=lambda action: action.names,
    asked=RewritePositionDeletesRequest,
    slot=TableSlot.DATA,
    settings=ON_MAIN,
)


DANGLING_MAX: Final = 20_000
"""The most delete files that one action removes, some 8 MB of JSON. What is left over is for the next one."""

DANGLING_METHOD: Final = "delete-application"
"""How a removal is proved: no live data file of the snapshot that it comes after has a delete file that goes."""


@dataclass(frozen=True, slots=True)
class RemoveDanglingDeletesFigures:
    """What lists show of the action: everything but its delete files."""

    kind: ClassVar[Literal["remove_dangling_deletes"]] = "remove_dangling_deletes"
    base_snapshot_id: int
    position_deletes: int
    equality_deletes: int
    vectors: int
    records: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class RemoveDanglingDeletes:
    """Remove exactly these delete files from the table's metadata, in one commit.

    None of them applies to a live data file of ``base_snapshot_id``, nor of the snapshot that the commit comes after:
    if one does by then, or is not there any more, nothing is committed.
    """

    kind: ClassVar[Literal["remove_dangling_deletes"]] = "remove_dangling_deletes"
    base_snapshot_id: int
    deletes: tuple[DeleteFile, ...]

    @property
    def names(self) -> int:
        """How many files it names."""
        return len(self.deletes)

    @property
    def figures(self) -> RemoveDanglingDeletesFigures:
        """The action without its delete files."""
        vectors = [one for one in self.deletes if one.file_format is FileFormat.PUFFIN]
        equality = [one for one in self.deletes if one.content is FileContent.EQUALITY_DELETES]
        return RemoveDanglingDeletesFigures(
            base_snapshot_id=self.base_snapshot_id,
            position_deletes=len(self.deletes) - len(vectors) - len(equality),
            equality_deletes=len(equality),
            vectors=len(vectors),
            records=sum(one.record_count for one in self.deletes),
            size_bytes=sum(own_bytes(one) for one in self.deletes),
        )


@dataclass(frozen=True, slots=True)
class RemoveDanglingDeletesPrediction:
    """What carrying out the action would bring, over the whole table: exact. ``call`` is the nearest statement."""

    kind: ClassVar[Literal["remove_dangling_deletes"]] = "remove_dangling_deletes"
    before: DeleteCosts
    after: DeleteCosts
    call: str = ""


def own_bytes(delete: DeleteFile) -> int:
    """Bytes that a reader reads of a delete file: of a deletion vector its own blob, not those of its neighbours."""
    return delete.size_bytes if delete.content_size_bytes is None else delete.content_size_bytes


@dataclass(frozen=True, slots=True)
class RemoveDanglingDeletesRequest:
    """Remove the delete files of a table that apply to no live data file."""

    kind: ClassVar[Literal["remove_dangling_deletes"]] = "remove_dangling_deletes"


REMOVE_DANGLING_DELETES_TRAITS: Final = ActionTraits(
    RemoveDanglingDeletes,
    RemoveDanglingDeletesFigures,
    RemoveDanglingDeletesPrediction,
    names=lambda action: action.names,
    asked=RemoveDanglingDeletesRequest,
    slot=TableSlot.DATA,
    settings=ON_MAIN,
)
