"""Whether new files of position deletes would reach exactly the data files that the plan says, in one snapshot.

A new file has the highest sequence number of those that it takes the place of. A data file that came since with an
older number than that, or under a path that was in use before, would lose rows to it that it has. Read by Iceberg's own
reader; a data manifest never changes, so one that was looked through is not looked through again.
"""

from __future__ import annotations

from icewright.core.errors import Conflict
from icewright.model.actions.rewrite_delete_files import DeleteGroup, RewritePositionDeletes
from icewright.model.iceberg.files import Partition
from icewright_spark.iceberg.manifests import PartitionFiles


class Reached:
    """The data files that new delete files reach, to be held against data files manifest by manifest."""

    def __init__(self, action: RewritePositionDeletes) -> None:
        self._named: dict[str, tuple[DeleteGroup, ...]] = {}
        self._placed: dict[Partition, tuple[DeleteGroup, ...]] = {}
        self._below: dict[int, int] = {}
        for group in action.groups:
            if group.data_file is not None:
                self._named[group.data_file] = (*self._named.get(group.data_file, ()), group)
                continue
            self._placed[group.partition] = (*self._placed.get(group.partition, ()), group)
            spec_id = group.partition.spec_id
            self._below[spec_id] = max(self._below.get(spec_id, -1), group.sequence_number)
        self._targets = {
            group.group_id: {(target.path, target.data_sequence_number) for target in group.targets}
            for group in action.groups
        }
        self._seen: set[str] = set()

    def check(self, files: PartitionFiles) -> None:
        """Raises :class:`Conflict` for a data file that a new delete file would reach and is not planned for."""
        for manifest in files.data_manifests():
            path = str(manifest.path())
            if path in self._seen:
                continue
            if self._named:
                for entry in files.listed(manifest):
                    self._check(self._named.get(entry.path, ()), entry.path, entry.data_sequence_number)
            if manifest.partitionSpecId() in self._below:
                for partition, entry in files.placed(manifest, self._below):
                    self._check(self._placed.get(partition, ()), entry.path, entry.data_sequence_number)
            self._seen.add(path)

    def _check(self, groups: tuple[DeleteGroup, ...], path: str, number: int) -> None:
        for group in groups:
            if number <= group.sequence_number and (path, number) not in self._targets[group.group_id]:
                raise Conflict(
                    f"{path} came into the table with the sequence number {number}, and the new file of group "
                    f"{group.group_id} would delete rows from it"
                )
