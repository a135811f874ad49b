"""The settings of the breaker, which parks a table whose work keeps coming to nothing."""

from __future__ import annotations

from typing import Final

from icewright.model.policy.setting_values import DurationWithin, Setting, whole_number

_MOST: Final = 10
"""As :data:`icewright.model.work.breaker.THRESHOLD_MAX`; a test compares them."""
_AT_LEAST_ONE: Final = f"a whole number, 1 to {_MOST}"

BREAKER_SETTINGS: Final = (
    Setting(
        "icewright.breaker.conflicts",
        "breaker_conflicts",
        whole_number(1, _MOST),
        5,
        _AT_LEAST_ONE,
        "So many tasks of one kind that met other commits, none in between that succeeded, park that kind of work on "
        "the table. [More](operations.md#parked).",
    ),
    Setting(
        "icewright.breaker.failures",
        "breaker_failures",
        whole_number(1, _MOST),
        5,
        _AT_LEAST_ONE,
        "The same of tasks that failed from one [cause](operations.md#what-is-tried-again). As many as the greater of "
        "both from several causes do so as well.",
    ),
    Setting(
        "icewright.breaker.park-for",
        "parked_ms",
        DurationWithin(60_000, 30 * 86_400_000),
        86_400_000,
        "an ISO-8601 duration, PT1M to P30D",
        "For how long. The next task then has one try, which closes the breaker or opens it again.",
    ),
)
