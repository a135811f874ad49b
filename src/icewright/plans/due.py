"""What a table turns out to need beside work on its files, before anything of it is kept or queued."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from icewright.core.times import Instant
from icewright.model.plans.plans import Plan, Reason


@dataclass(frozen=True, slots=True)
class Due:
    """What is needed of one kind, or why nothing is.

    ``keep`` makes the plan and keeps it; None where nothing is to be done. ``since`` is as of when it is known to be
    due. ``in_danger`` is whether it goes before work on data files.
    """

    reason: Reason
    keep: Callable[[], Plan] | None = None
    since: Instant | None = None
    in_danger: bool = False
