"""Which snapshots and refs of a table expire, and why; or why none does.

Metadata only. Whatever makes the answer uncertain (clocks that contradict each other, a history that is not whole, a
place that others lay claim to) makes it "none", with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from icewright.actions.expire_snapshots.obstacles import expiry_obstacle, kind_and_name
from icewright.actions.expire_snapshots.settings import AGE_FLOOR_MS
from icewright.actions.expire_snapshots.staying_files import Staying, staying
from icewright.actions.undo.second_table import said_beforehand, second_name
from icewright.core import wording
from icewright.core.times import Instant
from icewright.model.actions.expire_snapshots import (
    RETAIN_LAST_MIN,
    SNAPSHOTS_MAX,
    ExpireSnapshots,
    ExpireSnapshotsPrediction,
    ExpiryRule,
    Hold,
    RefAt,
)
from icewright.model.actions.undo import UNDO_WINDOW_MS
from icewright.model.iceberg.names import TableName
from icewright.model.iceberg.tables import MAIN_BRANCH, TableMetadata
from icewright.model.plans.plans import Reason
from icewright.model.policy.policy import Policy
from icewright.plans.eligibility import metadata_obstacle
from icewright.plans.procedure_call import procedure_call
from icewright.plans.standalone_plan import Decided

_METADATA_FILES_MIN: Final = 20
_PREVIOUS_VERSIONS: Final = "write.metadata.previous-versions-max"
_DELETE_AFTER_COMMIT: Final = "write.metadata.delete-after-commit.enabled"
_NAMED_MAX: Final = 5
_DIGITS_MAX: Final = 10


ExpiryDecision: TypeAlias = Decided[ExpireSnapshots, ExpireSnapshotsPrediction]
"""``notes`` are what stays and by what, and what is to be known."""


def automatic_rule(policy: Policy) -> ExpiryRule:
    """The rule by which snapshots expire by themselves: what the owner says, and never less than a day."""
    return ExpiryRule(max(policy.max_snapshot_age_ms, AGE_FLOOR_MS), policy.min_snapshots_to_keep)


def asked_rule(policy: Policy, older_than_ms: int | None, retain_last: int | None) -> ExpiryRule:
    """The rule that a person asks for; what the person does not say, the owner does. Raises ``ValueError``."""
    if retain_last is not None and retain_last < RETAIN_LAST_MIN:
        raise ValueError(f"at least {RETAIN_LAST_MIN} snapshot of each branch stays")
    if older_than_ms is not None and older_than_ms < 0:
        raise ValueError("an age is not negative")
    return ExpiryRule(
        policy.max_snapshot_age_ms if older_than_ms is None else older_than_ms,
        policy.min_snapshots_to_keep if retain_last is None else retain_last,
    )


def decide_expiry(
    metadata: TableMetadata,
    policy: Policy,
    rule: ExpiryRule,
    now: Instant,
    *,
    can_put_back: bool,
    findings: Sequence[Reason] = (),
    holds: Iterable[Hold] = (),
    first_seen: Mapping[int, Instant] | None = None,
) -> ExpiryDecision:
    """What expires of a table as it is now, under a rule with a number of snapshots to retain.

    ``can_put_back`` is whether its catalog takes snapshots back. ``findings`` say whose else the table's place is;
    any refuses all. ``holds`` are those of tasks, and of consumers that the table itself does not know. ``first_seen``
    is given for what runs by itself, and only then.
    """
    obstacle = metadata_obstacle(metadata, policy) or expiry_obstacle(metadata, rule, now, findings)
    if obstacle is not None:
        return Decided(obstacle)
    stays = staying(metadata, rule, now, max_hold_ms=policy.max_hold_ms, holds=holds, first_seen=first_seen)
    ages = sorted(metadata.snapshots, key=lambda one: (one.sequence_number, one.committed_at))
    gone = [one.snapshot_id for one in ages if one.snapshot_id not in stays.snapshots]
    gone, left = gone[:SNAPSHOTS_MAX], len(gone[SNAPSHOTS_MAX:])
    going = frozenset(gone)
    refs_gone = tuple(RefAt.of(ref) for ref in metadata.refs if ref not in stays.refs)
    notes = (*_notes(stays, left), *stays.findings, *_warnings(metadata))
    if not gone and not refs_gone:
        return Decided(_nothing_old_enough(metadata, rule), notes=notes)
    action = ExpireSnapshots(
        base_metadata_location=metadata.metadata_location,
        base_snapshot_id=metadata.current_snapshot_id,
        snapshot_ids=tuple(gone),
        refs_removed=refs_gone,
        refs_seen=tuple(RefAt.of(ref) for ref in metadata.refs),
        retained_snapshot_ids=tuple(one.snapshot_id for one in ages if one.snapshot_id not in going),
        rule=rule,
        as_of=now,
        max_hold_ms=policy.max_hold_ms,
    )
    prediction = _prediction(metadata, action, can_put_back=can_put_back)
    return Decided(_reason(action, notes), action, prediction, notes)


def _nothing_old_enough(metadata: TableMetadata, rule: ExpiryRule) -> Reason:
    old = f"older than {wording.duration(rule.older_than_ms)}, " if rule.older_than_ms else ""
    text = (
        f"nothing to do: none of {wording.count(len(metadata.snapshots), 'snapshot')} is {old}not among the last "
        f"{rule.retain_last or RETAIN_LAST_MIN:,} of a branch, and not needed otherwise"
    )
    return Reason("nothing-expires", text, {"snapshots": len(metadata.snapshots)})


def _reason(action: ExpireSnapshots, notes: Sequence[Reason]) -> Reason:
    """``42 snapshots older than 5 d; kept: ...``."""
    gone = wording.count(len(action.snapshot_ids), "snapshot")
    age_ms = action.rule.older_than_ms
    parts = [f"{gone} older than {wording.duration(age_ms)}" if age_ms else f"{gone} of any age"]
    if action.refs_removed:
        names = [wording.name(ref.name) for ref in action.refs_removed]
        parts.append(f"refs past their age: {wording.shortened(names)}")
    kept = [note.text for note in notes if note.code.startswith("kept-")]
    if kept:
        parts.append("kept: " + "; ".join(kept))
    figures = {"snapshots": len(action.snapshot_ids), "refs": len(action.refs_removed)}
    return Reason("expire-snapshots", "; ".join(parts), figures)


def _notes(stays: Staying, left: int) -> list[Reason]:
    """What stays, by what keeps it; each snapshot is counted where it is kept first."""
    notes = [_note("kept-by-rule", f"{len(stays.by_rule):,} by age and number", len(stays.by_rule))]
    named = [ref for ref in stays.refs if ref.name != MAIN_BRANCH]
    if named:
        told = wording.shortened([kind_and_name(ref) for ref in named])
        notes.append(_note("kept-by-refs", told, len({ref.snapshot_id for ref in named})))
    if stays.by_clock:
        text = f"{len(stays.by_clock):,} that became current, were rolled back or were first seen lately"
        notes.append(_note("kept-by-clock", text, len(stays.by_clock)))
    for who, ids in list(stays.held.items())[:_NAMED_MAX]:
        notes.append(_note("kept-by-hold", f"{who} ({len(ids):,})", len(ids)))
    if len(stays.held) > _NAMED_MAX:
        notes.append(_note("kept-by-hold", f"{len(stays.held) - _NAMED_MAX:,} more who read on", len(stays.held)))
    if left:
        notes.append(_note("kept-for-later", f"{left:,} for the next time", left))
    return notes


def _note(code: str, text: str, snapshots: int) -> Reason:
    return Reason(code, text, {"snapshots": snapshots})


def _warnings(metadata: TableMetadata) -> list[Reason]:
    """What makes it harder to look back or to undo."""
    text = metadata.properties.get(_PREVIOUS_VERSIONS, "")
    kept = int(text) if text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX else None
    deletes = metadata.properties.get(_DELETE_AFTER_COMMIT, "").lower() == "true"
    if deletes and kept is not None and kept < _METADATA_FILES_MIN:
        said = (
            f"writers delete metadata files after {kept} commits ({_PREVIOUS_VERSIONS}={kept}, {_DELETE_AFTER_COMMIT}"
            "=true): readers lose theirs, and what a commit removed soon becomes unknown"
        )
        return [Reason("few-metadata-files", said, {"previous_versions_max": kept})]
    return []


def _prediction(metadata: TableMetadata, action: ExpireSnapshots, *, can_put_back: bool) -> ExpireSnapshotsPrediction:
    gone = frozenset(action.snapshot_ids)
    lists = {one.manifest_list for one in metadata.snapshots if one.snapshot_id in gone and one.manifest_list}
    second = None if can_put_back else second_name(metadata.name, action.as_of)
    undo = (
        f"the snapshots and refs can be put back into the metadata for {wording.duration(UNDO_WINDOW_MS)}, as long as "
        "their files are there: `icewright undo TASK_ID`"
        if second is None
        else said_beforehand(second)
    )
    return ExpireSnapshotsPrediction(
        snapshots_before=len(metadata.snapshots),
        snapshots_after=len(metadata.snapshots) - len(gone),
        refs_removed=tuple(ref.name for ref in action.refs_removed),
        manifest_lists=len(lists),
        call=expire_call(metadata.name, action),
        can_be_undone=True,
        undo=undo,
        second_table=second,
    )


def wanted_less(action: ExpireSnapshots, policy: Policy) -> Reason | None:
    """Why the owner wants less to expire by itself by now than an action does."""
    wanted = automatic_rule(policy)
    kept = (action.rule.older_than_ms, action.rule.retain_last or RETAIN_LAST_MIN, action.max_hold_ms)
    least = (wanted.older_than_ms, wanted.retain_last or RETAIN_LAST_MIN, policy.max_hold_ms)
    if any(one < other for one, other in zip(kept, least, strict=True)):
        return Reason("upkeep-changed", "the policy now keeps snapshots longer, or more of them")
    return None


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def expire_call(name: TableName, action: ExpireSnapshots) -> str:
    """One SQL statement. Its instant has a zone: without one, Spark takes that of the session.

    The procedure also deletes files at once, which the action does not.
    """
    arguments = []
    if action.rule.older_than_ms <= action.as_of:
        oldest_at = _EPOCH + timedelta(milliseconds=action.as_of - action.rule.older_than_ms)
        arguments.append(f"older_than => TIMESTAMP '{oldest_at:%Y-%m-%d %H:%M:%S}.{oldest_at.microsecond // 1000:03}Z'")
    if action.rule.retain_last is not None:
        arguments.append(f"retain_last => {action.rule.retain_last}")
    return procedure_call(name, "expire_snapshots", *arguments)
