"""Which delete files dangle: those that apply to no live data file of one snapshot, over all partition specs.

A delete file too few brings deleted rows back, so every doubt keeps one. Position deletes of several data files are
told by partition and sequence number alone: what the bounds of their paths leave out, readers open all the same, and
bounds may be wrong. Those of one data file are told by its path in any partition, as Iceberg's readers look for them
(``DeleteFileIndex``, 1.12), and not only in their own, as the spec has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

from icewright.core import wording
from icewright.core.reasons import Reason
from icewright.inventory.applied_deletes import delete_costs, is_deletion_vector, only_data_file
from icewright.inventory.placement import column_types, takes_delete_files
from icewright.model.actions.rewrite_delete_files import (
    DANGLING_MAX,
    RemoveDanglingDeletes,
    RemoveDanglingDeletesPrediction,
)
from icewright.model.iceberg.files import DataFile, DeleteFile, FileContent, Partition
from icewright.model.iceberg.inventory import DeleteCosts
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.observation import Observation
from icewright.model.policy.policy import Policy
from icewright.plans.branches import branch_obstacle
from icewright.plans.eligibility import manifests_obstacle
from icewright.plans.procedure_call import procedure_call
from icewright.plans.standalone_plan import Decided

_NEVER: Final = 1 << 63
"""Above all sequence numbers: that of the oldest data file where there is none."""


DanglingDecision: TypeAlias = Decided[RemoveDanglingDeletes, RemoveDanglingDeletesPrediction]


def plan_dangling(
    observation: Observation,
    policy: Policy,
    deletes: Sequence[DeleteFile],
    data_files: Callable[[], Iterable[DataFile]],
) -> DanglingDecision:
    """What should be removed of a table's delete files, all of which ``deletes`` are.

    ``data_files`` reads all live data files of the same snapshot, as often as it is called.
    """
    metadata = observation.metadata
    obstacle = manifests_obstacle(metadata, policy)
    obstacle = obstacle or branch_obstacle(metadata, policy, observation.observed_at)
    if obstacle is not None or metadata.current_snapshot_id is None:
        return Decided(obstacle or Reason("no-snapshots", "nothing has been committed to the table yet"))
    if not deletes:
        return Decided(Reason("no-delete-files", "nothing to do: the table has no delete files"))
    oldest = Oldest(metadata, deletes)
    for file in data_files():
        oldest.add(file)
    found = [delete for delete in deletes if oldest.dangles(delete)]
    if not found:
        text = f"nothing to do: each of its {wording.count(len(deletes), 'delete file')} applies to a live data file"
        return Decided(Reason("none-dangling", text, {"deletes": len(deletes)}))
    found.sort(key=lambda one: (one.data_sequence_number, one.path, one.content_offset or 0))
    chosen = tuple(found[:DANGLING_MAX])
    before = delete_costs(metadata, deletes, data_files())
    after = DeleteCosts(before.listed - len(chosen), before.opened, before.opened_bytes)
    action = RemoveDanglingDeletes(metadata.current_snapshot_id, chosen)
    prediction = RemoveDanglingDeletesPrediction(before, after, _call(metadata))
    return Decided(_why(action, len(deletes), len(found)), action, prediction)


class Oldest:
    """The oldest live data file in each place that deletes can reach, by data sequence number."""

    def __init__(self, metadata: TableMetadata, deletes: Iterable[DeleteFile]) -> None:
        self._metadata = metadata
        self._unpartitioned = frozenset(spec.spec_id for spec in metadata.specs if spec.is_unpartitioned)
        self._types = column_types(metadata)
        self._fit: dict[Partition, bool] = {}
        paths = (only_data_file(delete) for delete in deletes)
        self._of_path: dict[str, int] = {path: _NEVER for path in paths if path is not None}
        self._of_partition: dict[Partition, int] = {}
        self._of_all = _NEVER

    def add(self, file: DataFile) -> None:
        """One more live data file."""
        number = file.data_sequence_number
        self._of_all = min(self._of_all, number)
        self._of_partition[file.partition] = min(self._of_partition.get(file.partition, _NEVER), number)
        if file.path in self._of_path:
            self._of_path[file.path] = min(self._of_path[file.path], number)

    def dangles(self, delete: DeleteFile) -> bool:
        """Whether a delete file applies to none of the files that were added; False for what is not understood."""
        partition, number = delete.partition, delete.data_sequence_number
        if not self._is_fit(partition):
            return False
        if delete.content is FileContent.EQUALITY_DELETES:
            everywhere = partition.spec_id in self._unpartitioned
            oldest = self._of_all if everywhere else self._of_partition.get(partition, _NEVER)
            return oldest >= number
        path = only_data_file(delete)
        if path is not None:
            bounds = {delete.path_lower, delete.path_upper} - {None}
            return self._of_path[path] > number and (len(bounds) != 1 or bounds == {path})
        if is_deletion_vector(delete):
            return False  # of no data file: the spec has no such thing
        return self._of_partition.get(partition, _NEVER) > number

    def _is_fit(self, partition: Partition) -> bool:
        if partition not in self._fit:
            self._fit[partition] = takes_delete_files(self._metadata, self._types, partition)
        return self._fit[partition]


def _why(action: RemoveDanglingDeletes, listed: int, dangling: int) -> Reason:
    figures = action.figures
    kinds = (
        (figures.position_deletes, "file of position deletes", "files of position deletes"),
        (figures.vectors, "deletion vector", "deletion vectors"),
        (figures.equality_deletes, "file of equality deletes", "files of equality deletes"),
    )
    said = " and ".join(wording.count(number, one, many) for number, one, many in kinds if number)
    text = f"{said} of {listed:,} delete files apply to no live data file"
    if dangling > len(action.deletes):
        text += f"; the other {dangling - len(action.deletes):,} that do not are for the next plan"
    return Reason("dangling-deletes", text, {"dangling": dangling, "listed": listed})


def _call(metadata: TableMetadata) -> str:
    """Iceberg's procedure rewrites data files as well; it removes dangling deletes besides where it is told to."""
    options = "map('remove-dangling-deletes', 'true')"
    return procedure_call(metadata.name, "rewrite_data_files", f"options => {options}")
