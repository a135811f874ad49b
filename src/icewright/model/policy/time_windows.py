"""Maintenance windows: when what happens by itself may happen, by the clock on the owner's wall.

A window opens at each time that a cron expression names, and stays open for so long *by that clock*: one from two to
six in the morning is over at six, also in the night in which clocks are changed. So an hour that is skipped makes the
windows in it shorter, or leaves them out, and an hour that comes twice is open twice. Nothing else is special then.

Whether a window is open, and when it opens next, is computed from the instant alone. Nothing waits for it.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from icewright.core.times import Instant, Window
from icewright.model.iceberg.names import TableId
from icewright.model.policy.policy import Policy

WINDOW_CLOSED: Final = "window-closed"
"""The code of why something waits, or waited in vain: its window opens later."""
CRON_LENGTH_MAX: Final = 100
_CRON_FIELDS: Final = 5
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)
_DAY_MS: Final = 86_400_000
_ANY_DAY: Final = datetime(2000, 1, 1)  # noqa: DTZ001 - of the clock on a wall, in no zone
_OF_THIS_MACHINE: Final = frozenset({"localtime", "posixrules", "Factory"})


class WindowTextError(ValueError):
    """Text that is no cron expression or no time zone; the message says what is wrong with it."""


def window_of(policy: Policy) -> Window | None:
    """The window that an owner gives, None where upkeep may happen at any time."""
    if policy.window_cron is None:
        return None
    return Window(policy.window_cron, policy.window_time_zone, policy.window_duration_ms)


def spread(window: Window, table_id: TableId, *, was_left_out: bool = False) -> Window:
    """The window of one table of the many that may have the same.

    Each begins at a time of its own in the first half, the same each time: told by its uuid, so that 100,000 tables do
    not wake together, and each of them has half of the window at least. One that ``was_left_out`` of the last window,
    since that was too short for all, begins in the first eighth, or it would be left out each time.
    """
    digest = hashlib.sha256(table_id.uuid.encode(errors="surrogatepass")).digest()
    delay_ms = int.from_bytes(digest[:8]) % max(1, window.duration_ms // 2)
    return replace(window, delay_ms=delay_ms // 4 if was_left_out else delay_ms)


def opens_at(window: Window, at: Instant) -> Instant | None:
    """The first instant from ``at`` on at which the window is open, ``at`` itself where it is; None for never again."""
    zone = ZoneInfo(window.time_zone)
    while True:
        shown = _shown(zone, at)
        named = next(CronSim(window.cron, shown - window.duration_ms * _MS), None)
        if named is None:
            return None
        opens = named + window.delay_ms * _MS
        if opens <= shown:
            return at
        then = at + (opens - shown) // _MS
        changed_at = _clocks_change(zone, at, then)
        if changed_at is None:
            return then
        at = changed_at


def parse_cron(text: str) -> str:
    """A cron expression of five fields, as Debian's cron has them. Raises :class:`WindowTextError`."""
    if len(text) > CRON_LENGTH_MAX or not text.isascii():
        raise WindowTextError(f"it has more than {CRON_LENGTH_MAX} characters, or other ones than ASCII")
    if len(text.split()) != _CRON_FIELDS:
        raise WindowTextError("it takes minute, hour, day of the month, month and day of the week")
    try:
        first = next(CronSim(text, _ANY_DAY), None)
    except CronSimError as error:
        raise WindowTextError(f"its {str(error).removeprefix('Bad ')} cannot be read") from error
    if first is None:
        raise WindowTextError("there is no such day")
    return text


def parse_time_zone(text: str) -> str:
    """The name of a time zone, with its own letters' case. Raises :class:`WindowTextError`.

    Not that of the machine, whichever it is: the same policy means the same everywhere.
    """
    if text not in _time_zones():
        raise WindowTextError("names are as Europe/Berlin or UTC")
    return text


@cache
def _time_zones() -> frozenset[str]:
    """All names at once: asking for each would look for a file of a name that is a stranger's."""
    return frozenset(available_timezones()) - _OF_THIS_MACHINE


def _shown(zone: ZoneInfo, at: Instant) -> datetime:
    """What the clock on the wall shows at an instant, without a zone."""
    return (_EPOCH + at * _MS).astimezone(zone).replace(tzinfo=None)


def _ahead(zone: ZoneInfo, at: Instant) -> timedelta:
    return _shown(zone, at) - (_EPOCH + at * _MS).replace(tzinfo=None)


def _clocks_change(zone: ZoneInfo, after: Instant, until: Instant) -> Instant | None:
    """When clocks are changed for the first time after an instant, None where they are not ``until`` another."""
    ahead = _ahead(zone, after)
    while after < until:
        day = min(after + _DAY_MS, until)
        if _ahead(zone, day) != ahead:
            while day - after > 1:
                middle = (after + day) // 2
                after, day = (middle, day) if _ahead(zone, middle) == ahead else (after, middle)
            return day
        after = day
    return None
