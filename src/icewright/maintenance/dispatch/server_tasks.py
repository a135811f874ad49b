"""What the server carries out itself: actions that read and write no rows (decision 0027).

They go the way of all tasks, with a lease, an attempt, a report and a verification. Only the hands are other ones, so
that a server that dies in the middle leaves what an optimizer would leave: a lease that runs out, and a table that
tells whether the action took effect.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol

import structlog

from icewright.core.clock import Clock
from icewright.core.errors import (
    Conflict,
    IcewrightError,
    LeaseLost,
    NotFound,
    OutcomeUnknown,
    StoreUnavailable,
    Unavailable,
)
from icewright.core.fault_points import Fault, fault
from icewright.maintenance.dispatch.dispatcher import Dispatcher
from icewright.model.actions.actions import ActionKind
from icewright.model.work.jobs import (
    PROTOCOL_VERSION,
    Cancelled,
    CommitUnknown,
    Conflicted,
    Failed,
    Heartbeat,
    Result,
    TaskReport,
)
from icewright.model.work.tasks import COMMITTING, Progress, Task
from icewright.ports.telemetry import watched
from icewright.work.groups.service import SERVER

_log = structlog.get_logger("icewright.housekeeper")

BEATS_A_LEASE: Final = 3
"""As optimizers do."""
LEASES_MAX: Final = 20
"""From one step to the next, at 30 s each ten minutes: a step takes seconds, and a catalog a minute or two at worst."""
CARRIED_OUT: Final = "carried out"
"""The phase of an attempt of the server's own before its commit."""
COMMITS: Final = Progress(COMMITTING, 1, 1)


class MayGoOn(Protocol):
    """The leave to take the next step that changes something."""

    def __call__(self, progress: Progress = COMMITS) -> None:
        """Tell how far it is, and ask whether to go on. What it raises passes through."""
        ...


class Carrier(Protocol):
    """Carries out the actions of one kind, on the tables of any catalog."""

    def carry_out(self, task: Task, may_commit: MayGoOn) -> Result:
        """Do what the task's action says: all of it or nothing, or in steps, so that the next attempt goes on.

        ``may_commit`` is called right before the commit, or before each step; what it raises passes through, and
        nothing is committed then. What else is raised says that nothing was committed, but for
        :class:`~icewright.core.errors.OutcomeUnknown`.
        """
        ...


class ServerTasks:
    """Takes the server's own tasks of one group, one after the other, and sees each to its report."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        carriers: Mapping[ActionKind, Carrier],
        clock: Clock,
        group: str = SERVER,
        *,
        alive: Callable[[], None] = lambda: None,
    ) -> None:
        """``alive`` is told with each task, and with each step of one that asks whether to go on."""
        self._dispatcher, self._carriers, self._clock, self._group = dispatcher, dict(carriers), clock, group
        self._alive = alive

    def work(self, most: int, catalogs: Callable[[], frozenset[str]]) -> Iterator[Task]:
        """Carry out what waits, at most so many tasks of these ``catalogs``; each as its report left it."""
        for _ in range(most):
            task = self._dispatcher.claim_own(self._group, catalogs()) if self._carriers else None
            if task is None:
                return
            fault(Fault.HOUSEKEEPING_CLAIMED)
            self._alive()
            yield self._attempt(task)

    def _attempt(self, task: Task) -> Task:
        if task.lease is None:
            raise TypeError(f"task {task.task_id} was claimed without a lease")
        token, started_at, cpu_s = task.lease.fencing_token, self._clock.now(), time.thread_time()

        with (
            watched("attempt", task),
            self._beating(task, token) as may_commit,
        ):
            result = self._result(task, may_commit)
        fault(Fault.HOUSEKEEPING_DONE)
        return self._dispatcher.report(
            TaskReport(
                protocol_version=PROTOCOL_VERSION,
                task_id=task.task_id,
                attempt=task.attempt,
                fencing_token=token,
                result=result,
                receipts=(),
                groups=(),
                wall_ms=max(0, self._clock.now() - started_at),
                cpu_ms=round(1000 * (time.thread_time() - cpu_s)),
            )
        )

    @contextmanager
    def _beating(self, task: Task, token: int) -> Iterator[MayGoOn]:
        """Keep the lease while the task is carried out: catalogs may take longer than it for a lock, or an answer.

        Without it an attempt would be given up while its commit is still on its way. What hangs in one step for longer
        than :data:`LEASES_MAX` leases is given up all the same. Gives the leave for each step.
        """
        ended = threading.Event()
        now = _Step(Progress(CARRIED_OUT, 0, 1))

        def may_commit(progress: Progress = COMMITS) -> None:
            self._alive()
            reply = self._dispatcher.heartbeat(task.task_id, Heartbeat(token, progress))
            now.progress, now.beats = progress, 0
            if reply.cancel:
                raise _Stopped("cancelled before the commit" if progress == COMMITS else "cancelled on the way")

        def beat() -> None:
            while now.beats < BEATS_A_LEASE * LEASES_MAX:
                if ended.wait(self._dispatcher.lease_ms / 1000 / BEATS_A_LEASE):
                    return
                now.beats += 1
                try:
                    self._dispatcher.heartbeat(task.task_id, Heartbeat(token, now.progress))
                except LeaseLost:
                    return  # the attempt finds out at its commit, or by its report
                except IcewrightError as error:
                    _log.warning("lease not kept", task=task.task_id, detail=error.message)

        beating = threading.Thread(target=beat, name="lease", daemon=True)
        beating.start()
        try:
            yield may_commit
        finally:
            ended.set()
            beating.join()

    def _result(self, task: Task, may_commit: MayGoOn) -> Result:
        """How the attempt ended. What is no error of icewright's own passes through: its lease tells of it."""
        carrier = self._carriers.get(ActionKind(task.action.kind))
        if carrier is None:
            return Failed("not-allowed", f"nothing here carries out {task.action.kind}", retryable=False)
        try:
            return carrier.carry_out(task, may_commit)
        except _Stopped as error:
            return Cancelled(error.message)
        except (LeaseLost, StoreUnavailable):
            raise  # the task is not ours any more, or nobody can be told
        except (Conflict, NotFound) as error:
            return Conflicted(error.message)
        except OutcomeUnknown as error:
            return CommitUnknown(error.message)
        except IcewrightError as error:
            return Failed(error.code, error.message, retryable=isinstance(error, Unavailable))


@dataclass(slots=True)
class _Step:
    """How far an attempt is, and how often its lease was kept since it said so."""

    progress: Progress
    beats: int = 0


class _Stopped(IcewrightError):
    """Somebody wants the attempt to stop before its commit."""

    code = "cancelled"
