"""The kinds of actions that Spark carries out, with the job of each: one value a kind.

A kind of action that is added, and that the server does not carry out itself, has a line in :data:`ACTION_JOBS`;
``tests/spark_side/optimizer/test_action_jobs.py`` tells of one without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from pyspark.sql import SparkSession

from icewright.core.errors import NotAllowed
from icewright.model.actions.actions import Action, RewriteDataFiles, UndoExpireData
from icewright.model.actions.analyze_queries import AnalyzeQueries
from icewright.model.actions.compute_statistics import ComputeStatistics
from icewright.model.actions.expire_data import ExpireData
from icewright.model.actions.rewrite_delete_files import RemoveDanglingDeletes, RewritePositionDeletes
from icewright.model.actions.rewrite_manifests import RewriteManifests
from icewright.model.work.jobs import TaskSpec
from icewright_spark.actions.analyze_queries import analyze_queries
from icewright_spark.actions.compute_statistics import compute_statistics
from icewright_spark.actions.done import Done
from icewright_spark.actions.expire_data import expire_data
from icewright_spark.actions.phase import Phase
from icewright_spark.actions.remove_dangling_deletes import remove_dangling_deletes
from icewright_spark.actions.rewrite_data_files import rewrite_data_files
from icewright_spark.actions.rewrite_manifests import rewrite_manifests
from icewright_spark.actions.rewrite_position_deletes import rewrite_position_deletes
from icewright_spark.actions.undo_expire_data import undo_expire_data
from icewright_spark.iceberg.java_api import SparkTable
from icewright_spark.optimizer.batch import BatchMember
from icewright_spark.optimizer.lease import LeaseRenewer

A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Given:
    """What a job is given. ``member`` is the attempt's place in a batch, None where it shares no Spark job.

    ``hash_key`` is that of the digests in queries, None where this optimizer has none.
    """

    spark: SparkSession
    table: SparkTable
    spec: TaskSpec
    phase: Phase
    lease: LeaseRenewer
    member: BatchMember | None
    hash_key: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ActionJob(Generic[A]):
    """How Spark carries out one kind of action; ``groups`` is how many parts its progress is told in."""

    action: type[A]
    run: Callable[[Given, A], Done]
    groups: Callable[[A], int] = lambda _action: 1


_REWRITE_DATA_FILES: Final = ActionJob(
    RewriteDataFiles,
    lambda given, _action: rewrite_data_files(
        given.spark, given.table, given.spec, given.phase, given.lease.may_commit, carrier=given.member
    ),
    lambda action: len(action.groups),
)
_REWRITE_MANIFESTS: Final = ActionJob(
    RewriteManifests,
    lambda given, action: rewrite_manifests(
        given.table,
        given.spec,
        action,
        given.phase,
        given.lease.may_commit,
        lambda: given.lease.cancelled or bool(given.lease.lost),
    ),
)
_REMOVE_DANGLING_DELETES: Final = ActionJob(
    RemoveDanglingDeletes,
    lambda given, action: remove_dangling_deletes(given.table, given.spec, action, given.phase, given.lease.may_commit),
)
_REWRITE_POSITION_DELETES: Final = ActionJob(
    RewritePositionDeletes,
    lambda given, action: rewrite_position_deletes(
        given.spark, given.table, given.spec, action, given.phase, given.lease.may_commit
    ),
)
_COMPUTE_STATISTICS: Final = ActionJob(
    ComputeStatistics,
    lambda given, action: compute_statistics(
        given.spark, given.table, given.spec, action, given.phase, given.lease.may_commit
    ),
)
_EXPIRE_DATA: Final = ActionJob(
    ExpireData,
    lambda given, action: expire_data(given.table, given.spec, action, given.phase, given.lease.may_commit),
)
_UNDO_EXPIRE_DATA: Final = ActionJob(
    UndoExpireData,
    lambda given, action: undo_expire_data(
        given.spark, given.table, given.spec, action, given.phase, given.lease.may_commit
    ),
    lambda action: len(action.groups),
)
_ANALYZE_QUERIES: Final = ActionJob(
    AnalyzeQueries,
    lambda given, action: analyze_queries(given.spark, given.table, given.spec, action, given.phase, given.hash_key),
)

ACTION_JOBS: Final[tuple[ActionJob[Any], ...]] = (
    _REWRITE_DATA_FILES,
    _REWRITE_MANIFESTS,
    _REMOVE_DANGLING_DELETES,
    _REWRITE_POSITION_DELETES,
    _COMPUTE_STATISTICS,
    _EXPIRE_DATA,
    _UNDO_EXPIRE_DATA,
    _ANALYZE_QUERIES,
)
"""Each kind once that Spark carries out."""

_BY_KIND: Final[Mapping[str, ActionJob[Any]]] = {job.action.kind: job for job in ACTION_JOBS}


def groups_in(action: Action) -> int:
    """In how many parts the progress of an action is told."""
    job = _BY_KIND.get(action.kind)
    return 1 if job is None else job.groups(action)


def run_job(given: Given) -> Done:
    """Carry out the action. Raises ``NotAllowed`` for what the server carries out itself."""
    action = given.spec.action
    job = _BY_KIND.get(action.kind)
    if job is None:
        raise NotAllowed(f"{action.kind} is the server's own work, which writes no rows")
    return job.run(given, action)
