"""How many servers there should be: decided from facts, without a clock, chance, input or output.

A server that is busy or has too many tables for some minutes asks for another one; one is given back when all others
have been able to do its work for long, and ever later the more were given back within a day.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from icewright.core import wording
from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.work.autotune.model import (
    BUSY_SERVER,
    FULL_SERVER,
    IDLE_SERVERS,
    TOO_FEW_SERVERS,
    TOO_MANY_SERVERS,
    DecisionState,
    Move,
    NewDecision,
    TuneDecision,
)
from icewright.work.autotune.rules import Rule, Verdict, doubled

QUIET_PART: Final = 0.5
"""The others could do a server's work if each then needed at most this part of what makes a server busy."""
ROOM_PART: Final = 0.8
"""And if each then had at most this part of the tables that one may have."""
BEHIND_PART: Final = 0.01
"""And while looks at no more than this part of all tables are late: some may be late for reasons of their own."""
SERVER_DECISIONS_A_DAY_MAX: Final = 16
"""About servers, within any 24 hours, with the default spans and at most four servers."""


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """When servers are asked for and given back: the settings of ``[platform]``.

    A server is busy with more than ``cpu_share`` of the CPU that it can use, and full with more than ``tables_max``
    tables; either counts when it lasts for ``busy_ms``.
    """

    least: int = 1
    most: int = 4
    cpu_share: float = 0.8
    tables_max: int = 10_000
    busy_ms: int = 300_000
    idle_ms: int = 3_600_000
    cool_down_ms: int = 900_000

    def __post_init__(self) -> None:
        """Refuse bounds that nothing is within."""
        if not 1 <= self.least <= self.most:
            raise ValueError(f"from {self.least} to {self.most} servers")


