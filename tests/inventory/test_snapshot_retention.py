"""Which snapshots an expiry keeps, rule by rule; that Iceberg keeps the same is shown on Spark."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from icewright.inventory.snapshot_retention import retained_snapshots
from icewright.model.actions.expire_snapshots import ExpiryRule
from icewright.model.iceberg.tables import Ref, RefKind, TableMetadata
from tests.inventory.test_footprint import NOW, snapshot, table, tables

LINE = tuple(snapshot(number, number - 1 or None, number * 100) for number in range(1, 6))
"""Five in a row, the last of them half as old as `NOW`."""
MAIN = Ref("main", RefKind.BRANCH, 5)


def kept(rule: ExpiryRule, *refs: Ref, **properties: str) -> set[int]:
    return set(retained_snapshots(table(LINE, (MAIN, *refs), 5, **properties), rule, NOW))


def test_what_is_young_enough_stays_and_what_is_as_old_as_the_limit_is() -> None:
    assert kept(ExpiryRule(600)) == {4, 5}
    assert kept(ExpiryRule(599)) == {5}
    assert kept(ExpiryRule(10_000)) == {1, 2, 3, 4, 5}


def test_the_current_snapshot_always_stays() -> None:
    assert kept(ExpiryRule(0)) == kept(ExpiryRule(0, 1)) == {5}


def test_the_last_ones_stay_whatever_their_age() -> None:
    assert kept(ExpiryRule(0, 3)) == {3, 4, 5}
    assert kept(ExpiryRule(0, 99)) == {1, 2, 3, 4, 5}
    properties = {"history.expire.min-snapshots-to-keep": "2"}
    assert kept(ExpiryRule(0), **properties) == {4, 5}
    assert kept(ExpiryRule(0, 1), **properties) == {5}
    assert kept(ExpiryRule(0), **{"history.expire.min-snapshots-to-keep": "all"}) == {5}


def test_a_tag_keeps_its_snapshot_and_a_branch_its_own_line() -> None:
    assert kept(ExpiryRule(0), Ref("t", RefKind.TAG, 2)) == {2, 5}
    branch = Ref("b", RefKind.BRANCH, 3, min_snapshots_to_keep=2)
    assert kept(ExpiryRule(0), branch) == {2, 3, 5}
    assert kept(ExpiryRule(0), Ref("b", RefKind.BRANCH, 3, max_snapshot_age_ms=900)) == {1, 2, 3, 5}


def test_a_ref_that_is_too_old_goes_and_main_never_does() -> None:
    assert kept(ExpiryRule(0), Ref("t", RefKind.TAG, 2, max_ref_age_ms=800)) == {2, 5}
    assert kept(ExpiryRule(0), Ref("t", RefKind.TAG, 2, max_ref_age_ms=799)) == {5}
    assert kept(ExpiryRule(0), Ref("t", RefKind.TAG, 2), **{"history.expire.max-ref-age-ms": "799"}) == {5}
    assert kept(ExpiryRule(0), **{"history.expire.max-ref-age-ms": "1"}) == {5}


def test_what_no_ref_leads_to_stays_by_its_age_alone() -> None:
    aside = snapshot(9, 3, 450)
    metadata = table((*LINE, aside), (MAIN,), 5)
    assert retained_snapshots(metadata, ExpiryRule(550), NOW) == {5, 9}
    assert retained_snapshots(metadata, ExpiryRule(549), NOW) == {5}
    assert retained_snapshots(metadata, ExpiryRule(0, 99), NOW) == {1, 2, 3, 4, 5}


def test_the_line_ends_where_a_snapshot_is_gone_or_parents_go_round() -> None:
    broken = (snapshot(1, None, 100), snapshot(3, 2, 300), snapshot(4, 3, 400))
    assert retained_snapshots(table(broken, (Ref("main", RefKind.BRANCH, 4),), 4), ExpiryRule(0, 9), NOW) == {3, 4}
    circle = (snapshot(1, 2, 100), snapshot(2, 1, 200))
    assert retained_snapshots(table(circle, (Ref("main", RefKind.BRANCH, 2),), 2), ExpiryRule(0, 9), NOW) == {1, 2}


@given(tables(), st.integers(0, NOW), st.integers(0, NOW), st.integers(1, 5), st.integers(1, 5))
def test_more_leave_is_never_less_kept(metadata: TableMetadata, age: int, more: int, least: int, further: int) -> None:
    strict = retained_snapshots(metadata, ExpiryRule(age, least), NOW)
    assert strict <= retained_snapshots(metadata, ExpiryRule(age + more, least + further), NOW)
    assert metadata.current_snapshot_id is None or metadata.current_snapshot_id in strict
