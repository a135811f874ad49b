"""The settings of maintenance windows."""

from __future__ import annotations

from typing import Final

from icewright.model.policy.setting_values import DurationWithin, Setting
from icewright.model.policy.time_windows import parse_cron, parse_time_zone

WINDOW_CRON_KEY: Final = "icewright.maintenance-window.cron"
WINDOW_ZONE_KEY: Final = "icewright.maintenance-window.time-zone"
WINDOW_DURATION_KEY: Final = "icewright.maintenance-window.duration"

WINDOW_SETTINGS: Final = (
    Setting(
        WINDOW_CRON_KEY,
        "window_cron",
        parse_cron,
        None,
        "When the windows open in which automatic upkeep may run (everything but work on data files). Without "
        "it that is at any time. [More](policy.md#maintenance-windows).",
        "a cron expression of five fields (0 2 * * MON-FRI)",
    ),
    Setting(
        WINDOW_ZONE_KEY,
        "window_time_zone",
        parse_time_zone,
        "UTC",
        "By whose clocks they open and close.",
        "the name of a time zone (Europe/Berlin)",
    ),
    Setting(
        WINDOW_DURATION_KEY,
        "window_duration_ms",
        DurationWithin(60_000, 7 * 86_400_000),
        4 * 3_600_000,
        "How long each stays open. A task that began in it may end after it.",
        "an ISO-8601 duration, PT1M to P7D",
    ),
)
