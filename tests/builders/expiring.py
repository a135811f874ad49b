"""Tables for the tests of expiring snapshots: trees of snapshots whose clocks agree, with branches and tags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from icewright.actions.expire_snapshots.plan import ExpiryDecision, decide_expiry
from icewright.core.times import Instant
from icewright.model.actions.expire_snapshots import ExpiryRule, Hold
from icewright.model.iceberg.tables import MAIN_BRANCH, LoggedSnapshot, Ref, RefKind, Snapshot, TableMetadata
from icewright.model.policy.policy import Policy
from icewright.policy.effective import effective_policy
from tests.builders.observations import DAY_MS, HOUR_MS, NOW, snapshot, table

AGED = ExpiryRule(5 * DAY_MS, 1)
EVERYTHING = ExpiryRule(0, 1)


def of(number: int, age_ms: int, parent_id: int | None = None, summary: Mapping[str, str] | None = None) -> Snapshot:
    """Snapshot ``number`` of that age; its parent is the number before if nothing else is said, none for 0."""
    one = snapshot(number, NOW - age_ms, summary=summary)
    return one if parent_id is None else replace(one, parent_id=parent_id or None)


def logged(metadata: TableMetadata) -> TableMetadata:
    """With the log of a table whose current line was committed one by one."""
    line = reversed(metadata.ancestors())
    return replace(metadata, snapshot_log=tuple(LoggedSnapshot(one.committed_at, one.snapshot_id) for one in line))


def line(*ages_ms: int, refs: Iterable[Ref] = (), **changes: Any) -> TableMetadata:
    """Snapshots 1, 2, ... on main, of these ages, the oldest first."""
    metadata = table([of(number, age) for number, age in enumerate(ages_ms, start=1)], **changes)
    return logged(replace(metadata, refs=(*metadata.refs, *refs)))


DAYS = line(*(days * DAY_MS for days in (20, 15, 10, 8, 6, 4, 2, 1)))
"""Eight snapshots on main; five of them are older than five days."""


def policy(metadata: TableMetadata) -> Policy:
    return effective_policy(metadata, ())


def decided(
    metadata: TableMetadata,
    rule: ExpiryRule = AGED,
    *,
    now: Instant = NOW,
    holds: Iterable[Hold] = (),
    first_seen: Mapping[int, Instant] | None = None,
    **more: Any,
) -> ExpiryDecision:
    return decide_expiry(
        metadata, policy(metadata), rule, now, can_put_back=True, holds=holds, first_seen=first_seen, **more
    )


def gone(metadata: TableMetadata, rule: ExpiryRule = AGED, **more: Any) -> set[int]:
    """The snapshots that would go."""
    action = decided(metadata, rule, **more).action
    return set() if action is None else set(action.snapshot_ids)


@st.composite
def histories(draw: st.DrawFn, spread_ms: int = 40 * DAY_MS) -> TableMetadata:
    """Up to ten snapshots in a tree, in the order of their clocks; main and other refs anywhere."""
    count = draw(st.integers(1, 10))
    ages = sorted(draw(st.lists(st.integers(0, spread_ms), min_size=count, max_size=count)), reverse=True)
    snapshots = [
        of(number, age, draw(st.integers(0, number - 1)) if draw(st.booleans()) else None)
        for number, age in enumerate(ages, start=1)
    ]
    ids = st.integers(1, count)
    limits = st.one_of(st.none(), st.integers(1, spread_ms))
    refs = tuple(
        Ref(
            f"r{number}",
            draw(st.sampled_from(RefKind)),
            draw(ids),
            draw(limits),
            draw(limits),
            draw(st.sampled_from([None, 1, 2])),
        )
        for number in range(draw(st.integers(0, 3)))
    )
    current = draw(ids)
    metadata = replace(
        table(snapshots),
        current_snapshot_id=current,
        refs=(Ref(MAIN_BRANCH, RefKind.BRANCH, current), *refs),
    )
    return logged(metadata)


rules = st.builds(ExpiryRule, st.sampled_from([0, HOUR_MS, DAY_MS, 5 * DAY_MS, 20 * DAY_MS]), st.integers(1, 4))