@dataclass(frozen=True, slots=True)
class ServerLoad:
    """What a server that is there says or has: ``cpu`` is a share of what it can use, None where it does not say so.

    ``behind`` are tables whose look is late.
    """

    server_id: str
    tables: int
    cpu: float | None = None
    behind: int = 0


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What is true of all servers at one moment.

    The one with most CPU has been ``busy_ms`` above the limit, and that with most tables ``full_ms``. For ``calm_ms``
    no server was busy or full, for ``quiet_ms`` one less would have done, for ``short_ms`` there are too few.
    """

    servers: tuple[ServerLoad, ...]
    busy: ServerLoad | None = None
    busy_ms: int = 0
    full: ServerLoad | None = None
    full_ms: int = 0
    calm_ms: int = 0
    quiet_ms: int = 0
    short_ms: int = 0


def is_busy(one: ServerLoad, limits: ServerLimits) -> bool:
    """Whether a server needs more CPU than it should."""
    return one.cpu is not None and one.cpu > limits.cpu_share


def is_full(one: ServerLoad, limits: ServerLimits) -> bool:
    """Whether a server has more tables than it should."""
    return one.tables > limits.tables_max


def one_less_would_do(servers: Sequence[ServerLoad], limits: ServerLimits) -> bool:
    """Whether the others could do the work of one of them; False while one does not say how much CPU it needs."""
    others = len(servers) - 1
    shares = [one.cpu for one in servers if one.cpu is not None]
    if others < 1 or len(shares) < len(servers):
        return False
    tables, behind = sum(one.tables for one in servers), sum(one.behind for one in servers)
    has_cpu = sum(shares) / others <= limits.cpu_share * QUIET_PART
    return has_cpu and tables / others <= limits.tables_max * ROOM_PART and behind <= tables * BEHIND_PART


def decide_servers(
    facts: ServerFacts, past: Sequence[TuneDecision], limits: ServerLimits, now: Instant
) -> Verdict | None:
    """What follows from the facts, after the ``past`` decisions about servers, the newest first."""
    return _Servers(facts, past, limits, now).verdict()


class _Servers(Rule):
    def __init__(self, facts: ServerFacts, past: Sequence[TuneDecision], limits: ServerLimits, now: Instant) -> None:
        super().__init__(past, now)
        self._facts, self._limits, self._live = facts, limits, len(facts.servers)

    def _needs(self) -> Iterator[NewDecision]:
        """Each number is within the bounds: servers that are not seen may be those of a platform all the same."""
        facts, limits, live = self._facts, self._limits, self._live
        if live < limits.least and facts.short_ms >= limits.busy_ms:
            text = f"{wording.count(live, 'server')}, and the minimum is {limits.least:,}"
            yield self._of(Move.ADD_SERVER, limits.least, TOO_FEW_SERVERS, text, {"least": limits.least})
        if live < limits.most:
            yield from self._overloaded()
        if live > limits.most:
            text = f"{wording.count(live, 'server')}, and the maximum is {limits.most:,}"
            yield self._of(Move.REMOVE_SERVER, limits.most, TOO_MANY_SERVERS, text, {"most": limits.most})
        elif live > limits.least and facts.quiet_ms >= self._idle_ms:
            text = f"for {wording.about(facts.quiet_ms)} one less of {wording.count(live, 'server')} would have done"
            figures: dict[str, int | float | str] = {"quiet_ms": facts.quiet_ms, "needed_ms": self._idle_ms}
            yield self._of(Move.REMOVE_SERVER, live - 1, IDLE_SERVERS, text, figures)

    def _overloaded(self) -> Iterator[NewDecision]:
        facts, limits = self._facts, self._limits
        if (busy := facts.busy) is not None and facts.busy_ms >= limits.busy_ms:
            lasting, cpu = wording.about(facts.busy_ms), round(100 * (busy.cpu or 0))
            text = f"{busy.server_id} has needed more than {limits.cpu_share:.0%} of its CPU for {lasting}, now {cpu} %"
            yield self._add(BUSY_SERVER, text, {"server": busy.server_id, "busy_ms": facts.busy_ms})
        if (full := facts.full) is not None and facts.full_ms >= limits.busy_ms:
            text = f"{full.server_id} looks at {full.tables:,} tables, and the most for one is {limits.tables_max:,}"
            yield self._add(FULL_SERVER, text, {"server": full.server_id, "full_ms": facts.full_ms})

    def _add(self, code: str, text: str, figures: dict[str, int | float | str]) -> NewDecision:
        return self._of(Move.ADD_SERVER, max(self._live + 1, self._limits.least), code, text, figures)

    def _of(self, move: Move, after: int, code: str, text: str, figures: dict[str, int | float | str]) -> NewDecision:
        servers = self._facts.servers
        seen: dict[str, int | float | str] = {
            "servers": self._live,
            "tables_most": max((one.tables for one in servers), default=0),
            "cpu_most": round(max((one.cpu or 0.0 for one in servers), default=0.0), 3),
            "behind": sum(one.behind for one in servers),
        }
        return NewDecision("", None, move, self._live, after, Reason(code, text, {**seen, **figures}))

    @property
    def _downs(self) -> int:
        """How often within a day a server was given back, or advice to add one came to nothing."""
        removed = sum(one.new.move is Move.REMOVE_SERVER for one in self._today)
        return removed + sum(self._is_vain(one) for one in self._today if one.new.move is Move.ADD_SERVER)

    @property
    def _idle_ms(self) -> int:
        return doubled(self._limits.idle_ms, self._downs)

    @staticmethod
    def _is_vain(one: TuneDecision) -> bool:
        return one.state in (DecisionState.FAILED, DecisionState.LAPSED)

    def _may_follow(self, need: NewDecision) -> bool:
        """What the platform refuses is asked for ever more rarely, and so is what servers that die make necessary."""
        vain = sum(self._is_vain(one) for one in self._today)
        added = sum(one.new.move is Move.ADD_SERVER for one in self._today)
        unexplained = 0 if need.move is Move.REMOVE_SERVER else max(0, added - self._downs - self._limits.most)
        return self._rested(doubled(self._limits.cool_down_ms, vain + unexplained))

    def _came_true(self, standing: TuneDecision) -> bool:
        return came_true(standing.new, self._live)

    def _is_called_for(self, standing: TuneDecision) -> bool:
        facts, limits = self._facts, self._limits
        if standing.new.move is Move.ADD_SERVER:
            is_short = self._live < limits.least
            return self._live < limits.most and (is_short or facts.calm_ms < self._idle_ms)
        return self._live > limits.most or (self._live > limits.least and facts.quiet_ms > 0)


def fits(new: NewDecision, live: int, limits: ServerLimits) -> bool:
    """Whether what was decided for as many servers as there were may be asked for by now."""
    return new.before == live and limits.least <= new.after <= limits.most


def came_true(new: NewDecision, live: int) -> bool:
    """Whether there are as many servers as decided, or more or fewer in its direction."""
    return live >= new.after if new.move is Move.ADD_SERVER else live <= new.after
