"""What should change about the optimizers of one queue: decided from facts, without a clock, chance, input or output.

It reacts to work at once and to silence slowly. What waits starts an optimizer after ``wait_ms``; each optimizer that
ended within a day doubles how long the next one has to be idle. So bursts keep optimizers alive, and the number of
decisions a day is bounded whatever happens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from icewright.core import wording
from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.policy.resource_groups import Queue
from icewright.work.autotune.model import (
    BACKLOG,
    IDLE,
    OUT_OF_MEMORY,
    QUIET,
    TOO_FEW,
    TOO_MANY,
    About,
    DecisionState,
    Move,
    NewDecision,
    TuneDecision,
)
from icewright.work.autotune.rules import DAY_MS, Rule, Verdict, doubled

SPOILED_MS: Final = 7 * DAY_MS
"""How long memory that was too little is not tried again."""
DECISIONS_A_DAY_MAX: Final = 24
"""Of one subject, within any 24 hours, with the default spans and at most four optimizers."""
MIB_BITS: Final = 20


@dataclass(frozen=True, slots=True)
class TuneLimits:
    """How fast and how far things may change: the settings of ``[autotune]``.

    A step of memory is ``step_bytes``, or where that is 0 the factor ``step_factor`` up and its counterpart down
    (1.2 and 0.8); less memory comes ``at_once`` or by steps. What a step leads to are whole MiB, as it is written for
    Spark.
    """

    wait_ms: int = 120_000
    idle_ms: int = 900_000
    cool_down_ms: int = 600_000
    memory_max_bytes: int = 16 << 30
    step_bytes: int = 2 << 30
    step_factor: float = 1.2
    at_once: bool = False
    oom_cycles: int = 3
    quiet_cycles: int = 50

    def more(self, memory_bytes: int, cap_bytes: int | None = None) -> int:
        """One step up, within the maximum and the cap; the same where there is no room."""
        wanted = memory_bytes + self.step_bytes if self.step_bytes else int(memory_bytes * self.step_factor)
        most = self.memory_max_bytes if cap_bytes is None else min(self.memory_max_bytes, cap_bytes)
        return max(memory_bytes, _whole(min(wanted, most)))

    def less(self, memory_bytes: int, default_bytes: int) -> int:
        """One step down, or down to the default at once; never below the default."""
        factor = 2 - self.step_factor
        wanted = memory_bytes - self.step_bytes if self.step_bytes else int(memory_bytes * factor)
        return min(memory_bytes, default_bytes if self.at_once else max(default_bytes, _whole(wanted)))


def _whole(size_bytes: int) -> int:
    return size_bytes >> MIB_BITS << MIB_BITS


@dataclass(frozen=True, slots=True)
class LiveOptimizer:
    """An optimizer that takes tasks of the queue. ``is_own``: the server started it, and can end it."""

    optimizer_id: str
    slots: int
    tasks: int = 0
    idle_ms: int = 0
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class Cycle:
    """An attempt that has ended well, or ran out of memory, on an optimizer of the queue. ``table`` names its table."""

    table: str
    started_at: Instant
    ended_at: Instant
    ran_out: bool


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """What is true of one queue of a resource group at one moment.

    ``backlog`` are tasks that one more optimizer could start now, for ``waited_ms`` without a break; for ``calm_ms``
    there were none. For ``short_ms`` there are fewer optimizers than ``least``. ``ending`` optimizers claim nothing
    more and have not ended. ``memory_bytes`` is what each optimizer has, None where that is not known; with more than
    ``memory_cap_bytes``, where the group has such a cap, one could not start any task.
    """

    group: str
    queue: Queue
    least: int
    most: int
    backlog: int = 0
    waited_ms: int = 0
    calm_ms: int = 0
    short_ms: int = 0
    optimizers: tuple[LiveOptimizer, ...] = ()
    ending: int = 0
    memory_bytes: int | None = None
    default_bytes: int = 0
    cycles: tuple[Cycle, ...] = ()
    memory_cap_bytes: int | None = None

    @property
    def free(self) -> int:
        """How many slots have no task."""
        return sum(max(0, one.slots - one.tasks) for one in self.optimizers)


def decide(facts: QueueFacts, past: Sequence[TuneDecision], limits: TuneLimits, now: Instant) -> tuple[Verdict, ...]:
    """What follows from the facts, after the ``past`` decisions of the same queue, the newest first.

    These reach back for :data:`SPOILED_MS`, with all that stand or are held, and the last one of memory that was done.
    """
    by_subject = {about: [one for one in past if one.subject.about is about] for about in About}
    rules = (
        _Optimizers(facts, by_subject[About.OPTIMIZERS], limits, now),
        _Memory(facts, by_subject[About.MEMORY], limits, now),
    )
    return tuple(verdict for rule in rules if (verdict := rule.verdict()) is not None)


class _QueueRule(Rule):
    def __init__(self, facts: QueueFacts, past: Sequence[TuneDecision], limits: TuneLimits, now: Instant) -> None:
        super().__init__(past, now)
        self._facts, self._limits = facts, limits


class _Optimizers(_QueueRule):
    """How many there are."""

    def _needs(self) -> Iterator[NewDecision]:
        facts, limits, live = self._facts, self._limits, len(self._facts.optimizers)
        if live + facts.ending < facts.least and facts.short_ms >= limits.wait_ms:
            text = f"{wording.count(live, 'optimizer')}, and the minimum is {facts.least:,}"
            yield self._start(Reason(TOO_FEW, text, {"optimizers": live, "least": facts.least}))
        if self._is_behind() and facts.waited_ms >= limits.wait_ms:
            tasks, waited = wording.count(facts.backlog, "task"), wording.about(facts.waited_ms)
            text = f"{tasks} waiting for {waited}, and no optimizer is free: {live:,} of at most {facts.most:,}"
            figures = {"backlog": facts.backlog, "waited_ms": facts.waited_ms, "optimizers": live, "most": facts.most}
            yield self._start(Reason(BACKLOG, text, figures))
        if (unneeded := self._unneeded()) is not None:
            yield unneeded

    def _start(self, reason: Reason) -> NewDecision:
        live = len(self._facts.optimizers)
        return NewDecision(self._facts.group, self._facts.queue, Move.START, live, live + 1, reason)

    def _is_behind(self) -> bool:
        facts = self._facts
        return facts.backlog > 0 and facts.free == 0 and len(facts.optimizers) + facts.ending < facts.most

    def _unneeded(self) -> NewDecision | None:
        """The end of the optimizer that has been idle longest; those that the server can end come first."""
        facts, live = self._facts, len(self._facts.optimizers)
        idle = [one for one in facts.optimizers if one.tasks == 0]
        if not idle or live <= facts.least:
            return None
        longest = min(idle, key=lambda one: (not one.is_own, -one.idle_ms, one.optimizer_id))
        if live > facts.most:
            text = f"{wording.count(live, 'optimizer')}, and the maximum is {facts.most:,}"
            reason = Reason(TOO_MANY, text, {"optimizers": live, "most": facts.most})
        elif facts.backlog == 0 and min(longest.idle_ms, facts.calm_ms) >= self._idle_ms:
            text = f"{longest.optimizer_id} has had no task for {wording.about(longest.idle_ms)}, and none waits"
            reason = Reason(IDLE, text, {"idle_ms": longest.idle_ms, "needed_ms": self._idle_ms, "optimizers": live})
        else:
            return None
        return NewDecision(facts.group, facts.queue, Move.END, live, live - 1, reason, longest.optimizer_id)

    @property
    def _downs(self) -> int:
        """How often within a day an optimizer was to end, or advice to start one came to nothing."""
        return sum(one.new.move is Move.END or one.state is DecisionState.LAPSED for one in self._today)

    @property
    def _idle_ms(self) -> int:
        return doubled(self._limits.idle_ms, self._downs)

    def _may_follow(self, need: NewDecision) -> bool:
        if need.move is Move.END:
            return self._rested(self._limits.cool_down_ms)
        # Starts that neither growth nor an end before them explains follow on deaths: each makes the next one rarer.
        starts = sum(one.new.move is Move.START for one in self._today)
        return self._rested(doubled(self._limits.cool_down_ms, starts - self._downs - self._facts.most))

    def _came_true(self, standing: TuneDecision) -> bool:
        if standing.new.move is Move.START:
            return len(self._facts.optimizers) > standing.new.before
        return all(one.optimizer_id != standing.new.optimizer_id for one in self._facts.optimizers)

    def _is_called_for(self, standing: TuneDecision) -> bool:
        facts, live = self._facts, len(self._facts.optimizers)
        if standing.new.move is Move.START:
            return live < facts.most and (live < facts.least or facts.calm_ms < self._idle_ms)
        is_idle = any(one.optimizer_id == standing.new.optimizer_id and not one.tasks for one in facts.optimizers)
        return is_idle and live > facts.least and (facts.backlog == 0 or live > facts.most)


class _Memory(_QueueRule):
    """How much each has."""

    def _needs(self) -> Iterator[NewDecision]:
        facts, limits, memory = self._facts, self._limits, self._facts.memory_bytes
        if memory is None:
            return
        streak, table = self._streak()
        more, less = limits.more(memory, facts.memory_cap_bytes), limits.less(memory, facts.default_bytes)
        if streak >= limits.oom_cycles and more > memory:
            text = f"{wording.count(streak, 'attempt')} in a row ran out of memory, with {wording.size(memory)} each"
            figures: dict[str, int | float | str] = {"cycles": streak, "memory_bytes": memory, "last_table": table}
            yield self._of(Move.MORE_MEMORY, memory, more, Reason(OUT_OF_MEMORY, text, figures))
        quiet = len(list(takewhile(lambda one: not one.ran_out, self._cycles)))
        if quiet >= limits.quiet_cycles and self._spoiled < less < memory:
            text = f"{wording.count(quiet, 'attempt')} in a row had enough memory, with {wording.size(memory)} each"
            figures = {"cycles": quiet, "memory_bytes": memory, "default_bytes": facts.default_bytes}
            yield self._of(Move.LESS_MEMORY, memory, less, Reason(QUIET, text, figures))

    def _of(self, move: Move, before: int, after: int, reason: Reason) -> NewDecision:
        return NewDecision(self._facts.group, self._facts.queue, move, before, after, reason)

    @property
    def _cycles(self) -> Sequence[Cycle]:
        """Those that began with the present memory, the latest first."""
        done = [one.ended_at or 0 for one in self._past if one.state is DecisionState.DONE]
        since = max(done, default=0)
        found = [one for one in self._facts.cycles if one.started_at >= since]
        return sorted(found, key=lambda one: -one.ended_at)

    def _streak(self) -> tuple[int, str]:
        """How many of the last attempts ran out of memory, of the whole queue or of one table; and its table."""
        cycles = self._cycles
        streaks = []
        for table in (None, *dict.fromkeys(one.table for one in cycles)):
            of = [one for one in cycles if table in (None, one.table)]
            ran_out = list(takewhile(lambda one: one.ran_out, of))
            streaks.append((len(ran_out), ran_out[0].table if ran_out else ""))
        return max(streaks, key=lambda one: one[0], default=(0, ""))

    @property
    def _spoiled(self) -> int:
        """The most memory that was too little lately."""
        return max(
            (
                one.new.before
                for one in self._past
                if one.new.move is Move.MORE_MEMORY
                and one.state is DecisionState.DONE
                and one.made_at > self._now - SPOILED_MS
            ),
            default=0,
        )

    def _may_follow(self, need: NewDecision) -> bool:
        if need.move is Move.LESS_MEMORY:
            return self._rested(DAY_MS)
        lapsed = sum(one.state is not DecisionState.DONE for one in self._today)
        return self._rested(doubled(self._limits.cool_down_ms, lapsed))

    def _came_true(self, standing: TuneDecision) -> bool:
        memory, after = self._facts.memory_bytes, standing.new.after
        if memory is None or not self._facts.optimizers:
            return False
        return memory >= after if standing.new.move is Move.MORE_MEMORY else memory <= after

    def _is_called_for(self, standing: TuneDecision) -> bool:
        return any(need.move is standing.new.move for need in self._needs())
