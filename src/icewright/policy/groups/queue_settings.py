"""The settings of the queue: to which group the tasks of a table belong, and when it is their turn."""

from __future__ import annotations

from typing import Final

from icewright.core.errors import InvalidResourceGroup
from icewright.model.policy.policy import RealTime
from icewright.model.policy.resource_groups import DEFAULT_GROUP, ResourceGroup
from icewright.model.policy.setting_values import Setting, duration_ms, whole_number

GROUP_KEY: Final = "icewright.resource-group"
PRIORITY_KEY: Final = "icewright.priority"
REAL_TIME_KEY: Final = "icewright.real-time"
REAL_TIME_INTERVAL_KEY: Final = "icewright.real-time.commit-interval"
LARGE_SUCCESSES_KEY: Final = "icewright.large-queue.successes"

PRIORITY_MAX: Final = 10
"""Each point is ten minutes: more than a few hours' difference would be a lane of its own."""
_LARGE_SUCCESSES_MAX: Final = 100


def _group(text: str) -> str:
    try:
        return ResourceGroup(text).name
    except InvalidResourceGroup as error:
        raise ValueError(text) from error


def _priority(text: str) -> int:
    return -whole_number(0, PRIORITY_MAX)(text[1:]) if text[:1] == "-" else whole_number(0, PRIORITY_MAX)(text)


QUEUE_SETTINGS: Final = (
    Setting(
        GROUP_KEY,
        "resource_group",
        _group,
        DEFAULT_GROUP,
        "To which [resource group](queue.md#resource-groups) the table's tasks belong. A group that is not defined "
        "starts none of them.",
        "the name of a resource group: letters, digits, _, . and -",
    ),
    Setting(
        PRIORITY_KEY,
        "priority",
        _priority,
        0,
        "Which of an owner's tables start first if equally urgent: a point is worth ten minutes of waiting.",
        f"a whole number, -{PRIORITY_MAX} to {PRIORITY_MAX}",
    ),
    Setting(
        REAL_TIME_KEY,
        "real_time",
        RealTime,
        RealTime.AUTO,
        "Whether the table's tasks start before all that are not real-time: `auto` decides by how often it is "
        "committed to.",
        "auto, true or false",
    ),
    Setting(
        REAL_TIME_INTERVAL_KEY,
        "real_time_interval_ms",
        duration_ms,
        60_000,
        "`auto`: a table is real-time when its commits are no further apart than this, as the median of the latest.",
    ),
    Setting(
        LARGE_SUCCESSES_KEY,
        "large_successes",
        whole_number(1, _LARGE_SUCCESSES_MAX),
        3,
        "A table whose task ran out of memory has its tasks in the [large queue](queue.md#the-large-queue) until so "
        "many in a row have succeeded there.",
        f"a whole number, 1 to {_LARGE_SUCCESSES_MAX}",
    ),
)
