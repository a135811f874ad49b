"""Which delete files apply to which data file, and when they are a reason to rewrite it.

By the spec ("Scan Planning"), and where that leaves room, as the readers of Iceberg's Java do it (``DeleteFileIndex``):
a delete file too many costs a read, a delete file too few brings deleted rows back.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from icewright.core import wording
from icewright.model.actions.actions import InputFile
from icewright.model.actions.rewrite_delete_files import (
    RemoveDanglingDeletesPrediction,
    RewritePositionDeletesPrediction,
    own_bytes,
)
from icewright.model.iceberg.files import DataFile, DeleteFile, FileContent, FileFormat, Partition
from icewright.model.iceberg.inventory import DeleteCosts
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.policy.policy import Policy


def is_deletion_vector(delete: DeleteFile) -> bool:
    """Whether it is a deletion vector: position deletes in Puffin."""
    return delete.content is FileContent.POSITION_DELETES and delete.file_format is FileFormat.PUFFIN


def only_data_file(delete: DeleteFile) -> str | None:
    """The one data file that position deletes are for, None where there may be several.

    Named, or told by equal bounds of their paths (Iceberg's ``ContentFileUtil.referencedDataFile``). Bounds that
    differ tell nothing here: readers do not leave such a file out either.
    """
    if delete.content is not FileContent.POSITION_DELETES:
        return None
    if delete.referenced_data_file is not None:
        return delete.referenced_data_file
    return delete.path_lower if delete.path_lower == delete.path_upper else None


@dataclass(slots=True)
class _BySequenceNumber:
    """Delete files of one scope in the order of their sequence numbers."""

    files: list[DeleteFile] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    bytes_before: list[int] = field(default_factory=lambda: [0])

    def sort(self) -> None:
        self.files.sort(key=_order)
        self.numbers = [file.data_sequence_number for file in self.files]
        self.bytes_before = list(accumulate((own_bytes(file) for file in self.files), initial=0))

    def since(self, number: int) -> list[DeleteFile]:
        return self.files[bisect_left(self.numbers, number) :]

    def after(self, number: int) -> list[DeleteFile]:
        return self.files[bisect_right(self.numbers, number) :]

    def count_since(self, number: int) -> int:
        return len(self.numbers) - bisect_left(self.numbers, number)

    def count_after(self, number: int) -> int:
        return len(self.numbers) - bisect_right(self.numbers, number)

    def bytes_since(self, number: int) -> int:
        return self.bytes_before[-1] - self.bytes_before[bisect_left(self.numbers, number)]

    def bytes_after(self, number: int) -> int:
        return self.bytes_before[-1] - self.bytes_before[bisect_right(self.numbers, number)]


@dataclass(frozen=True, slots=True)
class Burden:
    """What deletes mean to a data file: how many delete files apply to it, and how many rows they surely remove.

    The rows are counted as Iceberg counts them, by the deletes that are for this file alone.
    """

    files: int
    records: int


@dataclass(frozen=True, slots=True)
class Opened:
    """What a reader of a data file opens of delete files."""

    files: int
    size_bytes: int


_NONE = _BySequenceNumber()


class DeleteIndex:
    """The delete files of some partitions of one snapshot, to be asked for those of a data file."""

    def __init__(self, metadata: TableMetadata, deletes: Iterable[DeleteFile]) -> None:
        self._unpartitioned = frozenset(spec.spec_id for spec in metadata.specs if spec.is_unpartitioned)
        self._vectors: dict[tuple[Partition, str], DeleteFile] = {}
        self._of_file: dict[tuple[Partition, str], _BySequenceNumber] = {}
        self._of_partition: dict[Partition, _BySequenceNumber] = {}
        self._equality: dict[Partition, _BySequenceNumber] = {}
        self._everywhere = _BySequenceNumber()
        vectors: Counter[str] = Counter()
        for delete in deletes:
            if is_deletion_vector(delete):
                vectors[delete.referenced_data_file or ""] += 1
            self._add(delete)
        self.doubled = frozenset(path for path, times in vectors.items() if times > 1)
        """Data files with more than one deletion vector, which the spec forbids: nobody can tell what they delete."""
        scopes = (self._of_file, self._of_partition, self._equality)
        for scope in (*(one for some in scopes for one in some.values()), self._everywhere):
            scope.sort()

    def _add(self, delete: DeleteFile) -> None:
        path = only_data_file(delete)
        if delete.content is FileContent.EQUALITY_DELETES:
            everywhere = delete.partition.spec_id in self._unpartitioned
            scope = self._everywhere if everywhere else self._equality.setdefault(delete.partition, _new())
        elif is_deletion_vector(delete):
            self._vectors[delete.partition, path or ""] = delete
            return
        elif path is None:
            scope = self._of_partition.setdefault(delete.partition, _new())
        else:
            scope = self._of_file.setdefault((delete.partition, path), _new())
        scope.files.append(delete)

    def of(self, file: DataFile) -> tuple[DeleteFile, ...]:
        """The delete files that apply to a data file, in a fixed order."""
        number, key = file.data_sequence_number, (file.partition, file.path)
        found = [*self._everywhere.after(number), *self._equality.get(file.partition, _NONE).after(number)]
        vector = self._vector(file)
        if vector is not None:
            return (*found, vector)
        around, own = self._of_partition.get(file.partition, _NONE), self._of_file.get(key, _NONE)
        return (*found, *around.since(number), *own.since(number))

    def inputs(self, files: Sequence[DataFile]) -> tuple[tuple[InputFile, ...], tuple[DeleteFile, ...]]:
        """The files of a group as a task reads them, and the delete files that they name by their places."""
        places: dict[DeleteFile, int] = {}
        inputs = tuple(
            InputFile(
                path=file.path,
                size_bytes=file.size_bytes,
                record_count=file.record_count,
                data_sequence_number=file.data_sequence_number,
                file_format=file.file_format,
                first_row_id=file.first_row_id,
                deletes=tuple(places.setdefault(delete, len(places)) for delete in self.of(file)),
            )
            for file in files
        )
        return inputs, tuple(places)

    def burden(self, file: DataFile) -> Burden:
        """What :meth:`of` comes to, without listing it: there may be many of both."""
        number = file.data_sequence_number
        files = self._everywhere.count_after(number)
        files += self._equality.get(file.partition, _NONE).count_after(number)
        vector = self._vector(file)
        if vector is not None:
            return Burden(files + 1, min(file.record_count, vector.record_count))
        own = self._of_file.get((file.partition, file.path), _NONE).since(number)
        files += len(own) + self._of_partition.get(file.partition, _NONE).count_since(number)
        return Burden(files, min(file.record_count, sum(delete.record_count for delete in own)))

    def opened(self, file: DataFile) -> Opened:
        """How many delete files a reader of a data file opens, and the bytes of these, without listing them."""
        number, equality = file.data_sequence_number, self._equality.get(file.partition, _NONE)
        size_bytes = self._everywhere.bytes_after(number) + equality.bytes_after(number)
        vector = self._vector(file)
        if vector is not None:
            return Opened(self.burden(file).files, size_bytes + own_bytes(vector))
        around = self._of_partition.get(file.partition, _NONE)
        own = self._of_file.get((file.partition, file.path), _NONE)
        return Opened(self.burden(file).files, size_bytes + around.bytes_since(number) + own.bytes_since(number))

    def _vector(self, file: DataFile) -> DeleteFile | None:
        vector = self._vectors.get((file.partition, file.path))
        return vector if vector is not None and file.data_sequence_number <= vector.data_sequence_number else None


def too_many_deletes(file: DataFile, burden: Burden, policy: Policy) -> bool:
    """Whether its deletes alone are a reason to rewrite a file, by Iceberg's two thresholds.

    As ``BinPackRewriteFilePlanner`` has it: so many delete files apply to it, or so much of its rows is deleted.
    """
    share_reached = burden.records >= policy.delete_ratio_threshold * file.record_count
    return burden.files >= policy.delete_file_threshold or (burden.records > 0 and share_reached)


def _new() -> _BySequenceNumber:
    return _BySequenceNumber()


def _order(delete: DeleteFile) -> tuple[int, str, int]:
    return (delete.data_sequence_number, delete.path, delete.content_offset or 0)


def delete_costs(metadata: TableMetadata, deletes: Sequence[DeleteFile], data_files: Iterable[DataFile]) -> DeleteCosts:
    """What these deletes cost a scan of these data files; time grows with both, and with no product of them."""
    index = DeleteIndex(metadata, deletes)
    opened = opened_bytes = 0
    for file in data_files:
        its = index.opened(file)
        opened, opened_bytes = opened + its.files, opened_bytes + its.size_bytes
    return DeleteCosts(len(deletes), opened, opened_bytes)


def explain_deletes(said: RemoveDanglingDeletesPrediction | RewritePositionDeletesPrediction) -> tuple[str, ...]:
    """What work on delete files would bring, in sentences."""
    listed = wording.count(said.after.listed, "delete file")
    return (f"The table would have {listed} instead of {said.before.listed:,}.",)
