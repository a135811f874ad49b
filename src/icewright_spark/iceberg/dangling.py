"""Whether delete files apply to a live data file of one snapshot, by the spec's rules, written down a third time.

The planner told it by the oldest data file of each place, its checker held each data file against them. Here the
manifests are read by Iceberg's own reader, of the very snapshot that the commit comes after. A data manifest never
changes, so one that was looked through is not looked through again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from icewright.core.errors import Conflict
from icewright.model.iceberg.files import DeleteFile, FileContent, Partition
from icewright_spark.iceberg.applied_deletes import DataEntry
from icewright_spark.iceberg.manifests import FoundDelete, PartitionFiles

_FACTS = (
    "content",
    "file_format",
    "partition",
    "size_bytes",
    "record_count",
    "data_sequence_number",
    "referenced_data_file",
    "content_offset",
    "content_size_bytes",
    "equality_ids",
    "path_lower",
    "path_upper",
)


def found_deletes(files: PartitionFiles, planned: Sequence[DeleteFile]) -> list[FoundDelete]:
    """Java's objects of these delete files in the snapshot that ``files`` is of, in their order.

    Raises :class:`Conflict` for one that is not there, there twice, or another one than planned.
    """
    paths = frozenset(one.referenced_data_file for one in planned if one.referenced_data_file is not None)
    since = min(one.data_sequence_number for one in planned)
    wanted = {one.key: one for one in planned}
    found: dict[tuple[str, int | None], FoundDelete] = {}
    for each in files.delete_files(paths, since):
        key = each.delete.key
        if key in found:
            raise Conflict(f"{each.delete.path} is listed twice in one snapshot")
        if key in wanted:
            found[key] = each
    for key, one in wanted.items():
        if key not in found:
            raise Conflict(f"another commit removed {one.path}")
        differing = [fact for fact in _FACTS if getattr(one, fact) != getattr(found[key].delete, fact)]
        if differing:
            raise Conflict(f"{one.path} is not the delete file that was planned: its {differing[0]} is another")
    return [found[key] for key in wanted]


class Reach:
    """What planned delete files reach, to be held against data files manifest by manifest."""

    def __init__(self, planned: Sequence[DeleteFile], unpartitioned_specs: frozenset[int]) -> None:
        self._everywhere = -1
        self._paths: dict[str, int] = {}
        self._positions: dict[Partition, int] = {}
        self._equality: dict[Partition, int] = {}
        for one in planned:
            number, names = one.data_sequence_number, _names(one)
            if one.content is FileContent.EQUALITY_DELETES and one.partition.spec_id in unpartitioned_specs:
                self._everywhere = max(self._everywhere, number)
            elif one.content is FileContent.EQUALITY_DELETES:
                self._equality[one.partition] = max(self._equality.get(one.partition, -1), number)
            elif names:
                self._paths.update({name: max(self._paths.get(name, -1), number) for name in names})
            else:
                self._positions[one.partition] = max(self._positions.get(one.partition, -1), number)
        self._seen: set[str] = set()

    @property
    def below(self) -> Mapping[int, int]:
        """By spec, the highest sequence number of planned files that are told by partition."""
        found: dict[int, int] = {}
        for partition, number in (*self._positions.items(), *self._equality.items()):
            found[partition.spec_id] = max(found.get(partition.spec_id, -1), number)
        return found

    def check(self, files: PartitionFiles) -> int:
        """Hold all of it against the data files of a snapshot; gives how many data manifests that has.

        Raises :class:`Conflict` when a delete file applies, whichever reading of the spec one takes.
        """
        manifests, below = files.data_manifests(), self.below
        for manifest in manifests:
            path = str(manifest.path())
            if path in self._seen:
                continue
            if self._paths or self._everywhere >= 0:
                for entry in files.listed(manifest):
                    self._check_entry(entry)
            if manifest.partitionSpecId() in below:
                for partition, entry in files.placed(manifest, below):
                    self._check_placed(partition, entry)
            self._seen.add(path)
        return len(manifests)

    def _check_entry(self, entry: DataEntry) -> None:
        if entry.data_sequence_number < self._everywhere:
            raise _applies("equality deletes", entry)
        if entry.data_sequence_number <= self._paths.get(entry.path, -1):
            raise _applies("position deletes of it", entry)

    def _check_placed(self, partition: Partition, entry: DataEntry) -> None:
        if entry.data_sequence_number <= self._positions.get(partition, -1):
            raise _applies("position deletes of its partition", entry)
        if entry.data_sequence_number < self._equality.get(partition, -1):
            raise _applies("equality deletes of its partition", entry)


def _names(delete: DeleteFile) -> set[str]:
    """The data files that position deletes are for, by all that says so; none where they may be for any."""
    if delete.content is not FileContent.POSITION_DELETES:
        return set()
    named = set() if delete.referenced_data_file is None else {delete.referenced_data_file}
    bounded = delete.path_lower is not None and delete.path_lower == delete.path_upper
    return named | ({delete.path_lower} if bounded and delete.path_lower is not None else set())


def _applies(what: str, entry: DataEntry) -> Conflict:
    return Conflict(
        f"{what} that were to be removed apply to {entry.path}, of sequence number {entry.data_sequence_number}"
    )
