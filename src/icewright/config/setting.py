"""What a setting of the configuration is; :mod:`icewright.config.settings` has all of them."""

from __future__ import annotations

from collections.abc import Callable
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
