"""Which position delete files become one: those that readers of a data file open several of, where one would do.

A group keeps what its files are for. Those of one data file become one of that data file, those of a partition one of
that partition: so no reader ever opens more than before, nor reads positions of files that it does not read. What
dangles is none of this (:mod:`icewright.actions.rewrite_delete_files.dangling_deletes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from icewright.core import wording
from icewright.core.reasons import Reason
from icewright.inventory.applied_deletes import delete_costs, only_data_file
from icewright.inventory.partitions import partition_path
from icewright.inventory.placement import column_types, takes_delete_files
from icewright.model.actions.rewrite_delete_files import (
    DELETE_FORMAT_VERSION,
    GROUP_BYTES_MAX,
    GROUP_RECORDS_MAX,
    INPUTS_MAX,
    TARGETS_MAX,
    DeleteGroup,
    RewritePositionDeletes,
    RewritePositionDeletesPrediction,
    Target,
)
from icewright.model.iceberg.files import DataFile, DeleteFile, FileContent, FileFormat, Partition
from icewright.model.iceberg.inventory import DeleteCosts
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.observation import Observation, WorkerAccess
from icewright.model.policy.policy import Policy
from icewright.plans.branches import branch_obstacle
from icewright.plans.eligibility import manifests_obstacle
from icewright.plans.procedure_call import procedure_call
from icewright.plans.standalone_plan import Decided

Scope: TypeAlias = tuple[Partition, str | None]
"""A partition, and the one data file that deletes are for, None where they may be for any of it."""

_LARGE: Final = 0.75
"""A delete file of this share of the most that a group may have is left alone."""


PositionDeletesDecision: TypeAlias = Decided[RewritePositionDeletes, RewritePositionDeletesPrediction]


def plan_position_deletes(
    observation: Observation,
    policy: Policy,
    deletes: Sequence[DeleteFile],
    data_files: Callable[[], Iterable[DataFile]],
) -> PositionDeletesDecision:
    """Which of a table's delete files, all of which ``deletes`` are, should become fewer.

    ``data_files`` reads all live data files of the same snapshot, as often as it is called.
    """
    metadata = observation.metadata
    obstacle = manifests_obstacle(metadata, policy) or _obstacle(observation)
    obstacle = obstacle or branch_obstacle(metadata, policy, observation.observed_at)
    if obstacle is not None or metadata.current_snapshot_id is None:
        return Decided(obstacle or Reason("no-snapshots", "nothing has been committed to the table yet"))
    scopes = _scopes(metadata, deletes)
    targets = _targets(scopes, data_files())
    found = [group for scope in scopes for group in _groups(metadata, scope, scopes[scope], targets.get(scope, []))]
    if not found:
        text = "nothing to do: no reader opens several position delete files where one would do"
        return Decided(Reason("position-deletes-in-order", text, {"deletes": len(deletes)}))
    chosen = tuple(replace(group, group_id=number) for number, group in enumerate(_within_limits(found)))
    action = RewritePositionDeletes(metadata.current_snapshot_id, chosen)
    before = delete_costs(metadata, deletes, data_files())
    call = procedure_call(metadata.name, "rewrite_position_delete_files")
    prediction = RewritePositionDeletesPrediction(before, _after(before, chosen), call)
    return Decided(_why(action, prediction, len(found)), action, prediction)


def saved(group: DeleteGroup) -> int:
    """How many delete files fewer a scan of all of the group's data files opens."""
    return sum(len(_applying(group.deletes, target)) - 1 for target in group.targets)


def _obstacle(observation: Observation) -> Reason | None:
    version = observation.metadata.format_version
    if version > DELETE_FORMAT_VERSION:
        text = (
            f"nothing to do: position deletes of format version {version} are deletion vectors, one for each data "
            "file; files of position deletes from before its upgrade are removed when data files are rewritten"
        )
        return Reason("deletion-vectors", text, {"format_version": version})
    if observation.worker_access is not WorkerAccess.PROVED:
        said = observation.access_detail or "it is not proved yet"
        return Reason("worker-access", f"nothing to do: workers may not reach the table's files: {wording.cut(said)}")
    return None


def _scopes(metadata: TableMetadata, deletes: Iterable[DeleteFile]) -> dict[Scope, list[DeleteFile]]:
    """The position delete files that may be written anew, by what they are for, where there are several."""
    found: dict[Scope, list[DeleteFile]] = {}
    types, fit = column_types(metadata), dict[Partition, bool]()
    for one in deletes:
        if one.content is not FileContent.POSITION_DELETES or one.file_format is not FileFormat.PARQUET:
            continue
        large = one.size_bytes >= _LARGE * GROUP_BYTES_MAX or one.record_count >= _LARGE * GROUP_RECORDS_MAX
        if one.partition not in fit:
            fit[one.partition] = takes_delete_files(metadata, types, one.partition)
        name, bounds = only_data_file(one), {one.path_lower, one.path_upper} - {None}
        contradicts = name is not None and len(bounds) == 1 and bounds != {name}
        if fit[one.partition] and not large and not contradicts:
            found.setdefault((one.partition, name), []).append(one)
    return {scope: its for scope, its in sorted(found.items(), key=_by_scope) if len(its) > 1}


