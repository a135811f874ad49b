"""The settings of computing statistics."""

from __future__ import annotations

import re
from typing import Final

from icewright.model.actions.compute_statistics import COLUMNS_MAX
from icewright.model.policy.setting_values import Setting, duration_ms, ratio, yes_or_no

COMPUTES_KEY: Final = "icewright.compute-statistics.enabled"
COLUMNS_KEY: Final = "icewright.compute-statistics.columns"
MIN_CHANGE_KEY: Final = "icewright.compute-statistics.min-change"
INTERVAL_KEY: Final = "icewright.compute-statistics.interval"

PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}", re.ASCII)
"""Names that Iceberg's action cannot read as anything but one column of the top level: it parses them as Spark does."""


def column_list(text: str) -> tuple[str, ...]:
    """Names of columns between commas, each once."""
    names = tuple(part.strip() for part in text.split(",", COLUMNS_MAX))
    if len(names) > COLUMNS_MAX or len(set(names)) < len(names) or not all(map(PLAIN_NAME.fullmatch, names)):
        raise ValueError(text)
    return names


STATISTICS_SETTINGS: Final = (
    Setting(
        COMPUTES_KEY,
        "computes_statistics",
        yes_or_no,
        False,
        "Compute statistics of the current snapshot in mode `auto`, after all work on files: "
        "distinct values of columns, and figures of partitions. [More](compute-statistics.md).",
    ),
    Setting(
        COLUMNS_KEY,
        "statistics_columns",
        column_list,
        None,
        "Which columns get distinct values. Without it: those of partition specs and the sort order, then others whose "
        "types are joined by, 32 at most.",
        f"names of columns of the top level with commas between them, {COLUMNS_MAX} at most (user_id, country)",
    ),
    Setting(
        MIN_CHANGE_KEY,
        "statistics_min_change",
        ratio,
        0.1,
        "Statistics are computed again once rows of this share of the table were added or removed since the snapshot "
        "that they are of.",
    ),
    Setting(
        INTERVAL_KEY,
        "statistics_interval_ms",
        duration_ms,
        72_000_000,
        "Statistics are computed automatically at most once in this time; the default finds the same window each day.",
    ),
)
