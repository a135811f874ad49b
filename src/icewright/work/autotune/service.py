"""Autotuning: look, decide, keep each decision as a row, and in mode ``act`` carry it out.

A decision is taken to be carried out by one write, before anything happens (``begun``), so that each is carried out
once at most, whenever a server dies. What a dead server had begun is not repeated: the next one looks, and decides
from what it sees.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final

import structlog

from icewright.core import wording
from icewright.core.clock import Ids
from icewright.core.errors import Conflict, NotFound, OutcomeUnknown, Rejected, Unavailable
from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.policy.resource_groups import Queue
from icewright.model.work.optimizers import TuneMode
from icewright.ports.store import TableStore, TaskStore
from icewright.work.autotune.decide import MIB_BITS, SPOILED_MS, QueueFacts, TuneLimits, decide
from icewright.work.autotune.model import DECISION, About, DecisionState, Move, NewDecision, TuneDecision
from icewright.work.autotune.own_optimizers import NOBODY, OwnOptimizers
from icewright.work.autotune.past import Past
from icewright.work.autotune.rules import Ended, Verdict
from icewright.work.autotune.servers.tuning import ServerTuning, servers_by_hand
from icewright.work.autotune.sql import SqlDecisions
from icewright.work.autotune.watch import QueueWatch

_log = structlog.get_logger("icewright.autotune")

TURN_S: Final = 10.0
"""How often it is looked: optimizers say hello that often."""
OF_QUEUES: Final = (About.OPTIMIZERS, About.MEMORY)
"""What decisions about the optimizers of a queue are about."""
START_MS: Final = 15 * 60_000
"""How long an optimizer that was started may take until it introduces itself: Spark may load packages first."""


class Autotune:
    """The part of the server that leads; ``own`` are the optimizers that it runs, None in mode ``advise``."""

    def __init__(
        self,
        decisions: SqlDecisions,
        watch: QueueWatch,
        tasks: TaskStore,
        tables: TableStore,
        ids: Ids,
        limits: TuneLimits,
        own: OwnOptimizers | None = None,
        *,
        is_local: bool = True,
        servers: ServerTuning | None = None,
    ) -> None:
        """``is_local``: Spark runs on one machine, so that all memory is that of ``optimizer.memory``.

        Without ``servers`` there is one alone.
        """
        self._is_local, self._servers = is_local, servers
        self._decisions, self._watch, self._tasks, self._tables = decisions, watch, tasks, tables
        self._ids, self._limits, self._own = ids, limits, own
        self._mode = TuneMode.ADVISE if own is None else TuneMode.ACT
        self._has_begun = False
        self._unheard: dict[str, Instant] = {}
        """Since when optimizers that were started are seen not to have introduced themselves, by their ids."""

    def run(self, stop: threading.Event, pause_s: float = TURN_S) -> None:
        """Turn until stopped. The optimizers are drained then."""
        while not stop.wait(pause_s):
            try:
                self.turn()
            except (Unavailable, OutcomeUnknown) as error:
                _log.warning("put off", detail=error.message)
            except Exception:  # noqa: BLE001 - the thread's edge: trouble is logged, and the next turn looks again
                _log.exception("autotuning failed")
        self.close()

    def close(self) -> None:
        """Drain the optimizers that this server runs."""
        if self._own is not None:
            self._own.close()

    def turn(self) -> None:
        """Look at all queues and servers once, decide, and carry out."""
        past = Past(self._decisions, self._tasks.now() - SPOILED_MS)
        if not self._has_begun:
            _give_up_begun(past)
            self._has_begun = True
        self._settle(past)
        self._tune_queues(past)
        if self._servers is not None:
            self._servers.turn(past, self._tasks.now())

    def _tune_queues(self, past: Past) -> None:
        own = NOBODY if self._own is None else self._own.own
        before = past.about(*OF_QUEUES)
        facts = {(one.group, one.queue): one for one in self._watch.facts(before, self._mode, own)}
        now = self._tasks.now()
        for key, one in facts.items():
            for verdict in decide(one, [known for known in before if _queue_of(known) == key], self._limits, now):
                self._keep(past, verdict, one)
        for known in before:
            if known.state is DecisionState.OPEN and _queue_of(known) not in facts:
                text = f"there is no group {known.new.group} any more, or applications are submitted for it"
                past.end(known.decision_id, DecisionState.LAPSED, Reason("group-gone", text))
        if self._own is not None:
            self._carry_out_all(past, self._own, facts)

    def _settle(self, past: Past) -> None:
        """See whether what was begun has taken effect."""
        begun, now = [one for one in past.about(*OF_QUEUES) if one.state is DecisionState.BEGUN], self._tasks.now()
        starting = {one.new.optimizer_id or "" for one in begun if one.new.move is Move.START}
        self._unheard = {one: self._unheard.get(one, now) for one in starting}
        if not begun or self._own is None:
            return
        heard_of = {one.hello.optimizer_id for one in self._tables.optimizers()}
        for one in begun:
            optimizer_id = one.new.optimizer_id or ""
            runs = self._own.is_running(optimizer_id)
            if one.new.move is Move.START and optimizer_id in heard_of:
                _done(past, one, f"{optimizer_id} has started, and takes tasks")
            elif one.new.move is Move.START and not runs:
                text = f"{optimizer_id} ended before it took tasks: the log of the server says why"
                past.end(one.decision_id, DecisionState.FAILED, Reason("not-started", text))
            elif one.new.move is Move.START and now - self._unheard[optimizer_id] >= START_MS:
                self._own.drain(optimizer_id)
                text = f"{optimizer_id} has not introduced itself for {wording.about(START_MS)}, and ends"
                past.end(one.decision_id, DecisionState.FAILED, Reason("not-started", text))
            elif one.new.move is Move.END and not runs:
                _done(past, one, f"{optimizer_id} has ended")

    def _keep(self, past: Past, verdict: Verdict, facts: QueueFacts) -> None:
        if isinstance(verdict, Ended):
            past.end(verdict.decision.decision_id, verdict.state, verdict.effect)
            return
        how = by_hand(verdict, facts.memory_bytes, is_local=self._is_local)
        made = TuneDecision(self._ids.new(DECISION), verdict, self._mode, how, self._tasks.now())
        if past.make(made):
            _log.info("decided", decision=made.decision_id, move=verdict.move.value, reason=verdict.reason.text)

    def _carry_out_all(self, past: Past, own: OwnOptimizers, facts: Mapping[tuple[str, Queue], QueueFacts]) -> None:
        """Carry out what stands about these queues, and look after the optimizers that run."""
        for about in (About.MEMORY, About.OPTIMIZERS):
            wanted = self._wanted(past, facts)
            for one in past.about(about):
                memory_bytes = wanted.get(_queue_of(one))
                if one.state is DecisionState.OPEN and one.hold is None and memory_bytes is not None:
                    self._carry_out(past, one, own, memory_bytes)
        own.look_after(self._wanted(past, facts))

    def _wanted(
        self, past: Past, facts: Mapping[tuple[str, Queue], QueueFacts]
    ) -> Mapping[tuple[str, Queue | None], int]:
        known = past.about(About.MEMORY)
        return {key: self._watch.memory(known, *key, one.memory_cap_bytes) or 0 for key, one in facts.items()}

    def _carry_out(self, past: Past, decision: TuneDecision, own: OwnOptimizers, memory_bytes: int) -> None:
        new = decision.new
        match new.move:
            case Move.START:
                self._start(past, decision, own, memory_bytes)
            case Move.END:
                optimizer_id = new.optimizer_id or ""
                # One that somebody else runs is theirs to end: the decision stays advice.
                if own.is_running(optimizer_id) and past.begin(decision.decision_id) is not None:
                    own.drain(optimizer_id)
            case Move.MORE_MEMORY | Move.LESS_MEMORY:
                if (begun := past.begin(decision.decision_id)) is not None:
                    size = wording.size(new.after)
                    _done(past, begun, f"optimizers start with {size}; those with less or more end after their tasks")

    def _start(self, past: Past, decision: TuneDecision, own: OwnOptimizers, memory_bytes: int) -> None:
        new, optimizer_id = decision.new, own.new_id()
        if new.queue is None or past.begin(decision.decision_id, optimizer_id) is None:
            return
        try:
            own.start(optimizer_id, new.group, new.queue, memory_bytes)
        except (Rejected, NotFound, Conflict) as error:
            past.end(decision.decision_id, DecisionState.FAILED, Reason("not-started", error.message))


def _give_up_begun(past: Past) -> None:
    """What a server had begun that leads no more, nobody goes on with; how many servers there are, is seen."""
    for one in past.about(*OF_QUEUES):
        if one.state is DecisionState.BEGUN:
            text = "the server that carried it out has ended; optimizers that it had started end after their tasks"
            past.end(one.decision_id, DecisionState.FAILED, Reason("server-ended", text))


def _done(past: Past, decision: TuneDecision, text: str) -> None:
    past.end(decision.decision_id, DecisionState.DONE, Reason("carried-out", text))


def _queue_of(decision: TuneDecision) -> tuple[str, Queue | None]:
    return decision.new.group, decision.new.queue


def by_hand(new: NewDecision, memory_bytes: int | None, *, is_local: bool) -> str:
    """How a person does what is decided; there are only names of our own in it, for it may be pasted into a shell."""
    where = f"ICEWRIGHT_OPTIMIZER__RESOURCE_GROUP={new.group} ICEWRIGHT_OPTIMIZER__QUEUES={new.queue}"
    wanted = memory_bytes if new.move is Move.START else new.after
    memory = "" if wanted is None or not is_local else f" ICEWRIGHT_OPTIMIZER__MEMORY={wanted >> MIB_BITS}m"
    command = f"{where}{memory} icewright optimizer"
    match new.move:
        case Move.START:
            return command
        case Move.END:
            return f"send SIGTERM to the `icewright optimizer` of {new.optimizer_id}: it ends after its tasks"
        case Move.MORE_MEMORY | Move.LESS_MEMORY if is_local:
            return f"end the optimizers of this queue by SIGTERM, then: {command}"
        case Move.MORE_MEMORY | Move.LESS_MEMORY:
            size = f"{wording.size(new.after)} for driver and executors together"
            return f"set optimizer.memory and spark.executor.memory to {size}, and restart the optimizers of this queue"
        case Move.ADD_SERVER | Move.REMOVE_SERVER:
            return servers_by_hand(new)
