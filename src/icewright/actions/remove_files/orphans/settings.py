"""The settings of removing orphan files. What nobody can ask for less of is in :mod:`.deletion`."""

from __future__ import annotations

from typing import Final

from icewright.model.actions.deletion import ORPHAN_GRACE_MS
from icewright.model.policy.setting_values import Setting, duration_ms, yes_or_no

REMOVES_KEY: Final = "icewright.remove-orphan-files.enabled"
ORPHAN_AGE_KEY: Final = "icewright.remove-orphan-files.older-than"

ORPHAN_SETTINGS: Final = (
    Setting(
        REMOVES_KEY,
        "removes_orphan_files",
        yes_or_no,
        False,
        "Look for orphan files once a day in mode `auto`, and move them into the quarantine of the catalog, "
        "where one is configured. The first time, and beyond the budget, a person approves.",
    ),
    Setting(
        ORPHAN_AGE_KEY,
        "orphan_age_ms",
        duration_ms,
        ORPHAN_GRACE_MS,
        "How long a file stays that nothing needs, after it was written and after it was first seen so. Less than 3 "
        "days counts as 3 days.",
    ),
)
