"""What a plan to remove dangling deletes must fulfil, stated a second time; a part of the checker's second opinion.

Nothing of the planner is imported. It looks for the oldest data file of each place; this holds every live data file
against every planned delete file that could apply to it, on files read anew. The job asks once more, of the snapshot
that it commits to, by Iceberg's reader; and the verifier afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from icewright.model.actions.rewrite_delete_files import RemoveDanglingDeletes, RemoveDanglingDeletesPrediction
from icewright.model.iceberg.files import DataFile, DeleteFile, FileContent, Partition
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.observation import Observation
from icewright.model.policy.policy import Policy
from icewright.plans.check_table import Wrong, base_violations, not_writable, table_violations

_MOST: Final = 20_000
_FORMATS: Final = (2, 3)
_SAID_MAX: Final = 5


def dangling_violations(
    action: RemoveDanglingDeletes,
    prediction: RemoveDanglingDeletesPrediction,
    observation: Observation,
    policy: Policy,
    deletes: Iterable[DeleteFile],
    data_files: Iterable[DataFile],
) -> Iterator[Wrong]:
    """What is wrong with a plan; ``deletes`` and ``data_files`` are all that are live, read anew."""
    known = {delete.key: delete for delete in deletes}
    yield from base_violations(action.base_snapshot_id, observation.metadata)
    yield from table_violations(observation.metadata, policy, _FORMATS)
    if not action.deletes:
        yield "empty", "it removes no delete file"
    if len(action.deletes) > _MOST:
        yield "too-much", f"it removes {len(action.deletes):,} delete files"
    if len({delete.key for delete in action.deletes}) < len(action.deletes):
        yield "twice", "a delete file is to be removed twice"
    for delete in action.deletes:
        if known.get(delete.key) != delete:
            yield "not-live", f"{delete.path} is not in the table as it was planned"
        problem = not_writable(observation.metadata, delete.partition)
        if problem is not None:
            yield "partition-value", f"{delete.partition.values} of spec {delete.partition.spec_id}: {problem}"
    yield from _applying(action.deletes, observation.metadata, data_files)
    if (prediction.before.listed, prediction.after.listed) != (len(known), len(known) - len(action.deletes)):
        yield "figures", f"it predicts {prediction.after.listed} of {prediction.before.listed} delete files"
    if prediction.before.opened != prediction.after.opened:
        yield "figures", "readers would open others than before"


def _applying(
    deletes: Sequence[DeleteFile], metadata: TableMetadata, data_files: Iterable[DataFile]
) -> Iterator[Wrong]:
    """Planned delete files that apply to a live data file, by any reading of the spec."""
    global_specs = {spec.spec_id for spec in metadata.specs if all(field.transform == "void" for field in spec.fields)}
    by_path: dict[str, list[DeleteFile]] = {}
    by_partition: dict[Partition, list[DeleteFile]] = {}
    everywhere: list[DeleteFile] = []
    for delete in deletes:
        names = {delete.referenced_data_file} if delete.referenced_data_file is not None else set()
        if delete.path_lower is not None and delete.path_lower == delete.path_upper:
            names.add(delete.path_lower)
        if delete.content is FileContent.EQUALITY_DELETES:
            its = (
                everywhere
                if delete.partition.spec_id in global_specs
                else by_partition.setdefault(delete.partition, [])
            )
            its.append(delete)
        elif names:
            for name in names:
                by_path.setdefault(name, []).append(delete)
        else:
            by_partition.setdefault(delete.partition, []).append(delete)
    everywhere_since = max((delete.data_sequence_number for delete in everywhere), default=-1)
    said = 0
    for file in data_files:
        near = _near(file, by_path, by_partition, everywhere if file.data_sequence_number < everywhere_since else ())
        found = next((one for one in near if _applies(one, file)), None)
        if found is not None:
            yield "applies", f"{found.path} applies to {file.path}, which is live"
            said += 1
        if said >= _SAID_MAX:
            return


def _near(
    file: DataFile,
    by_path: Mapping[str, Sequence[DeleteFile]],
    by_partition: Mapping[Partition, Sequence[DeleteFile]],
    everywhere: Sequence[DeleteFile],
) -> Iterator[DeleteFile]:
    yield from by_path.get(file.path, ())
    yield from by_partition.get(file.partition, ())
    yield from everywhere


def _applies(delete: DeleteFile, file: DataFile) -> bool:
    """By the sequence numbers alone (spec, "Scan Planning")."""
    if delete.content is FileContent.EQUALITY_DELETES:
        return file.data_sequence_number < delete.data_sequence_number
    return file.data_sequence_number <= delete.data_sequence_number
