"""Which snapshots expire and why: by Iceberg's rules, and never more than they say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icewright.actions.expire_snapshots import plan as expire_snapshots
from icewright.actions.expire_snapshots.check import check_expiry
from icewright.actions.expire_snapshots.plan import asked_rule, automatic_rule
from icewright.actions.expire_snapshots.settings import AGE_FLOOR_MS, MAX_AGE_KEY
from icewright.inventory.snapshot_retention import retained_refs, retained_snapshots
from icewright.model.actions.expire_snapshots import ExpiryRule, Hold, RefAt
from icewright.model.iceberg.tables import LoggedMetadata, LoggedSnapshot, Ref, RefKind, TableMetadata
from icewright.model.plans.plans import Reason
from tests.builders.expiring import AGED, DAYS, EVERYTHING, decided, gone, histories, line, logged, of, policy, rules
from tests.builders.observations import DAY_MS, HOUR_MS, MINUTE_MS, NOW, table
from tests.cases import each_case
from tests.narrowing import not_none

YEAR_MS = 365 * DAY_MS
TAG = Ref("v1", RefKind.TAG, 1)


def test_what_is_old_goes_and_it_says_what_stays_and_why() -> None:
    metadata = replace(DAYS, refs=(*DAYS.refs, TAG), properties={"icewright.consumer.nightly": "5"})
    decision = decided(metadata)
    assert decision.action is not None
    assert decision.action.snapshot_ids == (2, 3, 4)
    assert decision.action.retained_snapshot_ids == (1, 5, 6, 7, 8)
    assert decision.reason.text == (
        "3 snapshots older than 5 d; kept: 4 by age and number; tag v1; consumer nightly (1)"
    )
    assert decision.reason.figures == {"snapshots": 3, "refs": 0}


def test_the_prediction_is_exact_and_says_how_it_can_be_undone() -> None:
    for can_put_back in (True, False):
        rule = ExpiryRule(5 * DAY_MS, 2)
        found = not_none(
            expire_snapshots.decide_expiry(DAYS, policy(DAYS), rule, NOW, can_put_back=can_put_back).prediction
        )
        assert (found.snapshots_before, found.snapshots_after, found.manifest_lists) == (8, 3, 5)
        assert found.can_be_undone
        assert (found.second_table is None) is can_put_back
        assert found.call == (
            "CALL `lake`.system.expire_snapshots(table => '`sales`.`flights`', "
            "older_than => TIMESTAMP '2012-12-27 00:26:40.000Z', retain_last => 2)"
        )


@given(histories(), rules)
def test_what_a_person_asks_for_is_what_iceberg_would_do(metadata: TableMetadata, rule: ExpiryRule) -> None:
    """Without rollbacks, consumers and tasks."""
    action = decided(metadata, rule).action
    staying = retained_snapshots(metadata, rule, NOW)
    refs = retained_refs(metadata, NOW)
    went = set() if action is None else set(action.snapshot_ids)
    assert went == {one.snapshot_id for one in metadata.snapshots} - staying
    assert (action.refs_removed if action else ()) == tuple(RefAt.of(ref) for ref in metadata.refs if ref not in refs)


@given(histories(), rules, st.integers(0, 50 * DAY_MS))
def test_a_table_never_loses_what_it_is_at(metadata: TableMetadata, rule: ExpiryRule, later_ms: int) -> None:
    action = decided(metadata, rule, now=NOW + later_ms).action
    if action is None:
        return
    removed = {ref.name for ref in action.refs_removed}
    assert "main" not in removed
    kept = {ref.snapshot_id for ref in metadata.refs if ref.name not in removed}
    assert kept.isdisjoint(action.snapshot_ids)
    assert sorted([*action.snapshot_ids, *action.retained_snapshot_ids]) == [
        one.snapshot_id for one in metadata.snapshots
    ]


@pytest.mark.parametrize(
    ("ages_ms", "rule"),
    [
        ((3 * HOUR_MS, -HOUR_MS, HOUR_MS, 0), EVERYTHING),
        ((9 * DAY_MS, 5 * DAY_MS - 1, 5 * DAY_MS + 1, DAY_MS), AGED),
    ],
)
def test_a_snapshot_that_says_it_is_younger_than_those_behind_it_stays(
    ages_ms: tuple[int, ...], rule: ExpiryRule
) -> None:
    metadata = line(*ages_ms)
    action = not_none(decided(metadata, rule).action)
    assert action.snapshot_ids == (1, 3)
    assert check_expiry(action, metadata, policy(metadata), now=NOW, first_seen=None) == ()


@given(
    st.lists(st.integers(-HOUR_MS, 9 * HOUR_MS), min_size=2, max_size=8), st.integers(0, 3), st.integers(0, 8 * HOUR_MS)
)
def test_whatever_writers_clocks_say_the_plan_stands_up_to_its_check(
    ages_ms: list[int], retained: int, age_ms: int
) -> None:
    metadata = line(*ages_ms)
    for rule in (ExpiryRule(0, 1 + retained), ExpiryRule(age_ms, 1 + retained)):
        action = decided(metadata, rule).action
        if action is not None:
            assert check_expiry(action, metadata, policy(metadata), now=NOW, first_seen=None) == ()


def test_e1_each_branch_keeps_its_own_last_ones() -> None:
    side = [of(9, 9 * DAY_MS, 2), of(10, 7 * DAY_MS, 9)]
    metadata = replace(DAYS, snapshots=(*DAYS.snapshots, *side))
    metadata = replace(metadata, refs=(*metadata.refs, Ref("side", RefKind.BRANCH, 10)))
    metadata = replace(metadata, snapshots=tuple(replace(one, sequence_number=0) for one in metadata.snapshots))
    assert gone(metadata, ExpiryRule(5 * DAY_MS, 2)) == {1, 2, 3, 4, 5}
    assert gone(metadata, ExpiryRule(5 * DAY_MS, 3)) == {1, 3, 4, 5}


def test_e2_a_hole_in_the_line_takes_nothing_away_before_its_age() -> None:
    holed = replace(DAYS, snapshots=tuple(one for one in DAYS.snapshots if one.snapshot_id != 7))
    holed = logged(holed)
    assert gone(holed, ExpiryRule(5 * DAY_MS, 1)) == {1, 2, 3, 4, 5}
    assert gone(holed, ExpiryRule(16 * DAY_MS, 1)) == {1}


def test_e4_what_was_staged_or_picked_goes_by_its_age_alone() -> None:
    staged = of(9, 7 * DAY_MS, 4, {"wap.id": "w1"})
    picked = of(10, HOUR_MS, 8, {"source-snapshot-id": "9", "published-wap-id": "w1"})
    snapshots = tuple(replace(one, sequence_number=0) for one in (*DAYS.snapshots, staged, picked))
    metadata = logged(replace(table(snapshots), refs=(Ref("main", RefKind.BRANCH, 10),)))
    assert gone(metadata, ExpiryRule(8 * DAY_MS + 1, 1)) == {1, 2, 3}
    assert gone(metadata, AGED) == {1, 2, 3, 4, 5, 9}


def test_e5_what_was_rolled_back_is_as_old_as_the_rollback() -> None:
    """Main went back from 8 to 6 an hour ago; 6 was current again by then, and 7 and 8 were so until then."""
    log = (*DAYS.snapshot_log, LoggedSnapshot(NOW - HOUR_MS, 6))
    metadata = replace(DAYS, current_snapshot_id=6, refs=(Ref("main", RefKind.BRANCH, 6),), snapshot_log=log)
    aged = ExpiryRule(DAY_MS // 2, 1)
    assert gone(metadata, aged) == {1, 2, 3, 4, 5, 7}
    assert gone(replace(metadata, snapshot_log=DAYS.snapshot_log[:6]), aged) == {1, 2, 3, 4, 5, 7, 8}


class TestFloors:
    def test_e11_only_ages_and_numbers_can_be_asked_for(self) -> None:
        rule = asked_rule(policy(DAYS), None, None)
        assert rule == ExpiryRule(5 * DAY_MS, 10)
        assert asked_rule(policy(DAYS), 0, 1) == EVERYTHING
        for older_than_ms, retain_last in ((0, 0), (None, -1), (-1, 1)):
            with pytest.raises(ValueError, match=r"stays|negative"):
                asked_rule(policy(DAYS), older_than_ms, retain_last)

    @each_case("age_ms", ["1", "1000", str(HOUR_MS)])
    def test_e11_no_setting_lowers_the_floor_of_what_runs_by_itself(self, age_ms: str) -> None:
        metadata = replace(DAYS, properties={MAX_AGE_KEY: age_ms})
        assert automatic_rule(policy(metadata)).older_than_ms == AGE_FLOOR_MS

    def test_e11_a_branch_of_no_age_keeps_a_day_by_itself(self) -> None:
        refs = (Ref("main", RefKind.BRANCH, 3, max_snapshot_age_ms=1, min_snapshots_to_keep=1),)
        metadata = replace(line(3 * DAY_MS, DAY_MS // 2, HOUR_MS), refs=refs)
        seen = dict.fromkeys((1, 2, 3), NOW - 30 * DAY_MS)
        assert gone(metadata, EVERYTHING) == {1, 2}
        assert gone(metadata, EVERYTHING, first_seen=seen) == {1}

    def test_e11_a_tag_of_no_age_stays_a_day_by_itself(self) -> None:
        metadata = replace(DAYS, refs=(*DAYS.refs, Ref("now", RefKind.TAG, 8, max_ref_age_ms=1)))
        metadata = replace(metadata, snapshots=(*DAYS.snapshots[:-1], of(8, HOUR_MS)))
        asked, alone = decided(metadata), decided(metadata, first_seen=dict.fromkeys(range(9), 0))
        assert asked.action is not None
        assert alone.action is not None
        assert [ref.name for ref in asked.action.refs_removed] == ["now"]
        assert alone.action.refs_removed == ()


class TestClocks:
    @given(
        st.lists(st.integers(-50 * YEAR_MS, 50 * YEAR_MS), min_size=1, max_size=8),
        st.lists(st.integers(0, 3 * DAY_MS), min_size=8, max_size=8),
        rules,
        st.sampled_from([list, lambda ages: sorted(ages, reverse=True)]),
    )
    def test_l3_nothing_goes_by_itself_that_was_first_seen_within_the_floor(
        self, clocks: list[int], seen_ago: list[int], rule: ExpiryRule, in_order: Callable[[list[int]], list[int]]
    ) -> None:
        ages = in_order(clocks)
        metadata = line(*ages)
        first_seen = {number: NOW - ago for number, ago in enumerate(seen_ago[: len(ages)], start=1)}
        del first_seen[1]  # never seen before: now is the first time
        went = gone(metadata, rule, first_seen=first_seen)
        assert went <= {number for number, at in first_seen.items() if NOW - at >= AGE_FLOOR_MS}

    def test_l3_what_was_seen_lately_counts_from_then(self) -> None:
        seen = dict.fromkeys(range(1, 9), NOW - 4 * DAY_MS)
        assert gone(DAYS, AGED, first_seen=seen) == set()
        assert gone(DAYS, AGED, first_seen=dict.fromkeys(range(1, 9), NOW - 5 * DAY_MS - 1)) == {1, 2, 3, 4, 5}

    def test_l3_clocks_that_contradict_each_other_refuse_ages_and_not_numbers(self) -> None:
        for metadata in (
            line(20 * DAY_MS, 10 * DAY_MS, 10 * DAY_MS + 2 * MINUTE_MS),
            line(20 * DAY_MS, 10 * DAY_MS, -2 * MINUTE_MS),
            replace(DAYS, snapshot_log=(*DAYS.snapshot_log, LoggedSnapshot(NOW - 9 * DAY_MS, 8))),
            replace(DAYS, metadata_log=(LoggedMetadata(NOW, "a"), LoggedMetadata(NOW - DAY_MS, "b"))),
        ):
            assert decided(metadata).reason.code == "clocks"
            assert gone(metadata, EVERYTHING)

    def test_l3_a_minute_is_no_contradiction(self) -> None:
        assert gone(line(20 * DAY_MS, 10 * DAY_MS, 10 * DAY_MS + MINUTE_MS, HOUR_MS)) == {1, 2, 3}


class TestRefusals:
    @each_case("said", ["false", "FALSE", "no", ""])
    def test_no_garbage_is_collected_where_the_owner_says_so(self, said: str) -> None:
        decision = decided(replace(DAYS, properties={"gc.enabled": said}))
        assert (decision.action, decision.reason.code) == (None, "gc-disabled")
        assert gone(replace(DAYS, properties={"gc.enabled": "True"}))

    def test_l6_a_table_of_two_names_is_refused_with_the_finding(self) -> None:
        finding = Reason("shared-uuid", "it is also known as other.db.t")
        decision = decided(DAYS, findings=(finding,))
        assert (decision.action, decision.reason.code) == (None, "shared-uuid")
        assert "other.db.t" in decision.reason.text

    def test_o12_a_history_that_is_not_whole_is_refused(self) -> None:
        for metadata in (
            replace(DAYS, snapshots=DAYS.snapshots[1:]),
            replace(DAYS, refs=(*DAYS.refs, Ref("old", RefKind.TAG, 99))),
            replace(DAYS, current_snapshot_id=99, refs=()),
        ):
            assert decided(metadata, EVERYTHING).reason.code == "snapshots-missing"
        assert decided(replace(DAYS, snapshots=(*DAYS.snapshots, DAYS.snapshots[0]))).reason.code == "snapshots-alike"

    @each_case(
        ("changes", "code"),
        [
            ({"has_uuid": False}, "no-uuid"),
            ({"properties": {"encryption.key-id": "k"}}, "encryption"),
            ({"properties": {MAX_AGE_KEY: "5 days"}}, "policy-problem"),
            ({"properties": {"icewright.consumer.nightly": "yesterday"}}, "policy-problem"),
            ({"metadata_location": "s3://b/t/metadata/v3.metadata.json"}, "hadoop-table"),
        ],
    )
    def test_tables_that_cannot_be_expired(self, changes: dict[str, object], code: str) -> None:
        assert decided(replace(DAYS, **changes)).reason.code == code  # type: ignore[arg-type]  # any fields

    def test_nothing_is_said_with_its_reason(self) -> None:
        decision = decided(DAYS, ExpiryRule(30 * DAY_MS, 1))
        assert (decision.action, decision.reason.code) == (None, "nothing-expires")
        assert decided(table(())).reason.code == "nothing-expires"


def test_e13_what_a_task_goes_on_from_stays_with_all_that_came_after() -> None:
    assert gone(DAYS, EVERYTHING, holds=(Hold("task T", 6),)) == {1, 2, 3, 4, 5}
    assert gone(DAYS, EVERYTHING, holds=(Hold("task T", 99),)) == {1, 2, 3, 4, 5, 6, 7}


def test_e14_few_metadata_files_are_warned_of() -> None:
    few = {"write.metadata.previous-versions-max": "1", "write.metadata.delete-after-commit.enabled": "true"}
    assert "few-metadata-files" in {note.code for note in decided(replace(DAYS, properties=few)).notes}
    assert "few-metadata-files" not in {note.code for note in decided(DAYS).notes}


def test_one_action_has_a_limit_and_takes_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expire_snapshots, "SNAPSHOTS_MAX", 2)
    decision = decided(DAYS)
    assert not_none(decision.action).snapshot_ids == (1, 2)
    assert "3 for the next time" in decision.reason.text


class Hashed(int):
    """A snapshot id that counts how often it is looked up."""

    times = 0

    def __hash__(self) -> int:
        Hashed.times += 1
        return int.__hash__(self)


def test_the_work_grows_as_the_snapshots_do_in_whatever_order_they_are_listed() -> None:
    def times(count: int) -> int:
        ids = [Hashed(number) for number in range(count + 1)]
        made = [of(number, (count - number) * HOUR_MS) for number in range(1, count + 1)]
        snapshots = tuple(
            replace(one, snapshot_id=ids[one.snapshot_id], parent_id=ids[one.parent_id] if one.parent_id else None)
            for one in reversed(made)
        )
        metadata = replace(table(snapshots), current_snapshot_id=ids[count], refs=(Ref("main", RefKind.BRANCH, count),))
        metadata = replace(metadata, properties={"icewright.consumer.x": str(count // 2)})
        before = Hashed.times
        action = not_none(decided(metadata).action)
        assert check_expiry(action, metadata, policy(metadata), now=NOW, first_seen=None) == ()
        return Hashed.times - before

    assert times(1_200) < 3 * times(600)


def test_numbers_that_are_too_long_are_none() -> None:
    long = "9" * 5_000
    properties = {
        "history.expire.max-ref-age-ms": long,
        "write.metadata.previous-versions-max": long,
        "write.metadata.delete-after-commit.enabled": "true",
    }
    metadata = replace(DAYS, refs=(*DAYS.refs, Ref("v1", RefKind.TAG, 1)), properties=properties)
    decision = decided(metadata)
    assert decision.action is not None
    assert (decision.action.refs_removed, gone(metadata)) == ((), gone(replace(metadata, properties={})))
    assert check_expiry(decision.action, metadata, policy(metadata), now=NOW, first_seen=None) == ()


@pytest.mark.parametrize("value", [0, -1])
def test_e11_a_ref_whose_settings_mean_nothing_lets_nothing_expire(value: int) -> None:
    ref = Ref("b", RefKind.BRANCH, 8)
    for wrong in (
        replace(ref, max_ref_age_ms=value),
        replace(ref, max_snapshot_age_ms=value),
        replace(ref, min_snapshots_to_keep=value),
    ):
        assert decided(replace(DAYS, refs=(*DAYS.refs, wrong))).reason.code == "ref-settings"