def _by_scope(item: tuple[Scope, list[DeleteFile]]) -> tuple[Partition, str]:
    (partition, name), _ = item
    return partition, name or ""


def _targets(scopes: dict[Scope, list[DeleteFile]], data_files: Iterable[DataFile]) -> dict[Scope, list[Target]]:
    """The live data files that each scope's deletes may be for. A path that is live twice is none."""
    youngest = {scope: max(one.data_sequence_number for one in its) for scope, its in scopes.items()}
    named = {name: scope for scope in scopes if (name := scope[1]) is not None}
    found: dict[Scope, list[Target]] = {}
    seen: dict[str, int] = {}
    for file in data_files:
        target = Target(file.path, file.data_sequence_number, file.record_count)
        if file.path in named:
            seen[file.path] = seen.get(file.path, 0) + 1
        for scope in ((file.partition, None), (file.partition, file.path)):
            if file.data_sequence_number <= youngest.get(scope, -1):
                found.setdefault(scope, []).append(target)
    return {scope: its for scope, its in found.items() if scope[1] is None or seen[scope[1]] == 1}


def _groups(
    metadata: TableMetadata, scope: Scope, deletes: Sequence[DeleteFile], targets: Sequence[Target]
) -> Iterator[DeleteGroup]:
    """The groups of one scope: as many files each as fit, in the order of their sequence numbers."""
    oldest = min((target.data_sequence_number for target in targets), default=None)
    if oldest is None:
        return
    partition, name = scope
    applying = sorted(
        (one for one in deletes if one.data_sequence_number >= oldest),
        key=lambda one: (one.data_sequence_number, one.path),
    )
    for its in _packed(applying):
        number = its[-1].data_sequence_number
        reached = sorted((t for t in targets if t.data_sequence_number <= number), key=lambda target: target.path)
        path = partition_path(metadata, partition)
        group = DeleteGroup(0, partition, path, name, tuple(its), tuple(reached), number)
        if len(its) > 1 and saved(group) > 0 and len(reached) <= TARGETS_MAX:
            yield group


def _packed(deletes: Iterable[DeleteFile]) -> list[list[DeleteFile]]:
    packs: list[list[DeleteFile]] = []
    size_bytes = records = 0
    for one in deletes:
        full = size_bytes + one.size_bytes > GROUP_BYTES_MAX or records + one.record_count > GROUP_RECORDS_MAX
        if not packs or full or len(packs[-1]) >= INPUTS_MAX:
            packs.append([])
            size_bytes = records = 0
        packs[-1].append(one)
        size_bytes, records = size_bytes + one.size_bytes, records + one.record_count
    return packs


def _within_limits(groups: Sequence[DeleteGroup]) -> list[DeleteGroup]:
    """As many groups as an action may have, those first that spare readers most; in their own order."""
    chosen: list[int] = []
    inputs = targets = 0
    for number in sorted(range(len(groups)), key=lambda each: (-saved(groups[each]), each)):
        group = groups[number]
        fits = inputs + len(group.deletes) <= INPUTS_MAX and targets + len(group.targets) <= TARGETS_MAX
        if fits or not chosen:
            chosen.append(number)
            inputs, targets = inputs + len(group.deletes), targets + len(group.targets)
    return [groups[number] for number in sorted(chosen)]


def _applying(deletes: Iterable[DeleteFile], target: Target) -> list[DeleteFile]:
    return [one for one in deletes if one.data_sequence_number >= target.data_sequence_number]


def _after(before: DeleteCosts, groups: Iterable[DeleteGroup]) -> DeleteCosts:
    """A reader of a group's data files opens one file for several; what files take beside positions is saved."""
    listed, opened, opened_bytes = before.listed, before.opened, before.opened_bytes
    for group in groups:
        listed -= len(group.deletes) - 1
        opened -= saved(group)
        head = min(one.size_bytes for one in group.deletes)
        output_bytes = group.size_bytes - head * (len(group.deletes) - 1)
        for target in group.targets:
            opened_bytes += output_bytes - sum(one.size_bytes for one in _applying(group.deletes, target))
    return DeleteCosts(listed, opened, opened_bytes)


def _why(action: RewritePositionDeletes, prediction: RewritePositionDeletesPrediction, groups: int) -> Reason:
    figures = action.figures
    text = (
        f"{wording.count(figures.input_files, 'position delete file')} would become {figures.groups:,}, so that a scan "
        f"of the table opens {prediction.after.opened:,} instead of {prediction.before.opened:,}"
    )
    if groups > figures.groups:
        text += f"; {wording.count(groups - figures.groups, 'more group is', 'more groups are')} for the next plan"
    return Reason("position-deletes", text, {"files": figures.input_files, "groups": groups})
