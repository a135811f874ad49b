"""Calls that are refused: counted for the audit, and slowed where credentials are wrong again and again.

Whoever has valid credentials is never slowed, also at an address from which others fail. What is kept, what is written
and how many wait are bounded: a stranger fills neither memory nor audit, and takes no place of others.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final

import structlog

from icewright.audit.acting import acting_as
from icewright.audit.sql import SqlAudit
from icewright.core.errors import IcewrightError
from icewright.model.access.permissions import Act
from icewright.web.problems import Problem

_log = structlog.get_logger("icewright.api")

STRANGER_NAME: Final = "stranger"
"""As whom the audit has callers whose credentials are not known."""
OTHERS: Final = "others"
FREE_FAILURES: Final = 10
"""Failures of an address that are not slowed."""
FORGIVEN_EVERY_S: Final = 6.0
"""So often one failure of an address is forgotten."""
DELAY_S_MAX: Final = 2.0
WAITING_MAX: Final = 100
"""Refusals that are held back at a time, of all addresses."""
WAITING_OF_ONE_MAX: Final = 4
"""Of one address; further ones are answered at once with 429."""
ADDRESSES_MAX: Final = 10_000
ADDRESSES_LOGGED_MAX: Final = 5
"""Addresses that the audit names in a minute; all others together are one more entry."""
PRINCIPALS_LOGGED_MAX: Final = 20
"""Of principals with a class of routes, the same."""
MINUTE_S: Final = 60.0

_CLASS: Final = re.compile(r"/api/v1/([a-z-]{1,30})(?:/|\Z)", re.ASCII)
_SLOWED: Final = Problem(
    HTTPStatus.TOO_MANY_REQUESTS,
    "too-many-requests",
    "credentials from this address were wrong too often",
    "send valid ones: these are taken at once",
)


class Denials:
    """What was refused lately. Safe for use by several threads."""

    def __init__(
        self,
        audit: SqlAudit,
        *,
        now_s: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._audit, self._now_s, self._sleep = audit, now_s, sleep
        self._lock = threading.Lock()
        self._failures: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """By address, how many failures count, as of when."""
        self._waiting: Counter[str] = Counter()
        self._told: Counter[tuple[str, str, str]] = Counter()
        """Since when ``_since_s`` says, by who, class of routes and code."""
        self._since_s = now_s()

    def forbidden(self, principal: str, path: str) -> None:
        """Somebody who is known asked for what they may not."""
        found = _CLASS.match(path)
        of = found[1] if found is not None else OTHERS
        self._count(principal, of, "forbidden", PRINCIPALS_LOGGED_MAX)

    async def wrong(self, address: str) -> Problem | None:
        """Credentials were wrong. Returns after a while where that is so again and again; a refusal for too many."""
        place = _place(address)
        self._count(STRANGER_NAME, place, "unauthenticated", ADDRESSES_LOGGED_MAX)
        failures = self._failed(place)
        if failures <= FREE_FAILURES:
            return None
        with self._lock:
            if self._waiting[place] >= WAITING_OF_ONE_MAX or self._waiting.total() >= WAITING_MAX:
                return _SLOWED
            self._waiting[place] += 1
        try:
            await self._sleep(min(DELAY_S_MAX, 0.1 * (failures - FREE_FAILURES)))
        finally:
            with self._lock:
                self._waiting[place] -= 1
                if not self._waiting[place]:
                    del self._waiting[place]
        return None

    @property
    def is_due(self) -> bool:
        """Whether there is something to be written: a minute is over in which something was refused."""
        return bool(self._told) and self._now_s() - self._since_s >= MINUTE_S

    def write(self) -> None:
        """Write what was refused into audit and log, an entry for each who, class of routes and code."""
        with self._lock:
            told, self._told, self._since_s = self._told, Counter(), self._now_s()
        for (who, of, code), calls in told.items():
            _log.warning("refused", who=who, of=of, code=code, calls=calls)
            try:
                with acting_as(who):
                    self._audit.append(Act("access.denied", of, {"code": code, "calls": calls}))
            except IcewrightError as error:
                _log.warning("refusals are not in the audit", detail=error.message)

    def _count(self, who: str, of: str, code: str, most: int) -> None:
        with self._lock:
            if not self._told:
                self._since_s = self._now_s()
            key = (who, of, code)
            if key not in self._told and sum(one[2] == code for one in self._told) >= most:
                key = (STRANGER_NAME if who == STRANGER_NAME else OTHERS, OTHERS, code)
            self._told[key] += 1

    def _failed(self, place: str) -> float:
        now_s = self._now_s()
        with self._lock:
            count, at_s = self._failures.pop(place, (0.0, now_s))
            count = max(0.0, count - (now_s - at_s) / FORGIVEN_EVERY_S) + 1
            self._failures[place] = count, now_s
            while len(self._failures) > ADDRESSES_MAX:
                self._failures.popitem(last=False)
        return count


def _place(address: str) -> str:
    """Whose an address is: of IPv6 its network of 64 bits, of which one client may have all."""
    try:
        found = ip_address(address)
    except ValueError:
        return OTHERS
    return str(ip_network((found, 64), strict=False)) if isinstance(found, IPv6Address) else str(found)
