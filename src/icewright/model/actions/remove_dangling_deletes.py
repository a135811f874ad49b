"""Removing dangling deletes: the action, what lists show of it, and what it would bring.

A delete file dangles when it applies to no live data file. Readers open none of these, but each planning of a scan
reads their entries. Metadata alone: no file is written or deleted, and what the table holds is the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from icewright.model.actions.traits import ActionTraits, TableSlot
from icewright.model.iceberg.delete_costs import DeleteCosts
from icewright.model.iceberg.files import DeleteFile, FileContent, FileFormat

DANGLING_MAX: Final = 20_000
"""The most delete files that one action removes, some 8 MB of JSON. What is left over is for the next one."""

METHOD: Final = "delete-application"
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


TRAITS: Final = ActionTraits(
    RemoveDanglingDeletes,
    RemoveDanglingDeletesFigures,
    RemoveDanglingDeletesPrediction,
    names=lambda action: action.names,
    asked=RemoveDanglingDeletesRequest,
    slot=TableSlot.DATA,
)
