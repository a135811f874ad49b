"""Whether an expiry by itself is worth a commit now, or can wait until more has gathered.

Each commit writes the whole metadata file anew, is one more that others may meet, and leaves the file of before behind.
One snapshot less of many is worth none of that, but nothing may stay for ever either.
"""

from __future__ import annotations

from typing import Final

from icewright.core import wording
from icewright.model.actions.expire_snapshots import ExpireSnapshots
from icewright.model.plans.plans import Reason

LEAST: Final = 100
"""So many snapshots and refs at once are worth a commit: each was one of the table's own, so that expiries are a
hundredth of its commits."""
LEAST_SHARE: Final = 0.5
"""So large a share of a table's snapshots is, too: what reads its metadata reads half of it from then on."""
LONGEST_MS: Final = 72_000_000
"""Whatever it is goes 20 hours after the last expiry: once a day, also in the night in which clocks are changed, and
however much sooner than last night its turn comes within a maintenance window."""


def too_little(action: ExpireSnapshots, snapshots: int, rested_ms: int | None) -> Reason | None:
    """Why what would expire is left for a later commit, or None.

    ``snapshots`` are all that the table has; ``rested_ms`` is how long ago some of them last expired, None when none
    ever did. Less than 0, of a clock that was set back, says nothing.
    """
    gone = len(action.snapshot_ids) + len(action.refs_removed)
    if rested_ms is None or not 0 <= rested_ms < LONGEST_MS:
        return None
    if gone >= LEAST or len(action.snapshot_ids) >= LEAST_SHARE * snapshots:
        return None
    text = (
        f"nothing to do yet: {gone:,} of {wording.count(snapshots, 'snapshot')} would expire: a commit takes "
        f"{LEAST:,}, half of them, or {wording.duration(LONGEST_MS)} since the last one, which was "
        f"{wording.about(rested_ms)} ago"
    )
    return Reason("too-little-yet", text, {"snapshots": gone, "rested_ms": rested_ms})
