"""Actions: complete pieces of work that leave their executor no choice.

Named after Iceberg's procedures. A new action is a new dataclass here, a line in the unions, and a line in each
``match`` that the type checker then points at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from icewright.domain.files import Partition


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file to be rewritten, with what must be found when it is read."""

    path: str
    size_bytes: int
    record_count: int
    data_sequence_number: int


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Files of one partition that become one file, in this order."""

    group_id: int
    partition: Partition
    partition_path: str
    files: tuple[InputFile, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes to be read."""
        return sum(file.size_bytes for file in self.files)

    @property
    def record_count(self) -> int:
        """Rows to be read, and to be written."""
        return sum(file.record_count for file in self.files)


@dataclass(frozen=True, slots=True)
class RewriteDataFiles:
    """Merge each group of small files into one file, without re-ordering rows, in one commit.

    Validated from ``base_snapshot_id``, whose sequence number the new files keep.
    """

    kind: ClassVar[Literal["rewrite_data_files"]] = "rewrite_data_files"
    base_snapshot_id: int
    schema_id: int
    groups: tuple[FileGroup, ...]
    target_file_size_bytes: int

    @property
    def input_files(self) -> int:
        """Files read and replaced."""
        return sum(len(group.files) for group in self.groups)

    @property
    def input_bytes(self) -> int:
        """Bytes read."""
        return sum(group.size_bytes for group in self.groups)

    @property
    def record_count(self) -> int:
        """Rows read and written."""
        return sum(group.record_count for group in self.groups)


Action: TypeAlias = RewriteDataFiles
"""Any action; a union as soon as there are two."""
