"""Arms every Python process that is started with this folder on its path: now and then a worker has no memory left.

Python imports ``sitecustomize`` by itself when it starts. ``SHORT_OF_MEMORY`` is how often, as a share of all files
that are written by workers.
"""

from __future__ import annotations

import os
import random

from icewright.core.fault_points import Fault, arm

_SHARE = float(os.environ["SHORT_OF_MEMORY"])
_CHANCE = random.SystemRandom()
"""Without a state: Spark forks its workers, and each would begin with the draw of the one before it."""


def come_by(point: Fault) -> None:
    """Fail as an allocation does."""
    if point is Fault.WORKER_WRITTEN and _CHANCE.random() < _SHARE:
        raise MemoryError("no memory is left, as a test wants it")


arm(come_by)
