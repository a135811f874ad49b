"""The decisions that the next ones depend on: read once a turn, and kept as the turn changes them."""

from __future__ import annotations

from collections.abc import Sequence

from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.work.autotune.model import About, DecisionState, TuneDecision
from icewright.work.autotune.sql import SqlDecisions


class Past:
    """Decisions of the store since an instant, the newest first, and what this turn does to them.

    What others change meanwhile, a hold by a person, the store looks at with each change.
    """

    def __init__(self, store: SqlDecisions, since: Instant) -> None:
        self._store = store
        self._all = list(store.past(since))

    def about(self, *abouts: About) -> Sequence[TuneDecision]:
        """Those about these."""
        return tuple(one for one in self._all if one.subject.about in abouts)

    def make(self, decision: TuneDecision) -> bool:
        """As :meth:`SqlDecisions.make`."""
        if not self._store.make(decision):
            return False
        self._all.insert(0, decision)
        return True

    def begin(self, decision_id: str, optimizer_id: str | None = None) -> TuneDecision | None:
        """As :meth:`SqlDecisions.begin`."""
        return self._changed(self._store.begin(decision_id, optimizer_id))

    def end(self, decision_id: str, state: DecisionState, effect: Reason) -> TuneDecision | None:
        """As :meth:`SqlDecisions.end`."""
        return self._changed(self._store.end(decision_id, state, effect))

    def _changed(self, found: TuneDecision | None) -> TuneDecision | None:
        if found is not None:
            self._all = [found if one.decision_id == found.decision_id else one for one in self._all]
        return found
