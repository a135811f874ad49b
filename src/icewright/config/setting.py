"""What a setting of the configuration is; :mod:`icewright.config.settings` has all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """Types of values, as the error messages name them."""

    TEXT = "a string"
    INTEGER = "an integer"
    TEXTS = "an array of strings"
    MAPPING = "a table of strings"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. ``accepts`` judges a value of the right type; ``allowed`` tells people what it accepts."""

    key: str
    kind: Kind
    about: str
    default: Any = None
    """None also where there is no fixed default; ``required`` then tells the two apart."""
    required: bool = False
    allowed: str = ""
    accepts: Callable[[Any], bool] = lambda _value: True


def choice(key: str, about: str, options: Sequence[str], *, default: str | None = None, allowed: str = "") -> Setting:
    """A text that is one of ``options``; ``allowed`` where there is more to say of them."""
    said = allowed or ", ".join(options)
    return Setting(key, Kind.TEXT, about, default=default, allowed=said, accepts=lambda value: value in options)


def integer(
    key: str, about: str, *, default: int, least: int, most: int | None = None, allowed: str | None = None
) -> Setting:
    """An integer from ``least`` to ``most``; ``allowed`` where there is more to say of what it accepts."""
    accepts = (lambda value: value >= least) if most is None else (lambda value: least <= value <= most)
    said = f"{least} or more" if most is None else f"{least} to {most}"
    return Setting(key, Kind.INTEGER, about, default=default, allowed=allowed or said, accepts=accepts)
