"""What is true of each queue now, read from the stores; and since when it is, which no store keeps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from icewright.core.errors import OutOfMemory
from icewright.core.times import Instant
from icewright.model.actions.actions import OPTIMIZER_ACTIONS
from icewright.model.policy.resource_groups import Queue, ResourceGroup
from icewright.model.work.admission import Holding
from icewright.model.work.application_size import task_holding
from icewright.model.work.jobs import Failed, OptimizerHello, report_of
from icewright.model.work.optimizers import BacklogRequest, TuneMode
from icewright.model.work.tasks import Attempt, AttemptState
from icewright.ports.store import AttemptOfTask, OptimizerRecord, TableStore, TaskFilter, TaskStore
from icewright.work.autotune.decide import Cycle, LiveOptimizer, QueueFacts
from icewright.work.autotune.lasting import Lasting
from icewright.work.autotune.model import IDLE, About, DecisionState, Move, TuneDecision
from icewright.work.autotune.own_optimizers import NOBODY, OWN_OPTIMIZER, Own, OwnOptimizer
from icewright.work.groups.views import GroupViews
from icewright.work.optimizers.backlog import Backlogs, submitters_of

LIVE_MS: Final = 60_000
"""How lately an optimizer must have said hello to count as live; it does so every 10 seconds."""
CYCLES_MAX: Final = 500
"""Attempts of a group that are looked at, the last ones."""
AMONG_MAX: Final = 20_000
"""Of all groups, among which these are: a group that has few must not have the whole history read at each look."""
_REPORTS_MAX: Final = 10_000
"""Attempts of which it is remembered whether they ran out of memory."""
_ENDS: Final = (AttemptState.COMMITTED, AttemptState.FAILED)


@dataclass(frozen=True, slots=True)
class NewOptimizer:
    """What an optimizer of a queue is started with, where no decision says more."""

    slots: int
    cores: int | None
    memory_bytes: int | None
    memory_max_bytes: int

    def memory(self, decided_bytes: int | None, cap_bytes: int | None) -> int | None:
        """What one has that the server starts: what was decided last, within the bounds that are configured now."""
        if decided_bytes is None:
            return self.memory_bytes
        most = self.memory_max_bytes if cap_bytes is None else min(self.memory_max_bytes, cap_bytes)
        return max(min(decided_bytes, most), self.memory_bytes or 0)

    def cap_of(self, group: ResourceGroup) -> int | None:
        """With how much memory one can still start a task within the caps of a group."""
        return None if group.memory_bytes is None else group.memory_bytes * self.slots


@dataclass
class _Memory(Lasting):
    """What was seen before: since when something has been so without a break, and how attempts ended."""

    ran_out: dict[tuple[str, int], bool] = field(default_factory=dict)

    def forget(self, known: AbstractSet[str]) -> None:
        """Forget of optimizers that are not known any more since when they are idle."""
        self.since = {key: at for key, at in self.since.items() if key[0] != IDLE or key[1] in known}


class QueueWatch:
    """Looks at all queues of all groups that are defined. What it remembers, a server that comes to lead waits for."""

    def __init__(
        self,
        tasks: TaskStore,
        tables: TableStore,
        backlogs: Backlogs,
        groups: GroupViews,
        catalogs: frozenset[str],
        sizes: Mapping[Queue, NewOptimizer],
    ) -> None:
        """``sizes``: with what optimizers of each queue begin."""
        self._tasks, self._tables, self._backlogs, self._groups = tasks, tables, backlogs, groups
        self._catalogs, self._sizes, self._memory = catalogs, sizes, _Memory()

    def facts(self, past: Sequence[TuneDecision], mode: TuneMode, own: Own = NOBODY) -> Iterator[QueueFacts]:
        """The facts of each queue. A group for which applications are submitted is left to its submitter."""
        records = self._tables.optimizers()
        self._memory.forget({one.hello.optimizer_id for one in records} | {one.optimizer_id for one in own.present})
        for name, group in sorted(self._groups.definitions().items()):
            now = self._tasks.now()
            if submitters_of(self._tables, name, now):
                continue
            of_group = [one for one in records if one.hello.resource_group == name and one.hello.is_resident]
            attempts = self._tasks.latest_attempts(TaskFilter(resource_group=name), limit=CYCLES_MAX, among=AMONG_MAX)
            look = _GroupLook(group, of_group, attempts, self._tasks_of(name), own, now)
            for queue in Queue:
                yield self._of_queue(look, queue, past, mode)

    def memory(self, past: Sequence[TuneDecision], group: str, queue: Queue, cap_bytes: int | None) -> int | None:
        """What each optimizer of a queue has that the server starts."""
        return self._sizes[queue].memory(memory_of(past, group, queue), cap_bytes)

    def _of_queue(self, look: _GroupLook, queue: Queue, past: Sequence[TuneDecision], mode: TuneMode) -> QueueFacts:
        group, now = look.group, look.now
        key = (group.name, queue.value)
        least, most = group.optimizers_of(queue)
        live = tuple(self._live(look, queue))
        backlog = self._backlog(group, queue, past)
        ending = sum(one.is_ending for one in look.own_of(queue))
        memory_bytes, default_bytes = self._bytes(look, queue, past, mode)
        return QueueFacts(
            group.name,
            queue,
            least,
            most,
            backlog,
            self._memory.lasting_ms(("waits", *key), now, is_so=backlog > 0),
            self._memory.lasting_ms(("calm", *key), now, is_so=backlog == 0),
            self._memory.lasting_ms(("short", *key), now, is_so=len(live) < least),
            live,
            ending,
            memory_bytes,
            default_bytes,
            tuple(self._cycles(look, queue, mode)),
            self._sizes[queue].cap_of(group),
        )

    def _tasks_of(self, group: str) -> Mapping[str, int]:
        found: Counter[str] = Counter()
        for use in self._tasks.facts(group).uses:
            found[use.optimizer_id] += use.tasks
        return found

    def _live(self, look: _GroupLook, queue: Queue) -> Iterator[LiveOptimizer]:
        """Those that take tasks of the queue: its own ones that were started, and all others heard of lately."""
        own = {one.optimizer_id: one for one in look.own_of(queue)}
        for one in own.values():
            if not one.is_ending:
                yield self._one(look, one.optimizer_id, self._sizes[queue].slots, is_own=True)
        for record in look.records:
            hello = record.hello
            is_live = look.is_live(record) and hello.optimizer_id not in look.own.ended
            if is_live and queue_of(hello) is queue and hello.optimizer_id not in own:
                yield self._one(look, hello.optimizer_id, hello.slots, is_own=False)

    def _one(self, look: _GroupLook, optimizer_id: str, slots: int, *, is_own: bool) -> LiveOptimizer:
        tasks = look.tasks.get(optimizer_id, 0)
        idle_ms = self._memory.lasting_ms((IDLE, optimizer_id), look.now, is_so=tasks == 0)
        worked_at = look.worked_at.get(optimizer_id)
        if worked_at is not None:  # also a task that began and ended between two looks
            idle_ms = min(idle_ms, max(0, look.now - worked_at))
        return LiveOptimizer(optimizer_id, slots, tasks, idle_ms, is_own)

    def _backlog(self, group: ResourceGroup, queue: Queue, past: Sequence[TuneDecision]) -> int:
        """How many tasks one more optimizer of the queue could start now."""
        size = self._sizes[queue]
        each = task_holding(Holding(size.cores, self.memory(past, group.name, queue, size.cap_of(group))), size.slots)
        asked = BacklogRequest(group.name, each.cores, each.memory_bytes, (queue,), None, OPTIMIZER_ACTIONS)
        return self._backlogs.of(asked, self._catalogs, is_resident=True).tasks

    def _bytes(
        self, look: _GroupLook, queue: Queue, past: Sequence[TuneDecision], mode: TuneMode
    ) -> tuple[int | None, int]:
        """What each optimizer has, and the least that it may have."""
        begins = self._sizes[queue].memory_bytes
        present = memory_of(past, look.group.name, queue)
        if mode is TuneMode.ACT:
            return self.memory(past, look.group.name, queue, self._sizes[queue].cap_of(look.group)), begins or 0
        said = [one.hello.memory_bytes for one in look.records if look.is_live(one) and queue_of(one.hello) is queue]
        if not said:
            return (begins if present is None else present), begins or 0
        least = None if None in said else min(one or 0 for one in said)
        grown = [one.new.before for one in past if _is_more(one, look.group.name, queue)]
        return least, min(grown, default=least or 0)

    def _cycles(self, look: _GroupLook, queue: Queue, mode: TuneMode) -> Iterator[Cycle]:
        """How attempts ended; in mode ``act`` those alone on optimizers that a server has started, with its memory."""
        hellos = [one.hello for one in look.records]
        if mode is TuneMode.ACT:
            hellos = [one for one in hellos if one.optimizer_id.startswith(f"{OWN_OPTIMIZER}-")]
        queues = {one.optimizer_id: queue_of(one) for one in hellos}
        of_queue = [
            one
            for one in look.attempts
            if queues.get(one.attempt.optimizer_id) is queue and one.attempt.state in _ENDS and one.attempt.ended_at
        ]
        ran_out = self._ran_out([one.attempt for one in of_queue if one.attempt.state is AttemptState.FAILED])
        for one in of_queue:
            attempt, ended_at = one.attempt, one.attempt.ended_at
            if ended_at is not None and (attempt.state is AttemptState.COMMITTED or ran_out[_key(attempt)]):
                table = f"{one.table_name} {one.kind}"
                yield Cycle(table, attempt.started_at, ended_at, attempt.state is AttemptState.FAILED)

    def _ran_out(self, failed: Sequence[Attempt]) -> Mapping[tuple[str, int], bool]:
        """Of attempts that failed, whether it was for memory: by their reports, each read once."""
        known = self._memory.ran_out
        if len(known) > _REPORTS_MAX:
            known.clear()
        unread = sorted({one.task_id for one in failed if _key(one) not in known})
        for attempts in self._tasks.attempts_of(unread).values() if unread else ():
            known.update({_key(one): _is_out_of_memory(one) for one in attempts if one.ended_at is not None})
        return {_key(one): known.get(_key(one), False) for one in failed}


class _GroupLook:
    """What was read of one group."""

    def __init__(
        self,
        group: ResourceGroup,
        records: Sequence[OptimizerRecord],
        attempts: Sequence[AttemptOfTask],
        tasks: Mapping[str, int],
        own: Own,
        now: Instant,
    ) -> None:
        self.group, self.records, self.attempts, self.tasks, self.now = group, records, attempts, tasks, now
        self.own = own
        self.worked_at: dict[str, Instant] = {}
        for one in attempts:
            at = one.attempt.ended_at or one.attempt.started_at
            self.worked_at[one.attempt.optimizer_id] = max(at, self.worked_at.get(one.attempt.optimizer_id, at))

    def own_of(self, queue: Queue) -> Sequence[OwnOptimizer]:
        """Optimizers of the queue that this server started."""
        return [one for one in self.own.present if (one.group, one.queue) == (self.group.name, queue)]

    def is_live(self, record: OptimizerRecord) -> bool:
        """Whether an optimizer was heard of lately."""
        return record.seen_at > self.now - LIVE_MS


def queue_of(hello: OptimizerHello) -> Queue:
    """The queue for which an optimizer is there: the large one only where it takes no other tasks."""
    return Queue.LARGE if hello.queues == (Queue.LARGE,) else Queue.NORMAL


def memory_of(past: Sequence[TuneDecision], group: str, queue: Queue) -> int | None:
    """The memory that was decided last for optimizers of a queue, None where none was; ``past`` as the store has it."""
    done = [
        one
        for one in past
        if (one.new.group, one.new.queue) == (group, queue)
        and one.subject.about is About.MEMORY
        and one.state is DecisionState.DONE
    ]
    return done[0].new.after if done else None


def _is_more(one: TuneDecision, group: str, queue: Queue) -> bool:
    is_done = one.new.move is Move.MORE_MEMORY and one.state is DecisionState.DONE
    return is_done and (one.new.group, one.new.queue) == (group, queue)


def _key(attempt: Attempt) -> tuple[str, int]:
    return attempt.task_id, attempt.attempt


def _is_out_of_memory(attempt: Attempt) -> bool:
    report = report_of(attempt)
    return report is not None and isinstance(report.result, Failed) and report.result.code == OutOfMemory.code
