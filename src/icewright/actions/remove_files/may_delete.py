"""Whether a file may go, right before it would: the floors and guards of each file, and the budget of a whole plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from icewright.actions.remove_files.orphans.metadata_files import is_metadata_file
from icewright.core.errors import InvalidLocation
from icewright.core.reasons import Reason
from icewright.core.times import Instant
from icewright.model.actions.deletion import (
    BUDGET_PERCENT,
    FUTURE_MAX_MS,
    METADATA_FLOOR_MS,
    Cause,
    DeletePlan,
    DeleteSettings,
    Intent,
    Needs,
)
from icewright.model.iceberg.locations import Aliases, CanonicalPath, checksummed, is_ambiguous
from icewright.model.iceberg.objects import prefix_of
from icewright.ownership.model import Place

_VERSION_HINT: Final = "/version-hint.text"
_PERCENT: Final = 100


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known right before files go. ``now`` is the earliest of all clocks: the storages' and the store's.

    ``latest`` is the latest of them.
    """

    needs: Needs
    place: Place
    quarantines: Sequence[CanonicalPath]
    aliases: Aliases
    now: Instant
    latest: Instant
    graces_since: Instant = 0
    """When the clock jumped last: nothing is known to be older than that."""


def why_not(intent: Intent, cause: Cause, facts: Facts, settings: DeleteSettings) -> Reason | None:
    """Why a file must stay for good; None when it may go.

    Whatever may come right by waiting, such as its age, keeps it too: the next plan will find it again.
    """
    path = intent.object.path
    if path not in facts.needs.asked:
        return Reason("not-asked", "it was not checked whether the table needs it")
    if is_needed(path, facts.needs):
        return Reason("needed", "the table needs it now")
    if not _is_owned(path, facts):
        return Reason("not-owned", "it is in no place that belongs to this table alone")
    if not _is_plain(path, facts.aliases):
        return Reason("ambiguous-location", "a file system may know it by another path as well")
    if any(path.startswith(prefix_of(root)) for root in facts.quarantines):
        return Reason("in-quarantine", "it is in a quarantine")
    return _too_young(intent, cause, facts, settings)


def is_needed(path: CanonicalPath, needs: Needs) -> bool:
    """Whether the table needs a file, or the one that it is the checksum of."""
    return path in needs.needed or checksummed(path) in needs.needed


def may_be_purged(intent: Intent, facts: Facts, settings: DeleteSettings) -> bool:
    """Whether a file in quarantine may go for good.

    How old it is was asked when it went there, and no place is owned that overlaps a quarantine.
    """
    return _is_over(intent, facts, settings) and _is_plainly_owned(intent.object.path, facts)


def why_kept(held: Sequence[Intent], facts: Facts, settings: DeleteSettings) -> Reason | None:
    """Why files stay in quarantine that are over their time and not needed: the table owns their places no more.

    None where there are none.
    """
    kept = [one for one in held if _is_over(one, facts, settings) and not _is_plainly_owned(one.object.path, facts)]
    if not kept:
        return None
    findings = facts.place.findings
    because = f": {findings[0].text}" if findings else ""
    text = f"files over their time are in no place that belongs to this table alone, and stay{because}"
    return Reason("not-owned", text, {"files": len(kept)})


def _is_owned(path: CanonicalPath, facts: Facts) -> bool:
    """Whether the place is that of the very table that was asked, by its uuid, and the file lies in it."""
    return facts.place.uuid == facts.needs.table_id.uuid.strip().lower() and facts.place.owns(path)


def _is_plainly_owned(path: CanonicalPath, facts: Facts) -> bool:
    """Whether that is so by the one name of the file. An alias of its storage may have been declared since it went."""
    return _is_owned(path, facts) and _is_plain(path, facts.aliases)


def _is_over(intent: Intent, facts: Facts, settings: DeleteSettings) -> bool:
    """Whether a file has been in quarantine for its window, and the table was asked and does not need it."""
    path, held_at = intent.object.path, intent.held_at
    if path not in facts.needs.asked or is_needed(path, facts.needs):
        return False
    return held_at is not None and max(held_at, facts.graces_since) <= facts.now - settings.window


def beyond_budget(plan: DeletePlan, settings: DeleteSettings) -> Reason | None:
    """Why a plan needs somebody's approval. What our own proved commits replaced does not: it was known one by one."""
    if plan.cause is Cause.EXPIRED:
        return None
    files, size_bytes = len(plan.candidates), plan.bytes
    figures = {"files": files, "bytes": size_bytes, "table_bytes": plan.table_bytes}
    if files > settings.files_budget:
        return Reason("beyond-budget", f"{files} files are more than {settings.files_budget}", figures)
    if plan.doubtful:
        text = f"{plan.doubtful} files may not be the table's, by their names or times"
        return Reason("doubtful-files", text, {**figures, "doubtful": plan.doubtful})
    if size_bytes * _PERCENT > plan.table_bytes * BUDGET_PERCENT:
        return Reason("beyond-budget", f"they have more than {BUDGET_PERCENT} % of the table's bytes", figures)
    return None


def _too_young(intent: Intent, cause: Cause, facts: Facts, settings: DeleteSettings) -> Reason | None:
    now = facts.now
    modified_at = intent.object.modified_at
    if modified_at is None or modified_at <= 0 or modified_at > now + FUTURE_MAX_MS:
        return Reason("bad-time", "its storage says no time, or an impossible one, of when it was written")
    grace = settings.grace_of(cause)
    first_seen_at = max(intent.first_seen_at, facts.graces_since)
    if first_seen_at > now - grace or (cause is Cause.ORPHAN and modified_at > now - grace):
        return Reason("too-young", "it has not been without use for long enough")
    path = intent.object.path
    if (is_metadata_file(path) or path.endswith(_VERSION_HINT)) and modified_at > now - METADATA_FLOOR_MS:
        return Reason("young-metadata", "a metadata file of the last 30 days, by which the table could be found again")
    return None


def _is_plain(path: CanonicalPath, aliases: Aliases) -> bool:
    try:
        return aliases.canonical(path) == path and not is_ambiguous(path)
    except InvalidLocation:
        return False
