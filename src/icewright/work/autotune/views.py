"""Decisions of autotuning as people and programs see them."""

from __future__ import annotations

from dataclasses import dataclass

from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.policy.resource_groups import Queue
from icewright.model.work.optimizers import TuneMode
from icewright.work.autotune.model import About, DecisionState, Hold, Move, TuneDecision


@dataclass(frozen=True, slots=True)
class DecisionView:
    """A decision about the optimizers of one queue of a resource group; or about servers, without group and queue.

    ``before`` and ``after`` are numbers of optimizers or servers, or where it is ``about`` memory the bytes of each
    optimizer. ``optimizer_id`` is the one that was started or is to end. ``by_hand`` is how a person does the same.
    ``effect`` says what became of it, null while it stands; ``hold`` is null where no person holds it.
    """

    decision_id: str
    group: str | None
    queue: Queue | None
    about: About
    move: Move
    before: int
    after: int
    optimizer_id: str | None
    reason: Reason
    mode: TuneMode
    by_hand: str
    made_at: Instant
    state: DecisionState
    ended_at: Instant | None
    effect: Reason | None
    hold: Hold | None


def decision_view(decision: TuneDecision) -> DecisionView:
    """A decision as it is shown."""
    new = decision.new
    return DecisionView(
        decision.decision_id,
        new.group or None,
        new.queue,
        new.move.about,
        new.move,
        new.before,
        new.after,
        new.optimizer_id,
        new.reason,
        decision.mode,
        decision.by_hand,
        decision.made_at,
        decision.state,
        decision.ended_at,
        decision.effect,
        decision.hold,
    )
