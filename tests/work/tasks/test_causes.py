"""The retry policy reads the whole error tree: each class has a cause, and each cause a decision."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import icewright
from icewright.core import errors
from icewright.core.errors import Cause, IcewrightError, Unavailable
from icewright.work.tasks.causes import CAUSES, CAUSES_BY_CODE, cause_of, end_of
from icewright.work.tasks.retry import End, GiveUp, PlanAgain, Retry, decide
from icewright_spark.parquet import errors as merge_errors
from tests.cases import each_case

DECISIONS = {
    Cause.AWAY: Retry,
    Cause.OUT_OF_MEMORY: Retry,
    Cause.LOST: Retry,
    Cause.DEFECT: Retry,
    Cause.CONFLICT: PlanAgain,
    Cause.UNKNOWN: PlanAgain,
    Cause.FORBIDDEN: GiveUp,
    Cause.UNREADABLE: GiveUp,
    Cause.REJECTED: GiveUp,
}
"""What follows on a first attempt that says that the same may do better, as ``docs/operations.md`` has it."""


def below(kind: type[IcewrightError]) -> Iterator[type[IcewrightError]]:
    yield kind
    for one in kind.__subclasses__():
        yield from below(one)


def tree(module: str) -> list[type[IcewrightError]]:
    """All classes of the tree that a module has, and those below it."""
    return [kind for kind in dict.fromkeys(below(IcewrightError)) if kind.__module__.startswith(module)]


def everything_imported() -> None:
    for found in pkgutil.walk_packages(icewright.__path__, "icewright."):
        if "migrations" not in found.name and not found.name.endswith("__main__"):
            importlib.import_module(found.name)


def test_each_class_of_the_error_tree_has_a_cause_of_its_own() -> None:
    undecided = [kind.__name__ for kind in tree(errors.__name__) if kind not in CAUSES]
    assert undecided == [], "decide in icewright.work.tasks.causes what a task comes to that fails with it"


def test_a_class_without_a_decision_is_noticed() -> None:
    new = type("New", (Unavailable,), {"__module__": errors.__name__})
    try:
        with pytest.raises(AssertionError, match="New"):
            test_each_class_of_the_error_tree_has_a_cause_of_its_own()
    finally:
        new.__module__ = __name__


def test_classes_that_share_a_code_share_a_cause() -> None:
    """Reports carry codes alone."""
    assert [kind.__name__ for kind, cause in CAUSES.items() if CAUSES_BY_CODE[kind.code] is not cause] == []


def test_classes_beyond_the_tree_mean_what_those_above_them_mean() -> None:
    everything_imported()
    for kind in tree("icewright."):
        assert cause_of(kind.__new__(kind)) is CAUSES_BY_CODE.get(kind.code, cause_of(kind.__new__(kind)))


def test_what_the_kernel_fails_with_is_known_by_its_code() -> None:
    found = tree(merge_errors.__name__)
    assert found
    for kind in found:
        assert kind.code in CAUSES_BY_CODE, kind
    by_class = {kind.code: cause_of(kind.__new__(kind)) for kind in found}
    differ = {code for code, cause in by_class.items() if CAUSES_BY_CODE[code] is not cause}
    assert differ == {"storage-refused"}  # who was not let in says that nobody answered, as far as its class tells


@each_case("cause", Cause)
def test_each_cause_has_its_decision(cause: Cause) -> None:
    assert isinstance(decide(1, 3, end_of(cause, retryable=True), jitter=0.5), DECISIONS[cause])


@each_case("cause", Cause)
def test_what_says_that_it_would_fail_again_is_never_tried_again(cause: Cause) -> None:
    end = end_of(cause, retryable=False)
    assert not isinstance(decide(1, 3, end, jitter=0.5), Retry)
    assert end in (End.CONFLICT, End.ABSENT, End.FINAL)
