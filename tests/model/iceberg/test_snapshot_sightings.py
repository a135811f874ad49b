"""Marks tell when snapshots were first seen: never too early, not much too late, and there are few of them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from icewright.model.iceberg.snapshot_sightings import GAPS_AN_AGE, MARK_GAP_MS, Mark, first_seen, marked
from icewright.model.iceberg.tables import TableMetadata
from tests.builders.observations import snapshot, table

DAY_MS = 86_400_000
YEAR_MS = 365 * DAY_MS


def seen(sequence_numbers: range, committed_at: int = 0) -> TableMetadata:
    """A table with these snapshots; what they say of their time is of no use."""
    return table(snapshots=tuple(snapshot(number, committed_at) for number in sequence_numbers))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(60_000, 3 * DAY_MS), st.integers(0, 5)), min_size=1, max_size=300))
def test_e11_l3_each_snapshot_is_told_of_not_too_early_and_not_much_too_late(looks: list[tuple[int, int]]) -> None:
    now, number, marks = 10**12, 0, tuple[Mark, ...]()
    truly: dict[int, int] = {}
    for gap_ms, commits in looks:
        now += gap_ms
        for _ in range(commits):
            number += 1
            truly[number] = now
        marks = marked(marks, seen(range(1, number + 1)), now)
    found = first_seen(marks, seen(range(1, number + 1)))
    gap_ms_max = MARK_GAP_MS + max(gap_ms for gap_ms, _ in looks)
    for number, at in found.items():
        age_ms = now - truly[number]
        assert 0 <= at - truly[number] <= 2 * max(gap_ms_max, age_ms // GAPS_AN_AGE)
    assert all(now - truly[number] < MARK_GAP_MS for number in truly.keys() - found.keys())


def test_there_are_few_marks_after_years() -> None:
    marks, now = tuple[Mark, ...](), 10**12
    for number in range(1, 365 * 24):
        now += MARK_GAP_MS
        marks = marked(marks, seen(range(1, number + 1, number)), now)
    assert len(marks) <= 200
    assert marks[0].sequence_number == 1
    assert len(marked(marks, seen(range(365 * 24, 365 * 24 + 1)), now + MARK_GAP_MS)) == 1


def test_l3_a_clock_that_was_set_back_takes_its_marks_along() -> None:
    marks = marked((), seen(range(1, 3)), 10**12 + YEAR_MS)
    again = marked(marks, seen(range(1, 3)), 10**12)
    assert again == (Mark(10**12, 2),)


def test_l3_what_a_snapshot_says_of_its_time_does_not_matter() -> None:
    marks = marked((), seen(range(1, 2), committed_at=0), 10**12)
    assert first_seen(marks, seen(range(1, 2), committed_at=50 * YEAR_MS)) == {1: 10**12}


def test_tables_that_number_nothing_have_no_marks() -> None:
    assert marked((), seen(range(1)), 10**12) == ()
    assert first_seen((Mark(10**12, 5),), seen(range(1))) == {}


def test_l3_a_table_that_was_put_back_to_an_older_state_is_seen_anew() -> None:
    marks = marked((), seen(range(1, 101)), 10**12)
    marks = marked(marks, seen(range(1, 51)), 10**12 + DAY_MS)
    again = first_seen(marked(marks, seen(range(1, 61)), 10**12 + 2 * DAY_MS), seen(range(1, 61)))
    assert again == {number: 10**12 + (1 if number <= 50 else 2) * DAY_MS for number in range(1, 61)}
