"""Why something is, or is not, done. A module of its own, below plans: what plans are made of has reasons too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final


@dataclass(frozen=True, slots=True)
class Reason:
    """A stable code for programs, a sentence for people, and the figures."""

    code: str
    text: str
    figures: Mapping[str, int | float | str] = field(default_factory=dict)


SINCE: Final = "since"
"""The figure of a reason that says since when it holds, in milliseconds since the epoch."""


def lasting(reason: Reason, before: Reason | None, now: int) -> Reason:
    """The reason with since when it holds: ``now``, or as long as one of its code already does."""
    since = None if before is None or before.code != reason.code else before.figures.get(SINCE)
    return replace(reason, figures={**reason.figures, SINCE: now if since is None else since})
