"""A batch: attempts at small tasks that have their groups carried out in one Spark job, and share nothing else.

Each attempt keeps its thread, lease, proof, commit and end. An attempt hands its groups in and waits; the job begins
when nobody is awaited any more, and takes along what is there when the first has waited long enough. An error of
Spark's own belongs to nobody: every attempt then runs its groups once more, alone and one after the other, so that
what brought the job down brings down only its own attempt (decision 0019).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol

import structlog

from icewright.core.errors import LeaseLost
from icewright_spark.actions.groups import Job, Outcome, apart
from icewright_spark.actions.phase import Phase
from icewright_spark.optimizer.attempt_log import AttemptLog, logging_for, logs_here
from icewright_spark.optimizer.engine_failure import engine_failure

_log = structlog.get_logger("icewright.optimizer")

WAIT_S: Final = 5.0
"""How long the groups of one attempt wait for those of others."""
SHARED_S_MAX: Final = 600.0
"""How long an attempt waits for a shared job. A storage that hangs hangs for one table; the others go on alone."""
TURN_S_MAX: Final = 60.0
"""How long an attempt that is to go alone waits for the one before it, which may be the one that hangs."""


class SparkJobs(Protocol):
    """What a batch needs of Spark."""

    def together(self, name: str, jobs: Sequence[Sequence[Job]], phases: Sequence[Phase]) -> list[list[Outcome]]:
        """Carry out the groups of several attempts in one job of this name, in the thread that calls."""

    def alone(self, jobs: Sequence[Job], phase: Phase) -> list[Outcome]:
        """Carry out the groups of the attempt whose thread calls."""

    def cancel(self, name: str) -> None:
        """End the job of that name, or see to it that it never begins."""


class BatchMember:
    """An attempt's place in a batch, and its way to have its groups carried out."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self.gone = False
        self.job: _SharedJob | None = None

    def carry(self, jobs: Sequence[Job], phase: Phase) -> list[Outcome]:
        """See :class:`~icewright_spark.actions.groups.Carrier`; once per member.

        Raises :class:`LeaseLost` when the member was left meanwhile.
        """
        return self._batch.carry(self, jobs, phase)

    def leave(self) -> None:
        """Wait for nothing any more, and be awaited by nobody. Safe from any thread, and more than once."""
        self._batch.leave(self)


@dataclass(frozen=True, eq=False, slots=True)
class _Handed:
    member: BatchMember
    jobs: Sequence[Job]
    phase: Phase
    logs: Sequence[AttemptLog]


@dataclass(eq=False, slots=True)
class _SharedJob:
    """``outcomes`` are by place in ``handed``, None where Spark failed."""

    name: str
    handed: tuple[_Handed, ...]
    over: bool = False
    outcomes: list[list[Outcome]] | None = None


