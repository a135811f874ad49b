"""Planning work on delete files: everything live is read from the manifests of one snapshot, and nothing else decides.

What dangles is told by all data files of all specs. So what is read is counted, and compared with the inventory: a file
too few would make deletes look as if nobody needed them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from icewright.actions.rewrite_delete_files.check_dangling import dangling_violations
from icewright.actions.rewrite_delete_files.check_position_deletes import position_deletes_violations
from icewright.actions.rewrite_delete_files.dangling_deletes import plan_dangling
from icewright.actions.rewrite_delete_files.position_deletes import plan_position_deletes
from icewright.core.clock import Clock, Ids
from icewright.core.errors import Unreadable
from icewright.model.actions.rewrite_delete_files import (
    RemoveDanglingDeletes,
    RemoveDanglingDeletesPrediction,
    RemoveDanglingDeletesRequest,
    RewritePositionDeletes,
    RewritePositionDeletesPrediction,
    RewritePositionDeletesRequest,
)
from icewright.model.iceberg.files import DataFile, DeleteFile, Partition
from icewright.model.iceberg.tables import TableMetadata
from icewright.model.plans.observation import Observation
from icewright.model.plans.plans import Plan
from icewright.model.policy.policy import Mode, Policy
from icewright.observation.access import assumed
from icewright.observation.observer import Observer
from icewright.plans.standalone_plan import build_standalone_plan

_File = TypeVar("_File", DataFile, DeleteFile)


@dataclass(frozen=True, slots=True)
class Checked:
    """A plan, and what its checker finds wrong with it."""

    plan: Plan
    violations: tuple[tuple[str, str], ...]


class DeletePlanner:
    """Plans work on delete files, for a person who asks for it."""

    def __init__(self, observer: Observer, clock: Clock, ids: Ids, policy: Callable[[TableMetadata], Policy]) -> None:
        self._observer, self._clock, self._ids, self._policy = observer, clock, ids, policy

    def plan_asked(
        self, observation: Observation, asked: RemoveDanglingDeletesRequest | RewritePositionDeletesRequest
    ) -> Checked:
        """What should be done to a table's delete files.

        Raises :class:`Unreadable` where not all of its files were read.
        """
        policy = self._policy(observation.metadata)
        if policy.mode is Mode.OBSERVE:
            observation = assumed(observation)
        decide = plan_dangling if isinstance(asked, RemoveDanglingDeletesRequest) else plan_position_deletes
        decision = decide(
            observation, policy, tuple(self._delete_files(observation)), lambda: self._data_files(observation)
        )
        plan = build_standalone_plan(
            self._ids.new("plan"), observation.metadata, policy, decision, self._clock.now(), asked=True
        )
        deletes, files = self._delete_files(observation), self._data_files(observation)
        match decision.action, decision.prediction:
            case RemoveDanglingDeletes() as action, RemoveDanglingDeletesPrediction() as said:
                wrong = dangling_violations(action, said, observation, policy, deletes, files)
            case RewritePositionDeletes() as action, RewritePositionDeletesPrediction() as said:
                wrong = position_deletes_violations(action, said, observation, policy, deletes, files)
            case _:
                return Checked(plan, ())
        return Checked(plan, tuple(wrong))

    def _data_files(self, observation: Observation) -> Iterator[DataFile]:
        """All live data files, manifest by manifest."""
        metadata, snapshot = observation.metadata, observation.metadata.current_snapshot
        if snapshot is not None:
            said = sum(its.counts.data_files for its in observation.inventory.partitions)
            catalog = self._observer.catalog(metadata.name.catalog)
            files = catalog.data_files(metadata, snapshot, observation.inventory.manifests, _partitions(observation))
            yield from _counted(files, said, "data files")

    def _delete_files(self, observation: Observation) -> Iterator[DeleteFile]:
        """All live delete files, manifest by manifest."""
        metadata, snapshot = observation.metadata, observation.metadata.current_snapshot
        if snapshot is not None:
            said = sum(its.counts.delete_files for its in observation.inventory.partitions)
            catalog = self._observer.catalog(metadata.name.catalog)
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
