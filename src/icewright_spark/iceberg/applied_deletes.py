"""Which delete files apply to which data files, by the spec's rules ("Scan Planning"), written down a second time.

The planner decided it once, from what it read of the manifests. A row that it forgot to delete would come back to life
in the rewrite, and no proof would tell: both digests are of rows without it, or with it. So the job reads the base
snapshot's manifests through Iceberg's own reader and compares. Right before the commit it looks at the present snapshot
in the same way: a group that met somebody else's commit is left out, and the others are committed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from icewright.core.errors import Conflict, Unsupported
from icewright.model.actions.actions import Executor, FileGroup, InputFile
from icewright.model.iceberg.files import DeleteFile, DeleteKey, FileContent, FileFormat, Partition


@dataclass(frozen=True, slots=True)
class DataEntry:
    """What the manifests of a snapshot say of a data file."""

    path: str
    data_sequence_number: int
    first_row_id: int | None


@dataclass(frozen=True, slots=True)
class _Applying:
    """Delete files of one data file: those that may remove rows of it, and those that the spec allows to be listed."""

    needed: frozenset[DeleteKey]
    allowed: frozenset[DeleteKey]
    equality: bool


def is_vector(delete: DeleteFile) -> bool:
    """Whether it is a deletion vector."""
    return delete.file_format is FileFormat.PUFFIN


def check_applied(
    groups: Iterable[FileGroup],
    entries: Mapping[str, DataEntry],
    deletes: Sequence[DeleteFile],
    unpartitioned_specs: Collection[int] = (),
) -> frozenset[DeleteKey]:
    """Compare each planned file with what the snapshot says of it; gives the deletion vectors that apply to any.

    ``entries`` and ``deletes`` are the live files of the groups' partitions, and the delete files of unpartitioned
    specs beside them. Raises :class:`Conflict` for any difference, and :class:`Unsupported` for equality deletes in a
    group that is to be merged.
    """
    index = _Index(deletes, unpartitioned_specs)
    vectors: set[DeleteKey] = set()
    for group in groups:
        for file in group.files:
            entry = _entry_of(file, entries)
            applying = index.applying(file.path, group.partition, entry.data_sequence_number)
            if applying.equality and group.executor in (Executor.MERGE, Executor.SORT):
                raise Unsupported(f"equality deletes apply to {file.path}, which the merge cannot fold in")
            planned = {group.delete_files[number].key for number in file.deletes}
            if not applying.needed <= planned <= applying.allowed:
                raise Conflict(
                    f"{file.path} was planned with the delete files {_said(planned)}, but of the planned snapshot "
                    f"{_said(applying.needed)} apply to it"
                )
            for number in file.deletes:
                index.check_facts(group.delete_files[number])
            vectors |= {key for key in applying.needed if is_vector(index.by_key[key])}
    return frozenset(vectors)


def lost(
    groups: Iterable[FileGroup],
    entries: Mapping[str, DataEntry],
    deletes: Sequence[DeleteFile],
    unpartitioned_specs: Collection[int] = (),
) -> dict[int, str]:
    """The groups that are not what was planned any more, by id, each with the first reason.

    ``entries`` and ``deletes`` are as :func:`check_applied` has them, of a later snapshot. A group is whole while its
    files are live, as they were added, and the delete files that apply to them are those that were planned.
    """
    index = _Index(deletes, unpartitioned_specs)
    found: dict[int, str] = {}
    for group in groups:
        for file in group.files:
            why = _why_lost(index, group, file, entries.get(file.path))
            if why is not None:
                found[group.group_id] = why
                break
    return found


def _why_lost(index: _Index, group: FileGroup, file: InputFile, entry: DataEntry | None) -> str | None:
    if entry is None:
        return f"{file.path} was removed from the table"
    if (entry.data_sequence_number, entry.first_row_id) != (file.data_sequence_number, file.first_row_id):
        return f"{file.path} was added to the table again"
    try:
        applying = index.applying(file.path, group.partition, entry.data_sequence_number)
    except Unsupported as error:
        return error.message
    planned = {group.delete_files[number].key for number in file.deletes}
    if not applying.needed <= planned:
        return f"rows of {file.path} were deleted by {_said(applying.needed - planned)}"
    if not planned <= applying.allowed:
        return f"{_said(planned - applying.allowed)} does not apply to {file.path} any more"
    return None


class _Index:
    """The delete files of a snapshot, by what they can apply to."""

    def __init__(self, deletes: Sequence[DeleteFile], unpartitioned_specs: Collection[int]) -> None:
        self.by_key = {delete.key: delete for delete in deletes}
        self._by_path: dict[str, list[DeleteFile]] = {}
        self._by_partition: dict[Partition, list[DeleteFile]] = {}
        self._global: list[DeleteFile] = []
        for delete in deletes:
            if delete.content is FileContent.EQUALITY_DELETES and delete.partition.spec_id in unpartitioned_specs:
                self._global.append(delete)
            elif delete.referenced_data_file is not None:
                self._by_path.setdefault(delete.referenced_data_file, []).append(delete)
            else:
                self._by_partition.setdefault(delete.partition, []).append(delete)

    def applying(self, path: str, partition: Partition, sequence_number: int) -> _Applying:
        """Raises :class:`Unsupported` for several deletion vectors of one file, of which the spec allows one."""
        own = [delete for delete in self._by_path.get(path, ()) if delete.partition == partition]
        around = self._by_partition.get(partition, [])
        equality = [
            delete
            for delete in (*around, *self._global)
            if delete.content is FileContent.EQUALITY_DELETES and delete.data_sequence_number > sequence_number
        ]
        positions = [
            delete
            for delete in (*own, *around)
            if delete.content is FileContent.POSITION_DELETES and delete.data_sequence_number >= sequence_number
        ]
        vectors = [delete for delete in positions if is_vector(delete)]
        if len(vectors) > 1:
            raise Unsupported(f"{path} has {len(vectors)} deletion vectors, where the spec allows one")
        chosen = vectors or positions  # a vector holds all deletes of the position delete files before it
        needed = [delete for delete in chosen if _within_bounds(path, delete)]
        return _Applying(
            needed=frozenset(one.key for one in (*needed, *equality)),
            allowed=frozenset(one.key for one in (*chosen, *equality)),
            equality=bool(equality),
        )

    def check_facts(self, planned: DeleteFile) -> None:
        """Raises :class:`Conflict` when a delete file was planned as another than it is."""
        found = self.by_key[planned.key]
        if _facts(planned) != _facts(found):
            raise Conflict(f"{planned.path} was planned as {_facts(planned)}, but is {_facts(found)}")


def _entry_of(file: InputFile, entries: Mapping[str, DataEntry]) -> DataEntry:
    entry = entries.get(file.path)
    if entry is None:
        raise Conflict(f"{file.path} is not in its partition of the planned snapshot")
    planned = (file.data_sequence_number, file.first_row_id)
    found = (entry.data_sequence_number, entry.first_row_id)
    if planned != found:
        raise Conflict(
            f"{file.path} was planned with sequence number {planned[0]} and first row id {planned[1]}, but has "
            f"{found[0]} and {found[1]}"
        )
    return entry


def _within_bounds(path: str, delete: DeleteFile) -> bool:
    """Whether a path can be among those that the file deletes from. Bounds are compared as bytes, as Parquet's are."""
    lower, upper = delete.path_lower, delete.path_upper
    return not (
        (lower is not None and path.encode() < lower.encode()) or (upper is not None and path.encode() > upper.encode())
    )


def _facts(delete: DeleteFile) -> tuple[object, ...]:
    return (
        delete.content.value,
        delete.file_format.value,
        delete.size_bytes,
        delete.record_count,
        delete.data_sequence_number,
        delete.content_size_bytes,
        delete.referenced_data_file if is_vector(delete) else None,
    )


def _said(keys: Collection[DeleteKey]) -> str:
    said = [path if offset is None else f"{path} at {offset}" for path, offset in sorted(keys, key=str)]
    return ", ".join(said) or "(none)"
