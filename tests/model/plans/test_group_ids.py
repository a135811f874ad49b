"""The groups of a commit, as its summary says them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from icewright.model.plans.group_ids import group_ids_text, read_group_ids
from tests.cases import each_case

IDS = st.frozensets(st.integers(0, 40))


@given(IDS, IDS)
def test_what_is_written_is_read(ids: frozenset[int], others: frozenset[int]) -> None:
    assert read_group_ids(group_ids_text(ids), ids | others) == (ids or None)


@given(IDS.filter(bool), IDS)
def test_ids_that_are_not_known_are_not_read(ids: frozenset[int], known: frozenset[int]) -> None:
    expected = ids if ids <= known else None
    assert read_group_ids(group_ids_text(ids), known) == expected


@given(st.text("0123456789,- ", max_size=8), IDS)
def test_only_one_text_says_a_set_of_groups(text: str, known: frozenset[int]) -> None:
    found = read_group_ids(text, known)
    assert found is None or group_ids_text(found) == text


def test_neighbours_are_a_range() -> None:
    assert group_ids_text([7, 0, 2, 1, 5]) == "0-2,5,7"


@each_case("text", ["", "x", "1-0", "01", "0,0", "0,1", "1,0", "0-", "-1", "0-999999999", "9" * 10, "0\n", "\u0661"])
def test_anything_else_says_nothing(text: str) -> None:
    assert read_group_ids(text, range(3)) is None
