"""Arms every Python process that a test starts with this folder on its path: Spark's Python workers, too.

Python imports ``sitecustomize`` by itself when it starts. Orders to die lie in files, one for each place, so that
processes which run already can be told as well; who carries one out takes it away first, so that it is carried out
once.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from icewright.core.fault_points import Fault, arm

FOLDER = Path(os.environ["KILLS_FOLDER"])


def come_by(point: Fault) -> None:
    """Carry the order out if it is for here."""
    order = FOLDER / f"order-{point.value}"
    try:
        victim, number = order.read_text().split()  # a `sleeper` stops until somebody wakes it, all others die
        order.rename(FOLDER / f"taken-{number}")
    except FileNotFoundError:
        return  # no order, or somebody else carries it out
    own = [os.getpid()]
    victims = {"self": lambda: own, "sleeper": lambda: own, "jvm": jvms, "driver": drivers}[victim]()
    (FOLDER / f"killed-{number}").write_text(" ".join(str(pid) for pid in victims))
    for pid in victims:
        os.kill(pid, signal.SIGSTOP if victim == "sleeper" else signal.SIGKILL)
    time.sleep(0.2)  # until a dead process does not answer any more, or this one has come to a stop


def jvms() -> list[int]:
    """The JVM of this driver, or the one that this worker works for."""
    import psutil  # noqa: PLC0415 - not in every process that starts

    own = psutil.Process()
    near = [*own.children(recursive=True), *own.parents()]
    return [process.pid for process in near if process.name() == "java"]


def drivers() -> list[int]:
    """The optimizer that this worker works for."""
    import psutil  # noqa: PLC0415 - see above

    for process in psutil.Process().parents():
        if process.name() == "java":
            parent = process.parent()
            return [] if parent is None else [parent.pid]
    return []


arm(come_by)
