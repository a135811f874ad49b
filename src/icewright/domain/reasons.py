"""Why something is, or is not, done. A module of its own, below plans: what plans are made of has reasons too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Reason:
    """A stable code for programs, a sentence for people, and the figures."""

    code: str
    text: str
    figures: Mapping[str, int | float | str] = field(default_factory=dict)
