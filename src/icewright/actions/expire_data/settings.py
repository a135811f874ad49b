"""The settings of expiring data, all of them ours: Iceberg has none."""

from __future__ import annotations

from typing import Final

from icewright.model.actions.expire_data import IntegerTime
from icewright.model.policy.setting_values import DurationWithin, Setting, yes_or_no
from icewright.model.policy.time_windows import parse_time_zone

DATA_EXPIRES_KEY: Final = "icewright.expire-data.enabled"
DATA_FIELD_KEY: Final = "icewright.expire-data.field"
DATA_AGE_KEY: Final = "icewright.expire-data.older-than"
DATA_ZONE_KEY: Final = "icewright.expire-data.time-zone"
DATA_INTEGERS_KEY: Final = "icewright.expire-data.integers"

_NAME_LENGTH_MAX: Final = 1_000
_DAY_MS: Final = 86_400_000

AGES: Final = "an ISO-8601 duration in weeks, or days, hours, minutes and seconds, a day to 36500 days (P90D, P13W)"
AGE: Final = DurationWithin(_DAY_MS, 36_500 * _DAY_MS)
"""Below a day a unit was mistaken rather than meant."""


def _column(text: str) -> str:
    if not text or len(text) > _NAME_LENGTH_MAX:
        raise ValueError(text)
    return text


DATA_SETTINGS: Final = (
    Setting(
        DATA_EXPIRES_KEY,
        "expires_data",
        yes_or_no,
        False,
        "Expire old partitions in mode `auto`, once in 20 hours at most, after work on data files; "
        "never more than a tenth of the table's rows at a time.",
    ),
    Setting(
        DATA_FIELD_KEY,
        "expire_data_field",
        _column,
        None,
        "The column with the age of rows, by which the table is partitioned (as it is, or by year, month, day "
        "or hour). Without it no data expires. [More](expire-data.md).",
        "the name of a column, as it is in the schema; within structs, names with dots between them",
    ),
    Setting(
        DATA_AGE_KEY,
        "expire_data_older_than_ms",
        AGE,
        None,
        "Partitions expire when all of their rows are older. Without it no data expires but by an age asked for.",
        AGES,
    ),
    Setting(
        DATA_ZONE_KEY,
        "expire_data_time_zone",
        parse_time_zone,
        "UTC",
        "Where days begin, and what clock dates and timestamps without a zone were read from.",
        "the name of a time zone (Europe/Berlin)",
    ),
    Setting(
        DATA_INTEGERS_KEY,
        "expire_data_integers",
        IntegerTime,
        None,
        "What the numbers mean where the column is of integers.",
        ", ".join(IntegerTime),
    ),
)