class Batch:
    """The attempts that may share a Spark job. ``name`` is used for one batch only."""

    def __init__(
        self,
        spark: SparkJobs,
        name: str,
        *,
        wait_s: float = WAIT_S,
        shared_s_max: float = SHARED_S_MAX,
        turn_s_max: float = TURN_S_MAX,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spark, self._name, self._clock = spark, name, clock
        self._wait_s, self._shared_s_max, self._turn_s_max = wait_s, shared_s_max, turn_s_max
        self._changed = threading.Condition()
        self._open = True
        self._awaited: set[BatchMember] = set()
        self._waiting: list[_Handed] = []
        self._first_s = 0.0
        self._jobs = 0
        self._one_is_alone = False

    def member(self) -> BatchMember:
        """A place for one more attempt, which is awaited from now on until it hands in or leaves."""
        with self._changed:
            member = BatchMember(self)
            self._awaited.add(member)
            return member

    def close(self) -> None:
        """Nobody else will come."""
        with self._changed:
            self._open = False
            self._changed.notify_all()

    def carry(self, member: BatchMember, jobs: Sequence[Job], phase: Phase) -> list[Outcome]:
        """See :meth:`BatchMember.carry`."""
        if not jobs:
            self.leave(member)
            return []
        mine = _Handed(member, jobs, phase, logs_here())
        job = self._hand_in(mine)
        if len(job.handed) == 1:
            return self._spark.alone(jobs, phase)
        outcomes = self._wait_for(job, mine)
        if outcomes is not None:
            return outcomes
        with self._being_alone(member):
            return self._spark.alone(apart(jobs), phase)

    def leave(self, member: BatchMember) -> None:
        """See :meth:`BatchMember.leave`. A job that nobody wants any more is ended."""
        with self._changed:
            member.gone = True
            self._awaited.discard(member)
            job = member.job
            shared = job is not None and len(job.handed) > 1 and not job.over
            unwanted = shared and job is not None and all(handed.member.gone for handed in job.handed)
            self._changed.notify_all()
        if unwanted and job is not None:
            self._spark.cancel(job.name)

    def _hand_in(self, mine: _Handed) -> _SharedJob:
        """Wait for the others; the job that the groups are in, which this thread began if it was the one to notice."""
        begun: _SharedJob | None = None
        with self._changed:
            self._awaited.discard(mine.member)
            if not self._waiting:
                self._first_s = self._clock()
            self._waiting.append(mine)
            self._changed.notify_all()
            while mine.member.job is None:
                if mine.member.gone:
                    self._waiting.remove(mine)
                    raise _left()
                left_s = self._first_s + self._wait_s - self._clock()
                if left_s <= 0 or not (self._open or self._awaited):
                    begun = self._gather()
                else:
                    self._changed.wait(left_s)
            job = mine.member.job
        if begun is not None and len(begun.handed) > 1:
            self._begin(begun)
        return job

    def _gather(self) -> _SharedJob:
        """A job of all that was handed in."""
        self._jobs += 1
        job = _SharedJob(f"{self._name}/{self._jobs}", tuple(self._waiting))
        self._waiting.clear()
        for handed in job.handed:
            handed.member.job = job
        self._changed.notify_all()
        return job

    def _begin(self, job: _SharedJob) -> None:
        """Run it in a thread of its own: whoever began it may have to leave before it ends."""
        thread = threading.Thread(target=self._run_logged, args=(job,), name=job.name)
        try:
            thread.start()
        except Exception:
            self._end(job, None)
            raise

    def _run_logged(self, job: _SharedJob) -> None:
        with logging_for([log for handed in job.handed for log in handed.logs]):
            self._run(job)

    def _run(self, job: _SharedJob) -> None:
        outcomes = None
        try:
            groups = [handed.jobs for handed in job.handed]
            _log.info("tasks share a job", tasks=len(groups), groups=sum(map(len, groups)))
            outcomes = self._spark.together(job.name, groups, [handed.phase for handed in job.handed])
        except Exception as error:  # noqa: BLE001 - whatever Spark throws, each attempt meets its own share of it alone
            _log.warning("a shared job failed, its tasks continue alone", code=engine_failure(error).code)
        finally:
            self._end(job, outcomes)

    def _end(self, job: _SharedJob, outcomes: list[list[Outcome]] | None) -> bool:
        """Note what became of a job; False where that was known before."""
        with self._changed:
            if job.over:
                return False
            job.over, job.outcomes = True, outcomes
            self._changed.notify_all()
            return True

    def _wait_for(self, job: _SharedJob, mine: _Handed) -> list[Outcome] | None:
        """What became of the groups, None where Spark failed or takes too long."""
        with self._changed:
            in_time = self._changed.wait_for(lambda: job.over or mine.member.gone, self._shared_s_max)
            if mine.member.gone:
                raise _left()
        if not in_time and self._end(job, None):
            _log.warning("a shared job takes too long, its tasks continue alone")
            self._spark.cancel(job.name)
        return None if job.outcomes is None else job.outcomes[job.handed.index(mine)]

    @contextmanager
    def _being_alone(self, member: BatchMember) -> Iterator[None]:
        """One attempt at a time: the neighbours of what brought a job down are not to meet it again."""
        with self._changed:
            its_turn = self._changed.wait_for(lambda: member.gone or not self._one_is_alone, self._turn_s_max)
            if member.gone:
                raise _left()
            self._one_is_alone = True
        try:
            yield
        finally:
            if its_turn:
                with self._changed:
                    self._one_is_alone = False
                    self._changed.notify_all()


def _left() -> LeaseLost:
    return LeaseLost("the attempt was ended while its groups were in a batch")
