"""The loop over cases: none is left out, and none is silent."""

from __future__ import annotations

import pytest

from tests.cases import for_each


def test_all_cases_are_checked_and_all_that_fail_are_told() -> None:
    seen: list[int] = []

    def check(case: int) -> None:
        seen.append(case)
        if case == 1:
            raise KeyError("one")
        if case == 3:
            pytest.fail("three")
        if case == 4:
            with pytest.raises(ValueError, match="x"):
                pass

    with pytest.raises(AssertionError, match=r"(?s)3 of 5 cases:.*1: KeyError: 'one'.*3: .*three.*4: .*DID NOT RAISE"):
        for_each(range(5), check)
    assert seen == [0, 1, 2, 3, 4]


def test_cases_that_all_hold_pass_and_none_at_all_is_a_failure() -> None:
    for_each([1, 2], lambda case: case)
    with pytest.raises(AssertionError, match="there are no cases"):
        for_each([], lambda case: case)
