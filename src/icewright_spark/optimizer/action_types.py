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
from icewright.model.work.jobs import GroupFigures, GroupLeft, Receipt, Result, TaskSpec
from icewright_spark.actions.analyze_queries import analyze_queries
from icewright_spark.actions.compute_statistics import compute_statistics
from icewright_spark.actions.driver_job import DriverJob
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
class Done:
    """How a job ended, what it did and left, and what it found where it only reads."""

    result: Result
    receipts: tuple[Receipt, ...] = ()
    figures: tuple[GroupFigures, ...] = ()
    left: tuple[GroupLeft, ...] = ()
    driver_cpu_ms: int = 0
    """What of the CPU of the attempt's own thread is in the figures already."""
    answer: str = ""


def _one(_action: Any) -> int:
    return 1


@dataclass(frozen=True, slots=True)
class ActionJob(Generic[A]):
    """How Spark carries out one kind of action; ``groups`` is how many parts its progress is told in."""

    action: type[A]
    run: Callable[[Given, A], Done]
    groups: Callable[[A], int] = _one


def _by_driver(job: DriverJob) -> Done:
    return Done(job.result, (job.receipt,), (job.figures,), driver_cpu_ms=job.driver_cpu_ms)


def _rewrite_data_files(given: Given, _action: RewriteDataFiles) -> Done:
    done = rewrite_data_files(
        given.spark, given.table, given.spec, given.phase, given.lease.may_commit, carrier=given.member
    )
    return Done(done.result, done.receipts, done.figures, done.left)


def _rewrite_manifests(given: Given, action: RewriteManifests) -> Done:
    lease = given.lease
    return _by_driver(
        rewrite_manifests(
            given.table,
            given.spec,
            action,
            given.phase,
            lease.may_commit,
            lambda: lease.cancelled or bool(lease.lost),
        )
    )


def _remove_dangling_deletes(given: Given, action: RemoveDanglingDeletes) -> Done:
    return Done(remove_dangling_deletes(given.table, given.spec, action, given.phase, given.lease.may_commit))


def _rewrite_position_deletes(given: Given, action: RewritePositionDeletes) -> Done:
    written = rewrite_position_deletes(
        given.spark, given.table, given.spec, action, given.phase, given.lease.may_commit
    )
    return Done(written.result, written.receipts, written.figures)


def _expire_data(given: Given, action: ExpireData) -> Done:
    return _by_driver(expire_data(given.table, given.spec, action, given.phase, given.lease.may_commit))


def _undo_expire_data(given: Given, action: UndoExpireData) -> Done:
    back = undo_expire_data(given.spark, given.table, given.spec, action, given.phase, given.lease.may_commit)
    return Done(back.result, back.receipts, back.figures)


def _analyze_queries(given: Given, action: AnalyzeQueries) -> Done:
    found = analyze_queries(given.spark, given.table, given.spec, action, given.phase, given.hash_key)
    return Done(found.result, (), (found.figures,), driver_cpu_ms=found.driver_cpu_ms, answer=found.answer)


def _compute_statistics(given: Given, action: ComputeStatistics) -> Done:
    return _by_driver(
        compute_statistics(given.spark, given.table, given.spec, action, given.phase, given.lease.may_commit)
    )


_REWRITE_DATA_FILES: Final = ActionJob(RewriteDataFiles, _rewrite_data_files, lambda action: len(action.groups))
_REWRITE_MANIFESTS: Final = ActionJob(RewriteManifests, _rewrite_manifests)
_REMOVE_DANGLING_DELETES: Final = ActionJob(RemoveDanglingDeletes, _remove_dangling_deletes)
_REWRITE_POSITION_DELETES: Final = ActionJob(RewritePositionDeletes, _rewrite_position_deletes)
_COMPUTE_STATISTICS: Final = ActionJob(ComputeStatistics, _compute_statistics)
_EXPIRE_DATA: Final = ActionJob(ExpireData, _expire_data)
_ANALYZE_QUERIES: Final = ActionJob(AnalyzeQueries, _analyze_queries)
_UNDO_EXPIRE_DATA: Final = ActionJob(UndoExpireData, _undo_expire_data, lambda action: len(action.groups))

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
