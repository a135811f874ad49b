"""What a plan to rewrite position delete files must fulfil, stated a second time; a part of the second opinion.

Nothing of the planner is imported. What could do harm: a new file that reaches a data file which the old ones did not,
or leaves one out; a file of another kind, partition or data file among the inputs; figures that do not add up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from icewright.model.actions.rewrite_delete_files import (
    DeleteGroup,
    RewritePositionDeletes,
    RewritePositionDeletesPrediction,
    Target,
)
from icewright.model.iceberg.files import DataFile, DeleteFile, FileContent, FileFormat, Partition
from icewright.model.plans.observation import Observation
from icewright.model.policy.policy import Policy
from icewright.plans.check_table import Wrong, base_violations, not_writable, table_violations

_FORMATS: Final = (2,)
_MOST_FILES: Final = 10_000
_MOST_BYTES: Final = 64 * 1024 * 1024
_MOST_POSITIONS: Final = 5_000_000


def position_deletes_violations(
    action: RewritePositionDeletes,
    prediction: RewritePositionDeletesPrediction,
    observation: Observation,
    policy: Policy,
    deletes: Iterable[DeleteFile],
    data_files: Iterable[DataFile],
) -> Iterator[Wrong]:
    """What is wrong with a plan; ``deletes`` and ``data_files`` are all that are live, read anew."""
    known = {delete.key: delete for delete in deletes}
    yield from base_violations(action.base_snapshot_id, observation.metadata)
    yield from table_violations(observation.metadata, policy, _FORMATS)
    yield from _whole(action)
    for group in action.groups:
        for delete in group.deletes:
            if known.get(delete.key) != delete:
                yield "not-live", f"{delete.path} is not in the table as it was planned"
        yield from _group(group, observation)
    yield from _targets(action.groups, data_files)
    fewer = len(action.deletes) - len(action.groups)
    if (prediction.before.listed, prediction.after.listed) != (len(known), len(known) - fewer):
        yield "figures", f"it predicts {prediction.after.listed} of {prediction.before.listed} delete files"
    if prediction.after.opened >= prediction.before.opened:
        yield "figures", "readers would open no fewer than before"


def _whole(action: RewritePositionDeletes) -> Iterator[Wrong]:
    if not action.groups:
        yield "empty", "it replaces no delete file"
    twice = [path for path, times in Counter(one.path for one in action.deletes).items() if times > 1]
    if twice:
        yield "twice", f"{twice[0]} is to be replaced twice"
    if len(action.deletes) > _MOST_FILES:
        yield "too-much", f"it replaces {len(action.deletes):,} delete files"
    if sorted({group.group_id for group in action.groups}) != list(range(len(action.groups))):
        yield "group-ids", "the groups are not numbered one by one"


def _group(group: DeleteGroup, observation: Observation) -> Iterator[Wrong]:
    named = f"group {group.group_id}"
    if len(group.deletes) < 2:  # noqa: PLR2004 - one file has nothing to be merged with
        yield "alone", f"{named} has {len(group.deletes)} delete files"
    if group.size_bytes > _MOST_BYTES or group.record_count > _MOST_POSITIONS:
        yield "too-much", f"{named} has {group.size_bytes:,} bytes and {group.record_count:,} positions"
    numbers = [delete.data_sequence_number for delete in group.deletes]
    if numbers and group.sequence_number != max(numbers):
        yield "sequence-number", f"{named} would have {group.sequence_number}, its delete files have {max(numbers)}"
    problem = not_writable(observation.metadata, group.partition)
    if problem is not None:
        yield "partition-value", f"{group.partition.values} of spec {group.partition.spec_id}: {problem}"
    for delete in group.deletes:
        if delete.content is not FileContent.POSITION_DELETES or delete.file_format is not FileFormat.PARQUET:
            yield "content", f"{delete.path} holds {delete.content.value} in {delete.file_format.value}"
        if delete.partition != group.partition:
            yield "partition", f"{delete.path} is of another partition than {named}"
        if _name(delete) != group.data_file:
            yield "data-file", f"{delete.path} is for {_name(delete)}, and {named} for {group.data_file}"


def _targets(groups: Sequence[DeleteGroup], data_files: Iterable[DataFile]) -> Iterator[Wrong]:
    """Each group has exactly the live data files that its new file would delete from."""
    by_partition: dict[Partition, list[Target]] = {group.partition: [] for group in groups if group.data_file is None}
    by_path: dict[str, list[Target]] = {group.data_file: [] for group in groups if group.data_file is not None}
    for file in data_files:
        target = Target(file.path, file.data_sequence_number, file.record_count)
        by_partition.get(file.partition, []).append(target)
        by_path.get(file.path, []).append(target)
    for group in groups:
        near = by_partition[group.partition] if group.data_file is None else by_path[group.data_file]
        reached = {target for target in near if target.data_sequence_number <= group.sequence_number}
        if reached != set(group.targets) or len(reached) != len(group.targets):
            yield "targets", f"group {group.group_id} names {len(group.targets)} data files, {len(reached)} are reached"
        useless = [
            delete
            for delete in group.deletes
            if not any(target.data_sequence_number <= delete.data_sequence_number for target in group.targets)
        ]
        if useless:
            yield "dangling", f"{useless[0].path} applies to no live data file"


def _name(delete: DeleteFile) -> str | None:
    """The one data file that a delete file is for, by all that says so; an answer that is no path where they differ."""
    names = {delete.referenced_data_file} - {None}
    if delete.path_lower is not None and delete.path_lower == delete.path_upper:
        names.add(delete.path_lower)
    return None if not names else names.pop() if len(names) == 1 else "(contradicting)"
