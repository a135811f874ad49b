"""The settings of analyzing queries."""

from __future__ import annotations

from typing import Final

from icewright.model.policy.setting_values import DURATIONS, DurationWithin, Setting, ratio, yes_or_no

ANALYZES_KEY: Final = "icewright.analyze-queries.enabled"
DAY_MS: Final = 86_400_000
_INTERVAL_MS_MAX: Final = 52 * 7 * DAY_MS

ANALYSIS_SETTINGS: Final = (
    Setting(
        ANALYZES_KEY,
        "analyzes_queries",
        yes_or_no,
        True,
        "true or false",
        "Analyze the queries of the table once per interval, in every mode, where the server keeps a table of queries. "
        "It only reads. [More](recommendations.md#automatic-analysis).",
    ),
    Setting(
        "icewright.analyze-queries.interval",
        "analysis_interval_ms",
        DurationWithin(DAY_MS, _INTERVAL_MS_MAX),
        7 * DAY_MS,
        f"{DURATIONS}, P1D to P52W",
        "How far apart analyses are. Default: a week, since most reports run daily or weekly.",
    ),
    Setting(
        "icewright.analyze-queries.drift",
        "analysis_drift",
        ratio,
        0.5,
        "a number above 0, at most 1",
        "Analyze earlier, after a day at least, once this share of the queries since the last analysis have templates "
        "that it did not see. Default: half, from which on most queries are other ones than it analyzed.",
    ),
)
