"""Many cases of one rule in one test: pytest's work for each case of ``parametrize`` is more than most cases take."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from traceback import format_exception_only
from typing import TypeVar

import pytest

T = TypeVar("T")


def for_each(cases: Iterable[T], check: Callable[[T], object]) -> None:
    """Check every case, and fail with all that failed, each with its error. No case at all is a failure."""
    failures, count = [], 0
    for count, case in enumerate(cases, 1):  # noqa: B007 - read behind the loop
        try:
            check(case)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - of whatever kind, it is told
            failures.append(f"{case!r}: " + "".join(format_exception_only(error)))
    assert count > 0, "there are no cases"
    assert not failures, f"{len(failures)} of {count} cases:\n" + "\n".join(failures)
