"""Planning work on delete files: everything live is read from the manifests of one snapshot, and nothing else decides.

What dangles is told by all data files of all specs. So what is read is counted, and compared with the inventory: a file
too few would make deletes look as if nobody needed them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from icewright.actions.rewrite_delete_files.check_dangling import dangling_violations
from icewright.actions.rewrite_delete_files.check_position_deletes import position_deletes_violations
from icewright.actions.rewrite_delete_files.dangling_deletes import plan_dangling
from icewright.actions.rewrite_delete_files.position_deletes import plan_position_deletes
from icewright.core.errors import Unreadable
from icewright.model.actions.expire_snapshots import Hold
from icewright.model.actions.rewrite_delete_files import (
    RemoveDanglingDeletes,
    RemoveDanglingDeletesPrediction,
    RemoveDanglingDeletesRequest,
    RewritePositionDeletes,
    RewritePositionDeletesPrediction,
    RewritePositionDeletesRequest,
)
from icewright.model.iceberg.files import DataFile, DeleteFile, Partition
from icewright.model.plans.observation import Observation
from icewright.model.policy.policy import Mode
from icewright.observation.access import assumed
from icewright.plans.action_types import Planned, Planning
from icewright.plans.check_table import Wrong
from icewright.plans.standalone_plan import keep_decided

_File = TypeVar("_File", DataFile, DeleteFile)


def plan_asked(
    planner: Planning,
    observation: Observation,
    asked: RemoveDanglingDeletesRequest | RewritePositionDeletesRequest,
    _holds: Sequence[Hold],
) -> Planned:
    """What should be done to a table's delete files, for a person who asks for it.

    Raises ``PlanRejected``, and :class:`Unreadable` where not all of its files were read.
    """
    metadata, policy = observation.metadata, planner.policy(observation.metadata)
    seen = assumed(observation) if policy.mode is Mode.OBSERVE else observation
    decide = plan_dangling if isinstance(asked, RemoveDanglingDeletesRequest) else plan_position_deletes
    decision = decide(seen, policy, tuple(_delete_files(planner, seen)), lambda: _data_files(planner, seen))
    deletes, files = _delete_files(planner, seen), _data_files(planner, seen)
    wrong: Iterable[Wrong] = ()
    match decision.action, decision.prediction:
        case RemoveDanglingDeletes() as action, RemoveDanglingDeletesPrediction() as said:
            wrong = dangling_violations(action, said, seen, policy, deletes, files)
        case RewritePositionDeletes() as action, RewritePositionDeletesPrediction() as said:
            wrong = position_deletes_violations(action, said, seen, policy, deletes, files)
    return Planned(keep_decided(planner, metadata, policy, decision, wrong, asked=True), observation, policy)


def _data_files(planner: Planning, observation: Observation) -> Iterator[DataFile]:
    """All live data files, manifest by manifest."""
    metadata, snapshot = observation.metadata, observation.metadata.current_snapshot
    if snapshot is not None:
        said = sum(its.counts.data_files for its in observation.inventory.partitions)
        catalog = planner.catalog(metadata.name.catalog)
        files = catalog.data_files(metadata, snapshot, observation.inventory.manifests, _partitions(observation))
        yield from _counted(files, said, "data files")


def _delete_files(planner: Planning, observation: Observation) -> Iterator[DeleteFile]:
    """All live delete files, manifest by manifest."""
    metadata, snapshot = observation.metadata, observation.metadata.current_snapshot
    if snapshot is not None:
        said = sum(its.counts.delete_files for its in observation.inventory.partitions)
        catalog = planner.catalog(metadata.name.catalog)
        files = catalog.delete_files(metadata, snapshot, observation.inventory.manifests, _partitions(observation))
        yield from _counted(files, said, "delete files")


def _partitions(observation: Observation) -> frozenset[Partition]:
    return frozenset(its.partition for its in observation.inventory.partitions)


def _counted(files: Iterable[_File], said: int, what: str) -> Iterator[_File]:
    """The files, all of them. Raises :class:`Unreadable` where there are more or fewer than the inventory says."""
    found = 0
    for file in files:
        found += 1
        yield file
    if found != said:
        raise Unreadable(f"{found:,} {what} were read from its manifests, and its inventory has {said:,}")
