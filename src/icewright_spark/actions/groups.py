"""Groups to be merged or stitched, as elements of one Spark job: those of one attempt, or of several that share it.

Groups of different tables meet in one Python worker, one after the other. Each carries the settings of its own storage,
and a refusal is cleaned of the secrets of its own group before it leaves the worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final, Protocol, TypeAlias, TypeVar

from pyspark import AccumulatorParam, SparkContext, TaskContext

from icewright.core.errors import IcewrightError, NotSorted, NotStitchable, StorageUnavailable, Unavailable
from icewright.model.work.jobs import GroupLeft
from icewright_spark.actions.phase import Phase
from icewright_spark.actions.spark_tasks import spark_tasks
from icewright_spark.executors.merge.compact_deletes import CompactJob
from icewright_spark.executors.merge.merge import MergeJob, MergeResult, merge_group
from icewright_spark.executors.stitch.stitch import StitchJob, stitch_group
from icewright_spark.parquet.errors import (
    DiskFull,
    FileChanged,
    FileUnreadable,
    ManyPartitions,
    NoRowsLeft,
    OutputExists,
    OutputUnwritable,
    PartitionValue,
    UnsupportedColumn,
    UnsupportedFile,
)
from icewright_spark.session.worker import settle_in

Job: TypeAlias = MergeJob | StitchJob
_Job = TypeVar("_Job", bound=MergeJob | StitchJob | CompactJob)
_Done = TypeVar("_Done")

OF_ONE_GROUP: Final = (
    DiskFull,
    FileChanged,
    FileUnreadable,
    ManyPartitions,
    NoRowsLeft,
    NotSorted,
    NotStitchable,
    OutputExists,
    OutputUnwritable,
    PartitionValue,
    StorageUnavailable,
    UnsupportedColumn,
    UnsupportedFile,
)
"""Errors that are about the files of one group: it is left out, and the others go on. All other errors end the attempt,
a failed proof first of all: then our own code or the storage cannot be trusted, with any group."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A typed error on its way from a Python worker to the driver, where Spark would only keep its text."""

    group_id: int
    error: type[IcewrightError]
    message: str
    hint: str


Outcome: TypeAlias = MergeResult | Refusal


class Carrier(Protocol):
    """Who has an attempt's groups merged and stitched."""

    def carry(self, jobs: Sequence[Job], phase: Phase) -> list[Outcome]:
        """What became of each group, in their order. What is no typed error arrives as Spark's own."""


class SingleAttemptCarrier:
    """A Spark job for the groups of one attempt, in the job group of its thread."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context

    def carry(self, jobs: Sequence[Job], phase: Phase) -> list[Outcome]:
        """See :class:`Carrier`."""
        return run_jobs(self._context, [jobs], [phase])[0] if jobs else []


class _Counts(AccumulatorParam[dict[int, int]]):
    """Groups that are done, by the place of their attempt."""

    def zero(self, value: dict[int, int]) -> dict[int, int]:  # noqa: ARG002 - Spark's signature
        return {}

    def addInPlace(self, value1: dict[int, int], value2: dict[int, int]) -> dict[int, int]:  # noqa: N802 - Spark's name
        for place, count in value2.items():
            value1[place] = value1.get(place, 0) + count
        return value1


def run_jobs(context: SparkContext, jobs: Sequence[Sequence[Job]], phases: Sequence[Phase]) -> list[list[Outcome]]:
    """Merge or stitch all groups of these attempts in one Spark job, small ones sharing Spark tasks.

    What became of them comes by attempt, in the order of its ``jobs``. Each phase counts its own groups. Whatever goes
    wrong in a worker and is no typed error arrives as Spark's own error, and is of all of them.
    """
    done = context.accumulator({}, _Counts())
    for place, phase in enumerate(phases):
        phase.merged = lambda place=place: int(done.value.get(place, 0))  # type: ignore[misc]  # the loop's value, kept

    def run(task: Iterable[Sequence[tuple[int, Job]]]) -> Iterable[tuple[int, Outcome]]:
        settle_in()
        for place, job in chain.from_iterable(task):
            yield place, outcome_of(job, _rewritten)
            done.add({place: 1})

    elements = [(place, job) for place, its in enumerate(jobs) for job in its]
    tasks = spark_tasks(elements, lambda element: element[1].group.size_bytes, context.defaultParallelism)
    outcomes: list[list[Outcome]] = [[] for _ in jobs]
    for place, outcome in context.parallelize(tasks, len(tasks)).mapPartitions(run).collect():
        outcomes[place].append(outcome)
    return outcomes


def _rewritten(job: Job) -> MergeResult:
    return stitch_group(job) if isinstance(job, StitchJob) else merge_group(job)


def outcome_of(job: _Job, carry_out: Callable[[_Job], _Done]) -> _Done | Refusal:
    """What comes of a job in a worker, an error of the tree cleaned of the secrets of its storage."""
    try:
        return carry_out(_own_output(job))
    except IcewrightError as error:
        return Refusal(job.group.group_id, type(error), job.storage.without_secrets(error.message), error.hint)


def results_and_failures(outcomes: Iterable[Outcome]) -> tuple[list[MergeResult], list[GroupLeft]]:
    """The groups of one attempt that are done, and those that failed by themselves.

    Raises the first typed error that is not of one group alone.
    """
    results: list[MergeResult] = []
    failed: list[GroupLeft] = []
    for outcome in outcomes:
        if not isinstance(outcome, Refusal):
            results.append(outcome)
        elif issubclass(outcome.error, OF_ONE_GROUP):
            failed.append(failure(outcome.group_id, outcome.error(outcome.message)))
        else:
            raise outcome.error(outcome.message, hint=outcome.hint)
    return results, failed


def failure(group_id: int, error: IcewrightError) -> GroupLeft:
    """A group that failed by itself."""
    return GroupLeft(group_id, error.code, error.message, retryable=isinstance(error, Unavailable))


def apart(jobs: Sequence[Job]) -> list[Job]:
    """The jobs with paths of their own, for a second Spark job: the first may have written, and still be writing."""
    return [_with_suffix(job, "-alone") for job in jobs]


def _own_output(job: _Job) -> _Job:
    """The job with a path of its own when Spark runs it again, as it does after losing an executor.

    The first run may not be dead, only out of sight, and still be writing.
    """
    running = TaskContext.get()
    if running is None or running.attemptNumber() == 0:
        return job
    return _with_suffix(job, f"-try{running.taskAttemptId()}")


def _with_suffix(job: _Job, suffix: str) -> _Job:
    end = f"{suffix}.parquet"
    if isinstance(job, MergeJob):
        return replace(job, output_paths=tuple(path.removesuffix(".parquet") + end for path in job.output_paths))
    return replace(job, output_path=job.output_path.removesuffix(".parquet") + end)
