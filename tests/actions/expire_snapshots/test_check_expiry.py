"""Each thing that an expiry must not be is built into a sound one, and found: removing a check is noticed here."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from icewright.actions.expire_snapshots.check import check_expiry
from icewright.model.actions.expire_snapshots import ExpireSnapshots, ExpiryRule, Hold, RefAt
from icewright.model.iceberg.tables import LoggedSnapshot, Ref, RefKind, TableMetadata
from tests.builders.expiring import AGED, DAYS, decided, histories, line, of, policy, rules
from tests.builders.observations import DAY_MS, HOUR_MS, MINUTE_MS, NOW
from tests.cases import each_case
from tests.narrowing import not_none

SEEN = dict.fromkeys(range(1, 9), NOW - 10 * DAY_MS)


def planned(metadata: TableMetadata, rule: ExpiryRule = AGED, **more: Any) -> ExpireSnapshots:
    return not_none(decided(metadata, rule, **more).action)


def codes(action: ExpireSnapshots, metadata: TableMetadata = DAYS, **more: Any) -> set[str]:
    found = check_expiry(action, metadata, policy(metadata), now=NOW, **{"first_seen": None, **more})
    return {code for code, _ in found}


SOUND = planned(DAYS)


@given(histories(), rules, st.sets(st.integers(1, 10)), st.booleans())
def test_what_is_planned_is_sound(metadata: TableMetadata, rule: ExpiryRule, held: set[int], alone: bool) -> None:  # noqa: FBT001 - drawn
    seen = dict.fromkeys(range(1, 11), NOW - 10 * DAY_MS) if alone else None
    if alone:
        rule = ExpiryRule(max(rule.older_than_ms, 5 * DAY_MS), 10)
    holds = tuple(Hold(f"task {one}", one) for one in held)
    action = decided(metadata, rule, holds=holds, first_seen=seen).action
    assert action is None or codes(action, metadata, first_seen=seen, held=held) == set()


def taking(*more: int) -> ExpireSnapshots:
    ids = tuple(sorted({*SOUND.snapshot_ids, *more}))
    return replace(
        SOUND,
        snapshot_ids=ids,
        retained_snapshot_ids=tuple(one for one in SOUND.retained_snapshot_ids if one not in more),
    )


@each_case(
    ("action", "expected"),
    [
        (SOUND, set()),
        (taking(6), {"too-young", "branch-needs-it"}),
        (taking(8), {"too-young", "branch-needs-it", "current", "ref-needs-it"}),
        (replace(SOUND, base_metadata_location="elsewhere"), {"wrong-base"}),
        (replace(SOUND, base_snapshot_id=7), {"wrong-base"}),
        (replace(SOUND, as_of=NOW - 1), {"wrong-instant"}),
        (replace(SOUND, max_hold_ms=1), {"wrong-hold"}),
        (replace(SOUND, snapshot_ids=SOUND.snapshot_ids[1:]), {"miscounted"}),
        (replace(SOUND, retained_snapshot_ids=(*SOUND.retained_snapshot_ids, 99)), {"miscounted"}),
        (replace(SOUND, refs_seen=()), {"miscounted"}),
        (replace(SOUND, refs_removed=(RefAt("x", RefKind.TAG, 1),)), {"miscounted"}),
        (replace(SOUND, refs_removed=SOUND.refs_seen), {"ref-not-old"}),
        (replace(SOUND, snapshot_ids=(), retained_snapshot_ids=tuple(range(1, 9))), {"nothing"}),
        (replace(SOUND, rule=ExpiryRule(5 * DAY_MS, None)), {"retains-none"}),
        (replace(SOUND, rule=ExpiryRule(5 * DAY_MS, 0)), {"retains-none"}),
        (replace(SOUND, rule=ExpiryRule(-1, 1)), {"wrong-age"}),
        (replace(SOUND, rule=ExpiryRule(12 * DAY_MS, 1)), {"too-young", "branch-needs-it"}),
        (replace(SOUND, rule=ExpiryRule(5 * DAY_MS, 5)), {"branch-needs-it"}),
    ],
)
def test_each_wrong_action_is_found(action: ExpireSnapshots, expected: set[str]) -> None:
    assert codes(action) == expected


@each_case(
    ("metadata", "expected"),
    [
        (replace(DAYS, properties={"gc.enabled": "false"}), {"gc-disabled"}),
        (replace(DAYS, properties={"encryption.key-id": "k"}), {"encrypted"}),
        (replace(DAYS, properties={"icewright.mode": "?"}), {"policy-problems"}),
        (replace(DAYS, has_uuid=False), {"no-uuid"}),
        (replace(DAYS, snapshot_log=(LoggedSnapshot(0, 77),)), {"partial-history"}),
        (replace(DAYS, refs=(*DAYS.refs, Ref("t", RefKind.TAG, 2))), {"miscounted", "ref-needs-it"}),
        (replace(DAYS, properties={"icewright.consumer.c": "4"}), {"reader-needs-it"}),
        (
            replace(
                DAYS,
                snapshots=tuple(
                    replace(one, summary={"flink.job-id": "j", "flink.max-committed-checkpoint-id": "1"})
                    if one.snapshot_id == 4
                    else one
                    for one in DAYS.snapshots
                ),
            ),
            {"reader-needs-it"},
        ),
        (replace(DAYS, snapshots=(*DAYS.snapshots[:-1], of(8, 3 * DAY_MS))), {"clocks"}),
        (replace(DAYS, snapshots=(*DAYS.snapshots[:-1], of(8, -2 * MINUTE_MS))), {"clocks"}),
    ],
)
def test_each_table_that_it_is_wrong_for_is_found(metadata: TableMetadata, expected: set[str]) -> None:
    assert codes(SOUND, metadata) == expected


def test_e11_what_runs_by_itself_keeps_to_policy_and_floor() -> None:
    assert codes(SOUND, first_seen=SEEN) == {"below-policy"}
    metadata = replace(DAYS, properties={"history.expire.min-snapshots-to-keep": "1"})
    assert codes(SOUND, metadata, first_seen=SEEN) == set()
    assert codes(SOUND, metadata, first_seen={**SEEN, 3: NOW - HOUR_MS}) == {"below-floor"}
    assert codes(SOUND, metadata, first_seen={}) == {"below-floor"}


def test_a_task_that_goes_on_from_a_snapshot_is_found() -> None:
    assert codes(SOUND, held={5}) == {"reader-needs-it"}
    assert codes(SOUND, held={6, 99}) == set()


def test_a_ref_goes_by_its_age_alone() -> None:
    refs = (*DAYS.refs, Ref("t", RefKind.TAG, 8, max_ref_age_ms=DAY_MS - 1))
    metadata = replace(DAYS, refs=refs, properties={"history.expire.min-snapshots-to-keep": "1"})
    action = planned(metadata)
    assert [ref.name for ref in action.refs_removed] == ["t"]
    assert codes(action, metadata) == set()
    longer = replace(metadata, refs=(*DAYS.refs, replace(refs[-1], max_ref_age_ms=DAY_MS)))
    assert codes(action, longer) == {"ref-not-old"}
    younger = replace(metadata, snapshots=(*DAYS.snapshots[:-1], of(8, DAY_MS - 1)))
    younger = replace(younger, refs=(*DAYS.refs, replace(refs[-1], max_ref_age_ms=1)))
    assert codes(action, younger) == set()
    assert codes(action, younger, first_seen=SEEN) == {"ref-not-old"}


def test_what_is_on_no_branch_is_as_old_as_the_rule_says() -> None:
    aside = replace(of(9, 4 * DAY_MS, 3), sequence_number=0)
    metadata = replace(line(20 * DAY_MS, 15 * DAY_MS, 10 * DAY_MS, 1 * DAY_MS, refs=()))
    metadata = replace(metadata, snapshots=(*metadata.snapshots, aside))
    metadata = replace(metadata, refs=(*metadata.refs, Ref("b", RefKind.BRANCH, 1, max_snapshot_age_ms=1)))
    action = planned(metadata)
    assert action.snapshot_ids == (2, 3)
    wrong = replace(
        action,
        snapshot_ids=(*action.snapshot_ids, 9),
        retained_snapshot_ids=tuple(one for one in action.retained_snapshot_ids if one != 9),
    )
    assert codes(wrong, metadata) == {"too-young"}


def test_the_checker_shares_nothing_with_the_planner() -> None:
    own = check_expiry.__module__
    names = {value.__module__ for value in vars(sys.modules[own]).values() if hasattr(value, "__module__")}
    assert not {name for name in names if re.match(r"icewright\.(?!core\.|model\.)", name)} - {own}
