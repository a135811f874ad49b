"""The settings of analyzing queries, and of accepting what an analysis recommends."""

from __future__ import annotations

from typing import Final

from icewright.model.policy.setting_values import DURATIONS, DurationWithin, Setting, number, ratio, yes_or_no

ANALYZES_KEY: Final = "icewright.analyze-queries.enabled"
ACCEPTS_KEY: Final = "icewright.accept-recommendations.enabled"
DAY_MS: Final = 86_400_000
_INTERVAL_MS_MAX: Final = 52 * 7 * DAY_MS

ANALYSIS_SETTINGS: Final = (
    Setting(
        ANALYZES_KEY,
        "analyzes_queries",
        yes_or_no,
        True,
        "Analyze the queries of the table once per interval, in every mode, where the server keeps a table of queries. "
        "It only reads. [More](recommendations.md#automatic-analysis).",
    ),
    Setting(
        "icewright.analyze-queries.interval",
        "analysis_interval_ms",
        DurationWithin(DAY_MS, _INTERVAL_MS_MAX),
        7 * DAY_MS,
        "How far apart analyses are. Default: a week, since most reports run daily or weekly.",
        f"{DURATIONS}, P1D to P52W",
    ),
    Setting(
        "icewright.analyze-queries.drift",
        "analysis_drift",
        ratio,
        0.5,
        "Analyze earlier, after a day at least, once this share of the queries since the last analysis have templates "
        "that it did not see. Default: half, from which on most queries are other ones than it analyzed.",
    ),
    Setting(
        ACCEPTS_KEY,
        "accepts_recommendations",
        yes_or_no,
        False,
        "Accept a recommendation in mode `auto` without a person, where it saves at least what the next two settings "
        "ask for. [More](recommendations.md#accepting-by-policy).",
    ),
    Setting(
        "icewright.accept-recommendations.min-saved-bytes-ratio",
        "accept_min_saved_bytes_ratio",
        ratio,
        0.3,
        "The share of the bytes read by later queries that a change must save by the unfavorable end of its 95 % "
        "interval. Default: the saving that the benchmark B4 counts as a gain.",
    ),
    Setting(
        "icewright.accept-recommendations.min-saved-cpu-seconds-per-day",
        "accept_min_saved_cpu_s_per_day",
        number,
        0.0,
        "The CPU seconds a day that a change must save by the low end of its 95 % interval. Default: no more than that "
        "it pays for its rewrite within a week, which every recommended change does.",
    ),
)
