"""The loop of the server: inbox, sweep, leases, doubts, verification, discovery, pruning.

Each round takes no input: whatever woke it, it reads what is true from the stores and the catalogs. One table, one
task or one catalog that makes trouble never stops the others; the only broad ``except`` of the services stands here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final, TypeVar

import structlog
from structlog.contextvars import bound_contextvars

from icewright.actions.remove_files.quarantine_scheduler import QuarantineScheduler
from icewright.catalogs.port import Catalog
from icewright.core.clock import Clock
from icewright.core.errors import (
    Conflict,
    IcewrightError,
    NotFound,
    OutcomeUnknown,
    StorageUnavailable,
    StoreUnavailable,
    Unavailable,
    Unreadable,
)
from icewright.core.reasons import lasting
from icewright.core.times import Instant
from icewright.events.inbox import InboxWorker, Seen
from icewright.feed.publisher import FeedPublisher
from icewright.maintenance.dispatch.dispatcher import Dispatcher
from icewright.maintenance.dispatch.server_tasks import ServerTaskRunner
from icewright.maintenance.dispatch.verifier import Verifier
from icewright.maintenance.table_maintainer import Looked, TableMaintainer
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import Snapshot
from icewright.model.plans.plans import Reason
from icewright.model.work.tasks import Task
from icewright.observation.outages import CATALOG_PAUSE_MS, STORAGE_PAUSE_MS, Outages
from icewright.observation.parallel_looks import ParallelLooks
from icewright.observation.sweep import INTERVAL_MIN_MS
from icewright.ownership.registry import Registry
from icewright.ports.store import AT_ONCE, TableStore, TaskStore
from icewright.retention.pruning import Pruner
from icewright.server.cluster.share import ALL_TABLES, Part
from icewright.server.discovery import Discovery
from icewright.server.failed_steps import FailedSteps
from icewright.server.liveness import Doing, Liveness
from icewright.server.task_checks import TaskChecks

_log = structlog.get_logger("icewright.loop")

_Due = TypeVar("_Due")

BATCH_MAX: Final = 200
"""Tables, events or tasks that one step of a round takes at most, so that no step starves the others."""
LOOKING_MS_MAX: Final = 2_000
"""How long a round looks at tables of which nobody said that anything has happened: at those that are due, and at new
ones of each catalog. A look takes some 50 ms, at a large table seconds; whatever is told meanwhile waits for it."""
_HOUSE_PAUSE_S_MIN: Final = 0.05
HOUSEKEEPER_TIMEOUT_S: Final = 10
"""How long the end of the server waits for what it is carrying out itself."""
LOOP: Final = "loop"
ROUND_MS_MAX: Final = 15 * 60_000
"""A round that takes longer hangs: its steps take at most :data:`BATCH_MAX` each, a second or so for a large table."""


class Loop:
    """Rounds of the loop, one at a time; :meth:`run` repeats them until it is stopped."""

    def __init__(
        self,
        catalogs: Mapping[str, Catalog],
        tables: TableStore,
        tasks: TaskStore,
        maintainer: TableMaintainer,
        dispatcher: Dispatcher,
        verifier: Verifier,
        housekeeper: ServerTaskRunner,
        clock: Clock,
        *,
        registry: Registry,
        removals: QuarantineScheduler,
        pulse: Liveness,
        tidings: FeedPublisher,
        pruner: Pruner,
        more_steps: Sequence[Callable[[], None]] = (),
        part: Part = ALL_TABLES,
        parallel_looks: int = 1,
    ) -> None:
        """``more_steps`` are taken at the end of each round that leads; ``part`` is what it looks at.

        It looks at ``parallel_looks`` tables at once.
        """
        self._part, self._more_steps, self._failed_steps = part, tuple(more_steps), FailedSteps()
        self._pruner, self._tidings = pruner, tidings
        self._catalogs, self._tables, self._tasks, self._clock = catalogs, tables, tasks, clock
        self._maintainer, self._dispatcher, self._housekeeper = maintainer, dispatcher, housekeeper
        self._registry, self._removals, self._pulse = registry, removals, pulse
        self._wake, self._stop = threading.Event(), threading.Event()
        self._discovery = Discovery(tables, clock, part, len(catalogs))
        self._outages = Outages(clock)
        self._looks = ParallelLooks(parallel_looks, lambda: pulse.working_for(LOOP))
        self._inbox = InboxWorker(
            tables,
            lambda name, doubtful: self._look(name, doubtful=doubtful),
            lambda: self._outages.away(catalogs),
            part.working,
            self._looks.each,
        )
        self._checks = TaskChecks(
            tasks,
            tables,
            verifier,
            part,
            asking=self._asking,
            answers=lambda catalog: catalog in catalogs and not self._is_paused(catalog),
            look=lambda name, plan_anew: self._look(name, plan_anew=plan_anew),
            page=BATCH_MAX,
        )
        self._round_ended_at: Instant | None = None
        self.unreadable: dict[TableName, Reason] = {}
        """Tables that were never readable, so that there is no record to keep their reason in."""

    def wake(self) -> None:
        """Begin the next round at once."""
        self._wake.set()

    def paused_until(self, catalog: str) -> Instant | None:
        """Until when a catalog is left alone because it did not answer; None when it is not."""
        return self._outages.paused_until(catalog)

    @property
    def round_ended_at(self) -> Instant | None:
        """When the last round ended well; None before the loop turns."""
        return self._round_ended_at

    @property
    def stalled_since(self) -> Instant | None:
        """When the last round ended well, if that is longer ago than :data:`ROUND_MS_MAX`; None when all is well."""
        ended_at = self._round_ended_at
        return ended_at if ended_at is not None and self._clock.now() - ended_at > ROUND_MS_MAX else None

    @property
    def doing(self) -> tuple[Doing, ...]:
        """What the threads beside the loop are at, and which of them hang."""
        return self._pulse.doing

    @property
    def silent_s(self) -> float:
        """For how many seconds the loop has made no progress: begun no step or task, heard nothing of a catalog."""
        return self._pulse.silent_s(LOOP)

    def stop(self) -> None:
        """End :meth:`run` after the present round."""
        self._stop.set()
        self._wake.set()

    def run(self, pause_s: float) -> None:
        """Rounds until stopped, ``pause_s`` apart unless woken.

        Nothing that happens in a round ends the rounds, not even a log that cannot be written. What the server carries
        out itself has threads of its own, one for commits and one for files: a slow commit must keep no lease from
        ending and no table from being seen. One that is still at it after :data:`HOUSEKEEPER_TIMEOUT_S` is left
        behind, as a server that dies leaves it.
        """
        own = (("housekeeper", lambda: (self._keep_house,)), ("removals", self._removal_steps))
        threads = [
            threading.Thread(target=self._keep_on, args=(name, steps, pause_s), name=name, daemon=True)
            for name, steps in own
            if self._part.leads
        ]
        for thread in threads:
            thread.start()
        self._round_ended_at = self._clock.now()
        self._pulse.begin(LOOP)
        while not self._stop.is_set():
            try:
                self.turn()
                self._round_ended_at = self._clock.now()
            except Exception:  # noqa: BLE001 - the service's loop: without it no lease would end and no commit be verified
                with suppress(Exception):  # what failed may be the log itself; stalled_since tells of it then
                    _log.exception("round failed")
            self._wake.wait(pause_s)
            self._wake.clear()
        self._pulse.end()
        for thread in threads:
            thread.join(HOUSEKEEPER_TIMEOUT_S)

    def round(self) -> None:
        """Everything that is due now, once, by the calling thread."""
        if self._part.leads:
            self._take((self._keep_house, *self._removal_steps()))
        self.turn()

    def turn(self) -> None:
        """As :meth:`round`, but for what the server carries out itself."""
        of_one = (self._expire_leases, self._discover, self._pruner.prune, *self._more_steps)
        steps: tuple[Callable[[], object], ...] = (
            self._registry.book,  # reads what was kept once, and not in each of several looks at the same time
            self._work_inbox,
            self._look_at_once,
            self._expire_leases,
            self._checks.settle_doubts,
            self._checks.verify_commits,
            self._discover,
            self._sweep,
            self._try_events_again,
            self._keep_claims,
            self._pruner.prune,
            *self._more_steps,
        )
        self._outages.begin_turn()
        self._failed_steps.begin_turn()
        self._take(step for step in steps if self._part.leads or step not in of_one)

    def _keep_on(self, name: str, steps: Callable[[], Iterable[Callable[[], None]]], pause_s: float) -> None:
        """A thread beside the loop's. What fails in it is logged as that of a step is, and nothing ends it."""
        self._pulse.begin(name)
        while not self._stop.wait(max(pause_s, _HOUSE_PAUSE_S_MIN)):
            with suppress(Exception):  # what failed is the log itself
                for step in steps():
                    self._pulse.begin(name, step.__name__.strip("_"))
                    self._take((step,))
            self._pulse.begin(name)
        self._pulse.end()

    def _removal_steps(self) -> Iterable[Callable[[], None]]:
        return self._removals.steps(self._answering, self._wake.set)

    def _take(self, steps: Iterable[Callable[[], object]]) -> None:
        for step in steps:
            with self._going_on(step.__name__.strip("_")):
                step()

    def _work_inbox(self) -> None:
        if self._inbox.work(BATCH_MAX, self._for_a_while, self._part.tables):
            self._wake.set()

    def _try_events_again(self) -> None:
        self._inbox.try_again(self._part.tables)

    def _keep_claims(self) -> None:
        with self._part.as_server():
            self._registry.keep()

    def _look_at_once(self) -> None:
        due = self._tables.due(AT_ONCE, BATCH_MAX, self._part.tables)
        names = (one.name for one in due if not self._is_paused(one.name.catalog))
        self._looks.each(names, self._if_ours(self._look))

    def _sweep(self) -> None:
        due = self._tables.due(self._clock.now(), BATCH_MAX, self._part.tables)
        with self._going_on("pass_over"), self._part.as_server():  # revisions say that a table is as it was
            due = self._maintainer.pass_over(due, self._answering())
        self._looks.each((one.name for one in self._for_a_while(due)), self._if_ours(self._look_when_due))

    def _if_ours(self, look: Callable[[TableName], object]) -> Callable[[TableName], None]:
        def look_if_ours(name: TableName) -> None:
            with self._part.working(name) as is_ours:
                if is_ours:
                    look(name)

        return look_if_ours

    def _look_when_due(self, name: TableName) -> None:
        if name.catalog not in self._catalogs:
            text = f"catalog {name.catalog} is not configured on the server that looks at this table"
            self._maintainer.put_aside(name, Reason("catalog-not-configured", text))
        elif (until := self.paused_until(name.catalog)) is not None:
            self._maintainer.postpone(name, until)  # or the tables of a catalog that is away would fill every batch
        else:
            self._look(name)

    def _discover(self) -> None:
        for catalog in self._catalogs.values():
            if self._is_paused(catalog.name):
                continue
            with self._going_on("discover", catalog.name):
                if self._discovery.is_due(catalog.name):
                    self._list(catalog)
                self._look_at_found(catalog.name)
                self._discovery.send(catalog.name)

    def _list(self, catalog: Catalog) -> None:
        asked_at = self._clock.now()
        try:
            names = frozenset(catalog.tables())
        except Unavailable as error:
            self._pause(catalog.name, error)
            return
        self._registry.listed(catalog.name, names, asked_at)
        self._tidings.answers(catalog.name)
        self._outages.answered(catalog.name)
        unknown = self._discovery.listed(catalog.name, names, asked_at)
        for name in [name for name in self.unreadable if name.catalog == catalog.name and name not in unknown]:
            self.unreadable.pop(name, None)  # it is gone, or another server has read it

    def _look_at_found(self, catalog: str) -> None:
        self._looks.each(self._found(catalog), self._if_ours(self._look_at_unknown))

    def _found(self, catalog: str) -> Iterator[TableName]:
        for _ in self._for_a_while(range(BATCH_MAX)):
            if self._is_paused(catalog) or (name := self._discovery.next(catalog)) is None:
                return  # what is left is found again
            yield name

    def _look_at_unknown(self, name: TableName) -> None:
        if self._registry.claim(name) is None or self._tables.record_by_name(name) is None:
            self._inbox.answer(name)  # events that their owner cannot answer would fill the share

    def _for_a_while(self, due: Iterable[_Due]) -> Iterator[_Due]:
        """One at least; what is left when the time is over is due in the next round, which follows at once."""
        until = self._clock.now() + LOOKING_MS_MAX
        for number, one in enumerate(due):
            if number and self._clock.now() >= until:
                self._wake.set()
                return
            yield one

    def _expire_leases(self) -> None:
        for task in self._tasks.expired(BATCH_MAX):
            with self._going_on("expire_leases", task.task_id):
                self._dispatcher.lease_expired(task)

    def _keep_house(self) -> None:
        """Carry out what the server does itself, but for tasks of catalogs that do not answer."""
        for task in self._housekeeper.work(BATCH_MAX, self._answering):
            _log.info("task carried out", task=task.task_id, table=str(task.table_name), state=task.state.value)
            self._wake.set()  # to be verified

    def _answering(self) -> frozenset[str]:
        return frozenset(name for name in self._catalogs if not self._is_paused(name))

    def _look(self, name: TableName, *, plan_anew: bool = False, doubtful: bool = False) -> Seen:
        """Look at a table. ``doubtful``: where the catalog does not answer, that may be because of this name alone."""
        if self._outages.waits(name, doubtful=doubtful):
            return Seen(None)
        self._pulse.beat()
        snapshots: Sequence[Snapshot] | None = ()
        answers, answered = self._outages.answers(name.catalog), self._outages.storage_answered(name.catalog)
        try:
            looked = self._maintainer.look(name, plan_anew=plan_anew)
        except NotFound as error:
            trouble = _reason(error)
            self.unreadable.pop(name, None)
            self._outages.answered(name.catalog)
        except (Unavailable, OutcomeUnknown) as error:
            trouble = _reason(error)
            if not self._not_seen(name, error, answered, doubtful=doubtful):
                return Seen(None, trouble, counts=answers)
        except Conflict as error:
            trouble, snapshots = _reason(error), None
            _log.info("table moved while it was looked at", table=str(name), detail=error.message)
            self._maintainer.postpone(name, self._clock.now() + INTERVAL_MIN_MS)
        except IcewrightError as error:
            trouble = _reason(error)
            self._set_aside(name, trouble)
        except Exception as error:  # noqa: BLE001 - the service's loop: a defect met at one table never stops the rest
            _log.exception("look failed", table=str(name))
            trouble = Reason("defect", f"{type(error).__name__}: {error}")
            self._maintainer.put_aside(name, trouble)
            self._set_aside(name, trouble)
        else:
            self.unreadable.pop(name, None)
            self._outages.seen(name)
            _tell(name, looked)
            return Seen(looked.snapshots)
        return Seen(snapshots, trouble)

    def _not_seen(self, name: TableName, error: Unavailable | OutcomeUnknown, answered: int, *, doubtful: bool) -> bool:
        """Leave the table alone for a while, or its whole catalog; whether the look is over all the same."""
        if isinstance(error, StoreUnavailable | OutcomeUnknown):
            raise error  # says nothing of the catalog; what became of a write to the store, the next round reads
        if isinstance(error, Unreadable):
            self._outages.answered(name.catalog)
            self._set_aside(name, _reason(error))
            return True
        if isinstance(error, StorageUnavailable):
            self._put_aside(name, error)
            if self._outages.storage_fails(name, answered):
                self._pause(name.catalog, error)
            return True
        if self._outages.fails_alone(name, doubtful=doubtful):
            self._put_aside(name, error)
        else:
            self._pause(name.catalog, error)
            self._maintainer.postpone(name, self._clock.now() + CATALOG_PAUSE_MS + 1)  # behind others that show more
        return False

    def _put_aside(self, name: TableName, error: Unavailable) -> None:
        """A table that alone does not answer waits."""
        self._maintainer.postpone(name, self._clock.now() + STORAGE_PAUSE_MS)
        self._set_aside(name, _reason(error))

    def _set_aside(self, name: TableName, reason: Reason) -> None:
        self._registry.failed(name, reason)
        if self._part.leads and self._tables.record_by_name(name) is None:  # others are not asked for it
            self.unreadable[name] = lasting(reason, self.unreadable.get(name), self._clock.now())
        _log.warning("table put aside", table=str(name), code=reason.code, detail=reason.text)

    def _pause(self, catalog: str, error: Unavailable | OutcomeUnknown) -> None:
        if isinstance(error, StoreUnavailable | OutcomeUnknown):
            raise error  # says nothing of the catalog; what became of a write to the store, the next round reads
        self._outages.pause(catalog)
        if self._part.leads:  # which lists the catalog, and tells when it is back
            self._tidings.away(catalog, error.message)
        _log.warning("catalog away", catalog=catalog, detail=error.message)

    def _is_paused(self, catalog: str) -> bool:
        return self._outages.paused_until(catalog) is not None

    @contextmanager
    def _asking(self, step: str, task: Task) -> Iterator[None]:
        """As :meth:`_going_on`; a catalog that does not answer is then left alone for a while."""
        words = {"task": task.task_id, "attempt": task.attempt, "table": str(task.table_name)}
        with bound_contextvars(**words), self._going_on(step, task.task_id):
            try:
                yield
            except (Unreadable, StorageUnavailable):
                raise
            except Unavailable as error:
                self._pause(task.table_name.catalog, error)

    @contextmanager
    def _going_on(self, step: str, what: str = "") -> Iterator[None]:
        self._pulse.beat()
        try:
            yield
        except (Unavailable, OutcomeUnknown) as error:
            self._failed_steps.tell(step, what, error)
        except Conflict as error:
            _log.info("changed meanwhile", step=step, what=what, detail=error.message)
        except Exception:  # noqa: BLE001 - the service's loop: the trouble of one is logged and never stops the rest
            _log.exception("step failed", step=step, what=what)


def _reason(error: IcewrightError) -> Reason:
    return Reason(error.code, error.message)


def _tell(name: TableName, looked: Looked) -> None:
    for task in looked.late:
        _log.warning("commit of a task that had ended", table=str(name), task=task.task_id)
    if looked.is_new:
        _log.info("planned", table=str(name), plan=looked.plan.plan_id, reason=looked.plan.reason.text)
