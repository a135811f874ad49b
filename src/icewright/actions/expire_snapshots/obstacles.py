"""Why nothing of a table may expire, whatever its age: asked when an expiry is planned, and again before its commit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from icewright.core import wording
from icewright.core.times import Instant
from icewright.model.actions.expire_snapshots import ExpiryRule
from icewright.model.iceberg.tables import Ref, TableMetadata
from icewright.model.plans.plans import Reason
from icewright.plans.eligibility import encryption_obstacle

CLOCKS_APART_MS_MAX: Final = 60_000
"""How far clocks of writers may be apart: what Iceberg itself allows within a table's logs."""


def expiry_obstacle(
    metadata: TableMetadata, rule: ExpiryRule, now: Instant, findings: Sequence[Reason] = ()
) -> Reason | None:
    """Why nothing of this table may expire whatever its age, or None."""
    if findings:
        return findings[0]
    if not metadata.collects_garbage:
        text = "gc.enabled=false on the table: another table may need its files, such as a clone"
        return Reason("gc-disabled", text)
    return (
        encryption_obstacle(metadata)
        or _history_obstacle(metadata)
        or (_clock_obstacle(metadata, now) if rule.older_than_ms else None)
    )


def _history_obstacle(metadata: TableMetadata) -> Reason | None:
    """Whether there are snapshots that this metadata does not have: not all of the table would then be known."""
    known = {one.snapshot_id for one in metadata.snapshots}
    if len(known) != len(metadata.snapshots):
        return Reason("snapshots-alike", "two of its snapshots have the same id")
    if metadata.current_snapshot_id is not None and metadata.current_snapshot_id not in known:
        text = f"snapshot {metadata.current_snapshot_id} is the current one, and the metadata does not have it"
        return Reason("snapshots-missing", text, {"snapshot_id": metadata.current_snapshot_id})
    for ref in metadata.refs:
        if ref.snapshot_id not in known:
            text = f"{kind_and_name(ref)} is at snapshot {ref.snapshot_id}, which the metadata does not have"
            return Reason("snapshots-missing", text, {"snapshot_id": ref.snapshot_id})
        settings = (ref.max_ref_age_ms, ref.max_snapshot_age_ms, ref.min_snapshots_to_keep)
        if any(one is not None and one <= 0 for one in settings):  # some mean "for ever" by it; the spec has no such
            text = f"{kind_and_name(ref)} has an age or a number to keep that is not above 0, which says nothing"
            return Reason("ref-settings", text, {"snapshot_id": ref.snapshot_id})
    for entry in metadata.snapshot_log:
        if entry.snapshot_id not in known:
            text = f"its log names snapshot {entry.snapshot_id}, which is not there: not all of the table is known"
            return Reason("snapshots-missing", text, {"snapshot_id": entry.snapshot_id})
    return None


def _clock_obstacle(metadata: TableMetadata, now: Instant) -> Reason | None:
    """Whether clocks contradict each other, so that no age can be trusted."""
    by_id = {one.snapshot_id: one for one in metadata.snapshots}
    numbered = sorted((one for one in metadata.snapshots if one.sequence_number), key=lambda one: one.sequence_number)
    pairs = [
        *((by_id[one.parent_id], one) for one in metadata.snapshots if one.parent_id in by_id and one.parent_id),
        *pairwise(numbered),
    ]
    for earlier, later in pairs:
        if earlier.committed_at - later.committed_at > CLOCKS_APART_MS_MAX:
            text = (
                f"snapshot {later.snapshot_id} came after {earlier.snapshot_id} and says that it is older "
                f"({wording.instant(later.committed_at)}, {wording.instant(earlier.committed_at)}): a clock is wrong"
            )
            return Reason("clocks", text, {"snapshot_id": later.snapshot_id})
    for log in (metadata.snapshot_log, metadata.metadata_log):
        times = [entry.at for entry in log]
        if any(one - other > CLOCKS_APART_MS_MAX for one, other in pairwise(times)):
            return Reason("clocks", "the times in its logs decrease: a clock is wrong")
    ahead = max((one.committed_at for one in metadata.snapshots), default=now)
    if ahead - now > CLOCKS_APART_MS_MAX:
        return Reason("clocks", f"a snapshot is dated {wording.instant(ahead)}, in the future")
    return None


def kind_and_name(ref: Ref) -> str:
    """``tag v1``."""
    return f"{ref.kind.value} {wording.name(ref.name)}"
