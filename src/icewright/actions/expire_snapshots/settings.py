"""The settings of expiring snapshots: Iceberg's own properties where it has them, ours for what it has not.

``history.expire.max-ref-age-ms`` and the settings of single refs are read where Iceberg's rules are applied
(:mod:`icewright.inventory.snapshot_retention`).
"""

from __future__ import annotations

from typing import Final

from icewright.model.actions.expire_snapshots import MAX_HOLD_MS, RETAIN_LAST_MIN
from icewright.model.policy.setting_values import Setting, duration_ms, whole_number, yes_or_no

EXPIRES_KEY: Final = "icewright.expire-snapshots.enabled"
REMOVES_FILES_KEY: Final = "icewright.expire-snapshots.remove-files"
MAX_HOLD_KEY: Final = "icewright.expire-snapshots.max-hold"
MAX_AGE_KEY: Final = "history.expire.max-snapshot-age-ms"
MIN_KEPT_KEY: Final = "history.expire.min-snapshots-to-keep"

AGE_FLOOR_MS: Final = 86_400_000
"""No snapshot that is younger expires by itself, whatever any setting says."""

EXPIRY_SETTINGS: Final = (
    Setting(
        EXPIRES_KEY,
        "expires_snapshots",
        yes_or_no,
        False,
        "Expire snapshots in mode `auto`, once an hour at most: those that are older than the age "
        "below, by their own clock and by when icewright first saw them, and older than a day in any case.",
    ),
    Setting(
        REMOVES_FILES_KEY,
        "removes_expired_files",
        yes_or_no,
        False,
        "Move the files that only expired snapshots needed into the quarantine of the catalog, a day after the "
        "expiry was verified, in mode `auto`. The first time that files of the table are removed, a person approves.",
    ),
    Setting(
        MAX_AGE_KEY,
        "max_snapshot_age_ms",
        whole_number(1),
        432_000_000,
        "Snapshots that are older may expire: Iceberg's own property and default, 5 days.",
        "a whole number of milliseconds, at least 1, in digits alone (432000000)",
    ),
    Setting(
        MIN_KEPT_KEY,
        "min_snapshots_to_keep",
        whole_number(RETAIN_LAST_MIN),
        10,
        "This many latest snapshots of each branch stay at any age: Iceberg's own property. Its default is 1, "
        "which leaves no snapshot to roll back to on a table that is rarely written.",
        "a whole number, at least 1",
    ),
    Setting(
        MAX_HOLD_KEY,
        "max_hold_ms",
        duration_ms,
        MAX_HOLD_MS,
        "How long a streaming consumer that is not heard of any more keeps snapshots from expiring.",
    ),
)
