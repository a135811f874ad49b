"""What a test knows of a value: asserted, and told to mypy."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def not_none(value: T | None) -> T:
    """The value, which is there."""
    assert value is not None
    return value


def of_type(kind: type[T], value: object) -> T:
    """The value, which is of that type."""
    assert isinstance(value, kind)
    return value
