"""The loop over cases: none is left out, and none is silent."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases import each_case, for_each


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
    with pytest.raises(AssertionError, match="there are no cases"):
        each_case("value", [])(lambda value: value)()


def test_each_case_is_given_to_the_test_and_named_where_it_fails() -> None:
    seen = []

    @each_case("second", [pytest.param(3, id="three"), 4], ids=lambda value: f"<{value}>")
    @each_case(("first", "third"), (pair for pair in [(1, "a"), pytest.param(2, "b")]), ids=["one", "two"])
    def check(first: int, second: int, third: str, fixture: str) -> None:
        seen.append((first, second, third, fixture))
        assert (first, second) not in {(2, 3), (2, 4)}

    with pytest.raises(
        AssertionError, match=r"(?s)2 of 2 cases:\nthree: .*1 of 2 cases:\ntwo: .*<4>: .*two: "
    ) as found:
        check(fixture="f")
    assert seen == [(1, 3, "a", "f"), (2, 3, "b", "f"), (1, 4, "a", "f"), (2, 4, "b", "f")]
    assert "AssertionError" in repr(found.value.__cause__)


@pytest.mark.parametrize(
    ("names", "values"),
    [
        ("other", [1]),
        ("first,second", [(1, 2, 3)]),
        ("first", [pytest.param(1, marks=pytest.mark.xfail)]),
    ],
)
def test_cases_that_do_not_fit_the_test_are_refused(names: str, values: list[object]) -> None:
    def check(first: int, second: int) -> None:
        pytest.fail(f"called with {first} and {second}")

    with pytest.raises((AssertionError, ValueError)):
        each_case(names, values)(check)


@pytest.fixture
def shared() -> Iterator[list[int]]:
    kept: list[int] = []
    yield kept
    assert kept == [1, 2, 3]


@each_case("value", [1, 2, 3])
def test_each_case_has_a_folder_an_environment_and_an_output_of_its_own(
    value: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], shared: list[int]
) -> None:
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "left").touch()
    assert "OF_ONE_CASE" not in os.environ
    monkeypatch.setenv("OF_ONE_CASE", str(value))
    print(value)  # noqa: T201 - what is captured
    assert capsys.readouterr().out == f"{value}\n"
    print("left")  # noqa: T201 - what the next case must not see
    shared.append(value)


class TestInClasses:
    @each_case("value", [1, 2])
    def test_each_case_is_given_the_instance(self, value: int) -> None:
        assert isinstance(self, TestInClasses)
        assert value in {1, 2}
