"""How many servers there are: looked at, decided as rows, and in mode ``act`` asked of the platform.

A decision asks the platform once at most. What became of it is seen by counting servers, also where the platform did
not answer; the next decision begins from that count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import structlog

from icewright.core import wording
from icewright.core.clock import Ids
from icewright.core.errors import IcewrightError, OutcomeUnknown
from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.work.optimizers import TuneMode
from icewright.work.autotune.lasting import Lasting
from icewright.work.autotune.model import DECISION, About, DecisionState, Move, NewDecision, TuneDecision
from icewright.work.autotune.past import Past
from icewright.work.autotune.rules import LAPSED, Ended
from icewright.work.autotune.servers.decide import (
    ServerFacts,
    ServerLimits,
    ServerLoad,
    came_true,
    decide_servers,
    fits,
    is_busy,
    is_full,
    one_less_would_do,
)
from icewright.work.autotune.servers.platform import Platform, Resize

_log = structlog.get_logger("icewright.autotune")

LOOK_MS: Final = 30_000
"""How often servers are looked at."""
COME_MS: Final = 15 * 60_000
"""How long it may take until as many servers are seen as were asked for."""

ServersNow = Callable[[], Sequence[ServerLoad]]
"""The servers that are there, with their load. Raises ``Unavailable``."""


class ServerTuning:
    """The part of autotuning that is about servers; ``platform`` is None in mode ``advise``."""

    def __init__(self, servers: ServersNow, ids: Ids, limits: ServerLimits, platform: Platform | None = None) -> None:
        self._servers, self._ids, self._limits, self._platform = servers, ids, limits, platform
        self._mode = TuneMode.ADVISE if platform is None else TuneMode.ACT
        self._lasting = Lasting()
        self._looked_at: Instant | None = None
        self._asked: dict[str, Instant] = {}
        """Since when decisions are seen to be under way, by their ids."""
        self._told: dict[str, str] = {}
        """What the platform said of each."""

    def turn(self, past: Past, now: Instant) -> None:
        """Look at all servers, decide, and ask the platform; nothing where that is not long ago."""
        if self._looked_at is not None and 0 <= now - self._looked_at < LOOK_MS:
            return
        self._looked_at = now
        facts = self.facts(now)
        live = len(facts.servers)
        self._settle(past, live, now)
        verdict = decide_servers(facts, past.about(About.SERVERS), self._limits, now)
        if isinstance(verdict, Ended):
            past.end(verdict.decision.decision_id, verdict.state, verdict.effect)
        elif verdict is not None:
            made = TuneDecision(self._ids.new(DECISION), verdict, self._mode, servers_by_hand(verdict), now)
            if past.make(made):
                _log.info("decided", decision=made.decision_id, move=verdict.move.value, reason=verdict.reason.text)
        if self._platform is not None:
            for one in past.about(About.SERVERS):
                if one.state is not DecisionState.OPEN or one.hold is not None:
                    continue
                if fits(one.new, live, self._limits):
                    self._ask(self._platform, past, one, now)
                else:
                    past.end(one.decision_id, DecisionState.LAPSED, _other_number(one.new, live))

    def facts(self, now: Instant) -> ServerFacts:
        """What is true of the servers now, and for how long."""
        servers, limits = tuple(self._servers()), self._limits
        there = {one.server_id for one in servers}
        known = self._lasting.since
        self._lasting.since = {key: at for key, at in known.items() if len(key) == 1 or key[1] in there}
        busy_ms, full_ms = dict[ServerLoad, int](), dict[ServerLoad, int]()
        for one in servers:
            busy_ms[one] = self._for(now, "busy", one.server_id, is_so=is_busy(one, limits))
            full_ms[one] = self._for(now, "full", one.server_id, is_so=is_full(one, limits))
        busy = max(servers, key=lambda one: (busy_ms[one], one.cpu or 0.0), default=None)
        full = max(servers, key=lambda one: (full_ms[one], one.tables), default=None)
        is_calm = not any(is_busy(one, limits) or is_full(one, limits) for one in servers)
        return ServerFacts(
            servers,
            busy,
            0 if busy is None else busy_ms[busy],
            full,
            0 if full is None else full_ms[full],
            self._for(now, "calm", is_so=is_calm),
            self._for(now, "quiet", is_so=one_less_would_do(servers, limits)),
            self._for(now, "short", is_so=len(servers) < limits.least),
        )

    def _for(self, now: Instant, *key: str, is_so: bool) -> int:
        return self._lasting.lasting_ms(key, now, is_so=is_so)

    def _settle(self, past: Past, live: int, now: Instant) -> None:
        """See whether what was asked for has come; an answer that nobody heard makes no difference."""
        begun = [one for one in past.about(About.SERVERS) if one.state is DecisionState.BEGUN]
        self._asked = {one.decision_id: self._asked.get(one.decision_id, now) for one in begun}
        self._told = {key: text for key, text in self._told.items() if key in self._asked}
        for one in begun:
            told = self._told.get(one.decision_id, "the server that asked for it has ended")
            if came_true(one.new, live):
                text = f"{wording.count(live, 'server is', 'servers are')} there ({told})"
                past.end(one.decision_id, DecisionState.DONE, Reason("carried-out", text))
            elif now - self._asked[one.decision_id] >= COME_MS:
                text = f"after {wording.about(COME_MS)} there are {live:,}, and not {one.new.after:,} ({told})"
                past.end(one.decision_id, DecisionState.FAILED, Reason("not-seen", text))

    def _ask(self, platform: Platform, past: Past, decision: TuneDecision, now: Instant) -> None:
        new = decision.new
        if past.begin(decision.decision_id) is None:
            return
        self._asked[decision.decision_id] = now
        try:
            told = platform.resize(Resize(decision.decision_id, new.before, new.after, new.reason))
        except OutcomeUnknown as error:
            told = f"the outcome is unknown: {error.message}"
            _log.warning("outcome unknown", decision=decision.decision_id, detail=error.message)
        except IcewrightError as error:
            _log.warning("not asked", decision=decision.decision_id, detail=error.message)
            past.end(decision.decision_id, DecisionState.FAILED, Reason("refused", error.message))
            return
        self._told[decision.decision_id] = told


def _other_number(new: NewDecision, live: int) -> Reason:
    """Of what stood as advice or was held, for a number of servers that there are not any more."""
    text = f"it was decided for {wording.count(new.before, 'server')}, and {live:,} are there, or the bounds are others"
    return Reason(LAPSED, text)


def servers_by_hand(new: NewDecision) -> str:
    """How a person does what is decided."""
    many = abs(new.after - new.before)
    if new.move is Move.ADD_SERVER:
        more = "another" if many == 1 else f"{many:,} more"
        return f"start {more} `icewright serve` with the configuration of the others, on a machine of its own"
    return f"send SIGTERM to {'one' if many == 1 else f'{many:,}'} `icewright serve`: the others look at its tables"
