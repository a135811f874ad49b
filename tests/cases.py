"""Many cases of one rule in one test: pytest's work for each case of ``parametrize`` is more than most cases take."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from traceback import format_exception_only
from typing import Any, TypeVar

import pytest

ROOT = Path(__file__).parents[1]
"""The repository."""

T = TypeVar("T")
Test = Callable[..., None]

_PARAM = type(pytest.param())


def for_each(cases: Iterable[T], check: Callable[[T], object], *, name: Callable[[T], object] = repr) -> None:
    """Check every case, and fail with all that failed, each with its error. No case at all is a failure.

    The traceback of the first error is shown as the cause of the failure.
    """
    failures: list[tuple[str, BaseException]] = []
    count = 0
    for count, case in enumerate(cases, 1):  # noqa: B007 - read behind the loop
        try:
            check(case)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - of whatever kind, it is told
            failures.append((f"{name(case)}: " + "".join(format_exception_only(error)), error))
    assert count > 0, "there are no cases"
    if failures:
        listed = "\n".join(message for message, _error in failures)
        raise AssertionError(f"{len(failures)} of {count} cases:\n{listed}") from failures[0][1]


def each_case(
    names: str | Sequence[str],
    values: Iterable[Any],
    ids: Callable[[Any], object] | Sequence[object] | None = None,
) -> Callable[[Test], Test]:
    """Do what ``pytest.mark.parametrize`` does, in one test with one set of fixtures for all cases.

    A case that fails does not keep the others from being checked. Each case has a ``tmp_path`` and a ``monkeypatch`` of
    its own and begins with an empty ``capsys``; any other fixture is shared, so a test that changes one must be one
    that may.
    """
    keys = [key.strip() for key in names.split(",")] if isinstance(names, str) else list(names)
    listed = list(values)
    cases = [_case(keys, value) for value in listed]

    def name(number: int) -> str:
        if isinstance(value := listed[number], _PARAM) and value.id:
            return str(value.id)
        given = list(cases[number].values())
        if callable(ids):
            return "-".join(str(ids(value) or repr(value)) for value in given)
        return str(ids[number]) if ids else ", ".join(map(repr, given))

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)
        assert set(keys) <= set(signature.parameters), f"{keys} are not all parameters of {test}"

        @wraps(test)
        def all_cases(*instance: object, **fixtures: object) -> None:
            def check(number: int) -> None:
                with _own(fixtures, number) as own:
                    test(*instance, **own, **cases[number])

            for_each(range(len(cases)), check, name=name)

        others = [parameter for key, parameter in signature.parameters.items() if key not in keys]
        all_cases.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]  # read by pytest
        return all_cases

    return decorate


def _case(keys: Sequence[str], value: Any) -> dict[str, Any]:
    """The arguments of one case, as ``parametrize`` takes them."""
    if isinstance(value, _PARAM):
        assert not value.marks, "a mark is for one case alone: use parametrize"
        given = value.values
    else:
        given = (value,) if len(keys) == 1 else value
    return dict(zip(keys, given, strict=True))


@contextmanager
def _own(fixtures: Mapping[str, object], number: int) -> Iterator[dict[str, object]]:
    """The fixtures of one case."""
    own = dict(fixtures)
    with pytest.MonkeyPatch.context() as monkeypatch:
        if "monkeypatch" in own:
            own["monkeypatch"] = monkeypatch
        if isinstance(folder := own.get("tmp_path"), Path):
            own["tmp_path"] = folder / str(number)
            (folder / str(number)).mkdir()
        if isinstance(capsys := own.get("capsys"), pytest.CaptureFixture):
            capsys.readouterr()
        yield own
